"""EvidenceTree: a bin splits in one dimension when its halves foresee payoffs better than it.

Beside each bin stand challengers: rows that no context reaches and that learn what the bin learns.
Per context dimension a pair of halves that keep all that the bin knows and a pair that keep little
of it, and one that covers the whole bin and keeps little. Each gathers a lead, the sum of its
scores against the bin (eq. 7 of docs/recommended.md). The first whose lead is large enough takes
the bin's place: a pair of halves splits it, the last one renews it. From time to time all start
again from what the bin knows by then.
"""

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

__all__ = ["EvidenceTree"]

ROOT = 1
FREE, FREE_COUNT = 2, 3  # further numbers of the header: rows given back, chained by their NODE
# a node: the dimension it cuts (-1: it is a bin), its children, its row, how many contexts are
# noted, what its challengers do, when they start again, the one of the whole bin and its lead
DIMENSION, BELOW, ABOVE, ROW, NOTED, STATE, DUE, RENEWER, RENEWER_LEAD, FIELDS = range(10)
WAITING, WANTED, RUNNING = 0.0, -1.0, 1.0  # STATE: no challengers yet, to be made, at work
# then dx numbers each: the box, the cuts, and for both kinds of halves rows and leads
LOW, HIGH, CUT, HALVES = 0, 1, 2, 3
ROW_BELOW, ROW_ABOVE, LEAD, PARTS = 0, 1, 2, 3  # of one kind
KINDS = 2  # halves that keep all, halves that keep little
NOTES = HALVES + KINDS * PARTS  # then the contexts noted, sorted per dimension


class EvidenceTree(NamedTuple):
    """Configuration: the leads at which a challenger wins, and how challengers are made."""

    dx: int
    split_lead: float  # of halves that keep all
    fresh_lead: float  # of halves that keep little
    renew_lead: float  # of the whole bin that keeps little
    first: int  # payoffs of a bin before it has challengers
    again: float = 3.0  # they start again when what the bin remembers would have grown so much
    keep: float = 1.0  # the weight of what the bin knows in halves that keep all
    little: float = 0.1  # and in the others
    largest: float = 3.0  # one payoff moves a lead no further
    noted: int = 32  # contexts in whose middle a bin is cut
    median: bool = True  # or in the middle of the box
    drift: float = 0.0  # where payoffs drift: a bin splits only if it remembers so many


@compiled
def _part(cfg: EvidenceTree, which: int) -> int:
    return FIELDS + which * cfg.dx


@compiled
def _find(cfg: EvidenceTree, nodes: Array, x: Array) -> int:
    node, cuts = ROOT, _part(cfg, CUT)
    while nodes[node, DIMENSION] >= 0.0:
        axis = int(nodes[node, DIMENSION])
        node = int(nodes[node, ABOVE if x[axis] >= nodes[node, cuts + axis] else BELOW])
    return node


@compiled
def _scaled(x: float, low: float, high: float) -> float:
    return (2.0 * x - low - high) / (high - low)


@compiled
def locate(cfg: EvidenceTree, nodes: Array, x: Array, u: Array, scaled: bool) -> int:
    node = _find(cfg, nodes, x)
    if scaled:
        low, high = _part(cfg, LOW), _part(cfg, HIGH)
        for axis in range(cfg.dx):
            u[axis] = _scaled(x[axis], nodes[node, low + axis], nodes[node, high + axis])
    row = int(nodes[node, ROW])
    return -row if nodes[node, STATE] == WANTED else row


@compiled
def _take_row(nodes: Array, rows: Array) -> int:
    row = int(nodes[0, FREE])
    if row > 0:
        nodes[0, FREE] = rows[row, NODE]
        nodes[0, FREE_COUNT] -= 1.0
        return row
    row = int(nodes[0, ROWS_USED])
    nodes[0, ROWS_USED] = row + 1
    return row


@compiled
def _give_row(nodes: Array, rows: Array, row: int) -> None:
    rows[row, NODE] = nodes[0, FREE]
    nodes[0, FREE] = row
    nodes[0, FREE_COUNT] += 1.0


@compiled
def _rows_at_once(cfg: EvidenceTree) -> int:
    return 1 + 2 * KINDS * cfg.dx


@compiled
def make(cfg: EvidenceTree, lcfg: Any, nodes: Array, rows: Array, x: Array, u: Array) -> int:
    """Make the root; or the challengers of a bin, and room for its children."""
    node = _find(cfg, nodes, x)
    if nodes[node, ROW] == 0.0:
        if nodes[0, ROWS_USED] == rows.shape[0]:
            return FULL
        row = _take_row(nodes, rows)
        copy_into(rows[row], rows[0])
        rows[row, NODE] = ROOT
        nodes[ROOT, ROW] = row
        nodes[ROOT, STATE] = WAITING
        return row
    if nodes[node, RENEWER] == 0.0:
        room = rows.shape[0] - nodes[0, ROWS_USED] + nodes[0, FREE_COUNT]
        child = int(nodes[0, NODES_USED])
        if room < _rows_at_once(cfg) or child + 2 > nodes.shape[0]:
            return FULL
        _make_room(cfg, nodes, rows, node, child)
    _start_again(cfg, lcfg, nodes[node], rows, u)
    return int(nodes[node, ROW])


