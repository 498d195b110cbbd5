"""What can happen in a policy's life. A policy's state is a function of its events, in order.

Times and numbers of decisions are in the events. Contexts and decisions are in the units of their
boxes. An event can be written as plain values and read back, exactly.
"""

from typing import Any, NamedTuple

import numpy as np

from continuarm.core.compiling import Array
from continuarm.errors import InputError

__all__ = [
    "Asked",
    "Event",
    "Forgotten",
    "Frozen",
    "LearnedFromLog",
    "OpenForgotten",
    "OptionsChanged",
    "Paused",
    "ReferenceRenewed",
    "Resumed",
    "SegmentFrozen",
    "SegmentUnfrozen",
    "TimePassed",
    "Told",
    "Unfrozen",
    "from_plain",
    "to_plain",
]

EXPLORED, BEST, INCUMBENTS = "explored", "best", "incumbent"
ROLES = (EXPLORED, BEST, INCUMBENTS)
# Why a decision was made: as the learner's own rule has it; near the start, because little was
# known; as the peak of a surface that was drawn; evenly within reach; because limits left nothing
# to learn; because its bin or a segment is frozen; for the share of the incumbent; because of a
# pause.
OWN_RULE, EARLY, DRAWN, UNIFORM = "own rule", "early", "drawn", "uniform"
LIMITED, WHILE_FROZEN, SHARED, WHILE_PAUSED = "limits", "frozen", "share", "paused"
WHYS = (OWN_RULE, EARLY, DRAWN, UNIFORM, LIMITED, WHILE_FROZEN, SHARED, WHILE_PAUSED)


class Asked(NamedTuple):
    """A decision was handed out.

    id : its number, which is that of its draw; no other decision of the policy has it.
    value : what was decided.
    at : when, in seconds; 0 where no clock is needed.
    role : `"explored"`; `"best"` where limits left nothing to learn, or the bin or a segment was
        frozen; or `"incumbent"`.
    bin : the bin that answered; 0: one that was not made yet.
    centre : the best decision known at that moment; None where nobody listened.
    start : what the incumbent would have done.
    limits : the lowest and highest values that were allowed; None: the box.
    why : one of `WHYS`; None where nobody listened.
    view : what was known, for `explain`: the payoffs that its bin had learned, the bin's edges,
        and what a surface says (`View`); None where nobody listened.
    segment : the frozen segment that answered, as `Segment.plain` writes it; None: there is none.
        What was known is then what was known when it was frozen.
    """

    id: int
    context: Array
    value: Array
    at: float
    role: str
    bin: int
    centre: Array | None
    start: Array
    limits: Array | None
    why: str | None = None
    view: Array | None = None
    segment: dict[str, Any] | None = None


class Told(NamedTuple):
    """The payoff of a decision came.

    gradient : of the payoff, where the policy takes one.
    value : what was really done, if it was something else than what was decided.
    """

    id: int
    payoff: float
    gradient: Array | None = None
    value: Array | None = None


class Forgotten(NamedTuple):
    """The payoff of a decision will never come."""

    id: int


class OpenForgotten(NamedTuple):
    """Nothing that is open will be told; payoffs that were held back are learned."""


class TimePassed(NamedTuple):
    """It is now this late: what is over its time to live is given up."""

    at: float


class LearnedFromLog(NamedTuple):
    """The log of an older rule: contexts, decisions and payoffs, in the order of time."""

    contexts: Array
    values: Array
    payoffs: Array


class Paused(NamedTuple):
    """From now on every decision is the incumbent's."""


class Resumed(NamedTuple):
    """No longer so."""


class Frozen(NamedTuple):
    """From now on a bin, by its number, answers with its best decision and learns nothing."""

    bin: int


class Unfrozen(NamedTuple):
    """No longer so."""

    bin: int


class SegmentFrozen(NamedTuple):
    """From now on contexts are answered as of now, and their payoffs are not learned.

    where : the lowest and the highest value by name, in units.
    at : when, in seconds; 0 where no clock is needed.
    """

    where: dict[str, list[float]]
    at: float = 0.0


class SegmentUnfrozen(NamedTuple):
    """No longer so."""

    where: dict[str, list[float]]


class ReferenceRenewed(NamedTuple):
    """From now on decisions stay within `max_move` of what is known now."""


class OptionsChanged(NamedTuple):
    """From now on these options hold; the others never change.

    max_move : in units, one for each coordinate; None: there is none.
    """

    ttl: int | None
    ttl_seconds: float | None
    share: float
    max_move: Array | None


Event = (
    Asked
    | Told
    | Forgotten
    | OpenForgotten
    | TimePassed
    | LearnedFromLog
    | Paused
    | Resumed
    | Frozen
    | Unfrozen
    | SegmentFrozen
    | SegmentUnfrozen
    | ReferenceRenewed
    | OptionsChanged
)
KINDS: dict[str, Any] = {
    "asked": Asked,
    "told": Told,
    "forgotten": Forgotten,
    "open-forgotten": OpenForgotten,
    "time-passed": TimePassed,
    "learned-from-log": LearnedFromLog,
    "paused": Paused,
    "resumed": Resumed,
    "frozen": Frozen,
    "unfrozen": Unfrozen,
    "segment-frozen": SegmentFrozen,
    "segment-unfrozen": SegmentUnfrozen,
    "reference-renewed": ReferenceRenewed,
    "options-changed": OptionsChanged,
}
NAMES = {kind: name for name, kind in KINDS.items()}
ARRAYS = {"context", "value", "centre", "start", "limits", "gradient", "view"}
ARRAYS |= {"contexts", "values", "payoffs", "max_move"}
FLOATS = {"at", "payoff", "share", "ttl_seconds"}


def to_plain(event: Event) -> dict[str, Any]:
    """An event as numbers, strings and lists.

    >>> to_plain(Told(3, 1.5))
    {'event': 'told', 'id': 3, 'payoff': 1.5, 'gradient': None, 'value': None}
    """
    fields = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in event._asdict().items()
    }
    return {"event": NAMES[type(event)], **fields}


def from_plain(plain: dict[str, Any]) -> Event:
    """The event that `to_plain` wrote."""
    try:
        fields = dict(plain)
        kind = KINDS[fields.pop("event")]
        if not set(fields) <= set(kind._fields):  # those that are absent may have defaults
            raise KeyError(f"fields {sorted(fields)}")
        for name in ARRAYS & set(fields):
            if fields[name] is not None:
                fields[name] = np.array(fields[name], np.float64)
        for name in FLOATS & set(fields):
            if isinstance(fields[name], int):  # a number that was written without its point
                fields[name] = float(fields[name])
        event: Event = kind(**fields)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InputError(f"an event must be as `to_plain` wrote it, but got {error}") from None
    return event
