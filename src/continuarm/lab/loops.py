"""The compiled loops of a simulation: context, decision, payoff, again; at once, or late.

A loop serves every policy, problem and dimension: the policy through its configuration classes,
the problem through the addresses of functions of fixed signatures.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
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
    tuple_type,
    unpack,
)
from continuarm.core.draws import fill_normal
from continuarm.core.entries import (
    COMMON,
    Limits,
    Setup,
    laid_out,
    limits_type,
    scale_context,
    scale_decision,
    scale_slope,
    start_for,
    unscale_decision,
)
from continuarm.core.guards import allowed_start
from continuarm.core.notes import Asking
from continuarm.core.request import FULL, Free, Region
from continuarm.core.state import SERIAL, Space, State
from continuarm.problems.feedback import NEVER
from continuarm.problems.functions import gradient_at, mean_at, sample_at

__all__ = ["Block", "Late", "World", "count_entry", "run_entry", "run_late_entry"]

# whole numbers of a run: where in the block to start and to stop, the draw number of the block's
# first decision, how far that is ahead of how many were asked before, whether payoffs are sampled
# and gradients told; of the decision that was made last: whether its payoff waits to be told, its
# row, whether its bin is made, its ticket; whether the world's numbers are refused
START, STOP, DRAW, AHEAD, SAMPLED, SLOPED, PENDING, ROW, MADE, TICKET, REFUSED, PLAN = range(12)
# and of the late loop: the number of the block's first decision, the time to live (0: for ever),
# whether payoffs are held until it is over, the next arrival, how many bins were made later
BASE, TTL, HELD, ARRIVAL, MADE_LATER, LATE_PLAN = range(PLAN, PLAN + 6)
# numbers: the noise, what silence is worth, the largest number that can be counted with; the
# payoff that waits or is refused, the regret so far, the least of one decision, the one refused
NOISE, MISSING, LARGEST, PAYOFF, REGRET, LEAST, REFUSED_REGRET, NUMBERS = range(8)
# an open decision of the late loop: row, ticket, bin, delay, whether it is open
OPEN_ROW, OPEN_TICKET, OPEN_BIN, DELAY, IS_OPEN, SEAT = range(6)
ZERO = np.uint64(0)


class World(NamedTuple):
    """What decides about payoffs."""

    limits: Limits
    functions: Any  # addresses: mean payoff, random payoff, gradient
    key: Any
    rng: Any


class Block(NamedTuple):
    """What the world has in store for the next decisions, and the bins that answer them."""

    contexts: Array
    best: Array  # the best mean payoffs of the last of them, up to STOP
    noises: Array
    slope_noises: Array
    added: Array  # to the payoffs, whatever is decided
    bins: Any  # numbers of bins; 0: the bin is not made yet


class Late(NamedTuple):
    """When payoffs come, and what waits for them."""

    delays: Any
    arrivals: Any
    offsets: Any
    ring: Array
    seats: Any
    made_later: Any  # numbers of bins that were made after a decision was asked there


BLOCK = tuple_type(MATRIX, VECTOR, VECTOR, MATRIX, VECTOR, WHOLES, named=Block)
LATE = tuple_type(WHOLES, WHOLES, WHOLES, MATRIX, types.int64[:, ::1], WHOLES, named=Late)


def _world_type(guard_class: type) -> Any:
    return tuple_type(limits_type(guard_class), WHOLES, WORDS, types.npy_rng, named=World)


class Made(NamedTuple):
    """A decision that was made: where, its ticket, what it will pay, and its regret."""

    row: int  # FULL: the arrays are full, and nothing was done
    made: bool
    ticket: int
    bin: int
    payoff: float
    regret: float
    sound: bool  # its numbers can be counted with


@compiled
def _ask(
    pcfg: Any,
    lcfg: Any,
    setup: Setup,
    state: State,
    space: Space,
    world: World,
    block: Block,
    plan: Any,
    numbers: Array,
    t: int,
) -> Made:
    """Make decision `t` of the block."""
    noise, largest = numbers[NOISE], numbers[LARGEST]
    limits, context, value = world.limits, block.contexts[t], space.best
    scale_context(setup, context, space.x)
    fill_normal(world.key, np.uint64(plan[DRAW] + t), ZERO, space.xi)
    start = start_for(setup, limits.start, limits.rule, context, space.start, space.start)
    region = Region(limits.low, limits.high, True, limits.guard)
    _, start = allowed_start(limits.guard, region, start, space.start, space.work)
    wish = region, start, limits.reach
    answers, made, ticket = engine.decide(pcfg, lcfg, state, space, *wish)
    row = engine.asked(pcfg, lcfg, state, space, answers, made, ticket)
    if row == FULL:
        return Made(row, False, ticket, 0, 0.0, 0.0, True)
    if not unscale_decision(setup, region, space.y, space.work, value):
        unscale_decision(setup, region, start, space.work, value)
    scale_decision(setup, value, space.y)  # what is learned is what was done
    expected = mean_at(world.functions[0])(context, value)
    payoff = expected + noise * block.noises[t]
    if plan[SAMPLED]:
        payoff = sample_at(world.functions[1])(context, value, world.rng)
    payoff += block.added[t]
    regret = block.best[t - plan[STOP] + block.best.shape[0]] - expected
    sound = abs(payoff) <= largest and abs(regret) <= largest  # no NaN is
    if plan[SLOPED]:
        slope = space.gradient
        gradient_at(world.functions[2])(context, value, slope)
        span = setup.bounds[2 * setup.shape[0] :]
        for i in range(slope.shape[0]):
            slope[i] += noise * block.slope_noises[t, i] / (span[slope.shape[0] + i] - span[i])
        scale_slope(setup, slope, slope)
        for i in range(slope.shape[0]):
            sound = sound and abs(slope[i]) <= largest
    made = made or row != answers
    bin_ = int(state.rows[row, SERIAL]) if made else 0
    return Made(row, made, ticket, bin_, payoff, regret, sound)


@compiled
def _refuse(plan: Any, numbers: Array, one: Made) -> None:
    """Say what the world gave for a decision."""
    plan[REFUSED], numbers[PAYOFF], numbers[REFUSED_REGRET] = 1, one.payoff, one.regret


@compiled
def _asked_before(plan: Any, t: int) -> float:
    """How many decisions were asked for before decision `t` of the block."""
    return float(plan[DRAW] + t - plan[AHEAD])


@cache
def run_entry(partition_class: type, learner_class: type, guard_class: type = Free) -> Any:
    """The loop of payoffs that are told at once.

    Returns the decision of the block that it reached: before STOP when the arrays are full. Then
    it is called again with larger ones; PENDING says that the decision was made before. REFUSED
    says that the numbers of the world there cannot be counted with.
    """

    def entry(setup, state, room, world, block, plan, numbers):  # type: ignore[no-untyped-def]
        pcfg = unpack(partition_class, setup.partition)
        lcfg, here = unpack(learner_class, setup.learner), laid_out(setup, room)
        regret, least, first = numbers[REGRET], numbers[LEAST], plan[START]
        if plan[PENDING] == 1:
            row, made, ticket, payoff = plan[ROW], plan[MADE] == 1, plan[TICKET], numbers[PAYOFF]
            asking = Asking(_asked_before(plan, first), 0.0)
            bin_ = engine.learn(pcfg, lcfg, state, here, row, made, ticket, payoff, asking)
            if bin_ == FULL:
                return first
            if not made:
                block.bins[first] = bin_
            plan[PENDING] = 0
            first += 1
        for t in range(first, plan[STOP]):
            one = _ask(pcfg, lcfg, setup, state, here, world, block, plan, numbers, t)
            if one.row == FULL or not one.sound:
                numbers[REGRET], numbers[LEAST] = regret, least
                if not one.sound:
                    _refuse(plan, numbers, one)
                return t
            regret += one.regret
            if one.regret < least:
                least = one.regret
            row, made, ticket, payoff = one.row, one.made, one.ticket, one.payoff
            asking = Asking(_asked_before(plan, t), 0.0)
            bin_ = engine.learn(pcfg, lcfg, state, here, row, made, ticket, payoff, asking)
            block.bins[t] = one.bin if made else bin_
            if bin_ == FULL:
                plan[PENDING], plan[ROW], plan[MADE], plan[TICKET] = 1, row, made, ticket
                numbers[PAYOFF], numbers[REGRET], numbers[LEAST] = payoff, regret, least
                return t
        numbers[REGRET], numbers[LEAST] = regret, least
        return plan[STOP]

    signature = types.int64(*COMMON, _world_type(guard_class), BLOCK, WHOLES, VECTOR)
    return compile_entry(entry, signature, classes=(partition_class, learner_class, guard_class))


@cache
def count_entry() -> Any:
    """Count how often each number occurs."""

    def entry(counts, numbers):  # type: ignore[no-untyped-def]
        for t in range(numbers.shape[0]):
            counts[numbers[t]] += 1

    return compile_entry(entry, types.void(WHOLES, WHOLES))


@compiled
def _recall(setup: Setup, space: Space, waiting: Array) -> None:
    """Put an open decision into the space: context, decision, gradient."""
    dx, dy = space.x.shape[0], space.y.shape[0]
    scale_context(setup, waiting[:dx], space.x)
    scale_decision(setup, waiting[dx : dx + dy], space.y)
    copy_into(space.gradient, waiting[dx + dy : dx + 2 * dy])


@compiled
def _keep(space: Space, context: Array, waiting: Array, payoff: float) -> None:
    """Keep what `_ask` has just decided."""
    dx, dy = space.x.shape[0], space.y.shape[0]
    copy_into(waiting[:dx], context)
    copy_into(waiting[dx : dx + dy], space.best)
    copy_into(waiting[dx + dy : dx + 2 * dy], space.gradient)
    waiting[dx + 2 * dy] = payoff


@compiled
def _tell(
    pcfg: Any,
    lcfg: Any,
    setup: Setup,
    state: State,
    space: Space,
    limits: Limits,
    late: Late,
    plan: Any,
    number: int,
    delay: int,
) -> bool:
    """Tell the payoff of an open decision of the run; False: the arrays are full."""
    k = number % late.ring.shape[0]
    waiting, seat = late.ring[k], late.seats[k]
    _recall(setup, space, waiting)
    row, ticket, payoff = seat[OPEN_ROW], seat[OPEN_TICKET], waiting[waiting.shape[0] - 1]
    context = waiting[: space.x.shape[0]]
    start = start_for(setup, limits.start, limits.rule, context, space.start, space.start)
    asking = Asking(_asked_before(plan, number - plan[BASE]), float(delay))
    bin_ = engine.tell(pcfg, lcfg, state, space, start, row, ticket, payoff, asking)
    if bin_ == FULL:
        return False
    if seat[OPEN_BIN] == 0:
        late.made_later[plan[MADE_LATER]] = bin_
        plan[MADE_LATER] += 1
    seat[IS_OPEN] = 0
    return True


@cache
def run_late_entry(partition_class: type, learner_class: type, guard_class: type = Free) -> Any:
    """The loop of payoffs that come late or never.

    Before a decision is asked, the one of `ttl` decisions ago is given up if it is still open, or
    if payoffs are held its payoff told; after it, the payoffs of its arrivals are told. Open
    decisions stand in a ring, each at its number modulo the ring's length (where that is no more
    than `ttl`, none gets so old). PENDING says that the decision was made and its arrivals are
    being told.
    """

    def entry(setup, state, room, world, block, plan, numbers, late):  # type: ignore[no-untyped-def]
        pcfg = unpack(partition_class, setup.partition)
        lcfg, here = unpack(learner_class, setup.learner), laid_out(setup, room)
        limits, seats, long = world.limits, late.seats, late.ring.shape[0]
        held, ttl = plan[HELD] == 1, plan[TTL]
        for t in range(plan[START], plan[STOP]):
            number = plan[BASE] + t
            if plan[PENDING] == 0:
                old = (number - ttl) % long
                if 0 < ttl < long and ttl <= number and seats[old, IS_OPEN] == 1:
                    if held:
                        given = (number - ttl, ttl - 1)
                        if not _tell(pcfg, lcfg, setup, state, here, limits, late, plan, *given):
                            return t
                    else:
                        _recall(setup, here, late.ring[old])
                        row, ticket = seats[old, OPEN_ROW], seats[old, OPEN_TICKET]
                        before = _asked_before(plan, t - ttl)
                        engine.forget(pcfg, lcfg, state, here, row, ticket, before)
                        seats[old, IS_OPEN] = 0
                one = _ask(pcfg, lcfg, setup, state, here, world, block, plan, numbers, t)
                if not one.sound:
                    _refuse(plan, numbers, one)
                if one.row == FULL or not one.sound:
                    return t
                numbers[REGRET] += one.regret
                if one.regret < numbers[LEAST]:
                    numbers[LEAST] = one.regret
                k, silent = number % long, held and late.delays[t] == NEVER
                payoff = numbers[MISSING] if silent else one.payoff
                _keep(here, block.contexts[t], late.ring[k], payoff)
                seats[k, OPEN_ROW], seats[k, OPEN_TICKET] = one.row, one.ticket
                seats[k, OPEN_BIN] = block.bins[t] = one.bin
                seats[k, DELAY], seats[k, IS_OPEN] = late.delays[t], 1
                plan[PENDING], plan[ARRIVAL] = 1, late.offsets[t]
            while plan[ARRIVAL] < late.offsets[t + 1]:
                come = late.arrivals[plan[ARRIVAL]]
                given = (come, number - come)
                if not _tell(pcfg, lcfg, setup, state, here, limits, late, plan, *given):
                    return t
                plan[ARRIVAL] += 1
            plan[PENDING] = 0
        return plan[STOP]

    signature = types.int64(*COMMON, _world_type(guard_class), BLOCK, WHOLES, VECTOR, LATE)
    return compile_entry(entry, signature, classes=(partition_class, learner_class, guard_class))
