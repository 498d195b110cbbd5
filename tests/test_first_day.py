"""What the first day can cost: the formulas, and the real policy against them."""

import json
import re
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.errors import SettingsError
from continuarm.power import signal_needed


def deviations(rng: np.random.Generator, n: int, dy: int, reach: float, kind: str) -> Array:
    if kind == "even":
        return rng.uniform(-reach, reach, (n, dy))
    return reach * rng.choice([-1.0, 1.0], (n, dy))


def bowl(rng: np.random.Generator, dy: int) -> Array:
    """A random positive definite matrix, not diagonal."""
    root = rng.normal(size=(dy, dy))
    return np.asarray(root @ root.T)


# The formulas


@pytest.mark.parametrize("kind", ["even", "ends"])
@pytest.mark.parametrize("dy", [1, 3])
def test_the_slope_averages_out_and_the_curvature_is_what_a_decision_costs(
    kind: str, dy: int
) -> None:
    """Equations F3 and F4, for any slope and any Hessian."""
    rng = np.random.default_rng(dy)
    slope, hessian = rng.normal(size=dy), bowl(rng, dy)
    day = ca.FirstDay(
        decisions=100, noise=1.0, gain=0.1, curvature=np.trace(hessian), reach=0.2, dimensions=dy
    )
    e = deviations(rng, 400_000, dy, 0.2, kind)
    cost = 0.5 * np.einsum("ni,ij,nj->n", e, hessian, e) - e @ slope
    error = cost.std() / np.sqrt(len(cost))
    assert abs(cost.mean() - getattr(day.per_decision, kind)) < 5.0 * error


def test_no_concave_quadratic_has_more_curvature_than_its_range_allows() -> None:
    """Equation F2, tr H <= 8 range, with equality for a sum of parabolas around the middle."""
    rng = np.random.default_rng(0)
    grid = rng.uniform(size=(4000, 2))
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    points = np.vstack([grid, corners, [[0.5, 0.5]]])
    for _ in range(200):
        hessian, best = bowl(rng, 2), rng.uniform(size=2)
        e = points - best
        payoff = -0.5 * np.einsum("ni,ij,nj->n", e, hessian, e)
        assert np.trace(hessian) <= 8.0 * np.ptp(payoff)
    middle = -0.5 * ((points - 0.5) ** 2 @ np.array([3.0, 5.0]))
    assert np.ptp(middle) * 8.0 == pytest.approx(8.0)


def test_no_single_decision_and_no_start_on_an_edge_costs_more_than_its_bound() -> None:
    """Equations F6 and F7 over peaks inside and outside the box; both bounds are attained."""
    reach, y = 0.1, np.linspace(0.0, 1.0, 1001)
    day = ca.first_day(noise=1.0, range=1.0, reach=reach)
    worst, edge = [], []
    for best in [*np.linspace(0.0, 1.0, 101), 1.5, 3.0, 1000.0]:
        payoff = -((y - best) ** 2)
        payoff /= np.ptp(payoff)
        if best <= 1.0:
            worst.append(np.abs(payoff[100:] - payoff[:-100]).max())
        if best >= 1.0:
            edge.append(payoff[-1] - payoff[-101])
    assert max(worst) == pytest.approx(day.worst_decision)
    assert day.at_edge is not None
    assert 0.99 * day.at_edge < max(edge) <= day.at_edge


@pytest.mark.parametrize(("kind", "dy", "dx"), [("even", 1, 0), ("ends", 1, 2), ("even", 2, 1)])
def test_an_improvement_is_seen_in_four_of_five_days_when_the_formula_says(
    kind: str, dy: int, dx: int
) -> None:
    """Equations F8 to F10: a test of the slopes among all others, at the predicted number.

    Of 400 days a share of 0.8 is seen, with a standard error of 0.02: five of them, and 0.03 for
    what n - p leaves out at some 60 decisions.
    """
    rng = np.random.default_rng(dx)
    day = ca.first_day(noise=0.2, range=1.0, dimensions=dy, contexts=dx, reach=0.2, mean=1.0)
    n = int(getattr(day.seen_after, kind))
    eta = day.curvature / dy
    slope = np.full(dy, np.sqrt(2.0 * eta * day.gain / dy))
    seen = 0
    for _ in range(400):
        u = rng.uniform(-1.0, 1.0, (n, dx))
        e = deviations(rng, n, dy, day.reach, kind)
        payoff = e @ slope - 0.5 * eta * (e**2).sum(axis=1) + 0.2 * rng.normal(size=n)
        bends = e**2 if kind == "even" else np.empty((n, 0))  # at the ends it is a constant
        columns = np.column_stack([e, bends, np.ones(n), u, u**2])
        inverse = np.linalg.inv(columns.T @ columns)
        theta = inverse @ columns.T @ payoff
        left = payoff - columns @ theta
        freedom = n - columns.shape[1]
        f = theta[:dy] @ np.linalg.inv(inverse[:dy, :dy]) @ theta[:dy] / dy
        seen += f * freedom / (left @ left) > stats.f.ppf(0.95, dy, freedom)
    assert abs(seen / 400 - 0.8) < 0.13


