"""Replica: the fold of a ledger up to a position, in one process.

Every replica folds the same records in the same order, so all hold the same bits. Every so many
positions one keeps a snapshot, and the others compare theirs with it.
"""

from collections import deque
from collections.abc import Iterable

from continuarm import checks
from continuarm.errors import StoreError
from continuarm.ledger.beginnings import began, began_of, life_of, pinned, snapshot_of
from continuarm.ledger.entries import BEGAN
from continuarm.ledger.fold import fold
from continuarm.live.events import Event
from continuarm.live.life import Life
from continuarm.store.protocol import MOST_READ, Store
from continuarm.store.records import Outcome, Record, Snapshot

__all__ = ["Replica"]

SNAPSHOT_EVERY = 5000  # positions


class Replica:
    """A life that follows a ledger.

    every : positions between two snapshots, while no more decisions are open.
    """

    life: Life
    position: int

    def __init__(self, store: Store, name: str, *, every: int = SNAPSHOT_EVERY) -> None:
        self.store, self.name, self.every = store, name, checks.whole("every", every, 1)
        self.differs: str | None = None  # how this replica's state differs from another's
        self._made = deque[Snapshot]()  # while folding, and not kept yet
        self._load()

    def _load(self) -> None:
        """Begin with the newest snapshot."""
        version = pinned(self.name, began(self.store, self.name))
        snapshot = self.store.newest(self.name, version)
        if snapshot is None:
            raise StoreError(
                f"an experiment must begin with a snapshot, but {self.name!r} has none"
            )
        self.life, self.position = life_of(snapshot), snapshot.position
        self.differs = None
        self._compare(self.snapshot(), snapshot)
        self._is_whole = True

    def catch_up(self) -> None:
        """Fold all that was appended since, and keep snapshots."""
        while self.fold_some():
            self.keep_snapshots()
        self.keep_snapshots()

    def fold_some(self, most: int = MOST_READ) -> bool:
        """Fold the next records, at most so many; whether there may be more.

        Snapshots that are made meanwhile are kept by `keep_snapshots`, which waits for the store.
        """
        self._mend()
        records = self.store.read(self.name, self.position, most)
        self.fold_read(records)
        return len(records) == most

    def fold_read(self, records: list[Record]) -> None:
        """Fold records that were read after its position; some may be folded by now."""
        self._mend()
        new = [record for record in records if record.position > self.position]
        if new and new[0].position != self.position + 1:  # what was before is erased
            self._load()
            new = self.store.read(self.name, self.position)
        for record in new:
            self._fold(record)

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
                f"{record.position}"
            )
        self._is_whole = False
        if record.kind == BEGAN:
            self._begin_again(record)
        fold(self.life, record, event)
        self.position, self._is_whole = record.position, True
        if self.position % self.every == 0 and self._is_worth_a_snapshot:
            self._made.append(self.snapshot())

    @property
    def has_snapshots(self) -> bool:
        """Whether snapshots were made that are not kept yet."""
        return bool(self._made)

    def keep_snapshots(self) -> None:
        """Keep the snapshots that were made while folding, or compare them with those kept."""
        while True:
            try:
                own = self._made.popleft()
            except IndexError:  # two threads may keep them at once
                return
            try:
                kept = self.store.keep(self.name, own)
            except BaseException:
                if not self._made:  # it is kept with the next try; there need not be many
                    self._made.appendleft(own)
                raise
            self._compare(own, kept)

    @property
    def _is_worth_a_snapshot(self) -> bool:
        """Whether the events since the last one are as many as the decisions that are open.

        A snapshot holds all that are open, so a fixed distance would cost more the more there are.
        The distance is `every` times a power of two: the same positions in all replicas.
        """
        times = 1
        while times * self.every < len(self.life.open.open):
            times *= 2
        return self.position // self.every % times == 0

    def _begin_again(self, record: Record) -> None:
        """Fold nothing that another version has taken over; it may be given back."""
        try:
            pinned(self.name, began_of(record))
        except StoreError as error:
            self.differs = str(error)
            raise

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
