"""The package equals the plain NumPy of examples/minimal.py, decision by decision."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.compiling import Array
from tests import worlds

HORIZON = 1500
STEP, WIDTH = 0.25, 0.3
Pair = tuple[Any, Callable[[], Any]]


def static(problem: ca.Problem, probe: Any) -> Pair:
    policy = ca.StaticKWSA(
        problem.context, problem.decision, bins=5, step=STEP, width=WIDTH, probe=probe
    )
    m, start = worlds.minimal(), np.full(problem.decision.dim, 0.5)
    return policy, lambda: m.Static(5, lambda: m.OneBin(start, STEP, WIDTH, probe))


def adaptive(problem: ca.Problem, probe: Any, inherit: Any) -> Pair:
    policy = ca.AdaptiveKWSA(
        problem.context,
        problem.decision,
        depth=3,
        split_after=[2, 5, 11],
        step=STEP,
        width=WIDTH,
        probe=probe,
        inherit=inherit,
    )
    m, centre = worlds.minimal(), np.full(problem.decision.dim, 0.5)

    def new_bin(start: Array = centre, count: int = 1) -> Any:
        return m.OneBin(start, STEP, WIDTH, probe, count)

    keep = inherit == "iterate-and-count"
    return policy, lambda: m.Adaptive([2, 5, 11], new_bin, keep)


def uniform(problem: ca.Problem) -> Pair:
    policy = ca.UniformUCB(problem.context, problem.decision, bins=3, arms=3, scale=0.3)
    m = worlds.minimal()
    return policy, lambda: m.Static(3, lambda: m.UCB(3, problem.decision.dim, 0.3))


def check(problem: ca.Problem, pair: Pair) -> None:
    policy, make_reference = pair
    contexts, noises = worlds.drawn(problem, 7, HORIZON)
    reference, expected = make_reference(), np.empty((HORIZON, problem.decision.dim))
    for t, x in enumerate(contexts):
        expected[t] = reference.ask(x)
        reference.tell(problem.mean_payoff(x, expected[t]) + problem.noise * noises[t])

    live = policy.copy()
    decisions = worlds.play(live, problem, contexts, noises)
    np.testing.assert_allclose(decisions, expected, rtol=1e-12, atol=1e-12)

    run = ca.simulate(policy, problem, horizon=HORIZON, rng=7, checkpoints=range(1, HORIZON + 1))
    best = problem.best_many(contexts)[1]
    payoffs = [problem.mean_payoff(x, y) for x, y in zip(contexts, expected, strict=True)]
    np.testing.assert_allclose(run.regret[0], np.cumsum(best - payoffs), rtol=1e-9, atol=1e-12)
    states = run.policies[0].life.model.state, live.life.model.state
    for ours, theirs in zip(*states, strict=True):  # the compiled run is the live policy
        np.testing.assert_array_equal(ours.view(np.int64), theirs.view(np.int64))


@pytest.mark.parametrize("dx", [0, 1, 2, 3])
@pytest.mark.parametrize("dy", [1, 2, 5])
def test_static(dx: int, dy: int) -> None:
    problem = worlds.smooth(dx, dy)
    check(problem, static(problem, "forward"))


@pytest.mark.parametrize("dx", [0, 1, 2, 3])
@pytest.mark.parametrize("dy", [1, 3, 4])
def test_adaptive(dx: int, dy: int) -> None:
    problem = worlds.smooth(dx, dy)
    check(problem, adaptive(problem, "forward", "iterate"))


@pytest.mark.parametrize(("dx", "dy"), [(0, 1), (0, 5), (1, 2), (2, 3), (3, 4)])
def test_uniform(dx: int, dy: int) -> None:
    problem = worlds.smooth(dx, dy)
    check(problem, uniform(problem))


@pytest.mark.parametrize("probe", ["alternate", "central"])
@pytest.mark.parametrize(("dx", "dy"), [(0, 1), (1, 2), (2, 5)])
def test_corrections(dx: int, dy: int, probe: str) -> None:
    problem = worlds.smooth(dx, dy)
    check(problem, static(problem, probe))
    check(problem, adaptive(problem, probe, "iterate-and-count"))


def test_it_fits_on_a_page() -> None:
    lines = (worlds.ROOT / "examples" / "minimal.py").read_text().splitlines()
    assert len(lines) <= 120
