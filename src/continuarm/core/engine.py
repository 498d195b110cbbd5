"""Partition × learner as code over arrays: the one place where the two meet.

The live policy and the simulator call only the functions below. What they are about is in the
space: the context `x`, the decision `y`, its gradient, the random numbers `xi`.

Deciding changes nothing: any number of readers may decide from one state, each in a space of its
own. What changes the state is `asked` (where a learner counts what it hands out), `learn` and
`forget`. Each of these does all or, when the arrays are full, nothing; Python enlarges them and
calls again.
"""

from typing import Any

from continuarm.core import state as rows
from continuarm.core.compiling import Array, compiled, copy_into
from continuarm.core.learners import protocol as learner
from continuarm.core.notes import Asking, note_lost, note_payoff, note_told
from continuarm.core.partitions import protocol as partition
from continuarm.core.request import ALONE, FULL, NOTHING, Learned, Observation, Region, Request
from continuarm.core.state import CLOCK, HEAD, LAST, SERIAL, TEMPLATE, TOLD, Space, State

__all__ = ["asked", "decide", "forget", "learn", "place", "recommend", "tell"]


@compiled
def seat(pcfg: Any, lcfg: Any, state: State, space: Space, start: Array) -> tuple[int, bool]:
    """The row that answers for a context, and whether its bin is made.

    If it is not, `space.row` is what the bin would be if it were made now.
    """
    uses_context, x = learner.uses_context(lcfg), space.x
    row, made = partition.locate(pcfg, state.nodes, x, space, uses_context)
    if not made:
        _imagine(pcfg, lcfg, state, space, start, row)
    if uses_context:
        low, high = space.low, space.high
        for i in range(x.shape[0]):
            space.u[i] = (2.0 * x[i] - low[i] - high[i]) / (high[i] - low[i])
    return row, made


@compiled
def _imagine(pcfg: Any, lcfg: Any, state: State, space: Space, start: Array, parent: int) -> None:
    """What the bin would be: as its parent hands down, or as nobody has visited it."""
    if parent == 0:
        if state.counts[TEMPLATE] > 0.0:
            copy_into(space.row, state.rows[0, HEAD:])
        else:
            learner.init(lcfg, space.row, start)
        return
    partition.locate(pcfg, state.nodes, space.x, space, True)
    low, high = space.outer_low, space.outer_high
    for i in range(low.shape[0]):  # the bin's box in the u of the one it was split from
        side, corner = high[i] - low[i], low[i]
        low[i] = 2.0 * (space.low[i] - corner) / side - 1.0
        high[i] = 2.0 * (space.high[i] - corner) / side - 1.0
    learner.inherit(lcfg, state.rows[parent, HEAD:], space.row, low, high, 1.0)


@compiled
def _make(pcfg: Any, state: State, space: Space, parent: int) -> int:
    """Make the bin that `space.row` shows; its row, or FULL."""
    if rows.room(state) == 0:
        return FULL
    row = rows.take(state)
    node = partition.add(pcfg, state.nodes, space.x, row, space)
    if node == FULL:
        rows.give_back(state, row)
        return FULL
    rows.begin(state, row, node, parent)
    copy_into(state.rows[row, HEAD:], space.row)
    return row


@compiled
def decide(
    pcfg: Any,
    lcfg: Any,
    state: State,
    space: Space,
    region: Region,
    start: Array,
    reach: Array,
) -> tuple[int, bool, int]:
    """Decide for a context; the row that answers, whether its bin is made, the ticket."""
    row, made = seat(pcfg, lcfg, state, space, start)
    request = Request(space.u, region, start, reach, space.xi)
    known = state.rows[row, HEAD:] if made else space.row
    return row, made, learner.decide(lcfg, known, state.pool, request, space.work, space.y)


@compiled
def asked(
    pcfg: Any, lcfg: Any, state: State, space: Space, row: int, made: bool, ticket: int
) -> int:
    """Hand out what `decide` has just decided in this space; the row of its bin, or FULL."""
    if ticket == NOTHING or not learner.counts_asking(lcfg):
        return row
    if not made:
        if learner.is_full(state.pool):  # all or nothing: look before a bin is made
            return FULL
        row = _make(pcfg, state, space, row)
        if row == FULL:
            return FULL
    known = state.rows[row, HEAD:]
    return row if learner.asked(lcfg, known, state.pool, ticket, space.y) else FULL


