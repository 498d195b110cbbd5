"""Grid: K equal intervals per context dimension (eq. 2), bins made on first visit.

The nodes are a hash table with open addressing: the row of a bin, then its cell in each dimension.
Bins are half-open, the last one closed (reading 10), and `_cell` alone says where a number is.
"""

from typing import Any, NamedTuple

import numpy as np

from continuarm.jit import Array, compiled, copy_into
from continuarm.learners.protocol import FULL
from continuarm.partitions.protocol import NODE, NODES_USED, ROWS_USED, Partition, register

__all__ = ["Grid"]

ROW, CELL = 0, 1


class Grid(NamedTuple):
    """Configuration: `bins` intervals in each of `dx` dimensions."""

    dx: int
    bins: int  # K


@compiled
def _cell(number: float, bins: int) -> int:
    """The k with `k/K <= number < (k+1)/K`, as those quotients are rounded; K-1 for 1."""
    cell = int(number * bins)
    if number >= (cell + 1) / bins:
        cell += 1
    elif number < cell / bins:
        cell -= 1
    return min(cell, bins - 1)


@compiled
def _slot(cfg: Grid, nodes: Array, cells: Array) -> int:
    """The place of these cells in the table: where they stand, or where they would."""
    mask = nodes.shape[0] - 2
    key = 0
    for i in range(cfg.dx):
        key = (key ^ int(cells[i])) * 0x2545F4914F6CDD1D  # wraps, as int64 does when compiled
        key ^= key >> 32
    slot = key & mask
    while True:
        node = nodes[1 + slot]
        same = True
        for i in range(cfg.dx):
            same = same and node[CELL + i] == cells[i]
        if same or node[ROW] == 0.0:
            return int(1 + slot)
        slot = (slot + 1) & mask


@compiled
def locate(cfg: Grid, nodes: Array, x: Array, u: Array, scaled: bool) -> int:
    for i in range(cfg.dx):
        u[i] = _cell(x[i], cfg.bins)
    row = int(nodes[_slot(cfg, nodes, u), ROW])
    if scaled:
        for i in range(cfg.dx):
            u[i] = 2.0 * (x[i] * cfg.bins - u[i]) - 1.0
    return row


@compiled
def make(cfg: Grid, lcfg: Any, nodes: Array, rows: Array, x: Array, u: Array) -> int:
    nodes_used, row = int(nodes[0, NODES_USED]), int(nodes[0, ROWS_USED])
    if row == rows.shape[0] or 2 * (nodes_used + 1) > nodes.shape[0] - 1:
        return FULL
    for i in range(cfg.dx):
        u[i] = _cell(x[i], cfg.bins)
    slot = _slot(cfg, nodes, u)
    nodes[slot, ROW] = row
    for i in range(cfg.dx):
        nodes[slot, CELL + i] = u[i]
    copy_into(rows[row], rows[0])
    rows[row, NODE] = slot
    nodes[0, NODES_USED] += 1.0
    nodes[0, ROWS_USED] += 1.0
    return row


@compiled
def observe(
    cfg: Grid,
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
    """A grid never splits."""


@compiled
def _rehash(cfg: Grid, old: Array, new: Array) -> None:
    for j in range(1, old.shape[0]):
        if old[j, ROW] > 0.0:
            copy_into(new[_slot(cfg, new, old[j, CELL:])], old[j])


def empty(cfg: Grid) -> Array:
    nodes = np.zeros((1 + 16, max(2, CELL + cfg.dx)))
    nodes[0, ROWS_USED] = 1.0
    return nodes


def grown(cfg: Grid, nodes: Array) -> Array:
    larger = np.zeros((2 * nodes.shape[0] - 1, nodes.shape[1]))
    larger[0] = nodes[0]
    _rehash(cfg, nodes, larger)
    return larger


def boxes(cfg: Grid, nodes: Array) -> list[tuple[int, Array, Array]]:
    made = nodes[1:][nodes[1:, ROW] > 0.0]
    cells = made[np.argsort(made[:, ROW])][:, : CELL + cfg.dx]
    return [
        (int(cell[ROW]), cell[CELL:] / cfg.bins, (cell[CELL:] + 1.0) / cfg.bins) for cell in cells
    ]


register(
    Grid,
    Partition(empty=empty, locate=locate, make=make, observe=observe, grown=grown, boxes=boxes),
)