@compiled
def _make_room(cfg: EvidenceTree, nodes: Array, rows: Array, node: int, child: int) -> None:
    nodes[node, RENEWER] = _take_row(nodes, rows)
    for kind in range(KINDS):
        half = _part(cfg, HALVES + kind * PARTS)
        for axis in range(2 * cfg.dx):  # ROW_BELOW, then ROW_ABOVE
            nodes[node, half + axis] = _take_row(nodes, rows)
    nodes[node, BELOW], nodes[node, ABOVE] = child, child + 1
    nodes[child, DIMENSION] = nodes[child + 1, DIMENSION] = -1.0
    nodes[0, NODES_USED] = child + 2


@compiled
def _start_again(cfg: EvidenceTree, lcfg: Any, node: Array, rows: Array, u: Array) -> None:
    """Give the challengers what the bin knows now."""
    dx = cfg.dx
    known = rows[int(node[ROW]), HEAD:]
    low, high = u[:dx], u[dx : 2 * dx]  # of a challenger in the bin's u
    fill(low, -1.0)
    fill(high, 1.0)
    learner.inherit(lcfg, known, rows[int(node[RENEWER]), HEAD:], low, high, cfg.little)
    node[RENEWER_LEAD] = 0.0
    if node[NOTED] == cfg.noted:
        _cut(cfg, node)
        node[NOTED] = 0.0  # the next cut will be among later contexts
    for axis in range(dx):
        ends = node[_part(cfg, LOW) + axis], node[_part(cfg, HIGH) + axis]
        cut = _scaled(node[_part(cfg, CUT) + axis], ends[0], ends[1])
        for kind in range(KINDS):
            keep = cfg.keep if kind == 0 else cfg.little
            half = _part(cfg, HALVES + kind * PARTS) + axis
            high[axis] = cut
            below = rows[int(node[half + ROW_BELOW * dx]), HEAD:]
            learner.inherit(lcfg, known, below, low, high, keep)
            low[axis], high[axis] = cut, 1.0
            above = rows[int(node[half + ROW_ABOVE * dx]), HEAD:]
            learner.inherit(lcfg, known, above, low, high, keep)
            low[axis] = -1.0
            node[half + LEAD * dx] = 0.0
    node[STATE] = RUNNING
    kept = learner.remembered(lcfg, known)
    node[DUE] = learner.progress(lcfg, known) + (cfg.again - 1.0) * kept


