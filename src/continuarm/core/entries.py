"""What Python calls of the engine, compiled once for each pair of configuration classes.

Every entry takes the same bundles first: what never changes, the state, and room to compute in.
Contexts and decisions are in the units of their boxes; limits are on the unit cube.
"""

from functools import cache
from typing import Any, NamedTuple

from numba import types

from continuarm.core import engine
from continuarm.core.compiling import (
    MATRIX,
    VECTOR,
    WHOLES,
    WORDS,
    Array,
    compile_entry,
    compiled,
    copy_into,
    fill,
    tuple_type,
    unpack,
)
from continuarm.core.draws import chance, fill_normal
from continuarm.core.guards import allowed_start, hand_out, kind_of
from continuarm.core.guards import limits as guarded
from continuarm.core.learners.protocol import best, view
from continuarm.core.notes import Asking
from continuarm.core.partitions.protocol import locate
from continuarm.core.request import EMPTY, FREE, FROZEN, FULL, INCUMBENT, Free, Region, Request
from continuarm.core.scaling import from_unit, to_unit
from continuarm.core.state import HEAD, SERIAL, Space, State, is_frozen, space

__all__ = ["COMMON", "OUTSIDE", "Limits", "Setup", "limits_type"]

OUTSIDE = FULL - 100  # as a ticket, less the dimension: the context is outside its box


class Setup(NamedTuple):
    """What never changes in a policy's life."""

    partition: Array  # the numbers of its configuration
    learner: Array
    shape: Any  # dx, dy, random numbers per decision, floats per row
    bounds: Array  # the edges of the boxes: contexts low and high, decisions low and high


class Limits(NamedTuple):
    """Where a decision may lie, what the incumbent would do and how far from what is known to be
    good may be tried, on the unit cube.

    An incumbent that differs by context has a rule, in units: dy constants, then dy × dx slopes.
    """

    low: Array
    high: Array
    start: Array
    reach: Array
    rule: Array  # empty: the start is the same for every context
    whole: bool  # no limit but the cube
    share: float  # of decisions that are the incumbent's
    guard: Any = FREE  # what else limits a decision; its class selects the code


def limits_type(guard_class: type) -> Any:
    """The compiled type of limits with a guard of this class."""
    numbers = types.boolean, types.float64, kind_of(guard_class)
    return tuple_type(*(VECTOR,) * 5, *numbers, named=Limits)


COMMON = (
    tuple_type(VECTOR, VECTOR, WHOLES, VECTOR, named=Setup),
    tuple_type(VECTOR, MATRIX, MATRIX, MATRIX, VECTOR, named=State),
    VECTOR,
)
_WHOLE, _FLAG = types.int64, types.boolean


@compiled
def laid_out(setup: Setup, room: Array) -> Space:
    """The space in this room."""
    shape = setup.shape
    return space(room, shape[0], shape[1], shape[2], shape[3])


@compiled
def scale_context(setup: Setup, context: Array, x: Array) -> int:
    """Scale a context to the unit cube; -1, or the first dimension in which it is outside."""
    dx = setup.shape[0]
    return to_unit(setup.bounds[:dx], setup.bounds[dx : 2 * dx], context, x)


@compiled
def scale_decision(setup: Setup, value: Array, y: Array) -> int:
    """The same for a decision."""
    k, dy = 2 * setup.shape[0], setup.shape[1]
    return to_unit(setup.bounds[k : k + dy], setup.bounds[k + dy :], value, y)


@compiled
def unscale_decision(setup: Setup, region: Region, y: Array, work: Array, value: Array) -> bool:
    """A decision of the unit cube in its units, as it is allowed; False: nothing is."""
    return hand_out(region.guard, region, setup.bounds[2 * setup.shape[0] :], y, work, value)


@compiled
def scale_slope(setup: Setup, slope: Array, unit: Array) -> None:
    """A slope per unit of the decision as one per side of its box."""
    k, dy = 2 * setup.shape[0], setup.shape[1]
    for i in range(slope.shape[0]):
        unit[i] = slope[i] * (setup.bounds[k + dy + i] - setup.bounds[k + i])


@compiled
def _follow(setup: Setup, rule: Array, context: Array, start: Array) -> None:
    """What a rule does for a context, in units, and clipped into the box."""
    dx, dy = setup.shape[0], setup.shape[1]
    edges = setup.bounds[2 * dx :]
    for j in range(dy):
        value = rule[j]
        for i in range(dx):
            value += rule[dy + j * dx + i] * context[i]
        start[j] = min(max(value, edges[j]), edges[dy + j])


@compiled
def start_for(
    setup: Setup, fixed: Array, rule: Array, context: Array, units: Array, unit: Array
) -> Array:
    """What the incumbent would do for a context, on the unit cube.

    It is `fixed`, or a rule fills it in, in units and in `unit`, which may be the same array.
    """
    if rule.shape[0] == 0:
        return fixed
    _follow(setup, rule, context, units)
    scale_decision(setup, units, unit)
    return unit


