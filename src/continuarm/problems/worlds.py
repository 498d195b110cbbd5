"""Many small worlds on which policies are compared at their defaults: the first of the suite.

They span one to ten context dimensions, one to fifty decision dimensions, curvatures of condition
1 to 1000, noise from a thousandth of the payoff's range to ten times it, payoffs that are not
quadratic, optima on the edge, and contexts and noise that are not well behaved.
"""

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from continuarm.box import Box
from continuarm.jit import Array
from continuarm.problems.definition import Problem
from continuarm.problems.hard import hard
from continuarm.problems.linear_demand import linear_demand
from continuarm.problems.logit import lambert, logit_demand, orange_juice
from continuarm.problems.quadratic import quadratic
from continuarm.problems.two_communities import two_communities

__all__ = ["WORLDS", "compiled_helper", "curvature_at_best", "tracking", "with_curvature"]

STEP = 1e-3  # of a side of the box, for second differences


def tracking(
    dx: int, dy: int, target: Any, *, noise: float = 0.1, steepness: float = 0.0, **more: Any
) -> Problem:
    """`-Σ_i (1 + steepness·i) (y_i - target(x, i))²`; the target may lie outside the unit cube."""

    def mean_payoff(x: Array, y: Array) -> Any:
        total = 0.0
        for i in range(dy):
            gap = y[i] - target(x, i)
            total -= (1.0 + steepness * i) * gap * gap
        return total

    def best_decision(x: Array) -> Any:
        out = np.empty(dy)
        for i in range(dy):
            out[i] = min(max(target(x, i), 0.0), 1.0)
        return out

    return Problem(
        context=Box.unit(dx),
        decision=Box.unit(dy),
        mean_payoff=mean_payoff,
        best_decision=best_decision,
        curvature=2.0,
        noise=noise,
        **more,
    )


def sine(dy: int) -> Problem:
    """A full period of a sine, each dimension with its own phase."""
    return tracking(
        1, dy, compiled_helper(lambda x, i: 0.5 + 0.3 * math.sin(2 * math.pi * (x[0] + i / dy)))
    )


def one_matters(dx: int) -> Problem:
    """Only the first context dimension matters."""
    return tracking(
        dx,
        2,
        compiled_helper(lambda x, i: 0.5 + 0.35 * math.sin(2 * math.pi * x[0] + i)),
        steepness=2.0,
    )


def edge(dy: int, inside: int) -> Problem:
    """The first dimensions want to leave the box, the last `inside` do not."""
    return tracking(
        1, dy, compiled_helper(lambda x, i: 1.3 if i < dy - inside else 0.3 + 0.4 * x[0])
    )


def jump() -> Problem:
    """The best decision jumps at x = 0.37."""

    def target(x: Array, i: int) -> Any:
        here = 0.25 if x[0] < 0.37 else 0.7
        return here if i == 0 else 1.0 - here

    return tracking(1, 2, compiled_helper(target), steepness=1.0)


def skewed() -> Problem:
    """Contexts from Beta(0.5, 5), a best decision like the root of the context."""

    def target(x: Array, i: int) -> Any:
        root = math.sqrt(x[0])
        return root if i == 0 else 1.0 - root

    def contexts(rng: np.random.Generator, n: int) -> Array:
        return rng.beta(0.5, 5.0, (n, 1))

    return tracking(1, 2, compiled_helper(target), steepness=1.0, contexts=contexts)


def log_utility(dx: int, dy: int) -> Problem:
    """`Σ_i a_i(x) ln(0.05 + y_i) - y_i`: steep on one side of the optimum, flat on the other."""
    weights = np.random.default_rng(5).random((dy, dx)) / dx

    def mean_payoff(x: Array, y: Array) -> Any:
        total = 0.0
        for i in range(dy):
            total += (0.3 + weights[i] @ x) * math.log(0.05 + y[i]) - y[i]
        return total

    def best_decision(x: Array) -> Any:
        out = np.empty(dy)
        for i in range(dy):
            out[i] = min(0.25 + weights[i] @ x, 1.0)
        return out

    largest = 0.3 + float(weights.sum(axis=1).max())
    return Problem(
        context=Box.unit(dx),
        decision=Box.unit(dy),
        mean_payoff=mean_payoff,
        best_decision=best_decision,
        curvature=1.0 / largest,  # a/(0.05 + y)², where y = a - 0.05
    )


def kink() -> Problem:
    """Nearly the distance to the optimum: `-Σ_i √(0.05² + gap_i²)`."""

    def mean_payoff(x: Array, y: Array) -> Any:
        total = 0.0
        for i in range(2):
            gap = y[i] - 0.3 - 0.2 * x[0] * (i + 1)
            total += 0.05 - math.sqrt(0.0025 + gap * gap)
        return total

    def best_decision(x: Array) -> Any:
        return np.array([0.3 + 0.2 * x[0], 0.3 + 0.4 * x[0]])

    return Problem(
        context=Box.unit(1),
        decision=Box.unit(2),
        mean_payoff=mean_payoff,
        best_decision=best_decision,
        curvature=20.0,
    )


def purchase() -> Problem:
    """A price, and a purchase with probability `1/(1 + e^(4y - 2 - 2x))` or none."""

    def chance(x: Array, y: Array) -> Any:
        return 1.0 / (1.0 + math.exp(4.0 * y[0] - 2.0 - 2.0 * x[0]))

    chance = compiled_helper(chance)

    def mean_payoff(x: Array, y: Array) -> Any:
        return y[0] * chance(x, y)

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        return y[0] if rng.random() < chance(x, y) else 0.0

    def best_decision(x: Array) -> Any:
        return np.array([(1.0 + lambert(math.exp(1.0 + 2.0 * x[0]))) / 4.0])

    return with_curvature(
        Problem(
            context=Box.unit(1),
            decision=Box([0.0], [2.0]),
            mean_payoff=mean_payoff,
            sample_payoff=sample_payoff,
            best_decision=best_decision,
        )
    )


