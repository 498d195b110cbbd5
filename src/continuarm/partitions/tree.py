"""Tree: a bin splits into halves along every context dimension after n_l stencils (Algorithm 3).

A split is a chain of dx binary cuts, so that a context makes only the nodes on its own path: cost
and memory grow with the bins visited, never with 2^dx. Cuts are at midpoints of the unit cube,
which are exact; a context equal to a cut belongs to the upper half.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from continuarm.jit import Array, compiled, copy_into, fill
from continuarm.learners import protocol as learner
from continuarm.learners.protocol import FULL
from continuarm.partitions.protocol import (
    HEAD,
    LAST,
    LEVEL,
    NODE,
    NODES_USED,
    ROWS_USED,
    Partition,
    register,
)

__all__ = ["Tree"]

# a node: the dimension it cuts (-1: it is a bin), where, its two children (0: not made yet), the
# row of its bin (of the bin that was split, for a cut), how many cuts of the same split stand
# above it, and how many below. All but the cut are whole numbers, kept as int64 in the same array,
# because a conversion at each level of the tree would be most of the cost of finding a bin.
DIMENSION, CUT, BELOW, ABOVE, ROW, PRECEDING, FOLLOWING, NODE_WIDTH = 0, 1, 2, 3, 4, 5, 6, 7
ROOT = 1


class Tree(NamedTuple):
    """Configuration: `split_after[l]` stencils complete a bin of level `l`; none splits deeper."""

    dx: int
    split_after: Array


@compiled
def locate(cfg: Tree, nodes: Array, x: Array, u: Array, scaled: bool) -> int:
    dx = cfg.dx
    if scaled:
        for i in range(dx):
            u[i], u[dx + i] = 0.0, 1.0
    links = nodes.view(np.int64)
    node = ROOT
    while links[node, DIMENSION] >= 0:
        i, cut = links[node, DIMENSION], nodes[node, CUT]
        above = x[i] >= cut
        child = links[node, ABOVE if above else BELOW]
        if child == 0:
            if scaled:
                _undo(x, u, i - links[node, PRECEDING], i)
                _scale(x, u)
            return -int(links[node, ROW])
        if scaled:
            u[i if above else dx + i] = cut
        node = child
    if scaled:
        _scale(x, u)
    return int(links[node, ROW])


@compiled
def _undo(x: Array, u: Array, first: int, last: int) -> None:
    """Take back the cuts in the middle of these dimensions: the box of the bin that was split."""
    dx = x.shape[0]
    for i in range(first, last):
        side = u[dx + i] - u[i]
        if (u[i] / side) % 2.0 == 1.0:  # boxes are dyadic: an odd one is the upper half
            u[i] -= side
        else:
            u[dx + i] += side


@compiled
def _scale(x: Array, u: Array) -> None:
    dx = x.shape[0]
    for i in range(dx):
        u[i] = (2.0 * x[i] - u[i] - u[dx + i]) / (u[dx + i] - u[i])


@compiled
def make(cfg: Tree, lcfg: Any, nodes: Array, rows: Array, x: Array, u: Array) -> int:
    """Make the missing nodes on the way to `x`, and its bin."""
    dx, links = cfg.dx, nodes.view(np.int64)
    used, row = int(nodes[0, NODES_USED]), int(nodes[0, ROWS_USED])
    if row == rows.shape[0] or used + dx + 1 > nodes.shape[0]:
        return FULL
    if links[ROOT, DIMENSION] < 0:
        copy_into(rows[row], rows[0])
        rows[row, NODE] = ROOT
        links[ROOT, ROW] = row
        nodes[0, ROWS_USED] = row + 1
        return row
    low, high = u[:dx], u[dx : 2 * dx]  # of the node
    bin_low, bin_high = u[2 * dx : 3 * dx], u[3 * dx :]  # of the bin that was split
    for i in range(dx):
        low[i], high[i], bin_low[i], bin_high[i] = 0.0, 1.0, 0.0, 1.0
    node = ROOT
    while True:
        i, cut = links[node, DIMENSION], nodes[node, CUT]
        side = BELOW
        if x[i] >= cut:
            side = ABOVE
            low[i] = cut
        else:
            high[i] = cut
        child = links[node, side]
        if child == 0:
            child = used
            used += 1
            links[node, side] = child
            links[child, ROW] = links[node, ROW]
            if links[node, FOLLOWING] == 0:
                break
            links[child, DIMENSION] = i + 1
            nodes[child, CUT] = (low[i + 1] + high[i + 1]) / 2.0
            links[child, PRECEDING] = links[node, PRECEDING] + 1
            links[child, FOLLOWING] = links[node, FOLLOWING] - 1
        elif links[node, FOLLOWING] == 0:  # the child is a whole bin again
            copy_into(bin_low, low)
            copy_into(bin_high, high)
        node = child
    parent = links[child, ROW]
    links[child, DIMENSION] = -1
    nodes[child, CUT] = (low[0] + high[0]) / 2.0  # of its first cut, should it split
    links[child, ROW] = row
    for i in range(dx):  # the child's box in the parent's u
        side_length = bin_high[i] - bin_low[i]
        low[i] = 2.0 * (low[i] - bin_low[i]) / side_length - 1.0
        high[i] = 2.0 * (high[i] - bin_low[i]) / side_length - 1.0
    fill(rows[row], 0.0)
    rows[row, NODE] = child
    rows[row, LEVEL] = rows[parent, LEVEL] + 1.0
    rows[row, LAST] = rows[parent, LAST]
    learner.inherit(lcfg, rows[parent, HEAD:], rows[row, HEAD:], low, high, 1.0)
    nodes[0, NODES_USED] = used
    nodes[0, ROWS_USED] = row + 1
    return row


@compiled
def observe(
    cfg: Tree,
    lcfg: Any,
    nodes: Array,
    rows: Array,
    row: int,
    x: Array,
    u: Array,
    work: Array,
    y: Array,
    z: float,
) -> None:
    """Split after the update of the last stencil (reading 6); a bin splits once."""
    level = int(rows[row, LEVEL])
    if level >= cfg.split_after.shape[0]:
        return
    if learner.progress(lcfg, rows[row, HEAD:]) < cfg.split_after[level]:
        return
    node, links = int(rows[row, NODE]), nodes.view(np.int64)
    if links[node, DIMENSION] < 0:
        links[node, DIMENSION] = 0
        links[node, FOLLOWING] = cfg.dx - 1


@compiled
def is_bin(cfg: Tree, nodes: Array, rows: Array, row: int) -> bool:
    return bool(nodes.view(np.int64)[int(rows[row, NODE]), DIMENSION] < 0)


def empty(cfg: Tree) -> Array:
    nodes = np.zeros((cfg.dx + 8, NODE_WIDTH))
    nodes[0, NODES_USED] = 2.0
    nodes[0, ROWS_USED] = 1.0
    nodes.view(np.int64)[ROOT, DIMENSION] = -1
    nodes[ROOT, CUT] = 0.5
    return nodes


def grown(cfg: Tree, nodes: Array) -> Array:
    return np.concatenate([nodes, np.zeros_like(nodes)])


def _walk(nodes: Array, dx: int) -> Iterator[tuple[int, Array, Array]]:
    """All nodes with their boxes, parents first."""
    links = nodes.view(np.int64)
    waiting = [(ROOT, np.zeros(dx), np.ones(dx))]
    while waiting:
        node, low, high = waiting.pop()
        yield node, low, high
        i, cut = links[node, DIMENSION], nodes[node, CUT]
        for side, edge in ((BELOW, high), (ABOVE, low)):
            if i >= 0 and links[node, side] > 0:
                moved = edge.copy()
                moved[i] = cut
                child = int(links[node, side])
                waiting.append((child, low, moved) if side == BELOW else (child, moved, high))


def boxes(cfg: Tree, nodes: Array) -> list[tuple[int, Array, Array]]:
    links = nodes.view(np.int64)
    found = [
        (int(links[node, ROW]), low, high)
        for node, low, high in _walk(nodes, cfg.dx)
        if links[node, DIMENSION] < 0 and links[node, ROW] > 0
    ]
    return sorted(found, key=lambda bin_: bin_[0])


def split_boxes(cfg: Tree, nodes: Array) -> list[tuple[int, Array, Array]]:
    links = nodes.view(np.int64)
    return [
        (int(links[node, ROW]), low, high)
        for node, low, high in _walk(nodes, cfg.dx)
        if links[node, DIMENSION] >= 0 and links[node, PRECEDING] == 0
    ]


register(
    Tree,
    Partition(
        empty=empty,
        locate=locate,
        make=make,
        observe=observe,
        grown=grown,
        boxes=boxes,
        split_boxes=split_boxes,
        is_bin=is_bin,
    ),
)
