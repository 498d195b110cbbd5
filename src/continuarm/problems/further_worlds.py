"""Further worlds of the suite, from pricing, stocks and medicine."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.jit import Array
from continuarm.problems.definition import Problem
from continuarm.problems.logit import lambert
from continuarm.problems.quadratic import quadratic
from continuarm.problems.worlds import compiled_helper, tracking, with_curvature

__all__ = ["FURTHER_WORLDS"]


def newsvendor() -> Problem:
    """Order y at cost 0.4; demand is exponential with mean 0.2 + 0.4x; sell at 1."""

    def mean_payoff(x: Array, y: Array) -> Any:
        mean = 0.2 + 0.4 * x[0]
        return mean * (1.0 - math.exp(-y[0] / mean)) - 0.4 * y[0]

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        demand = -(0.2 + 0.4 * x[0]) * math.log(1.0 - rng.random())
        return min(demand, y[0]) - 0.4 * y[0]

    def best_decision(x: Array) -> Any:
        return np.array([(0.2 + 0.4 * x[0]) * math.log(2.5)])

    return Problem(
        context=Box.unit(1),
        decision=Box.unit(1),
        mean_payoff=mean_payoff,
        sample_payoff=sample_payoff,
        best_decision=best_decision,
        curvature=0.4 / 0.6,  # e^(-y/m)/m at the optimum, m at most 0.6
    )


def exponential_demand() -> Problem:
    """Two prices, `Σ_i p_i e^(-a_i(x) p_i)`: concave only below the price 2/a."""

    def mean_payoff(x: Array, y: Array) -> Any:
        first, second = 1.0 + x[0], 2.0 - x[1]
        return y[0] * math.exp(-first * y[0]) + y[1] * math.exp(-second * y[1])

    def best_decision(x: Array) -> Any:
        return np.array([1.0 / (1.0 + x[0]), 1.0 / (2.0 - x[1])])

    return Problem(
        context=Box.unit(2),
        decision=Box([0.0, 0.0], [1.5, 1.5]),
        mean_payoff=mean_payoff,
        best_decision=best_decision,
        curvature=math.exp(-1.0) * 1.5**2,  # a/e per square of a price unit
        noise=0.05,
    )


def dose() -> Problem:
    """Benefit y/(y + c(x)) against harm that grows with the square of the dose."""

    def mean_payoff(x: Array, y: Array) -> Any:
        half = 0.5 + 2.0 * x[0]
        return y[0] / (y[0] + half) - 0.01 * (1.0 + x[1]) * y[0] * y[0]

    def best_decision(x: Array) -> Any:
        half, low, high = 0.5 + 2.0 * x[0], 0.0, 10.0
        for _ in range(60):  # the slope falls: find where it is 0
            middle = 0.5 * (low + high)
            if half / (middle + half) ** 2 > 0.02 * (1.0 + x[1]) * middle:
                low = middle
            else:
                high = middle
        return np.array([low])

    return with_curvature(
        Problem(
            context=Box.unit(2),
            decision=Box([0.0], [10.0]),
            mean_payoff=mean_payoff,
            best_decision=best_decision,
            noise=0.2,
        )
    )


def budget() -> Problem:
    """Six channels with diminishing returns and one shared cost that couples them."""
    weights = np.random.default_rng(11).uniform(0.3, 1.0, (6, 2))

    def mean_payoff(x: Array, y: Array) -> Any:
        total, spent = 0.0, 0.0
        for i in range(6):
            total += (weights[i, 0] + weights[i, 1] * x[0]) * math.sqrt(y[i] + 0.02)
            spent += y[i]
        return total - 0.3 * spent * spent

    def best_decision(x: Array) -> Any:
        out, low, high = np.empty(6), 1e-9, 6.0
        for _ in range(60):  # of what is spent in all: each channel's share of it falls
            spent, total = 0.5 * (low + high), 0.0
            for i in range(6):
                root = (weights[i, 0] + weights[i, 1] * x[0]) / (1.2 * spent)
                out[i] = min(max(root * root - 0.02, 0.0), 1.0)
                total += out[i]
            if total > spent:
                low = spent
            else:
                high = spent
        return out

    return with_curvature(
        Problem(
            context=Box.unit(1),
            decision=Box.unit(6),
            mean_payoff=mean_payoff,
            best_decision=best_decision,
        )
    )


def huber() -> Problem:
    """Quadratic within 0.1 of the optimum and linear beyond; noise from Laplace's distribution."""

    def mean(x: Array, y: Array) -> Any:
        total = 0.0
        for i in range(4):
            gap = abs(y[i] - 0.3 - 0.1 * i - 0.2 * math.cos(3.0 * x[0] + i))
            total -= gap * gap if gap < 0.1 else 0.2 * gap - 0.01
        return total

    mean = compiled_helper(mean)

    def mean_payoff(x: Array, y: Array) -> Any:
        return mean(x, y)

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        size = -0.07 * math.log(1.0 - rng.random())
        return mean(x, y) + (size if rng.random() < 0.5 else -size)

    def best_decision(x: Array) -> Any:
        out = np.empty(4)
        for i in range(4):
            out[i] = 0.3 + 0.1 * i + 0.2 * math.cos(3.0 * x[0] + i)
        return out

    return Problem(
        context=Box.unit(1),
        decision=Box.unit(4),
        mean_payoff=mean_payoff,
        sample_payoff=sample_payoff,
        best_decision=best_decision,
        curvature=2.0,
    )


