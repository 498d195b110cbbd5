"""A user's own problem: what is compiled, what is refused, and how its optimum is found."""

import functools
import math
import warnings
from typing import Any, ClassVar

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.errors import ProblemError, SettingsError


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


def disturbed(disturbance: Any) -> ca.Problem:
    return ca.Problem(
        context=ca.Box.unit(1),
        decision=ca.Box.unit(1),
        mean_payoff=lambda x, y: -((y[0] - 0.5 * x[0]) ** 2),
        best_decision=lambda x: np.array([0.5 * x[0]]),
        noise=0.0,
        disturbance=disturbance,
    )


def test_a_disturbance_is_added_to_payoffs_and_not_to_regret() -> None:
    class Still:
        payoffs: ClassVar[list[float]] = []

        def __init__(self, context: ca.Box, decision: ca.Box) -> None:
            pass

        def ask(self, context: Any) -> list[float]:
            return [0.5 * context[0]]

        def tell(self, decision: Any, payoff: float) -> None:
            self.payoffs.append(payoff)

    run = ca.simulate(Still, disturbed(lambda rng, i, x: i + x[:, 0]), horizon=50, rng=0)
    assert run.regret[0, -1] == 0.0
    assert np.floor(Still.payoffs).tolist() == list(range(50))


def test_a_disturbance_is_the_same_live_and_compiled() -> None:
    world = disturbed(lambda rng, i, x: np.sin(i / 9.0) + rng.standard_normal(len(i)))
    compiled = ca.simulate("recommended", world, horizon=300, rng=4)

    class Live:
        def __init__(self, context: ca.Box, decision: ca.Box, *, rng: Any) -> None:
            self.policy = ca.SurfaceSampling(context, decision, rng=rng)

        def ask(self, context: Any) -> ca.Decision:
            return self.policy.ask(context)

        def tell(self, decision: ca.Decision, payoff: float) -> None:
            self.policy.tell(decision, payoff)

    live = ca.simulate(Live, world, horizon=300, rng=4)
    assert live.regret[0, -1] == pytest.approx(compiled.regret[0, -1], rel=1e-9)


@pytest.mark.parametrize(
    "bad", [lambda rng, i, x: 1.0, lambda rng, i, x: i * np.nan, lambda rng, i, x: 1 / 0]
)
def test_a_disturbance_that_is_none_is_refused(bad: Any) -> None:
    with pytest.raises(ProblemError, match="`disturbance"):
        ca.simulate("fixed", disturbed(bad), horizon=10)
    with pytest.raises(SettingsError, match="`disturbance` must be a function, but got 3"):
        disturbed(3)
