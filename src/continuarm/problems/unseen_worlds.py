"""Worlds of the suite that were written, and first run, when the policies were finished."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.jit import Array
from continuarm.problems.definition import Problem
from continuarm.problems.logit import lambert
from continuarm.problems.worlds import compiled_helper, tracking, with_curvature

__all__ = ["UNSEEN_WORLDS"]


def auction() -> Problem:
    """Bid y for what is worth v(x); a bid wins with probability 1 - e^(-k(x) y)."""

    def mean_payoff(x: Array, y: Array) -> Any:
        return (1.0 + x[0] - y[0]) * (1.0 - math.exp(-(1.0 + 3.0 * x[1]) * y[0]))

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        won = rng.random() < 1.0 - math.exp(-(1.0 + 3.0 * x[1]) * y[0])
        return 1.0 + x[0] - y[0] if won else 0.0

    def best_decision(x: Array) -> Any:
        worth, rate, low, high = 1.0 + x[0], 1.0 + 3.0 * x[1], 0.0, 2.0
        for _ in range(60):  # the slope falls: find where it is 0
            middle = 0.5 * (low + high)
            if (1.0 + (worth - middle) * rate) * math.exp(-rate * middle) > 1.0:
                low = middle
            else:
                high = middle
        return np.array([low])

    return with_curvature(
        Problem(
            context=Box.unit(2),
            decision=Box([0.0], [2.0]),
            mean_payoff=mean_payoff,
            sample_payoff=sample_payoff,
            best_decision=best_decision,
        )
    )


def turning_valley() -> Problem:
    """A quadratic of condition 20 whose axes turn with the context by a right angle."""

    def mean_payoff(x: Array, y: Array) -> Any:
        angle = 0.5 * math.pi * x[0]
        a, b = y[0] - 0.3 - 0.3 * x[0], y[1] - 0.6
        along = math.cos(angle) * a + math.sin(angle) * b
        across = math.cos(angle) * b - math.sin(angle) * a
        return -along * along - 20.0 * across * across

    def best_decision(x: Array) -> Any:
        return np.array([0.3 + 0.3 * x[0], 0.6])

    return Problem(
        context=Box.unit(1),
        decision=Box.unit(2),
        mean_payoff=mean_payoff,
        best_decision=best_decision,
        curvature=2.0,
        noise=0.2,
    )


def laplace_noise() -> Problem:
    """Three contexts, three decisions, noise with the tails of Laplace."""
    target = compiled_helper(lambda x, i: 0.2 + 0.6 * x[i] * x[(i + 1) % 3])

    def mean(x: Array, y: Array) -> Any:
        total = 0.0
        for i in range(3):
            gap = y[i] - target(x, i)
            total -= gap * gap
        return total

    mean = compiled_helper(mean)

    def mean_payoff(x: Array, y: Array) -> Any:
        return mean(x, y)

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        size = -0.1 * math.log(1.0 - rng.random())
        return mean(x, y) + (size if rng.random() < 0.5 else -size)

    def best_decision(x: Array) -> Any:
        return np.array([target(x, 0), target(x, 1), target(x, 2)])

    return Problem(
        context=Box.unit(3),
        decision=Box.unit(3),
        mean_payoff=mean_payoff,
        sample_payoff=sample_payoff,
        best_decision=best_decision,
        curvature=2.0,
    )


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

    return with_curvature(
        Problem(
            context=Box.unit(1),
            decision=Box.unit(4),
            mean_payoff=mean_payoff,
            best_decision=best_decision,
            noise=0.1,
        )
    )


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

    return Problem(
        context=Box.unit(1),
        decision=Box.unit(3),
        mean_payoff=mean_payoff,
        best_decision=best_decision,
        curvature=2.25,
        noise=0.1,
    )


def step_and_slope() -> Problem:
    """The best decision jumps in one context dimension and drifts in the other."""

    def target(x: Array, i: int) -> Any:
        high = x[0] >= 0.37
        return (0.7 if high else 0.25) - 0.1 * i + 0.15 * x[1]

    return tracking(2, 2, compiled_helper(target), steepness=2.0)


def three_of_nine() -> Problem:
    """Each of three decisions depends on a context dimension of its own; six matter to none."""

    def target(x: Array, i: int) -> Any:
        return 0.2 + 0.6 * x[3 * i] ** 2

    return tracking(9, 3, compiled_helper(target), steepness=1.0)


def forty_dims() -> Problem:
    """Forty decisions of unequal curvature, a tenth of them best at an edge."""

    def target(x: Array, i: int) -> Any:
        if i % 10 == 0:
            return 1.2
        return 0.3 + 0.01 * i + 0.2 * x[0]

    return tracking(1, 40, compiled_helper(target), steepness=0.2)


def both_ends() -> Problem:
    """Contexts from Beta(0.3, 0.3): nearly all at the ends of their range."""

    def target(x: Array, i: int) -> Any:
        return 0.3 + 0.4 * x[i] + 0.2 * math.sin(5.0 * x[1 - i])

    def contexts(rng: np.random.Generator, n: int) -> Array:
        return rng.beta(0.3, 0.3, (n, 2))

    return tracking(2, 2, compiled_helper(target), contexts=contexts)


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

    return with_curvature(
        Problem(
            context=Box.unit(1),
            decision=Box.unit(2),
            mean_payoff=mean_payoff,
            best_decision=best_decision,
            noise=0.1,
        )
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

    return with_curvature(
        Problem(
            context=Box.unit(3),
            decision=Box([0.0, 0.0], [6.0, 3.0]),
            mean_payoff=mean_payoff,
            sample_payoff=sample_payoff,
            best_decision=best_decision,
        )
    )


def nearly_flat() -> Problem:
    """A payoff that hardly depends on the decision, and noise of its size."""

    def mean_payoff(x: Array, y: Array) -> Any:
        return -0.05 * (y[0] - 0.2 - 0.6 * x[0]) ** 2 - 0.05 * (y[1] - 0.8 + 0.6 * x[0]) ** 2

    def best_decision(x: Array) -> Any:
        return np.array([0.2 + 0.6 * x[0], 0.8 - 0.6 * x[0]])

    return Problem(
        context=Box.unit(1),
        decision=Box.unit(2),
        mean_payoff=mean_payoff,
        best_decision=best_decision,
        curvature=0.1,
        noise=0.02,
    )


UNSEEN_WORLDS: dict[str, Callable[[], Problem]] = {
    "auction": auction,
    "turning-valley": turning_valley,
    "laplace-noise": laplace_noise,
    "root-utility": root_utility,
    "cosine-hills": cosine_hills,
    "step-and-slope": step_and_slope,
    "three-of-9": three_of_nine,
    "forty-dims": forty_dims,
    "both-ends": both_ends,
    "smooth-pinball": smooth_pinball,
    "two-subscriptions": two_subscriptions,
    "nearly-flat": nearly_flat,
}
