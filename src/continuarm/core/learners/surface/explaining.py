"""What a response surface says of itself, in plain numbers."""

import math
from typing import Any

import numpy as np
from scipy.special import chdtrc

from continuarm.core.compiling import Array, in_python
from continuarm.core.learners.surface import layout
from continuarm.core.learners.surface.centre import fill_gates, least_trust
from continuarm.core.learners.surface.features import legendre
from continuarm.core.learners.surface.layout import (
    LINEAR,
    ResponseSurfaceConfig,
    slope_degree,
    triangle,
)
from continuarm.core.learners.surface.triangle import gate_of, solve
from continuarm.core.request import Request

__all__ = ["explain", "rule"]


def _sizes(row: Array) -> tuple[int, int]:
    """p, and how many coefficients do not concern the decision; nothing is compiled for it."""
    return int(row[layout.SIZE]), int(row[layout.FIRST])


def _degrees(cfg: ResponseSurfaceConfig, row: Array) -> list[int]:
    """The degree of each context in the slopes."""
    begin = in_python(slope_degree)(cfg, 0)
    return [int(degree) for degree in row[begin : begin + cfg.dx]]


def rule(cfg: ResponseSurfaceConfig, row: Array) -> dict[str, Any] | None:
    """The coefficients of (1) that concern the decision, without and with the context."""
    (p, first), gates = _sizes(row), np.ones(2)
    if cfg.reach > 0.0:
        fill_gates(cfg, row, gates)
    theta = np.empty(p)
    solve(cfg, row, gates, 0.0, theta, theta, np.empty(p), False)
    if not np.isfinite(theta[first:]).all():
        return None
    entered = first + cfg.terms + cfg.dx * cfg.varying
    varying = theta[first + cfg.terms : entered].reshape(cfg.dx, cfg.varying)
    found = {
        "terms": theta[first : first + cfg.terms].tolist(),
        "by_context": varying.tolist(),
        "by_degree": _by_degree(cfg, row, theta[entered:]),
        "tried": row[layout.TRIED : layout.TRIED + 2 * cfg.dy].reshape(2, cfg.dy).tolist(),
    }
    if cfg.reach > 0.0:  # what eq. 12 needs: R of the decision's coefficients, column by column
        r = dense(cfg, row)[0][first:, first:]
        found["gates"] = [float(gate_of(cfg, gates, i)) for i in range(p - first)]
        found["triangle"] = [r[: j + 1, j].tolist() for j in range(p - first)]
        found["trust"] = float(least_trust(cfg, row))
    return found


def _by_degree(cfg: ResponseSurfaceConfig, row: Array, theta: Array) -> list[list[list[float]]]:
    """The slopes' coefficients of P_2, P_3, … of each context, as far as they have entered."""
    found, k = [], 0
    for degree in _degrees(cfg, row):
        n = degree - LINEAR
        found.append(theta[k : k + n * cfg.dy].reshape(n, cfg.dy).tolist())
        k += n * cfg.dy
    return found


def dense(cfg: ResponseSurfaceConfig, row: Array) -> tuple[Array, Array]:
    """R and d."""
    (p, _), entries, k = _sizes(row), row[in_python(triangle)(cfg) :], 0
    r, d = np.zeros((p, p)), np.empty(p)
    for i in range(p):
        r[i, i:], d[i] = entries[k : k + p - i], entries[k + p - i]
        k += p - i + 1
    return r, d


def explain(
    cfg: ResponseSurfaceConfig, row: Array, request: Request, centre: Array
) -> dict[str, Any]:
    """Slope and curvature of the fitted surface at its best decision, with standard errors."""
    dy = cfg.dy
    noise = math.sqrt(row[layout.SQUARES] / row[layout.DEGREES])
    r, d = dense(cfg, row)
    theta = np.asarray(np.linalg.solve(r, d), np.float64)
    functionals = _slopes_and_bends(cfg, row, request.u, centre)
    spread = np.linalg.solve(r.T, functionals.T)  # R⁻ᵀ a, for each a
    errors = noise * math.sqrt(row[layout.WEIGHT]) * np.sqrt((spread**2).sum(axis=0))
    values = functionals @ theta
    return {
        "slope": values[:dy].tolist(),
        "slope_error": errors[:dy].tolist(),
        "curvature": values[dy:].tolist(),
        "curvature_error": errors[dy:].tolist(),
        "noise": noise,
        "chances": _chances(cfg, row, r, theta, noise * math.sqrt(row[layout.WEIGHT])),
        "degrees": _degrees(cfg, row),
    }


def _chances(
    cfg: ResponseSurfaceConfig, row: Array, r: Array, theta: Array, scale: float
) -> list[list[float]]:
    """For each context and each coordinate, how likely slopes that do not vary are to look so.

    Wald's test of the coefficients of this context in the slope of this coordinate.
    """
    if cfg.varying == 0:
        return [[1.0] * cfg.dy for _ in range(cfg.dx)]
    linear = _sizes(row)[1] + cfg.terms
    entered, found = linear + cfg.dx * cfg.varying, []
    inverse = scale * np.linalg.inv(r)
    for i, degree in enumerate(_degrees(cfg, row)):
        more = degree - LINEAR
        chances = []
        for j in range(cfg.dy):
            columns = [
                linear + i * cfg.varying + j,
                *(entered + k * cfg.dy + j for k in range(more)),
            ]
            half = inverse[columns]
            wald = theta[columns] @ np.linalg.solve(half @ half.T, theta[columns])
            chances.append(float(chdtrc(len(columns), wald)))
        found.append(chances)
        entered += more * cfg.dy
    return found


def _slopes_and_bends(cfg: ResponseSurfaceConfig, row: Array, u: Array, y: Array) -> Array:
    """The vectors a for which a·θ is the slope, then the second derivative, in each y_j."""
    (p, first), dy = _sizes(row), cfg.dy
    at = np.zeros((2 * dy, p))
    v = 2.0 * y - 1.0
    for j in range(dy):
        at[j, first + j] = 2.0  # dv/dy = 2
        at[j, first + dy + j] = 2.0 * v[j]
        at[dy + j, first + dy + j] = 4.0
    k = first + 2 * dy
    if cfg.terms > 2 * dy:
        for j in range(dy):
            for other in range(j + 1, dy):
                at[j, k], at[other, k] = 2.0 * v[other], 2.0 * v[j]
                k += 1
    for i in range(cfg.dx):
        at[:, k : k + cfg.varying] = u[i] * at[:, first : first + cfg.varying]
        k += cfg.varying
    for i, highest in enumerate(_degrees(cfg, row)):
        for degree in range(LINEAR + 1, highest + 1):
            at[:, k : k + dy] = in_python(legendre)(degree, u[i]) * at[:, first : first + dy]
            k += dy
    return at
