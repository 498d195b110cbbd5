"""Shops on their first day: each visitor buys or not, and hardly anybody does.

A product with price y_i, cost c_i and sensitivity s_i(x) is bought with a probability that falls
like e^(-y_i/s_i). So its best price is c_i + s_i.
"""

import math
from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.problems.building import compiled_helper, unit_problem
from continuarm.problems.curvature import with_curvature
from continuarm.problems.definition import Problem
from continuarm.problems.entry import SHOPS, Entries, Entry

__all__ = ["WORLDS", "insurance", "three_tariffs", "tuned_already"]


def _shop(dx: int, prices: Box, volume: Any, sensitivity: Any, costs: Any) -> Problem:
    """Products that are bought with probability `volume(x, i) e^(-y_i/sensitivity(x, i))`."""
    dy = prices.dim
    volume, sensitivity = compiled_helper(volume), compiled_helper(sensitivity)
    costs = compiled_helper(costs)

    def chance(x: Array, y: Array, i: int) -> Any:
        return volume(x, i) * math.exp(-y[i] / sensitivity(x, i))

    chance = compiled_helper(chance)

    def mean_payoff(x: Array, y: Array) -> Any:
        total = 0.0
        for i in range(dy):
            total += (y[i] - costs(i)) * chance(x, y, i)
        return total

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        total = 0.0
        for i in range(dy):
            if rng.random() < chance(x, y, i):
                total += y[i] - costs(i)
        return total

    def best_decision(x: Array) -> Any:
        best = np.empty(dy)
        for i in range(dy):
            best[i] = costs(i) + sensitivity(x, i)
        return best

    return with_curvature(
        unit_problem(dx, prices, mean_payoff, best_decision, sample_payoff=sample_payoff)
    )


def insurance() -> Problem:
    """One premium; three or four of a hundred visitors sign, two of four contexts matter."""

    def volume(x: Array, i: int) -> Any:
        return 0.12

    def sensitivity(x: Array, i: int) -> Any:
        return 1.4 + 0.8 * x[0] + 0.6 * x[1]

    def costs(i: int) -> Any:
        return 0.5

    return _shop(4, Box([1.0], [5.0]), volume, sensitivity, costs)


def three_tariffs() -> Problem:
    """Three prices; the contexts change what the second and the third should be."""

    def volume(x: Array, i: int) -> Any:
        return 0.1 + 0.05 * i

    def sensitivity(x: Array, i: int) -> Any:
        return 1.2 + 0.4 * i * x[0] + 0.3 * x[1]

    def costs(i: int) -> Any:
        return 0.2 * i

    return _shop(2, Box([0.5, 0.5, 0.5], [3.0, 3.5, 4.0]), volume, sensitivity, costs)


def tuned_already() -> Problem:
    """Two prices whose best values are the centre of their box; contexts change the demand."""

    def volume(x: Array, i: int) -> Any:
        return 0.1 + 0.1 * x[i]

    def sensitivity(x: Array, i: int) -> Any:
        return 2.0 + i

    def costs(i: int) -> Any:
        return 1.0

    return _shop(2, Box([1.0, 1.5], [5.0, 6.5]), volume, sensitivity, costs)


WORLDS: Entries = {
    "insurance": Entry(insurance, SHOPS),
    "three-tariffs": Entry(three_tariffs, SHOPS),
    "tuned-already": Entry(tuned_already, SHOPS),
}
