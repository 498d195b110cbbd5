"""A quadratic payoff of any dimension whose best decision is a smooth random function."""

import numpy as np

from continuarm.box import Box
from continuarm.checks import flag, number, whole
from continuarm.errors import SettingsError
from continuarm.jit import Array, compiled
from continuarm.problems.definition import Problem

__all__ = ["quadratic"]

WAVES = 3
REACH = 0.4  # the best decision stays this close to the centre


@compiled
def _best(x: Array, waves: Array, out: Array) -> None:
    """`y*_i(x) = 1/2 + REACH · mean_k sin(w_ik·x + φ_ik)`."""
    dx = x.shape[0]
    for i in range(out.shape[0]):
        total = 0.0
        for k in range(WAVES):
            angle = waves[i, k, dx]
            for j in range(dx):
                angle += waves[i, k, j] * x[j]
            total += np.sin(angle)
        out[i] = 0.5 + REACH * total / WAVES


def quadratic(
    *,
    dx: int = 1,
    dy: int = 2,
    condition: float = 10.0,
    curvature: float = 1.0,
    rotation: bool = True,
    seed: int = 0,
    noise: float = 0.1,
) -> Problem:
    """`f(x, y) = -½ (y - y*(x))ᵀ H (y - y*(x))` on unit cubes.

    Parameters
    ----------
    condition : ratio of the largest to the smallest eigenvalue of H, at least 1; the eigenvalues
        are spaced evenly in logarithm (with `dy = 1` only the smallest is there).
    curvature : the smallest eigenvalue.
    rotation : whether H has random axes instead of the coordinates'.
    seed : draws the axes and the waves of y*(x).
    """
    dx, dy, rotation = whole("dx", dx, 0), whole("dy", dy, 1), flag("rotation", rotation)
    condition, curvature = number("condition", condition), number("curvature", curvature)
    if condition < 1:
        raise SettingsError(f"`condition >= 1` must hold, but got {condition}")
    rng = np.random.default_rng(whole("seed", seed, 0))
    waves = np.empty((dy, WAVES, dx + 1))
    waves[:, :, :dx] = rng.normal(0.0, 4.0, (dy, WAVES, dx)) / np.sqrt(max(dx, 1))
    waves[:, :, dx] = rng.uniform(0.0, 2 * np.pi, (dy, WAVES))
    eigenvalues = curvature * condition ** np.linspace(0.0, 1.0, dy)
    axes = np.linalg.qr(rng.normal(size=(dy, dy)))[0] if rotation else np.eye(dy)
    hessian = np.ascontiguousarray((axes * eigenvalues) @ axes.T)

    def mean_payoff(x: Array, y: Array) -> float:
        gap = np.empty(dy)
        _best(x, waves, gap)
        total = 0.0
        for i in range(dy):
            gap[i] = y[i] - gap[i]
        for i in range(dy):
            if rotation:
                for j in range(dy):
                    total -= 0.5 * gap[i] * hessian[i, j] * gap[j]
            else:
                total -= 0.5 * eigenvalues[i] * gap[i] * gap[i]
        return total

    def best_decision(x: Array) -> Array:
        out = np.empty(dy)
        _best(x, waves, out)
        return out

    def gradient(x: Array, y: Array) -> Array:
        gap, out = np.empty(dy), np.zeros(dy)
        _best(x, waves, gap)
        for i in range(dy):
            gap[i] = y[i] - gap[i]
        for i in range(dy):
            for j in range(dy):
                out[i] -= hessian[i, j] * gap[j]
        return out

    return Problem(
        context=Box.unit(dx),
        decision=Box.unit(dy),
        mean_payoff=mean_payoff,
        best_decision=best_decision,
        gradient=gradient,
        curvature=float(eigenvalues[0]),
        curvature_max=float(eigenvalues[-1]),
        noise=noise,
        name="quadratic",
    )
