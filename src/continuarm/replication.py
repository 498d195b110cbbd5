"""One replication of a simulation: the random streams, and the three ways to run it.

A learning policy on a compiled problem runs in the compiled loop; a user's own policy, or a
problem that cannot be compiled, in a loop in Python that makes the same decisions; a policy that
does not learn decides for a whole block at once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from continuarm.checks import generator
from continuarm.driver import mean_entry, run_entry, run_late_entry
from continuarm.jit import Array
from continuarm.late import Arrivals, Ring
from continuarm.policies import BinnedPolicy, Fixed, Oracle
from continuarm.problems import Problem
from continuarm.problems.functions import no_gradient

__all__ = ["Curve", "Streams", "replicate"]

BLOCK = 2**14  # numbers are drawn in whole blocks: nothing depends on where a run pauses
PYTHON_PACE = 256  # decisions in Python between two ticks, at which a run can be stopped
HELD_OUT = 1000  # contexts on which `recommend` is judged


class Curve(NamedTuple):
    """Regret at each checkpoint."""

    regret: Array
    recommend_regret: Array


class Block(NamedTuple):
    """What the world has in store for the next decisions."""

    contexts: Array
    noises: Array
    slope_noises: Array
    delays: NDArray[np.int64]


class Streams:
    """Independent streams: contexts, payoff noise, delays, the policy's own random numbers."""

    def __init__(self, problem: Problem, seed: SeedSequence) -> None:
        contexts, noise, policy = seed.spawn(3)
        self.problem = problem
        self.contexts, self.noise = np.random.default_rng(contexts), np.random.default_rng(noise)
        self.policy = np.random.default_rng(policy)
        self.slope_noise, self.delays = map(np.random.default_rng, noise.spawn(2))
        held_out = np.random.default_rng(contexts.spawn(1)[0])
        self.held_out = problem.draw_contexts(held_out, HELD_OUT)
        self.held_out_best = problem.best_many(self.held_out)[1]

    def block(self, sloped: bool) -> Block:
        """The next block."""
        problem = self.problem
        contexts = problem.draw_contexts(self.contexts, BLOCK)
        noises = np.empty(BLOCK)
        if problem.sources.sample_payoff is None:
            self.noise.standard_normal(out=noises)
        slopes = np.empty((BLOCK, problem.decision.dim if sloped else 0))
        if sloped:
            self.slope_noise.standard_normal(out=slopes)
        delays = np.zeros(BLOCK, np.int64)
        if not problem.feedback.at_once:
            delays = problem.feedback.draw(self.delays, BLOCK)
        return Block(contexts, noises, slopes, delays)


# Runs part of a block and adds its regret to a total, one decision after the other: the sum does
# not depend on where a run pauses.
Segment = Callable[[Block, int, int, float], float]


def replicate(
    policy: Any, streams: Streams, marks: NDArray[np.int64], tick: Callable[[int], None]
) -> Curve:
    """Run a policy up to the last of the checkpoints `marks`."""
    problem = streams.problem
    sloped = isinstance(policy, BinnedPolicy) and policy.engine.uses_gradient
    finish: list[Callable[[], None]] = []  # what to do when the last decision is made
    pace = BLOCK
    if isinstance(policy, Oracle | Fixed):
        segment = _reference_segment(policy, problem)
    elif isinstance(policy, BinnedPolicy) and problem.functions.compiled:
        segment = _compiled_segment(policy, streams, finish, int(marks[-1]))
    else:
        segment = _python_segment(policy, streams, sloped, finish, int(marks[-1]))
        pace = PYTHON_PACE
    regret, recommended = np.empty(len(marks)), np.empty(len(marks))
    block, total, done = streams.block(sloped), 0.0, 0
    for j, mark in enumerate(marks.tolist()):
        while done < mark:
            if done % BLOCK == 0 and done > 0:
                block = streams.block(sloped)
            start = done % BLOCK
            stop = min(BLOCK, start + mark - done, start + pace)
            total = segment(block, start, stop, total)
            done += stop - start
            tick(stop - start)
        regret[j] = total
        recommended[j] = _regret_of_recommend(policy, streams)
    for last in finish:
        last()
    return Curve(regret, recommended)


