"""What is allowed, as numbers, and room to compute in: of lists, or of arrays where compiled."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

__all__ = [
    "ANY",
    "FIRST",
    "LAST",
    "PIVOT",
    "STEP",
    "TEN",
    "VECTORS",
    "Allowed",
    "Numbers",
    "Room",
    "Table",
]


class Numbers(Protocol):
    """A list of numbers, or an array."""

    def __getitem__(self, i: int, /) -> float: ...
    def __setitem__(self, i: int, number: float, /) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[float]: ...


class Table(Protocol):
    """A list of such lists, or an array of two dimensions."""

    def __getitem__(self, i: int, /) -> Numbers: ...
    def __len__(self) -> int: ...


# Of a coordinate. Its allowed values are (first + k step)/ten for k = 0, ..., last; a step of 0:
# any value. It is what equality `pivot` is solved for; -1: none is.
FIRST, STEP, TEN, LAST, PIVOT = range(5)
ANY = 0.0

VECTORS = 29  # rows of room for a vector


class Allowed(NamedTuple):
    """Where a decision may lie; v = 2y - 1 is the decision in [-1, 1]^d, y on the unit cube."""

    rows: Table  # (m, d): rows·v <= bounds, each of length 1; the first `equal` hold with "="
    bounds: Numbers  # (m)
    margins: Numbers  # (m): what rounding may do to the bounds
    units: Table  # (m, d + 1): the same in the units of the box; equalities solved for a pivot
    coordinates: Table  # (d, 5)
    edges: Table  # (2, d): low and high in units
    anchor: Numbers  # (d): a value in units that is allowed, with rounding to spare where it can
    equal: int
    spaced: bool  # some coordinate has a step
    guarded: bool  # spaced, or with rows
    code: int  # where the compiled functions lie; 0: nothing is compiled, or nothing is guarded


class Room(NamedTuple):
    """Room to compute in."""

    hessian: Table  # (d, d)
    shifted: Table  # (d, d)
    basis: Table  # (d, d)
    triangle: Table  # (d, d)
    vectors: Table  # (VECTORS, d)
    bounds: Numbers  # (m)
    sums: Numbers  # (m)
    found: Numbers  # (4)
