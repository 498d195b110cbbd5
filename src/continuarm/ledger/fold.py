"""The fold: what the records of a ledger, in their order, do to a life.

A decision or a payoff was checked when it was appended. Nothing here asks whether it should have
happened: a decision counts although its process had not yet heard of a pause. What steers the
policy may have been overtaken, as a freeze of a bin that has split since: then nothing happens, in
every process alike, and the fold says why.
"""

from collections.abc import Callable

from continuarm.core.state import SERIALS
from continuarm.errors import ContinuarmError
from continuarm.ledger.entries import (
    BEGAN,
    CLOCK_SET,
    EXPIRED,
    TIME_PASSED,
    event_of,
    id_of,
    lean_event_of,
    offset_of,
)
from continuarm.live import checked_events
from continuarm.live.events import Asked, Event, Forgotten, SegmentFrozen, Told
from continuarm.live.life import Life
from continuarm.store.protocol import MOST_READ, Store
from continuarm.store.records import Record

__all__ = ["fold", "fold_until"]

new = tuple.__new__  # of a NamedTuple: twice as fast


def fold(life: Life, record: Record, event: Event | None = None) -> ContinuarmError | None:
    """Let a record happen; `event` is what it says, where that is known.

    It answers why a record that steers the policy changed nothing, if so.
    """
    refused: ContinuarmError | None = None
    timed = life.beginning.waiting.ttl_seconds is not None
    at = record.time - life.clock_offset if timed else 0.0
    if record.kind == CLOCK_SET:
        offset = offset_of(record)
        at = record.time - offset if timed else 0.0
        life.set_clock(at, offset)
    elif record.kind == EXPIRED:
        life.expire(id_of(str(record.closes)))
    elif record.kind not in (TIME_PASSED, BEGAN):
        event = _read(life, record, at) if event is None else event
        if isinstance(event, Asked):
            event = event if event.at == at else new(Asked, (*event[:3], at, *event[4:]))
            life.ask(_of_this_life(life, event), life.seat_of(event))
        elif isinstance(event, Told | Forgotten):
            life.apply(event)
        else:
            if isinstance(event, SegmentFrozen):
                event = event._replace(at=at)
            try:
                checked_events.check(life, event)
                life.apply(event)
            except ContinuarmError as error:
                refused = error.with_traceback(None)
    life.now = max(life.now, at)
    _release(life)
    life.count_closed()
    return refused


def fold_until(
    store: Store,
    name: str,
    life: Life,
    position: int,
    until: int | None = None,
    folding: Callable[[Life, Record], object] = fold,
) -> int:
    """Fold the records after a position, up to another or to the newest; the last one's."""
    while until is None or position < until:
        most = MOST_READ if until is None else min(MOST_READ, until - position)
        records = store.read(name, position, most)
        if not records:
            return position
        for record in records:
            folding(life, record)
            position = record.position
    return position


def _of_this_life(life: Life, event: Asked) -> Asked:
    """A decision; a bin that was made by another version's code, and not here, counts as none."""
    if event.bin and event.bin > life.model.state.counts[SERIALS]:
        return event._replace(bin=0)
    return event


def _read(life: Life, record: Record, at: float) -> Event:
    """The event of a record, or as much of it as happens here."""
    needs_all = life.model.counts_asking or life.unheard is not None
    return event_of(record, at) if needs_all else lean_event_of(record, at)


def _release(life: Life) -> None:
    """Learn the payoffs that were held until their time is over, the oldest first.

    One that is silent is waited for: an entry says that it has expired.
    """
    opened = life.open
    while opened.is_due(life.now) and opened.oldest_due() in opened.held:
        life.learn_held(opened.oldest_due())