def test_the_cost_until_seen_is_the_same_at_any_reach_and_any_curvature() -> None:
    """Equation F11, but for the p decisions that fit the other coefficients."""
    for dy in (1, 4):
        for reach in (0.001, 0.01, 0.1):
            for spread in (0.5, 5.0):
                day = ca.first_day(noise=20.0, range=spread, mean=1.0, dimensions=dy, reach=reach)
                alone = signal_needed(dy) * dy * 20.0**2 / (4.0 * day.gain)
                fitting = day.coefficients * day.per_decision.ends
                assert day.cost_until_seen == pytest.approx(alone + fitting)
                assert day.cost_until_seen == pytest.approx(alone, rel=0.02)
                for seen, cost in zip(day.seen_after, day.per_decision, strict=True):
                    assert seen * cost == pytest.approx(day.cost_until_seen, rel=0.02)


def test_the_reaches_for_time_and_budget_do_what_they_say() -> None:
    """Equation F12."""
    day = ca.first_day(noise=2.0, range=1.0, mean=1.5, contexts=2, budget=0.01)
    assert day.reach_in_time is not None
    assert day.reach_in_budget is not None
    assert day.with_reach(day.reach_in_time).seen_after.even == pytest.approx(day.decisions)
    kept = day.with_reach(day.reach_in_budget)
    assert kept.day.ends == pytest.approx(day.budget_of_day)
    assert ca.first_day(noise=50.0, range=1.0).reach_in_time is None
    assert ca.first_day(noise=2.0, range=1.0).reach_in_budget is None
    assert ca.first_day(noise=2.0, range=1.0, decisions=2).reach_in_time is None


@pytest.mark.parametrize(
    ("noise", "budget", "words"),
    [
        (0.2, 0.05, "on the improvement is seen in time, too"),
        (2.0, 0.02, "is seen in time if decisions lean to its ends"),
        (4.5, 0.02, "budget and time cannot both be had"),
    ],
)
def test_budget_and_time_are_weighed_in_words(noise: float, budget: float, words: str) -> None:
    day = ca.first_day(noise=noise, range=1.0, mean=1.5, budget=budget)
    assert words in " ".join(str(day).split())


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (0.1, "can be seen within the 5,000 decisions."),
        (1.0, "can be seen within the day, unless the payoff is flat."),
        (2.0, "can only just be seen within the day: a reach of 0.13 would be needed."),
        (4.5, "cannot be seen within the 5,000 decisions: a reach of 0.28 would be needed."),
        (50.0, "cannot be seen within the 5,000 decisions, nor surely at any other reach."),
    ],
)
def test_whether_the_day_is_long_enough_is_said_in_words(noise: float, words: str) -> None:
    day = ca.first_day(noise=noise, range=1.0, mean=1.5)
    assert words in " ".join(str(day).split())


def test_a_day_can_be_read_compared_and_written_as_json() -> None:
    day = ca.first_day(noise=2.0, range=1.0)
    assert "an improvement of 0.05 is seen after 3,928 to 11,777" in repr(day)
    assert day == ca.first_day(noise=2.0, range=1.0)
    report = json.loads(json.dumps(day.to_dict(), allow_nan=False))
    assert report["seen_after"]["even"] == day.seen_after.even
    assert report["budget_of_day"] is None
    assert [row["reach"] for row in report["frontier"]] == [0.02, 0.05, 0.1, 0.2, 0.5]
    assert len({*day.table().columns}) == len(day.table().columns)
    assert 0.03 in [row[0] for row in day.with_reach(0.03).table().rows]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"noise": -1.0}, "noise <= 1e+30` must hold, but got -1.0"),
        ({"noise": float("nan")}, "but got nan"),
        ({"range": 0.0}, "range <= 1e+30` must hold, but got 0.0"),
        ({"mean": 1e300}, "but got 1e+300"),
        ({"decisions": 0}, "`decisions` must be a whole number >= 1, but got 0"),
        ({"reach": 0.7}, "`0.0001 <= reach <= 0.5` must hold, but got 0.7"),
        ({"improvement": 2.0}, "must lie within the payoff's range, but got 2 > 1"),
        ({"budget": 0.01}, "`mean` is needed with a budget, but got None"),
        ({"dimensions": 500, "contexts": 500}, "coefficients"),
    ],
)
def test_numbers_that_break_a_rule_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        ca.first_day(**{"noise": 2.0, "range": 1.0, **given})


