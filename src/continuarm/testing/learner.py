"""check_learner: what runs in a bin decides without a trace, and the same live and compiled."""

from collections.abc import Callable
from functools import partial

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.core.learners import protocol as learner
from continuarm.core.learners.protocol import LearnerOptions
from continuarm.core.partitions.grid import Grid
from continuarm.core.partitions.tree import Tree
from continuarm.errors import SettingsError
from continuarm.lab.simulation import simulate
from continuarm.live.policy import Policy
from continuarm.problems import Problem
from continuarm.sets import Polytope
from continuarm.testing.playing import play
from continuarm.testing.policy import check_policy
from continuarm.testing.tables import check_table

__all__ = ["check_learner"]


def check_learner(options: LearnerOptions, *, dx: int = 1, dy: int = 2, rounds: int = 300) -> None:
    """Check the contract of a learner, in a grid and in a tree.

    Parameters
    ----------
    options : what a user would type, such as `KieferWolfowitz(step=1.0)`; registered, so that it
        can be saved.
    dx, dy : dimensions of context and decision.
    rounds : decisions of each trial.

    >>> from continuarm.core.learners.gradient_ascent import GradientAscent
    >>> check_learner(GradientAscent(step=0.1), rounds=50)
    """
    context = Box([0.0] * dx, [1.0] * dx, names=[f"x{i}" for i in range(dx)])
    decision = Box([0.0] * dy, [1.0] * dy, names=[f"y{i}" for i in range(dy)])
    for partition in (Grid(3), Tree([3, 9])):
        make = partial(Policy, partition=partition, learner=options)
        check_policy(make, context=context, decision=decision, rounds=min(rounds, 100))
        policy = make(context, decision, rng=0)
        _check_pure(policy, rounds)
        _check_limits(policy)
        check_table(policy)
        _check_compiled(make(context, decision, rng=1), rounds)
        _check_guards(make, context, _guarded(decision), rounds)


def _guarded(decision: Box) -> Box:
    """Values that are spaced, and coupled where there are two."""
    spaced = Box(
        decision.low, decision.high, decision.names, spacing=[0.125] + [0.0] * (decision.dim - 1)
    )
    if decision.dim == 1:
        return spaced
    return Polytope(spaced, [f"{decision.names[0]} + {decision.names[1]} <= 0.6"])


def _check_guards(make: Callable[..., Policy], context: Box, decision: Box, rounds: int) -> None:
    """Guards are kept, live and compiled, or refused when the policy is made."""
    try:
        policy = make(context, decision, rng=2)
    except SettingsError:
        return
    for value in play(policy, rounds, seed=6):
        assert decision.allows(value), f"{value} must be allowed by {decision}"
    check_table(policy)
    _check_compiled(make(context, decision, rng=3), rounds)


def _check_pure(policy: Policy, rounds: int) -> None:
    """Deciding changes nothing; asking only where the learner says so."""
    play(policy, rounds, seed=1)
    life = policy.life
    for x in np.random.default_rng(2).random((20, policy.context.dim)):
        before = policy.snapshot()
        one, two = (life.decide(x, 0.0)[0].value for _ in range(2))
        assert np.array_equal(one, two), "a decision is a function of state, context and draw"
        assert policy.snapshot() == before, "deciding must change nothing"
        arrays = [array.copy() for array in life.model.state]
        policy.ask(x)
        if not learner.counts_asking(life.model.lcfg):
            same = all(map(np.array_equal, arrays, life.model.state))
            assert same, "asking must change nothing unless `counts_asking` says so"
    policy.forget_all()


def _check_limits(policy: Policy) -> None:
    """Within limits it decides inside them, and goes on learning."""
    dy = policy.decision.dim
    within = Box(np.full(dy, 0.55), np.full(dy, 0.6))
    for x in np.random.default_rng(3).random((30, policy.context.dim)):
        decision = policy.ask(x, within=within)
        inside = (within.low <= decision.value) & (decision.value <= within.high)
        assert inside.all(), f"{decision.value} must lie in {within}"
        best = policy.recommend(x, within=within)
        assert ((within.low <= best) & (best <= within.high)).all()
        policy.forget(decision)
    play(policy, 20, seed=4)


def _mean_payoff(x: Array, y: Array) -> float:
    total = 0.0
    for i in range(y.shape[0]):
        total -= (y[i] - 0.3) ** 2
    return total


def _gradient(x: Array, y: Array) -> Array:
    slope: Array = -2.0 * (y - 0.3)
    return slope


def _best_decision(dy: int) -> Callable[[Array], Array]:
    def best_decision(x: Array) -> Array:
        return np.full(dy, 0.3)

    return best_decision


def _check_compiled(policy: Policy, rounds: int) -> None:
    """The compiled loop and the live policy make the same decisions, late payoffs included."""
    world = Problem(
        context=policy.context,
        decision=policy.decision,
        mean_payoff=_mean_payoff,
        best_decision=_best_decision(policy.decision.dim),
        gradient=_gradient,
        noise=0.1,
    )
    for delay, lost in ((0, 0.0), (5, 0.1)):
        fast, slow = (world.with_feedback(delay=delay, lost=lost) for _ in range(2))
        slow._functions = fast.functions._replace(compiled=False)
        slow.best_many = fast.best_many  # type: ignore[method-assign]
        runs = [simulate(policy, w, horizon=rounds, rng=5, checkpoints=[7]) for w in (fast, slow)]
        same = np.array_equal(runs[0].regret, runs[1].regret)
        assert same, "the compiled loop must decide as the live policy does"
