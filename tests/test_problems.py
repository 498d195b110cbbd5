"""One contract for every problem, and what a user's own problem may be."""

import functools
import itertools
import json
import math
import warnings
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.errors import InputError, ProblemError, SettingsError
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


def own(**changes: Any) -> ca.Problem:
    defaults: dict[str, Any] = {
        "context": ca.Box([0], [1]),
        "decision": ca.Box([0, 0], [5, 5]),
        "mean_payoff": lambda x, y: -((y[0] - x[0]) ** 2) - (y[1] - 1.0) ** 2,
    }
    return ca.Problem(**(defaults | changes))


def log_utility(x: Array, y: Array) -> float:
    return float(np.log(0.1 + y[0]) + x[0] * np.log(0.1 + y[1]) - 0.4 * (y[0] + y[1]))


def kink(x: Array, y: Array) -> float:
    return float(-abs(y[0] - 2 * x[0]) - 0.5 * abs(y[1] - 3 + x[0]))


def edge(x: Array, y: Array) -> float:
    return float(y[0] * (1 + x[0]) - (y[1] + 1) ** 2)


def ridge(x: Array, y: Array) -> float:
    return float(-abs(y[0] - 0.3) - 2 * abs(y[1] - y[0]) - 0.1 * abs(x[0] + y[1] - 0.61))


@pytest.mark.parametrize("mean_payoff", [log_utility, kink, edge, ridge])
def test_a_hard_optimum_is_found_to_one_millionth(mean_payoff: Any) -> None:
    """Far from quadratic, at a kink, in a corner: compare with a grid search around it."""
    world = own(mean_payoff=mean_payoff)
    for x in ([0.0], [0.31], [1.0]):
        best, payoff = world.best_decision(x), world.best_payoff(x)
        for a in np.linspace(-0.02, 0.02, 81):
            for b in np.linspace(-0.02, 0.02, 81):
                near = np.clip(best + np.array([a, b]), 0, 5)
                assert mean_payoff(np.array(x), near) <= payoff + 1e-6
    exact = {kink: 0.0, edge: 5 * 1.31 - 1, ridge: 0.0}
    if mean_payoff in exact:
        assert world.best_payoff([0.31]) == pytest.approx(exact[mean_payoff], abs=1e-6)


def test_a_kink_on_one_line_and_in_many_dimensions() -> None:
    line = own(decision=ca.Box([0], [1]), mean_payoff=lambda x, y: -abs(y[0] - 0.3 - 0.1 * x[0]))
    assert line.best_decision([0.5])[0] == pytest.approx(0.35, abs=1e-6)

    def chain(x: Array, y: Array) -> Any:
        total = -abs(y[0] - 0.3)
        for i in range(4):
            total -= abs(y[i + 1] - y[i])
        return total

    chained = own(decision=ca.Box.unit(5), mean_payoff=chain)
    assert chained.best_payoff([0.5]) == pytest.approx(0.0, abs=1e-6)


def test_an_own_problem_says_once_that_it_runs_in_python() -> None:
    table = {0: -1.0}

    def uses_a_dict(x: Array, y: Array) -> Any:
        return table[0] * (y[0] - x[0]) ** 2 - float(str(float(y[1]))) ** 2

    world = own(mean_payoff=uses_a_dict)
    with pytest.warns(UserWarning, match="runs in Python"):
        assert not world.functions.compiled
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert world.best_payoff([0.5]) == pytest.approx(0.0, abs=1e-9)
        result = ca.simulate("static-kwsa", own_with_curvature(world), horizon=30, rng=0)
    assert result.regret[0, -1] > 0


def own_with_curvature(world: ca.Problem) -> ca.Problem:
    world.curvature = 2.0
    return world


def test_callable_objects_run_in_python() -> None:
    def scaled(x: Array, y: Array, factor: float) -> Any:
        return -factor * (y[0] - x[0]) ** 2 - y[1] ** 2

    for function in (functools.partial(scaled, factor=2.0), Callable(2.0), Callable(2.0).call):
        world = own(mean_payoff=function)
        with pytest.warns(UserWarning, match="runs in Python"):
            assert world.mean_payoff([0.5], [1.5, 0.0]) == -2.0


class Callable:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: Array, y: Array) -> Any:
        return -self.factor * (y[0] - x[0]) ** 2 - y[1] ** 2

    call = __call__


