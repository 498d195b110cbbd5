"""One contract for every named problem."""

import itertools
import json
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.errors import InputError, SettingsError
from continuarm.jit import Array
from continuarm.problems import PROBLEMS

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("two-communities", {}),
    ("hard", {}),
    ("hard", {"dx": 3, "dy": 4, "cells": 3, "seed": 5}),
    ("quadratic", {}),
    ("quadratic", {"dx": 0, "dy": 1}),
    ("quadratic", {"dx": 3, "dy": 6, "condition": 1000.0, "curvature": 0.1, "seed": 4}),
    ("quadratic", {"dx": 1, "dy": 8, "rotation": False}),
    ("linear-demand", {}),
    ("linear-demand", {"dx": 0, "dy": 1}),
    ("linear-demand", {"dx": 4, "dy": 8, "seed": 2}),
    ("logit-demand", {}),
    ("logit-demand", {"dx": 0, "dy": 1}),
    ("logit-demand", {"dx": 3, "dy": 2, "seed": 3}),
    ("orange-juice", {}),
]
IDS = [f"{name}-{i}" for i, (name, _) in enumerate(SETTINGS)]


@pytest.fixture(scope="module", params=SETTINGS, ids=IDS)
def world(request: Any) -> ca.Problem:
    name, settings = request.param
    return ca.problem(name, **settings)


