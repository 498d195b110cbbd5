"""How a term that has earned it enters the model: into its place among the columns (eq. 26)."""

import math

from continuarm.core.compiling import Array, compiled, compiled_large, copy_into, fill
from continuarm.core.learners.surface.candidates import columns, fill_unknown, restart_candidates
from continuarm.core.learners.surface.layout import (
    DEGREES,
    FIRST,
    ITS_DEGREES,
    ITS_LEAD,
    ITS_SQUARES,
    LINEAR,
    NEXT_TWO,
    OF_BASELINE,
    SIZE,
    SQUARE,
    SQUARES,
    TWO,
    ResponseSurfaceConfig,
    baseline,
    baseline_degree,
    beside_one,
    beside_slopes,
    candidates,
    cross,
    first_of,
    its_triangle,
    size_of,
    slope_degree,
    slot,
    triangle,
)
from continuarm.core.learners.surface.triangle import begin_of

__all__ = ["enter", "move_left"]


@compiled_large
def enter(cfg: ResponseSurfaceConfig, row: Array, i: int, kind: int) -> float:
    """A candidate of context i enters; all others begin again. The lead that it had."""
    k, n, of_slopes = slot(cfg, i, kind), columns(cfg, kind), kind != OF_BASELINE
    its_columns = beside_slopes(cfg) if of_slopes else TWO
    p, column = size_of(row), i * beside_one(cfg) + (0 if of_slopes else beside_slopes(cfg))
    _widen(cfg, row, n, column)
    here, its = begin_of(cfg, row, p), its_triangle(cfg, i, kind)
    for a in range(n):
        length = its_columns - a
        for j in range(n - a):
            row[here + j] = row[its + j]
        row[here + n - a] = row[its + length]
        here += n - a + 1
        its += length + 1
    row[SQUARES], row[DEGREES] = row[k + ITS_SQUARES], row[k + ITS_DEGREES]
    _look_ahead(cfg, row, i, kind, column, its_columns)
    place = _place(cfg, row, i, of_slopes)
    for a in range(n):
        move_left(cfg, row, p + a, place + a)
    if of_slopes:
        row[slope_degree(cfg, i)] += n // cfg.dy
    else:
        row[baseline_degree(cfg, i)] += TWO
        row[FIRST] += TWO
    lead = row[k + ITS_LEAD]
    restart_candidates(cfg, row, i if of_slopes else -1)
    if of_slopes:
        _leave(cfg, row, i, n, its_columns)
    return float(lead)


@compiled_large
def _look_ahead(
    cfg: ResponseSurfaceConfig, row: Array, i: int, kind: int, column: int, its_columns: int
) -> None:
    """Let the rows say of the next candidates what they know.

    The degrees of the slopes that are left move up. Nobody has looked at the baseline's next.
    """
    n, its = columns(cfg, kind), its_triangle(cfg, i, kind)
    p, rest = size_of(row) - n, its_columns - n
    fill(row[cross(cfg, p) : cross(cfg, p + n)], 0.0)
    for k in range(p):
        begin = cross(cfg, k) + column
        copy_into(row[begin : begin + rest], row[begin + n : begin + n + rest])
        fill(row[begin + rest : begin + its_columns], 0.0)
    for a in range(n):
        begin = cross(cfg, p + a) + column
        copy_into(row[begin : begin + rest], row[its + n - a : its + n - a + rest])
        its += its_columns - a + 1


@compiled_large
def _leave(cfg: ResponseSurfaceConfig, row: Array, i: int, n: int, its_columns: int) -> None:
    """Take the first n rows and columns out of the triangle of a context's slopes.

    What is left is what the model that has grown cannot say of the degrees that are left.
    """
    new = its_triangle(cfg, i, NEXT_TWO)
    old = new + n * (its_columns + 1) - n * (n - 1) // 2
    for a in range(its_columns - n):
        length = its_columns - n - a
        copy_into(row[new : new + length], row[old : old + length])
        last = row[old + length]
        fill(row[new + length : new + length + n], 0.0)
        row[new + length + n] = last
        old += length + 1
        new += length + n + 1
    fill_unknown(cfg, row, i, NEXT_TWO, its_columns, its_columns - n)


@compiled
def _place(cfg: ResponseSurfaceConfig, row: Array, i: int, of_slopes: bool) -> int:
    """The column of a term that enters: behind those of its context, before the next one's."""
    if of_slopes:
        place = first_of(row) + cfg.terms + cfg.dx * cfg.varying
        for other in range(i + 1):
            place += cfg.dy * (int(row[slope_degree(cfg, other)]) - LINEAR)
        return place
    place = baseline(cfg)
    for other in range(i + 1):
        place += int(row[baseline_degree(cfg, other)]) - SQUARE
    return place


@compiled_large
def _widen(cfg: ResponseSurfaceConfig, row: Array, n: int, column: int) -> None:
    """Make room for n more columns before the last one, and give them what is known of theirs."""
    p = size_of(row)
    old = triangle(cfg) + p * (p + 3) // 2
    new = triangle(cfg) + p * (p + n + 1) - p * (p - 1) // 2
    for i in range(p - 1, -1, -1):
        length = p - i  # numbers of R in row i
        old -= length + 1
        new -= length + n + 1
        row[new + length + n] = row[old + length]
        for j in range(length - 1, -1, -1):
            row[new + j] = row[old + j]
        begin = cross(cfg, i) + column
        for j in range(n):
            row[new + length + j] = row[begin + j]
    row[SIZE] = p + n


@compiled_large
def move_left(cfg: ResponseSurfaceConfig, row: Array, column: int, place: int) -> None:
    """Move a column to the left, place by place, and rotate what that leaves into a triangle."""
    p, c = size_of(row), candidates(cfg)
    for j in range(column, place, -1):
        for i in range(j - 1):
            k = begin_of(cfg, row, i) - i
            row[k + j - 1], row[k + j] = row[k + j], row[k + j - 1]
        above, below = begin_of(cfg, row, j - 1), begin_of(cfg, row, j)
        left, right, lower = row[above], row[above + 1], row[below]
        pivot = math.sqrt(right * right + lower * lower)
        cosine, sine = right / pivot, lower / pivot
        row[above], row[above + 1] = pivot, cosine * left
        turned = -1.0 if left > 0.0 else 1.0  # pivots are positive
        row[below] = abs(sine * left)
        _turn(row, above + 2, below + 1, p - j, cosine, sine, turned)
        _turn(row, cross(cfg, j - 1), cross(cfg, j), c, cosine, sine, turned)


@compiled
def _turn(
    row: Array, above: int, below: int, n: int, cosine: float, sine: float, turned: float
) -> None:
    for j in range(n):
        one, two = row[above + j], row[below + j]
        row[above + j] = cosine * one + sine * two
        row[below + j] = turned * (cosine * two - sine * one)
