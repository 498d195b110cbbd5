"""The paper's own worlds: the example of its Section 5 and the family behind its lower bound."""

from functools import partial
from math import sqrt

import numpy as np

from continuarm.box import Box
from continuarm.checks import whole
from continuarm.core.compiling import Array, compiled
from continuarm.errors import SettingsError
from continuarm.problems.building import unit_problem
from continuarm.problems.definition import Problem
from continuarm.problems.entry import SUITE, SUITE_AND_NAMED, Entries, Entry

__all__ = ["WORLDS", "hard", "two_communities"]


@compiled
def _first_weight(x: Array) -> float:
    """`(1/d1)/(1/d1 + 1/d2)`, which is undefined at 0.1 (reading 11)."""
    near, far = abs(x[0] - 0.1), abs(x[0] - 0.9)
    return far / (near + far)  # type: ignore[no-any-return]


def two_communities(*, noise: float = 0.1) -> Problem:
    """Two communities with different payoffs, dx = 1, dy = 2: the paper's own experiment.

    Its curvatures are attained at x = 0.9 (reading 11).

    >>> two_communities().best_decision([0.1])
    array([0.5, 0.5])
    """

    def mean_payoff(x: Array, y: Array) -> float:
        w1 = _first_weight(x)
        f1 = -((y[0] - y[1]) ** 2) - (y[0] - 0.5) ** 2
        f2 = -((y[0] - 2.0 * y[1]) ** 2) - (y[1] - 1.0 / 3.0) ** 2
        return float(w1 * f1 + (1.0 - w1) * f2)

    def gradient(x: Array, y: Array) -> tuple[float, float]:
        w1 = _first_weight(x)
        w2 = 1.0 - w1
        across, down = y[0] - y[1], y[0] - 2.0 * y[1]
        return (
            -2.0 * w1 * (across + y[0] - 0.5) - 2.0 * w2 * down,
            2.0 * w1 * across + 4.0 * w2 * down - 2.0 * w2 * (y[1] - 1.0 / 3.0),
        )

    def best_decision(x: Array) -> tuple[float, float]:
        """Where the gradient is zero."""
        w1 = _first_weight(x)
        w2 = 1.0 - w1
        a, b, d = 2.0 * w1 + w2, -(w1 + 2.0 * w2), w1 + 5.0 * w2
        det = a * d - b * b
        return (d * w1 / 2.0 - b * w2 / 3.0) / det, (a * w2 / 3.0 - b * w1 / 2.0) / det

    return unit_problem(
        1,
        2,
        mean_payoff,
        best_decision,
        gradient=gradient,
        curvature=6 - 4 * sqrt(2),
        curvature_max=6 + 4 * sqrt(2),
        noise=noise,
    )


@compiled
def _place(x: Array, cells: int) -> tuple[int, float]:
    """The cell of a context and its distance to the cell's edge."""
    cell, distance = 0, 1.0
    for i in range(x.shape[0]):
        k = min(int(x[i] * cells), cells - 1)
        cell = cell * cells + k
        distance = min(distance, x[i] - k / cells, (k + 1) / cells - x[i])
    return cell, max(distance, 0.0)


def hard(
    *, dx: int = 1, dy: int = 2, cells: int = 8, seed: int = 0, noise: float = 0.1
) -> Problem:
    """A random member of the hard family of Theorem 3, with `cells` (M) per context dimension.

    `f(x, y) = -|y|² + 2 ω_j·y d(x, ∂B_j)` for x in cell B_j of a grid of M cells per dimension,
    with ω_j in {0,1}^dy drawn at random: near each cell's edge the best decision is 0, so each
    cell must be learned by itself. The decision box is [-1,1]^dy, so that the optimum is interior
    (reading 13).
    """
    dx, dy, cells = whole("dx", dx, 1), whole("dy", dy, 1), whole("cells", cells, 1)
    if cells**dx > 10**7:
        raise SettingsError(f"`cells^dx <= 10^7` must hold, but got cells={cells}, dx={dx}")
    rng = np.random.default_rng(whole("seed", seed, 0))
    omega = rng.integers(0, 2, size=(cells**dx, dy)).astype(np.float64)

    def mean_payoff(x: Array, y: Array) -> float:
        cell, distance = _place(x, cells)
        total = 0.0
        for i in range(dy):
            total += y[i] * (2.0 * omega[cell, i] * distance - y[i])
        return total

    def best_decision(x: Array) -> Array:
        cell, distance = _place(x, cells)
        best: Array = omega[cell] * distance
        return best

    def gradient(x: Array, y: Array) -> Array:
        cell, distance = _place(x, cells)
        slope: Array = 2.0 * (omega[cell] * distance - y)
        return slope

    return unit_problem(
        dx,
        Box(-np.ones(dy), np.ones(dy)),
        mean_payoff,
        best_decision,
        gradient=gradient,
        curvature=8.0,  # 2 on [-1,1]^dy, and each side has length 2
        curvature_max=8.0,
        noise=noise,
    )


WORLDS: Entries = {
    "two-communities": Entry(two_communities, SUITE_AND_NAMED),
    "communities-quiet": Entry(partial(two_communities, noise=0.01), SUITE),
    "communities-loud": Entry(partial(two_communities, noise=1.0), SUITE),
    "communities-drowned": Entry(partial(two_communities, noise=10.0), SUITE),
    "hard": Entry(hard, SUITE_AND_NAMED),
}
