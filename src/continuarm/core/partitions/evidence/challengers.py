"""Challengers of a bin: how they begin, what they are told, and how halves take its place."""

import math
from typing import Any

from continuarm.core.compiling import Array, compiled, fill
from continuarm.core.learners import protocol as learner
from continuarm.core.partitions.evidence.cuts import choose_cuts
from continuarm.core.partitions.evidence.nodes import (
    ABOVE,
    BELOW,
    CUT,
    DIMENSION,
    DUE,
    FIELDS,
    HALVES,
    HIGH,
    KINDS,
    LEAD,
    LOW,
    MADE_IN_PART,
    NOTED,
    PARTS,
    RENEWER,
    RENEWER_LEAD,
    ROW,
    ROW_ABOVE,
    ROW_BELOW,
    RUNNING,
    STATE,
    USED,
    EvidenceTreeConfig,
    is_cut,
    part,
    scaled,
)
from continuarm.core.request import Learned
from continuarm.core.state import HEAD, SERIAL, Space, State, begin, give_back, take

__all__ = ["give_back_all", "go_on_making", "make_room", "split", "start_again", "tell_halves"]

BEHIND, SELDOM = 8.0, 4  # halves so far behind are told every fourth payoff
PORTION = 2**20  # numbers of challengers that are made while one payoff is learned


@compiled
def make_room(cfg: EvidenceTreeConfig, state: State, node: int, child: int) -> None:
    """Take rows for the challengers of a bin, and nodes for its children."""
    nodes = state.nodes
    nodes[node, RENEWER] = take(state)
    for kind in range(KINDS):
        half = part(cfg, HALVES + kind * PARTS)
        for axis in range(2 * cfg.dx):  # ROW_BELOW, then ROW_ABOVE
            nodes[node, half + axis] = take(state)
    nodes[node, BELOW], nodes[node, ABOVE] = child, child + 1
    nodes[child, DIMENSION] = nodes[child + 1, DIMENSION] = -1.0
    nodes[0, USED] = child + 2


@compiled
def _little(cfg: EvidenceTreeConfig, lcfg: Any, known: Array) -> float:
    """ρ of challengers that keep little: less of a long past."""
    return cfg.little * math.sqrt(min(cfg.long / max(learner.held(lcfg, known), 1.0), 1.0))


@compiled
def start_again(
    cfg: EvidenceTreeConfig, lcfg: Any, node: Array, rows: Array, space: Space
) -> None:
    """Decide where the halves are cut, and give the whole what the bin knows now."""
    known = rows[int(node[ROW]), HEAD:]
    low, high = space.outer_low, space.outer_high  # of a challenger in the bin's u
    fill(low, -1.0)
    fill(high, 1.0)
    keep = _little(cfg, lcfg, known)
    learner.inherit(lcfg, known, rows[int(node[RENEWER]), HEAD:], low, high, keep)
    node[RENEWER_LEAD] = 0.0
    if node[NOTED] == cfg.noted:
        choose_cuts(cfg, node)
        node[NOTED] = 0.0  # the next cut will be among later contexts
    node[STATE], node[DUE] = MADE_IN_PART, 0.0


