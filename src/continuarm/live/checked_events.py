"""Events that somebody else has written: refused where they cannot be of this life.

Compiled code does not look at what it is given, and what has happened cannot be undone: all is
looked at before anything happens.
"""

import math
from typing import Any

import numpy as np

from continuarm.core import numbered_bins
from continuarm.core.state import SERIALS
from continuarm.errors import (
    InputError,
    SegmentConflictError,
    UnknownBinError,
    UnknownDecisionError,
)
from continuarm.live.as_it_was import as_it_is, bytes_of
from continuarm.live.changing import check_options
from continuarm.live.deciding import Held
from continuarm.live.events import (
    BEST,
    EXPLORED,
    INCUMBENTS,
    ROLES,
    WHYS,
    Asked,
    Event,
    Forgotten,
    Frozen,
    LearnedFromLog,
    OptionsChanged,
    ReferenceRenewed,
    SegmentFrozen,
    SegmentUnfrozen,
    TimePassed,
    Told,
    Unfrozen,
)
from continuarm.live.inputs import finite
from continuarm.live.life import Life
from continuarm.live.limits import Within
from continuarm.live.segments import MOST, MOST_BYTES, Between, Segment, segment_of, where_of
from continuarm.live.view import sizes

__all__ = ["check", "check_bin", "check_freezing", "check_numbers", "check_reference"]
__all__ += ["check_segment", "check_unfreezing"]

MOST_IDS = 2**128 - 2**64  # a draw number has 128 bits, and there must be some left
COUNTER_BITS = 64  # of a number; those above tell who counts
SHOWN = 8  # bins in a line


def check(life: Life, event: Event) -> None:
    """Refuse an event that cannot happen in this life now."""
    match event:
        case Asked():
            _asked(life, event)
        case Told(id_):
            _open(life, id_)
            check_numbers(life, event)
        case Forgotten(id_):
            _open(life, id_)
        case TimePassed(at):
            _time(life, at)
        case Frozen(bin_) | Unfrozen(bin_):
            check_bin(life, bin_)
        case SegmentFrozen(where, at):
            check_freezing(life, where)
            _time(life, at)
        case SegmentUnfrozen(where):
            check_unfreezing(life, where)
        case ReferenceRenewed():
            check_reference(life)
        case OptionsChanged() | LearnedFromLog():
            check_numbers(life, event)


def check_numbers(life: Life, event: Event) -> None:
    """Refuse an event whose numbers no life of this beginning could have, whatever happened."""
    match event:
        case Asked():
            _asked_numbers(life, event)
        case Told(_, payoff, gradient, value):
            _payoff(life, payoff)
            _gradient(life, gradient)
            _done(life, value)
        case SegmentFrozen(where, _) | SegmentUnfrozen(where):
            where_of(where, life.beginning.context)
        case OptionsChanged():
            check_options(life, event)
        case LearnedFromLog(contexts, values, payoffs):
            boxes = life.beginning.context, life.beginning.decision
            for box, points in zip(boxes, (contexts, values), strict=True):
                _floats(points)
                box.points(points)
            _floats(payoffs)
            if payoffs.ndim != 1 or not 0 < len(contexts) == len(values) == len(payoffs):
                raise InputError("a log needs as many contexts as decisions and payoffs")
            for payoff in payoffs.tolist():
                _payoff(life, payoff)


def check_reference(life: Life) -> None:
    """Refuse to renew what is not there."""
    if life.beginning.max_move is None:
        raise InputError("`max_move` must be set, so that there is a reference, but got None")


def check_segment(life: Life, given: Any) -> dict[str, Between]:
    """The condition of a segment that can be frozen, however much is known now."""
    if not life.model.stands_alone:
        raise InputError(
            "a segment can be frozen where each payoff teaches by itself, but those of stencils "
            "and of gradients belong together: `pause()`"
        )
    context = life.beginning.context
    where = where_of(given, context)
    for segment, _ in life.segments:
        if segment.where == where:
            raise SegmentConflictError(
                f"`segment` must not be frozen already, but {segment.in_words(context)} is, "
                f"{segment.since()}"
            )
    if len(life.segments) >= MOST:
        raise InputError(
            f"at most {MOST} segments can be frozen at once, but got another one, "
            f"{Segment(where).in_words(context)}"
        )
    return where


