"""The best of the allowed values (eq. 10): exact coordinate by coordinate, or in two dimensions;
else by local search from an allowed point near the peak.
"""

import math

from continuarm.core.allowed.bundles import ANY, LAST, STEP, Allowed, Numbers, Room
from continuarm.core.allowed.climbing import LOOSE, TIGHT, climb, rise
from continuarm.core.allowed.exactness import lattice_value
from continuarm.core.allowed.lines import (
    GAIN,
    NEW,
    RELAXED,
    best_on_line,
    look_at,
    move,
    near,
    step_of,
    v_of,
    whole_of,
)
from continuarm.core.allowed.nearby import find_nearby, is_certain

__all__ = ["best_of_lattice"]

BEST, TRY, LOWER, UPPER = 12, 13, 14, 15  # rows of room.vectors
PEAK, NEXT = 27, 28
MOST_VALUES = 4096  # of a coordinate that are tried one by one
ROUNDS = 100
FIRST_NODES, MORE_NODES, RESTARTS = 300, 100, 5  # of the search from the peak
MOST_PAIRED = 16  # coordinates of which pairs are moved, and for which the search starts again
GAINS = 1e-13  # a smaller gain, as a part of what the surface rises, is rounding


def push_at(slope: Numbers, room: Room, j: int, v: Numbers) -> float:
    """The slope of the surface along coordinate j."""
    push = slope[j]
    for k in range(len(v)):
        push += room.hessian[j][k] * v[k]
    return push


def settle(
    allowed: Allowed,
    slope: Numbers,
    low: Numbers,
    high: Numbers,
    room: Room,
    j: int,
    v: Numbers,
) -> bool:
    """Find the best allowed value of coordinate j at v."""
    push = push_at(slope, room, j, v)
    return best_on_line(allowed, room, j, push, room.hessian[j][j], low[j], high[j], v)


def best_of_lattice(
    allowed: Allowed,
    slope: Numbers,
    is_diagonal: bool,
    low: Numbers,
    high: Numbers,
    room: Room,
    v: Numbers,
) -> bool:
    """Fill v with the best allowed point; H is the room's. False: none was found."""
    d = len(low)
    if len(allowed.bounds) == 0 and (is_diagonal or d == 1):
        return best_by_coordinate(allowed, slope, low, high, room, v)
    if not climb(allowed, slope, low, high, TIGHT, room, v):
        if not climb(allowed, slope, low, high, LOOSE, room, v):
            return False
    if d == 1:
        return best_by_coordinate(allowed, slope, low, high, room, v)
    if d == 2:
        outer = outer_of(allowed)
        if allowed.coordinates[outer][LAST] < MOST_VALUES or is_concave(room):
            return best_of_two(allowed, slope, low, high, room, outer, v)
    return best_nearby(allowed, slope, low, high, room, v)


def best_nearby(
    allowed: Allowed, slope: Numbers, low: Numbers, high: Numbers, room: Room, v: Numbers
) -> bool:
    """An allowed point near the peak v, then higher and higher ones: found, and climbed from."""
    peak, at, gains = room.vectors[PEAK], room.vectors[NEXT], GAINS * scale_of(slope, room)
    for j in range(len(v)):
        peak[j] = at[j] = v[j]
    share = LOOSE if count_free(allowed) == 0 else TIGHT
    if not find_nearby(allowed, slope, low, high, share, -math.inf, FIRST_NODES, room, at):
        share = -share
        if not find_nearby(allowed, slope, low, high, share, -math.inf, FIRST_NODES, room, at):
            if not is_anchor_between(allowed, low, high):
                return False
            for j in range(len(v)):
                at[j] = v_of(allowed, j, allowed.anchor[j])
    for _ in range(RESTARTS if len(v) <= MOST_PAIRED else 1):
        for j in range(len(v)):
            v[j] = at[j]
        search(allowed, slope, low, high, gains, room, at)
        if is_certain(allowed, room, at):
            for j in range(len(v)):
                v[j] = at[j]
        least = rise(slope, room, v) + gains
        for j in range(len(v)):
            at[j] = peak[j]
        if not find_nearby(allowed, slope, low, high, share, least, MORE_NODES, room, at):
            return True
    return True


def count_free(allowed: Allowed) -> int:
    """How many coordinates have no spacing."""
    free = 0
    for j in range(len(allowed.coordinates)):
        free += 1 if allowed.coordinates[j][STEP] == ANY else 0
    return free


def scale_of(slope: Numbers, room: Room) -> float:
    """How much the surface can rise."""
    scale = 0.0
    for j in range(len(slope)):
        scale += abs(slope[j])
        for k in range(len(slope)):
            scale += abs(room.hessian[j][k])
    return scale


def is_anchor_between(allowed: Allowed, low: Numbers, high: Numbers) -> bool:
    """Whether the point that is known to be allowed is so here."""
    for j in range(len(low)):
        if not low[j] <= v_of(allowed, j, allowed.anchor[j]) <= high[j]:
            return False
    return True


def best_by_coordinate(
    allowed: Allowed, slope: Numbers, low: Numbers, high: Numbers, room: Room, v: Numbers
) -> bool:
    """Exact where coordinates do not concern one another."""
    for j in range(len(low)):
        v[j] = min(max(v[j], low[j]), high[j])
    look_at(allowed, room, v)
    for j in range(len(low)):
        if not settle(allowed, slope, low, high, room, j, v):
            return False
        room.vectors[BEST][j] = room.found[NEW]
    for j in range(len(low)):
        v[j] = room.vectors[BEST][j]
    return True


