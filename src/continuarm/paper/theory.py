"""What the paper proves: the growth of regret with T and dy, and a bound at finite n.

Rates are exponents: regret grows like `dy^p T^q`. The constants of the printed bounds say nothing
at any practical horizon, so `error_bound` iterates the recursion behind Proposition 1 numerically,
with the corrected constants of docs/reading.md. K, L and n_l stand in `paper/schedules.py` and are
offered here under the same names.
"""

import math
from typing import Literal

import numpy as np

from continuarm.checks import number, whole
from continuarm.core.compiling import Array
from continuarm.errors import SettingsError
from continuarm.paper.schedules import (
    bins,
    bins_with_gradients,
    depth,
    split_after,
    step,
    step_interval,
    uniform_size,
)

__all__ = [
    "bins",
    "bins_with_gradients",
    "depth",
    "dimension_exponent",
    "error_bound",
    "horizon_exponent",
    "regret_bound",
    "split_after",
    "step",
    "step_interval",
    "uniform_size",
]

Algorithm = Literal["static", "adaptive", "uniform", "lower-bound", "robbins-monro"]


def horizon_exponent(algorithm: Algorithm, dx: int, dy: int, holder: float = 1.0) -> float:
    """The q of `T^q`: Theorems 1 to 3, the uniform algorithm, and the Remark on gradients.

    >>> [round(horizon_exponent(a, 1, 2), 4) for a in ("static", "adaptive", "uniform")]
    [0.6667, 0.6667, 0.8]
    >>> horizon_exponent("lower-bound", 1, 2)
    0.6
    """
    if algorithm in ("static", "adaptive"):
        return (dx + holder) / (dx + 2 * holder)
    if algorithm == "uniform":
        return (dx + dy + holder) / (dx + dy + 2 * holder)
    if algorithm == "lower-bound":
        return (dx + 2) / (dx + 4)
    if algorithm == "robbins-monro":  # K^dx log n from the steps, T K^-α from the bins
        return dx / (dx + holder)
    raise SettingsError(f"the algorithm must be one of {Algorithm}, but got {algorithm!r}")


def dimension_exponent(dx: int, holder: float = 1.0) -> float:
    """The p of `dy^p` in Theorems 1 and 2, `3α/(dx+2α)` (reading 12).

    >>> dimension_exponent(1)
    1.0
    """
    return 3 * holder / (dx + 2 * holder)


def error_bound(
    stencils: int,
    *,
    dy: int,
    curvature: float,
    curvature_max: float,
    noise: float,
    step: float,
    width: float = 0.2,
    initial: float | None = None,
) -> Array:
    """An upper bound of `b_n = E|ỹ_n - y*(B)|²` for n = 1 .. `stencils`, the start being n = 1.

    `b_(n+1) <= (1 - 2 a M1/n) b_n + a δ M5 √dy n^(-5/4) √b_n + a²/n² E|G|²` with
    `E|G|² <= (M5 √b_n + ½ M5 c_n √dy)² + 2 dy σ_B²/c_n²` and `b_n <= dy`, for an interior y*(B).

    Parameters
    ----------
    noise : σ_B, the standard deviation of the payoff in the bin, contexts included.
    step : a <= 1/(2 M1), because the recursion must increase in b_n to be iterated.
    initial : b_1, `|start - y*(B)|²`; default its largest value, dy.

    >>> settings = dict(dy=2, curvature=1.0, curvature_max=1.0, noise=0.1, step=0.375)
    >>> error_bound(10_000, **settings)[[0, 99, 9999]].round(4)
    array([2.    , 0.116 , 0.0105])
    """
    n_most = whole("stencils", stencils, 1)
    m1 = number("curvature", curvature)
    m5 = number("curvature_max", curvature_max)
    a = number("step", step, most=1 / (2 * m1))
    delta = number("width", width, most=0.5)
    if m5 < m1:
        raise SettingsError(f"`curvature <= curvature_max` must hold, but got {m1} and {m5}")
    bound = np.empty(n_most)
    b = float(dy) if initial is None else min(float(initial), float(dy))
    for n in range(1, n_most + 1):
        bound[n - 1] = b
        c = delta * n**-0.25
        root = math.sqrt(b)
        drift = (1 - 2 * a * m1 / n) * b + a * delta * m5 * math.sqrt(dy) * n**-1.25 * root
        gradient = (m5 * root + 0.5 * m5 * c * math.sqrt(dy)) ** 2 + 2 * dy * noise**2 / c**2
        b = min(drift + (a / n) ** 2 * gradient, float(dy))
    return bound


def regret_bound(errors: Array, *, dy: int, curvature_max: float, width: float = 0.2) -> Array:
    """The regret against y*(B) of the first 1, 2, ... stencils, from a bound of their errors.

    A stencil costs at most `½ M5 ((dy+1) b_n + 2 c_n √(dy b_n) + dy c_n²)`.
    """
    n = np.arange(1, len(errors) + 1)
    c = width * n**-0.25
    stencil = (dy + 1) * errors + 2 * c * np.sqrt(dy * errors) + dy * c**2
    return np.asarray(np.cumsum(0.5 * curvature_max * stencil))
