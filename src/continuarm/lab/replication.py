"""One replication of a simulation: a policy meets the streams of a seed, and is measured."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from continuarm.core.compiling import Array
from continuarm.errors import PolicyError
from continuarm.lab import soundness
from continuarm.lab.runs import run_of, sloped
from continuarm.lab.streams import BLOCK, Streams
from continuarm.live.abilities import CompiledPolicy, Recommends, RecommendsMany, name_of
from continuarm.own_code import OwnCode
from continuarm.problems import Problem
from continuarm.problems.functions import mean_entry

__all__ = ["Measured", "compile_all", "replicate"]

FIRST_PACE = 64
SOON = 0.25  # seconds between two ticks


class Measured(NamedTuple):
    """Regret at each checkpoint, and what speaks against the problem's best decisions."""

    regret: Array
    recommend_regret: Array
    doubt: str | None


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
    world = streams.problem, streams.held_out, streams.held_out_best
    return Measured(regret, recommended, soundness.doubt(*world, run.least))


def _next_pace(most: int, done: int, seconds: float) -> int:
    """Decisions until the next tick, so that it comes soon; the numbers do not depend on it."""
    return max(1, min(most, int(done * SOON / max(seconds, 1e-9)), 16 * done))


def _regret_of_recommend(policy: Any, streams: Streams) -> float:
    contexts, problem = streams.held_out, streams.problem
    with OwnCode(PolicyError, f"{name_of(policy)} must recommend for every context"):
        if isinstance(policy, RecommendsMany):
            decisions = problem.decision.points(policy.recommend_many(contexts))
        elif isinstance(policy, Recommends):
            decisions = problem.decision.points([policy.recommend(x) for x in contexts])
        else:
            return float("nan")
    regrets = streams.held_out_best - problem.mean_many(contexts, decisions)
    soundness.check_regrets(problem, contexts, regrets)
    return float(regrets.mean())


def compile_all(policy: Any, problem: Problem) -> None:
    """Compile, or load from disk, what a replication will call."""
    if problem.functions.compiled:
        mean_entry()
        if isinstance(policy, CompiledPolicy):
            streams = Streams(problem, SeedSequence(0))
            run_of(policy, streams, 1).segment(streams.block(sloped(policy)), 0, 0, 0.0)
            policy.recommend_many(streams.held_out[:1])  # type: ignore[attr-defined]