@compiled
def _recall(setup: Setup, here: Space, context: Array, value: Array) -> None:
    """Put a context and a decision into the space."""
    scale_context(setup, context, here.x)
    scale_decision(setup, value, here.y)


@cache
def answer_entry(partition_class: type, learner_class: type, guard_class: type = Free) -> Any:
    """Decide with the numbers of a draw: fill `value`, and by a rule, in units, `start`.

    Returns the row that answers, whether its bin is made, the ticket, and the bin's number (0: not
    made); or as the ticket the dimension in which the context is outside, below OUTSIDE, or EMPTY.
    Where the decision is the incumbent's, the ticket is INCUMBENT, and only a guard fills `value`;
    where the bin is frozen it is FROZEN, and `value` is not to be used.

    With contexts to recommend for, it fills the best decisions known for them instead; `starts`
    are one each, or the incumbent's. One entry does both, because most of the code is the same,
    and would be compiled twice.
    """

    def entry(setup, state, room, limits, given, asked_for):  # type: ignore[no-untyped-def]
        pcfg = unpack(partition_class, setup.partition)
        lcfg, here = unpack(learner_class, setup.learner), laid_out(setup, room)
        region = Region(limits.low, limits.high, limits.whole, limits.guard)
        contexts, starts, values = asked_for
        rule, mine = limits.rule, here.start
        for t in range(contexts.shape[0]):
            scale_context(setup, contexts[t], here.x)
            begin = start_for(setup, limits.start, rule, contexts[t], mine, mine)
            if starts.shape[0] > 0:
                begin = starts[t]
            holds, begin = allowed_start(limits.guard, region, begin, mine, here.work)
            if not holds:
                return 0, False, EMPTY, 0
            engine.recommend(pcfg, lcfg, state, here, region, begin, limits.reach)
            if not unscale_decision(setup, region, here.best, here.work, values[t]):
                unscale_decision(setup, region, begin, here.work, values[t])
        if contexts.shape[0] > 0:
            return 0, False, 0, 0
        key, draw, server, context, value, start = given
        outside = scale_context(setup, context, here.x)
        if outside >= 0:
            return 0, False, OUTSIDE - outside, 0
        begin = start_for(setup, limits.start, rule, context, start, mine)
        holds, begin = allowed_start(limits.guard, region, begin, mine, here.work)
        if not holds:
            return 0, False, EMPTY, 0
        if limits.share > 0.0 and chance(key, draw, server) < limits.share:
            row, made = engine.seat(pcfg, lcfg, state, here, begin)
            if guarded(limits.guard):
                unscale_decision(setup, region, begin, here.work, value)
            return row, made, INCUMBENT, int(state.rows[row, SERIAL]) if made else 0
        fill_normal(key, draw, server, here.xi)
        wish = region, begin, limits.reach
        row, made, ticket = engine.decide(pcfg, lcfg, state, here, *wish)
        if not unscale_decision(setup, region, here.y, here.work, value):
            unscale_decision(setup, region, begin, here.work, value)
        if made and is_frozen(state, row):
            ticket = FROZEN
        return row, made, ticket, int(state.rows[row, SERIAL]) if made else 0

    given = tuple_type(WORDS, types.uint64, types.uint64, VECTOR, VECTOR, VECTOR)
    asked_for = tuple_type(MATRIX, MATRIX, MATRIX)
    found = tuple_type(_WHOLE, _FLAG, _WHOLE, _WHOLE)
    signature = found(*COMMON, limits_type(guard_class), given, asked_for)
    return compile_entry(entry, signature, classes=(partition_class, learner_class, guard_class))


@cache
def middle_entry(partition_class: type, learner_class: type, guard_class: type = Free) -> Any:
    """Fill the best decision that a row knows for the middle of its bin, in units."""

    def entry(setup, state, room, limits, given):  # type: ignore[no-untyped-def]
        lcfg, here = unpack(learner_class, setup.learner), laid_out(setup, room)
        known, start, value = given
        region = Region(limits.low, limits.high, limits.whole, limits.guard)
        fill(here.u, 0.0)
        _, begin = allowed_start(limits.guard, region, start, here.start, here.work)
        request = Request(here.u, region, begin, limits.reach, here.xi)
        best(lcfg, known, request, here.work, here.best)
        if not unscale_decision(setup, region, here.best, here.work, value):
            unscale_decision(setup, region, begin, here.work, value)

    given = tuple_type(VECTOR, VECTOR, VECTOR)
    signature = types.void(*COMMON, limits_type(guard_class), given)
    return compile_entry(entry, signature, classes=(partition_class, learner_class, guard_class))


