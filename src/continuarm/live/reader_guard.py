"""What a table with coupled limits or spaced values needs beside the Reader; no numpy, either.

With the Reader, a client copies this file and the folder `continuarm/core/allowed`.
"""

import math
from typing import Any

from continuarm.core.allowed.plain import (
    Allowed,
    fill_best,
    fill_limits,
    fill_nearest,
    fill_value,
    room_of_lists,
)

__all__ = ["Guard", "guard_of"]

Vector = list[float]


class Guard:
    """Where decisions may lie; v = 2y - 1 is the decision in [-1, 1]^d, y on the unit cube."""

    def __init__(self, allowed: Allowed, low: Vector, high: Vector) -> None:
        self.allowed, self.edges = allowed, (low, high)
        self.low, self.high = [0.0] * len(low), [0.0] * len(low)
        self.holds = fill_limits(allowed, low, high, self.low, self.high)
        for edge in (self.low, self.high):  # as from the unit cube, where the policy keeps them
            edge[:] = [2.0 * (0.5 + 0.5 * v) - 1.0 for v in edge]

    def between(self, low: Vector, high: Vector) -> "Guard":
        """The same within limits in units."""
        return Guard(self.allowed, low, high)

    def near(self, middle: Vector, move: Vector) -> tuple[Vector, Vector]:
        """What is at most `move` from the middle, where something there is allowed.

        Else what is as near to the allowed decision that is nearest to the middle.
        """
        near = self._around(middle, move)
        if self._has_allowed(*near, middle):
            return near
        nearest = self.nearest(self.scaled(middle))
        value = self.value(nearest, nearest)
        near = self._around(value, move)
        return near if self._has_allowed(*near, value) else (value, value)

    def _around(self, middle: Vector, move: Vector) -> tuple[Vector, Vector]:
        ends = list(zip(middle, move, *self.edges, strict=True))
        low = [min(max(v - away, a), b) for v, away, a, b in ends]
        return low, [min(max(v + away, a), b) for v, away, a, b in ends]

    def _has_allowed(self, low: Vector, high: Vector, middle: Vector) -> bool:
        here, v = self.between(low, high), self.scaled(middle)
        if not here.holds:
            return False
        return bool(fill_nearest(here.allowed, v, here.low, here.high, here._room(), v[:]))

    def scaled(self, value: Vector) -> Vector:
        """A decision in units on [-1, 1]."""
        low, high = self.allowed.edges[0], self.allowed.edges[1]
        return [2.0 * (x - low[j]) / (high[j] - low[j]) - 1.0 for j, x in enumerate(value)]

    def nearest(self, v: Vector) -> Vector:
        """The allowed point that is nearest."""
        found = list(v)
        fill_nearest(self.allowed, v, self.low, self.high, self._room(), found)
        return found

    def highest(self, terms: Vector, low: Vector, high: Vector, otherwise: Vector) -> Vector:
        """The best allowed point of a quadratic between these."""
        d, found = len(low), list(otherwise)
        parts = terms[:d], terms[d : 2 * d], terms[2 * d :]
        fill_best(self.allowed, *parts, low, high, self._room(), found)
        return found

    def value(self, v: Vector, otherwise: Vector) -> Vector:
        """A decision in units, exactly as it is allowed."""
        found = [0.0] * len(v)
        if not fill_value(self.allowed, v, *self.edges, self._room(), found):
            fill_value(self.allowed, otherwise, *self.edges, self._room(), found)
        return found

    def _room(self) -> Any:
        return room_of_lists(len(self.low), len(self.allowed.bounds))


def guard_of(numbers: Any, low: Vector, high: Vector) -> Guard:
    """The guard of a table, whose decisions lie between these."""
    if not _fits(numbers, low, high):
        raise ValueError("the parts of a table must fit together, but this one is damaged")
    return Guard(Allowed(**numbers, code=0), low, high)


def _fits(numbers: Any, low: Vector, high: Vector) -> bool:
    """Whether all that is computed from these numbers has the size it needs."""
    names = [name for name in Allowed._fields if name != "code"]
    if not isinstance(numbers, dict) or sorted(numbers) != sorted(names):
        return False
    d, equal, bounds = len(low), numbers["equal"], numbers["bounds"]
    m = len(bounds) if isinstance(bounds, list) else -1
    sizes = {"rows": (m, d), "units": (m, d + 1), "coordinates": (d, 5), "edges": (2, d)}
    vectors = {"bounds": m, "margins": m, "anchor": d}
    return (
        all(_is_table(numbers[name], *size) for name, size in sizes.items())
        and all(_are_numbers(numbers[name], size) for name, size in vectors.items())
        and type(equal) is int
        and 0 <= equal <= m
        and all(type(numbers[name]) is bool for name in ("spaced", "guarded"))
        and numbers["edges"] == [low, high]
        and all(_is_coordinate(row, equal) for row in numbers["coordinates"])
    )


def _is_coordinate(row: Vector, equal: int) -> bool:
    _, step, ten, last, pivot = row
    whole = last == math.floor(last) and pivot == math.floor(pivot)
    return whole and step >= 0.0 and ten > 0.0 and last >= 0.0 and -1 <= pivot < equal


def _is_table(rows: Any, n: int, width: int) -> bool:
    return isinstance(rows, list) and len(rows) == n and all(_are_numbers(r, width) for r in rows)


def _are_numbers(values: Any, n: int) -> bool:
    return (
        isinstance(values, list)
        and len(values) == n
        and all(type(v) in (int, float) and math.isfinite(v) for v in values)
    )
