"""The peak of any quadratic between limits, and the nearest point to a target (eq. 1 to 6).

Where H is negative definite the peak is exact at once. Where it is flat in some directions, small
steps are penalised a little and taken again (eq. 5). Where it bends upwards, so much is penalised
that each step is a concave problem, and each step only climbs; steps of Newton's method on the
active face and sweeps along the axes are taken in between.
"""

import math

from continuarm.core.allowed.bundles import Allowed, Numbers, Room
from continuarm.core.allowed.dual import HELD, NO_POINT, find_peak, reset_basis

__all__ = ["LOOSE", "TIGHT", "climb", "project", "rise"]

A, PUSH, TRIAL, STEP = 0, 8, 9, 10  # rows of room.vectors
TIGHT, LOOSE = 1.0, -1.0  # shares of margins: with all that rounding may do, or without it
HOLDS, HOLDS_LOOSELY = 1e-13, 1e-10  # of [-1, 1]: a limit that is violated by less holds
FLAT = 1e-10  # of the largest entry: a curvature below is none
SLIGHT = 1e-9  # the penalty of a flat surface, in the same unit
ROUNDS = 40
STILL = 1e-10  # a round that moves no coordinate further is the last


def rise(slope: Numbers, room: Room, v: Numbers) -> float:
    """slope·v + ½ vᵀHv."""
    total = 0.0
    for i in range(len(v)):
        push = 0.0
        for j in range(len(v)):
            push += room.hessian[i][j] * v[j]
        total += v[i] * (slope[i] + 0.5 * push)
    return total


def fill_push(slope: Numbers, room: Room, v: Numbers, push: Numbers) -> None:
    """The gradient at v."""
    for i in range(len(v)):
        push[i] = slope[i]
        for j in range(len(v)):
            push[i] += room.hessian[i][j] * v[j]


def tighten(allowed: Allowed, room: Room, share: float) -> None:
    """Bounds that hold even when rounding is added; equalities stay as they are."""
    room.found[HELD] = HOLDS if share == TIGHT else HOLDS_LOOSELY
    for i in range(len(allowed.bounds)):
        room.bounds[i] = allowed.bounds[i]
        if i >= allowed.equal:
            room.bounds[i] -= share * allowed.margins[i]


def is_definite(d: int, shift: float, least: float, room: Room) -> bool:
    """Fill G = shift - H, and J of its Cholesky factor; False: a pivot is not above `least`."""
    shifted, factor, basis = room.shifted, room.triangle, room.basis
    for i in range(d):
        for j in range(d):
            shifted[i][j] = -room.hessian[i][j]
        shifted[i][i] += shift
    for i in range(d):
        for j in range(i + 1):
            entry = shifted[i][j]
            for k in range(j):
                entry -= factor[i][k] * factor[j][k]
            if i > j:
                factor[i][j] = entry / factor[j][j]
            elif entry > least:
                factor[i][i] = math.sqrt(entry)
            else:
                return False
    for j in range(d):  # column j of L⁻¹ is row j of J
        for i in range(d):
            if i < j:
                basis[j][i] = 0.0
                continue
            entry = 1.0 if i == j else 0.0
            for k in range(j, i):
                entry -= factor[i][k] * basis[j][k]
            basis[j][i] = entry / factor[i][i]
    return True


def project(
    allowed: Allowed,
    target: Numbers,
    low: Numbers,
    high: Numbers,
    share: float,
    room: Room,
    v: Numbers,
) -> bool:
    """The point between the limits that is nearest to the target; False: there is none."""
    for j in range(len(low)):
        room.vectors[A][j] = -target[j]
    tighten(allowed, room, share)
    reset_basis(len(low), room)
    return find_peak(allowed, low, high, room, v) >= 0


