"""The safe centre: how far payoffs speak for leaving the start (eq. 11 to 13).

Legend: v0 the start and v̂ the peak of the fitted surface, in [-1, 1]^dy; f the gates.
"""

import math

from continuarm.core.compiling import Array, compiled, compiled_large, copy_into, fill
from continuarm.core.guards import climb_in, limits
from continuarm.core.learners.boxed_peak import peak
from continuarm.core.learners.exploration import surest
from continuarm.core.learners.surface.features import legendre
from continuarm.core.learners.surface.layout import (
    DEGREES,
    KNOWN,
    LINEAR,
    SQUARES,
    TRIED,
    WEIGHT,
    ResponseSurfaceConfig,
    first_of,
    size_of,
    slope_degree,
)
from continuarm.core.learners.surface.triangle import begin_of, solve_last, spread
from continuarm.core.request import Region, Request

__all__ = ["centre", "fill_gates", "fill_tried", "fill_way", "highest", "least_trust"]

PER_DIMENSION = 0.5
MANY = 4  # context dimensions, from which each has a gate of its own


@compiled_large
def fill_gates(cfg: ResponseSurfaceConfig, row: Array, theta: Array, gates: Array) -> None:
    """How far the slopes of each context, and the curvatures, are believed to vary (eq. 11).

    With one context dimension all of it is: there are too few of them to be misled. With many, a
    context that stands out is believed by itself, and does not vouch for the others.
    """
    fill(gates, 1.0)
    if not cfg.gated or cfg.dx < 2 or cfg.varying == 0:
        return
    bends, chance = _fill_significance(cfg, row, theta, gates), _chance(cfg)
    rest, total, count = 0.0, 0.0, 0
    for i in range(cfg.dx):
        total += gates[i]
        if cfg.dx < MANY or gates[i] < chance:
            rest += gates[i]
            count += 1
    shared = _gate(rest / max(count, 1))
    for i in range(cfg.dx):
        alone = _gate(2.0 * gates[i] / chance) if cfg.dx >= MANY else 0.0
        grown = row[slope_degree(cfg, i)] > LINEAR
        gates[i] = 1.0 if grown and cfg.dx >= MANY else max(shared, alone)
    gates[cfg.dx], gates[cfg.dx + 1] = _gate(bends), _gate(total / cfg.dx)


@compiled
def _gate(ratio: float) -> float:
    return min(max(ratio - 1.0, 0.0), 1.0)


@compiled
def _chance(cfg: ResponseSurfaceConfig) -> float:
    """What chance lets hardly one of dx contexts exceed: a bound on χ²/dy (Laurent, Massart)."""
    share = math.log(cfg.dx) / cfg.dy
    return 1.0 + 2.0 * math.sqrt(share) + 2.0 * share


@compiled_large
def _fill_significance(
    cfg: ResponseSurfaceConfig, row: Array, theta: Array, gates: Array
) -> float:
    """Mean squares of d, in units of the noise: of each context's slopes, and of all curvatures.

    What the terms that have entered say of these rows is taken off. `theta` is used up.
    """
    p, begin = size_of(row), first_of(row) + cfg.terms
    end = begin + cfg.dx * cfg.varying
    solve_last(cfg, row, end, theta)
    noise = row[WEIGHT] * row[SQUARES] / row[DEGREES]
    k, bends = begin_of(cfg, row, begin), 0.0
    for i in range(cfg.dx):
        slopes = 0.0
        for j in range(cfg.varying):
            column = begin + i * cfg.varying + j
            d = row[k + p - column]
            for other in range(end, p):
                d -= row[k + other - column] * theta[other]
            if j < cfg.dy:
                slopes += d * d
            else:
                bends += d * d
            k += p - column + 1
        gates[i] = slopes / (cfg.dy * noise)
    return float(bends / (max(cfg.dx * (cfg.varying - cfg.dy), 1) * noise))


