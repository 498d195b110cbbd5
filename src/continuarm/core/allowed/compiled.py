"""The same functions, compiled: each module again, with its functions replaced by compiled ones.

They are compiled once, by themselves, and called by their address: a policy without guards has
nothing of them to compile, and one with guards does not wait for them twice.
"""

from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from numba import types

from continuarm.core.allowed import choosing, climbing, dual, exactness, lattice, lines, nearby
from continuarm.core.allowed.bundles import VECTORS, Allowed, Room
from continuarm.core.compiling import (
    MATRIX,
    VECTOR,
    Array,
    address_of,
    compile_function,
    compiled,
    compiled_large,
    function_at,
    tuple_type,
)

__all__ = ["ALLOWED", "best", "limits", "nearest", "room_for", "the_code", "to_units"]

BEST, NEAREST, TO_UNITS, LIMITS = range(4)
ALLOWED = tuple_type(
    MATRIX,
    VECTOR,
    VECTOR,
    MATRIX,
    MATRIX,
    MATRIX,
    VECTOR,
    types.int64,
    types.boolean,
    types.boolean,
    types.int64,
    named=Allowed,
)
SIGNATURE = types.boolean(types.int64, ALLOWED, *(VECTOR,) * 7)
code_at = function_at(SIGNATURE)


def _compiled_again(*modules: ModuleType) -> dict[Any, Any]:
    """Compiled twins of the functions of plain modules, by the function."""
    twins: dict[Any, Any] = {}
    spaces = [dict(vars(module)) for module in modules]
    for module, space in zip(modules, spaces, strict=True):
        for name, value in vars(module).items():
            if isinstance(value, FunctionType) and value.__module__ == module.__name__:
                twins[value] = compiled_large(FunctionType(value.__code__, space, name))
    for space in spaces:
        for name, value in space.items():
            if isinstance(value, FunctionType):
                space[name] = twins[value]
    return twins


_TWINS = _compiled_again(choosing, climbing, dual, exactness, lattice, lines, nearby)
_fill_best, _fill_nearest = _TWINS[choosing.fill_best], _TWINS[choosing.fill_nearest]
_fill_value, _fill_limits = _TWINS[choosing.fill_value], _TWINS[choosing.fill_limits]


@compiled
def room_for(d: int, m: int) -> int:
    """How many numbers the work room of `best`, `nearest` and `to_units` has."""
    return 4 * d * d + VECTORS * d + 2 * m + 4


@compiled
def _room(work: Array, d: int, m: int) -> Room:
    square, k = d * d, 4 * d * d + VECTORS * d
    return Room(
        work[:square].reshape(d, d),
        work[square : 2 * square].reshape(d, d),
        work[2 * square : 3 * square].reshape(d, d),
        work[3 * square : 4 * square].reshape(d, d),
        work[4 * square : k].reshape(VECTORS, d),
        work[k : k + m],
        work[k + m : k + 2 * m],
        work[k + 2 * m : k + 2 * m + 4],
    )


@cache
def the_code() -> int:
    """Where the compiled functions lie: `code` of what is allowed."""

    def code(task, allowed, slope, bends, twists, low, high, work, v):  # type: ignore[no-untyped-def]
        if task == LIMITS:
            return _fill_limits(allowed, slope, bends, low, high)
        room = _room(work, low.shape[0], allowed.bounds.shape[0])
        if task == BEST:
            return _fill_best(allowed, slope, bends, twists, low, high, room, v)
        if task == NEAREST:
            return _fill_nearest(allowed, slope, low, high, room, v)
        return _fill_value(allowed, slope, low, high, room, v)

    found = compile_function(code, SIGNATURE, cacheable=True, allocates=False)
    _kept.append(found)
    return address_of(found, SIGNATURE)


_kept: list[Any] = []  # or the machine code would be gone


@compiled
def best(
    allowed: Allowed,
    slope: Array,
    bends: Array,
    twists: Array,
    low: Array,
    high: Array,
    work: Array,
    v: Array,
) -> bool:
    """Fill v with the best allowed point of slope·v + ½ vᵀHv between low and high.

    False: none was found, and v is as it was. H has the diagonal `bends` and above it, row by row,
    `twists`, none where it is diagonal. `work` has room for `room_for` numbers.
    """
    code = code_at(allowed.code)
    return bool(code(BEST, allowed, slope, bends, twists, low, high, work, v))


@compiled
def nearest(
    allowed: Allowed, target: Array, low: Array, high: Array, work: Array, v: Array
) -> bool:
    """Fill v with the allowed point between low and high that is nearest to the target."""
    code = code_at(allowed.code)
    return bool(code(NEAREST, allowed, target, target, target, low, high, work, v))


@compiled
def to_units(
    allowed: Allowed, v: Array, lowest: Array, highest: Array, work: Array, value: Array
) -> bool:
    """Fill the decision v in units, exactly allowed; lowest and highest are limits in units."""
    code = code_at(allowed.code)
    return bool(code(TO_UNITS, allowed, v, v, v, lowest, highest, work, value))


@compiled
def limits(allowed: Allowed, lowest: Array, highest: Array, low: Array, high: Array) -> bool:
    """Fill limits of v from limits in units, moved inwards to allowed values; False: none is."""
    code = code_at(allowed.code)
    return bool(code(LIMITS, allowed, lowest, highest, lowest, low, high, low, low))