def climb(
    allowed: Allowed,
    slope: Numbers,
    low: Numbers,
    high: Numbers,
    share: float,
    room: Room,
    v: Numbers,
) -> bool:
    """Fill v with where slope·v + ½ vᵀHv is highest; H is the room's. False: there is no point.

    Only where H is not negative definite, v is read: the climb begins at the point nearest to it.
    Rows hold with so much of their margins: TIGHT, or LOOSE where what is found is looked at in
    units, because margins can leave nothing where something is allowed exactly.
    """
    d, largest, steepest = len(low), 0.0, 0.0
    for i in range(d):
        steepest = max(steepest, abs(slope[i]))
        for j in range(d):
            largest = max(largest, abs(room.hessian[i][j]))
    for j in range(d):
        room.vectors[TRIAL][j] = v[j]
    tighten(allowed, room, share)
    if is_definite(d, 0.0, FLAT * largest, room):
        for j in range(d):
            room.vectors[A][j] = -slope[j]
        q = find_peak(allowed, low, high, room, v)
        if q >= 0 or q == NO_POINT:
            return q >= 0
        return project(allowed, room.vectors[TRIAL], low, high, share, room, v)
    scale = largest if largest > 0.0 else steepest if steepest > 0.0 else 1.0
    shift = SLIGHT * scale
    is_flat = is_definite(d, shift, 0.5 * shift, room)
    if not is_flat:
        shift = 0.25 * scale
        while shift < 4.0 * d * scale and not is_definite(d, shift, 0.02 * scale, room):
            shift *= 2.0
    if not project(allowed, room.vectors[TRIAL], low, high, share, room, v):
        return False
    ascend(allowed, slope, low, high, shift, not is_flat, room, v)
    return True


def ascend(
    allowed: Allowed,
    slope: Numbers,
    low: Numbers,
    high: Numbers,
    shift: float,
    bends_up: bool,
    room: Room,
    v: Numbers,
) -> None:
    """Climb from v, step by step (eq. 5 and 6), until nothing moves."""
    d, trial = len(v), room.vectors[TRIAL]
    for _ in range(ROUNDS):
        if bends_up:
            sweep(allowed, slope, low, high, room, v)
        is_definite(d, shift, 0.0, room)
        for j in range(d):
            room.vectors[A][j] = -slope[j] - shift * v[j]
        q = find_peak(allowed, low, high, room, trial)
        if q < 0:
            return
        moved = 0.0
        for j in range(d):
            room.vectors[STEP][j] = trial[j] - v[j]
            moved = max(moved, abs(trial[j] - v[j]))
            v[j] = trial[j]
        if bends_up and moved > STILL:
            for j in range(d):
                room.vectors[STEP][j] /= moved
            go_on(allowed, slope, low, high, room, v)
        if bends_up and newton_step(slope, q, room, v):
            reach = reach_along(allowed, low, high, 1.0, room, v)
            moved = max(moved, advance(low, high, reach, room, v))
        if moved <= STILL:
            return


def ends_along(
    allowed: Allowed, room: Room, low: float, high: float, j: int, v: Numbers
) -> tuple[float, float]:
    """Between which values coordinate j can move while the others stay; rows' sums are known."""
    for i in range(len(room.bounds)):
        factor = allowed.rows[i][j]
        if factor != 0.0:
            edge = v[j] + (room.bounds[i] - room.sums[i]) / factor
            if factor > 0.0 or i < allowed.equal:
                high = min(high, edge)
            if factor < 0.0 or i < allowed.equal:
                low = max(low, edge)
    return low, high


def add_up(allowed: Allowed, room: Room, v: Numbers) -> None:
    """What the rows sum to at v."""
    for i in range(len(room.bounds)):
        room.sums[i] = 0.0
        for j in range(len(v)):
            room.sums[i] += allowed.rows[i][j] * v[j]


def sweep(
    allowed: Allowed, slope: Numbers, low: Numbers, high: Numbers, room: Room, v: Numbers
) -> None:
    """Go to the highest point along each axis in turn; where it bends up, to the better end."""
    add_up(allowed, room, v)
    for j in range(len(v)):
        push, bend = slope[j], room.hessian[j][j]
        for k in range(len(v)):
            push += room.hessian[j][k] * v[k]
        bottom, top = ends_along(allowed, room, low[j], high[j], j, v)
        if not bottom < top:
            continue
        step = highest_step(push, bend, bottom - v[j], top - v[j])
        if push * step + 0.5 * bend * step * step > 0.0:
            v[j] = min(max(v[j] + step, low[j]), high[j])
            for i in range(len(room.bounds)):
                room.sums[i] += allowed.rows[i][j] * step


