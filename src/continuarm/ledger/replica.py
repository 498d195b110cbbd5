"""Replica: the fold of a ledger up to a position, in one process.

Every replica folds the same records in the same order, so all hold the same bits. At every
thousandth position or so one keeps a snapshot, and the others compare theirs with it.
"""

import hashlib
import json
from collections.abc import Iterable

from continuarm import checks
from continuarm.errors import StoreError, UnknownExperimentError
from continuarm.ledger.entries import BEGAN
from continuarm.ledger.fold import fold
from continuarm.ledger.version import fold_version
from continuarm.live import state
from continuarm.live.events import Event
from continuarm.live.life import Life
from continuarm.store.protocol import MOST_READ, Store
from continuarm.store.records import Entry, Outcome, Record, Snapshot

__all__ = ["Replica", "begin", "life_of", "snapshot_of"]

SNAPSHOT_EVERY = 5000  # positions


def snapshot_of(life: Life, position: int) -> Snapshot:
    """A life at a position of its ledger, with what became of its decisions."""
    closed = json.dumps(life.open.closed.to_plain(), allow_nan=False)
    content = closed.encode() + b"\n" + state.to_bytes(life)
    return Snapshot(position, fold_version(), hashlib.sha256(content).hexdigest(), content)


def life_of(snapshot: Snapshot) -> Life:
    """The life that `snapshot_of` wrote."""
    closed, _, content = snapshot.state.partition(b"\n")
    life = state.from_bytes(content)
    life.open.closed.restore(json.loads(closed))
    return life


def begin(store: Store, name: str, life: Life) -> None:
    """Let an experiment begin with this state, if it has not begun."""
    kept = store.keep(name, snapshot_of(life, 1))
    body = json.dumps({"version": kept.version, "digest": kept.digest})
    store.append(name, [Entry(BEGAN, body)], onto=0)


def pinned(store: Store, name: str) -> str:
    """The version that folds an experiment, if it is this one."""
    found = store.read(name, store.experiment(name).begins, 1)
    if not found:
        raise UnknownExperimentError(f"an experiment must have begun, but {name!r} has not yet")
    [began] = found
    version = json.loads(began.body)["version"] if began.kind == BEGAN else fold_version()
    if version != fold_version():
        raise StoreError(
            f"an experiment is folded by the version that began it, and {name!r} is of "
            f"{version}, but this is {fold_version()}: run the code and the processor of then"
        )
    return str(version)


class Replica:
    """A life that follows a ledger.

    every : positions between two snapshots.
    """

    life: Life
    position: int

    def __init__(self, store: Store, name: str, *, every: int = SNAPSHOT_EVERY) -> None:
        self.store, self.name, self.every = store, name, checks.whole("every", every, 1)
        self.differs: str | None = None  # how this replica's state differs from another's
        self._load()

    def _load(self) -> None:
        """Begin with the newest snapshot."""
        snapshot = self.store.newest(self.name, pinned(self.store, self.name))
        if snapshot is None:
            raise StoreError(
                f"an experiment must begin with a snapshot, but {self.name!r} has none"
            )
        self.life, self.position = life_of(snapshot), snapshot.position
        self._compare(self.snapshot(), snapshot)
        self._is_whole = True

    def catch_up(self) -> None:
        """Fold all that was appended since."""
        while self.fold_some():
            pass

    def fold_some(self, most: int = MOST_READ) -> bool:
        """Fold the next records, at most so many; whether there may be more."""
        self._mend()
        records = self.store.read(self.name, self.position, most)
        for record in records:
            self._fold(record)
        return len(records) == most

    def _mend(self) -> None:
        if not self._is_whole:  # a signal came between a record and its position
            self._load()

    def fold_own(self, written: Iterable[tuple[Outcome, Event | None]]) -> None:
        """Fold what this process has just appended, and what others appended before it.

        It knows the events, and need not read them again.
        """
        self._mend()
        for (refused, record), event in written:
            if refused is None and record is not None:
                while self.position < record.position - 1:
                    self.fold_some(min(MOST_READ, record.position - 1 - self.position))
                if self.position < record.position:
                    self._fold(record, event)

    def _fold(self, record: Record, event: Event | None = None) -> None:
        if record.position != self.position + 1:
            raise StoreError(
                f"record {self.position + 1} of {self.name!r} must follow, but got record "
                f"{record.position}: what was before it is erased; open the experiment again"
            )
        self._is_whole = False
        fold(self.life, record, event)
        self.position, self._is_whole = record.position, True
        if self.position % self.every == 0:
            own = self.snapshot()
            self._compare(own, self.store.keep(self.name, own))

    def snapshot(self) -> Snapshot:
        """The state as it is now."""
        return snapshot_of(self.life, self.position)

    def _compare(self, own: Snapshot, kept: Snapshot) -> None:
        """Whether this replica has the state that was kept."""
        if own.digest != kept.digest:
            self.differs = (
                f"all processes must hold one state, but at position {kept.position} of "
                f"{self.name!r} this one has {own.digest[:12]} and another had {kept.digest[:12]}"
            )
