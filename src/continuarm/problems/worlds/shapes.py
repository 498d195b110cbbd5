"""Payoffs that are not quadratic: kinks, linear tails, utilities, hills, and nothing at all."""

import math
from functools import partial
from typing import Any

import numpy as np

from continuarm.core.compiling import Array
from continuarm.problems.building import compiled_helper, laplace_noise, unit_problem
from continuarm.problems.curvature import with_curvature
from continuarm.problems.definition import Problem
from continuarm.problems.entry import SUITE, UNSEEN, Entries, Entry

__all__ = [
    "WORLDS",
    "constant",
    "cosine_hills",
    "huber",
    "kink",
    "log_utility",
    "root_utility",
    "smooth_pinball",
]


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

    return unit_problem(1, 2, mean_payoff, best_decision, curvature=20.0)


def smooth_pinball() -> Problem:
    """`Σ_i 0.4 d_i - √(d_i² + 0.02²)` with `d = y - m(x)`: nearly a kink, steeper on one side."""
    best_gap = 0.4 * 0.02 / math.sqrt(1.0 - 0.4**2)
    target = compiled_helper(lambda x, i: 0.35 + 0.3 * (x[0] if i == 0 else 1.0 - x[0]))

    def mean_payoff(x: Array, y: Array) -> Any:
        total = 0.0
        for i in range(2):
            gap = y[i] - target(x, i)
            total += 0.4 * gap - math.sqrt(gap * gap + 0.0004)
        return total

    def best_decision(x: Array) -> Any:
        return np.array([target(x, 0) + best_gap, target(x, 1) + best_gap])

    return with_curvature(unit_problem(1, 2, mean_payoff, best_decision))


def huber() -> Problem:
    """Quadratic within 0.1 of the optimum and linear beyond; noise from Laplace's distribution."""

    def mean_payoff(x: Array, y: Array) -> Any:
        total = 0.0
        for i in range(4):
            gap = abs(y[i] - 0.3 - 0.1 * i - 0.2 * math.cos(3.0 * x[0] + i))
            total -= gap * gap if gap < 0.1 else 0.2 * gap - 0.01
        return total

    def best_decision(x: Array) -> Any:
        out = np.empty(4)
        for i in range(4):
            out[i] = 0.3 + 0.1 * i + 0.2 * math.cos(3.0 * x[0] + i)
        return out

    sample_payoff = laplace_noise(compiled_helper(mean_payoff), 0.07)
    return unit_problem(
        1, 4, mean_payoff, best_decision, sample_payoff=sample_payoff, curvature=2.0
    )


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
    curvature = 1.0 / largest  # a/(0.05 + y)², where y = a - 0.05
    return unit_problem(dx, dy, mean_payoff, best_decision, curvature=curvature)


def root_utility() -> Problem:
    """`Σ_i a_i(x) √y_i - y_i`: infinitely steep at 0."""

    def mean_payoff(x: Array, y: Array) -> Any:
        total = 0.0
        for i in range(4):
            total += (0.6 + 0.3 * i + 0.4 * x[0]) * math.sqrt(y[i]) - y[i]
        return total

    def best_decision(x: Array) -> Any:
        out = np.empty(4)
        for i in range(4):
            out[i] = min((0.3 + 0.15 * i + 0.2 * x[0]) ** 2, 1.0)
        return out

    return with_curvature(unit_problem(1, 4, mean_payoff, best_decision))


def cosine_hills() -> Problem:
    """`Σ_i cos(1.5 (y_i - m_i(x)))`."""
    target = compiled_helper(lambda x, i: 0.5 + 0.3 * math.sin(3.0 * x[0] + i))

    def mean_payoff(x: Array, y: Array) -> Any:
        total = 0.0
        for i in range(3):
            total += math.cos(1.5 * (y[i] - target(x, i)))
        return total

    def best_decision(x: Array) -> Any:
        return np.array([target(x, 0), target(x, 1), target(x, 2)])

    return unit_problem(1, 3, mean_payoff, best_decision, curvature=2.25)


def constant() -> Problem:
    """Nothing matters."""

    def mean_payoff(x: Array, y: Array) -> Any:
        return 1.0

    def best_decision(x: Array) -> Any:
        return np.array([0.5, 0.5])

    return unit_problem(1, 2, mean_payoff, best_decision, curvature=1.0)


WORLDS: Entries = {
    "kink": Entry(kink, SUITE),
    "smooth-pinball": Entry(smooth_pinball, UNSEEN),
    "huber": Entry(huber, SUITE),
    "log-utility-3": Entry(partial(log_utility, 1, 3), SUITE),
    "log-utility-5": Entry(partial(log_utility, 2, 5), SUITE),
    "root-utility": Entry(root_utility, UNSEEN),
    "cosine-hills": Entry(cosine_hills, UNSEEN),
    "constant": Entry(constant, SUITE),
}
