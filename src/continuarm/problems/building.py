"""What worlds are built of: their frame, a frequent payoff, and what several of them compute."""

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.problems.definition import Problem

__all__ = ["compiled_helper", "laplace_noise", "peak_by_halving", "tracking", "unit_problem"]

HALVINGS = 60


def compiled_helper(function: Any) -> Any:
    """A function that the functions of a problem call."""
    return numba.njit(function)


def unit_problem(
    dx: int,
    decision: int | Box,
    mean_payoff: Callable[..., Any],
    best_decision: Callable[..., Any],
    **more: Any,
) -> Problem:
    """A problem with contexts in the unit cube, and decisions, too, if `decision` is a number."""
    return Problem(
        context=Box.unit(dx),
        decision=decision if isinstance(decision, Box) else Box.unit(decision),
        mean_payoff=mean_payoff,
        best_decision=best_decision,
        **more,
    )


def tracking(
    dx: int, dy: int, target: Any, *, noise: float = 0.1, steepness: float = 0.0, **more: Any
) -> Problem:
    """`-Σ_i (1 + steepness·i) (y_i - target(x, i))²`; the target may lie outside the unit cube."""

    def mean_payoff(x: Array, y: Array) -> Any:
        total = 0.0
        for i in range(dy):
            gap = y[i] - target(x, i)
            total -= (1.0 + steepness * i) * gap * gap
        return total

    def best_decision(x: Array) -> Any:
        out = np.empty(dy)
        for i in range(dy):
            out[i] = min(max(target(x, i), 0.0), 1.0)
        return out

    return unit_problem(dx, dy, mean_payoff, best_decision, curvature=2.0, noise=noise, **more)


def laplace_noise(mean: Any, scale: float) -> Callable[..., Any]:
    """Random payoffs around a compiled mean, with noise from Laplace's distribution."""

    def sample_payoff(x: Array, y: Array, rng: np.random.Generator) -> Any:
        size = -scale * math.log(1.0 - rng.random())
        return mean(x, y) + (size if rng.random() < 0.5 else -size)

    return sample_payoff


def peak_by_halving(rises: Any, high: float) -> Callable[..., Any]:
    """The best one of decisions in `[0, high]`; `rises(x, y)` says whether the payoff still rises.

    `rises` is compiled.
    """

    def best_decision(x: Array) -> Any:
        below, above = 0.0, high
        for _ in range(HALVINGS):
            middle = 0.5 * (below + above)
            if rises(x, middle):
                below = middle
            else:
                above = middle
        return np.array([below])

    return best_decision
