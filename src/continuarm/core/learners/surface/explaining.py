"""What a response surface says of itself, in plain numbers."""

import math
from typing import Any

import numpy as np
from scipy.special import chdtrc

from continuarm.core.compiling import Array, in_python
from continuarm.core.learners.surface import layout
from continuarm.core.learners.surface.centre import fill_gates, least_trust
from continuarm.core.learners.surface.features import fill_features
from continuarm.core.learners.surface.layout import (
    LINEAR,
    ResponseSurfaceConfig,
    slope_degree,
    triangle,
)
from continuarm.core.learners.surface.triangle import gate_of, solve
from continuarm.core.request import Request

__all__ = ["degrees", "dense", "expected", "explain", "rule"]


def _sizes(row: Array) -> tuple[int, int]:
    """p, and how many coefficients do not concern the decision; nothing is compiled for it."""
    return int(row[layout.SIZE]), int(row[layout.FIRST])


def degrees(cfg: ResponseSurfaceConfig, row: Array) -> list[int]:
    """The degree of each context in the slopes."""
    begin = in_python(slope_degree)(cfg, 0)
    return [int(degree) for degree in row[begin : begin + cfg.dx]]


def rule(cfg: ResponseSurfaceConfig, row: Array) -> dict[str, Any] | None:
    """The coefficients of (1) that concern the decision, without and with the context."""
    (p, first), gates = _sizes(row), np.ones(cfg.dx + 2)
    if cfg.reach > 0.0:
        fill_gates(cfg, row, np.empty(p), gates)
    theta = np.empty(p)
    solve(cfg, row, gates, theta)
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
    for degree in degrees(cfg, row):
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
    """Curvature of the fitted surface at its best decision, with standard errors, and the rest."""
    noise = math.sqrt(row[layout.SQUARES] / row[layout.DEGREES])
    r, d = dense(cfg, row)
    theta = np.asarray(np.linalg.solve(r, d), np.float64)
    functionals = _bends(cfg, row, request.u)
    spread = np.linalg.solve(r.T, functionals.T)  # R⁻ᵀ a, for each a
    errors = noise * math.sqrt(row[layout.WEIGHT]) * np.sqrt((spread**2).sum(axis=0))
    return {
        "curvature": (functionals @ theta).tolist(),
        "curvature_error": errors.tolist(),
        "noise": noise,
        "chances": _chances(cfg, row, r, theta, noise * math.sqrt(row[layout.WEIGHT]), centre),
        "degrees": degrees(cfg, row),
        "tried": row[layout.TRIED : layout.TRIED + 2 * cfg.dy].reshape(2, cfg.dy).tolist(),
    }


def expected(cfg: ResponseSurfaceConfig, row: Array, u: Array, ys: Array) -> Array:
    """The payoff that is expected of decisions `(n, dy)`, and its standard error, `(n, 2)`."""
    (p, first), gates = _sizes(row), np.ones(cfg.dx + 2)
    if cfg.reach > 0.0:
        fill_gates(cfg, row, np.empty(p), gates)
    believed = np.array([1.0] * first + [gate_of(cfg, gates, i) for i in range(p - first)])
    (r, d), features = dense(cfg, row), np.empty((len(ys), p))
    for y, out in zip(ys, features, strict=True):
        fill_features(cfg, row, u, y, 1.0, out)
    gated = np.diag(np.diag(r)) + believed[:, None] * np.triu(r, 1)
    theta = np.linalg.solve(gated, believed * d)  # (eq. 11)
    spread = np.sqrt(believed)[:, None] * np.linalg.solve(r.T, features.T)
    noise = row[layout.WEIGHT] * row[layout.SQUARES] / row[layout.DEGREES]
    errors = np.sqrt(noise * (spread**2).sum(axis=0))
    return np.column_stack([row[layout.REFERENCE] + features @ theta, errors])


def _chances(
    cfg: ResponseSurfaceConfig, row: Array, r: Array, theta: Array, scale: float, y: Array
) -> list[list[float]]:
    """For each context and each coordinate, how likely slopes that do not vary are to look so.

    Wald's test of how the slope of this coordinate at `y` depends on this context. Elsewhere the
    slope may be much less sure, because nothing was tried there.
    """
    if cfg.varying == 0:
        return [[1.0] * cfg.dy for _ in range(cfg.dx)]
    linear = _sizes(row)[1] + cfg.terms
    entered, found = linear + cfg.dx * cfg.varying, []
    inverse, slopes = scale * np.linalg.inv(r), _slopes(cfg, 2.0 * y - 1.0)
    for i, degree in enumerate(degrees(cfg, row)):
        more = degree - LINEAR
        chances = []
        for j in range(cfg.dy):
            at = np.zeros((1 + more, len(theta)))
            begin = linear + i * cfg.varying
            at[0, begin : begin + cfg.varying] = slopes[j]
            for k in range(more):
                at[1 + k, entered + k * cfg.dy + j] = 1.0
            half, values = at @ inverse, at @ theta
            wald = values @ np.linalg.solve(half @ half.T, values)
            chances.append(float(chdtrc(1 + more, wald)))
        found.append(chances)
        entered += more * cfg.dy
    return found


def _slopes(cfg: ResponseSurfaceConfig, v: Array) -> Array:
    """For each coordinate, its slope at v in terms of the coefficients that vary."""
    dy, at = cfg.dy, np.zeros((cfg.dy, cfg.terms))
    at[:, :dy], at[:, dy : 2 * dy] = np.eye(dy), np.diag(v)
    for k, (j, other) in enumerate(zip(*np.triu_indices(dy, 1), strict=True), 2 * dy):
        if k < cfg.terms:
            at[j, k], at[other, k] = v[other], v[j]
    return at[:, : cfg.varying]


def _bends(cfg: ResponseSurfaceConfig, row: Array, u: Array) -> Array:
    """The vectors a for which a·θ is the second derivative in each y_j."""
    (p, first), dy = _sizes(row), cfg.dy
    at, k = np.zeros((dy, p)), first + cfg.terms
    at[:, first + dy : first + 2 * dy] = 4.0 * np.eye(dy)  # dv/dy = 2
    for i in range(cfg.dx):
        at[:, k : k + cfg.varying] = u[i] * at[:, first : first + cfg.varying]
        k += cfg.varying
    return at