def is_concave(room: Room) -> bool:
    """Of two dimensions."""
    h = room.hessian
    return h[0][0] <= 0.0 and h[1][1] <= 0.0 and h[0][0] * h[1][1] >= h[0][1] * h[1][0]


def outer_of(allowed: Allowed) -> int:
    """The coordinate with a spacing that has fewer values."""
    first, second = allowed.coordinates[0], allowed.coordinates[1]
    if first[STEP] == ANY:
        return 1
    return 0 if second[STEP] == ANY or first[LAST] <= second[LAST] else 1


def best_of_two(
    allowed: Allowed,
    slope: Numbers,
    low: Numbers,
    high: Numbers,
    room: Room,
    outer: int,
    v: Numbers,
) -> bool:
    """Exact in two dimensions: from the peak v outwards for as long as any value could be better.

    What the other coordinate could gain if all its values were allowed is a bound, which falls
    away from the peak where H is concave. Where it is not, all values are tried.
    """
    concave, found, highest = is_concave(room), False, 0.0
    inner, at, best = 1 - outer, room.vectors[TRY], room.vectors[BEST]
    start = float(math.floor(whole_of(allowed, outer, v[outer]) + near(allowed, outer)))
    spare = near(allowed, outer) * step_of(allowed, outer)
    for direction in (-1.0, 1.0):
        k = start if direction < 0.0 else start + 1.0
        for tried in range(MOST_VALUES):
            if not 0.0 <= k <= allowed.coordinates[outer][LAST]:
                break
            new = v_of(allowed, outer, lattice_value(allowed, outer, k))
            if not low[outer] - spare <= new <= high[outer] + spare:
                break
            at[outer], at[inner] = new, v[inner]
            look_at(allowed, room, at)
            here = rise(slope, room, at)
            if settle(allowed, slope, low, high, room, inner, at):
                if not found or here + room.found[GAIN] > highest:
                    highest, found = here + room.found[GAIN], True
                    best[outer], best[inner] = new, room.found[NEW]
            if concave and room.found[RELAXED] == -math.inf and tried > 0:
                break
            if concave and found and here + room.found[RELAXED] <= highest:
                break
            k += direction
    for j in range(2):
        v[j] = best[j] if found else v[j]
    return found


def search(
    allowed: Allowed,
    slope: Numbers,
    low: Numbers,
    high: Numbers,
    least: float,
    room: Room,
    v: Numbers,
) -> None:
    """Climb from an allowed point: one coordinate at a time, then one by a step with another."""
    has_free = count_free(allowed) > 0
    for _ in range(ROUNDS):
        look_at(allowed, room, v)
        moved = False
        for j in range(len(v)):
            if settle(allowed, slope, low, high, room, j, v):
                if room.found[GAIN] > least:
                    move(allowed, room, j, room.found[NEW], v)
                    moved = True
        if not moved and len(v) <= MOST_PAIRED:
            moved = search_pairs(allowed, slope, low, high, least, room, v)
        if not moved:
            return
        if has_free:
            free_climb(allowed, slope, low, high, room, v)


def search_pairs(
    allowed: Allowed,
    slope: Numbers,
    low: Numbers,
    high: Numbers,
    least: float,
    room: Room,
    v: Numbers,
) -> bool:
    """Make the best move of a coordinate by one step, with another that follows; False: none."""
    most, first, second, new_first, new_second = least, -1, -1, 0.0, 0.0
    for j in range(len(v)):
        if allowed.coordinates[j][STEP] == ANY:
            continue
        before, spare = v[j], near(allowed, j) * step_of(allowed, j)
        push, k = push_at(slope, room, j, v), math.floor(whole_of(allowed, j, v[j]) + 0.5)
        for aside in (k - 1.0, k + 1.0):
            if not 0.0 <= aside <= allowed.coordinates[j][LAST]:
                continue
            new = v_of(allowed, j, lattice_value(allowed, j, aside))
            if not low[j] - spare <= new <= high[j] + spare:
                continue
            gained = (new - before) * (push + 0.5 * room.hessian[j][j] * (new - before))
            move(allowed, room, j, new, v)
            for other in range(len(v)):
                if other != j and settle(allowed, slope, low, high, room, other, v):
                    if gained + room.found[GAIN] > most:
                        most, first, new_first = gained + room.found[GAIN], j, new
                        second, new_second = other, room.found[NEW]
            move(allowed, room, j, before, v)
    if first >= 0:
        move(allowed, room, first, new_first, v)
        move(allowed, room, second, new_second, v)
    return first >= 0


def free_climb(
    allowed: Allowed, slope: Numbers, low: Numbers, high: Numbers, room: Room, v: Numbers
) -> None:
    """Coordinates without a spacing go to the peak while the others stay."""
    lower, upper, best = room.vectors[LOWER], room.vectors[UPPER], room.vectors[BEST]
    for j in range(len(v)):
        is_free = allowed.coordinates[j][STEP] == ANY
        lower[j], upper[j] = (low[j], high[j]) if is_free else (v[j], v[j])
        best[j] = v[j]
    if climb(allowed, slope, lower, upper, TIGHT, room, best):
        if rise(slope, room, best) >= rise(slope, room, v):
            for j in range(len(v)):
                v[j] = best[j]
