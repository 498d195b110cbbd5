"""Where a quadratic is highest in a box."""

import math

from continuarm.core.compiling import Array, compiled, compiled_large, copy_into, fill
from continuarm.core.request import Region, clip_into

__all__ = ["climb", "fill_along", "fill_hessian", "newton", "peak"]

ROUNDS = 8  # beyond two per dimension
STILL = 1e-9  # a round that moves no coordinate further is the last


@compiled
def peak(slope: float, bend: float, low: float, high: float) -> float:
    """Where in [low, high] `slope v + ½ bend v²` is highest."""
    if bend < 0.0:
        return min(max(-slope / bend, low), high)
    return high if slope + 0.5 * bend * (low + high) > 0.0 else low


@compiled
def climb(
    slope: Array, bends: Array, twists: Array, region: Region, work: Array, v: Array
) -> None:
    """Where in the region `slope·v + ½ vᵀHv` is highest.

    H has the diagonal `bends` and above it, row by row, `twists`; without any it is diagonal.

    A Newton step of the coordinates that are free, shortened to stay in the region, then one sweep
    of exact coordinate ascent, until nothing moves. Each only climbs; where H is not negative
    definite the sweeps go on alone. `work` has room for 2d² + d numbers.
    """
    d = slope.shape[0]
    if twists.shape[0] == 0:
        for j in range(d):
            v[j] = peak(slope[j], bends[j], region.low[j], region.high[j])
        return
    step, q = work[:d], work[d : d + d * d].reshape(d, d)
    factor = work[d + d * d : d + 2 * d * d].reshape(d, d)
    fill_hessian(bends, twists, q)
    fill(v, 0.0)
    clip_into(region, v)
    for _ in range(2 * d + ROUNDS):
        if newton(q, slope, region, v, factor, step):
            _advance(region, v, step)
        moved = 0.0
        for j in range(d):
            push = slope[j] - q[j, j] * v[j]
            for other in range(d):
                push += q[j, other] * v[other]
            new = peak(push, q[j, j], region.low[j], region.high[j])
            moved = max(moved, abs(new - v[j]))
            v[j] = new
        if moved <= STILL:
            break


@compiled
def fill_along(
    bends: Array, twists: Array, v: Array, j: int, cube: Region, work: Array, to: Array
) -> None:
    """v + (-H)⁻¹e_j, of those coordinates that are not at an edge; v where there is no peak.

    `v` is where the quadratic with the Hessian H is highest in the cube.
    """
    dy, low, high = v.shape[0], cube.low, cube.high
    copy_into(to, v)
    if not low[j] < v[j] < high[j] or not bends[j] < 0.0:
        return
    if twists.shape[0] == 0:
        to[j] -= 1.0 / bends[j]
        return
    d2 = dy * dy
    step, slope, q = work[:dy], work[dy : 2 * dy], work[2 * dy : 2 * dy + d2].reshape(dy, dy)
    factor = work[2 * dy + d2 : 2 * dy + 2 * d2].reshape(dy, dy)
    fill_hessian(bends, twists, q)
    for i in range(dy):  # so that the gradient at v is e_j, and presses what is at an edge
        slope[i] = 1.0 if i == j or v[i] >= high[i] else (-1.0 if v[i] <= low[i] else 0.0)
        for other in range(dy):
            slope[i] -= q[i, other] * v[other]
    if newton(q, slope, cube, v, factor, step):
        for i in range(dy):
            to[i] += step[i]


@compiled
def fill_hessian(bends: Array, twists: Array, q: Array) -> None:
    """H as a matrix."""
    k = 0
    for j in range(q.shape[0]):
        q[j, j] = bends[j]
        for other in range(j + 1, q.shape[0]):
            q[j, other] = twists[k]
            q[other, j] = twists[k]
            k += 1


@compiled
def _advance(region: Region, v: Array, step: Array) -> None:
    """Go along `step`, or as far as the region allows."""
    reach = 1.0
    for j in range(v.shape[0]):
        if step[j] > 0.0:
            reach = min(reach, (region.high[j] - v[j]) / step[j])
        elif step[j] < 0.0:
            reach = min(reach, (region.low[j] - v[j]) / step[j])
    for j in range(v.shape[0]):
        v[j] += reach * step[j]
    clip_into(region, v)


@compiled_large
def newton(q: Array, slope: Array, region: Region, v: Array, factor: Array, step: Array) -> bool:
    """Fill the Newton step of the free coordinates; False where H is not negative definite.

    Cholesky of -H; a coordinate that presses against its edge is left out, and marked by a zero
    on the diagonal of the factor.
    """
    d = slope.shape[0]
    for j in range(d):
        step[j] = slope[j]
        for other in range(d):
            step[j] += q[j, other] * v[other]
    for j in range(d):
        factor[j, j] = 0.0
        if v[j] >= region.high[j] and step[j] >= 0.0:
            continue
        if v[j] <= region.low[j] and step[j] <= 0.0:
            continue
        pivot = -q[j, j]
        for column in range(j):
            factor[j, column] = 0.0
            if factor[column, column] > 0.0:
                entry = -q[j, column]
                for before in range(column):
                    entry -= factor[j, before] * factor[column, before]
                factor[j, column] = entry / factor[column, column]
                pivot -= factor[j, column] * factor[j, column]
        if not pivot > -1e-12 * q[j, j]:
            return False
        factor[j, j] = math.sqrt(pivot)
    for j in range(d):
        if factor[j, j] == 0.0:
            step[j] = 0.0
            continue
        for column in range(j):
            step[j] -= factor[j, column] * step[column]
        step[j] /= factor[j, j]
    for j in range(d - 1, -1, -1):
        if factor[j, j] > 0.0:
            for below in range(j + 1, d):
                if factor[below, below] > 0.0:
                    step[j] -= factor[below, j] * step[below]
            step[j] /= factor[j, j]
    return True
