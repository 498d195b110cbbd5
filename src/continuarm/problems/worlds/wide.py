"""Wide tables: many context columns, of which four matter, to the level or to what is best.

Columns 1 and 4 move the level, columns 4, 7 and 9 the best decision, and all others say nothing.
"""

from functools import partial
from typing import Any

import numpy as np

from continuarm.core.compiling import Array
from continuarm.problems.building import compiled_helper, unit_problem
from continuarm.problems.curvature import with_curvature
from continuarm.problems.definition import Problem
from continuarm.problems.entry import WIDE, Entries, Entry

__all__ = ["WORLDS"]


def wide_purchase(dx: int) -> Problem:
    """A price, paid with probability `v(x)(2 t(x) - y)`, the second factor kept in [0, 1].

    The best price is `t(x)`, from 0.25 to 0.85.
    """

    def best_price(x: Array) -> Any:
        return 0.25 + 0.3 * x[4] + 0.2 * x[7] + 0.1 * x[9]

    best_price = compiled_helper(best_price)

    def chance(x: Array, y: Array) -> Any:
        volume = 0.6 + 0.3 * x[1] + 0.1 * x[4]
        return volume * min(max(2.0 * best_price(x) - y[0], 0.0), 1.0)

    chance = compiled_helper(chance)

    def mean_payoff(x: Array, y: Array) -> Any:
        return y[0] * chance(x, y)

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        return y[0] if rng.random() < chance(x, y) else 0.0

    def best_decision(x: Array) -> Any:
        return np.array([best_price(x)])

    return with_curvature(
        unit_problem(dx, 1, mean_payoff, best_decision, sample_payoff=sample_payoff)
    )


def wide_loud(dx: int) -> Problem:
    """Two decisions and a noisy payoff; each column goes with its neighbours.

    A column is the mean of two numbers that are uniform in [0, 1], one of which it shares with the
    column before it, and one with the column behind.
    """

    def target(x: Array, i: int) -> Any:
        return 0.1 + 0.8 * x[4] if i == 0 else 0.8 - 0.4 * x[7] - 0.3 * x[9]

    target = compiled_helper(target)

    def mean_payoff(x: Array, y: Array) -> Any:
        level = x[1] - 0.5 * x[4]
        return level - (y[0] - target(x, 0)) ** 2 - (y[1] - target(x, 1)) ** 2

    def best_decision(x: Array) -> Any:
        return np.array([target(x, 0), target(x, 1)])

    def contexts(rng: np.random.Generator, n: int) -> Any:
        drawn = rng.random((n, dx + 1))
        return 0.5 * (drawn[:, 1:] + drawn[:, :-1])

    return unit_problem(
        dx, 2, mean_payoff, best_decision, curvature=2.0, noise=0.3, contexts=contexts
    )


WORLDS: Entries = {
    "wide-10": Entry(partial(wide_purchase, 10), WIDE),
    "wide-30": Entry(partial(wide_purchase, 30), WIDE),
    "wide-80": Entry(partial(wide_purchase, 80), WIDE),
    "wide-30-loud": Entry(partial(wide_loud, 30), WIDE),
}
