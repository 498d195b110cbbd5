"""The hard family behind the paper's lower bound (Theorem 3).

`f(x, y) = -|y|² + 2 ω_j·y d(x, ∂B_j)` for x in cell B_j of a grid of M cells per dimension, with
ω_j in {0,1}^dy drawn at random: near each cell's edge the best decision is 0, so each cell must be
learned by itself. The decision box is [-1,1]^dy, so that the optimum is interior (reading 13).
"""

import numpy as np

from continuarm.box import Box
from continuarm.checks import whole
from continuarm.errors import SettingsError
from continuarm.jit import Array, compiled
from continuarm.problems.definition import Problem

__all__ = ["hard"]


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
    """A random member of the family, with `cells` (M) per context dimension."""
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

    return Problem(
        context=Box.unit(dx),
        decision=Box(-np.ones(dy), np.ones(dy)),
        mean_payoff=mean_payoff,
        best_decision=best_decision,
        gradient=gradient,
        curvature=8.0,  # 2 on [-1,1]^dy, and each side has length 2
        curvature_max=8.0,
        noise=noise,
        name="hard",
    )