def points(world: ca.Problem, n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(11)
    decisions = world.decision.from_unit(rng.random((n, world.decision.dim)))
    return world.draw_contexts(rng, n), decisions


class TestEveryProblem:
    def test_all_named_problems_are_tried(self, world: ca.Problem) -> None:
        assert {name for name, _ in SETTINGS} == set(PROBLEMS)
        assert world.functions.compiled

    def test_contexts_are_seeded_and_inside(self, world: ca.Problem) -> None:
        one = world.draw_contexts(np.random.default_rng(1), 100)
        two = world.draw_contexts(np.random.default_rng(1), 100)
        np.testing.assert_array_equal(one, two)
        world.context.points(one)

    def test_no_decision_beats_the_best(self, world: ca.Problem) -> None:
        contexts, _ = points(world, 30)
        best, payoffs = world.best_many(contexts)
        world.decision.points(best)
        rng = np.random.default_rng(2)
        for x, y, payoff in zip(contexts, best, payoffs, strict=True):
            near = y + world.decision.span * rng.normal(0, 1e-4, (20, y.size))
            far = world.decision.from_unit(rng.random((20, y.size)))
            for other in np.clip(
                np.concatenate([near, far]), world.decision.low, world.decision.high
            ):
                assert world.mean_payoff(x, other) <= payoff + 1e-12

    def test_the_best_decision_is_exact(self, world: ca.Problem) -> None:
        """At an interior optimum the gradient, per unit of the cube, is 0 up to 1e-9 M5."""
        contexts, _ = points(world, 50)
        best, _ = world.best_many(contexts)
        assert world.curvature_max is not None
        for x, y in zip(contexts, best, strict=True):
            assert ((world.decision.low < y) & (y < world.decision.high)).all()
            slope = world.gradient(x, y) * world.decision.span
            assert np.abs(slope).max() < 1e-9 * max(world.curvature_max, 1.0)

    def test_the_gradient_is_that_of_the_mean_payoff(self, world: ca.Problem) -> None:
        contexts, decisions = points(world, 10)
        inner = world.decision.low + 0.01 * world.decision.span
        outer = world.decision.high - 0.01 * world.decision.span
        for x, y in zip(contexts, np.clip(decisions, inner, outer), strict=True):
            for i, h in enumerate(1e-5 * world.decision.span):
                step = h * np.eye(y.size)[i]
                rise = world.mean_payoff(x, y + step) - world.mean_payoff(x, y - step)
                assert rise / (2 * h) == pytest.approx(world.gradient(x, y)[i], abs=1e-6)

    def test_the_curvatures_bound_the_hessian(self, world: ca.Problem) -> None:
        """Minus the Hessian on the unit cube, by differences of the gradient.

        Between the points of the grid on which the logits' curvatures are looked for, the
        smallest may be missed by a little.
        """
        assert world.curvature is not None
        assert world.curvature_max is not None
        slack = 0.02 * world.curvature_max if "logit" in world.name else 1e-4
        contexts, decisions = points(world, 20)
        span = world.decision.span
        for x, y in zip(contexts, world.decision.to_unit(decisions), strict=True):
            v = np.clip(y, 1e-5, 1 - 1e-5)
            columns = []
            for i in range(v.size):
                step = 1e-5 * np.eye(v.size)[i]
                up = world.gradient(x, world.decision.from_unit(v + step)) * span
                down = world.gradient(x, world.decision.from_unit(v - step)) * span
                columns.append((down - up) / 2e-5)
            eigenvalues = np.linalg.eigvalsh((np.array(columns) + np.array(columns).T) / 2)
            assert eigenvalues[0] > world.curvature - slack
            assert eigenvalues[-1] < world.curvature_max + slack

    def test_payoffs_average_to_the_mean(self, world: ca.Problem) -> None:
        """Within six standard errors of 4,000 payoffs: fails by chance once in 10^9."""
        contexts, decisions = points(world, 3)
        rng = np.random.default_rng(3)
        for x, y in zip(contexts, decisions, strict=True):
            payoffs = np.array([world.payoff(x, y, rng) for _ in range(4_000)])
            error = payoffs.std() / np.sqrt(len(payoffs))
            assert abs(payoffs.mean() - world.mean_payoff(x, y)) < 6 * error

    def test_a_decision_outside_the_box_is_refused(self, world: ca.Problem) -> None:
        contexts, decisions = points(world, 1)
        for bad in (world.decision.high + 1, world.decision.low - 1, decisions[0] * np.nan):
            with pytest.raises(InputError):
                world.mean_payoff(contexts[0], bad)

    def test_the_optimum_found_numerically_is_the_declared_one(self, world: ca.Problem) -> None:
        unknown = ca.Problem(
            context=world.context,
            decision=world.decision,
            mean_payoff=world.sources.mean_payoff,
        )
        contexts, _ = points(world, 200)
        found, declared = unknown.best_many(contexts)[1], world.best_many(contexts)[1]
        np.testing.assert_allclose(found, declared, atol=1e-9)


def test_the_two_communities_of_the_paper() -> None:
    world = ca.problem("two-communities", noise=0.5)
    assert world.noise == 0.5
    assert world.mean_payoff([0.1], [0.7, 0.4]) == pytest.approx(-(0.3**2) - 0.2**2)
    assert world.mean_payoff([0.9], [0.7, 0.4]) == pytest.approx(-(0.1**2) - (0.4 - 1 / 3) ** 2)
    best, _ = world.best_many(np.linspace(0, 1, 1001)[:, None])
    low, high = best.min(axis=0), best.max(axis=0)
    np.testing.assert_allclose(low, [0.439, 0.272], atol=5e-4)
    np.testing.assert_allclose(high, [0.667, 0.5], atol=5e-4)


def test_orange_juice_is_the_world_that_was_fitted() -> None:
    from importlib.resources import files

    data = json.loads((files("continuarm.problems") / "orange_juice.json").read_text("utf-8"))
    world = ca.problem("orange-juice")
    assert "bayesm" in data["provenance"]
    for store in data["stores"]:
        prices = world.best_decision(store["demographics"])
        np.testing.assert_allclose(prices, store["best_prices"], atol=2e-6)
        odds = np.exp(store["appeal"] - store["price_sensitivity"] * prices)
        payoff = (prices - data["unit_costs"]) @ odds / (1 + odds.sum())
        assert world.best_payoff(store["demographics"]) == pytest.approx(payoff, abs=2e-6)


@pytest.mark.parametrize("dx", [0, 1, 3])
@pytest.mark.parametrize("dy", [1, 2, 4])
def test_every_seed_of_the_demand_problems_is_sound(dx: int, dy: int) -> None:
    """Best prices inside the box at the corners, concave, and probabilities that are ones."""
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=dx))).reshape(2**dx, dx)
    for seed in range(40):
        logit = ca.problem("logit-demand", dx=dx, dy=dy, seed=seed)
        linear = ca.problem("linear-demand", dx=dx, dy=dy, seed=seed)
        assert logit.curvature is not None
        assert logit.curvature > 0
        for x in corners:
            for world in (logit, linear):
                best = world.sources.best_decision
                assert best is not None
                world.decision.point(best(x))
    ends = linear.decision.low, linear.decision.high
    for x in corners:
        for p in itertools.product(*zip(*ends, strict=True)):
            margins = [linear.payoff(x, p, np.random.default_rng(k)) for k in range(400)]
            mean = linear.mean_payoff(x, p)
            error = np.std(margins) / 20
            assert abs(float(np.mean(margins)) - mean) < 6 * max(float(error), 0.01)


def test_names_and_settings_are_checked() -> None:
    with pytest.raises(SettingsError, match=r"must be one of .*, but got 'twocommunities'"):
        ca.problem("twocommunities")
    with pytest.raises(SettingsError, match=r"takes the settings \['noise'\], but got \['dy'\]"):
        ca.problem("two-communities", dy=3)
    for name, bad in (
        ("hard", {"dx": 0}),
        ("hard", {"dx": 9, "cells": 100}),
        ("quadratic", {"condition": 0.5}),
        ("quadratic", {"condition": "much"}),
        ("quadratic", {"dy": 0}),
        ("quadratic", {"dx": "abc"}),
        ("quadratic", {"dy": 2.5}),
        ("linear-demand", {"dy": 0}),
        ("logit-demand", {"dy": 6}),
        ("two-communities", {"noise": -1}),
        ("two-communities", {"noise": "loud"}),
    ):
        with pytest.raises(SettingsError, match=r"must .*, but got"):
            ca.problem(name, **bad)
