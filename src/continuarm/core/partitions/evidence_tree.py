"""EvidenceTree: a bin splits in one dimension when its halves foresee payoffs better than it.

Beside each bin stand challengers: rows that no context reaches and that learn what the bin learns.
Per context dimension a pair of halves that keep all that the bin knows and a pair that keep little
of it, and one that covers the whole bin and keeps little. Each gathers a lead, the sum of its
scores against the bin (eq. 7 of docs/recommended.md). The first whose lead is large enough takes
the bin's place: a pair of halves splits it, the last one renews it. From time to time all start
again from what the bin knows by then. Beside them all stands one newcomer, who may take the place
of the whole tree. Its parts are in `evidence/`.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from continuarm import checks
from continuarm.core.compiling import Array, compiled
from continuarm.core.learners import protocol as learner
from continuarm.core.learners.protocol import size as fitted
from continuarm.core.learners.protocol import width
from continuarm.core.partitions.evidence import challengers, newcomer
from continuarm.core.partitions.evidence.bare import bare
from continuarm.core.partitions.evidence.cuts import note
from continuarm.core.partitions.evidence.nodes import (
    ABOVE,
    BELOW,
    CUT,
    DIMENSION,
    DUE,
    HIGH,
    KINDS,
    LOW,
    MADE_IN_PART,
    NOTED,
    RENEWER,
    RENEWER_LEAD,
    ROOT,
    ROW,
    RUNNING,
    STATE,
    USED,
    WAITING,
    WANTED,
    EvidenceTreeConfig,
    empty,
    part,
)
from continuarm.core.partitions.evidence.reading import fits, unmade
from continuarm.core.partitions.protocol import Boxes, Partition, register
from continuarm.core.request import Learned
from continuarm.core.state import HEAD, NODE, ROOM, Space, State, in_use, replace, room

__all__ = ["EvidenceTree", "EvidenceTreeConfig", "bare", "empty", "fits", "unmade"]

REMEMBERED = 40  # payoffs per coefficient that a bin must have in mind to split where it drifts
CAUTION = 5.0  # and how many times more evidence, because a drift looks like evidence
MANY = 4  # context dimensions, from which halves that keep all win by chance too often


@dataclass(frozen=True, kw_only=True)
class EvidenceTree:
    """A bin splits where its halves foresee payoffs better than it does (eq. 7 to 9).

    Parameters
    ----------
    split_lead, fresh_lead, renew_lead : the leads at which a challenger wins: halves that keep
        all, halves that keep little, the whole that keeps little; default eq. 9.
    anew_lead : the lead at which a newcomer, who knows nothing of the past, takes the place of all
        bins; default eq. 23; 0: there is none.
    first : payoffs of a bin before it has challengers; default twice the learner's coefficients.
    drifts : whether payoffs drift, which looks like evidence: more of it is needed then.
    again : challengers start again when what the bin remembers would have grown so much.
    keep, little : the weight of what the bin knows in halves that keep all, and in the others.
    long : payoffs per coefficient; of more, the others keep a share that falls with the root of
        their number; None: always the same share.
    largest : one payoff moves a lead no further.
    noted : contexts in whose middle a bin is cut.
    median : cut there, or in the middle of the box.
    """

    split_lead: float | None = None
    fresh_lead: float | None = None
    renew_lead: float | None = None
    anew_lead: float | None = None
    first: int | None = None
    drifts: bool = False
    again: float = 3.0
    keep: float = 1.0
    little: float = 0.1
    long: float | None = 50.0
    largest: float = 3.0
    noted: int = 32
    median: bool = True

    def __post_init__(self) -> None:
        checks.normalise(
            self,
            split_lead=checks.optional(checks.number, "split_lead", self.split_lead),
            fresh_lead=checks.optional(checks.number, "fresh_lead", self.fresh_lead),
            renew_lead=checks.optional(checks.number, "renew_lead", self.renew_lead),
            anew_lead=checks.optional(
                partial(checks.number, zero=True), "anew_lead", self.anew_lead
            ),
            first=checks.optional(checks.whole, "first", self.first, 1),
            drifts=checks.flag("drifts", self.drifts),
            again=checks.number("again", self.again, least=1.0),
            keep=checks.number("keep", self.keep, most=1.0),
            little=checks.number("little", self.little, most=1.0),
            long=checks.optional(checks.number, "long", self.long),
            largest=checks.number("largest", self.largest, most=1e6),
            noted=checks.whole("noted", self.noted, 2, 2**16),
            median=checks.flag("median", self.median),
        )

    def configured(self, dx: int, learner: Any) -> "EvidenceTreeConfig":
        """The numbers of these options; the more a challenger can fit, the later it wins."""
        p = fitted(learner)
        choices = math.log(max(dx, 1))
        split = max(2.0, 0.5 * math.log(p)) + choices * (2.0 if dx >= MANY else 1.0)  # eq. 9
        renew = max(4.0, 1.75 * math.log(p)) + choices
        anew = 0.0 if self.drifts else 3.0 * p + 10.0  # eq. 23; a drift is followed by forgetting
        caution = CAUTION if self.drifts else 1.0
        return EvidenceTreeConfig(
            dx,
            split_lead=caution * split if self.split_lead is None else self.split_lead,
            fresh_lead=caution * renew if self.fresh_lead is None else self.fresh_lead,
            renew_lead=renew if self.renew_lead is None else self.renew_lead,
            anew_lead=anew if self.anew_lead is None else self.anew_lead,
            first=2 * p if self.first is None else self.first,
            again=self.again,
            keep=self.keep,
            little=self.little,
            long=math.inf if self.long is None else self.long * p,
            largest=self.largest,
            noted=self.noted,
            median=self.median,
            drift=float(REMEMBERED * p) if self.drifts else 0.0,
            most=ROOM // (HEAD + width(learner)),
            coefficients=p,
        )


@compiled
def _find(cfg: EvidenceTreeConfig, nodes: Array, x: Array) -> int:
    node, cuts = ROOT, part(cfg, CUT)
    while nodes[node, DIMENSION] >= 0.0:
        axis = int(nodes[node, DIMENSION])
        node = int(nodes[node, ABOVE if x[axis] >= nodes[node, cuts + axis] else BELOW])
    return node


@compiled
def locate(
    cfg: EvidenceTreeConfig, nodes: Array, x: Array, space: Space, boxed: bool
) -> tuple[int, bool]:
    node = _find(cfg, nodes, x)
    if boxed:
        low, high = part(cfg, LOW), part(cfg, HIGH)
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
    return 2 + 2 * KINDS * cfg.dx


@compiled
def prepare(cfg: EvidenceTreeConfig, lcfg: Any, state: State, row: int, space: Space) -> bool:
    """Make the challengers that a bin wants, or some, room for its children, and a newcomer."""
    nodes, node = state.nodes, int(state.rows[row, NODE])
    if nodes[node, STATE] == WANTED:
        if nodes[node, RENEWER] == 0.0:
            if in_use(state) + rows_at_once(cfg) > cfg.most:
                return True  # until others give some back
            child = int(nodes[0, USED])
            if room(state) < rows_at_once(cfg) or child + 2 > nodes.shape[0]:
                return False
            challengers.make_room(cfg, state, node, child)
            if newcomer.is_wanted(cfg, state):
                newcomer.make(cfg, lcfg, state, space)
        challengers.start_again(cfg, lcfg, nodes[node], state.rows, space)
    if nodes[node, STATE] == MADE_IN_PART:
        challengers.go_on_making(cfg, lcfg, nodes[node], state.rows, space)
    return True


@compiled
def observe(
    cfg: EvidenceTreeConfig, lcfg: Any, state: State, learned: Learned, space: Space
) -> None:
    """Tell the challengers; the one with the largest lead beyond its limit wins."""
    row, seen, foreseen = learned
    nodes, rows = state.nodes, state.rows
    node = int(rows[row, NODE])
    if newcomer.tell(cfg, lcfg, state, learned, space):
        newcomer.begin_anew(cfg, state)
        return
    if nodes[node, NOTED] < cfg.noted:
        note(cfg, nodes[node], space.x)
    kept = learner.remembered(lcfg, rows[row, HEAD:])
    if nodes[node, STATE] != RUNNING:
        enough = nodes[node, NOTED] == cfg.noted and kept >= cfg.first
        if enough and nodes[node, STATE] == WAITING:
            nodes[node, STATE] = WANTED
        return
    renewer = int(nodes[node, RENEWER])
    score = learner.challenge(lcfg, rows[renewer, HEAD:], seen, foreseen, space.work)
    nodes[node, RENEWER_LEAD] += min(max(score, -cfg.largest), cfg.largest) - foreseen.gained
    # all challengers follow a drift faster than the bin: halves must do better than the whole
    ahead = max(nodes[node, RENEWER_LEAD], 0.0) if cfg.drift > 0.0 else 0.0
    caution = CAUTION if foreseen.follows else 1.0
    winner, lead = challengers.tell_halves(
        cfg, lcfg, nodes[node], rows, learned, space, ahead, caution
    )
    needed = max(lead, caution * cfg.renew_lead, foreseen.hoped)
    if not foreseen.surging and nodes[node, RENEWER_LEAD] >= needed:
        replace(state, row, renewer)
        nodes[node, ROW], nodes[node, RENEWER] = renewer, row
        nodes[node, STATE] = WANTED
    elif winner >= 0 and (cfg.drift == 0.0 or kept >= cfg.drift):
        challengers.split(cfg, state, node, winner)
    elif foreseen.began or learner.progress(lcfg, rows[row, HEAD:]) >= nodes[node, DUE]:
        nodes[node, STATE] = WANTED


def grown(cfg: EvidenceTreeConfig, nodes: Array) -> Array:
    return np.concatenate([nodes, np.zeros_like(nodes)])


def boxes(cfg: EvidenceTreeConfig, nodes: Array) -> Boxes:
    made = nodes[: int(nodes[0, USED])]
    return _boxed(cfg, nodes, (made[:, DIMENSION] < 0.0) & (made[:, ROW] > 0.0))


def former(cfg: EvidenceTreeConfig, nodes: Array, rows: Array) -> Boxes:
    return _boxed(cfg, nodes, nodes[: int(nodes[0, USED]), DIMENSION] >= 0.0)


def _boxed(cfg: EvidenceTreeConfig, nodes: Array, wanted: NDArray[np.bool_]) -> Boxes:
    """What ROW says of these nodes, and their boxes."""
    low, high, cut = (part(cfg, which) for which in (LOW, HIGH, CUT))
    return [
        (int(nodes[k, ROW]), nodes[k, low:high].copy(), nodes[k, high:cut].copy())
        for k in np.flatnonzero(wanted)
        if k >= ROOT
    ]


register(EvidenceTreeConfig, Partition.of(globals(), by_evidence=True))
