"""What a child knows: its parent's surface in the child's own u (eq. 8)."""

import math

from continuarm.core.compiling import Array, compiled, compiled_large, copy_into, fill
from continuarm.core.learners.surface import layout
from continuarm.core.learners.surface.layout import (
    ResponseSurfaceConfig,
    first_of,
    size,
    size_of,
    triangle,
)
from continuarm.core.learners.surface.noise import LARGEST_FOURTHS
from continuarm.core.learners.surface.terms_of_children import hand_down_terms
from continuarm.core.learners.triangle import SMALLEST_PIVOT

__all__ = ["hand_down"]

LONG = 10.0  # payoffs per coefficient, from which a child of a model that has grown keeps less


@compiled_large
def hand_down(
    cfg: ResponseSurfaceConfig, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    """The parent's surface in the child's u, its observations with weight `keep` (eq. 8)."""
    dx, p, k = cfg.dx, size_of(parent), triangle(cfg)
    end = k + p * (p + 3) // 2
    if p > size(cfg):  # what many terms say together is slow to change
        keep *= math.sqrt(min(LONG * p / max(parent[layout.AGE], 1.0), 1.0))
    copy_into(child[:end], parent[:end])
    fill(child[end:], 0.0)
    child[layout.BEGUN] = 0.0
    child[layout.SEEN] = child[layout.RUN] = child[layout.OFFSET] = child[layout.LEAD] = 0.0
    child[layout.AGE] *= keep
    child[layout.BELIEVED] *= keep
    child[layout.SQUARES] *= keep / parent[layout.WEIGHT]
    child[layout.DEGREES] *= keep / parent[layout.WEIGHT]
    fourths = child[layout.FOURTHS] * (keep / parent[layout.WEIGHT])
    child[layout.FOURTHS] = min(fourths * (keep / parent[layout.WEIGHT]), LARGEST_FOURTHS)
    child[layout.WEIGHT] = 1.0
    factor = math.sqrt(keep / parent[layout.WEIGHT])
    first = first_of(parent)
    for i in range(p):
        length, base = p - i, k - i  # child[base + j] is entry (i, j)
        for j in range(length + 1):
            child[k + j] *= factor
        column = 1 + dx
        for axis in range(dx):
            for other in range(axis, dx if cfg.pairs else axis + 1):
                if i <= column:
                    child[base + column] = _product(child, base, i, column, axis, other, low, high)
                column += 1
        for axis in range(dx):
            middle, half = 0.5 * (low[axis] + high[axis]), 0.5 * (high[axis] - low[axis])
            if i == 0:
                child[base + 1 + axis] -= middle * child[base]
            if i <= 1 + axis:
                child[base + 1 + axis] /= half
            for j in range(cfg.varying):
                column = first + cfg.terms + axis * cfg.varying + j
                if i <= first + j:
                    child[base + column] -= middle * child[base + first + j]
                if i <= column:
                    child[base + column] /= half
        k += length + 1
    if p > size(cfg):
        hand_down_terms(cfg, parent, child, low, high, factor)
    k = triangle(cfg)
    for i in range(p):
        child[k] = max(child[k], SMALLEST_PIVOT)
        k += p - i + 1


@compiled
def _product(
    child: Array, base: int, i: int, column: int, axis: int, other: int, low: Array, high: Array
) -> float:
    """Entry i of the column of `u_axis u_other` in the child's u."""
    middle, middle_other = 0.5 * (low[axis] + high[axis]), 0.5 * (low[other] + high[other])
    entry = child[base + column]
    if i <= 1 + axis:
        entry -= middle_other * child[base + 1 + axis]
    if i <= 1 + other:
        entry -= middle * child[base + 1 + other]
    if i == 0:
        entry += middle * middle_other * child[base]
    area = (high[axis] - low[axis]) * (high[other] - low[other])
    return 4.0 * entry / area  # type: ignore[no-any-return]