def highest_step(push: float, bend: float, low: float, high: float) -> float:
    """Where in [low, high] `push t + ½ bend t²` is highest."""
    if bend < 0.0:
        return min(max(-push / bend, low), high)
    return high if push + 0.5 * bend * (low + high) > 0.0 else low


def newton_step(slope: Numbers, q: int, room: Room, v: Numbers) -> bool:
    """Fill the Newton step on the face of the q active limits; False: H bends up there.

    The last columns of J span the face. It is factored in place of G, which is not needed again.
    """
    d, basis, factor = len(v), room.basis, room.shifted
    n, push, step = d - q, room.vectors[PUSH], room.vectors[STEP]
    fill_push(slope, room, v, push)
    largest = 0.0
    for a in range(n):
        for b in range(a + 1):
            entry = 0.0
            for i in range(d):
                for j in range(d):
                    entry -= basis[i][q + a] * room.hessian[i][j] * basis[j][q + b]
            if a == b:
                largest = max(largest, abs(entry))
            for k in range(b):
                entry -= factor[a][k] * factor[b][k]
            if a > b:
                factor[a][b] = entry / factor[b][b]
            elif entry > FLAT * largest:
                factor[a][a] = math.sqrt(entry)
            else:
                return False
    for j in range(d):
        step[j] = 0.0
    return solve_on_face(d, q, room)


def solve_on_face(d: int, q: int, room: Room) -> bool:
    """The step from the factor and the push, back in all coordinates; True where it moves."""
    n, factor, solved = d - q, room.shifted, room.vectors[A]
    for a in range(n):
        total = 0.0
        for i in range(d):
            total += room.basis[i][q + a] * room.vectors[PUSH][i]
        for k in range(a):
            total -= factor[a][k] * solved[k]
        solved[a] = total / factor[a][a]
    for a in range(n - 1, -1, -1):
        for k in range(a + 1, n):
            solved[a] -= factor[k][a] * solved[k]
        solved[a] /= factor[a][a]
        for i in range(d):
            room.vectors[STEP][i] += room.basis[i][q + a] * solved[a]
    return n > 0


def reach_along(
    allowed: Allowed, low: Numbers, high: Numbers, most: float, room: Room, v: Numbers
) -> float:
    """How many times the step the limits allow, at most so many."""
    step, reach = room.vectors[STEP], most
    add_up(allowed, room, v)
    for i in range(allowed.equal, len(room.bounds)):
        along = 0.0
        for j in range(len(v)):
            along += allowed.rows[i][j] * step[j]
        if along > 1e-12:
            reach = min(reach, (room.bounds[i] - room.sums[i]) / along)
    for j in range(len(v)):
        if step[j] > 0.0:
            reach = min(reach, (high[j] - v[j]) / step[j])
        elif step[j] < 0.0:
            reach = min(reach, (low[j] - v[j]) / step[j])
    return max(reach, 0.0)


def advance(low: Numbers, high: Numbers, times: float, room: Room, v: Numbers) -> float:
    """Go so many times along the step; how far a coordinate moved at most."""
    step, moved = room.vectors[STEP], 0.0
    for j in range(len(v)):
        moved = max(moved, abs(times * step[j]))
        v[j] = min(max(v[j] + times * step[j], low[j]), high[j])
    return moved


def go_on(
    allowed: Allowed, slope: Numbers, low: Numbers, high: Numbers, room: Room, v: Numbers
) -> None:
    """Go on along the step to the highest point: where it bends up, to the edge."""
    step, push, climbs, bend = room.vectors[STEP], room.vectors[PUSH], 0.0, 0.0
    fill_push(slope, room, v, push)
    for i in range(len(v)):
        climbs += push[i] * step[i]
        for j in range(len(v)):
            bend += step[i] * room.hessian[i][j] * step[j]
    if climbs > 0.0:
        reach = reach_along(allowed, low, high, 4.0, room, v)
        advance(low, high, highest_step(climbs, bend, 0.0, reach), room, v)
