"""Guarded: coupled limits and spaced values, as the guard of a request.

Legend: v = 2y - 1 the decision in [-1, 1]^dy.
"""

from typing import Any, NamedTuple

from continuarm.core import guards
from continuarm.core.allowed.bundles import Allowed
from continuarm.core.allowed.compiled import ALLOWED, best, nearest, room_for, to_units
from continuarm.core.compiling import VECTOR, Array, compiled, copy_into, in_python, tuple_type
from continuarm.core.request import Region

__all__ = ["Guarded", "room"]


class Guarded(NamedTuple):
    """What is allowed, and the limits of one request in units, which hold to the last digit."""

    allowed: Allowed
    lowest: Array
    highest: Array


def room(guard: Guarded) -> int:
    """Numbers that the functions below may use in `work`."""
    d, m = guard.lowest.size, len(guard.allowed.bounds)
    return int(6 * d + in_python(room_for)(d, m))


@compiled
def _yes(guard: Guarded) -> bool:
    return True


@compiled
def _fill_v(y: Array, v: Array) -> None:
    for j in range(y.shape[0]):
        v[j] = 2.0 * y[j] - 1.0


@compiled
def _fill_y(v: Array, y: Array) -> None:
    for j in range(y.shape[0]):
        y[j] = 0.5 + 0.5 * v[j]


@compiled
def _nearest_of_region(
    guard: Guarded, region: Region, target: Array, work: Array, v: Array
) -> bool:
    d = v.shape[0]
    low, high = work[:d], work[d : 2 * d]
    _fill_v(region.low, low)
    _fill_v(region.high, high)
    return nearest(guard.allowed, target, low, high, work[2 * d :], v)


@compiled
def allowed_start(guard: Guarded, region: Region, start: Array, mine: Array, work: Array) -> Any:
    v = work[: start.shape[0]]
    _fill_v(start, v)
    found = _nearest_of_region(guard, region, v, work[start.shape[0] :], v)
    _fill_y(v, mine)
    return found, mine


@compiled
def climb_in(
    guard: Guarded,
    slope: Array,
    bends: Array,
    twists: Array,
    region: Region,
    work: Array,
    v: Array,
) -> bool:
    return best(guard.allowed, slope, bends, twists, region.low, region.high, work, v)


@compiled
def settle(
    guard: Guarded, region: Region, low: Array, high: Array, centre: Array, work: Array, v: Array
) -> None:
    if not nearest(guard.allowed, v, low, high, work, v):
        copy_into(v, centre)
        _nearest_of_region(guard, region, centre, work, v)


@compiled
def settle_unit(
    guard: Guarded, region: Region, low: Array, high: Array, centre: Array, work: Array, y: Array
) -> None:
    d = y.shape[0]
    bottom, top, c, v = work[:d], work[d : 2 * d], work[2 * d : 3 * d], work[3 * d : 4 * d]
    _fill_v(low, bottom)
    _fill_v(high, top)
    _fill_v(centre, c)
    _fill_v(y, v)
    settle(guard, region, bottom, top, c, work[4 * d :], v)
    _fill_y(v, y)


@compiled
def hand_out(
    guard: Guarded, region: Region, edges: Array, y: Array, work: Array, value: Array
) -> bool:
    d = y.shape[0]
    _fill_v(y, work[:d])
    return to_units(guard.allowed, work[:d], guard.lowest, guard.highest, work[d:], value)


guards.register(
    Guarded,
    guards.Guard(
        kind=tuple_type(ALLOWED, VECTOR, VECTOR, named=Guarded),
        limits=_yes,
        allowed_start=allowed_start,
        climb_in=climb_in,
        settle=settle,
        settle_unit=settle_unit,
        hand_out=hand_out,
    ),
)
