"""The example of the paper's Section 5: two communities with different payoffs, dx = 1, dy = 2."""

from math import sqrt

from continuarm.box import Box
from continuarm.jit import Array
from continuarm.problems.definition import Problem

__all__ = ["two_communities"]


def mean_payoff(x: Array, y: Array) -> float:
    near, far = abs(x[0] - 0.1), abs(x[0] - 0.9)
    w1 = far / (near + far)  # (1/d1)/(1/d1 + 1/d2), which is undefined at 0.1 (reading 11)
    f1 = -((y[0] - y[1]) ** 2) - (y[0] - 0.5) ** 2
    f2 = -((y[0] - 2.0 * y[1]) ** 2) - (y[1] - 1.0 / 3.0) ** 2
    return float(w1 * f1 + (1.0 - w1) * f2)


def gradient(x: Array, y: Array) -> tuple[float, float]:
    near, far = abs(x[0] - 0.1), abs(x[0] - 0.9)
    w1 = far / (near + far)
    w2 = 1.0 - w1
    across, down = y[0] - y[1], y[0] - 2.0 * y[1]
    return (
        -2.0 * w1 * (across + y[0] - 0.5) - 2.0 * w2 * down,
        2.0 * w1 * across + 4.0 * w2 * down - 2.0 * w2 * (y[1] - 1.0 / 3.0),
    )


def best_decision(x: Array) -> tuple[float, float]:
    near, far = abs(x[0] - 0.1), abs(x[0] - 0.9)
    w1 = far / (near + far)
    w2 = 1.0 - w1
    a, b, d = 2.0 * w1 + w2, -(w1 + 2.0 * w2), w1 + 5.0 * w2  # the gradient is zero
    det = a * d - b * b
    return (d * w1 / 2.0 - b * w2 / 3.0) / det, (a * w2 / 3.0 - b * w1 / 2.0) / det


def two_communities(*, noise: float = 0.1) -> Problem:
    """The paper's own experiment; its curvatures are attained at x = 0.9 (reading 11).

    >>> two_communities().best_decision([0.1])
    array([0.5, 0.5])
    """
    return Problem(
        context=Box.unit(1),
        decision=Box.unit(2),
        mean_payoff=mean_payoff,
        best_decision=best_decision,
        gradient=gradient,
        curvature=6 - 4 * sqrt(2),
        curvature_max=6 + 4 * sqrt(2),
        noise=noise,
        name="two-communities",
    )
