"""Groups: entries of several threads, appended in one stroke.

While a group is on its way to the disk, entries of other threads gather. Whoever writes next takes
them all. So a busy process waits for the disk once for many decisions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

from continuarm.store.protocol import Store
from continuarm.store.records import Entry, Outcome

__all__ = ["Groups", "taken"]

MOST = 1000  # entries in a group, beyond those of its first request

Waiting = TypeVar("Waiting")


def taken(
    gathered: list[tuple[Sequence[Any], Waiting]],
) -> tuple[list[tuple[Sequence[Any], Waiting]], list[tuple[Sequence[Any], Waiting]]]:
    """Of what has gathered, the next group, the oldest first, and the rest."""
    count = 0
    for number, (given, _) in enumerate(gathered):
        if number > 0 and count > MOST:
            return gathered[:number], gathered[number:]
        count += len(given)
    return gathered, []


@dataclass(eq=False)
class _Waiting:
    """What became of the entries of one thread."""

    outcomes: list[Outcome] | None = None
    error: BaseException | None = None

    @property
    def is_done(self) -> bool:
        return self.outcomes is not None or self.error is not None


class Groups:
    """What this process appends to one ledger."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._gathering, self._writing = Lock(), Lock()
        self._gathered: list[tuple[Sequence[Entry], _Waiting]] = []

    def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Append entries, with those of other threads; what became of them, in their order."""
        mine = _Waiting()
        with self._gathering:
            self._gathered.append((entries, mine))
        while not mine.is_done:
            with self._writing:
                if not mine.is_done:
                    self._write()
        if mine.error is not None:
            raise mine.error
        return mine.outcomes or []

    def _write(self) -> None:
        """Append what has gathered, the oldest first."""
        with self._gathering:
            group, self._gathered = taken(self._gathered)
        try:
            entries = [entry for given, _ in group for entry in given]
            outcomes = iter(self._store.append(self._name, entries).outcomes)
            for given, one in group:
                one.outcomes = [next(outcomes) for _ in given]
        except BaseException as error:
            for _, one in group:
                one.outcomes, one.error = None, error
