"""φ(u, v): what the payoff is taken to be linear in (eq. 1)."""

from continuarm.core.compiling import Array, compiled, compiled_large, fill
from continuarm.core.learners.smooth.layout import (
    STEP,
    SmoothSurfaceConfig,
    alive_of,
    column_at,
    function_at,
)

__all__ = ["at_context", "fill_columns", "fill_features", "fill_functions", "fill_way"]


@compiled_large
def fill_functions(
    cfg: SmoothSurfaceConfig, row: Array, u: Array, powers: Array, out: Array
) -> None:
    """The functions of the context that have columns; `powers` is room for P_k(u_i)."""
    n = cfg.degree + 1
    for i in range(cfg.dx):
        powers[i * n] = 1.0
        if n > 1:
            powers[i * n + 1] = u[i]
        for k in range(1, n - 1):
            before, now = powers[i * n + k - 1], powers[i * n + k]
            powers[i * n + k + 1] = ((2 * k + 1) * u[i] * now - k * before) / (k + 1)
    last = -1
    for column in range(alive_of(row)):
        f = int(row[column_at(column)])
        if f != last:
            out[f] = _function(cfg, u, powers, f)
            last = f


@compiled
def _function(cfg: SmoothSurfaceConfig, u: Array, powers: Array, f: int) -> float:
    n, k = cfg.degree + 1, function_at(f)
    i, a, j, b = int(cfg.table[k]), int(cfg.table[k + 1]), int(cfg.table[k + 2]), cfg.table[k + 3]
    if a == STEP:
        return 1.0 if u[i] >= b else 0.0
    value = powers[i * n + a] if a > 0 else 1.0
    return float(value * powers[j * n + int(b)] if b > 0.0 else value)


@compiled
def fill_features(cfg: SmoothSurfaceConfig, y: Array, out: Array) -> None:
    """1, v, ½v_j², and row by row v_j v_l."""
    dy = cfg.dy
    out[0] = 1.0
    for j in range(dy):
        v = 2.0 * y[j] - 1.0
        out[1 + j], out[1 + dy + j] = v, 0.5 * v * v
    k = 1 + 2 * dy
    if cfg.features > k:
        for j in range(dy):
            for other in range(j + 1, dy):
                out[k] = out[1 + j] * out[1 + other]
                k += 1


@compiled
def fill_way(cfg: SmoothSurfaceConfig, start: Array, best: Array, a: Array, b: Array) -> None:
    """The features at v0 + t(v̂ - v0) less those at v0 are ta + t²b."""
    dy = cfg.dy
    a[0], b[0] = 0.0, 0.0
    for j in range(dy):
        way = best[j] - start[j]
        a[1 + j], b[1 + j] = way, 0.0
        a[1 + dy + j], b[1 + dy + j] = start[j] * way, 0.5 * way * way
    k = 1 + 2 * dy
    if cfg.features > k:
        for j in range(dy):
            for other in range(j + 1, dy):
                way, beside = best[j] - start[j], best[other] - start[other]
                a[k], b[k] = start[j] * beside + start[other] * way, way * beside
                k += 1


@compiled
def fill_columns(row: Array, functions: Array, features: Array, scale: float, out: Array) -> None:
    """φ times `scale`, as many columns as there is room for."""
    k = column_at(0)
    for i in range(out.shape[0]):
        out[i] = scale * functions[int(row[k])] * features[int(row[k + 1])]
        k += 2


@compiled
def at_context(row: Array, functions: Array, theta: Array, out: Array) -> None:
    """What the coefficients are for one context, by feature of the decision."""
    fill(out, 0.0)
    k = column_at(0)
    for i in range(theta.shape[0]):
        out[int(row[k + 1])] += theta[i] * functions[int(row[k])]
        k += 2