# The real policy


def shop(spread: float, noise: float, dx: int, dy: int) -> ca.Problem:
    """A payoff that falls by `spread` from the middle of the box to its corners."""

    def profit(x: Array, y: Array) -> float:
        total = 2.0
        for j in range(dy):
            total -= 4.0 * spread / dy * (y[j] - 0.5) ** 2
        return total

    return ca.Problem(
        context=ca.Box.unit(dx),
        decision=ca.Box.unit(dy),
        mean_payoff=profit,
        best_decision=lambda x: np.full(dy, 0.5),
        noise=noise,
    )


def safe(context: ca.Box, decision: ca.Box, *, rng: Any, start: float) -> ca.Policy:
    return ca.Policy(
        context,
        decision,
        partition=ca.EvidenceTree(),
        learner=ca.ResponseSurface(reach=0.1),
        start=np.full(decision.dim, start),
        rng=rng,
    )


@pytest.mark.parametrize(
    ("noise", "dx", "dy"), [(2.0, 1, 1), (10.0, 1, 1), (2.0, 3, 1), (10.0, 1, 3)]
)
def test_a_day_of_the_policy_costs_what_was_foretold(noise: float, dx: int, dy: int) -> None:
    """The start is already the best, so all that is done is cost.

    Foretold is an estimate: at least what even draws cost where noise is so large that nothing is
    learned, at most `astray`. The limits are three standard errors of 20 seeds wider.
    """
    day = ca.first_day(noise=noise, range=1.0, dimensions=dy, contexts=dx, decisions=3000)
    run = ca.simulate(
        partial(safe, start=0.5),
        shop(1.0, noise, dx, dy),
        horizon=day.decisions,
        replications=20,
        rng=1,
        checkpoints=1,
    )
    cost, error = run.mean[-1], run.standard_error[-1]
    assert day.day.even - 3.0 * error < cost < day.astray + 3.0 * error


def slope_is_seen(context: Array, decision: Array, payoff: Array, start: float) -> bool:
    """Whether a quadratic around the start, fitted to what was done, points to the best."""
    u, e = 2.0 * context - 1.0, decision - start
    dy = e.shape[1]
    columns = np.column_stack([e, e**2, np.ones(len(u)), u, u**2])
    inverse = np.linalg.pinv(columns.T @ columns)
    theta = inverse @ columns.T @ payoff
    left = payoff - columns @ theta
    variance = left @ left / (len(payoff) - columns.shape[1])
    chi = theta[:dy] @ np.linalg.inv(variance * inverse[:dy, :dy]) @ theta[:dy]
    return bool(chi > stats.chi2.ppf(0.95, dy) and theta[:dy].sum() > 0.0)


@pytest.mark.parametrize(("noise", "dx", "dy"), [(1.0, 1, 1), (2.0, 0, 1), (1.0, 1, 2)])
def test_the_policy_sees_an_improvement_when_it_was_foretold_within_a_factor_of_two(
    noise: float, dx: int, dy: int
) -> None:
    """The start is 0.2 of each side away from the best.

    Foretold are `ends` to `even` decisions for four of five days. The policy leans to the ends,
    and spends what it believes to know, which costs sight: so half of the one and twice the other
    are the limits. Of 20 days with a chance of 0.8, 11 or fewer are seen once in a hundred times;
    of 20 with a chance of 0.5, 16 or more.
    """
    day = ca.first_day(
        noise=noise, range=1.0, mean=1.0, improvement=0.16, dimensions=dy, contexts=dx
    )
    early, late = int(day.seen_after.ends / 2), int(day.seen_after.even * 2)
    world = shop(1.0, noise, dx, dy)
    seen = np.zeros(2)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        policy = safe(world.context, world.decision, rng=seed, start=0.3)
        x, y, z = rng.random((late, dx)), np.empty((late, dy)), np.empty(late)
        for t in range(late):
            decision = policy.ask(x[t])
            y[t] = decision.value
            z[t] = 2.0 - 4.0 / dy * ((y[t] - 0.5) ** 2).sum() + noise * rng.normal()
            policy.tell(decision, z[t])
        seen += [slope_is_seen(x[:n], y[:n], z[:n], 0.3) for n in (early, late)]
    assert seen[0] < 16
    assert seen[1] > 11
