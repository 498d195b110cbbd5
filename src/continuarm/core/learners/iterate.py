"""A point that climbs: what the learners of stochastic approximation share.

Legend: ỹ the iterate, n the step (from 1). Of a row they share the first two numbers, and from
`first` on the iterate and, with `average`, the average of the iterates.
"""

import math

from continuarm.core.compiling import Array, compiled, copy_into, fill
from continuarm.core.request import Region, clip_into

__all__ = ["COUNT", "DONE", "MOST_STEPS", "STALE"]

COUNT, DONE = 0, 1  # n; steps made in this bin
MOST_STEPS = 2.0**52
STALE = 4.0  # a gradient that is τ steps old moves by a/(n + 4τ)
MOST_PLACED = 20.0  # steps that a log can stand for: it may be wrong


@compiled
def size(dy: int, average: bool) -> int:
    """Numbers that the iterate and its average take."""
    return 2 * dy if average else dy


@compiled
def begin(row: Array, first: int, dy: int, average: bool, start: Array) -> None:
    """Stand at `start`, before the first step."""
    fill(row, 0.0)
    row[COUNT] = 1.0  # a_n = a/n: the first step is n = 1 (reading 4)
    stand(row, first, dy, average, start)


@compiled
def stand(row: Array, first: int, dy: int, average: bool, y: Array) -> None:
    """Stand at `y`."""
    copy_into(row[first : first + dy], y)
    if average:
        copy_into(row[first + dy : first + 2 * dy], y)


@compiled
def centre(first: int, dy: int, average: bool) -> int:
    """Where in the row the best known decision stands."""
    return first + dy if average else first


@compiled
def best(row: Array, first: int, dy: int, average: bool, region: Region, y: Array) -> None:
    """Fill `y` with the best known decision of the region."""
    k = centre(first, dy, average)
    for i in range(dy):
        y[i] = row[k + i]
    clip_into(region, y)


@compiled
def fade(row: Array, memory: float, elapsed: float) -> None:
    """Let steps count less by the factor e^(-elapsed/memory); 0: all count."""
    if memory > 0.0:
        row[COUNT] = 1.0 + (row[COUNT] - 1.0) * math.exp(-elapsed / memory)


@compiled
def move(row: Array, first: int, dy: int, average: bool, i: int, change: float) -> None:
    """Move coordinate i of the iterate, within the cube."""
    k = first + i
    row[k] = min(max(row[k] + change, 0.0), 1.0)  # Π_Y
    if average:
        row[k + dy] += (row[k] - row[k + dy]) / row[COUNT]


@compiled
def count_step(row: Array) -> None:
    """All coordinates have moved."""
    row[COUNT] += 1.0
    row[DONE] += 1.0


@compiled
def hand_down(
    parent: Array, child: Array, first: int, dy: int, average: bool, keep_count: bool
) -> None:
    """A child starts at its parent's iterate (reading 6), with or without its count."""
    fill(child, 0.0)
    child[COUNT] = parent[COUNT] if keep_count else 1.0
    best = centre(first, dy, average)
    for i in range(dy):
        child[first + i] = parent[first + i] if keep_count else parent[best + i]
        child[best + i] = parent[best + i]


@compiled
def place(
    row: Array, first: int, dy: int, average: bool, y: Array, payoffs: float, per_step: int
) -> None:
    """Stand at `y`, which logged payoffs support."""
    row[COUNT] = 1.0 + min(payoffs / per_step, MOST_PLACED)
    stand(row, first, dy, average, y)


def fits(rows: Array, first: int) -> bool:
    """Whether rows that were read stand in the cube, after a whole number of steps."""
    points, steps = rows[:, first:], rows[:, [COUNT, DONE]]
    inside = (points >= 0.0).all() and (points <= 1.0).all()
    counted = (steps >= [1.0, 0.0]).all() and (steps < MOST_STEPS).all()
    return bool(inside and counted and (rows[:, DONE] % 1 == 0.0).all())