@compiled_large
def highest(
    cfg: ResponseSurfaceConfig, theta: Array, region: Region, work: Array, v: Array
) -> bool:
    """Where in a region of [-1, 1]^dy the surface is highest (eq. 6); False: nothing is allowed.

    theta : the coefficients of the decision.
    """
    dy = cfg.dy
    slopes, bends, twists = theta[:dy], theta[dy : 2 * dy], theta[2 * dy : cfg.terms]
    if cfg.terms > 2 * dy or limits(region.guard):
        return climb_in(region.guard, slopes, bends, twists, region, work, v)
    for j in range(dy):
        v[j] = peak(slopes[j], bends[j], region.low[j], region.high[j])
    return True


@compiled
def least_trust(cfg: ResponseSurfaceConfig, row: Array) -> float:
    """z s√w of eq. 12."""
    z = 1.0 + 2.0 * size_of(row) / row[KNOWN] + PER_DIMENSION * (math.sqrt(cfg.dy) - 1.0)
    return float(z * math.sqrt(row[WEIGHT] * row[SQUARES] / row[DEGREES]))


@compiled
def fill_tried(row: Array, request: Request, low: Array, high: Array, v0: Array) -> None:
    """What was tried, and the start, within the region; all in [-1, 1]^dy."""
    region, dy = request.region, v0.shape[0]
    for j in range(dy):
        start = min(max(request.start[j], region.low[j]), region.high[j])
        low[j] = 2.0 * max(region.low[j], min(row[TRIED + j], start)) - 1.0
        high[j] = 2.0 * min(region.high[j], max(row[TRIED + dy + j], start)) - 1.0
        v0[j] = 2.0 * start - 1.0


@compiled_large
def centre(
    cfg: ResponseSurfaceConfig,
    row: Array,
    request: Request,
    gates: Array,
    mean: Array,
    work: Array,
    c: Array,
) -> None:
    """Fill `c`, in [-1, 1]^dy: the point on the way from the start to the peak, nothing beyond
    what was tried, that is surest to be better than the start, or the peak (eq. 12)."""
    p, dy, first = size_of(row), cfg.dy, first_of(row)
    a, b, rest = work[:p], work[p : 2 * p], work[2 * p + 3 * dy :]
    low, high = work[2 * p : 2 * p + dy], work[2 * p + dy : 2 * p + 2 * dy]
    best = work[2 * p + 2 * dy : 2 * p + 3 * dy]
    fill_tried(row, request, low, high, c)
    region = Region(low, high, False, request.region.guard)
    if not highest(cfg, mean[first:], region, rest, best):
        copy_into(best, c)
    fill_way(cfg, row, request.u, c, best, a, b)
    gain = bend = 0.0
    for k in range(first, first + cfg.terms):
        gain += mean[k] * a[k]
        bend += mean[k] * b[k]
    aa, ab, bb = spread(cfg, row, gates, a, b)
    t = surest(gain, bend, least_trust(cfg, row), aa, ab, bb)
    for j in range(dy):
        c[j] += t * (best[j] - c[j])


@compiled
def fill_way(
    cfg: ResponseSurfaceConfig,
    row: Array,
    u: Array,
    start: Array,
    best: Array,
    a: Array,
    b: Array,
) -> None:
    """The features at v0 + t(v̂ - v0) less those at v0 are ta + t²b."""
    dy, first = cfg.dy, first_of(row)
    for j in range(dy):
        way = best[j] - start[j]
        a[first + j], b[first + j] = way, 0.0
        a[first + dy + j], b[first + dy + j] = start[j] * way, 0.5 * way * way
    k = first + 2 * dy
    if cfg.terms > 2 * dy:
        for j in range(dy):
            for other in range(j + 1, dy):
                way, beside = best[j] - start[j], best[other] - start[other]
                a[k], b[k] = start[j] * beside + start[other] * way, way * beside
                k += 1
    for i in range(cfg.dx):
        for j in range(cfg.varying):
            a[k], b[k] = u[i] * a[first + j], u[i] * b[first + j]
            k += 1
    for i in range(cfg.dx):
        for degree in range(LINEAR + 1, int(row[slope_degree(cfg, i)]) + 1):
            factor = legendre(degree, u[i])
            for j in range(dy):
                a[k], b[k] = factor * a[first + j], 0.0
                k += 1
