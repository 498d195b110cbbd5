"""An allowed point near the peak where rows couple coordinates that have a spacing.

Depth first: one coordinate after the other takes the allowed value nearest to the peak, given
those before it (without rows that is Babai's nearest plane). Where a value leaves no point that is
high enough, so do all beyond it.
"""

import math

from continuarm.core.allowed.bundles import ANY, LAST, STEP, Allowed, Numbers, Room
from continuarm.core.allowed.climbing import climb, rise
from continuarm.core.allowed.exactness import is_allowed, lattice_value, place
from continuarm.core.allowed.lines import VALUE, near, step_of, v_of, whole_of

__all__ = ["find_nearby", "is_certain"]

AT, LOWER, UPPER, WANTED, DOWN, UP, ORDER = range(16, 23)  # rows of room.vectors


def fill_order(allowed: Allowed, room: Room) -> int:
    """The coordinates with a spacing, the widest steps first; how many there are."""
    order, n = room.vectors[ORDER], 0
    for j in range(len(allowed.coordinates)):
        if allowed.coordinates[j][STEP] != ANY:
            k = n
            while k > 0 and step_of(allowed, int(order[k - 1])) < step_of(allowed, j):
                order[k] = order[k - 1]
                k -= 1
            order[k] = j
            n += 1
    return n


def open_coordinate(allowed: Allowed, room: Room, j: int) -> None:
    """Begin to try values of coordinate j, outwards from where the peak is."""
    wanted = whole_of(allowed, j, room.vectors[AT][j])
    room.vectors[WANTED][j] = wanted
    room.vectors[DOWN][j] = float(math.floor(wanted + near(allowed, j)))
    room.vectors[UP][j] = room.vectors[DOWN][j] + 1.0


def next_value(allowed: Allowed, room: Room, low: float, high: float, j: int) -> float:
    """The number of the nearest value not tried yet, between the limits; -1: there is none."""
    down, up, wanted = room.vectors[DOWN][j], room.vectors[UP][j], room.vectors[WANTED][j]
    spare = near(allowed, j) * step_of(allowed, j)
    has_down = down >= 0.0
    if has_down:
        has_down = v_of(allowed, j, lattice_value(allowed, j, down)) >= low - spare
    has_up = up <= allowed.coordinates[j][LAST]
    if has_up:
        has_up = v_of(allowed, j, lattice_value(allowed, j, up)) <= high + spare
    if has_down and (not has_up or wanted - down <= up - wanted):
        return down
    return up if has_up else -1.0


def go_past(allowed: Allowed, room: Room, j: int, k: float, is_last: bool) -> None:
    """A value has been tried; if it is the last in its direction, none is left there.

    The value at the peak itself says nothing of those beside it, because of rounding.
    """
    is_last = is_last and abs(k - room.vectors[WANTED][j]) > near(allowed, j)
    if k == room.vectors[DOWN][j]:
        room.vectors[DOWN][j] = -1.0 if is_last else k - 1.0
    else:
        room.vectors[UP][j] = math.inf if is_last else k + 1.0


def is_certain(allowed: Allowed, room: Room, v: Numbers) -> bool:
    """Whether a point is allowed in units as it is."""
    low, high, value = allowed.edges[0], allowed.edges[1], room.vectors[VALUE]
    place(allowed, v, low, high, value)
    return is_allowed(allowed, low, high, value)


def find_nearby(
    allowed: Allowed,
    slope: Numbers,
    low: Numbers,
    high: Numbers,
    share: float,
    least: float,
    nodes: int,
    room: Room,
    v: Numbers,
) -> bool:
    """Fill v, the peak, with an allowed point near it that is higher than `least`.

    False: none was found among so many nodes, and v is as it was.
    """
    lower, upper, at = room.vectors[LOWER], room.vectors[UPPER], room.vectors[AT]
    for i in range(len(low)):
        lower[i], upper[i], at[i] = low[i], high[i], v[i]
    n, level = fill_order(allowed, room), 0
    open_coordinate(allowed, room, int(room.vectors[ORDER][0]))
    for _ in range(nodes):
        j = int(room.vectors[ORDER][level])
        k = next_value(allowed, room, low[j], high[j], j)
        if k < 0.0:
            lower[j], upper[j] = low[j], high[j]
            level -= 1
            if level < 0:
                return False
            continue
        lower[j] = upper[j] = v_of(allowed, j, lattice_value(allowed, j, k))
        has_point = climb(allowed, slope, lower, upper, share, room, at)
        has_point = has_point and rise(slope, room, at) > least
        go_past(allowed, room, j, k, not has_point)
        if has_point and level + 1 < n:
            level += 1
            open_coordinate(allowed, room, int(room.vectors[ORDER][level]))
        elif has_point and is_certain(allowed, room, at):
            for i in range(len(low)):
                v[i] = at[i]
            return True
    return False