def stairs() -> Problem:
    """Three jumps of different height."""

    def target(x: Array, i: int) -> Any:
        step = 0.0
        if x[0] > 0.15:
            step += 0.3
        if x[0] > 0.5:
            step -= 0.15
        if x[0] > 0.8:
            step += 0.4
        return 0.2 + step if i == 0 else 0.5 + 0.3 * x[0]

    return tracking(1, 2, compiled_helper(target))


def product_of_two() -> Problem:
    """Eight context dimensions; two matter, and only together."""

    def target(x: Array, i: int) -> Any:
        return 0.5 + 0.4 * (2.0 * x[2] - 1.0) * (2.0 * x[5] - 1.0) * (1.0 if i == 0 else -1.0)

    return tracking(8, 2, compiled_helper(target), steepness=2.0)


def cubic() -> Problem:
    """Thirty dimensions that follow a cubic of the context."""

    def target(x: Array, i: int) -> Any:
        s = 2.0 * x[0] - 1.0
        return 0.5 + 0.3 * s * s * s - 0.01 * i * s

    return tracking(1, 30, compiled_helper(target), noise=0.3, steepness=0.1)


def ten_with_edges() -> Problem:
    """Ten dimensions, every other one at its edge for some contexts."""

    def target(x: Array, i: int) -> Any:
        return 0.6 + 0.7 * x[i % 2] - 0.02 * i if i % 2 == 0 else 0.5 - 0.03 * i + 0.2 * x[1]

    return tracking(2, 10, compiled_helper(target), steepness=1.0)


def gentle_price() -> Problem:
    """A purchase or none, sensitive to the hour in a wave; two prices, one matters less."""

    def chance(x: Array, y: Array) -> Any:
        return 1.0 / (1.0 + math.exp(3.0 * y[0] - 1.0 - math.sin(6.0 * x[0])))

    chance = compiled_helper(chance)

    def mean_payoff(x: Array, y: Array) -> Any:
        return y[0] * chance(x, y) - 0.2 * (y[1] - 0.6) ** 2

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        return (y[0] if rng.random() < chance(x, y) else 0.0) - 0.2 * (y[1] - 0.6) ** 2

    def best_decision(x: Array) -> Any:
        return np.array([(1.0 + lambert(math.exp(math.sin(6.0 * x[0])))) / 3.0, 0.6])

    return Problem(
        context=Box.unit(1),
        decision=Box([0.0, 0.0], [2.0, 1.0]),
        mean_payoff=mean_payoff,
        sample_payoff=sample_payoff,
        best_decision=best_decision,
        curvature=0.4,
    )


FURTHER_WORLDS: dict[str, Callable[[], Problem]] = {
    "newsvendor": newsvendor,
    "exponential-demand": exponential_demand,
    "dose": dose,
    "budget": budget,
    "huber": huber,
    "stairs": stairs,
    "product-of-two": product_of_two,
    "cubic-30-dims": cubic,
    "ten-with-edges": ten_with_edges,
    "gentle-price": gentle_price,
    "ridge": lambda: quadratic(dx=1, dy=2, condition=1000.0, noise=0.5, seed=9),
}
