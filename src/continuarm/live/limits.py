"""Limits on one decision: a box inside the decision box, or by name for some coordinates."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from continuarm.box import Box
from continuarm.checks import among, quoted, shortened
from continuarm.core.compiling import Array
from continuarm.errors import InputError
from continuarm.numbers import reals
from continuarm.sets import is_guarded

__all__ = ["Given", "Within", "at_ends", "within_of"]

AT_AN_END = 1e-9  # of a side of the box
Given = Box | Mapping[str, tuple[float, float]]


class Within(NamedTuple):
    """The lowest and the highest values that are allowed; equal ones fix a coordinate."""

    low: Array
    high: Array


def within_of(given: Any, decision: Box) -> Within:
    """Limits in the order of the decision's coordinates."""
    if isinstance(given, Box):
        if is_guarded(given):
            raise InputError(
                f"`within` must be a Box without spacing or coupled limits, but got {given!r}"
            )
        return _of_box(given, decision)
    if isinstance(given, Mapping) and given:
        return _by_name(given, decision)
    raise InputError(
        f'`within` must be a Box, or such as {{"price": (3.0, 4.5)}}, but got {given!r}'
    )


def _of_box(within: Box, decision: Box) -> Within:
    if not within.named or within.names == decision.names:
        return Within(within.low, within.high)
    if not decision.named or sorted(within.names) != sorted(decision.names):
        wanted, given = among(decision.names), among(within.names)
        raise InputError(f"the names of `within` must be {wanted}, but got {given}")
    order = [within.names.index(name) for name in decision.names]
    return Within(within.low[order], within.high[order])


def _by_name(given: Mapping[Any, Any], decision: Box) -> Within:
    """Coordinates that are not named keep the limits of the box."""
    low, high = decision.low.copy(), decision.high.copy()
    for name, pair in given.items():
        if not decision.named or name not in decision.names:
            known = among(decision.names) if decision.named else "those of a Box with names"
            raise InputError(
                f"the names of `within` must be among {known}, but got {quoted(name)}"
            )
        i, edges = decision.names.index(name), reals(pair)
        if edges is None or edges.shape != (2,) or not low[i] <= edges[0] <= edges[1] <= high[i]:
            raise InputError(
                f"`{low[i]} <= low <= high <= {high[i]}` must hold for {shortened(name)} "
                f"in `within`, but got {pair!r}"
            )
        low[i], high[i] = edges
    return Within(low, high)


def at_ends(decision: Box, within: Within, value: Array) -> Array:
    """Whether each coordinate is as low, and as high, as limits inside the box allow: `(2, dy)`.

    That of spaced values is at an end if the next one lies beyond.
    """
    room = AT_AN_END * decision.span
    if decision.spaced:
        room = np.maximum(room, (1.0 - AT_AN_END) * np.array(decision.spacing))
    lowest = (within.low > decision.low) & (value - within.low <= room)
    highest = (within.high < decision.high) & (within.high - value <= room)
    return np.array([lowest, highest])
