"""A price is paid or not, a bid wins or not: payoffs that are mostly all or nothing."""

import math
from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.problems.building import compiled_helper, peak_by_halving, unit_problem
from continuarm.problems.curvature import with_curvature
from continuarm.problems.definition import Problem
from continuarm.problems.entry import SUITE, UNSEEN, Entries, Entry
from continuarm.problems.worlds.logit import lambert

__all__ = [
    "WORLDS",
    "auction",
    "gentle_price",
    "purchase",
    "rare_purchase",
    "two_subscriptions",
]


def _paid_or_not(chance: Any, best_decision: Any, highest: float) -> Problem:
    """One price up to `highest`, paid with probability `chance(x, y)`."""

    def mean_payoff(x: Array, y: Array) -> Any:
        return y[0] * chance(x, y)

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        return y[0] if rng.random() < chance(x, y) else 0.0

    prices = Box([0.0], [highest])
    return with_curvature(
        unit_problem(1, prices, mean_payoff, best_decision, sample_payoff=sample_payoff)
    )


def purchase() -> Problem:
    """A price, and a purchase with probability `1/(1 + e^(4y - 2 - 2x))` or none."""

    def chance(x: Array, y: Array) -> Any:
        return 1.0 / (1.0 + math.exp(4.0 * y[0] - 2.0 - 2.0 * x[0]))

    def best_decision(x: Array) -> Any:
        return np.array([(1.0 + lambert(math.exp(1.0 + 2.0 * x[0]))) / 4.0])

    return _paid_or_not(compiled_helper(chance), best_decision, 2.0)


def rare_purchase() -> Problem:
    """At most one in twenty buys."""

    def chance(x: Array, y: Array) -> Any:
        return 0.05 * math.exp(-y[0] * (1.5 - x[0]))

    def best_decision(x: Array) -> Any:
        return np.array([min(1.0 / (1.5 - x[0]), 1.5)])

    return _paid_or_not(compiled_helper(chance), best_decision, 1.5)


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

    prices = Box([0.0, 0.0], [2.0, 1.0])
    return unit_problem(
        1, prices, mean_payoff, best_decision, sample_payoff=sample_payoff, curvature=0.4
    )


def two_subscriptions() -> Problem:
    """Two products, each bought or not with probability σ(b_i(x) - s_i y_i)."""

    def chance(x: Array, y: Array, i: int) -> Any:
        return 1.0 / (1.0 + math.exp((1.0 + i) * y[i] - 1.0 - 2.0 * x[2 * i]))

    chance = compiled_helper(chance)

    def mean_payoff(x: Array, y: Array) -> Any:
        return y[0] * chance(x, y, 0) + y[1] * chance(x, y, 1)

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        first = y[0] if rng.random() < chance(x, y, 0) else 0.0
        return first + (y[1] if rng.random() < chance(x, y, 1) else 0.0)

    def best_decision(x: Array) -> Any:
        first = 1.0 + lambert(math.exp(2.0 * x[0]))
        return np.array([first, 0.5 * (1.0 + lambert(math.exp(2.0 * x[2])))])

    prices = Box([0.0, 0.0], [6.0, 3.0])
    return with_curvature(
        unit_problem(3, prices, mean_payoff, best_decision, sample_payoff=sample_payoff)
    )


def auction() -> Problem:
    """Bid y for what is worth v(x); a bid wins with probability 1 - e^(-k(x) y)."""

    def mean_payoff(x: Array, y: Array) -> Any:
        return (1.0 + x[0] - y[0]) * (1.0 - math.exp(-(1.0 + 3.0 * x[1]) * y[0]))

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        won = rng.random() < 1.0 - math.exp(-(1.0 + 3.0 * x[1]) * y[0])
        return 1.0 + x[0] - y[0] if won else 0.0

    def rises(x: Array, bid: float) -> Any:
        worth, rate = 1.0 + x[0], 1.0 + 3.0 * x[1]
        return (1.0 + (worth - bid) * rate) * math.exp(-rate * bid) > 1.0

    best_decision = peak_by_halving(compiled_helper(rises), 2.0)
    bids = Box([0.0], [2.0])
    return with_curvature(
        unit_problem(2, bids, mean_payoff, best_decision, sample_payoff=sample_payoff)
    )


WORLDS: Entries = {
    "purchase": Entry(purchase, SUITE),
    "rare-purchase": Entry(rare_purchase, SUITE),
    "gentle-price": Entry(gentle_price, SUITE),
    "two-subscriptions": Entry(two_subscriptions, UNSEEN),
    "auction": Entry(auction, UNSEEN),
}
