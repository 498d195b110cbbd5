"""φ(u, v): what the payoff is taken to be linear in (eq. 1)."""

from continuarm.core.compiling import Array, compiled
from continuarm.core.learners.surface.layout import ResponseSurfaceConfig, baseline

__all__ = ["at_context", "fill_features"]


@compiled
def fill_features(
    cfg: ResponseSurfaceConfig, u: Array, y: Array, scale: float, out: Array
) -> None:
    """φ times `scale`: 1, u, u_i u_j; v, ½v_j², v_j v_l; u_i times the first of these."""
    dx, dy = cfg.dx, cfg.dy
    out[0] = scale
    for i in range(dx):
        out[1 + i] = scale * u[i]
    k = 1 + dx
    for i in range(dx):
        for other in range(i, dx if cfg.pairs else i + 1):
            out[k] = u[i] * out[1 + other]
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


@compiled
def at_context(cfg: ResponseSurfaceConfig, u: Array, theta: Array) -> None:
    """Turn the coefficients of the decision into those that hold for one context."""
    first = baseline(cfg)
    k = first + cfg.terms
    for i in range(cfg.dx):
        for j in range(cfg.varying):
            theta[first + j] += theta[k] * u[i]
            k += 1
