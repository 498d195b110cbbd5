"""Worlds and policies of a user that break their promises: refused or doubted, in one line."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.errors import BestDecisionWarning, PolicyError, ProblemError

UNIT = ca.Box.unit(1)


def mean(x: Array, y: Array) -> Any:
    return -((y[0] - x[0]) ** 2)


def world(**changes: Any) -> ca.Problem:
    defaults: dict[str, Any] = {"context": UNIT, "decision": UNIT, "mean_payoff": mean}
    return ca.Problem(**({**defaults, "curvature": 2.0, "name": "shop"} | changes))


def in_python(problem: ca.Problem) -> ca.Problem:
    """The same world, run in Python."""
    from continuarm.problems import functions

    problem._functions = functions._plain(problem.sources, problem.decision)
    return problem


def nan_seldom(x: Array, y: Array, rng: np.random.Generator) -> float:
    return np.nan if x[0] > 0.97 else rng.normal(0.0, 0.1)


def inf_seldom(x: Array, y: Array, rng: np.random.Generator) -> float:
    return np.inf if x[0] > 0.97 else rng.normal(0.0, 0.1)


def huge(x: Array, y: Array, rng: np.random.Generator) -> float:
    return 1e200


@pytest.mark.parametrize("feedback", [{}, {"delay": 3, "lost": 0.1}], ids=["at once", "late"])
@pytest.mark.parametrize("run", ["compiled", "python"])
@pytest.mark.parametrize("policy", ["recommended", "static-kwsa"])
@pytest.mark.parametrize(
    ("sample", "value"), [(nan_seldom, "nan"), (inf_seldom, "inf"), (huge, "1e[+]200")]
)
def test_payoffs_that_are_no_payoffs_are_refused(
    sample: Any, value: str, policy: str, run: str, feedback: dict[str, Any]
) -> None:
    shop = world(sample_payoff=sample).with_feedback(**feedback)
    rule = r"the payoff of shop must be within ±1e\+100"
    if run == "python":
        shop, rule = in_python(shop), rf"({rule}|`sample_payoff` must return a finite number)"
    with pytest.raises(ProblemError, match=rf"{rule}, but got {value}"):
        ca.simulate(policy, shop, horizon=2000, rng=0)


@pytest.mark.parametrize("policy", ["recommended", "static-kwsa", "fixed", "oracle"])
def test_mean_payoffs_that_are_no_numbers_are_refused(policy: str) -> None:
    def seldom(x: Array, y: Array) -> Any:
        return np.nan if x[0] > 0.97 else -((y[0] - x[0]) ** 2)

    def large(x: Array, y: Array) -> Any:
        return -1e200 * (y[0] - 0.3 * x[0]) ** 2

    for wrong in (seldom,) if policy == "oracle" else (seldom, large):
        for run in (world, lambda **more: in_python(world(**more))):
            shop = run(mean_payoff=wrong, best_decision=lambda x: (0.9,))
            with pytest.raises(ProblemError, match=r"must be within .1e.100|a finite number"):
                ca.simulate(policy, shop, horizon=2000, rng=0)


def test_a_gradient_that_is_no_number_is_refused() -> None:
    def slope(x: Array, y: Array) -> tuple[float]:
        return (np.nan if x[0] > 0.97 else -2 * (y[0] - x[0]),)

    for shop in (world(gradient=slope), in_python(world(gradient=slope))):
        with pytest.raises(ProblemError, match=r"gradient.* but got"):
            ca.simulate("robbins-monro", shop, horizon=2000, rng=0)


def short(x: Array) -> Array:
    return x[:0] if x[0] > 0.97 else x.copy()


def outside(x: Array) -> tuple[float]:
    return (5.0 if x[0] > 0.97 else x[0],)


@pytest.mark.parametrize("best", [short, outside])
@pytest.mark.parametrize("run", ["compiled", "python"])
def test_a_best_decision_that_is_too_short_or_outside_is_refused(best: Any, run: str) -> None:
    shop = world(best_decision=best)
    with pytest.raises(ProblemError, match=r"`best_decision` must (lie in|return 1 finite)"):
        ca.simulate("fixed", in_python(shop) if run == "python" else shop, horizon=2000, rng=0)


def test_one_number_is_not_spread_over_all_dimensions() -> None:
    plane = world(
        decision=ca.Box.unit(2),
        mean_payoff=lambda x, y: -((y[0] - x[0]) ** 2) - (y[1] - 0.5) ** 2,
        best_decision=lambda x: np.array([0.5, 0.5]) if x[0] < 0.97 else np.array([0.5]),
    )
    for shop in (plane, in_python(plane)):
        with pytest.raises(ProblemError, match="`best_decision` must"):
            ca.simulate("fixed", shop, horizon=2000, rng=0)


@pytest.mark.parametrize("policy", ["recommended", "static-kwsa", "fixed"])
@pytest.mark.parametrize("run", ["compiled", "python"])
def test_a_best_decision_that_is_beaten_is_doubted(policy: str, run: str) -> None:
    wrong = world(best_decision=lambda x: (0.0,))
    shop = in_python(wrong) if run == "python" else wrong
    with pytest.warns(BestDecisionWarning, match=r"on shop one earned .*is `best_decision` right"):
        result = ca.simulate(policy, shop, horizon=1000, rng=0)
    assert result.mean[-1] < 0.0


def test_a_best_decision_that_is_wrong_in_a_thousandth_of_all_contexts_is_doubted() -> None:
    shop = world(best_decision=lambda x: (0.0 if x[0] > 0.999 else x[0],))
    with pytest.warns(BestDecisionWarning):
        result = ca.simulate("static-kwsa", shop, horizon=2000, rng=0)
    assert result.mean[-1] > 0.0  # the sum alone would not show it


def test_a_search_that_misses_the_best_is_doubted() -> None:
    def hills(x: Array, y: Array) -> Any:
        return math.exp(-(((y[0] - 0.1) / 0.03) ** 2)) + 0.1 * math.exp(-((y[0] - 0.55) ** 2))

    with pytest.warns(BestDecisionWarning, match="is the payoff concave"):
        ca.simulate(Everywhere, world(mean_payoff=hills), horizon=500, rng=0)


class Everywhere:
    def __init__(self, context: ca.Box, decision: ca.Box, *, rng: np.random.Generator) -> None:
        self.rng, self.dim = rng, decision.dim

    def ask(self, context: Array) -> Array:
        return self.rng.random(self.dim)

    def tell(self, decision: Array, payoff: float) -> None:
        pass


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("declared", [True, False])
def test_rounding_is_no_reason_to_doubt(scale: float, declared: bool) -> None:
    def scaled(x: Array, y: Array) -> Any:
        return scale * (7.0 - (y[0] - math.sin(x[0])) ** 2)

    best = (lambda x: (math.sin(x[0]) * (1 + 1e-12),)) if declared else None
    shop = world(mean_payoff=scaled, best_decision=best, noise=0.1 * scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for policy in ("oracle", "recommended"):
            ca.simulate(policy, shop, horizon=3000, rng=0)


class Fails:
    """A policy that raises in one of its methods, after a while."""

    where = ""

    def __init__(self, context: ca.Box, decision: ca.Box) -> None:
        self.left = 20
        self.fail("init")

    def fail(self, where: str) -> None:
        self.left -= 1
        if where == self.where and (self.left < 0 or where != "ask"):
            raise RuntimeError(f"no {where}\ntoday")

    def ask(self, context: Array) -> list[float]:
        self.fail("ask")
        return [0.5]

    def tell(self, decision: Any, payoff: float) -> None:
        self.fail("tell")

    def recommend(self, context: Array) -> list[float]:
        self.fail("recommend")
        return [0.5]


FAILS = {where: type(f"Fails{where}", (Fails,), {"where": where}) for where in
         ("init", "ask", "tell", "recommend")}  # fmt: skip


@pytest.mark.parametrize("where", FAILS)
def test_a_policy_that_raises_is_named(where: str) -> None:
    with pytest.raises(PolicyError, match=rf"Fails{where} must .*, but got Runtime"):
        ca.simulate(FAILS[where], world(), horizon=100, rng=0)
    with pytest.raises(PolicyError, match=f"but got RuntimeError: no {where}"):
        ca.compare({"mine": FAILS[where]}, [world()], horizons=[100], replications=2)


@pytest.mark.parametrize("value", [[float("nan")], [7.0], [0.1, 0.2], "high"])
def test_a_policy_that_decides_no_decision_is_named(value: Any) -> None:
    class Odd(Everywhere):
        def ask(self, context: Array) -> Any:
            return value

    with pytest.raises(PolicyError, match=r"Odd must decide inside its box, where .*but got"):
        ca.simulate(Odd, world(), horizon=100, rng=0)


def late_mean(x: Array, y: Array) -> Any:
    if x[0] > 0.97:
        raise ValueError("too late")
    return -((y[0] - x[0]) ** 2)


def raising_late() -> ca.Problem:
    return world(mean_payoff=late_mean, best_decision=lambda x: (min(x[0], 0.9),))


def raising_maker() -> ca.Problem:
    raise RuntimeError("no shop\ntoday")


@pytest.mark.parametrize("policy", ["recommended", "fixed", Everywhere])
@pytest.mark.parametrize("run", ["compiled", "python"])
def test_a_mean_that_raises_late_is_named(policy: Any, run: str) -> None:
    shop = raising_late()
    with pytest.raises(ProblemError, match=r"must work at every point .*ValueError: too late"):
        ca.simulate(policy, in_python(shop) if run == "python" else shop, horizon=2000, rng=0)


@pytest.mark.parametrize("cluster", [None, "threads"], ids=["processes", "threads"])
def test_what_fails_in_a_worker_is_named(cluster: str | None) -> None:
    for policies, problems, kind, message in (
        (["fixed"], {"late": raising_late}, ProblemError, "ValueError: too late"),
        (["fixed"], {"none": raising_maker}, ProblemError, "raising_maker must make a problem"),
        (
            {"mine": FAILS["ask"]},
            {"shop": world},
            PolicyError,
            "Failsask must decide for every context",
        ),
    ):
        experiment = ca.Experiment(
            policies=policies, problems=problems, horizons=[2000], replications=2
        )
        with pytest.raises(kind, match=message):
            experiment.run(workers=2, cluster=cluster)


def test_a_registered_maker_that_raises_is_named() -> None:
    ca.register_problem("raising", raising_maker)
    with pytest.raises(ProblemError, match="the maker of raising must make a problem, but got"):
        ca.simulate("fixed", "raising", horizon=10)
