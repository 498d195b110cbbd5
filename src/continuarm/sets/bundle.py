"""A box and its rows as numbers for `core.allowed`: on [-1, 1]^d, with margins for rounding."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from continuarm.box import Box
from continuarm.core.allowed.bundles import PIVOT, TEN, Allowed
from continuarm.core.compiling import Array
from continuarm.errors import SettingsError

__all__ = ["Rows", "bundle", "on_cube", "solved"]

ROUNDING = 2.0**-53
LEAST = 1e-150  # so that squares are numbers
SPARE = 3e-13  # of [-1, 1]: what the solver's own rounding may do


class Rows(NamedTuple):
    """`factors @ value <= bounds` in units."""

    factors: Array
    bounds: Array


def on_cube(box: Box, rows: Rows) -> tuple[Rows, Array]:
    """Rows for v = 2y - 1 in [-1, 1]^d, each of length 1, and what rounding may do to them."""
    half = 0.5 * box.span
    factors, bounds = np.empty_like(rows.factors), np.empty_like(rows.bounds)
    margins = np.empty_like(bounds)
    far = np.maximum(np.abs(box.low), np.abs(box.high))
    for i, (row, bound) in enumerate(zip(rows.factors, rows.bounds, strict=True)):
        length = _length(row, half)
        factors[i] = row * half / length
        bounds[i] = _at_middle(box, row, bound) / length
        size = np.abs(row) @ far + abs(bound)
        margins[i] = SPARE + 4.0 * (box.dim + 4) * ROUNDING * size / length
    return Rows(factors, bounds), margins


def _length(row: Array, half: Array) -> float:
    with np.errstate(over="ignore"):
        length = float(np.linalg.norm(row * half))
    if not LEAST < length < 1.0 / LEAST:
        raise SettingsError(
            f"a row must change by {LEAST:.0e} to {1.0 / LEAST:.0e} between the edges of the box, "
            f"but got {row.tolist()}, which changes by {2.0 * length}"
        )
    return length


def _at_middle(box: Box, row: Array, bound: float) -> float:
    """What a row leaves at the middle of the box, rounded once."""
    left = Fraction(float(bound))
    for factor, low, high in zip(row.tolist(), box.low.tolist(), box.high.tolist(), strict=True):
        left -= Fraction(factor) * (Fraction(low) + Fraction(high)) / 2
    return float(left)


def solved(box: Box, equal: Rows, texts: Sequence[str]) -> tuple[Rows, list[int]]:
    """Equalities, each solved for a coordinate without a spacing, and these coordinates.

    Elimination is exact. The coordinate is the one that changes the row most along its side.
    """
    left = [
        [Fraction(float(x)) for x in (*row, bound)]
        for row, bound in zip(equal.factors, equal.bounds, strict=True)
    ]
    done: list[list[Fraction]] = []
    pivots: list[int] = []
    for row, text in zip(left, texts, strict=False):  # equalities come first
        for other, pivot in zip(done, pivots, strict=True):
            row = _less(row, other, row[pivot])
        sizes = [abs(float(x)) * side for x, side in zip(row, box.span.tolist(), strict=False)]
        free = [0.0 if step else size for size, step in zip(sizes, box.spacing, strict=True)]
        if not any(sizes):
            rule = "equalities must not follow from, or contradict, one another"
            raise SettingsError(f"{rule}, but got {text!r}")
        if not any(free):
            raise SettingsError(
                "an equality must have a coordinate without a spacing, for which it is solved, "
                f"but got {text!r}"
            )
        pivot = int(np.argmax(free))
        row = [x / row[pivot] for x in row]
        done = [_less(other, row, other[pivot]) for other in done]
        done.append(row)
        pivots.append(pivot)
    numbers = np.array([[float(x) for x in row] for row in done]).reshape(-1, box.dim + 1)
    return Rows(np.ascontiguousarray(numbers[:, :-1]), numbers[:, -1].copy()), pivots


def _less(row: list[Fraction], other: list[Fraction], times: Fraction) -> list[Fraction]:
    return [a - times * b for a, b in zip(row, other, strict=True)]


def bundle(box: Box, rows: Rows, equal: Rows, pivots: Sequence[int], anchor: Array) -> Allowed:
    """What is allowed, for the functions of `core.allowed`; equalities are solved for pivots."""
    both = Rows(
        np.concatenate([equal.factors, rows.factors]), np.concatenate([equal.bounds, rows.bounds])
    )
    cube, margins = on_cube(box, both)
    coordinates = np.zeros((box.dim, 5))
    coordinates[:, TEN], coordinates[:, PIVOT] = 1.0, -1.0
    for j, values in enumerate(box.values()):
        if values is not None:
            coordinates[j, :4] = values
    for i, pivot in enumerate(pivots):
        coordinates[pivot, PIVOT] = i
    return Allowed(
        rows=cube.factors,
        bounds=cube.bounds,
        margins=margins,
        units=np.column_stack([both.factors, both.bounds]),
        coordinates=coordinates,
        edges=np.array([box.low, box.high]),
        anchor=anchor,
        equal=len(pivots),
        spaced=box.spaced,
        guarded=box.spaced or len(both.bounds) > 0,
        code=0,
    )
