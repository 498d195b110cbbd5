"""The three ways to run a policy on a problem.

Partition × learner on a compiled problem runs in the compiled loop, unless a function of its
user's is the incumbent, or there is a share, a `max_move`, a frozen bin or segment. A policy
that learns nothing decides for a whole block at once. Everything else runs in a loop in Python,
with the same numbers.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from continuarm.core import numbered_bins
from continuarm.core.compiling import Array
from continuarm.core.state import SERIALS
from continuarm.errors import InputError, PolicyError, ProblemError
from continuarm.lab import loops, soundness
from continuarm.lab.arrivals import Arrivals, Ring
from continuarm.lab.soundness import LARGEST
from continuarm.lab.streams import BLOCK, Block, Streams
from continuarm.live.abilities import (
    CompiledPolicy,
    DecidesAtOnce,
    ForgetsOpen,
    TakesGradients,
    name_of,
)
from continuarm.own_code import OwnCode
from continuarm.problems import Problem
from continuarm.sets import is_guarded

__all__ = ["Run", "run_of", "sloped"]

PYTHON_PACE = 256  # decisions in Python between two ticks, at which a run can be stopped


class Run(Protocol):
    """A way to run a policy.

    `segment` runs part of a block and adds its regret to a total, one decision after the other:
    the sum does not depend on where a run pauses.
    """

    pace: int  # decisions between two ticks, at most
    learns: bool
    least: float  # regret of a decision so far, and 0

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
    compiled = streams.problem.functions.compiled
    if isinstance(policy, CompiledPolicy) and compiled:
        life = policy.life
        guarded = life.limits.share > 0.0 or life.beginning.max_move is not None
        frozen = life.segments or numbered_bins.frozen(life.model.state)
        if life.incumbent.own is None and not guarded and not frozen:
            return CompiledRun(policy, streams, horizon)
    return LiveRun(policy, streams, horizon)


class CompiledRun:
    """Partition × learner in the compiled loop."""

    pace, learns = BLOCK, True

    def __init__(self, policy: CompiledPolicy, streams: Streams, horizon: int) -> None:
        self.life, self.problem = policy.life, streams.problem
        model, problem = self.life.model, streams.problem
        self.late: Ring | None = None
        self.loop = loops.run_entry(*model.deciding_classes)
        if not problem.feedback.at_once or policy.missing is not None:
            self.loop, self.late = (
                loops.run_late_entry(*model.deciding_classes),
                Ring(policy, horizon),
            )
        functions = np.array(problem.addresses(sloped=model.uses_gradient), np.int64)
        key = self.life.beginning.key
        self.world = loops.World(self.life.limits, functions, key, streams.noise)
        self.plan = np.zeros(loops.LATE_PLAN, np.int64)
        self.plan[loops.AHEAD] = self.life.open.next_id - self.life.open.asked
        self.plan[loops.SAMPLED] = problem.sources.sample_payoff is not None
        self.plan[loops.SLOPED] = model.uses_gradient
        self.plan[loops.TTL] = policy.ttl or 0
        self.plan[loops.HELD] = policy.missing is not None
        self.numbers = np.zeros(loops.NUMBERS)
        self.numbers[loops.NOISE], self.numbers[loops.MISSING] = problem.noise, policy.missing or 0
        self.numbers[loops.LARGEST] = min(LARGEST, model.largest_payoff)
        self.working = OwnCode(ProblemError, problem.promise)
        self.draw = self.asked_before = self.life.open.asked
        self.ahead = self.life.open.next_id - self.draw
        self.asked = np.array(self.life.asked_per_bin, np.int64)
        self.bins = np.empty(BLOCK, np.int64)
        self.block: Block | None = None
        self.least = 0.0

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
        drawn = block.noises, block.slope_noises, block.added
        ahead = loops.Block(block.contexts, best, *drawn, self.bins)
        late = () if self.late is None else (self.late.bundle,)
        plan[loops.START], plan[loops.STOP], plan[loops.MADE_LATER] = start, stop, 0
        self.numbers[loops.REGRET] = total
        while True:
            with self.working:
                own = model.setup, model.state, model.room
                reached = self.loop(*own, self.world, ahead, plan, self.numbers, *late)
            if reached == stop:
                break
            if plan[loops.REFUSED]:
                self._refuse(block.contexts[reached])
            plan[loops.START] = reached
            model.grow()
        self.life.open.asked = int(plan[loops.DRAW]) + stop - self.ahead
        self.life.open.next_id = int(plan[loops.DRAW]) + stop
        self.least = float(self.numbers[loops.LEAST])
        self._count(self.bins[start:stop])
        if self.late is not None:
            self.late.made = self.late.arrivals.base + stop
        return float(self.numbers[loops.REGRET])

    def _refuse(self, context: Array) -> None:
        payoff, regret = self.numbers[[loops.PAYOFF, loops.REFUSED_REGRET]].tolist()
        soundness.check_numbers(self.problem, context, payoff, regret)
        if abs(payoff) > self.numbers[loops.LARGEST]:
            most = self.numbers[loops.LARGEST]
            raise InputError(f"the payoff must be within ±{most:g}, but got {payoff}")
        soundness.check_numbers(self.problem, context, 0.0, 0.0, np.nan)

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
        self.deciding = OwnCode(PolicyError, f"{name_of(policy)} must decide for every context")
        self.working = OwnCode(ProblemError, self.problem.promise)
        self.learning = OwnCode(PolicyError, f"{name_of(policy)} must learn every payoff")
        self.sloped, self.slope = sloped(policy), np.empty(streams.problem.decision.dim)
        self.late: Arrivals | None = None
        self.least = 0.0
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
            regret = float(best[t - start]) - expected
            soundness.check_numbers(self.problem, block.contexts[t], told[0], regret, told[1])
            self.least = min(self.least, regret)
            total += regret
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
        with self.deciding:
            decision = self.policy.ask(x.copy())
            value = self._inside(getattr(decision, "value", decision))
        with self.working:
            expected = float(problem.functions.mean(x, value))
            payoff, slope = expected + problem.noise * block.noises[t], None
            if problem.sources.sample_payoff is not None:
                payoff = float(problem.functions.sample(x, value, self.rng))
            payoff += float(block.added[t])
            if self.sloped:
                problem.fill_gradient(x, value, self.slope)
        if self.sloped:
            slope = self.slope + problem.noise * block.slope_noises[t] / problem.decision.span
        return decision, expected, (payoff, slope)

    def _inside(self, value: Any) -> Array:
        name = name_of(self.policy)
        try:
            point = self.problem.decision.point(value)
        except InputError as error:
            raise PolicyError(f"{name} must decide inside its box, where {error}") from None
        _check_allowed(name, self.problem, point[None, :])
        return point

    def _tell(self, decision: Any, payoff: float, slope: Array | None) -> None:
        with self.learning:
            if slope is None:
                self.policy.tell(decision, payoff)
            else:
                self.policy.tell(decision, payoff, gradient=slope)

    def finish(self) -> None:
        """Forget what is still open."""
        if self.late is not None and isinstance(self.policy, ForgetsOpen):
            with self.learning:
                self.policy.forget_all()


def _check_allowed(name: str, problem: Problem, decisions: Array) -> None:
    """Refuse what coupled limits or a spacing do not allow."""
    if not is_guarded(problem.decision):
        return
    for value in decisions:
        if not problem.decision.allows(value):
            raise PolicyError(
                f"{name} must decide as {problem.decision!r} allows, but got {value.tolist()}"
            )


class BlockRun:
    """A policy that learns nothing, a whole block at once."""

    pace, learns = BLOCK, False

    def __init__(self, policy: DecidesAtOnce, problem: Problem) -> None:
        self.policy, self.problem = policy, problem
        self.deciding = OwnCode(PolicyError, f"{name_of(policy)} must decide for every context")
        self.least = 0.0

    def segment(self, block: Block, start: int, stop: int, total: float) -> float:
        """Run these decisions of a block; the total with their regret."""
        contexts = block.contexts[start:stop]
        with self.deciding:
            decisions = self.problem.decision.points(self.policy.decide_many(contexts))
            _check_allowed(name_of(self.policy), self.problem, decisions)
        regrets = self.problem.best_many(contexts)[1] - self.problem.mean_many(contexts, decisions)
        soundness.check_regrets(self.problem, contexts, regrets)
        self.least = min(self.least, float(regrets.min(initial=0.0)))
        return float(np.cumsum(np.append(total, regrets))[-1])  # in order, as `sum` is not

    def finish(self) -> None:
        """There is nothing to do."""
