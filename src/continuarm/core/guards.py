"""What a guard does to decisions: the class of the guard selects the code.

`Free` is no guard but a box: nothing is done, and nothing more is compiled. `Allowed` has coupled
limits or spaced values. Legend: v = 2y - 1 the decision in [-1, 1]^dy.
"""

from dataclasses import dataclass
from typing import Any

from continuarm.core import compiling
from continuarm.core.compiling import Array, by_class, compiled, tuple_type
from continuarm.core.learners.boxed_peak import climb
from continuarm.core.request import Free, Region
from continuarm.core.scaling import from_unit

__all__ = [
    "Guard",
    "allowed_start",
    "climb_in",
    "hand_out",
    "kind_of",
    "limits",
    "register",
    "settle",
    "settle_unit",
]


@dataclass(frozen=True, kw_only=True)
class Guard:
    """The code of a guard; each function is described by the one of the same name below."""

    kind: Any  # the compiled type of the guard
    limits: Any
    allowed_start: Any
    climb_in: Any
    settle: Any
    settle_unit: Any
    hand_out: Any


def register(guard: type, code: Guard) -> None:
    """Make `code` that of a class of guards."""
    compiling.register(guard, code)


def code(guard: Any) -> Guard:
    """The code of a guard."""
    found: Guard = compiling.code_of(type(guard))
    return found


def kind_of(guard_class: type) -> Any:
    """The compiled type of a class of guards."""
    return compiling.code_of(guard_class).kind


@by_class
def limits(guard: Any) -> bool:
    """Whether it limits decisions more than a box does."""
    return bool(code(guard).limits(guard))


@by_class
def allowed_start(guard: Any, region: Region, start: Array, mine: Array, work: Array) -> Any:
    """Whether the region holds anything, and the start as it allows it, perhaps in `mine`."""
    return code(guard).allowed_start(guard, region, start, mine, work)


@by_class
def climb_in(
    guard: Any, slope: Array, bends: Array, twists: Array, region: Region, work: Array, v: Array
) -> bool:
    """Fill `v` with where in the region, which is in v, `slope·v + ½ vᵀHv` is highest.

    H has the diagonal `bends` and above it, row by row, `twists` (a guard also takes none). False,
    with `v` as it was: nothing of the region is allowed.
    """
    return bool(code(guard).climb_in(guard, slope, bends, twists, region, work, v))


@by_class
def settle(
    guard: Any, region: Region, low: Array, high: Array, centre: Array, work: Array, v: Array
) -> None:
    """Move `v` to the nearest allowed point between `low` and `high`, which are in v.

    Where there is none, to the one of the region that is nearest to the centre.
    """
    code(guard).settle(guard, region, low, high, centre, work, v)


@by_class
def settle_unit(
    guard: Any, region: Region, low: Array, high: Array, centre: Array, work: Array, y: Array
) -> None:
    """The same where all are on the unit cube."""
    code(guard).settle_unit(guard, region, low, high, centre, work, y)


@by_class
def hand_out(
    guard: Any, region: Region, edges: Array, y: Array, work: Array, value: Array
) -> bool:
    """A decision of the unit cube in its units, exactly as it is allowed; False: there is none.

    edges : of the decision's box in units, low and then high.
    """
    return bool(code(guard).hand_out(guard, region, edges, y, work, value))


@compiled
def _no(guard: Free) -> bool:
    return False


@compiled
def _as_it_is(guard: Free, region: Region, start: Array, mine: Array, work: Array) -> Any:
    return True, start


@compiled
def _climb(
    guard: Free, slope: Array, bends: Array, twists: Array, region: Region, work: Array, v: Array
) -> bool:
    climb(slope, bends, twists, region, work, v)
    return True


@compiled
def _stay(
    guard: Free, region: Region, low: Array, high: Array, centre: Array, work: Array, v: Array
) -> None:
    pass


@compiled
def _scale(guard: Free, region: Region, edges: Array, y: Array, work: Array, value: Array) -> bool:
    from_unit(edges[: y.shape[0]], edges[y.shape[0] :], y, value)
    return True


register(
    Free,
    Guard(
        kind=tuple_type(named=Free),
        limits=_no,
        allowed_start=_as_it_is,
        climb_in=_climb,
        settle=_stay,
        settle_unit=_stay,
        hand_out=_scale,
    ),
)
