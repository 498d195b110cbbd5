"""Tree: a bin splits into halves along every context dimension after n_l stencils (Algorithm 3).

A split is a chain of dx binary cuts, so that a context makes only the nodes on its own path: cost
and memory grow with the bins visited, never with 2^dx. Cuts are at midpoints of the unit cube,
which are exact; a context equal to a cut belongs to the upper half.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from continuarm import checks
from continuarm.core.compiling import Array, compiled, copy_into, fill
from continuarm.core.learners import protocol as learner
from continuarm.core.partitions.protocol import Boxes, Partition, register
from continuarm.core.request import FULL, Learned
from continuarm.core.state import HEAD, LEVEL, NODE, Space, State
from continuarm.errors import SettingsError

__all__ = ["Tree", "TreeConfig"]

# a node: one more than the dimension it cuts (0: it is a bin), where, its two children (0: not
# made yet), the row of its bin (of the bin that was split, for a cut), how many cuts of the same
# split stand above it, and how many below. All but the cut are whole numbers, kept as int64 in the
# same array, because a conversion at each level would be most of the cost of finding a bin.
SPLITS, CUT, BELOW, ABOVE, ROW, PRECEDING, FOLLOWING, NODE_WIDTH = 0, 1, 2, 3, 4, 5, 6, 7
ROOT = 1
DEEPEST = 40
USED = 0  # of the header: how many nodes are in use


@dataclass(frozen=True)
class Tree:
    """A bin of level l splits after `split_after[l]` stencils (or observations); none deeper."""

    split_after: Sequence[int]  # n_l

    def __post_init__(self) -> None:
        numbers = checks.wholes("split_after", self.split_after, 1)
        if len(numbers) > DEEPEST:
            raise SettingsError(
                f"at most {DEEPEST} levels can be split, or sides lose their digits, "
                f"but got {len(numbers)}"
            )
        checks.normalise(self, split_after=tuple(numbers))

    def configured(self, dx: int, learner: Any) -> "TreeConfig":
        """The numbers of these options."""
        return TreeConfig(dx, np.array(self.split_after if dx > 0 else (), np.float64))


class TreeConfig(NamedTuple):
    """The same as numbers."""

    dx: int
    split_after: Array


@compiled
def locate(cfg: TreeConfig, nodes: Array, x: Array, space: Space, boxed: bool) -> tuple[int, bool]:
    links = nodes.view(np.int64)
    node = ROOT
    if not boxed:
        while links[node, SPLITS] > 0:
            i = links[node, SPLITS] - 1
            child = links[node, ABOVE if x[i] >= nodes[node, CUT] else BELOW]
            if child == 0:
                return int(links[node, ROW]), False
            node = child
        return int(links[node, ROW]), links[node, ROW] > 0
    _whole(space)
    while links[node, SPLITS] > 0:
        i, last = links[node, SPLITS] - 1, links[node, FOLLOWING] == 0
        child = links[node, _side(space, x, i, nodes[node, CUT])]
        if child == 0:
            for j in range(i + 1, i + 1 + links[node, FOLLOWING]):  # the cuts not made yet
                _side(space, x, j, 0.5 * (space.low[j] + space.high[j]))
            return int(links[node, ROW]), False
        if last:  # the child is a whole bin again
            copy_into(space.outer_low, space.low)
            copy_into(space.outer_high, space.high)
        node = child
    return int(links[node, ROW]), links[node, ROW] > 0


@compiled
def _whole(space: Space) -> None:
    """Begin with the box of all contexts."""
    fill(space.low, 0.0)
    fill(space.high, 1.0)
    fill(space.outer_low, 0.0)
    fill(space.outer_high, 1.0)


@compiled
def _side(space: Space, x: Array, i: int, cut: float) -> int:
    """Go to the side of a cut on which the context lies."""
    if x[i] >= cut:
        space.low[i] = cut
        return ABOVE
    space.high[i] = cut
    return BELOW


@compiled
def add(cfg: TreeConfig, nodes: Array, x: Array, row: int, space: Space) -> int:
    """Make the missing nodes on the way to `x`."""
    links = nodes.view(np.int64)
    used = int(nodes[0, USED])
    if used + cfg.dx + 1 > nodes.shape[0]:
        return FULL
    if links[ROOT, SPLITS] == 0:
        links[ROOT, ROW] = row
        return ROOT
    _whole(space)
    node = ROOT
    while True:
        i = links[node, SPLITS] - 1
        side = _side(space, x, i, nodes[node, CUT])
        child = links[node, side]
        if child == 0:
            child = used
            used += 1
            links[node, side] = child
            if links[node, FOLLOWING] == 0:
                break
            links[child, ROW] = links[node, ROW]
            links[child, SPLITS] = i + 2
            nodes[child, CUT] = 0.5 * (space.low[i + 1] + space.high[i + 1])
            links[child, PRECEDING] = links[node, PRECEDING] + 1
            links[child, FOLLOWING] = links[node, FOLLOWING] - 1
        node = child
    nodes[child, CUT] = 0.5 * (space.low[0] + space.high[0])  # of its first cut, should it split
    links[child, ROW] = row
    nodes[0, USED] = used
    return int(child)


@compiled
def observe(cfg: TreeConfig, lcfg: Any, state: State, learned: Learned, space: Space) -> None:
    """Split after the update of the last stencil (reading 6); a bin splits once."""
    nodes, row = state.nodes, learned.row
    level = int(state.rows[row, LEVEL])
    if level >= cfg.split_after.shape[0]:
        return
    if learner.progress(lcfg, state.rows[row, HEAD:]) < cfg.split_after[level]:
        return
    node, links = int(state.rows[row, NODE]), nodes.view(np.int64)
    if links[node, SPLITS] == 0:
        links[node, SPLITS] = 1
        links[node, FOLLOWING] = cfg.dx - 1


@compiled
def is_bin(cfg: TreeConfig, nodes: Array, rows: Array, row: int) -> bool:
    return bool(nodes.view(np.int64)[int(rows[row, NODE]), SPLITS] == 0)


def empty(cfg: TreeConfig) -> Array:
    nodes = np.zeros((cfg.dx + 8, NODE_WIDTH))
    nodes[0, USED] = 2.0
    nodes[ROOT, CUT] = 0.5
    return nodes


def grown(cfg: TreeConfig, nodes: Array) -> Array:
    return np.concatenate([nodes, np.zeros_like(nodes)])


def _walk(nodes: Array, dx: int) -> Iterator[tuple[int, Array, Array]]:
    """All nodes with their boxes, parents first."""
    links = nodes.view(np.int64)
    waiting = [(ROOT, np.zeros(dx), np.ones(dx))]
    while waiting:
        node, low, high = waiting.pop()
        yield node, low, high
        i, cut = links[node, SPLITS] - 1, nodes[node, CUT]
        for side, edge in ((BELOW, high), (ABOVE, low)):
            if i >= 0 and links[node, side] > 0:
                moved = edge.copy()
                moved[i] = cut
                child = int(links[node, side])
                waiting.append((child, low, moved) if side == BELOW else (child, moved, high))


def boxes(cfg: TreeConfig, nodes: Array) -> Boxes:
    links = nodes.view(np.int64)
    found = [
        (int(links[node, ROW]), low, high)
        for node, low, high in _walk(nodes, cfg.dx)
        if links[node, SPLITS] == 0 and links[node, ROW] > 0
    ]
    return sorted(found, key=lambda bin_: bin_[0])


def split_boxes(cfg: TreeConfig, nodes: Array) -> Boxes:
    links = nodes.view(np.int64)
    return [
        (int(links[node, ROW]), low, high)
        for node, low, high in _walk(nodes, cfg.dx)
        if links[node, SPLITS] > 0 and links[node, PRECEDING] == 0
    ]


def fits(cfg: TreeConfig, nodes: Array, heads: Array, busy: list[int]) -> bool:
    """Children come after their parents, each has one, and bins know their nodes."""
    if nodes.shape[1] != NODE_WIDTH or not 2 <= nodes[0, USED] <= len(nodes):
        return False
    used, links = int(nodes[0, USED]), nodes.view(np.int64)
    numbers, children = np.arange(1, used), links[1:used, [BELOW, ABOVE]]
    named = children[children != 0]
    later = (children == 0) | ((children > numbers[:, None]) & (children < used))
    cuts = links[1:used, SPLITS]
    if (
        nodes[0, USED] != used
        or links[used:].any()
        or not later.all()
        or not ((cuts >= 0) & (cuts <= cfg.dx)).all()
    ):
        return False
    if sorted(named.tolist()) != list(range(2, used)):  # so that the walk below ends
        return False
    rows = links[1:used, ROW]
    if not ((rows >= 0) & (rows < len(heads))).all():
        return False
    if not all(_node_fits(cfg, nodes, *place) for place in _walk(nodes, cfg.dx)):
        return False
    return _rows_fit(cfg, links, heads, busy)


def _node_fits(cfg: TreeConfig, nodes: Array, number: int, low: Array, high: Array) -> bool:
    """A cut is in the middle, and the cuts of one split follow each other."""
    node, links = nodes[number], nodes.view(np.int64)[number]
    splits, preceding, following = links[SPLITS], links[PRECEDING], links[FOLLOWING]
    axis = max(int(splits) - 1, 0)
    if cfg.dx > 0 and node[CUT] != 0.5 * (low[axis] + high[axis]):
        return False
    if splits == 0:
        return bool(preceding == 0 and following == 0 and (links[[BELOW, ABOVE]] == 0).all())
    if preceding != splits - 1 or following != cfg.dx - splits:
        return False
    below = nodes.view(np.int64)[links[[BELOW, ABOVE]]]
    made = links[[BELOW, ABOVE]] > 0
    if following > 0:
        return bool(
            (below[made, SPLITS] == splits + 1).all() and (below[made, ROW] == links[ROW]).all()
        )
    return bool((below[made, PRECEDING] == 0).all())


def _rows_fit(cfg: TreeConfig, links: NDArray[np.int64], heads: Array, busy: list[int]) -> bool:
    """Each row is the bin of one node, one level below the bin that was split."""
    owners, waiting = dict[int, int](), [(ROOT, 0)]
    while waiting:
        number, level = waiting.pop()
        node = links[number]
        row, last = int(node[ROW]), node[SPLITS] > 0 and node[FOLLOWING] == 0
        if node[PRECEDING] == 0 and (row > 0 or number != ROOT or node[SPLITS] > 0):
            if row in owners or heads[row, NODE] != number or heads[row, LEVEL] != level:
                return False
            owners[row] = number
        waiting += [(int(child), level + int(last)) for child in node[[BELOW, ABOVE]] if child > 0]
    deepest = cfg.split_after.shape[0]
    return sorted(owners) == busy and all(heads[row, LEVEL] <= deepest for row in owners)


register(TreeConfig, Partition.of(globals()))
