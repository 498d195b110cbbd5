"""How sure a fitted surface is: its peak and its slopes, with standard errors (eq. 27 and 28).

Legend: v̂ the peak of the fitted surface in [-1, 1]^dy, H its Hessian, e_j a unit vector.
"""

import math

from continuarm.core.compiling import Array, compiled_large, copy_into, fill
from continuarm.core.learners.boxed_peak import fill_along
from continuarm.core.learners.surface.centre import fill_gates, fill_way, highest
from continuarm.core.learners.surface.features import at_context
from continuarm.core.learners.surface.layout import (
    DEGREES,
    SQUARES,
    WEIGHT,
    ResponseSurfaceConfig,
    first_of,
    size_of,
)
from continuarm.core.learners.surface.triangle import solve, spread
from continuarm.core.request import Region, Request

__all__ = ["fill_view"]

SURE = 2.0  # standard errors by which a curvature must be negative
UNSURE = -1.0  # as a standard error: there is none


@compiled_large
def fill_view(
    cfg: ResponseSurfaceConfig, row: Array, request: Request, work: Array, y: Array, view: Array
) -> None:
    """Fill the peak, its standard errors, the slopes at `y` and theirs, on the unit cube."""
    p, dy, first = size_of(row), cfg.dy, first_of(row)
    mean, gates, rest = work[:p], work[p : p + cfg.dx + 2], work[p + cfg.dx + 2 :]
    a, b, rest = rest[:p], rest[p : 2 * p], rest[2 * p :]
    v, to, low = rest[:dy], rest[dy : 2 * dy], rest[2 * dy : 3 * dy]
    high, rest = rest[3 * dy : 4 * dy], rest[4 * dy :]
    fill(gates, 1.0)
    if cfg.reach > 0.0:
        fill_gates(cfg, row, mean, gates)
    solve(cfg, row, gates, mean)
    at_context(cfg, row, request.u, mean)
    noise = math.sqrt(row[WEIGHT] * row[SQUARES] / row[DEGREES])
    theta = mean[first : first + cfg.terms]
    bends, twists = theta[dy : 2 * dy], theta[2 * dy :]
    fill(low, -1.0)
    fill(high, 1.0)
    cube = Region(low, high, True, request.region.guard)
    highest(cfg, theta, cube, rest, v)
    for j in range(dy):
        view[j], view[dy + j] = 0.5 + 0.5 * v[j], UNSURE
        fill_along(bends, twists, v, j, cube, rest, to)
        if to[j] > v[j]:
            fill_way(cfg, row, request.u, v, to, a, b)
            aa, _, _ = spread(cfg, row, gates, a, b)  # (eq. 28)
            view[dy + j] = 0.5 * noise * math.sqrt(aa)
    for j in range(dy):
        v[j] = 2.0 * y[j] - 1.0
    for j in range(dy):
        copy_into(to, v)
        to[j] += 1.0
        fill_way(cfg, row, request.u, v, to, a, b)
        slope = 0.0
        for k in range(cfg.terms):
            slope += theta[k] * a[first + k]
        aa, _, bb = spread(cfg, row, gates, a, b)  # (eq. 27)
        view[2 * dy + j], view[3 * dy + j] = 2.0 * slope, 2.0 * noise * math.sqrt(aa)
        if not theta[dy + j] < -SURE * 2.0 * noise * math.sqrt(bb):  # b·θ is half of the curvature
            view[dy + j] = UNSURE
