"""The newcomer: one bin for all contexts that knows nothing of the past (eq. 22 and 23).

If it foresees payoffs much better than all that was learned before, the past misleads, and the
newcomer takes the place of the whole tree. Bins could unlearn it only one by one.
"""

from typing import Any

from continuarm.core.compiling import Array, compiled, copy_into, fill
from continuarm.core.learners import protocol as learner
from continuarm.core.partitions.evidence.challengers import give_back_all
from continuarm.core.partitions.evidence.nodes import (
    DIMENSION,
    HEADER,
    HIGH,
    MET,
    NEWCOMER,
    NEWCOMER_LEAD,
    NEWCOMER_TIME,
    OWN_SQUARES,
    OWN_SUMS,
    ROOT,
    ROW,
    SQUARES,
    SUMS,
    TIMES,
    USED,
    EvidenceTreeConfig,
    part,
)
from continuarm.core.request import Foreseen, Learned, Observation
from continuarm.core.state import (
    CLOCK,
    HEAD,
    LAST,
    TEMPLATE,
    Space,
    State,
    any_frozen,
    begin,
    take,
)

__all__ = ["begin_anew", "is_wanted", "make", "tell"]

LEARNS = 5  # payoffs per coefficient before it is judged
STAYS = 20  # payoffs per coefficient of its shortest time
OF_ALL = 16.0  # no time is longer than this part of all payoffs, or the shortest
FAR = 3.5  # standard deviations: an error counts as no larger
VARIED = 0.5  # of the variance of all contexts, along each side


@compiled
def is_wanted(cfg: EvidenceTreeConfig, state: State) -> bool:
    """Whether there is none, and should be."""
    return bool(cfg.anew_lead > 0.0 and state.nodes[0, NEWCOMER] == 0.0)


@compiled
def make(cfg: EvidenceTreeConfig, lcfg: Any, state: State, space: Space) -> None:
    """Take a row for it; the caller has looked whether there is room."""
    header = state.nodes[0]
    fill(header[NEWCOMER:], 0.0)
    header[NEWCOMER] = take(state)
    _begin(cfg, lcfg, state, space)


@compiled
def _begin(cfg: EvidenceTreeConfig, lcfg: Any, state: State, space: Space) -> None:
    """Let it forget all, and decide how long it stays: 1, 2, 1, 4, 1, 2, 1, 8 … times (eq. 23)."""
    header = state.nodes[0]
    known = state.rows[int(header[NEWCOMER]), HEAD:]
    if state.counts[TEMPLATE] > 0.0:
        copy_into(known, state.rows[0, HEAD:])
    else:
        learner.init(lcfg, known, space.y)
    header[NEWCOMER_LEAD] = 0.0
    fill(header[part(cfg, OWN_SUMS) : part(cfg, HEADER)], 0.0)
    header[TIMES] += 1.0
    time, times = STAYS * cfg.coefficients, header[TIMES]
    while times % 2.0 == 0.0 and 2.0 * OF_ALL * time <= state.counts[CLOCK]:
        time, times = 2 * time, 0.5 * times
    header[NEWCOMER_TIME] = time


@compiled
def _note(cfg: EvidenceTreeConfig, header: Array, u: Array) -> None:
    """Note a context, in [-1, 1]."""
    header[MET] += 1.0
    for axis in range(cfg.dx):
        square = u[axis] * u[axis]
        header[part(cfg, SUMS) + axis] += u[axis]
        header[part(cfg, SQUARES) + axis] += square
        header[part(cfg, OWN_SUMS) + axis] += u[axis]
        header[part(cfg, OWN_SQUARES) + axis] += square


@compiled
def _has_met_all(cfg: EvidenceTreeConfig, header: Array, count: float) -> bool:
    """Whether the contexts of its time vary at least half as much as all did.

    Contexts may come in order. Who knows some of them well must not decide for all.
    """
    for axis in range(cfg.dx):
        mean = header[part(cfg, SUMS) + axis] / header[MET]
        whole = header[part(cfg, SQUARES) + axis] / header[MET] - mean * mean
        mean = header[part(cfg, OWN_SUMS) + axis] / count
        own = header[part(cfg, OWN_SQUARES) + axis] / count - mean * mean
        if own < VARIED * whole:
            return False
    return True


@compiled
def _score(cfg: EvidenceTreeConfig, mine: Foreseen, bins: Foreseen) -> float:
    """The logarithm of how much likelier it found a payoff than the bin did (eq. 22).

    Both densities have the larger of the two variances, and an error that is far off counts as
    just far: so neither rare purchases nor absurd payoffs are evidence.
    """
    if mine.variance == 0.0 or bins.variance == 0.0:
        return 0.0
    variance = max(mine.variance, bins.variance)
    most = FAR * FAR * variance
    gap = min(mine.uncut, most) - min(bins.uncut, most)
    score = mine.spread - bins.spread - 0.5 * gap / variance
    return float(min(max(score, -cfg.largest), cfg.largest))


@compiled
def tell(cfg: EvidenceTreeConfig, lcfg: Any, state: State, learned: Learned, space: Space) -> bool:
    """Tell it what a bin has just learned; whether it wins, which no frozen bin allows."""
    header, seen = state.nodes[0], learned.seen
    row = int(header[NEWCOMER])
    if row == 0:
        return False
    u = space.outer_low
    for axis in range(cfg.dx):
        u[axis] = 2.0 * space.x[axis] - 1.0
    known = state.rows[row, HEAD:]
    whole = Observation(u, seen.y, seen.z, seen.gradient, 1.0, seen.ticket, True)
    mine = learner.tell(lcfg, known, state.pool, whole, space.work)
    count = learner.progress(lcfg, known)
    _note(cfg, header, u)
    if count > LEARNS * cfg.coefficients and _has_met_all(cfg, header, count):
        header[NEWCOMER_LEAD] += _score(cfg, mine, learned.foreseen)
    if header[NEWCOMER_LEAD] >= cfg.anew_lead and not any_frozen(state):
        return True
    if count >= header[NEWCOMER_TIME]:
        _begin(cfg, lcfg, state, space)
    return False


@compiled
def begin_anew(cfg: EvidenceTreeConfig, state: State) -> None:
    """Let the newcomer be the only bin, and give back all others."""
    nodes = state.nodes
    row = int(nodes[0, NEWCOMER])
    for node in range(1, int(nodes[0, USED])):
        if nodes[node, DIMENSION] < 0.0 and nodes[node, ROW] > 0.0:
            give_back_all(cfg, state, node)
        fill(nodes[node], 0.0)
    fill(nodes[0], 0.0)
    nodes[0, USED] = ROOT + 1
    nodes[ROOT, DIMENSION], nodes[ROOT, ROW] = -1.0, row
    high = part(cfg, HIGH)
    fill(nodes[ROOT, high : high + cfg.dx], 1.0)
    begin(state, row, ROOT, 0)
    state.rows[row, LAST] = state.counts[CLOCK]
