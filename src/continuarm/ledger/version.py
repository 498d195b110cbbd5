"""The fold version: a number for what a ledger's events come to."""

import re
from typing import Final

__all__ = ["FOLD_VERSION", "is_newer", "is_version", "own_version"]

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
NUMBER, HASH = re.compile(r"[1-9][0-9]{0,14}"), re.compile(rf"[0-9a-f]{{{DIGITS}}}")


def own_version() -> str:
    """The version as stores write it."""
    return str(FOLD_VERSION)


def is_version(version: str) -> bool:
    """Whether this is how a store writes a version: a number from 1 on, or a hash of before."""
    return bool(NUMBER.fullmatch(version) or HASH.fullmatch(version))


def is_newer(version: str) -> bool:
    """Whether a version of a store comes after this one."""
    return version.isdigit() and len(version) < DIGITS and int(version) > FOLD_VERSION
