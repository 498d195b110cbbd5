"""The fold version: a number for what a ledger's events come to."""

from typing import Final

__all__ = ["FOLD_VERSION", "is_newer", "own_version"]

FOLD_VERSION: Final = 1
"""Raise it by one, by hand, when the same events are folded to another state.

That is so when a learner or a partition changes what it learns, when a state has other numbers, or
when an event does something else. It is not so for another processor, compiler or order of the
same sums: such states differ by rounding, and the first snapshot that is kept counts. Nor for what
is decided from a state: decisions stand in the ledger with their values.

Golden ledgers of the tests are folded by every commit, and fail where this was forgotten. When it
is raised, `python -m tests.golden.make` makes them anew, and users run `continuarm upgrade`.
"""


DIGITS = 16  # of versions before 1, which were hashes


def own_version() -> str:
    """The version as stores write it."""
    return str(FOLD_VERSION)


def is_newer(version: str) -> bool:
    """Whether a version of a store comes after this one."""
    return version.isdigit() and len(version) < DIGITS and int(version) > FOLD_VERSION
