"""A decision that is known to be allowed, or the limits that leave none."""

from collections.abc import Sequence

import numpy as np

from continuarm.box import Box
from continuarm.core.allowed.bundles import Allowed
from continuarm.core.allowed.exactness import is_allowed
from continuarm.core.allowed.plain import fill_value, room_of_lists
from continuarm.core.compiling import Array
from continuarm.errors import SettingsError
from continuarm.sets.bundle import Rows
from continuarm.sets.conflicts import (
    NO_ROOM,
    Limit,
    irreducible,
    lengths_along,
    limits_of,
    listed,
    refusal,
    spare_room,
    whole_numbers,
)

__all__ = ["anchor_of", "nearest_of", "plain"]

MOST_ROUNDED = 1e-10  # of [-1, 1], what rounding may do to an equality


def plain(allowed: Allowed) -> Allowed:
    """The same of lists."""
    parts = {
        name: part.tolist() if isinstance(part, np.ndarray) else part
        for name, part in allowed._asdict().items()
    }
    return Allowed(**parts)


def nearest_of(allowed: Allowed, point: Array) -> Array:
    """The allowed decision nearest to a point, in units."""
    low, high = np.asarray(allowed.edges)
    v = 2.0 * (point - low) / (high - low) - 1.0
    value = [0.0] * len(low)
    room = room_of_lists(len(low), len(allowed.bounds))
    fill_value(plain(allowed), v.tolist(), low.tolist(), high.tolist(), room, value)
    return np.array(value)


def anchor_of(box: Box, rows: Rows, equal: Rows, texts: Sequence[str], allowed: Allowed) -> Array:
    """The decision farthest inside all limits, or an allowed value near it."""
    _refuse_what_is_rounded(allowed, texts)
    limits = limits_of(box, rows, equal, texts, box.low, box.high)
    room, middle = spare_room(limits)
    if room < -NO_ROOM:
        raise refusal(irreducible(limits, lambda some: spare_room(some)[0] < -NO_ROOM))
    least = max([NO_ROOM, *(2.0 * margin for margin in allowed.margins)])
    if room < least:
        tight = irreducible(limits, lambda some: spare_room(some)[0] < least)
        raise SettingsError(
            "inequalities that leave no room between them must be written as one equality, "
            f"`==`, but got {listed(tight)}"
        )
    _refuse_what_follows(limits[: len(texts)], middle, least)
    found = nearest_of(allowed, box.from_unit(0.5 + 0.5 * middle))
    if is_allowed(allowed, box.low, box.high, found):
        return found
    return _by_whole_numbers(box, limits, allowed)


def _refuse_what_is_rounded(allowed: Allowed, texts: Sequence[str]) -> None:
    for i in range(allowed.equal):
        if allowed.margins[i] > MOST_ROUNDED:
            raise SettingsError(
                "an equality must hold to 1e-9 of a side of the box, but numbers so much larger "
                f"than its sides are rounded by more, and got `{texts[i]}`"
            )


def _refuse_what_follows(rows: Sequence[Limit], v: Array, least: float) -> None:
    """An inequality that equalities make hold with "=" would be broken by rounding."""
    equal = [limit.row for limit in rows if limit.is_equality]
    rest = [limit for limit in rows if not limit.is_equality]
    lengths = lengths_along(equal, [limit.row for limit in rest])
    for limit, length in zip(rest, lengths, strict=True):
        if length == 0.0 and limit.row @ v > limit.bound - least:
            raise SettingsError(
                f"an inequality that follows from equalities must be left out, but got "
                f"`{limit.text}`"
            )


def _by_whole_numbers(box: Box, limits: Sequence[Limit], allowed: Allowed) -> Array:
    found = whole_numbers(box, limits)
    if found is not None:
        found = nearest_of(allowed, found)
        if is_allowed(allowed, box.low, box.high, found):
            return found
    kept = irreducible(limits, lambda some: whole_numbers(box, some) is None)
    raise SettingsError(
        f"limits must leave an allowed value, but got {listed(kept)} with {_spacings(box)}"
    )


def _spacings(box: Box) -> str:
    return f"spacing={list(box.spacing)}" + (
        f", ending={list(box.ending)}" if any(box.ending) else ""
    )
