"""Events of a life as entries of a ledger, and back.

The ledger gives the time, so an entry has none. The number of a decision is 32 hexadecimal digits:
who decided, and the how-manieth decision that was.
"""

import json
from typing import Any

from continuarm.errors import StoreError
from continuarm.live import events
from continuarm.live.events import Asked, Event, Forgotten, Told
from continuarm.store.records import Entry, Record

__all__ = ["BEGAN", "EXPIRED", "TIME_PASSED", "entry_of", "event_of", "id_of", "text_of"]

BEGAN = "began"  # a snapshot stands for all before it; only its version folds what comes after
EXPIRED = "expired"  # a decision is over its time to live
TIME_PASSED = "time-passed"  # payoffs that were held until now are learned


def text_of(id_: int) -> str:
    """The number of a decision in a ledger."""
    return f"{id_:032x}"


def id_of(text: str) -> int:
    """The number that `text_of` wrote."""
    return int(text, 16)


def entry_of(event: Event, key: str | None = None, **more: Any) -> Entry:
    """An event as an entry; `more` is noted with it and changes nothing."""
    plain = events.to_plain(event)
    kind = plain.pop("event")
    plain.pop("at", None)
    opens = closes = None
    if isinstance(event, Asked):
        opens = text_of(plain.pop("id"))
    elif isinstance(event, Told | Forgotten):
        closes = text_of(plain.pop("id"))
    return Entry(kind, json.dumps(plain | more), opens, closes, key)


def event_of(record: Record, at: float) -> Event:
    """The event of a record; what is noted beside it is left out."""
    try:
        plain: dict[str, Any] = json.loads(record.body)
        plain["event"], plain["at"] = record.kind, at
        named = record.opens or record.closes
        if named is not None:
            plain["id"] = id_of(named)
        fields = {"event", *events.KINDS[record.kind]._fields}
        return events.from_plain({name: plain[name] for name in fields})
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"a ledger must hold events, but record {record.position} is {record!r}: {error!r}"
        ) from None
