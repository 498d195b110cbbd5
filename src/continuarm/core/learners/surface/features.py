"""φ(u, v): what the payoff is taken to be linear in (eq. 1), and what might enter (eq. 24)."""

from continuarm.core.compiling import Array, compiled, compiled_large
from continuarm.core.learners.surface.layout import (
    LINEAR,
    SQUARE,
    TWO,
    ResponseSurfaceConfig,
    baseline_degree,
    first_of,
    slope_degree,
)

__all__ = ["at_context", "fill_candidates", "fill_features", "legendre"]


@compiled
def legendre(k: int, u: float) -> float:
    """P_k(u), the Legendre polynomial of degree k."""
    before, now = 1.0, u
    if k == 0:
        return before
    for n in range(1, k):
        before, now = now, ((2 * n + 1) * u * now - n * before) / (n + 1)
    return now


@compiled_large
def fill_features(
    cfg: ResponseSurfaceConfig, row: Array, u: Array, y: Array, scale: float, out: Array
) -> None:
    """φ times `scale`, in the order baseline, decision, context times decision.

    1, u, u_i u_j, P_k(u_i); v, ½v_j², v_j v_l; u_i times the first of these, P_k(u_i) v.
    """
    dx, dy = cfg.dx, cfg.dy
    out[0] = scale
    for i in range(dx):
        out[1 + i] = scale * u[i]
    k = 1 + dx
    for i in range(dx):
        for other in range(i, dx if cfg.pairs else i + 1):
            out[k] = u[i] * out[1 + other]
            k += 1
    if first_of(row) > k:
        for i in range(dx):
            for degree in range(SQUARE + 1, int(row[baseline_degree(cfg, i)]) + 1):
                out[k] = scale * legendre(degree, u[i])
                k += 1
    v = k
    for j in range(dy):
        out[v + j] = scale * (2.0 * y[j] - 1.0)
        out[v + dy + j] = (y[j] - 0.5) * out[v + j]
    k += 2 * dy
    if cfg.terms > 2 * dy:
        for j in range(dy):
            for other in range(j + 1, dy):
                out[k] = (2.0 * y[j] - 1.0) * out[v + other]
                k += 1
    for i in range(dx):
        for j in range(cfg.varying):
            out[k] = u[i] * out[v + j]
            k += 1
    for i in range(dx):
        for degree in range(LINEAR + 1, int(row[slope_degree(cfg, i)]) + 1):
            factor = legendre(degree, u[i])
            for j in range(dy):
                out[k] = factor * out[v + j]
                k += 1


@compiled_large
def fill_candidates(
    cfg: ResponseSurfaceConfig, row: Array, u: Array, v: Array, scale: float, out: Array
) -> None:
    """For each context what might enter: P_k(u_i) v, P_{k+1}(u_i) v, …, and the baseline's P_k.

    v : as it stands in φ, times `scale`.
    """
    dy, k = cfg.dy, 0
    for i in range(cfg.dx):
        first = int(row[slope_degree(cfg, i)]) + 1
        for degree in range(first, first + cfg.degree - LINEAR):
            factor = legendre(degree, u[i]) if degree <= cfg.degree else 0.0
            for j in range(dy):
                out[k] = factor * v[j]
                k += 1
        first = int(row[baseline_degree(cfg, i)]) + 1
        for degree in range(first, first + TWO):
            out[k] = scale * legendre(degree, u[i]) if degree <= 2 * cfg.degree else 0.0
            k += 1


@compiled
def at_context(cfg: ResponseSurfaceConfig, row: Array, u: Array, theta: Array) -> None:
    """Turn the coefficients of the decision into those that hold for one context."""
    first = first_of(row)
    k = first + cfg.terms
    for i in range(cfg.dx):
        for j in range(cfg.varying):
            theta[first + j] += theta[k] * u[i]
            k += 1
    for i in range(cfg.dx):
        for degree in range(LINEAR + 1, int(row[slope_degree(cfg, i)]) + 1):
            factor = legendre(degree, u[i])
            for j in range(cfg.dy):
                theta[first + j] += theta[k] * factor
                k += 1
