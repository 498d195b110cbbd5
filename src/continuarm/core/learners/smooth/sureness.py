"""How sure a fitted surface is: its peak and its slopes, with standard errors.

Legend: v̂ the peak of the fitted surface in [-1, 1]^dy, H its Hessian, e_j a unit vector. The
formulas are eq. 27 and 28 of docs/recommended.md, with all contexts in one model.
"""

import math

from continuarm.core.compiling import Array, compiled_large, copy_into, fill
from continuarm.core.guards import climb_in
from continuarm.core.learners.boxed_peak import fill_along
from continuarm.core.learners.smooth.deciding import Room
from continuarm.core.learners.smooth.features import (
    at_context,
    fill_columns,
    fill_functions,
    fill_way,
)
from continuarm.core.learners.smooth.layout import WEIGHT, SmoothSurfaceConfig, lead_of, noise_of
from continuarm.core.learners.smooth.triangle import draw, spread
from continuarm.core.request import Region, Request

__all__ = ["SURE", "fill_view"]

SURE = 2.0  # standard errors by which a curvature must be negative
UNSURE = -1.0  # as a standard error: there is none


@compiled_large
def fill_view(
    cfg: SmoothSurfaceConfig, row: Array, request: Request, here: Room, y: Array, view: Array
) -> None:
    """Fill the peak, its standard errors, the slopes at `y` and theirs, on the unit cube."""
    dy, v, to, surface = cfg.dy, here.best, here.centre, here.one
    fill_functions(cfg, row, request.u, here.rest, here.functions)
    draw(cfg, row, 0.0, request.xi, here.drawn, here.mean)
    at_context(row, here.functions, here.mean, surface)
    noise = math.sqrt(row[WEIGHT] * noise_of(row, lead_of(row)))
    slopes, bends = surface[1 : 1 + dy], surface[1 + dy : 1 + 2 * dy]
    twists = surface[1 + 2 * dy : cfg.features]
    fill(here.low, -1.0)
    fill(here.high, 1.0)
    cube = Region(here.low, here.high, True, request.region.guard)
    if not climb_in(cube.guard, slopes, bends, twists, cube, here.rest, v):
        for j in range(dy):
            v[j] = 2.0 * request.start[j] - 1.0
    for j in range(dy):
        view[j], view[dy + j] = 0.5 + 0.5 * v[j], UNSURE
        fill_along(bends, twists, v, j, cube, here.rest, to)
        if to[j] > v[j]:
            aa, _ = _spread_of_way(cfg, row, here, v, to)
            view[dy + j] = 0.5 * noise * math.sqrt(aa)
    for j in range(dy):
        v[j] = 2.0 * y[j] - 1.0
    for j in range(dy):
        copy_into(to, v)
        to[j] += 1.0
        fill_way(cfg, v, to, here.two, here.rest)
        slope = 0.0
        for k in range(cfg.features):
            slope += surface[k] * here.two[k]
        aa, bb = _spread_of_way(cfg, row, here, v, to)
        view[2 * dy + j], view[3 * dy + j] = 2.0 * slope, 2.0 * noise * math.sqrt(aa)
        if not bends[j] < -SURE * 2.0 * noise * math.sqrt(bb):  # b·θ is half of the curvature
            view[dy + j] = UNSURE


@compiled_large
def _spread_of_way(
    cfg: SmoothSurfaceConfig, row: Array, here: Room, start: Array, to: Array
) -> tuple[float, float]:
    """|R⁻ᵀa|² and |R⁻ᵀb|² of the features along the way, ta + t²b."""
    fill_way(cfg, start, to, here.two, here.rest)
    fill_columns(row, here.functions, here.two, 1.0, here.a)
    fill_columns(row, here.functions, here.rest, 1.0, here.b)
    aa, _, bb = spread(cfg, row, here.a, here.b)
    return aa, bb