def rare_purchase() -> Problem:
    """At most one in twenty buys."""

    def chance(x: Array, y: Array) -> Any:
        return 0.05 * math.exp(-y[0] * (1.5 - x[0]))

    chance = compiled_helper(chance)

    def mean_payoff(x: Array, y: Array) -> Any:
        return y[0] * chance(x, y)

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        return y[0] if rng.random() < chance(x, y) else 0.0

    def best_decision(x: Array) -> Any:
        return np.array([min(1.0 / (1.5 - x[0]), 1.5)])

    return with_curvature(
        Problem(
            context=Box.unit(1),
            decision=Box([0.0], [1.5]),
            mean_payoff=mean_payoff,
            sample_payoff=sample_payoff,
            best_decision=best_decision,
        )
    )


def heavy_tails() -> Problem:
    """Noise from Student's t with three degrees of freedom, sd 0.17."""

    def mean(x: Array, y: Array) -> Any:
        gap = y[1] - 0.7 + 0.4 * x[0] * x[0]
        return -((y[0] - 0.3 - 0.4 * x[0]) ** 2) - 3.0 * gap * gap

    mean = compiled_helper(mean)

    def mean_payoff(x: Array, y: Array) -> Any:
        return mean(x, y)

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        square = 0.0
        for _ in range(3):
            square += rng.standard_normal() ** 2
        return mean(x, y) + 0.1 * rng.standard_normal() / math.sqrt(square / 3.0)

    def best_decision(x: Array) -> Any:
        return np.array([0.3 + 0.4 * x[0], 0.7 - 0.4 * x[0] * x[0]])

    return Problem(
        context=Box.unit(1),
        decision=Box.unit(2),
        mean_payoff=mean_payoff,
        sample_payoff=sample_payoff,
        best_decision=best_decision,
        curvature=2.0,
    )


def constant() -> Problem:
    """Nothing matters."""

    def mean_payoff(x: Array, y: Array) -> Any:
        return 1.0

    def best_decision(x: Array) -> Any:
        return np.array([0.5, 0.5])

    return Problem(
        context=Box.unit(1),
        decision=Box.unit(2),
        mean_payoff=mean_payoff,
        best_decision=best_decision,
        curvature=1.0,
    )


def curvature_at_best(problem: Problem, contexts: int = 20) -> float:
    """The smallest curvature on the unit cube at the best decisions of some contexts."""
    dy, span, found = problem.decision.dim, problem.decision.span, []
    points = problem.draw_contexts(np.random.default_rng(1), contexts)
    for x, best in zip(points, problem.best_many(points)[0], strict=True):
        centre = np.clip(problem.decision.to_unit(best), 2 * STEP, 1.0 - 2 * STEP)

        def height(step: Array, x: Array = x, centre: Array = centre) -> float:
            point = problem.decision.low + (centre + step) * span
            return float(problem.functions.mean(x, point))

        hessian, e = np.empty((dy, dy)), STEP * np.eye(dy)
        for i in range(dy):
            for j in range(i, dy):
                rise = height(e[i] + e[j]) + height(-e[i] - e[j])
                rise -= height(e[i] - e[j]) + height(e[j] - e[i])
                hessian[i, j] = hessian[j, i] = rise / (4.0 * STEP * STEP)
        found.append(float(np.linalg.eigvalsh(-hessian)[0]))
    return min(found)


def with_curvature(problem: Problem) -> Problem:
    """The problem, with its curvature at the best decisions."""
    problem.curvature = curvature_at_best(problem)
    return problem


def compiled_helper(function: Any) -> Any:
    """A function that the functions of a problem call."""
    return numba.njit(function)


WORLDS: dict[str, Callable[[], Problem]] = {
    "communities": two_communities,
    "communities-quiet": lambda: two_communities(noise=0.01),
    "communities-loud": lambda: two_communities(noise=1.0),
    "communities-drowned": lambda: two_communities(noise=10.0),
    "scalar": lambda: quadratic(dx=1, dy=1, condition=1.0),
    "plane": lambda: quadratic(dx=2, dy=2, condition=4.0),
    "rotated-100": lambda: quadratic(dx=1, dy=3, condition=100.0),
    "rotated-1000": lambda: quadratic(dx=2, dy=5, condition=1000.0, curvature=0.1),
    "rotated-20-dims": lambda: quadratic(dx=1, dy=20, condition=30.0, curvature=0.2),
    "tiny-noise": lambda: quadratic(dx=1, dy=3, condition=10.0, noise=0.001),
    "sine-5": lambda: sine(5),
    "sine-20": lambda: sine(20),
    "sine-50": lambda: sine(50),
    "edge": lambda: edge(2, 1),
    "corner": lambda: edge(3, 0),
    "jump": jump,
    "skewed": skewed,
    "one-of-5": lambda: one_matters(5),
    "one-of-10": lambda: one_matters(10),
    "log-utility-3": lambda: log_utility(1, 3),
    "log-utility-5": lambda: log_utility(2, 5),
    "kink": kink,
    "heavy-tails": heavy_tails,
    "purchase": purchase,
    "rare-purchase": rare_purchase,
    "linear-demand": linear_demand,
    "logit-demand": logit_demand,
    "orange-juice": orange_juice,
    "hard": hard,
    "constant": constant,
}
