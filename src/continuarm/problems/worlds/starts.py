"""How good the start is, if it is the centre of the box: far from the best, or the best already.

In those that begin with `far-` the best decision lies towards an end of the box for every context;
in those that begin with `tuned-` it is the centre for every context, so that nothing can be won.
"""

import math
from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.problems.building import compiled_helper, tracking, unit_problem
from continuarm.problems.curvature import with_curvature
from continuarm.problems.definition import Problem
from continuarm.problems.entry import STARTS, Entries, Entry
from continuarm.problems.worlds.logit import lambert

__all__ = ["WORLDS"]


def far_purchase() -> Problem:
    """A price, paid with probability `0.6 - (0.536 - 0.236x)y`; the best lies from 0.56 to 1."""

    def chance(x: Array, y: Array) -> Any:
        return 0.6 - (0.536 - 0.236 * x[0]) * y[0]  # at least 0.06

    chance = compiled_helper(chance)

    def mean_payoff(x: Array, y: Array) -> Any:
        return y[0] * chance(x, y)

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        return y[0] if rng.random() < chance(x, y) else 0.0

    def best_decision(x: Array) -> Any:
        return np.array([min(0.3 / (0.536 - 0.236 * x[0]), 1.0)])

    return with_curvature(
        unit_problem(1, 1, mean_payoff, best_decision, sample_payoff=sample_payoff)
    )


def far_edge() -> Problem:
    """Two decisions; the first would best be larger than it may, the second is best near 0.2."""

    def target(x: Array, i: int) -> Any:
        return 1.1 if i == 0 else 0.1 + 0.2 * x[0]

    return tracking(1, 2, compiled_helper(target), noise=0.3)


def far_third() -> Problem:
    """Two products, each bought or not by a logit; best prices in the last third of their ranges.

    Product i is bought with probability `σ(a_i(x) - s_i y_i)`, and its best price is
    `(1 + W(e^(a_i(x) - 1)))/s_i`, W Lambert's function.
    """

    def appeal(x: Array, i: int) -> Any:
        return 0.5 + 1.5 * x[0] if i == 0 else 1.0 + 0.5 * x[0] + 0.5 * x[1]

    appeal = compiled_helper(appeal)

    def chance(x: Array, y: Array, i: int) -> Any:
        return 1.0 / (1.0 + math.exp((1.0 + i) * y[i] - appeal(x, i)))

    chance = compiled_helper(chance)

    def mean_payoff(x: Array, y: Array) -> Any:
        return y[0] * chance(x, y, 0) + y[1] * chance(x, y, 1)

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        first = y[0] if rng.random() < chance(x, y, 0) else 0.0
        return first + (y[1] if rng.random() < chance(x, y, 1) else 0.0)

    def best_decision(x: Array) -> Any:
        best = np.empty(2)
        for i in range(2):
            best[i] = (1.0 + lambert(math.exp(appeal(x, i) - 1.0))) / (1.0 + i)
        return best

    prices = Box([0.0, 0.0], [2.05, 1.1])
    return with_curvature(
        unit_problem(2, prices, mean_payoff, best_decision, sample_payoff=sample_payoff)
    )


def tuned_purchase() -> Problem:
    """A price in [0, 2], best at 1; there 5 to 30 of 100 visitors buy, depending on the contexts.

    A visitor buys with probability `v(x)(1 - y/2)`.
    """

    def chance(x: Array, y: Array) -> Any:
        return (0.1 + 0.3 * x[0] + 0.2 * x[0] * x[1]) * (1.0 - 0.5 * y[0])

    chance = compiled_helper(chance)

    def mean_payoff(x: Array, y: Array) -> Any:
        return y[0] * chance(x, y)

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        return y[0] if rng.random() < chance(x, y) else 0.0

    def best_decision(x: Array) -> Any:
        return np.array([1.0])

    prices = Box([0.0], [2.0])
    return with_curvature(
        unit_problem(2, prices, mean_payoff, best_decision, sample_payoff=sample_payoff)
    )


def tuned_loud() -> Problem:
    """Three decisions, best at the centre; noise is four times the payoff's range or more.

    The contexts change the level and the curvature.
    """

    def mean_payoff(x: Array, y: Array) -> Any:
        total = x[0] - x[1] * x[2]
        for i in range(3):
            total -= (0.6 + 0.8 * x[i]) * (y[i] - 0.5) ** 2
        return total

    def best_decision(x: Array) -> Any:
        return np.full(3, 0.5)

    return unit_problem(3, 3, mean_payoff, best_decision, curvature=1.2, noise=3.0)


WORLDS: Entries = {
    "far-purchase": Entry(far_purchase, STARTS),
    "far-edge": Entry(far_edge, STARTS),
    "far-third": Entry(far_third, STARTS),
    "tuned-purchase": Entry(tuned_purchase, STARTS),
    "tuned-loud": Entry(tuned_loud, STARTS),
}
