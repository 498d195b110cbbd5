"""Deciding: the peak of a surface that is drawn, and the best decision known (eq. 5, 6, 12 to 14).

Legend: v = 2y - 1 the decision in [-1, 1]^dy, ξ standard normal numbers.
"""

import math

from continuarm.core.compiling import Array, compiled, compiled_large, copy_into, fill
from continuarm.core.guards import limits, settle
from continuarm.core.learners.exploration import decide_evenly, happens, uniform
from continuarm.core.learners.surface.centre import centre, fill_gates, fill_tried, highest
from continuarm.core.learners.surface.features import at_context
from continuarm.core.learners.surface.layout import (
    DEGREES,
    KNOWN,
    SINCE,
    SQUARES,
    TRIED,
    WEIGHT,
    ResponseSurfaceConfig,
    first_of,
    size,
    size_of,
)
from continuarm.core.learners.surface.triangle import draw, solve
from continuarm.core.request import Region, Request, is_inside

__all__ = ["decide_by_draw", "decide_early", "explores", "fill_best"]

EXPLORED, AT_MOST = 10.0, 0.2  # decisions, and their share, that are uniform within reach


@compiled
def explores(row: Array, xi: float) -> bool:
    """Whether this decision is uniform within reach (eq. 14)."""
    return bool(happens(min(EXPLORED / max(row[SINCE], 1.0), AT_MOST), xi))


@compiled
def decide_early(
    cfg: ResponseSurfaceConfig, row: Array, request: Request, work: Array, y: Array
) -> None:
    """Uniform within reach of the start; without a reach in the middle of the box."""
    side = cfg.middle if row[KNOWN] < size(cfg) + 3 else 1.0
    decide_evenly(request, cfg.reach > 0.0, side, work, y)


@compiled_large
def decide_by_draw(
    cfg: ResponseSurfaceConfig, row: Array, request: Request, work: Array, y: Array
) -> None:
    """The peak of a surface that is drawn (eq. 5 and 6), within reach of the centre (eq. 13)."""
    p, dy, first = size_of(row), cfg.dy, first_of(row)
    mean, drawn, gates = work[:p], work[p : 2 * p], work[2 * p : 2 * p + cfg.dx + 2]
    rest = work[2 * p + cfg.dx + 2 :]
    c, low, high, rest = rest[:dy], rest[dy : 2 * dy], rest[2 * dy : 3 * dy], rest[3 * dy :]
    region = request.region
    for j in range(dy):
        low[j], high[j] = 2.0 * region.low[j] - 1.0, 2.0 * region.high[j] - 1.0
        c[j] = 2.0 * request.start[j] - 1.0
    fill(gates, 1.0)
    if cfg.reach > 0.0:
        fill_gates(cfg, row, mean, gates)
    sigma = cfg.spread * math.sqrt(row[WEIGHT] * row[SQUARES] / row[DEGREES])
    draw(cfg, row, gates, sigma, request.xi, drawn, mean)
    at_context(cfg, row, request.u, drawn)
    if cfg.reach > 0.0:
        at_context(cfg, row, request.u, mean)
        centre(cfg, row, request, gates, mean, rest, c)
        for j in range(dy):
            half = 2.0 * request.reach[j]  # v goes from -1 to 1
            low[j], high[j] = max(low[j], c[j] - half), min(high[j], c[j] + half)
    evenly = cfg.reach > 0.0 and explores(row, request.xi[0])
    if evenly:
        for j in range(dy):
            y[j] = uniform(request.xi[1 + j], low[j], high[j])
    elif not highest(cfg, drawn[first:], Region(low, high, False, region.guard), rest, y):
        evenly = True
        copy_into(y, c)
    if evenly:
        settle(region.guard, region, low, high, c, rest, y)
    for j in range(dy):
        y[j] = 0.5 + 0.5 * y[j]


@compiled_large
def fill_best(
    cfg: ResponseSurfaceConfig, row: Array, request: Request, work: Array, y: Array
) -> None:
    """The centre; without a reach, where the fitted surface is highest among what was tried."""
    p, dy = size_of(row), cfg.dy
    mean, gates, rest = work[:p], work[p : p + cfg.dx + 2], work[p + cfg.dx + 2 :]
    fill(gates, 1.0)
    if cfg.reach > 0.0:
        fill_gates(cfg, row, mean, gates)
    solve(cfg, row, gates, mean)
    at_context(cfg, row, request.u, mean)
    if cfg.reach > 0.0:
        centre(cfg, row, request, gates, mean, rest, y)
        for j in range(dy):
            y[j] = 0.5 + 0.5 * y[j]
        return
    if limits(request.region.guard):
        _fill_allowed(cfg, row, request, mean, rest, y)
        return
    low, high, rest = rest[:dy], rest[dy : 2 * dy], rest[2 * dy :]
    fill(low, -1.0)
    fill(high, 1.0)
    _highest_tried(cfg, row, mean, Region(low, high, True, request.region.guard), rest, y)
    if not is_inside(request.region, y):
        for j in range(dy):
            low[j] = 2.0 * request.region.low[j] - 1.0
            high[j] = 2.0 * request.region.high[j] - 1.0
        _highest_tried(cfg, row, mean, Region(low, high, False, request.region.guard), rest, y)


@compiled
def _highest_tried(
    cfg: ResponseSurfaceConfig, row: Array, mean: Array, region: Region, work: Array, y: Array
) -> None:
    highest(cfg, mean[first_of(row) :], region, work, y)
    for j in range(cfg.dy):
        y[j] = min(max(0.5 + 0.5 * y[j], row[TRIED + j]), row[TRIED + cfg.dy + j])


@compiled
def _fill_allowed(
    cfg: ResponseSurfaceConfig, row: Array, request: Request, mean: Array, work: Array, y: Array
) -> None:
    """The same among what is allowed: between the lowest and the highest tried, and the start."""
    dy, guard = cfg.dy, request.region.guard
    low, high = work[:dy], work[dy : 2 * dy]
    fill_tried(row, request, low, high, y)
    highest(cfg, mean[first_of(row) :], Region(low, high, False, guard), work[2 * dy :], y)
    for j in range(dy):
        y[j] = 0.5 + 0.5 * y[j]
