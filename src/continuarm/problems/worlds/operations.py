"""Decisions of a business or a clinic: how much to order, to spend, to give."""

import math
from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.problems.building import compiled_helper, peak_by_halving, unit_problem
from continuarm.problems.curvature import with_curvature
from continuarm.problems.definition import Problem
from continuarm.problems.entry import SUITE, Entries, Entry

__all__ = ["WORLDS", "budget", "dose", "newsvendor"]


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

    curvature = 0.4 / 0.6  # e^(-y/m)/m at the optimum, m at most 0.6
    return unit_problem(
        1, 1, mean_payoff, best_decision, sample_payoff=sample_payoff, curvature=curvature
    )


def dose() -> Problem:
    """Benefit y/(y + c(x)) against harm that grows with the square of the dose."""

    def mean_payoff(x: Array, y: Array) -> Any:
        half = 0.5 + 2.0 * x[0]
        return y[0] / (y[0] + half) - 0.01 * (1.0 + x[1]) * y[0] * y[0]

    def rises(x: Array, dose: float) -> Any:
        half = 0.5 + 2.0 * x[0]
        return half / (dose + half) ** 2 > 0.02 * (1.0 + x[1]) * dose

    best_decision = peak_by_halving(compiled_helper(rises), 10.0)
    doses = Box([0.0], [10.0])
    return with_curvature(unit_problem(2, doses, mean_payoff, best_decision, noise=0.2))


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

    return with_curvature(unit_problem(1, 6, mean_payoff, best_decision))


WORLDS: Entries = {
    "newsvendor": Entry(newsvendor, SUITE),
    "dose": Entry(dose, SUITE),
    "budget": Entry(budget, SUITE),
}
