"""Replaying: a ledger folded again, each decision made again, each snapshot compared.

A decision was made from the state that its process had folded, which may be older than its own
place in the ledger. So records are read ahead, as far as the furthest process was behind.
"""

import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from continuarm.errors import ContinuarmError
from continuarm.ledger.beginnings import Began, began, pinned
from continuarm.ledger.difference import NONE, Difference, between_numbers, between_states
from continuarm.ledger.entries import entry_of, event_of, read_body
from continuarm.ledger.fold import fold
from continuarm.ledger.snapshots import is_whole, newest_kept, readable_life, snapshot_of
from continuarm.live.events import Asked
from continuarm.live.life import Life
from continuarm.live.limits import Within
from continuarm.store.protocol import Store
from continuarm.store.records import Record

__all__ = ["Replayed", "replay"]

ASKED = "asked"
IN_UNITS = ("value", "centre", "start", "limits")  # of a decision


class Replayed(NamedTuple):
    """What was done again, up to the first difference.

    begins : the position of the snapshot that it began with.
    events, decisions, snapshots : how many are the same, up to rounding.
    earlier : decisions that were made from states of before the beginning, or of records that a
        failover has lost, which are not made again.
    rounding : the largest difference that is one of rounding, and where; 0 within one build.
    difference : the first one: where, and what differs; None: there is none.
    """

    begins: int
    events: int
    decisions: int
    snapshots: int
    earlier: int
    rounding: Difference
    difference: str | None


class _Difference(Exception):
    """Something is not as it was."""


def replay(
    store: Store,
    name: str,
    progress: Callable[[int], object] = lambda events: None,
    *,
    decide: bool = True,
) -> Replayed:
    """Fold a ledger again from its newest beginning, and compare with what was.

    Where a snapshot was rounded otherwise, it goes on from there, as servers do.

    progress : is called with how many events were looked at; each is looked at twice.
    decide : whether decisions are made again; else the events are folded, as servers do.
    """
    beginning = began(store, name)
    pinned(name, beginning)
    return _Replay(store, name, beginning, progress, decide).run()


class _Replay:
    def __init__(
        self,
        store: Store,
        name: str,
        beginning: Began,
        progress: Callable[[int], object],
        decide: bool,
    ) -> None:
        self.store, self.name, self.beginning = store, name, beginning
        self.progress, self.decide = progress, decide
        self.head = store.experiment(name).head
        self.position = beginning.position
        self.decisions = self.compared = self.earlier = 0
        self.rounding = NONE
        self.kept = {
            snapshot.position: snapshot
            for snapshot in newest_kept(store, name, beginning.position, self.head)
        }
        self.pending: defaultdict[int, list[Record]] = defaultdict(list)  # by what was folded

    def run(self) -> Replayed:
        difference = None
        try:
            self.life = self._first()
            self._compare()
            self._fold_all()
        except _Difference as found:
            difference = str(found)
        events = self.position - self.beginning.position
        counts = self.decisions, self.compared, self.earlier
        return Replayed(self.beginning.position, events, *counts, self.rounding, difference)

    def _first(self) -> Life:
        first, what = self.kept.get(self.position), "of the beginning is gone"
        if first is not None:
            fits, life = first.digest == self.beginning.digest, readable_life(first)
            if fits and life is not None:
                return life
            what = "is damaged" if fits else "is not the beginning's"
        raise _Difference(
            f"position {self.position}: the snapshot {what}: restore a backup of the store"
        )

    def _fold_all(self) -> None:
        ahead, furthest = self._records(), self._furthest()
        waiting: deque[Record] = deque()
        while self.position < self.head:
            while len(waiting) <= furthest and (record := next(ahead, None)) is not None:
                waiting.append(record)
                self._expect(record)
            self._decide_all()
            self._fold(waiting.popleft())
            self._compare()
            self.progress(1)
        self._decide_all()

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
            if self.decide and record.kind == ASKED and self._is_known(record):
                furthest = max(furthest, record.position - _folded(record))
            self.progress(1)
        return furthest

    def _expect(self, record: Record) -> None:
        """Make a decision again when its state is reached."""
        if not self.decide:
            return
        if record.kind == ASKED and not self._is_known(record):
            self.earlier += 1
        elif record.kind == ASKED:
            self.pending[_folded(record)].append(record)

    def _is_known(self, record: Record) -> bool:
        """Whether this ledger has the state that a decision was made from.

        It may be of before the beginning, or of records that a failover has lost.
        """
        return self.beginning.since <= _folded(record) < record.position

    def _decide_all(self) -> None:
        """Make the decisions again that were made from this state."""
        for record in self.pending.pop(self.position, ()):
            again, was = _decided(self.life, record), read_body(record.body)
            found = max(self._between(name, again, was) for name in again.keys() | was.keys())
            if self._counts(found):
                names = sorted(k for k in again | was if again.get(k) != was.get(k))
                both = (f"{k} was {was.get(k)}, is {again.get(k)}" for k in names)
                raise _Difference(
                    f"position {record.position}: decision {record.opens}, made at "
                    f"{self.position}: {'; '.join(both)}"
                )
            self._note(found, record.position)
            self.decisions += 1

    def _between(self, name: str, again: dict[str, Any], was: dict[str, Any]) -> Difference:
        """How far a field of a decision is from what it was."""
        one, other = again.get(name), was.get(name)
        if one == other:
            return NONE
        if name in (*IN_UNITS, "view") and one is not None and other is not None:
            a, b = np.array(one, np.float64), np.array(other, np.float64)
            if a.shape == b.shape:
                scale = None if name == "view" else self.life.beginning.decision.span
                return between_numbers(a, b, name, scale)
        return Difference(math.inf, name)

    def _counts(self, found: Difference) -> bool:
        """Whether a difference is more than rounding, or may not be even that."""
        strict = self.life.model.counts_asking
        return not found.is_rounding or (strict and found != NONE)

    def _note(self, found: Difference, position: int) -> None:
        if found.where:
            there = Difference(found.relative, f"position {position:,}, {found.where}")
            self.rounding = max(self.rounding, there)

    def _fold(self, record: Record) -> None:
        try:
            fold(self.life, record)
        except (ContinuarmError, LookupError) as error:
            raise _Difference(
                f"position {record.position}: it cannot have happened: {error}"
            ) from None
        self.position = record.position

    def _compare(self) -> None:
        """Compare with the snapshot that was kept here, and go on from that one."""
        kept = self.kept.pop(self.position, None)
        if kept is None:
            return
        own = snapshot_of(self.life, self.position)
        if own.state != kept.state:
            life = readable_life(kept)
            if life is None:
                what = "cannot be read" if is_whole(kept) else "is damaged"
                raise _Difference(f"position {kept.position}: the snapshot {what}")
            found = between_states(own.state, snapshot_of(life, self.position).state)
            if self._counts(found):
                raise _Difference(
                    f"position {self.position}: the state was {kept.digest[:12]}, is "
                    f"{own.digest[:12]}, which differs by {found}"
                )
            self._note(found, self.position)
            self.life = life
        self.compared += 1


def _folded(record: Record) -> int:
    """The position that was folded when a decision was made."""
    try:
        folded = read_body(record.body)["folded"]
    except (KeyError, TypeError, ValueError):
        folded = None
    if not isinstance(folded, int) or folded < 0:
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
