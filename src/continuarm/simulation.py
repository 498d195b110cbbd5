"""simulate: a policy against a problem, many times over."""

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import Event, Lock
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from continuarm.checks import REAL, whole
from continuarm.errors import SettingsError
from continuarm.policies import BinnedPolicy, Fixed, Oracle, policy_for
from continuarm.problems import Problem
from continuarm.problems import problem as problem_named
from continuarm.replication import Streams, compile_all, generator_seed, replicate
from continuarm.result import Result

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
    policy : a policy (copied with its state, and not changed), the name or the class of one, or a
        callable `(context, decision, horizon, rng) -> policy` with `ask` and `tell`.
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
    )


def _maker(policy: Any, problem: Problem, horizon: int) -> Callable[[np.random.Generator], Any]:
    """What makes the policy of one replication from its random numbers."""
    if isinstance(policy, type) and issubclass(policy, BinnedPolicy):
        policy = policy(problem.context, problem.decision)  # type: ignore[call-arg]
    elif isinstance(policy, str):
        policy = policy_for(policy, problem)
    if isinstance(policy, Oracle):
        return lambda rng: policy
    if isinstance(policy, Fixed):
        bound = policy.bound_to(problem)
        return lambda rng: bound
    if isinstance(policy, BinnedPolicy):
        prototype = policy.copy()
        _check_fit(prototype, problem)
        if policy.ttl_seconds is not None:
            raise SettingsError(
                "`ttl_seconds` needs a clock, which a simulation has not: give `ttl`, "
                f"but got ttl_seconds={policy.ttl_seconds}"
            )
        prototype.forget_all()
        prototype.prepare(horizon, problem)
        if prototype.engine.uses_gradient and not problem.has_gradient:
            raise SettingsError(
                f"{type(policy).__name__} needs a problem with `gradient`, "
                f"but {problem.name} has none"
            )
        return prototype.copy
    if callable(policy):
        return lambda rng: _own_policy(policy(problem.context, problem.decision, horizon, rng))
    raise SettingsError(
        "`policy` must be a policy, its name, or a callable (context, decision, horizon, rng), "
        f"but got {policy!r}"
    )


def _own_policy(policy: Any) -> Any:
    for verb in ("ask", "tell"):
        if not callable(getattr(policy, verb, None)):
            raise SettingsError(f"a policy must have `ask` and `tell`, but got {policy!r}")
    return policy


def _check_fit(policy: BinnedPolicy, problem: Problem) -> None:
    for option in ("context", "decision"):
        own, world = getattr(policy, option), getattr(problem, option)
        same = own.dim == world.dim and (own.low == world.low).all()
        if not (same and (own.high == world.high).all()):
            raise SettingsError(
                f"policy and problem must have the same {option} box, but got {own} and {world}"
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
    if isinstance(policy, str):
        return policy
    if isinstance(made, BinnedPolicy | Oracle | Fixed):
        return type(made).__name__
    return str(getattr(policy, "__name__", type(policy).__name__))
