"""The best allowed point along one coordinate while the others stay, and what it gains.

The room's sums are those of the rows at v; `VALUE` is v in units, exact where there is a spacing.
"""

import math

from continuarm.core.allowed.bundles import ANY, LAST, STEP, TEN, Allowed, Numbers, Room
from continuarm.core.allowed.climbing import LOOSE, TIGHT, add_up, highest_step
from continuarm.core.allowed.exactness import lattice_value, nearest_whole, sums_to_at_most

__all__ = [
    "GAIN",
    "NEW",
    "RELAXED",
    "best_on_line",
    "look_at",
    "move",
    "near",
    "step_of",
    "v_of",
    "whole_of",
]

VALUE = 11  # a row of room.vectors
NEW, GAIN, RELAXED = 0, 1, 2  # of room.found: the new coordinate, what it gains, what any could


def v_of(allowed: Allowed, j: int, value: float) -> float:
    """A coordinate of a decision in [-1, 1]."""
    low, high = allowed.edges[0][j], allowed.edges[1][j]
    return 2.0 * (value - low) / (high - low) - 1.0


def value_of(allowed: Allowed, j: int, v: float) -> float:
    """The same in units; the nearest allowed value, where there is a spacing."""
    low, high = allowed.edges[0][j], allowed.edges[1][j]
    value = low + (0.5 + 0.5 * v) * (high - low)
    if allowed.coordinates[j][STEP] == ANY:
        return value
    return lattice_value(allowed, j, nearest_whole(allowed, j, value))


def step_of(allowed: Allowed, j: int) -> float:
    """The distance of neighbouring allowed values in [-1, 1]."""
    c = allowed.coordinates[j]
    return 2.0 * c[STEP] / c[TEN] / (allowed.edges[1][j] - allowed.edges[0][j])


def whole_of(allowed: Allowed, j: int, v: float) -> float:
    """How many steps, as a fraction, a coordinate is from the first allowed value."""
    return (v - v_of(allowed, j, lattice_value(allowed, j, 0.0))) / step_of(allowed, j)


def near(allowed: Allowed, j: int) -> float:
    """What rounding may do to a limit, in steps: more, the more of them there are from 0."""
    c, far = allowed.coordinates[j], max(abs(allowed.edges[0][j]), abs(allowed.edges[1][j]))
    return min(1e-9 + 2e-15 * (c[LAST] + far * c[TEN] / c[STEP]), 0.4)


def look_at(allowed: Allowed, room: Room, v: Numbers) -> None:
    """Begin at v."""
    for j in range(len(v)):
        room.vectors[VALUE][j] = value_of(allowed, j, v[j])
    add_up(allowed, room, v)


def move(allowed: Allowed, room: Room, j: int, new: float, v: Numbers) -> None:
    """Move coordinate j."""
    for i in range(len(room.bounds)):
        room.sums[i] += allowed.rows[i][j] * (new - v[j])
    v[j] = new
    room.vectors[VALUE][j] = value_of(allowed, j, new)


def ends(
    allowed: Allowed, room: Room, j: int, low: float, high: float, share: float, v: Numbers
) -> tuple[float, float]:
    """Between which values coordinate j can move; rows that it does not concern must hold.

    Rows hold with a share of their margins, as in `climb`.
    """
    for i in range(len(room.bounds)):
        factor, margin = allowed.rows[i][j], allowed.margins[i]
        left = allowed.bounds[i] - room.sums[i]
        if i < allowed.equal:
            if abs(factor) <= 1e-12:
                if abs(left) > margin:
                    return 1.0, -1.0
                continue
            low, high = max(low, v[j] + left / factor), min(high, v[j] + left / factor)
            if low > high and low - high <= margin / abs(factor):
                low = high
        elif abs(factor) <= 1e-12:
            if left < -margin:
                return 1.0, -1.0
        elif factor > 0.0:
            high = min(high, v[j] + (left - share * margin) / factor)
        else:
            low = max(low, v[j] + (left - share * margin) / factor)
    return low, high


def holds_at(allowed: Allowed, room: Room, j: int, k: float, v: Numbers) -> bool:
    """Whether the rows hold in units with the k-th value of coordinate j.

    Only rows that are close are looked at; where coordinates are free they are brought in later.
    """
    value = room.vectors[VALUE]
    before, value[j] = value[j], lattice_value(allowed, j, k)
    way, fits = v_of(allowed, j, value[j]) - v[j], True
    for i in range(allowed.equal, len(room.bounds)):
        if room.sums[i] + allowed.rows[i][j] * way > allowed.bounds[i] - allowed.margins[i]:
            fits = fits and sums_to_at_most(allowed.units[i], value)
    value[j] = before
    return fits


def whole_between(allowed: Allowed, j: int, low: float, high: float) -> tuple[float, float]:
    """The numbers of the first and the last allowed value between these."""
    spare = near(allowed, j)
    first = max(math.ceil(whole_of(allowed, j, low) - spare), 0.0)
    last = min(math.floor(whole_of(allowed, j, high) + spare), allowed.coordinates[j][LAST])
    return first, last


def best_on_line(
    allowed: Allowed,
    room: Room,
    j: int,
    push: float,
    bend: float,
    low: float,
    high: float,
    v: Numbers,
) -> bool:
    """Find the best allowed value of coordinate j between low and high; False: there is none.

    push : the slope of the surface at v along j.
    """
    is_free = allowed.coordinates[j][STEP] == ANY
    bottom, top = ends(allowed, room, j, low, high, TIGHT if is_free else LOOSE, v)
    room.found[RELAXED] = -math.inf
    if not bottom <= top:
        return False
    step = highest_step(push, bend, bottom - v[j], top - v[j])
    room.found[RELAXED] = step * (push + 0.5 * bend * step)
    if is_free:
        room.found[NEW], room.found[GAIN] = v[j] + step, room.found[RELAXED]
        return True
    first, last = whole_between(allowed, j, bottom, top)
    if not first <= last:
        return False
    if not (holds_at(allowed, room, j, first, v) and holds_at(allowed, room, j, last, v)):
        bottom, top = ends(allowed, room, j, low, high, TIGHT, v)
        inner, outer = whole_between(allowed, j, bottom, top)
        first = first if holds_at(allowed, room, j, first, v) else max(inner, first + 1.0)
        last = last if holds_at(allowed, room, j, last, v) else min(outer, last - 1.0)
        if not first <= last:
            return False
    chosen = choose_between(allowed, room, j, push, bend, first, last, v)
    return holds_at(allowed, room, j, chosen, v)


def choose_between(
    allowed: Allowed,
    room: Room,
    j: int,
    push: float,
    bend: float,
    first: float,
    last: float,
    v: Numbers,
) -> float:
    """The number of the best allowed value from number `first` to number `last`."""
    low = v_of(allowed, j, lattice_value(allowed, j, first)) - v[j]
    high = v_of(allowed, j, lattice_value(allowed, j, last)) - v[j]
    step = highest_step(push, bend, low, high)
    below = float(math.floor(whole_of(allowed, j, v[j] + step) + near(allowed, j)))
    chosen, room.found[NEW], room.found[GAIN] = first, v[j] + low, -math.inf
    for k in (below, below + 1.0):
        k = min(max(k, first), last)
        way = v_of(allowed, j, lattice_value(allowed, j, k)) - v[j]
        gain = way * (push + 0.5 * bend * way)
        if gain > room.found[GAIN]:
            room.found[NEW], room.found[GAIN], chosen = v[j] + way, gain, k
    return chosen