@compiled
def learn(
    pcfg: Any,
    lcfg: Any,
    state: State,
    space: Space,
    row: int,
    made: bool,
    ticket: int,
    payoff: float,
    asking: Asking,
) -> int:
    """Learn a payoff where `seat` has just found or imagined the bin; its number, or FULL.

    A payoff of a stencil belongs to the bin that asked, also when that has split since: it still
    moves the iterate that children nobody has visited will start from.
    """
    if not made:
        row = _make(pcfg, state, space, row)
        if row == FULL:
            return FULL
    if not partition.prepare(pcfg, lcfg, state, row, space):
        return FULL
    head, known = state.rows[row], state.rows[row, HEAD:]
    clock = state.counts[CLOCK] + 1.0
    elapsed = clock - head[LAST] if head[LAST] > 0.0 else 1.0
    is_bin = partition.is_bin(pcfg, state.nodes, state.rows, row)
    seen = Observation(space.u, space.y, payoff, space.gradient, elapsed, ticket, is_bin)
    foreseen = learner.tell(lcfg, known, state.pool, seen, space.work)
    state.counts[CLOCK] = clock
    head[LAST] = clock
    head[TOLD] += 1.0
    note_payoff(state.notes, space, payoff, foreseen, head[SERIAL], asking)
    partition.observe(pcfg, lcfg, state, Learned(row, seen, foreseen), space)
    if is_bin and not partition.is_bin(pcfg, state.nodes, state.rows, row):
        learner.retire(lcfg, known, state.pool)
    return int(head[SERIAL])


@compiled
def tell(
    pcfg: Any,
    lcfg: Any,
    state: State,
    space: Space,
    start: Array,
    row: int,
    ticket: int,
    payoff: float,
    asking: Asking,
) -> int:
    """Learn a payoff, whenever it comes; the number of its bin, or FULL with nothing changed.

    An observation that stands alone goes to the bin that holds its context now. If that is frozen,
    the payoff is only counted.
    """
    made = True
    if ticket == ALONE or (ticket == NOTHING and rows.any_frozen(state)):
        row, made = seat(pcfg, lcfg, state, space, start)
        if made and rows.is_frozen(state, row):
            return _count(lcfg, state, space, row, ticket, asking)
    if ticket == NOTHING:
        note_told(state.notes, space, asking.number)
        return 0
    return learn(pcfg, lcfg, state, space, row, made, ticket, payoff, asking)


@compiled
def _count(lcfg: Any, state: State, space: Space, row: int, ticket: int, asking: Asking) -> int:
    """Count a payoff that is not learned; what it would have taught may be asked again."""
    note_told(state.notes, space, asking.number)
    if ticket != NOTHING:
        learner.forget(lcfg, state.rows[row, HEAD:], state.pool, ticket, space.y, True)
    state.counts[CLOCK] += 1.0
    state.rows[row, TOLD] += 1.0
    return int(state.rows[row, SERIAL])


@compiled
def forget(
    pcfg: Any, lcfg: Any, state: State, space: Space, row: int, ticket: int, number: float
) -> None:
    """A decision will never be told: its slot may be handed out again."""
    note_lost(state.notes, space, number)
    made = True
    if ticket == ALONE:
        row, made = partition.locate(pcfg, state.nodes, space.x, space, False)
    if made and ticket != NOTHING:
        is_bin = partition.is_bin(pcfg, state.nodes, state.rows, row)
        learner.forget(lcfg, state.rows[row, HEAD:], state.pool, ticket, space.y, is_bin)


@compiled
def recommend(
    pcfg: Any,
    lcfg: Any,
    state: State,
    space: Space,
    region: Region,
    start: Array,
    reach: Array,
) -> None:
    """Fill `space.best` with the best decision known for a context."""
    row, made = seat(pcfg, lcfg, state, space, start)
    request = Request(space.u, region, start, reach, space.xi)
    known = state.rows[row, HEAD:] if made else space.row
    learner.best(lcfg, known, request, space.work, space.best)


@compiled
def place(pcfg: Any, lcfg: Any, state: State, space: Space, payoffs: float) -> int:
    """Make the bin of a context, and start it at a decision; its row, or FULL."""
    row, made = seat(pcfg, lcfg, state, space, space.y)
    if not made:
        row = _make(pcfg, state, space, row)
        if row == FULL:
            return FULL
    learner.place(lcfg, state.rows[row, HEAD:], space.y, payoffs)
    return row