def _compiled_segment(
    policy: BinnedPolicy, streams: Streams, finish: list[Callable[[], None]], horizon: int
) -> Segment:
    engine, problem = policy.engine, streams.problem
    late = None
    run = run_entry(*engine.classes)
    if not problem.feedback.at_once or policy.missing is not None:
        run, late = run_late_entry(*engine.classes), Ring(policy, horizon)
        finish.append(late.forget_all)
    functions = problem.functions
    world = (
        problem.context.low.copy(),
        problem.context.high.copy(),
        problem.decision.low.copy(),
        problem.decision.high.copy(),
        functions.mean,
        functions.sample,
        problem.fill_gradient if engine.uses_gradient else no_gradient(),
        problem.sources.sample_payoff is not None,
        engine.uses_gradient,
        problem.noise,
        streams.noise,
    )
    vectors = [np.empty(n) for n in (engine.dx, engine.dy, engine.dy, engine.dy)]
    drawn: list[Any] = [None, None]  # the block, and the policy's own random numbers for it

    def segment(block: Block, start: int, stop: int, total: float) -> float:
        if drawn[0] is not block:
            drawn[:] = block, streams.policy.standard_normal((BLOCK, engine.draws))
            if late is not None:
                late.schedule(block.delays)
        best = problem.best_many(block.contexts[start:stop])[1]
        running = np.array([total])
        while True:
            start = run(
                *engine.packed, engine.nodes, engine.rows, engine.pool, engine.u, engine.work,
                *world, block.contexts, best, block.noises, block.slope_noises, drawn[1],
                start, stop, running, *vectors, *(() if late is None else late.arguments),
            )  # fmt: skip
            if start == stop:
                if late is not None:
                    late.made = late.arrivals.base + stop
                return float(running[0])
            engine.grow()

    return segment


def _python_segment(
    policy: Any, streams: Streams, sloped: bool, finish: list[Callable[[], None]], horizon: int
) -> Segment:
    problem, functions = streams.problem, streams.problem.functions
    sampled = problem.sources.sample_payoff is not None
    slope, span = np.empty(problem.decision.dim), problem.decision.span
    late = None
    silent = isinstance(policy, BinnedPolicy) and policy.missing is not None
    if not problem.feedback.at_once or silent:
        late = Arrivals(policy.ttl if isinstance(policy, BinnedPolicy) else None, horizon)
        if isinstance(policy, BinnedPolicy):
            finish.append(policy.forget_all)
    known: list[Block | None] = [None]
    waiting: dict[int, tuple[Any, ...]] = {}

    def told(decision: Any, payoff: float, noisy: Array | None) -> None:
        if noisy is None:
            policy.tell(decision, payoff)
        else:
            policy.tell(decision, payoff, gradient=noisy)

    def segment(block: Block, start: int, stop: int, total: float) -> float:
        if late is not None and known[0] is not block:
            known[0] = block
            late.schedule(block.delays)
        best = problem.best_many(block.contexts[start:stop])[1]
        for t in range(start, stop):
            x = block.contexts[t]
            decision = policy.ask(x.copy())
            value = problem.decision.point(getattr(decision, "value", decision))
            expected = float(functions.mean(x, value))
            total += float(best[t - start]) - expected
            payoff, noisy = expected + problem.noise * block.noises[t], None
            if sampled:
                payoff = float(functions.sample(x, value, streams.noise))
            if sloped:
                problem.fill_gradient(x, value, slope)
                noisy = slope + problem.noise * block.slope_noises[t] / span
            if late is None:
                told(decision, payoff, noisy)
            else:
                if late.arrives(t):
                    waiting[late.base + t] = (decision, payoff, noisy)
                for number in late.after(t):
                    told(*waiting.pop(number))
        return total

    return segment


def _reference_segment(policy: Oracle | Fixed, problem: Problem) -> Segment:
    def segment(block: Block, start: int, stop: int, total: float) -> float:
        contexts = block.contexts[start:stop]
        payoffs = _means(problem, contexts, policy.recommend_many(contexts))
        regrets = problem.best_many(contexts)[1] - payoffs
        return float(np.cumsum(np.append(total, regrets))[-1])  # in order, as `sum` is not

    return segment


def _regret_of_recommend(policy: Any, streams: Streams) -> float:
    if not hasattr(policy, "recommend"):
        return float("nan")
    contexts = streams.held_out
    if hasattr(policy, "recommend_many"):
        decisions = policy.recommend_many(contexts)
    else:
        decisions = streams.problem.decision.points([policy.recommend(x) for x in contexts])
    return float((streams.held_out_best - _means(streams.problem, contexts, decisions)).mean())


def _means(problem: Problem, contexts: Array, decisions: Array) -> Array:
    payoffs = np.empty(len(contexts))
    if problem.functions.compiled:
        mean_entry()(problem.functions.mean, contexts, decisions, payoffs)
    else:
        for t, (x, y) in enumerate(zip(contexts, decisions, strict=True)):
            payoffs[t] = problem.functions.mean(x, y)
    return payoffs


def compile_all(policy: Any, problem: Problem) -> None:
    """Compile, or load from disk, what a replication will call."""
    if problem.functions.compiled:
        mean_entry()
        if isinstance(policy, BinnedPolicy):
            streams = Streams(problem, SeedSequence(0))
            _compiled_segment(policy, streams, [], 1)(
                streams.block(policy.engine.uses_gradient), 0, 0, 0.0
            )
            policy.recommend_many(streams.held_out[:1])


def generator_seed(rng: Generator | int | None) -> SeedSequence:
    """The root of all streams of a simulation."""
    made = generator(rng)  # also refuses what is no seed
    if rng is None or isinstance(rng, int | np.integer):
        return SeedSequence(rng if rng is None else int(rng))
    return SeedSequence(made.integers(0, 2**63, 4).tolist())
