"""The compiled loops of a simulation: context, decision, payoff, again; at once, or late.

A loop serves every policy, problem and dimension: the policy through its configuration classes,
the problem through functions of fixed signatures that are arguments of the loop.
"""

from functools import cache
from typing import Any

from numba import types

from continuarm import engine
from continuarm.box import from_unit, to_unit
from continuarm.feedback import NEVER
from continuarm.jit import (
    MATRIX,
    VECTOR,
    compile_entry,
    copy_into,
    stamp,
    unpack,
)
from continuarm.learners.protocol import FULL
from continuarm.problems.functions import GRADIENT, MEAN, SAMPLE

__all__ = ["mean_entry", "run_entry", "run_late_entry"]


@cache
def run_entry(partition_class: type, learner_class: type) -> Any:
    """The loop, compiled for a pair of configuration classes.

    Runs decisions `start <= t < stop` of a block and adds their regret to `total[0]`; `best` ends
    with the last of them. Returns the `t` it reached: before `stop` when the arrays are full, with
    nothing of decision `t` done. Only `ask` can find them full: what is told at once goes to a bin
    that exists.
    """
    source = stamp()

    # fmt: off
    def entry(  # type: ignore[no-untyped-def]
        p, q, nodes, rows, pool, u, work, context_low, context_high, low, high,
        mean, sample, gradient, sampled, sloped, noise, rng,
        contexts, best, noises, slope_noises, xis,
        start, stop, total, x, y, value, slope,
    ):
        # fmt: on
        source  # noqa: B018 (closed over, and so part of the cache's key)
        pcfg, lcfg = unpack(partition_class, p), unpack(learner_class, q)
        first = stop - best.shape[0]
        for t in range(start, stop):
            to_unit(context_low, context_high, contexts[t], x)
            row, ticket = engine.ask(pcfg, lcfg, nodes, rows, pool, x, u, work, xis[t], y)
            if ticket == FULL:
                return t
            from_unit(low, high, y, value)
            expected = mean(contexts[t], value)
            total[0] += best[t - first] - expected
            payoff = expected + noise * noises[t]
            if sampled:
                payoff = sample(contexts[t], value, rng)
            if sloped:
                gradient(contexts[t], value, slope)
                for i in range(slope.shape[0]):
                    slope[i] = slope[i] * (high[i] - low[i]) + noise * slope_noises[t, i]
            engine.tell(pcfg, lcfg, nodes, rows, pool, row, ticket, x, u, work, y, payoff, slope)
        return stop

    functions = (types.FunctionType(signature) for signature in (MEAN, SAMPLE, GRADIENT))
    signature = types.int64(
        VECTOR, VECTOR, MATRIX, MATRIX, MATRIX, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR,
        *functions, types.boolean, types.boolean, types.float64, types.npy_rng,
        MATRIX, VECTOR, VECTOR, MATRIX, MATRIX,
        types.int64, types.int64, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR,
    )  # fmt: skip
    return compile_entry(entry, signature, classes=(partition_class, learner_class))


@cache
def run_late_entry(partition_class: type, learner_class: type) -> Any:
    """The loop with payoffs that come late or never.

    Decision `t` of the block is number `base + t`. Before it is asked, the one of `ttl` decisions
    ago is given up if it is still open, or if `held` its payoff told; after it, the payoffs of
    `arrivals[offsets[t]:offsets[t + 1]]` are told. Open decisions stand in rings, each at its
    number modulo their length (where that is no more than `ttl`, none gets so old). `position` is
    how far decision `t` has come: whether it was asked, and which payoff is next. It returns the
    `t` it reached, to be called again when the arrays have grown.
    """
    source = stamp()

    # fmt: off
    def entry(  # type: ignore[no-untyped-def]
        p, q, nodes, rows, pool, u, work, context_low, context_high, low, high,
        mean, sample, gradient, sampled, sloped, noise, rng,
        contexts, best, noises, slope_noises, xis,
        start, stop, total, x, y, value, slope,
        base, ttl, held, missing, delays, arrivals, offsets, position,
        tickets, is_open, xs, ys, payoffs, slopes,
    ):
        # fmt: on
        source  # noqa: B018
        pcfg, lcfg = unpack(partition_class, p), unpack(learner_class, q)
        first, room = stop - best.shape[0], is_open.shape[0]
        for t in range(start, stop):
            if position[0] == 0:
                old = (base + t - ttl) % room
                if 0 < ttl < room and ttl <= base + t and is_open[old]:
                    row, ticket = tickets[old, 0], tickets[old, 1]
                    if not held:
                        engine.forget(
                            pcfg, lcfg, nodes, rows, pool, row, ticket, xs[old], u, ys[old]
                        )
                    elif engine.tell(
                        pcfg, lcfg, nodes, rows, pool, row, ticket, xs[old], u, work, ys[old],
                        payoffs[old], slopes[old],
                    ) == FULL:  # fmt: skip
                        return t
                    is_open[old] = False
                to_unit(context_low, context_high, contexts[t], x)
                row, ticket = engine.ask(pcfg, lcfg, nodes, rows, pool, x, u, work, xis[t], y)
                if ticket == FULL:
                    return t
                from_unit(low, high, y, value)
                expected = mean(contexts[t], value)
                total[0] += best[t - first] - expected
                payoff = expected + noise * noises[t]
                if sampled:
                    payoff = sample(contexts[t], value, rng)
                k = (base + t) % room
                if sloped:
                    gradient(contexts[t], value, slope)
                    for i in range(slope.shape[0]):
                        slopes[k, i] = slope[i] * (high[i] - low[i]) + noise * slope_noises[t, i]
                tickets[k, 0], tickets[k, 1], tickets[k, 2] = row, ticket, delays[t]
                is_open[k] = True
                copy_into(xs[k], x)
                copy_into(ys[k], y)
                payoffs[k] = missing if held and delays[t] == NEVER else payoff
                position[0], position[1] = 1, offsets[t]
            while position[1] < offsets[t + 1]:
                k = arrivals[position[1]] % room
                if engine.tell(
                    pcfg, lcfg, nodes, rows, pool, tickets[k, 0], tickets[k, 1], xs[k], u, work,
                    ys[k], payoffs[k], slopes[k],
                ) == FULL:  # fmt: skip
                    return t
                is_open[k] = False
                position[1] += 1
            position[0] = 0
        return stop

    functions = (types.FunctionType(signature) for signature in (MEAN, SAMPLE, GRADIENT))
    whole = types.int64[::1]
    signature = types.int64(
        VECTOR, VECTOR, MATRIX, MATRIX, MATRIX, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR,
        *functions, types.boolean, types.boolean, types.float64, types.npy_rng,
        MATRIX, VECTOR, VECTOR, MATRIX, MATRIX,
        types.int64, types.int64, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR,
        types.int64, types.int64, types.boolean, types.float64, whole, whole, whole, whole,
        types.int64[:, ::1], types.boolean[::1], MATRIX, MATRIX, VECTOR, MATRIX,
    )  # fmt: skip
    return compile_entry(entry, signature, classes=(partition_class, learner_class))


@cache
def mean_entry() -> Any:
    """Fill the mean payoffs of many contexts and decisions."""
    source = stamp()

    def entry(mean, contexts, decisions, payoffs):  # type: ignore[no-untyped-def]
        source  # noqa: B018
        for t in range(contexts.shape[0]):
            payoffs[t] = mean(contexts[t], decisions[t])

    signature = types.void(types.FunctionType(MEAN), MATRIX, MATRIX, VECTOR)
    return compile_entry(entry, signature)
