"""Grid: K equal intervals per context dimension (eq. 2), bins made on first visit.

The nodes are a hash table with open addressing: the row of a bin, then its cell in each dimension.
Bins are half-open, the last one closed (reading 10), and `_cell` alone says where a number is.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from continuarm import checks
from continuarm.core.compiling import Array, compiled, copy_into
from continuarm.core.partitions.protocol import Boxes, Partition, register
from continuarm.core.request import FULL
from continuarm.core.state import Space

__all__ = ["Grid", "GridConfig"]

ROW, CELL = 0, 1  # a node; of the header, the first number counts the nodes in use


@dataclass(frozen=True)
class Grid:
    """`bins` equal intervals in each context dimension."""

    bins: int  # K

    def __post_init__(self) -> None:
        checks.normalise(self, bins=checks.whole("bins", self.bins, 1, 10**9))

    def configured(self, dx: int, learner: Any) -> "GridConfig":
        """The numbers of these options."""
        return GridConfig(dx, self.bins)


class GridConfig(NamedTuple):
    """The same as numbers."""

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
def _slot(cfg: GridConfig, nodes: Array, cells: Array) -> int:
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
def _cells(cfg: GridConfig, x: Array, cells: Array) -> None:
    for i in range(cfg.dx):
        cells[i] = _cell(x[i], cfg.bins)


@compiled
def locate(cfg: GridConfig, nodes: Array, x: Array, space: Space, boxed: bool) -> tuple[int, bool]:
    cells = space.low
    _cells(cfg, x, cells)
    row = int(nodes[_slot(cfg, nodes, cells), ROW])
    if boxed:
        for i in range(cfg.dx):
            space.high[i] = (cells[i] + 1.0) / cfg.bins
            space.low[i] = cells[i] / cfg.bins
    return row, row > 0


@compiled
def add(cfg: GridConfig, nodes: Array, x: Array, row: int, space: Space) -> int:
    if 2 * (nodes[0, ROW] + 1.0) > nodes.shape[0] - 1:
        return FULL
    cells = space.low
    _cells(cfg, x, cells)
    slot = _slot(cfg, nodes, cells)
    nodes[slot, ROW] = row
    for i in range(cfg.dx):
        nodes[slot, CELL + i] = cells[i]
    nodes[0, ROW] += 1.0
    return 0  # nobody asks a row for its cell, which moves when the table grows


@compiled
def _rehash(cfg: GridConfig, old: Array, new: Array) -> None:
    for j in range(1, old.shape[0]):
        if old[j, ROW] > 0.0:
            copy_into(new[_slot(cfg, new, old[j, CELL:])], old[j])


def empty(cfg: GridConfig) -> Array:
    return np.zeros((1 + 16, CELL + cfg.dx))


def grown(cfg: GridConfig, nodes: Array) -> Array:
    larger = np.zeros((2 * nodes.shape[0] - 1, nodes.shape[1]))
    larger[0] = nodes[0]
    _rehash(cfg, nodes, larger)
    return larger


def boxes(cfg: GridConfig, nodes: Array) -> Boxes:
    made = nodes[1:][nodes[1:, ROW] > 0.0]
    cells = made[np.argsort(made[:, ROW])][:, : CELL + cfg.dx]
    return [
        (int(cell[ROW]), cell[CELL:] / cfg.bins, (cell[CELL:] + 1.0) / cfg.bins) for cell in cells
    ]


def fits(cfg: GridConfig, nodes: Array, heads: Array, busy: list[int]) -> bool:
    """A table of 2^k places, at most half full, each bin once and where it is looked for."""
    size = len(nodes) - 1
    if size < 16 or size & (size - 1) or nodes.shape[1] != CELL + cfg.dx:
        return False
    places = 1 + np.flatnonzero(nodes[1:, ROW] != 0.0)
    made, others = nodes[places], np.delete(nodes[1:], places - 1, axis=0)
    cells = made[:, CELL:]
    if not (np.isfinite(made).all() and (made >= 0.0).all() and (made % 1 == 0.0).all()):
        return False
    if (
        others.any()
        or 2 * len(made) > size
        or nodes[0, ROW] != len(made)
        or not (cells < cfg.bins).all()
    ):
        return False
    if sorted(made[:, ROW].tolist()) != busy:
        return False
    return all(_slot(cfg, nodes, node[CELL:]) == k for k, node in zip(places, made, strict=True))


def single(cfg: GridConfig) -> bool:
    return cfg.bins == 1


register(GridConfig, Partition.of(globals()))
