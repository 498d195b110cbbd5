"""Contexts and noise that are not well behaved."""

import math
from typing import Any

import numpy as np

from continuarm.core.compiling import Array
from continuarm.problems.building import compiled_helper, laplace_noise, tracking, unit_problem
from continuarm.problems.definition import Problem
from continuarm.problems.entry import SUITE, UNSEEN, Entries, Entry

__all__ = ["WORLDS", "both_ends", "heavy_tails", "laplace", "skewed"]


def skewed() -> Problem:
    """Contexts from Beta(0.5, 5), a best decision like the root of the context."""

    def target(x: Array, i: int) -> Any:
        root = math.sqrt(x[0])
        return root if i == 0 else 1.0 - root

    def contexts(rng: np.random.Generator, n: int) -> Array:
        return rng.beta(0.5, 5.0, (n, 1))

    return tracking(1, 2, compiled_helper(target), steepness=1.0, contexts=contexts)


def both_ends() -> Problem:
    """Contexts from Beta(0.3, 0.3): nearly all at the ends of their range."""

    def target(x: Array, i: int) -> Any:
        return 0.3 + 0.4 * x[i] + 0.2 * math.sin(5.0 * x[1 - i])

    def contexts(rng: np.random.Generator, n: int) -> Array:
        return rng.beta(0.3, 0.3, (n, 2))

    return tracking(2, 2, compiled_helper(target), contexts=contexts)


def heavy_tails() -> Problem:
    """Noise from Student's t with three degrees of freedom, sd 0.17."""

    def mean_payoff(x: Array, y: Array) -> Any:
        gap = y[1] - 0.7 + 0.4 * x[0] * x[0]
        return -((y[0] - 0.3 - 0.4 * x[0]) ** 2) - 3.0 * gap * gap

    mean = compiled_helper(mean_payoff)

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        square = 0.0
        for _ in range(3):
            square += rng.standard_normal() ** 2
        return mean(x, y) + 0.1 * rng.standard_normal() / math.sqrt(square / 3.0)

    def best_decision(x: Array) -> Any:
        return np.array([0.3 + 0.4 * x[0], 0.7 - 0.4 * x[0] * x[0]])

    return unit_problem(
        1, 2, mean_payoff, best_decision, sample_payoff=sample_payoff, curvature=2.0
    )


def laplace() -> Problem:
    """Three contexts, three decisions, noise with the tails of Laplace."""
    target = compiled_helper(lambda x, i: 0.2 + 0.6 * x[i] * x[(i + 1) % 3])

    def mean_payoff(x: Array, y: Array) -> Any:
        total = 0.0
        for i in range(3):
            gap = y[i] - target(x, i)
            total -= gap * gap
        return total

    def best_decision(x: Array) -> Any:
        return np.array([target(x, 0), target(x, 1), target(x, 2)])

    sample_payoff = laplace_noise(compiled_helper(mean_payoff), 0.1)
    return unit_problem(
        3, 3, mean_payoff, best_decision, sample_payoff=sample_payoff, curvature=2.0
    )


WORLDS: Entries = {
    "skewed": Entry(skewed, SUITE),
    "both-ends": Entry(both_ends, UNSEEN),
    "heavy-tails": Entry(heavy_tails, SUITE),
    "laplace-noise": Entry(laplace, UNSEEN),
}
