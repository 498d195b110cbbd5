"""Worlds that do not keep still: levels that move, absurd payoffs, unequal noise, rare purchases.

All but the purchases are one quadratic, `-(y - 0.35 - 0.3x)²` with noise 0.05, and something that
is added to its payoffs whatever is decided.
"""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from continuarm.core.compiling import Array
from continuarm.problems.building import compiled_helper, tracking, unit_problem
from continuarm.problems.curvature import with_curvature
from continuarm.problems.definition import Problem
from continuarm.problems.entry import STREET, Entries, Entry

__all__ = ["WORLDS"]

Numbers = NDArray[np.int64]
Rng = np.random.Generator


def _world(disturbance: Any = None, noise: float = 0.05, **more: Any) -> Problem:
    def target(x: Array, i: int) -> Any:
        return 0.35 + 0.3 * x[0]

    return tracking(1, 1, compiled_helper(target), noise=noise, disturbance=disturbance, **more)


def _rise(rng: Rng, i: Numbers, x: Array) -> Array:
    return np.where(i >= 5000, 1.0, 0.0)


def _week(rng: Rng, i: Numbers, x: Array) -> Array:
    return np.where(i // 1000 % 7 == 6, 1.0, 0.0)


def _sine(rng: Rng, i: Numbers, x: Array) -> Array:
    return np.sin(i / 500.0)


def _segment(rng: Rng, i: Numbers, x: Array) -> Array:
    return np.where((i >= 10_000) & (x[:, 0] > 0.5), 10.0, 0.0)


def _absurd(rng: Rng, i: Numbers, x: Array) -> Array:
    return np.where(rng.random(len(i)) < 1e-4, 1e6, 0.0)


def _cauchy(rng: Rng, i: Numbers, x: Array) -> Array:
    return 0.05 * rng.standard_cauchy(len(i))


def _unequal(rng: Rng, i: Numbers, x: Array) -> Array:
    return rng.standard_normal(len(i)) * 10.0 ** (-2.0 * x[:, 0])


def _same(rng: Rng, n: int) -> Array:
    return np.full((n, 1), 0.3)


def quiet(noise: float = 0.05) -> Problem:
    """The quadratic, and nothing else."""
    return _world(noise=noise)


def level_rise(noise: float = 0.05) -> Problem:
    """After 5,000 decisions all payoffs are higher by 1."""
    return _world(_rise, noise)


def level_week() -> Problem:
    """Every seventh thousand of decisions, payoffs are higher by 1."""
    return _world(_week)


def level_sine() -> Problem:
    """The level follows a sine of amplitude 1 and a period of about 3,000 decisions."""
    return _world(_sine)


def level_segment() -> Problem:
    """After 10,000 decisions the upper half of the contexts pays more by 10."""
    return _world(_segment)


def absurd_payoffs() -> Problem:
    """One payoff in 10,000 is a million."""
    return _world(_absurd)


def cauchy_noise() -> Problem:
    """Noise without a variance."""
    return _world(_cauchy, noise=0.0)


def unequal_noise() -> Problem:
    """Noise whose standard deviation falls from 1 to 0.01 along the context."""
    return _world(_unequal, noise=0.0)


def same_context() -> Problem:
    """All contexts are alike."""
    return _world(contexts=_same)


def purchases(chance: float) -> Problem:
    """A price, and at the best of them a purchase with this probability, 1 in so many."""
    highest = chance * math.e

    def paid(x: Array, y: Array) -> Any:
        return highest * math.exp(-y[0] * (3.0 - x[0]))

    paid = compiled_helper(paid)

    def mean_payoff(x: Array, y: Array) -> Any:
        return y[0] * paid(x, y)

    def sample_payoff(x: Array, y: Array, rng: Rng) -> Any:
        return y[0] if rng.random() < paid(x, y) else 0.0

    def best_decision(x: Array) -> Any:
        return np.array([1.0 / (3.0 - x[0])])

    return with_curvature(
        unit_problem(1, 1, mean_payoff, best_decision, sample_payoff=sample_payoff)
    )


WORLDS: Entries = {
    "street-quiet": Entry(quiet, STREET),
    "street-loud": Entry(partial(quiet, noise=1.0), STREET),
    "level-rise": Entry(level_rise, STREET),
    "level-rise-loud": Entry(partial(level_rise, noise=1.0), STREET),
    "level-week": Entry(level_week, STREET),
    "level-sine": Entry(level_sine, STREET),
    "level-segment": Entry(level_segment, STREET),
    "absurd-payoffs": Entry(absurd_payoffs, STREET),
    "cauchy-noise": Entry(cauchy_noise, STREET),
    "unequal-noise": Entry(unequal_noise, STREET),
    "same-context": Entry(same_context, STREET),
    "purchase-in-100": Entry(partial(purchases, chance=0.01), STREET),
    "purchase-in-1000": Entry(partial(purchases, chance=0.001), STREET),
}
