"""Groups: entries of several threads, appended in one stroke.

While a group is on its way to the disk, entries of other threads gather. Whoever writes next takes
them all. So a busy process waits for the disk once for many decisions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from continuarm.store.protocol import Store
from continuarm.store.records import Entry, Outcome

__all__ = ["Groups"]

MOST = 1000  # entries in a group


@dataclass(eq=False)
class _Waiting:
    """Entries of one thread, and what became of them."""

    entries: Sequence[Entry]
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
        self._gathered: list[_Waiting] = []

    def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Append entries, with those of other threads; what became of them, in their order."""
        mine = _Waiting(entries)
        with self._gathering:
            self._gathered.append(mine)
        while not mine.is_done:
            with self._writing:
                if not mine.is_done:
                    self._write()
        if mine.error is not None:
            raise mine.error
        return mine.outcomes or []

    def _write(self) -> None:
        """Append what has gathered, the oldest first."""
        group = self._taken()
        try:
            entries = [entry for one in group for entry in one.entries]
            outcomes = iter(self._store.append(self._name, entries))
            for one in group:
                one.outcomes = [next(outcomes) for _ in one.entries]
        except BaseException as error:
            for one in group:
                one.outcomes, one.error = None, error

    def _taken(self) -> list[_Waiting]:
        with self._gathering:
            taken, count = 0, 0
            while taken < len(self._gathered) and (taken == 0 or count <= MOST):
                count += len(self._gathered[taken].entries)
                taken += 1
            group, self._gathered = self._gathered[:taken], self._gathered[taken:]
        return group
