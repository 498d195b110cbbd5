"""Replaying: a ledger folded again, each decision made again, each snapshot compared.

A decision was made from the state that its process had folded, which may be older than its own
place in the ledger. So records are read ahead, as far as the furthest process was behind.
"""

import hashlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from continuarm.errors import ContinuarmError
from continuarm.ledger.beginnings import Began, began, life_of, pinned, snapshot_of
from continuarm.ledger.entries import entry_of, event_of, read_body
from continuarm.ledger.fold import fold
from continuarm.live.events import Asked
from continuarm.live.life import Life
from continuarm.live.limits import Within
from continuarm.store.protocol import Store
from continuarm.store.records import Record, Snapshot

__all__ = ["Replayed", "replay"]

ASKED = "asked"


class Replayed(NamedTuple):
    """What was done again, up to the first difference.

    begins : the position of the snapshot that it began with.
    events, decisions, snapshots : how many are the same.
    earlier : decisions that were made from states before the beginning, which are not made again.
    difference : the first one: where, and what differs; None: there is none.
    """

    begins: int
    events: int
    decisions: int
    snapshots: int
    earlier: int
    difference: str | None


class _Difference(Exception):
    """Something is not as it was."""


def replay(
    store: Store, name: str, progress: Callable[[int], object] = lambda events: None
) -> Replayed:
    """Fold a ledger again from its newest beginning, and compare with what was.

    progress : is called with how many events were looked at; each is looked at twice.
    """
    beginning = began(store, name)
    pinned(name, beginning)
    return _Replay(store, name, beginning, progress).run()


class _Replay:
    def __init__(
        self, store: Store, name: str, beginning: Began, progress: Callable[[int], object]
    ) -> None:
        self.store, self.name, self.beginning = store, name, beginning
        self.progress = progress
        self.head = store.experiment(name).head
        self.position = beginning.position
        self.decisions = self.compared = self.earlier = 0
        self.kept = {
            snapshot.position: snapshot
            for snapshot in store.snapshots(name)
            if snapshot.version == beginning.version
            and beginning.position <= snapshot.position <= self.head
        }
        self.pending: defaultdict[int, list[Record]] = defaultdict(list)  # by what was folded

    def run(self) -> Replayed:
        difference = None
        try:
            life = self._first()
            self._fold_all(life)
        except _Difference as found:
            difference = str(found)
        events = self.position - self.beginning.position
        counts = self.decisions, self.compared, self.earlier
        return Replayed(self.beginning.position, events, *counts, difference)

    def _first(self) -> Life:
        first = self.kept.get(self.position)
        if first is None:
            raise _Difference(f"position {self.position}: the snapshot of the beginning is gone")
        if first.digest != self.beginning.digest:
            raise _Difference(f"position {self.position}: the snapshot is not the beginning's")
        life = life_of(first)
        self._compare(life)
        return life

    def _fold_all(self, life: Life) -> None:
        ahead, furthest = self._records(), self._furthest()
        waiting: deque[Record] = deque()
        while self.position < self.head:
            while len(waiting) <= furthest and (record := next(ahead, None)) is not None:
                waiting.append(record)
                self._expect(record)
            self._decide_all(life)
            self._fold(life, waiting.popleft())
            self._compare(life)
            self.progress(1)
        self._decide_all(life)

    def _records(self) -> Iterator[Record]:
        """The records after the beginning, up to the head of when this began."""
        position = self.position
        while position < self.head:
            for record in self.store.read(self.name, position)[: self.head - position]:
                if record.position != position + 1:
                    raise _Difference(f"position {position + 1}: the record is gone")
                yield record
                position = record.position

    def _furthest(self) -> int:
        """How many records lie between a decision and what its process had folded, at most."""
        furthest = 0
        for record in self._records():
            if record.kind == ASKED and _folded(record) >= self.beginning.since:
                furthest = max(furthest, record.position - _folded(record))
            self.progress(1)
        return furthest

    def _expect(self, record: Record) -> None:
        """Make a decision again when its state is reached."""
        if record.kind == ASKED and _folded(record) < self.beginning.since:
            self.earlier += 1
        elif record.kind == ASKED:
            self.pending[_folded(record)].append(record)

    def _decide_all(self, life: Life) -> None:
        """Make the decisions again that were made from this state."""
        for record in self.pending.pop(self.position, ()):
            again, was = _decided(life, record), read_body(record.body)
            if again != was:
                names = sorted(k for k in again | was if again.get(k) != was.get(k))
                both = (f"{k} was {was.get(k)}, is {again.get(k)}" for k in names)
                raise _Difference(
                    f"position {record.position}: decision {record.opens}, made at "
                    f"{self.position}: {'; '.join(both)}"
                )
            self.decisions += 1

    def _fold(self, life: Life, record: Record) -> None:
        try:
            fold(life, record)
        except (ContinuarmError, LookupError) as error:
            raise _Difference(
                f"position {record.position}: it cannot have happened: {error}"
            ) from None
        self.position = record.position

    def _compare(self, life: Life) -> None:
        kept = self.kept.pop(self.position, None)
        if kept is None:
            return
        _check_whole(kept)
        own = snapshot_of(life, self.position)
        if own.state != kept.state:
            raise _Difference(
                f"position {self.position}: the state was {kept.digest[:12]}, is {own.digest[:12]}"
            )
        self.compared += 1


def _check_whole(kept: Snapshot) -> None:
    if hashlib.sha256(kept.state).hexdigest() != kept.digest:
        raise _Difference(f"position {kept.position}: the snapshot is damaged")


def _folded(record: Record) -> int:
    """The position that was folded when a decision was made."""
    try:
        folded = read_body(record.body)["folded"]
    except (KeyError, TypeError, ValueError):
        folded = None
    if not isinstance(folded, int) or not 0 <= folded < record.position:
        raise _Difference(f"position {record.position}: a decision must say what was folded")
    return folded


def _decided(life: Life, record: Record) -> dict[str, Any]:
    """A decision, made again from its context, limits and draws, as a ledger has it."""
    try:
        event, noted = event_of(record, 0.0), read_body(record.body)
        assert isinstance(event, Asked)
        limits = noted["within"]
        within = None if limits is None else Within(*np.array(limits, np.float64))
        again, _ = life.decide(event.context, 0.0, within, draw=event.id)
    except (ContinuarmError, LookupError, TypeError, ValueError) as error:
        raise _Difference(
            f"position {record.position}: it cannot be decided again: {error}"
        ) from None
    more = {"folded": noted["folded"], "within": limits}
    found: dict[str, Any] = read_body(entry_of(again, **more).body)
    return found
