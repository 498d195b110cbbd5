"""One replication of a simulation: the random streams, and the three ways to run it.

Partition × learner on a compiled problem runs in the compiled loop. A policy that learns nothing
decides for a whole block at once. Everything else runs in a loop in Python, with the same numbers.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from continuarm.checks import generator
from continuarm.core.compiling import Array
from continuarm.core.state import SERIALS
from continuarm.lab import loops
from continuarm.lab.arrivals import Arrivals, Ring
from continuarm.live.abilities import (
    CompiledPolicy,
    DecidesAtOnce,
    ForgetsOpen,
    Recommends,
    RecommendsMany,
    TakesGradients,
)
from continuarm.problems import Problem
from continuarm.problems.functions import mean_entry

__all__ = ["Measured", "Streams", "compile_all", "generator_seed", "replicate"]

BLOCK = 2**14  # numbers are drawn in whole blocks: nothing depends on where a run pauses
PYTHON_PACE = 256  # decisions in Python between two ticks, at which a run can be stopped
FIRST_PACE = 64
SOON = 0.25  # seconds between two ticks
HELD_OUT = 1000  # contexts on which `recommend` is judged


class Measured(NamedTuple):
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


class Run(Protocol):
    """A way to run a policy.

    `segment` runs part of a block and adds its regret to a total, one decision after the other:
    the sum does not depend on where a run pauses.
    """

    pace: int  # decisions between two ticks, at most
    learns: bool

    def segment(self, block: Block, start: int, stop: int, total: float) -> float:
        """Run these decisions of a block; the total with their regret."""

    def finish(self) -> None:
        """The last decision is made."""


def sloped(policy: Any) -> bool:
    """Whether a policy wants gradients."""
    return isinstance(policy, TakesGradients) and policy.uses_gradient


def run_of(policy: Any, streams: Streams, horizon: int) -> Run:
    """The way to run a policy."""
    if isinstance(policy, DecidesAtOnce):
        return BlockRun(policy, streams.problem)
    if isinstance(policy, CompiledPolicy) and streams.problem.functions.compiled:
        return CompiledRun(policy, streams, horizon)
    return LiveRun(policy, streams, horizon)


def replicate(
    policy: Any, streams: Streams, marks: NDArray[np.int64], tick: Callable[[int], None]
) -> Measured:
    """Run a policy up to the last of the checkpoints `marks`."""
    wants_slopes = sloped(policy)
    run = run_of(policy, streams, int(marks[-1]))
    regret, recommended = np.empty(len(marks)), np.empty(len(marks))
    block, total, done = streams.block(wants_slopes), 0.0, 0
    pace = min(run.pace, FIRST_PACE) if run.learns else run.pace
    for j, mark in enumerate(marks.tolist()):
        while done < mark:
            if done % BLOCK == 0 and done > 0:
                block = streams.block(wants_slopes)
            start = done % BLOCK
            stop = min(BLOCK, start + mark - done, start + pace)
            started = perf_counter()
            total = run.segment(block, start, stop, total)
            if run.learns:
                pace = _next_pace(run.pace, stop - start, perf_counter() - started)
            done += stop - start
            tick(stop - start)
        regret[j] = total
        recommended[j] = _regret_of_recommend(policy, streams)
    run.finish()
    return Measured(regret, recommended)


def _next_pace(most: int, done: int, seconds: float) -> int:
    """Decisions until the next tick, so that it comes soon; the numbers do not depend on it."""
    return max(1, min(most, int(done * SOON / max(seconds, 1e-9)), 16 * done))


class CompiledRun:
    """Partition × learner in the compiled loop."""

    pace, learns = BLOCK, True

    def __init__(self, policy: CompiledPolicy, streams: Streams, horizon: int) -> None:
        self.life, self.problem = policy.life, streams.problem
        model, problem = self.life.model, streams.problem
        self.late: Ring | None = None
        self.loop = loops.run_entry(*model.classes)
        if not problem.feedback.at_once or policy.missing is not None:
            self.loop, self.late = loops.run_late_entry(*model.classes), Ring(policy, horizon)
        functions = np.array(problem.addresses(sloped=model.uses_gradient), np.int64)
        key = self.life.beginning.key
        self.world = loops.World(self.life.limits, functions, key, streams.noise)
        self.plan = np.zeros(loops.LATE_PLAN, np.int64)
        self.plan[loops.SAMPLED] = problem.sources.sample_payoff is not None
        self.plan[loops.SLOPED] = model.uses_gradient
        self.plan[loops.TTL] = policy.ttl or 0
        self.plan[loops.HELD] = policy.missing is not None
        self.numbers = np.zeros(loops.NUMBERS)
        self.numbers[loops.NOISE], self.numbers[loops.MISSING] = problem.noise, policy.missing or 0
        self.draw = self.asked_before = self.life.open.asked
        self.ahead = self.life.open.next_id - self.draw
        self.asked = np.array(self.life.asked_per_bin, np.int64)
        self.bins = np.empty(BLOCK, np.int64)
        self.block: Block | None = None

    def _begin(self, block: Block) -> None:
        """Draw numbers go on where the last block ended."""
        self.block = block
        self.plan[loops.DRAW] = self.draw + self.ahead
        self.draw += BLOCK
        if self.late is not None:
            self.late.schedule(block.delays)
            self.plan[loops.BASE] = self.late.arrivals.base

    def segment(self, block: Block, start: int, stop: int, total: float) -> float:
        """Run these decisions of a block; the total with their regret."""
        if self.block is not block:
            self._begin(block)
        model, plan = self.life.model, self.plan
        best = self.problem.best_many(block.contexts[start:stop])[1]
        ahead = loops.Block(block.contexts, best, block.noises, block.slope_noises, self.bins)
        late = () if self.late is None else (self.late.bundle,)
        plan[loops.START], plan[loops.STOP], plan[loops.MADE_LATER] = start, stop, 0
        self.numbers[loops.REGRET] = total
        while True:
            reached = self.loop(
                model.setup, model.state, model.room, self.world, ahead, plan, self.numbers, *late
            )
            if reached == stop:
                break
            plan[loops.START] = reached
            model.grow()
        self.life.open.asked = int(plan[loops.DRAW]) + stop - self.ahead
        self.life.open.next_id = int(plan[loops.DRAW]) + stop
        self._count(self.bins[start:stop])
        if self.late is not None:
            self.late.made = self.late.arrivals.base + stop
        return float(self.numbers[loops.REGRET])

    def _count(self, bins: NDArray[np.int64]) -> None:
        """Count what each bin was asked; one that has been made since is counted as what it is."""
        more = int(self.life.model.state.counts[SERIALS]) + 1 - len(self.asked)
        if more > 0:
            self.asked = np.append(self.asked, np.zeros(len(self.asked) + more, np.int64))
        loops.count_entry()(self.asked, bins)
        if self.late is not None:
            later = self.late.made_later[: self.plan[loops.MADE_LATER]]
            self.asked[0] -= len(later)
            loops.count_entry()(self.asked, later)

    def finish(self) -> None:
        """Hand the counts over, and forget what is still open."""
        last = int(np.flatnonzero(self.asked)[-1]) if self.asked.any() else 0
        self.life.asked_per_bin = self.asked[: last + 1].tolist()
        if self.late is None:
            self.life.open.closed.add(self.life.open.asked - self.asked_before, 0, 0)
        else:
            self.late.forget_all()


class LiveRun:
    """Any policy on any problem, one decision at a time in Python."""

    pace, learns = PYTHON_PACE, True

    def __init__(self, policy: Any, streams: Streams, horizon: int) -> None:
        self.policy, self.problem, self.rng = policy, streams.problem, streams.noise
        self.sloped, self.slope = sloped(policy), np.empty(streams.problem.decision.dim)
        self.late: Arrivals | None = None
        keeps = isinstance(policy, ForgetsOpen)
        if not self.problem.feedback.at_once or (keeps and policy.missing is not None):
            self.late = Arrivals(policy.ttl if keeps else None, horizon)
        self.block: Block | None = None
        self.waiting: dict[int, tuple[Any, float, Array | None]] = {}

    def segment(self, block: Block, start: int, stop: int, total: float) -> float:
        """Run these decisions of a block; the total with their regret."""
        if self.late is not None and self.block is not block:
            self.late.schedule(block.delays)
        self.block = block
        best = self.problem.best_many(block.contexts[start:stop])[1]
        for t in range(start, stop):
            decision, expected, told = self._ask(block, t)
            total += float(best[t - start]) - expected
            if self.late is None:
                self._tell(decision, *told)
                continue
            if self.late.arrives(t):
                self.waiting[self.late.base + t] = (decision, *told)
            for number in self.late.after(t):
                self._tell(*self.waiting.pop(number))
        return total

    def _ask(self, block: Block, t: int) -> tuple[Any, float, tuple[float, Array | None]]:
        """Decision `t`, its mean payoff, and what will be told of it."""
        problem, x = self.problem, block.contexts[t]
        decision = self.policy.ask(x.copy())
        value = problem.decision.point(getattr(decision, "value", decision))
        expected = float(problem.functions.mean(x, value))
        payoff, slope = expected + problem.noise * block.noises[t], None
        if problem.sources.sample_payoff is not None:
            payoff = float(problem.functions.sample(x, value, self.rng))
        if self.sloped:
            problem.fill_gradient(x, value, self.slope)
            slope = self.slope + problem.noise * block.slope_noises[t] / problem.decision.span
        return decision, expected, (payoff, slope)

    def _tell(self, decision: Any, payoff: float, slope: Array | None) -> None:
        if slope is None:
            self.policy.tell(decision, payoff)
        else:
            self.policy.tell(decision, payoff, gradient=slope)

    def finish(self) -> None:
        """Forget what is still open."""
        if self.late is not None and isinstance(self.policy, ForgetsOpen):
            self.policy.forget_all()


class BlockRun:
    """A policy that learns nothing, a whole block at once."""

    pace, learns = BLOCK, False

    def __init__(self, policy: DecidesAtOnce, problem: Problem) -> None:
        self.policy, self.problem = policy, problem

    def segment(self, block: Block, start: int, stop: int, total: float) -> float:
        """Run these decisions of a block; the total with their regret."""
        contexts = block.contexts[start:stop]
        decisions = self.problem.decision.points(self.policy.decide_many(contexts))
        regrets = self.problem.best_many(contexts)[1] - self.problem.mean_many(contexts, decisions)
        return float(np.cumsum(np.append(total, regrets))[-1])  # in order, as `sum` is not

    def finish(self) -> None:
        """There is nothing to do."""


def _regret_of_recommend(policy: Any, streams: Streams) -> float:
    contexts, problem = streams.held_out, streams.problem
    if isinstance(policy, RecommendsMany):
        decisions = policy.recommend_many(contexts)
    elif isinstance(policy, Recommends):
        decisions = problem.decision.points([policy.recommend(x) for x in contexts])
    else:
        return float("nan")
    return float((streams.held_out_best - problem.mean_many(contexts, decisions)).mean())


def compile_all(policy: Any, problem: Problem) -> None:
    """Compile, or load from disk, what a replication will call."""
    if problem.functions.compiled:
        mean_entry()
        if isinstance(policy, CompiledPolicy):
            streams = Streams(problem, SeedSequence(0))
            run_of(policy, streams, 1).segment(streams.block(sloped(policy)), 0, 0, 0.0)
            policy.recommend_many(streams.held_out[:1])  # type: ignore[attr-defined]


def generator_seed(rng: Generator | int | None) -> SeedSequence:
    """The root of all streams of a simulation."""
    made = generator(rng)  # also refuses what is no seed
    if rng is None or isinstance(rng, int | np.integer):
        return SeedSequence(rng if rng is None else int(rng))
    return SeedSequence(made.integers(0, 2**63, 4).tolist())