@compiled
def go_on_making(
    cfg: EvidenceTreeConfig, lcfg: Any, node: Array, rows: Array, space: Space
) -> None:
    """Give more halves what the bin knows now, and when all have it let them run."""
    dx = cfg.dx
    known = rows[int(node[ROW]), HEAD:]
    low, high = space.outer_low, space.outer_high
    fill(low, -1.0)
    fill(high, 1.0)
    first = int(node[DUE])
    last = min(first + max(PORTION // (2 * rows.shape[1]), 1), KINDS * dx)
    for pair in range(first, last):
        axis, kind = pair // KINDS, pair % KINDS
        ends = node[part(cfg, LOW) + axis], node[part(cfg, HIGH) + axis]
        cut = scaled(node[part(cfg, CUT) + axis], ends[0], ends[1])
        if not is_cut(cfg, node, axis):
            cut = 0.0  # its halves are never told
        keep = cfg.keep if kind == 0 else _little(cfg, lcfg, known)
        half = part(cfg, HALVES + kind * PARTS) + axis
        high[axis] = cut
        below = rows[int(node[half + ROW_BELOW * dx]), HEAD:]
        learner.inherit(lcfg, known, below, low, high, keep)
        low[axis], high[axis] = cut, 1.0
        above = rows[int(node[half + ROW_ABOVE * dx]), HEAD:]
        learner.inherit(lcfg, known, above, low, high, keep)
        low[axis] = -1.0
        node[half + LEAD * dx] = 0.0
    node[DUE] = last
    if last < KINDS * dx:
        return
    node[STATE] = RUNNING
    kept = learner.remembered(lcfg, known)
    node[DUE] = learner.progress(lcfg, known) + (cfg.again - 1.0) * kept


@compiled
def tell_halves(
    cfg: EvidenceTreeConfig,
    lcfg: Any,
    node: Array,
    rows: Array,
    learned: Learned,
    space: Space,
    ahead: float,
    caution: float,
) -> tuple[int, float]:
    """Tell the halves that hold the context; where in the node the winners stand, their lead."""
    dx, winner, best = cfg.dx, -1, 0.0
    _, seen, foreseen = learned
    x, u = space.x, seen.u
    turn = learner.progress(lcfg, rows[int(node[ROW]), HEAD:])
    for axis in range(dx):
        if not is_cut(cfg, node, axis):
            continue
        kept, cut = u[axis], node[part(cfg, CUT) + axis]
        if x[axis] >= cut:
            side, low, high = ROW_ABOVE, cut, node[part(cfg, HIGH) + axis]
        else:
            side, low, high = ROW_BELOW, node[part(cfg, LOW) + axis], cut
        u[axis] = scaled(x[axis], low, high)
        hoped = foreseen.hoped if axis != foreseen.hoped_of else 0.0
        for kind in range(KINDS):
            half = part(cfg, HALVES + kind * PARTS) + axis
            if node[half + LEAD * dx] < -BEHIND and (turn + axis) % SELDOM != 0:
                continue
            row = int(node[half + side * dx])
            score = learner.challenge(lcfg, rows[row, HEAD:], seen, foreseen, space.work)
            lead = node[half + LEAD * dx] + min(max(score, -cfg.largest), cfg.largest)
            lead -= foreseen.gained
            node[half + LEAD * dx] = lead
            needed = cfg.split_lead if kind == 0 else caution * cfg.fresh_lead
            if lead >= max(best, ahead + needed, hoped) and not (kind == 1 and foreseen.surging):
                winner, best = half, lead
        u[axis] = kept
    return winner, best


@compiled
def give_back_all(cfg: EvidenceTreeConfig, state: State, node: int) -> None:
    """Give back the row of a bin, and those of its challengers that are not bins."""
    nodes = state.nodes
    give_back(state, int(nodes[node, ROW]))
    if nodes[node, RENEWER] == 0.0:
        return
    give_back(state, int(nodes[node, RENEWER]))
    for kind in range(KINDS):
        half = part(cfg, HALVES + kind * PARTS)
        for i in range(2 * cfg.dx):
            if nodes[node, half + i] > 0.0:
                give_back(state, int(nodes[node, half + i]))


@compiled
def split(cfg: EvidenceTreeConfig, state: State, node: int, winner: int) -> None:
    """Let the halves that won become bins, and give back all other rows."""
    dx, nodes = cfg.dx, state.nodes
    low, high, cuts = part(cfg, LOW), part(cfg, HIGH), part(cfg, CUT)
    axis = (winner - FIELDS) % dx
    parent = int(nodes[node, ROW])
    for side in range(2):
        child = int(nodes[node, ABOVE if side == ROW_ABOVE else BELOW])
        for i in range(2 * dx):
            nodes[child, low + i] = nodes[node, low + i]
        nodes[child, (low if side == ROW_ABOVE else high) + axis] = nodes[node, cuts + axis]
        row = int(nodes[node, winner + side * dx])
        nodes[node, winner + side * dx] = 0.0
        nodes[child, ROW] = row
        begin(state, row, child, parent)
    nodes[node, DIMENSION] = axis
    give_back_all(cfg, state, node)
    nodes[node, ROW] = state.rows[parent, SERIAL]
