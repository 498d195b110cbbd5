"""A clock that was wrong: times of a ledger never go back, so afterwards they stand still.

Then nothing grows older, and nothing expires, until the clock has caught up. `set_clock` writes an
event that says by how much the times of records are ahead. They go on from there, and ages and
dates are counted without what they are ahead.
"""

import json
from collections.abc import Callable
from typing import NamedTuple

from continuarm.ledger.entries import CLOCK_SET, offset_of, read_body
from continuarm.store.protocol import Store
from continuarm.store.records import Entry, Experiment, Record

__all__ = ["FAR", "ahead", "dates", "set_clock"]

FAR = 60.0  # seconds between a ledger and its clock that are worth an alarm


class _Set(NamedTuple):
    """A clock was set: from a position on, by an offset; at this date, by the clock."""

    position: int
    offset: float
    date: float


def ahead(experiment: Experiment, clock: float) -> float:
    """By how many seconds the newest record is later than a record of now would be."""
    return max(experiment.time - experiment.clock_offset - clock, 0.0)


def set_clock(store: Store, name: str) -> float:
    """Let an experiment's time go on with the store's clock; by how much it was ahead."""
    experiment, clock = store.experiment(name), store.clock()
    found = ahead(experiment, clock)
    if found > 0.0:
        offset = experiment.time - clock
        earlier = [list(one) for one in _settings(store, name)]
        body = json.dumps({"offset": offset, "clock": clock, "earlier": earlier})
        store.set_clock(name, Entry(CLOCK_SET, body), offset)
    return found


def dates(store: Store, name: str) -> Callable[[Record], float]:
    """When records were really appended, as far as is known; it never goes back.

    What was appended before a clock was set was appended before that date.
    """
    settings = _settings(store, name)
    first = 0.0 if settings else store.experiment(name).clock_offset  # that event may be erased

    def date(record: Record) -> float:
        offset, latest = first, [record.time]
        for one in settings:
            if one.position <= record.position:
                offset = one.offset
            else:
                latest.append(one.date + offset)
        return min(latest) - offset

    return date


def _settings(store: Store, name: str) -> list[_Set]:
    """When the clock of an experiment was set, the first time first."""
    record = store.latest(name, CLOCK_SET)
    if record is None:
        return []
    plain = read_body(record.body)
    earlier = [_Set(int(p), float(o), float(d)) for p, o, d in plain["earlier"]]
    return [*earlier, _Set(record.position, offset_of(record), float(plain["clock"]))]
