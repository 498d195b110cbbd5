"""EvidenceTree: a bin splits in one dimension when its halves foresee payoffs better than it.

Beside each bin stand challengers: rows that no context reaches and that learn what the bin learns.
Per context dimension a pair of halves that keep all that the bin knows and a pair that keep little
of it, and one that covers the whole bin and keeps little. Each gathers a lead, the sum of its
scores against the bin (eq. 7 of docs/recommended.md). The first whose lead is large enough takes
the bin's place: a pair of halves splits it, the last one renews it. From time to time all start
again from what the bin knows by then.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from continuarm import checks
from continuarm.core.compiling import Array, compiled, fill
from continuarm.core.learners import protocol as learner
from continuarm.core.learners.protocol import size as fitted
from continuarm.core.learners.protocol import width
from continuarm.core.partitions.protocol import Boxes, Partition, register
from continuarm.core.request import Learned
from continuarm.core.state import (
    HEAD,
    NODE,
    ROOM,
    Space,
    State,
    begin,
    give_back,
    in_use,
    replace,
    room,
    take,
)

__all__ = ["EvidenceTree", "EvidenceTreeConfig"]

ROOT = 1
NARROW = 1e-9  # of a side of the unit cube, or of a bin
USED = 0  # of the header: how many nodes are in use
# a node: the dimension it cuts (-1: it is a bin), its children, its row, how many contexts are
# noted, what its challengers do, when they start again, the one of the whole bin and its lead
DIMENSION, BELOW, ABOVE, ROW, NOTED, STATE, DUE, RENEWER, RENEWER_LEAD, FIELDS = range(10)
# STATE: no challengers yet, to be made, at work, being made (DUE counts the pairs of halves made)
WAITING, WANTED, RUNNING, MADE_IN_PART = 0.0, -1.0, 1.0, 2.0
PORTION = 2**20  # numbers of challengers that are made while one payoff is learned
# then dx numbers each: the box, the cuts, and for both kinds of halves rows and leads
LOW, HIGH, CUT, HALVES = 0, 1, 2, 3
ROW_BELOW, ROW_ABOVE, LEAD, PARTS = 0, 1, 2, 3  # of one kind
KINDS = 2  # halves that keep all, halves that keep little
NOTES = HALVES + KINDS * PARTS  # then the contexts noted, sorted per dimension


REMEMBERED = 40  # payoffs per coefficient that a bin must have in mind to split where it drifts
CAUTION = 5.0  # and how many times more evidence, because a drift looks like evidence


@dataclass(frozen=True, kw_only=True)
class EvidenceTree:
    """A bin splits where its halves foresee payoffs better than it does (eq. 7 to 9).

    Parameters
    ----------
    split_lead, fresh_lead, renew_lead : the leads at which a challenger wins: halves that keep
        all, halves that keep little, the whole that keeps little; default eq. 9.
    first : payoffs of a bin before it has challengers; default twice the learner's coefficients.
    drifts : whether payoffs drift, which looks like evidence: more of it is needed then.
    again : challengers start again when what the bin remembers would have grown so much.
    keep, little : the weight of what the bin knows in halves that keep all, and in the others.
    largest : one payoff moves a lead no further.
    noted : contexts in whose middle a bin is cut.
    median : cut there, or in the middle of the box.
    """

    split_lead: float | None = None
    fresh_lead: float | None = None
    renew_lead: float | None = None
    first: int | None = None
    drifts: bool = False
    again: float = 3.0
    keep: float = 1.0
    little: float = 0.1
    largest: float = 3.0
    noted: int = 32
    median: bool = True

    def __post_init__(self) -> None:
        checks.normalise(
            self,
            split_lead=checks.optional(checks.number, "split_lead", self.split_lead),
            fresh_lead=checks.optional(checks.number, "fresh_lead", self.fresh_lead),
            renew_lead=checks.optional(checks.number, "renew_lead", self.renew_lead),
            first=checks.optional(checks.whole, "first", self.first, 1),
            drifts=checks.flag("drifts", self.drifts),
            again=checks.number("again", self.again, least=1.0),
            keep=checks.number("keep", self.keep, most=1.0),
            little=checks.number("little", self.little, most=1.0),
            largest=checks.number("largest", self.largest, most=1e6),
            noted=checks.whole("noted", self.noted, 2, 2**16),
            median=checks.flag("median", self.median),
        )

    def configured(self, dx: int, learner: Any) -> "EvidenceTreeConfig":
        """The numbers of these options; the more a challenger can fit, the later it wins."""
        p = fitted(learner)
        choices = math.log(max(dx, 1))
        split = max(2.0, 0.5 * math.log(p)) + choices  # eq. 9
        renew = max(4.0, 1.75 * math.log(p)) + choices
        caution = CAUTION if self.drifts else 1.0
        return EvidenceTreeConfig(
            dx,
            split_lead=caution * split if self.split_lead is None else self.split_lead,
            fresh_lead=caution * renew if self.fresh_lead is None else self.fresh_lead,
            renew_lead=renew if self.renew_lead is None else self.renew_lead,
            first=2 * p if self.first is None else self.first,
            again=self.again,
            keep=self.keep,
            little=self.little,
            largest=self.largest,
            noted=self.noted,
            median=self.median,
            drift=float(REMEMBERED * p) if self.drifts else 0.0,
            most=ROOM // (HEAD + width(learner)),
        )


class EvidenceTreeConfig(NamedTuple):
    """The same as numbers."""

    dx: int
    split_lead: float
    fresh_lead: float
    renew_lead: float
    first: int
    again: float
    keep: float
    little: float
    largest: float
    noted: int
    median: bool
    drift: float  # where payoffs drift: a bin splits only if it remembers so many
    most: int  # rows: bins get no challengers beyond


@compiled
def _part(cfg: EvidenceTreeConfig, which: int) -> int:
    return FIELDS + which * cfg.dx


@compiled
def _find(cfg: EvidenceTreeConfig, nodes: Array, x: Array) -> int:
    node, cuts = ROOT, _part(cfg, CUT)
    while nodes[node, DIMENSION] >= 0.0:
        axis = int(nodes[node, DIMENSION])
        node = int(nodes[node, ABOVE if x[axis] >= nodes[node, cuts + axis] else BELOW])
    return node


@compiled
def _scaled(x: float, low: float, high: float) -> float:
    return (2.0 * x - low - high) / (high - low)


@compiled
def locate(
    cfg: EvidenceTreeConfig, nodes: Array, x: Array, space: Space, boxed: bool
) -> tuple[int, bool]:
    node = _find(cfg, nodes, x)
    if boxed:
        low, high = _part(cfg, LOW), _part(cfg, HIGH)
        for axis in range(cfg.dx):
            space.low[axis] = nodes[node, low + axis]
            space.high[axis] = nodes[node, high + axis]
    row = int(nodes[node, ROW])
    return row, row != 0  # so the compiler sees that a bin that is missing has no parent


@compiled
def add(cfg: EvidenceTreeConfig, nodes: Array, x: Array, row: int, space: Space) -> int:
    """Only the root is ever missing."""
    nodes[ROOT, ROW] = row
    return ROOT


@compiled
def rows_at_once(cfg: EvidenceTreeConfig) -> int:
    return 1 + 2 * KINDS * cfg.dx


@compiled
def prepare(cfg: EvidenceTreeConfig, lcfg: Any, state: State, row: int, space: Space) -> bool:
    """Make the challengers that a bin wants, or some of them, and room for its children."""
    nodes, node = state.nodes, int(state.rows[row, NODE])
    if nodes[node, STATE] == WANTED:
        if nodes[node, RENEWER] == 0.0:
            if in_use(state) + rows_at_once(cfg) > cfg.most:
                return True  # until others give some back
            child = int(nodes[0, USED])
            if room(state) < rows_at_once(cfg) or child + 2 > nodes.shape[0]:
                return False
            _make_room(cfg, state, node, child)
        _start_again(cfg, lcfg, nodes[node], state.rows, space)
    if nodes[node, STATE] == MADE_IN_PART:
        _go_on_making(cfg, lcfg, nodes[node], state.rows, space)
    return True


@compiled
def _make_room(cfg: EvidenceTreeConfig, state: State, node: int, child: int) -> None:
    nodes = state.nodes
    nodes[node, RENEWER] = take(state)
    for kind in range(KINDS):
        half = _part(cfg, HALVES + kind * PARTS)
        for axis in range(2 * cfg.dx):  # ROW_BELOW, then ROW_ABOVE
            nodes[node, half + axis] = take(state)
    nodes[node, BELOW], nodes[node, ABOVE] = child, child + 1
    nodes[child, DIMENSION] = nodes[child + 1, DIMENSION] = -1.0
    nodes[0, USED] = child + 2


@compiled
def _start_again(
    cfg: EvidenceTreeConfig, lcfg: Any, node: Array, rows: Array, space: Space
) -> None:
    """Decide where the halves are cut, and give the whole what the bin knows now."""
    known = rows[int(node[ROW]), HEAD:]
    low, high = space.outer_low, space.outer_high  # of a challenger in the bin's u
    fill(low, -1.0)
    fill(high, 1.0)
    learner.inherit(lcfg, known, rows[int(node[RENEWER]), HEAD:], low, high, cfg.little)
    node[RENEWER_LEAD] = 0.0
    if node[NOTED] == cfg.noted:
        _cut(cfg, node)
        node[NOTED] = 0.0  # the next cut will be among later contexts
    node[STATE], node[DUE] = MADE_IN_PART, 0.0


@compiled
def _go_on_making(
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
        ends = node[_part(cfg, LOW) + axis], node[_part(cfg, HIGH) + axis]
        cut = _scaled(node[_part(cfg, CUT) + axis], ends[0], ends[1])
        if not _is_cut(cfg, node, axis):
            cut = 0.0  # its halves are never told
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
    node[DUE] = last
    if last < KINDS * dx:
        return
    node[STATE] = RUNNING
    kept = learner.remembered(lcfg, known)
    node[DUE] = learner.progress(lcfg, known) + (cfg.again - 1.0) * kept


@compiled
def _is_cut(cfg: EvidenceTreeConfig, node: Array, axis: int) -> bool:
    """Whether a side has halves: not if they would lose their digits, or one have no contexts."""
    low, high = node[_part(cfg, LOW) + axis], node[_part(cfg, HIGH) + axis]
    return bool(high - low >= NARROW and node[_part(cfg, CUT) + axis] > low)


@compiled
def observe(
    cfg: EvidenceTreeConfig, lcfg: Any, state: State, learned: Learned, space: Space
) -> None:
    """Tell the challengers; the one with the largest lead beyond its limit wins."""
    row, seen, foreseen = learned
    nodes, rows = state.nodes, state.rows
    node = int(rows[row, NODE])
    if nodes[node, NOTED] < cfg.noted:
        _note(cfg, nodes[node], space.x)
    kept = learner.remembered(lcfg, rows[row, HEAD:])
    if nodes[node, STATE] != RUNNING:
        enough = nodes[node, NOTED] == cfg.noted and kept >= cfg.first
        if enough and nodes[node, STATE] == WAITING:
            nodes[node, STATE] = WANTED
        return
    renewer = int(nodes[node, RENEWER])
    score = learner.challenge(lcfg, rows[renewer, HEAD:], seen, foreseen, space.work)
    nodes[node, RENEWER_LEAD] += min(max(score, -cfg.largest), cfg.largest)
    # all challengers follow a drift faster than the bin: halves must do better than the whole
    ahead = max(nodes[node, RENEWER_LEAD], 0.0) if cfg.drift > 0.0 else 0.0
    caution = CAUTION if foreseen.follows else 1.0
    winner, lead = _tell_halves(cfg, lcfg, nodes[node], rows, learned, space, ahead, caution)
    if not foreseen.surging and nodes[node, RENEWER_LEAD] >= max(lead, caution * cfg.renew_lead):
        replace(state, row, renewer)
        nodes[node, ROW], nodes[node, RENEWER] = renewer, row
        nodes[node, STATE] = WANTED
    elif winner >= 0 and (cfg.drift == 0.0 or kept >= cfg.drift):
        _split(cfg, state, node, winner)
    elif foreseen.began or learner.progress(lcfg, rows[row, HEAD:]) >= nodes[node, DUE]:
        nodes[node, STATE] = WANTED


@compiled
def _tell_halves(
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
    for axis in range(dx):
        if not _is_cut(cfg, node, axis):
            continue
        kept, cut = u[axis], node[_part(cfg, CUT) + axis]
        if x[axis] >= cut:
            side, low, high = ROW_ABOVE, cut, node[_part(cfg, HIGH) + axis]
        else:
            side, low, high = ROW_BELOW, node[_part(cfg, LOW) + axis], cut
        u[axis] = _scaled(x[axis], low, high)
        for kind in range(KINDS):
            half = _part(cfg, HALVES + kind * PARTS) + axis
            row = int(node[half + side * dx])
            score = learner.challenge(lcfg, rows[row, HEAD:], seen, foreseen, space.work)
            lead = node[half + LEAD * dx] + min(max(score, -cfg.largest), cfg.largest)
            node[half + LEAD * dx] = lead
            needed = cfg.split_lead if kind == 0 else caution * cfg.fresh_lead
            if lead >= max(best, ahead + needed) and not (kind == 1 and foreseen.surging):
                winner, best = half, lead
        u[axis] = kept
    return winner, best


@compiled
def _note(cfg: EvidenceTreeConfig, node: Array, x: Array) -> None:
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
def _cut(cfg: EvidenceTreeConfig, node: Array) -> None:
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
    """The middle of the gap nearest to the median; the low end, where all contexts are equal."""
    count = noted.shape[0]
    for k in range(2 * count):  # gaps from the middle outwards
        gap = count // 2 - 1 + ((k + 1) // 2 if k % 2 == 1 else -(k // 2))
        if 0 <= gap < count - 1:
            cut = 0.5 * (noted[gap] + noted[gap + 1])
            margin = NARROW * (high - low)
            if noted[gap] < cut and low + margin < cut < high - margin:
                return cut  # type: ignore[no-any-return]
    return low


@compiled
def _split(cfg: EvidenceTreeConfig, state: State, node: int, winner: int) -> None:
    """Let the halves that won become bins, and give back all other rows."""
    dx, nodes = cfg.dx, state.nodes
    low, high, cuts = _part(cfg, LOW), _part(cfg, HIGH), _part(cfg, CUT)
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
    give_back(state, parent)
    give_back(state, int(nodes[node, RENEWER]))
    for kind in range(KINDS):
        half = _part(cfg, HALVES + kind * PARTS)
        for i in range(2 * dx):
            if nodes[node, half + i] > 0.0:
                give_back(state, int(nodes[node, half + i]))


def empty(cfg: EvidenceTreeConfig) -> Array:
    nodes = np.zeros((8, FIELDS + (NOTES + cfg.noted) * cfg.dx))
    nodes[0, USED] = 2.0
    nodes[ROOT, DIMENSION] = -1.0
    nodes[ROOT, _part(cfg, HIGH) : _part(cfg, CUT)] = 1.0
    return nodes


def grown(cfg: EvidenceTreeConfig, nodes: Array) -> Array:
    return np.concatenate([nodes, np.zeros_like(nodes)])


def boxes(cfg: EvidenceTreeConfig, nodes: Array) -> Boxes:
    low, high, cut = (_part(cfg, part) for part in (LOW, HIGH, CUT))
    made = nodes[1 : int(nodes[0, USED])]
    return [
        (int(node[ROW]), node[low:high].copy(), node[high:cut].copy())
        for node in made
        if node[DIMENSION] < 0.0 and node[ROW] > 0.0
    ]


def fits(cfg: EvidenceTreeConfig, nodes: Array, heads: Array, busy: list[int]) -> bool:
    """Children come after their parents, and each row is a bin, a challenger, or free."""
    width = FIELDS + (NOTES + cfg.noted) * cfg.dx
    if nodes.shape[1] != width or not 2 <= nodes[0, USED] <= len(nodes):
        return False
    used = int(nodes[0, USED])
    made = nodes[1:used]
    finite = np.isfinite(np.delete(made, DUE, axis=1)).all() and not np.isnan(made[:, DUE]).any()
    whole = made[:, [DIMENSION, BELOW, ABOVE, ROW, NOTED, STATE, RENEWER]]
    if used != nodes[0, USED] or nodes[used:].any() or not finite or (whole % 1 != 0.0).any():
        return False
    states = np.isin(made[:, STATE], (WAITING, WANTED, RUNNING, MADE_IN_PART))
    if not states.all() or (whole[:, [1, 2, 3, 4, 6]] < 0.0).any():
        return False
    return _links_fit(cfg, nodes, used) and _rows_fit(cfg, made, heads, busy)


def unmade(cfg: EvidenceTreeConfig, nodes: Array) -> list[int]:
    """The halves that have not been given what their bin knows."""
    found = []
    for node in nodes[1 : int(nodes[0, USED])]:
        if node[STATE] == MADE_IN_PART and node[DIMENSION] < 0.0:
            for pair in range(int(node[DUE]), KINDS * cfg.dx):
                half = _part(cfg, HALVES + pair % KINDS * PARTS) + pair // KINDS
                found += [int(node[half + side * cfg.dx]) for side in (ROW_BELOW, ROW_ABOVE)]
    return found


def _links_fit(cfg: EvidenceTreeConfig, nodes: Array, used: int) -> bool:
    """Every node but the root is the child of one that has split or has room for its children."""
    made = nodes[1:used]
    split = (made[:, DIMENSION] >= 0) & (made[:, DIMENSION] < cfg.dx)
    if not (split | (made[:, DIMENSION] == -1.0)).all():
        return False
    begun = split | (made[:, RENEWER] > 0.0)
    numbers, below, above = np.arange(1, used)[begun], made[begun, BELOW], made[begun, ABOVE]
    if not ((below > numbers).all() and (above == below + 1).all()):
        return False
    if sorted([*below.tolist(), *above.tolist()]) != list(range(2, used)):
        return False
    whole = empty(cfg)[ROOT, _part(cfg, LOW) : _part(cfg, CUT)]
    if (nodes[ROOT, _part(cfg, LOW) : _part(cfg, CUT)] != whole).any():
        return False
    return all(_node_fits(cfg, nodes, number) for number in range(1, used))


def _node_fits(cfg: EvidenceTreeConfig, nodes: Array, number: int) -> bool:
    """Its cuts lie inside its box, and its children have the halves, or nothing yet."""
    node = nodes[number]
    low, high, cuts, end = (_part(cfg, part) for part in (LOW, HIGH, CUT, HALVES))
    challenged = node[RENEWER] > 0.0
    if node[NOTED] > cfg.noted or (node[STATE] >= RUNNING and not challenged):
        return False
    if node[STATE] == MADE_IN_PART and not (
        0 <= node[DUE] < KINDS * cfg.dx and node[DUE] % 1 == 0
    ):
        return False
    if node[STATE] == WANTED and not challenged and node[NOTED] < cfg.noted:
        return False
    axis = int(node[DIMENSION])
    if axis < 0 and not challenged:
        return True
    inside = (node[low:high] < node[cuts:end]) & (node[cuts:end] < node[high:cuts])
    uncut = (node[high:cuts] - node[low:high] < NARROW) | (node[cuts:end] == node[low:high])
    if not (inside | uncut).all() or (axis >= 0 and not inside[axis]):
        return False
    for child in nodes[int(node[BELOW])], nodes[int(node[ABOVE])]:
        if axis < 0 and (child[DIMENSION] != -1.0 or np.delete(child, DIMENSION).any()):
            return False
    if axis < 0:
        return True
    halves = nodes[int(node[BELOW]) : int(node[ABOVE]) + 1, low:cuts].copy()
    expected = np.array([node[low:cuts], node[low:cuts]])
    expected[0, cfg.dx + axis] = expected[1, axis] = node[cuts + axis]
    return bool((halves == expected).all())


def _rows_fit(cfg: EvidenceTreeConfig, made: Array, heads: Array, busy: list[int]) -> bool:
    """Every row of a leaf is another one; a bin's row knows its node."""
    first, taken = _part(cfg, HALVES), list[float]()
    reserved = {float(k) for node in made if node[DIMENSION] < 0.0 for k in node[[BELOW, ABOVE]]}
    for number, node in enumerate(made, 1):
        if node[DIMENSION] >= 0.0 or number in reserved:
            continue
        if node[ROW] > 0.0:
            taken.append(node[ROW])
            if not node[ROW] < len(heads) or heads[int(node[ROW]), NODE] != number:
                return False
        elif number != ROOT or node[STATE] != WAITING or node[RENEWER] > 0.0:
            return False
        if node[RENEWER] > 0.0:
            taken.append(node[RENEWER])
            for kind in range(KINDS):
                begin = first + kind * PARTS * cfg.dx
                taken += node[begin : begin + 2 * cfg.dx].tolist()
    return sorted(taken) == busy


register(EvidenceTreeConfig, Partition.of(globals(), by_evidence=True))
