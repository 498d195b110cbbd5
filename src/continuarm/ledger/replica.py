"""Replica: the fold of a ledger up to a position, in one process.

Every replica folds the same records in the same order. Every so many positions one keeps a
snapshot: the first that is kept at a position is the truth. Replicas of one build hold its bits.
One of another build or processor, which has rounded otherwise, goes on from there.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable

from continuarm import checks
from continuarm.errors import ContinuarmError, StoreError, UnavailableError
from continuarm.ledger.beginnings import Began, began, began_of, pinned
from continuarm.ledger.difference import Difference, between_states
from continuarm.ledger.entries import BEGAN
from continuarm.ledger.fold import fold, fold_until
from continuarm.ledger.log_learning import LEARNED_FROM_LOG, LogLearning
from continuarm.ledger.refold import Refold
from continuarm.ledger.snapshots import newest_kept, readable_life, snapshot_of
from continuarm.live.events import Event
from continuarm.live.life import Life
from continuarm.store.checksums import DamagedError
from continuarm.store.protocol import MOST_READ, Store
from continuarm.store.records import Outcome, Record, Snapshot, is_same

__all__ = ["Replica"]

SNAPSHOT_EVERY = 5000  # positions
MOST_REFUSED = 1000  # records that steered in vain, of which it is known why
AGAIN = 2.0  # seconds before a ledger that could not be folded is tried again
LOG = logging.getLogger("continuarm")


class Replica:
    """A life that follows a ledger.

    every : positions between two snapshots, while no more decisions are open.
    differs : why nothing may be decided from its state; None: it may.
    is_broken : whether that is because the ledger cannot be folded.
    rounded : how often it went on from a snapshot of others that was rounded otherwise.
    aside : what has a log learned beside the state, and then calls `take_log`; None: nobody.
    """

    aside: Callable[[LogLearning], None] | None = None
    life: Life
    position: int
    time: float  # of the newest record, as far as is known
    _refused: dict[int, ContinuarmError]  # by position: what was folded and changed nothing

    def __init__(self, store: Store, name: str, *, every: int = SNAPSHOT_EVERY) -> None:
        self.store, self.name, self.every = store, name, checks.whole("every", every, 1)
        self.differs: str | None = None
        self.is_broken, self.rounded = False, 0
        self._again = 0.0  # when a broken ledger may be tried again
        self._made = deque[tuple[Snapshot, Record]]()  # while folding, and not kept yet
        self._truth: tuple[Life, int] | None = None  # to go on from
        self._learning: LogLearning | None = None
        self._load()

    def _load(self) -> None:
        """Begin with the newest snapshot that can be read, or at worst with the whole ledger."""
        beginning = pinned(self.name, began(self.store, self.name))
        self.life, self.position = self._newest(beginning)
        self.time = self.store.experiment(self.name).time
        self._last: Record | None = None  # that was folded
        self._refused = {}
        self.differs, self.is_broken, self._truth = None, False, None
        self._is_whole = True

    def _newest(self, beginning: Began) -> tuple[Life, int]:
        for snapshot in newest_kept(self.store, self.name, beginning.position):
            first = snapshot.position == beginning.position
            fits = not first or snapshot.digest == beginning.digest
            life = readable_life(snapshot) if fits else None
            if life is not None:
                return life, snapshot.position
            LOG.warning(
                "a snapshot must be as it was kept, but that of %r at %d is not: the one before "
                "is taken",
                self.name,
                snapshot.position,
            )
        anew = Refold(self.store, self.name)
        return anew.life, anew.fold_news(beginning.position)

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
        return self.fold_read(self.read_next(most)) == most

    def read_next(self, most: int = MOST_READ) -> list[Record]:
        """The record that was folded last, if it is still there, and those after it."""
        try:
            return self.store.read(self.name, self.position - 1, most + 1)
        except DamagedError as error:
            raise self._broken(error) from error

    def fold_read(self, records: list[Record]) -> int:
        """Fold what `read_next` has read, as far as it is not folded by now; how many were."""
        self._mend()
        try:
            new = self._new(records)
            if new is None:  # what was folded is in the ledger no more
                self._load()
                new = self._new(self.read_next()) or []
            for folded, record in enumerate(new):
                if self._waits_for(record):
                    return folded
                self._fold(record)
            return len(new)
        except Exception as error:
            raise self._broken(error) from error

    def _new(self, records: list[Record]) -> list[Record] | None:
        """Those of the records that are to be folded; None: they do not follow what was folded.

        That was erased, or a database has failed over to a copy that lacks it.
        """
        if not records or records[0].position > self.position:
            erased = (
                self._last is None and self.position == self.store.experiment(self.name).begins
            )
            return records if erased else None
        known = self.position - records[0].position
        if known < len(records) and self._last is not None:
            if not is_same(records[known], self._last):
                return None
        return records[known + 1 :]

    def _broken(self, error: Exception) -> Exception:
        """Decide nothing from a ledger that cannot be folded, nor read it again all the time."""
        if isinstance(error, UnavailableError) or self.differs is not None:
            return error  # the store is away, or another version has taken over
        self.is_broken, self._again = True, time.monotonic() + AGAIN
        words = " ".join(f"{type(error).__name__}: {error}".split())
        self.differs = (
            f"a ledger must be one that can be folded, but that of {self.name!r} cannot be after "
            f"position {self.position}: {words}"
        )
        return StoreError(self.differs)

    def _mend(self) -> None:
        if self.is_broken and time.monotonic() < self._again:
            raise StoreError(self.differs)
        if self.is_broken or not self._is_whole:  # a signal came between record and position
            self._load()
        elif self._truth is not None:
            self._take_over(*self._truth)

    def _take_over(self, life: Life, position: int) -> None:
        """Go on from a snapshot of others; should that fail, the next one comes soon."""
        self._truth = None
        if fold_until(self.store, self.name, life, position, self.position) == self.position:
            self.life = life

    def fold_own(self, written: Iterable[tuple[Outcome, Event | None]]) -> None:
        """Fold what this process has just appended, and what others appended before it.

        It knows the events, and need not read them again.
        """
        self._mend()
        for (refused, record), event in written:
            if refused is None and record is not None and not self.is_learning:
                self._fold_up_to(record, event)

    def _fold_up_to(self, record: Record, event: Event | None) -> None:
        if self.position >= record.position:  # it is folded, or the ledger was cut back
            self.fold_some()
        while (missing := record.position - 1 - self.position) > 0 and not self.is_learning:
            folded = self.fold_read(self.read_next(min(MOST_READ, missing)))
            if not folded and not self.is_learning:
                raise self._broken(StoreError(f"{missing} records must follow, but are not there"))
        if self.position < record.position and not self._waits_for(record, event):
            try:
                self._fold(record, event)
            except Exception as error:
                raise self._broken(error) from error

    @property
    def is_learning(self) -> bool:
        """Whether a log is learned beside the state: nothing is folded meanwhile."""
        return self._learning is not None

    def _waits_for(self, record: Record, event: Event | None = None) -> bool:
        """Whether a log is learned beside the state, from this record on perhaps."""
        if not self.is_learning and self.aside and record.kind == LEARNED_FROM_LOG:
            self._learning = LogLearning(self.life, record, event)
            self.aside(self._learning)
        return self.is_learning

    def take_log(self, learning: LogLearning) -> None:
        """Fold the log that was learned, unless the state has become another one meanwhile."""
        self._learning = None
        if learning.life is self.life and self.position == learning.record.position - 1:
            self.life.prepared = learning.learned
            try:
                self._fold(learning.record, learning.event)
            except Exception as error:
                raise self._broken(error) from error

    def _fold(self, record: Record, event: Event | None = None) -> None:
        if record.position != self.position + 1:
            raise StoreError(
                f"record {self.position + 1} of {self.name!r} must follow, but got record "
                f"{record.position}"
            )
        self._is_whole = False
        if record.kind == BEGAN:
            self._begin_again(record)
        refused = fold(self.life, record, event)
        if refused is not None:
            self._note(record.position, refused)
        self.position, self._last, self._is_whole = record.position, record, True
        self.time = record.time
        if self.position % self.every == 0 and self._is_worth_a_snapshot:
            self._made.append((self.snapshot(), record))

    def _note(self, position: int, refused: ContinuarmError) -> None:
        self._refused[position] = refused
        if len(self._refused) > MOST_REFUSED:
            del self._refused[min(self._refused)]

    def refused(self, position: int) -> ContinuarmError | None:
        """Why a record that was folded here changed nothing; None: it did, as far as is known."""
        return self._refused.get(position)

    @property
    def has_snapshots(self) -> bool:
        """Whether snapshots were made that are not kept yet."""
        return bool(self._made)

    def keep_snapshots(self) -> None:
        """Keep the snapshots that were made while folding, or compare them with those kept.

        It needs no gate: where another state is the truth, that is taken over by the next fold.
        """
        while True:
            try:
                own, record = self._made.popleft()
            except IndexError:  # two threads may keep them at once
                return
            if self.differs is not None or not self._is_there(record):
                continue
            try:
                kept = self.store.keep(self.name, own)
            except BaseException:
                if not self._made:  # it is kept with the next try; there need not be many
                    self._made.appendleft((own, record))
                raise
            self._compare(own, kept)

    def _is_there(self, record: Record) -> bool:
        """Whether a record is still in the ledger, and no failover has lost it."""
        found = self.store.read(self.name, record.position - 1, 1)
        return bool(found) and is_same(found[0], record)

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
        """Whether this replica has the state that was kept first; it goes on from that one."""
        if own.digest == kept.digest:
            return
        life = readable_life(kept)
        if life is None:  # no truth can be read there
            LOG.warning("a snapshot of %r at %d cannot be read", self.name, kept.position)
            return
        found = between_states(own.state, snapshot_of(life, kept.position).state)
        if not found.is_rounding or (found.where and life.model.counts_asking):
            self.differs = self._in_words(found, kept.position)
        elif found.where:
            self.rounded += 1
            LOG.warning(
                "%r at %d differs by rounding, %s: it goes on from the snapshot that was kept",
                self.name,
                kept.position,
                found,
            )
            position = fold_until(self.store, self.name, life, kept.position, self.position)
            self._truth = life, position

    def _in_words(self, found: Difference, position: int) -> str:
        return (
            f"all servers must come to one state, but that of {self.name!r} at position "
            f"{position} differs from the snapshot that was kept by {found}: restart this server; "
            f"if it differs again, run the release of the others here, and see what "
            f"`continuarm replay {self.name}` says"
        )