@compiled
def observe(
    cfg: EvidenceTree,
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
    """Tell the challengers; the one with the largest lead beyond its limit wins."""
    node = int(rows[row, NODE])
    if nodes[node, NOTED] < cfg.noted:
        _note(cfg, nodes[node], x)
    kept = learner.remembered(lcfg, rows[row, HEAD:])
    if nodes[node, STATE] != RUNNING:
        if nodes[node, NOTED] == cfg.noted and kept >= cfg.first:
            nodes[node, STATE] = WANTED
        return
    renewer = int(nodes[node, RENEWER])
    score = learner.challenge(lcfg, rows[renewer, HEAD:], u, work, y, z)
    nodes[node, RENEWER_LEAD] += min(max(score, -cfg.largest), cfg.largest)
    # all challengers follow a drift faster than the bin: halves must do better than the whole
    ahead = max(nodes[node, RENEWER_LEAD], 0.0) if cfg.drift > 0.0 else 0.0
    winner, lead = _tell_halves(cfg, lcfg, nodes[node], rows, x, u, work, y, z, ahead)
    if nodes[node, RENEWER_LEAD] >= max(lead, cfg.renew_lead):
        copy_into(rows[renewer, :HEAD], rows[row, :HEAD])
        nodes[node, ROW], nodes[node, RENEWER] = renewer, row
        nodes[node, STATE] = WANTED
    elif winner >= 0 and (cfg.drift == 0.0 or kept >= cfg.drift):
        _split(cfg, nodes, rows, node, winner)
    elif learner.progress(lcfg, rows[row, HEAD:]) >= nodes[node, DUE]:
        nodes[node, STATE] = WANTED


@compiled
def _tell_halves(
    cfg: EvidenceTree,
    lcfg: Any,
    node: Array,
    rows: Array,
    x: Array,
    u: Array,
    work: Array,
    y: Array,
    z: float,
    ahead: float,
) -> tuple[int, float]:
    """Tell the halves that hold `x`; where in the node the winners stand (or -1), their lead."""
    dx, winner, best = cfg.dx, -1, 0.0
    for axis in range(dx):
        kept, cut = u[axis], node[_part(cfg, CUT) + axis]
        if x[axis] >= cut:
            side, low, high = ROW_ABOVE, cut, node[_part(cfg, HIGH) + axis]
        else:
            side, low, high = ROW_BELOW, node[_part(cfg, LOW) + axis], cut
        u[axis] = _scaled(x[axis], low, high)
        for kind in range(KINDS):
            half = _part(cfg, HALVES + kind * PARTS) + axis
            row = int(node[half + side * dx])
            score = learner.challenge(lcfg, rows[row, HEAD:], u, work, y, z)
            lead = node[half + LEAD * dx] + min(max(score, -cfg.largest), cfg.largest)
            node[half + LEAD * dx] = lead
            if lead >= max(best, ahead + (cfg.split_lead if kind == 0 else cfg.fresh_lead)):
                winner, best = half, lead
        u[axis] = kept
    return winner, best


@compiled
def _note(cfg: EvidenceTree, node: Array, x: Array) -> None:
    """Note a context of the bin."""
    count = int(node[NOTED])
    node[NOTED] = count + 1
    for axis in range(cfg.dx):
        first = _part(cfg, NOTES) + axis * cfg.noted
        k = count
        while k > 0 and node[first + k - 1] > x[axis]:
            node[first + k] = node[first + k - 1]
            k -= 1
        node[first + k] = x[axis]


@compiled
def _cut(cfg: EvidenceTree, node: Array) -> None:
    """Decide where the bin would be cut."""
    for axis in range(cfg.dx):
        low, high = node[_part(cfg, LOW) + axis], node[_part(cfg, HIGH) + axis]
        cut = 0.5 * (low + high)
        if cfg.median:
            first = _part(cfg, NOTES) + axis * cfg.noted
            cut = _median(node[first : first + cfg.noted], low, high)
        node[_part(cfg, CUT) + axis] = cut


@compiled
def _median(noted: Array, low: float, high: float) -> float:
    """The middle of the gap nearest to the median; of the box, where all contexts are equal."""
    count = noted.shape[0]
    for k in range(2 * count):  # gaps from the middle outwards
        gap = count // 2 - 1 + ((k + 1) // 2 if k % 2 == 1 else -(k // 2))
        if 0 <= gap < count - 1:
            cut = 0.5 * (noted[gap] + noted[gap + 1])
            if noted[gap] < cut and low < cut < high:
                return cut  # type: ignore[no-any-return]
    return 0.5 * (low + high)


@compiled
def _split(cfg: EvidenceTree, nodes: Array, rows: Array, node: int, winner: int) -> None:
    """Let the halves that won become bins, and give back all other rows."""
    dx = cfg.dx
    low, high, cuts = _part(cfg, LOW), _part(cfg, HIGH), _part(cfg, CUT)
    axis = (winner - FIELDS) % dx
    level, last = rows[int(nodes[node, ROW]), LEVEL], rows[int(nodes[node, ROW]), LAST]
    for side in range(2):
        child = int(nodes[node, ABOVE if side == ROW_ABOVE else BELOW])
        for i in range(2 * dx):
            nodes[child, low + i] = nodes[node, low + i]
        nodes[child, (low if side == ROW_ABOVE else high) + axis] = nodes[node, cuts + axis]
        row = int(nodes[node, winner + side * dx])
        nodes[node, winner + side * dx] = 0.0
        nodes[child, ROW] = row
        fill(rows[row, :HEAD], 0.0)
        rows[row, NODE], rows[row, LEVEL], rows[row, LAST] = child, level + 1.0, last
    nodes[node, DIMENSION] = axis
    _give_row(nodes, rows, int(nodes[node, ROW]))
    _give_row(nodes, rows, int(nodes[node, RENEWER]))
    for kind in range(KINDS):
        half = _part(cfg, HALVES + kind * PARTS)
        for i in range(2 * dx):
            if nodes[node, half + i] > 0.0:
                _give_row(nodes, rows, int(nodes[node, half + i]))


def empty(cfg: EvidenceTree) -> Array:
    nodes = np.zeros((8, FIELDS + (NOTES + cfg.noted) * cfg.dx))
    nodes[0, NODES_USED] = 2.0
    nodes[0, ROWS_USED] = 1.0
    nodes[ROOT, DIMENSION] = -1.0
    nodes[ROOT, STATE] = WANTED
    nodes[ROOT, _part(cfg, HIGH) : _part(cfg, CUT)] = 1.0
    return nodes


def grown(cfg: EvidenceTree, nodes: Array) -> Array:
    return np.concatenate([nodes, np.zeros_like(nodes)])


def boxes(cfg: EvidenceTree, nodes: Array) -> list[tuple[int, Array, Array]]:
    low, high, cut = (_part(cfg, part) for part in (LOW, HIGH, CUT))
    made = nodes[1 : int(nodes[0, NODES_USED])]
    return [
        (int(node[ROW]), node[low:high].copy(), node[high:cut].copy())
        for node in made
        if node[DIMENSION] < 0.0 and node[ROW] > 0.0
    ]


register(
    EvidenceTree,
    Partition(
        empty=empty,
        locate=locate,
        make=make,
        observe=observe,
        grown=grown,
        boxes=boxes,
        rows_at_once=_rows_at_once,
        by_evidence=True,
    ),
)