def check_freezing(life: Life, given: Any) -> dict[str, Between]:
    """The condition of a segment that can be frozen now, with what is known now."""
    where = check_segment(life, given)
    size = bytes_of((*life.segments, Held(Segment(where), as_it_is(life))))
    if size > MOST_BYTES:
        raise InputError(
            "what was known when segments were frozen can have at most "
            f"{MOST_BYTES / 2**20:g} MiB in all, but with another one, "
            f"{Segment(where).in_words(life.beginning.context)}, it has {size / 2**20:.1f} MiB"
        )
    return where


def check_unfreezing(life: Life, given: Any) -> dict[str, Between]:
    """The condition of a segment that is frozen."""
    where = where_of(given, life.beginning.context)
    if all(segment.where != where for segment, _ in life.segments):
        raise SegmentConflictError(
            "`segment` must be one that is frozen, but "
            f"{Segment(where).in_words(life.beginning.context)} is not"
        )
    return where


def check_bin(life: Life, bin_: Any) -> None:
    """Refuse to freeze a bin that is not there, or one that learns from stencils."""
    if not life.model.stands_alone:
        raise InputError(
            "a bin can be frozen where each payoff teaches by itself, but those of stencils and "
            "of gradients belong together: `pause()`"
        )
    if _no_whole(bin_):
        raise InputError(f"`bin` must be a Bin of `bins()` or its number, but got {bin_!r}")
    pcfg, state = life.model.pcfg, life.model.state
    if bin_ in numbered_bins.numbers(pcfg, state):
        return
    if not 1 <= bin_ <= state.counts[SERIALS]:
        made = int(state.counts[SERIALS])
        known = f"from 1 to {made}" if made else "made by a first payoff, which is not told yet"
        raise UnknownBinError(f"`bin` must be one that is there, {known}, but got {bin_}")
    after = [str(number) for number in numbered_bins.successors(pcfg, state, bin_)]
    more = f" and {len(after) - SHOWN:,} more" if len(after) > SHOWN else ""
    raise InputError(
        f"`bin` must be one that is there, but {bin_} is no more: its contexts are in bins "
        f"{', '.join(after[:SHOWN])}{more}"
        if after
        else f"`bin` must be one that is there, but {bin_} has split and its parts are not visited"
    )


def _asked(life: Life, event: Asked) -> None:
    _number(event)
    newest = life.open.next_id - 1
    asked_before = event.id <= newest and event.id >> COUNTER_BITS == newest >> COUNTER_BITS
    if event.id in life.open.open or event.id in life.comparison.line or asked_before:
        raise UnknownDecisionError(
            f"each decision needs a number of its own, but {event.id} was asked before"
        )
    bins = life.model.state.counts[SERIALS]
    if _no_whole(event.bin) or not 0 <= event.bin <= bins:
        raise InputError(f"one of {int(bins)} bins is needed, but got {event.bin!r}")
    _role(event)
    if (event.role == INCUMBENTS) < life.paused or (
        event.role == INCUMBENTS and life.limits.share == 0.0
    ):
        when = "while a policy is paused" if life.paused else "with a `share`"
        raise InputError(f"decisions are the incumbent's {when}, but got {event.role!r}")
    _time(life, event.at)
    _asked_numbers(life, event)
    frozen, held = event.bin in numbered_bins.frozen(life.model.state), life.held_at(event.context)
    if event.role == BEST and event.limits is None and not frozen and held is None:
        raise InputError("a decision that teaches nothing needs limits, but has none")
    if event.role == EXPLORED and held is not None:
        words = held.segment.in_words(life.beginning.context)
        raise InputError(f"{words} is frozen and explores nothing, but got {event.role!r}")
    if event.role == EXPLORED and frozen:
        raise InputError(f"bin {event.bin} is frozen and explores nothing, but got {event.role!r}")
    if event.role == INCUMBENTS:
        within = None if event.limits is None else Within(*event.limits)
        if not (event.value == life.incumbents(event.context, within, event.start)).all():
            raise InputError(
                f"the incumbent's decision must be the start {event.start.tolist()} within "
                f"limits, but got {event.value.tolist()}"
            )


