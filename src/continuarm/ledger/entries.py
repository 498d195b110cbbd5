"""Events of a life as entries of a ledger, and back.

The ledger gives the time, so an entry has none. The number of a decision is 32 hexadecimal digits:
random ones of the process that decided, and the n-th decision of it.
"""

import json
import math
import re
from contextlib import suppress
from typing import Any

import numpy as np

from continuarm.errors import StoreError, UnknownDecisionError
from continuarm.live import events
from continuarm.live.events import Asked, Event, Forgotten, Told
from continuarm.store.records import Entry, Record

try:
    import msgspec
except ImportError:  # it is quicker, and writes and reads the same numbers
    msgspec = None  # type: ignore[assignment]
    _lean: Any = None
else:
    _lean = msgspec.json.Decoder(
        msgspec.defstruct(
            "Lean",
            [("context", list[float]), ("value", list[float]), ("role", str), ("bin", int),
             ("start", list[float])],
        )
    )  # fmt: skip

__all__ = [
    "BEGAN",
    "CLOCK_SET",
    "EXPIRED",
    "TIME_PASSED",
    "entry_of",
    "event_of",
    "id_of",
    "lean_event_of",
    "number_of",
    "offset_of",
    "read_body",
    "text_of",
]

ASKED = events.NAMES[Asked]
BEGAN = "began"  # a snapshot stands for all before it; only its version folds what comes after
CLOCK_SET = "clock-set"  # times of records are ahead of the clock; ages are not
EXPIRED = "expired"  # a decision is over its time to live
TIME_PASSED = "time-passed"  # payoffs that were held until now are learned


ELSEWHERE = ("id", "at")  # fields of an event that stand beside its body


def text_of(id_: int) -> str:
    """The number of a decision in a ledger."""
    return f"{id_:032x}"


def id_of(text: str) -> int:
    """The number that `text_of` wrote."""
    return int(text, 16)


def number_of(given: Any) -> int:
    """The number of a decision that a caller has given, as a number or as `text_of` wrote it."""
    if isinstance(given, str) and re.fullmatch("[0-9a-f]{32}", given):
        return id_of(given)
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if not whole or not 0 <= given < 2**128:
        raise UnknownDecisionError(
            "a Decision or its number is needed, perhaps as 32 hexadecimal digits, "
            f"but got {given!r}"
        )
    return int(given)


def entry_of(event: Event, key: str | None = None, **more: Any) -> Entry:
    """An event as an entry; `more` is noted with it and changes nothing."""
    kind, closes = type(event), None
    if isinstance(event, Asked):  # as often as all others: written out, because that is quicker
        id_, context, value, _, role, bin_, centre, start, limits, why, view, segment = event
        more |= {
            "context": context.tolist(),
            "value": value.tolist(),
            "role": role,
            "bin": bin_,
            "centre": None if centre is None else centre.tolist(),
            "start": start.tolist(),
            "limits": None if limits is None else limits.tolist(),
            "why": why,
            "view": None if view is None else view.tolist(),
        }
        if segment is not None:
            more["segment"] = segment
        return Entry(events.NAMES[kind], _written(more), text_of(id_), None, key)
    if isinstance(event, Told | Forgotten):
        closes = text_of(event.id)
    for name, given in zip(kind._fields, event, strict=True):
        if name not in ELSEWHERE:
            more[name] = given.tolist() if type(given) is np.ndarray else given
    return Entry(events.NAMES[kind], _written(more), None, closes, key)


def _written(plain: dict[str, Any]) -> str:
    """A body as text."""
    if msgspec is not None:
        text: str = msgspec.json.encode(plain).decode()
        if text.count("null") == list(plain.values()).count(None):
            return text  # no infinite number is in it, which would be null, too
    return json.dumps(plain)


def read_body(text: str) -> dict[str, Any]:
    """A body as plain values."""
    if msgspec is not None:
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(text)  # type: ignore[no-any-return]
    return json.loads(text)  # type: ignore[no-any-return]


def offset_of(record: Record) -> float:
    """By how many seconds the times of records are ahead of the clock, from this one on."""
    try:
        offset = float(read_body(record.body)["offset"])
    except (KeyError, TypeError, ValueError):
        offset = math.nan
    if not 0.0 <= offset < math.inf:
        raise StoreError(f"a clock is set by a number of seconds, but record {record.position} is "
                         f"{record.body!r}")  # fmt: skip
    return offset


def lean_event_of(record: Record, at: float) -> Event:
    """As `event_of`, but of a decision only what a state keeps, and not what explains it."""
    if _lean is not None and record.kind == ASKED and record.opens is not None:
        with suppress(msgspec.DecodeError, ValueError):  # `event_of` says what is wrong, if it is
            plain, id_ = _lean.decode(record.body), id_of(record.opens)
            context, value, start = map(np.array, (plain.context, plain.value, plain.start))
            return Asked(id_, context, value, at, plain.role, plain.bin, None, start, None)
    return event_of(record, at)


def event_of(record: Record, at: float) -> Event:
    """The event of a record; what is noted beside it is left out."""
    try:
        plain: dict[str, Any] = read_body(record.body)
        plain["event"], plain["at"] = record.kind, at
        named = record.opens or record.closes
        if named is not None:
            plain["id"] = id_of(named)
        known = {"event", *events.KINDS[record.kind]._fields}
        return events.from_plain({name: plain[name] for name in plain.keys() & known})
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"a ledger must hold events, but record {record.position}, {record.kind!r}, is none: "
            f"{error!r}"
        ) from None