def test_python_and_compiled_runs_agree() -> None:
    """The same problem, compiled and not, gives the same run."""

    def mean_payoff(x: Array, y: Array) -> Any:
        return -((y[0] - x[0]) ** 2) - (y[1] - 1.0) ** 2

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        value = -((y[0] - x[0]) ** 2) - (y[1] - 1.0) ** 2
        return value + rng.normal(0.0, 0.2) + rng.random()

    def gradient(x: Array, y: Array) -> tuple[float, float]:
        return -2 * (y[0] - x[0]), -2 * (y[1] - 1.0)

    for extra in ({}, {"sample_payoff": sample_payoff}):
        fast = own(mean_payoff=mean_payoff, gradient=gradient, curvature=50.0, **extra)
        slow = own(mean_payoff=mean_payoff, gradient=gradient, curvature=50.0, **extra)
        slow._functions = slow_functions(slow)
        for policy in ("adaptive-kwsa", "robbins-monro"):
            runs = [
                ca.simulate(policy, w, horizon=150, rng=1, checkpoints=2) for w in (fast, slow)
            ]
            np.testing.assert_allclose(runs[0].regret, runs[1].regret, rtol=1e-6)
            np.testing.assert_allclose(
                runs[0].recommend_regret, runs[1].recommend_regret, rtol=1e-5, atol=1e-6
            )


def slow_functions(world: ca.Problem) -> Any:
    from continuarm.problems import functions

    return functions._plain(world.sources, world.decision)


def test_a_function_that_differs_when_compiled_is_refused() -> None:
    def reads_beyond(x: Array, y: Array) -> Any:
        return y[7] - y[0]

    with pytest.raises(ProblemError, match="IndexError"):
        own(mean_payoff=reads_beyond).functions  # noqa: B018

    count = np.zeros(1)

    def counts(x: Array, y: Array) -> Any:
        return -y[0] + count[0]

    world = own(mean_payoff=counts)
    count[0] = 0.0
    assert world.functions.compiled
    changed = own(mean_payoff=counts)
    frozen = world.functions.mean
    count[0] = 3.0  # a compiled function keeps the value that a global array had
    x, y = np.array([0.5]), np.array([1.0, 1.0])
    assert frozen(x, y) == -1.0
    assert changed.functions.mean(x, y) == 2.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mean_payoff": lambda x, y: y}, "`mean_payoff` must return a finite number"),
        ({"mean_payoff": lambda x, y: np.nan}, "`mean_payoff` must return a finite number"),
        ({"mean_payoff": lambda x, y: y[0] / 0}, "ZeroDivisionError|finite number"),
        ({"mean_payoff": lambda x: 0.0}, "TypeError"),
        ({"mean_payoff": lambda x, y: math.sqrt(-1 - y[0])}, "ValueError"),
        ({"contexts": lambda rng, n: "many"}, "must give numbers"),
        ({"best_decision": lambda x: (1.0,)}, "`best_decision` must return 2 finite numbers"),
        ({"best_decision": lambda x: (1.0, 9.0)}, "`best_decision` must lie in"),
        ({"sample_payoff": lambda x, y, rng: None}, "`sample_payoff` must return a finite"),
        ({"contexts": lambda rng, n: np.zeros((n, 2))}, "must have shape"),
        ({"contexts": lambda rng, n: np.full((n, 1), 2.0)}, "must draw points of"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_functions_that_break_their_promise_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ProblemError, match=message):
        own(**changes).functions  # noqa: B018


def test_a_gradient_that_breaks_its_promise_is_refused() -> None:
    with pytest.raises(ProblemError, match="`gradient` must return 2 finite numbers"):
        own(gradient=lambda x, y: (1.0,)).fill_gradient  # noqa: B018


def test_functions_must_not_change_their_arguments() -> None:
    def rude(x: Array, y: Array) -> float:
        y[0] = 0.0
        return 1.0

    with pytest.raises(ProblemError, match="must not change their arguments"):
        own(mean_payoff=rude).functions  # noqa: B018


@pytest.mark.parametrize(
    "changes",
    [
        {"context": [0, 1]},
        {"decision": ca.Box.unit(0)},
        {"mean_payoff": 3},
        {"best_decision": 3},
        {"noise": float("nan")},
        {"curvature": -1.0},
        {"contexts": "normal"},
    ],
)
def test_illegal_problems_cannot_exist(changes: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="but got"):
        own(**changes)
