"""Deciding: the peak of a surface that is drawn, near the best decision known (eq. 10 to 12).

Legend: v = 2y - 1 the decision in [-1, 1]^dy, ξ standard normal numbers.
"""

import math
from typing import NamedTuple

from continuarm.core.compiling import Array, compiled, compiled_large, copy_into
from continuarm.core.guards import climb_in, settle
from continuarm.core.learners.exploration import happens, surest, uniform
from continuarm.core.learners.smooth.features import (
    at_context,
    fill_columns,
    fill_functions,
    fill_way,
)
from continuarm.core.learners.smooth.layout import (
    SEEN,
    WEIGHT,
    SmoothSurfaceConfig,
    end_of,
    lead_of,
    noise_of,
)
from continuarm.core.learners.smooth.triangle import draw, spread
from continuarm.core.request import Region, Request

__all__ = ["Room", "decide_by_draw", "explores", "fill_best", "room", "trust_of"]

SHY = 2.0  # the fewer payoffs for each column, the less a noise that they tell of is believed
EXPLORED, AT_MOST = 5.0, 0.2  # decisions, and their share, that are uniform within reach


class Room(NamedTuple):
    """Room to compute in."""

    mean: Array  # the coefficients of the rung that decides
    drawn: Array
    a: Array
    b: Array
    functions: Array  # of the context
    one: Array  # coefficients of the decision's features, or the features themselves
    two: Array
    low: Array  # of a region
    high: Array
    centre: Array
    best: Array
    rest: Array


@compiled
def room(cfg: SmoothSurfaceConfig, row: Array, work: Array) -> Room:
    """Lay out the room."""
    p, q, dy, end = cfg.size, cfg.features, cfg.dy, end_of(row, lead_of(row))
    f = 4 * p
    k = f + cfg.functions
    d = k + 2 * q
    return Room(
        work[:end],
        work[p : p + end],
        work[2 * p : 2 * p + end],
        work[3 * p : 3 * p + end],
        work[f:k],
        work[k : k + q],
        work[k + q : d],
        work[d : d + dy],
        work[d + dy : d + 2 * dy],
        work[d + 2 * dy : d + 3 * dy],
        work[d + 3 * dy : d + 4 * dy],
        work[d + 4 * dy :],
    )


@compiled
def _highest(
    cfg: SmoothSurfaceConfig, surface: Array, region: Region, work: Array, v: Array
) -> bool:
    """Where in a region of [-1, 1]^dy a surface is highest ; False: nothing is allowed."""
    dy = cfg.dy
    slopes, bends, twists = (
        surface[1 : 1 + dy],
        surface[1 + dy : 1 + 2 * dy],
        surface[1 + 2 * dy :],
    )
    return climb_in(region.guard, slopes, bends, twists, region, work, v)


@compiled
def trust_of(row: Array) -> float:
    """How many units of |R⁻ᵀa| are taken off what seems to be gained (eq. 11)."""
    columns = end_of(row, lead_of(row))
    noise = math.sqrt(row[WEIGHT] * noise_of(row, lead_of(row)))
    return float((1.0 + SHY * columns / row[SEEN]) * noise)


@compiled_large
def _fill_centre(
    cfg: SmoothSurfaceConfig, row: Array, request: Request, here: Room, v0: Array
) -> None:
    """The point between start and peak that is surest to be better than the start (eq. 11).

    The coefficients and the functions are in the room.
    """
    dy, region, low, high = cfg.dy, request.region, here.low, here.high
    for j in range(dy):
        low[j], high[j] = 2.0 * region.low[j] - 1.0, 2.0 * region.high[j] - 1.0
        v0[j] = min(max(2.0 * request.start[j] - 1.0, low[j]), high[j])
    at_context(row, here.functions, here.mean, here.one)
    if not _highest(cfg, here.one, Region(low, high, False, region.guard), here.rest, here.best):
        copy_into(here.best, v0)
    copy_into(here.centre, here.best)
    if cfg.reach == 0.0:
        return
    gain = bend = 0.0
    fill_way(cfg, v0, here.best, here.two, here.rest)
    for k in range(cfg.features):
        gain += here.one[k] * here.two[k]
        bend += here.one[k] * here.rest[k]
    fill_columns(row, here.functions, here.two, 1.0, here.a)
    fill_columns(row, here.functions, here.rest, 1.0, here.b)
    aa, ab, bb = spread(cfg, row, here.a, here.b)
    t = surest(gain, bend, trust_of(row), aa, ab, bb)
    for j in range(dy):
        here.centre[j] = v0[j] + t * (here.best[j] - v0[j])


@compiled
def explores(cfg: SmoothSurfaceConfig, row: Array, xi: float) -> bool:
    """Whether this decision is uniform within reach."""
    return bool(cfg.reach > 0.0 and happens(min(EXPLORED / row[SEEN], AT_MOST), xi))


@compiled_large
def decide_by_draw(
    cfg: SmoothSurfaceConfig, row: Array, request: Request, work: Array, y: Array
) -> None:
    """The peak of a surface that is drawn, within reach of the centre (eq. 10 and 12)."""
    dy, region, here = cfg.dy, request.region, room(cfg, row, work)
    fill_functions(cfg, row, request.u, here.rest, here.functions)
    sigma = cfg.spread * math.sqrt(row[WEIGHT] * noise_of(row, lead_of(row)))
    draw(cfg, row, sigma, request.xi, here.drawn, here.mean)
    _fill_centre(cfg, row, request, here, y)
    c, low, high = here.centre, here.low, here.high
    for j in range(dy):
        low[j], high[j] = 2.0 * region.low[j] - 1.0, 2.0 * region.high[j] - 1.0
        if cfg.reach > 0.0:
            half = 2.0 * request.reach[j]  # v goes from -1 to 1
            low[j], high[j] = max(low[j], c[j] - half), min(high[j], c[j] + half)
    at_context(row, here.functions, here.drawn, here.one)
    evenly = explores(cfg, row, request.xi[0])
    if evenly:
        for j in range(dy):
            y[j] = uniform(request.xi[1 + j], low[j], high[j])
    elif not _highest(cfg, here.one, Region(low, high, False, region.guard), here.rest, y):
        evenly = True
        copy_into(y, c)
    if evenly:
        settle(region.guard, region, low, high, c, here.rest, y)
    for j in range(dy):
        y[j] = 0.5 + 0.5 * y[j]


@compiled_large
def fill_best(
    cfg: SmoothSurfaceConfig, row: Array, request: Request, work: Array, y: Array
) -> None:
    """The centre (eq. 11)."""
    here = room(cfg, row, work)
    fill_functions(cfg, row, request.u, here.rest, here.functions)
    draw(cfg, row, 0.0, request.xi, here.drawn, here.mean)
    _fill_centre(cfg, row, request, here, y)
    for j in range(cfg.dy):
        y[j] = 0.5 + 0.5 * here.centre[j]
