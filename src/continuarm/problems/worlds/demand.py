"""Prices of several products: demand that is linear in all prices, or exponential in its own."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.checks import whole
from continuarm.core.compiling import Array, compiled
from continuarm.problems.building import unit_problem
from continuarm.problems.definition import Problem
from continuarm.problems.entry import SUITE, SUITE_AND_NAMED, Entries, Entry

__all__ = ["WORLDS", "buys_one_or_none", "exponential_demand", "linear_demand", "mean_margin"]

Payoff = Callable[..., float]
COST, MIDDLE, OWN, CROSS = 0.5, 3.0, 0.18, 0.05


@compiled
def mean_margin(prices: Array, costs: Array, chances: Array) -> float:
    """The mean margin of a customer who buys each product with its chance, and one at most."""
    total = 0.0
    for i in range(prices.shape[0]):
        total += (prices[i] - costs[i]) * chances[i]
    return total


def buys_one_or_none(fill_chances: Any, costs: Array) -> tuple[Payoff, Payoff]:
    """The mean and the random margin of such a customer; `fill_chances(x, prices, chances)`."""
    products = costs.size

    def mean_payoff(x: Array, p: Array) -> float:
        chances = np.empty(products)
        fill_chances(x, p, chances)
        return mean_margin(p, costs, chances)

    def sample_payoff(x: Array, p: Array, rng: np.random.Generator) -> float:
        chances = np.empty(products)
        fill_chances(x, p, chances)
        left = rng.random()
        for i in range(products):
            left -= chances[i]
            if left < 0.0:
                return float(p[i] - costs[i])
        return 0.0

    return mean_payoff, sample_payoff


@compiled
def _demand(x: Array, p: Array, waves: Array, slopes: Array, q: Array) -> None:
    n = q.shape[0]
    for i in range(n):
        q[i] = _appeal(x, waves, i)
        for j in range(n):
            q[i] -= slopes[i, j] * (p[j] - MIDDLE)
        q[i] /= n


@compiled
def _appeal(x: Array, waves: Array, i: int) -> float:
    """`s_i(x)`, between 0.5 and 0.7."""
    dx = x.shape[0]
    angle = waves[i, dx]
    for j in range(dx):
        angle += waves[i, j] * x[j]
    return 0.6 + 0.1 * np.sin(angle)  # type: ignore[no-any-return]


def linear_demand(*, dx: int = 2, dy: int = 3, seed: int = 0) -> Problem:
    """Prices of `dy` products for customers of `dx` traits; the traits' effect is random.

    A customer buys product i with probability `q_i(x, p) = (s_i(x) - Σ_j B_ij (p_j - 3)) / n` or
    nothing; a higher price of one product sends customers to the others (substitution). The payoff
    is the margin of what was bought, or 0. Prices lie in [1, 5]; the numbers above keep every
    probability positive and their sum below 1 in the whole box, and every best price inside it.
    """
    dx, dy = whole("dx", dx, 0), whole("dy", dy, 1)
    rng = np.random.default_rng(whole("seed", seed, 0))
    waves = np.column_stack([rng.uniform(-4.0, 4.0, (dy, dx)), rng.uniform(0.0, 6.0, dy)])
    slopes = np.full((dy, dy), -CROSS / max(dy - 1, 1))  # B
    np.fill_diagonal(slopes, OWN if dy > 1 else OWN - CROSS)  # alone, nobody sends customers
    inverse = np.linalg.inv(2.0 * slopes)

    def fill_chances(x: Array, p: Array, q: Array) -> None:
        _demand(x, p, waves, slopes, q)

    def best_decision(x: Array) -> Array:
        """Where the gradient is zero: `2 B p = s + B (3 + cost) 1`."""
        out = np.zeros(dy)
        for j in range(dy):
            right = _appeal(x, waves, j)
            for k in range(dy):
                right += slopes[j, k] * (MIDDLE + COST)
            for i in range(dy):
                out[i] += inverse[i, j] * right
        return out

    def gradient(x: Array, p: Array) -> Array:
        out = np.empty(dy)
        _demand(x, p, waves, slopes, out)
        for i in range(dy):
            for j in range(dy):
                out[i] -= slopes[j, i] * (p[j] - COST) / dy
        return out

    mean_payoff, sample_payoff = buys_one_or_none(compiled(fill_chances), np.full(dy, COST))
    eigenvalues = np.linalg.eigvalsh(2.0 * slopes / dy) * 16.0  # sides of length 4
    return unit_problem(
        dx,
        Box(np.ones(dy), np.full(dy, 5.0)),
        mean_payoff,
        best_decision,
        sample_payoff=sample_payoff,
        gradient=gradient,
        curvature=float(eigenvalues[0]),
        curvature_max=float(eigenvalues[-1]),
    )


def exponential_demand() -> Problem:
    """Two prices, `Σ_i p_i e^(-a_i(x) p_i)`: concave only below the price 2/a."""

    def mean_payoff(x: Array, y: Array) -> Any:
        first, second = 1.0 + x[0], 2.0 - x[1]
        return y[0] * math.exp(-first * y[0]) + y[1] * math.exp(-second * y[1])

    def best_decision(x: Array) -> Any:
        return np.array([1.0 / (1.0 + x[0]), 1.0 / (2.0 - x[1])])

    curvature = math.exp(-1.0) * 1.5**2  # a/e per square of a price unit
    prices = Box([0.0, 0.0], [1.5, 1.5])
    return unit_problem(2, prices, mean_payoff, best_decision, curvature=curvature, noise=0.05)


WORLDS: Entries = {
    "linear-demand": Entry(linear_demand, SUITE_AND_NAMED),
    "exponential-demand": Entry(exponential_demand, SUITE),
}
