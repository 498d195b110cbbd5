"""simulate: a policy against a problem, many times over."""

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import Event, Lock
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from continuarm.box import Box
from continuarm.checks import REAL, whole
from continuarm.errors import BestDecisionWarning, SettingsError
from continuarm.lab.replication import compile_all, replicate
from continuarm.lab.result import Result
from continuarm.lab.runs import sloped
from continuarm.lab.streams import Streams, generator_seed
from continuarm.live.abilities import CompiledPolicy, DecidesAtOnce, LivePolicy, name_of
from continuarm.live.named.by_name import maker_of
from continuarm.problems import Problem
from continuarm.problems import problem as problem_named
from continuarm.sets import same_set

__all__ = ["simulate"]

DEFAULT_CHECKPOINTS = 31
TICK = 2**15  # decisions between two reports of progress


def simulate(
    policy: Any,
    problem: Problem | str,
    *,
    horizon: int,
    replications: int = 1,
    rng: np.random.Generator | int | None = None,
    checkpoints: int | Sequence[int] | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Run a policy on a problem, `replications` times with random numbers of their own.

    Parameters
    ----------
    policy : a policy (copied with its state, and not changed), the name of one, a pair of name and
        settings (a dict, or a function of the horizon), or a callable that makes one for two
        boxes. By name or by a callable, it is told what it wants to know: `horizon`, `curvature`,
        `curvature_max`, `problem`, `rng`.
    problem : a `Problem`, or the name of one.
    horizon : decisions per replication.
    rng : a seed or generator. The same seed gives every policy the same contexts and, where the
        noise is additive, the same noise; nothing depends on `checkpoints` or `workers`.
    checkpoints : after how many decisions the regret is noted: the numbers, or how many, spaced
        evenly in logarithm. The horizon is always the last.
    workers : threads, one per core by default; what runs in Python shares one core.
    progress : called with the number of decisions done since it was called last.

    >>> result = simulate("static-kwsa", "two-communities", horizon=1000, replications=4, rng=0)
    >>> result.regret.shape[0], int(result.checkpoints[-1])
    (4, 1000)
    """
    if isinstance(problem, str):
        problem = problem_named(problem)
    if not isinstance(problem, Problem):
        raise SettingsError(f"`problem` must be a Problem or a name, but got {problem!r}")
    horizon = whole("horizon", horizon, 1)
    replications = whole("replications", replications, 1)
    workers = os.cpu_count() or 1 if workers is None else whole("workers", workers, 1)
    marks = _checkpoints(checkpoints, horizon)
    make = _maker(policy, problem, horizon)
    root = generator_seed(rng)
    streams = [
        Streams(problem, SeedSequence(root.entropy, spawn_key=(*root.spawn_key, r)))
        for r in range(replications)
    ]
    policies = [make(stream.policy) for stream in streams]
    compile_all(policies[0], problem)
    stop = Event()
    tick = _ticker(progress, stop)
    started = time.perf_counter()
    with ThreadPoolExecutor(min(workers, replications)) as pool:
        pairs = zip(policies, streams, strict=True)
        runs = [pool.submit(replicate, *pair, marks, tick) for pair in pairs]
        try:
            curves = [run.result() for run in runs]
        except BaseException:  # an error or Ctrl-C: the other threads end at their next tick
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    tick(0)
    doubts = [curve.doubt for curve in curves if curve.doubt is not None]
    if doubts:
        warnings.warn(doubts[0], BestDecisionWarning, stacklevel=2)
    return Result(
        policy=_name(policy, policies[0]),
        problem=problem.name,
        horizon=horizon,
        replications=replications,
        checkpoints=marks,
        regret=np.array([curve.regret for curve in curves]),
        recommend_regret=np.array([curve.recommend_regret for curve in curves]),
        seconds=time.perf_counter() - started,
        policies=policies,
        feedback=problem.feedback.in_words,
    )


def _maker(policy: Any, problem: Problem, horizon: int) -> Callable[[np.random.Generator], Any]:
    """What makes the policy of one replication from its random numbers."""
    if isinstance(policy, LivePolicy) and not isinstance(policy, type):
        _check_fit(policy, problem)
        if isinstance(policy, CompiledPolicy):
            return policy.rehearsed
        if isinstance(policy, DecidesAtOnce):
            return lambda rng: policy
        raise SettingsError(
            "a policy of your own learns, so each replication needs a new one: give its maker, "
            f"but got {policy!r}"
        )
    name, settings = policy if isinstance(policy, tuple) and len(policy) == 2 else (policy, {})
    if callable(settings):
        settings = settings(horizon)
    if not isinstance(settings, Mapping):
        raise SettingsError(f"settings must be given by name, but got {settings!r}")
    maker, known = maker_of(name), problem.knowledge | {"horizon": horizon}

    def make(rng: np.random.Generator) -> Any:
        made = maker(problem.context, problem.decision, known | {"rng": rng}, settings)
        if not isinstance(made, LivePolicy):
            raise SettingsError(f"a policy must have `ask` and `tell`, but got {made!r}")
        _check_fit(made, problem)
        return made

    return make


def _check_fit(policy: Any, problem: Problem) -> None:
    for option in ("context", "decision"):
        own, world = getattr(policy, option, None), getattr(problem, option)
        if isinstance(own, Box) and not same_set(own, world):
            raise SettingsError(
                f"policy and problem must have the same {option} box, but got {own} and {world}"
            )
    if getattr(policy, "ttl_seconds", None) is not None:
        raise SettingsError(
            "`ttl_seconds` needs a clock, which a simulation has not: give `ttl`, "
            f"but got ttl_seconds={policy.ttl_seconds}"
        )
    if sloped(policy) and not problem.has_gradient:
        raise SettingsError(
            f"{name_of(policy)} needs a problem with `gradient`, but {problem.name} has none"
        )


def _checkpoints(given: int | Sequence[int] | None, horizon: int) -> NDArray[np.int64]:
    if given is None or isinstance(given, REAL):
        count = DEFAULT_CHECKPOINTS if given is None else whole("checkpoints", given, 1)
        spaced = np.geomspace(min(10, horizon), horizon, count) if count > 1 else [horizon]
        return np.unique([*np.rint(spaced).astype(np.int64).tolist(), horizon])
    marks = [whole("checkpoints", mark, 1) for mark in given]
    if marks and max(marks) > horizon:
        raise SettingsError(f"`checkpoints <= {horizon}` must hold, but got {max(marks)}")
    return np.unique([*marks, horizon])


def _ticker(progress: Callable[[int], None] | None, stop: Event) -> Callable[[int], None]:
    """Report progress from any thread, now and then, and end the thread when told to."""
    lock, waiting = Lock(), [0]

    def tick(done: int) -> None:
        if stop.is_set():
            raise CancelledError
        if progress is None:
            return
        with lock:
            waiting[0] += done
            if waiting[0] >= TICK or done == 0:
                progress(waiting[0])
                waiting[0] = 0

    return tick


def _name(policy: Any, made: Any) -> str:
    if isinstance(policy, tuple):
        policy = policy[0]
    if isinstance(policy, str):
        return policy
    if isinstance(policy, LivePolicy) and not isinstance(policy, type):
        return name_of(made)
    return str(getattr(policy, "__name__", type(policy).__name__))