@cache
def asked_entry(partition_class: type, learner_class: type) -> Any:
    """Hand out what `decide` has just decided in this room; the row of its bin, its number."""

    def entry(setup, state, room, row, made, ticket):  # type: ignore[no-untyped-def]
        pcfg = unpack(partition_class, setup.partition)
        lcfg, here = unpack(learner_class, setup.learner), laid_out(setup, room)
        found = engine.asked(pcfg, lcfg, state, here, row, made, ticket)
        has_bin = found > 0 and (made or found != row)
        return found, int(state.rows[found, SERIAL]) if has_bin else 0

    signature = tuple_type(_WHOLE, _WHOLE)(*COMMON, _WHOLE, _FLAG, _WHOLE)
    return compile_entry(entry, signature, classes=(partition_class, learner_class))


@cache
def tell_entry(partition_class: type, learner_class: type) -> Any:
    """Learn a payoff; the gradient is per unit of the decision."""

    def entry(setup, state, room, row, ticket, start, payoff, given):  # type: ignore[no-untyped-def]
        pcfg = unpack(partition_class, setup.partition)
        lcfg, here = unpack(learner_class, setup.learner), laid_out(setup, room)
        context, value, gradient, number, delay = given
        _recall(setup, here, context, value)
        scale_slope(setup, gradient, here.gradient)
        asking = Asking(number, delay)
        return engine.tell(pcfg, lcfg, state, here, start, row, ticket, payoff, asking)

    given = tuple_type(VECTOR, VECTOR, VECTOR, types.float64, types.float64)
    signature = _WHOLE(*COMMON, _WHOLE, _WHOLE, VECTOR, types.float64, given)
    return compile_entry(entry, signature, classes=(partition_class, learner_class))


@cache
def forget_entry(partition_class: type, learner_class: type) -> Any:
    """Forget a decision."""

    def entry(setup, state, room, row, ticket, context, value, number):  # type: ignore[no-untyped-def]
        pcfg = unpack(partition_class, setup.partition)
        lcfg, here = unpack(learner_class, setup.learner), laid_out(setup, room)
        _recall(setup, here, context, value)
        engine.forget(pcfg, lcfg, state, here, row, ticket, number)

    signature = types.void(*COMMON, _WHOLE, _WHOLE, VECTOR, VECTOR, types.float64)
    return compile_entry(entry, signature, classes=(partition_class, learner_class))


@cache
def place_entry(partition_class: type, learner_class: type) -> Any:
    """Make the bin of a context, and start it at a decision if it has not begun."""

    def entry(setup, state, room, context, value, payoffs):  # type: ignore[no-untyped-def]
        pcfg = unpack(partition_class, setup.partition)
        lcfg, here = unpack(learner_class, setup.learner), laid_out(setup, room)
        _recall(setup, here, context, value)
        return engine.place(pcfg, lcfg, state, here, payoffs)

    signature = _WHOLE(*COMMON, VECTOR, VECTOR, types.float64)
    return compile_entry(entry, signature, classes=(partition_class, learner_class))


@cache
def view_entry(partition_class: type, learner_class: type) -> Any:
    """Fill what is known about a decision for a context, with the numbers of a draw.

    In units: the edges of its bin, then as `view` of a learner. Returns the row that answers,
    whether its bin is made, and how the decision came about; box, `u`, start and imagined row are
    in the room.
    """

    def entry(setup, state, room, limits, given, seen):  # type: ignore[no-untyped-def]
        pcfg = unpack(partition_class, setup.partition)
        lcfg, here = unpack(learner_class, setup.learner), laid_out(setup, room)
        key, draw, server, context, value = given
        dx, dy, bounds = setup.shape[0], setup.shape[1], setup.bounds
        scale_context(setup, context, here.x)
        scale_decision(setup, value, here.best)  # what was just decided stays where it is
        begin = start_for(setup, limits.start, limits.rule, context, here.start, here.start)
        row, made = engine.seat(pcfg, lcfg, state, here, begin)
        copy_into(here.start, begin)
        locate(pcfg, state.nodes, here.x, here, True)
        from_unit(bounds[:dx], bounds[dx : 2 * dx], here.low, seen[:dx])
        from_unit(bounds[:dx], bounds[dx : 2 * dx], here.high, seen[dx : 2 * dx])
        fill_normal(key, draw, server, here.xi)
        region = Region(limits.low, limits.high, limits.whole, limits.guard)
        request = Request(here.u, region, begin, limits.reach, here.xi)
        known, numbers = state.rows[row, HEAD:] if made else here.row, seen[2 * dx :]
        how = view(lcfg, known, request, here.work, here.best, numbers)
        low, high = bounds[2 * dx : 2 * dx + dy], bounds[2 * dx + dy :]
        from_unit(low, high, numbers[:dy], numbers[:dy])
        for j in range(dy):
            numbers[dy + j] *= high[j] - low[j]
            numbers[2 * dy + j] /= high[j] - low[j]
            numbers[3 * dy + j] /= high[j] - low[j]
        return row, made, how

    given = tuple_type(WORDS, types.uint64, types.uint64, VECTOR, VECTOR)
    signature = tuple_type(_WHOLE, _FLAG, _WHOLE)(*COMMON, limits_type(Free), given, VECTOR)
    return compile_entry(entry, signature, classes=(partition_class, learner_class))
