"""Which entries of a group are appended, and where: one rule for every store."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from continuarm.store.records import (
    ASKED_BEFORE,
    CLOSED_BEFORE,
    KEY_TAKEN,
    MOVED_ON,
    NEVER_ASKED,
    Entry,
    Outcome,
    Record,
)

__all__ = ["Known", "settle"]


class Known(NamedTuple):
    """The records of a ledger that the entries of a group may meet.

    opened : for a decision that a group closes, None may stand for its record.
    """

    opened: dict[str, Record | None]
    closed: dict[str, Record]
    keyed: dict[str, Record]

    @classmethod
    def of(cls, records: Iterable[Record]) -> Self:
        """By what they open, what they close, and their keys."""
        known = cls({}, {}, {})
        for record in records:
            known.add(record)
        return known

    def add(self, record: Record) -> None:
        """One more."""
        *_, opens, closes, key = record
        if opens is not None:
            self.opened[opens] = record
        if closes is not None:
            self.closed[closes] = record
        if key is not None:
            self.keyed[key] = record

    def conflict(self, entry: Entry) -> Outcome | None:
        """Why an entry cannot be appended to these, if it cannot."""
        if entry.key in self.keyed:
            return Outcome(KEY_TAKEN, self.keyed[str(entry.key)])
        if entry.opens in self.opened:
            return Outcome(ASKED_BEFORE, self.opened[str(entry.opens)])
        if entry.closes is None:
            return None
        if entry.closes in self.closed:  # what opened it may be erased
            return Outcome(CLOSED_BEFORE, self.closed[entry.closes])
        return Outcome(NEVER_ASKED, None) if entry.closes not in self.opened else None


def settle(
    group: Sequence[Entry], head: int, time: float, known: Known, onto: int | None
) -> list[Outcome]:
    """The outcome of each entry, in order; those appended are at `head + 1`, `head + 2`, …

    onto : the head that the group is for, if it is for one alone.
    """
    if onto is not None and onto != head:
        return [Outcome(MOVED_ON, None)] * len(group)
    outcomes = []
    for entry in group:
        outcome = known.conflict(entry)
        if outcome is None:
            head += 1
            record = Record(head, time, *entry)
            outcome = Outcome(None, record)
            known.add(record)
        outcomes.append(outcome)
    return outcomes