def _number(event: Asked) -> None:
    if _no_whole(event.id) or not 0 <= event.id < MOST_IDS:
        raise InputError(f"a decision needs a number, but got {event.id!r}")


def _role(event: Asked) -> None:
    if not isinstance(event.role, str) or event.role not in ROLES:
        raise InputError(f"one of {ROLES} is needed, but got {event.role!r}")


def _asked_numbers(life: Life, event: Asked) -> None:
    context, decision = life.beginning.context, life.beginning.decision
    _number(event)
    _role(event)
    if _no_whole(event.bin) or event.bin < 0:
        raise InputError(f"the number of a bin is needed, but got {event.bin!r}")
    points = [(context, event.context), (decision, event.value), (decision, event.start)]
    if event.centre is not None:
        points.append((decision, event.centre))
    for box, point in points:
        _floats(point)
        box.point(point)
    _explained(life, event)
    if event.limits is not None:
        _floats(event.limits)
        if event.limits.shape != (2, decision.dim):
            raise InputError(f"limits must have two rows, but got {event.limits!r}")
        low, high = decision.points(event.limits)
        if not (low <= high).all() or not ((low <= event.value) & (event.value <= high)).all():
            raise InputError(
                f"{event.value.tolist()} must lie within limits, but got {event.limits.tolist()}"
            )
    if not decision.allows(event.value):
        raise InputError(f"{event.value.tolist()} must be allowed by {decision!r}, but is not")


def _explained(life: Life, event: Asked) -> None:
    """Why it was decided, and what was known."""
    if event.why is not None and (not isinstance(event.why, str) or event.why not in WHYS):
        raise InputError(f"one of {WHYS} is needed, but got {event.why!r}")
    if event.segment is not None:
        segment_of(event.segment, life.beginning.context)
    if event.view is not None:
        _floats(event.view)
        wanted = sizes(life.model.dx, life.model.dy)
        if event.view.shape not in [(n,) for n in wanted] or not np.isfinite(event.view).all():
            raise InputError(f"a view has one of {wanted} finite numbers, but got {event.view!r}")


def _no_whole(number: Any) -> bool:
    return isinstance(number, bool) or not isinstance(number, int)


def _open(life: Life, id_: Any) -> None:
    if _no_whole(id_):
        raise UnknownDecisionError(f"the number of a decision is needed, but got {id_!r}")
    if not life.open.is_open(id_):
        raise life.open.refusal(id_)


def _payoff(life: Life, payoff: Any) -> None:
    largest = life.model.largest_payoff
    if type(payoff) is not float or abs(finite(payoff)) > largest:
        raise InputError(f"the payoff must be within ±{largest:g}, but got {payoff!r}")


def _gradient(life: Life, gradient: Any) -> None:
    if (gradient is not None) != life.model.uses_gradient:
        raise InputError(f"the policy wants a gradient or not, but got {gradient!r}")
    if gradient is not None:
        _floats(gradient)
        if gradient.shape != (life.model.dy,) or not np.isfinite(gradient).all():
            raise InputError(f"the gradient must be finite, but got {gradient!r}")


def _done(life: Life, value: Any) -> None:
    if value is None:
        return
    if not life.takes_values:
        raise InputError(f"the policy takes no value, but got {value!r}")
    _floats(value)
    life.beginning.decision.point(value)


def _time(life: Life, at: Any) -> None:
    if type(at) is not float or not math.isfinite(at):
        raise InputError(f"a time in seconds is needed, but got {at!r}")
    if life.beginning.waiting.ttl_seconds is None and at != 0.0:
        raise InputError(f"a policy without `ttl_seconds` has no time but 0, but got {at}")
    if at < life.now:
        raise InputError(f"time does not go back: {life.now} has passed, but got {at}")


def _floats(array: Any) -> None:
    fits = isinstance(array, np.ndarray) and array.dtype == np.float64
    if not fits or not array.flags.c_contiguous:
        raise InputError(f"an array of float64 is needed, but got {array!r}")
