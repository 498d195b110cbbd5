"""Quadratic payoffs: of any dimension and condition, turning with the context, nearly flat."""

import math
from functools import partial
from typing import Any

import numpy as np

from continuarm.checks import flag, number, whole
from continuarm.core.compiling import Array, compiled
from continuarm.errors import SettingsError
from continuarm.problems.building import unit_problem
from continuarm.problems.definition import Problem
from continuarm.problems.entry import NAMED, SUITE, UNSEEN, Entries, Entry

__all__ = ["WORLDS", "nearly_flat", "quadratic", "turning_valley"]

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
    """`f(x, y) = -½ (y - y*(x))ᵀ H (y - y*(x))` on unit cubes, y*(x) a smooth random function.

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

    return unit_problem(
        dx,
        dy,
        mean_payoff,
        best_decision,
        gradient=gradient,
        curvature=float(eigenvalues[0]),
        curvature_max=float(eigenvalues[-1]),
        noise=noise,
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

    return unit_problem(1, 2, mean_payoff, best_decision, curvature=2.0, noise=0.2)


def nearly_flat() -> Problem:
    """A payoff that hardly depends on the decision, and noise of its size."""

    def mean_payoff(x: Array, y: Array) -> Any:
        return -0.05 * (y[0] - 0.2 - 0.6 * x[0]) ** 2 - 0.05 * (y[1] - 0.8 + 0.6 * x[0]) ** 2

    def best_decision(x: Array) -> Any:
        return np.array([0.2 + 0.6 * x[0], 0.8 - 0.6 * x[0]])

    return unit_problem(1, 2, mean_payoff, best_decision, curvature=0.1, noise=0.02)


def _fixed(**settings: Any) -> Entry:
    """A quadratic of the suite."""
    return Entry(partial(quadratic, **settings), SUITE)


WORLDS: Entries = {
    "quadratic": Entry(quadratic, NAMED),
    "scalar": _fixed(dx=1, dy=1, condition=1.0),
    "plane": _fixed(dx=2, dy=2, condition=4.0),
    "rotated-100": _fixed(dx=1, dy=3, condition=100.0),
    "rotated-1000": _fixed(dx=2, dy=5, condition=1000.0, curvature=0.1),
    "rotated-20-dims": _fixed(dx=1, dy=20, condition=30.0, curvature=0.2),
    "tiny-noise": _fixed(dx=1, dy=3, condition=10.0, noise=0.001),
    "ridge": _fixed(dx=1, dy=2, condition=1000.0, noise=0.5, seed=9),
    "turning-valley": Entry(turning_valley, UNSEEN),
    "nearly-flat": Entry(nearly_flat, UNSEEN),
}
