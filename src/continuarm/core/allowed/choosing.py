"""The best allowed decision of a surface, the one nearest to a target, and its value in units."""

from continuarm.core.allowed.bundles import ANY, STEP, Allowed, Numbers, Room
from continuarm.core.allowed.climbing import LOOSE, TIGHT, climb
from continuarm.core.allowed.exactness import (
    between,
    is_allowed,
    lattice_value,
    nearest_whole,
    place,
)
from continuarm.core.allowed.lattice import best_of_lattice
from continuarm.core.allowed.lines import v_of

__all__ = ["fill_best", "fill_limits", "fill_nearest", "fill_value"]

SLOPES, CHOSEN, LOWEST, HIGHEST = range(23, 27)  # rows of room.vectors
PULLS = 56  # steps towards the anchor, each twice as long: the last one is all the way


def fill_best(
    allowed: Allowed,
    slope: Numbers,
    bends: Numbers,
    twists: Numbers,
    low: Numbers,
    high: Numbers,
    room: Room,
    v: Numbers,
) -> bool:
    """Fill v with the best allowed point of slope·v + ½ vᵀHv between low and high (eq. 1, 10).

    H has the diagonal `bends` and above it, row by row, `twists`, none where it is diagonal.
    False: no allowed point was found there, and v is as it was.
    """
    d, k = len(low), 0
    for i in range(d):
        room.hessian[i][i] = bends[i]
        for j in range(i + 1, d):
            twist = twists[k] if len(twists) > 0 else 0.0
            room.hessian[i][j] = room.hessian[j][i] = twist
            k += 1
    return choose(allowed, slope, len(twists) == 0, low, high, room, v)


def choose(
    allowed: Allowed,
    slope: Numbers,
    is_diagonal: bool,
    low: Numbers,
    high: Numbers,
    room: Room,
    v: Numbers,
) -> bool:
    """Fill v with the best allowed point, the climb beginning in the middle of [-1, 1]^d."""
    chosen = room.vectors[CHOSEN]
    for j in range(len(low)):
        chosen[j] = min(max(0.0, low[j]), high[j])
        if not low[j] <= high[j]:
            return False
    if allowed.spaced:
        found = best_of_lattice(allowed, slope, is_diagonal, low, high, room, chosen)
    else:
        found = climb(allowed, slope, low, high, TIGHT, room, chosen)
        found = found or climb(allowed, slope, low, high, LOOSE, room, chosen)
    if found:
        for j in range(len(low)):
            v[j] = chosen[j]
    return found


def fill_nearest(
    allowed: Allowed, target: Numbers, low: Numbers, high: Numbers, room: Room, v: Numbers
) -> bool:
    """Fill v with the allowed point between low and high that is nearest to the target (eq. 2)."""
    d = len(low)
    for i in range(d):
        room.vectors[SLOPES][i] = target[i]
        for j in range(d):
            room.hessian[i][j] = -1.0 if i == j else 0.0
    return choose(allowed, room.vectors[SLOPES], True, low, high, room, v)


def fill_limits(
    allowed: Allowed, lowest: Numbers, highest: Numbers, low: Numbers, high: Numbers
) -> bool:
    """Limits in units as limits of v, moved inwards to allowed values; False: there are none."""
    for j in range(len(lowest)):
        first, last = lowest[j], highest[j]
        if allowed.coordinates[j][STEP] != ANY:
            k = between(allowed, j, nearest_whole(allowed, j, first), first, last)
            first = lattice_value(allowed, j, k)
            k = between(allowed, j, nearest_whole(allowed, j, last), lowest[j], last)
            last = lattice_value(allowed, j, k)
        if not lowest[j] <= first <= last <= highest[j]:
            return False
        low[j], high[j] = v_of(allowed, j, first), v_of(allowed, j, last)
    return True


def fill_value(
    allowed: Allowed, v: Numbers, lowest: Numbers, highest: Numbers, room: Room, value: Numbers
) -> bool:
    """Fill the decision v in units, allowed in floating-point numbers; False: there is none.

    A point that is not allowed is first brought to the nearest one. lowest, highest : in units.
    """
    place(allowed, v, lowest, highest, value)
    if is_allowed(allowed, lowest, highest, value):
        return True
    low, high = room.vectors[LOWEST], room.vectors[HIGHEST]
    if not fill_limits(allowed, lowest, highest, low, high):
        return False
    if fill_nearest(allowed, v, low, high, room, room.vectors[CHOSEN]):
        place(allowed, room.vectors[CHOSEN], lowest, highest, value)
        if is_allowed(allowed, lowest, highest, value):
            return True
        if not allowed.spaced and pull(allowed, lowest, highest, room, value):
            return True
    for j in range(len(lowest)):
        value[j] = allowed.anchor[j]
    return is_allowed(allowed, lowest, highest, value)


def pull(allowed: Allowed, lowest: Numbers, highest: Numbers, room: Room, value: Numbers) -> bool:
    """Move the chosen point towards the anchor until rounding does no harm."""
    chosen, part = room.vectors[CHOSEN], 2.0**-PULLS
    for _ in range(PULLS + 1):
        for j in range(len(lowest)):
            aim = v_of(allowed, j, allowed.anchor[j])
            room.vectors[SLOPES][j] = chosen[j] + part * (aim - chosen[j])
        place(allowed, room.vectors[SLOPES], lowest, highest, value)
        if is_allowed(allowed, lowest, highest, value):
            return True
        part *= 2.0
    return False
