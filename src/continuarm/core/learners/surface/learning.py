"""Learning a payoff: by a bin, and by the challengers beside it (eq. 2, 4, 7, 10).

Legend: φ the p features, w the weight of the next observation, h = w φᵀ(RᵀR)⁻¹φ, e the error of
the prediction made before, r = e/√(1+h).
"""

import math
from typing import NamedTuple

from continuarm.core.compiling import Array, compiled, compiled_large, fill
from continuarm.core.learners.surface.candidates import (
    UNFORESEEABLE,
    begin_candidates,
    weigh,
)
from continuarm.core.learners.surface.entering import enter
from continuarm.core.learners.surface.far_payoffs import (
    FAR,
    bounded,
    bounded_like_bin,
    count_since,
    doubt_the_past,
    is_far,
    largest_digits,
    surges,
)
from continuarm.core.learners.surface.features import fill_candidates, fill_features
from continuarm.core.learners.surface.layout import (
    AGE,
    BEGUN,
    FOLLOWS,
    FORGOTTEN,
    KINDS,
    KNOWN,
    LARGEST_PAYOFF,
    REFERENCE,
    SEEN,
    TRIED,
    WEIGHT,
    ResponseSurfaceConfig,
    candidates,
    first_of,
    is_growing,
    size_of,
)
from continuarm.core.learners.surface.level import follow_level
from continuarm.core.learners.surface.noise import (
    LARGEST_WEIGHT,
    is_certain,
    is_settled,
    note_loudest,
    note_square,
    set_weight,
    variance_of,
)
from continuarm.core.learners.surface.triangle import (
    NOT_TURNED,
    forget_level,
    rescale,
    rotate_in,
    solve,
    spread_of,
)
from continuarm.core.learners.triangle import grow_older
from continuarm.core.request import MOST_SURPRISED, Foreseen, Observation

__all__ = ["learn", "learn_beside"]

LARGEST_SCORE = 3.0
CAUTION = 5.0  # times the evidence: a level that moves looks like it


class Rotated(NamedTuple):
    """What the rotation of a payoff into the triangle says of it."""

    left: float  # r
    spread: float  # -½ ln(1+h)
    dropped: bool  # it is far off, in a surge, and only the baseline has learned it
    before: float  # r of the fit of the baseline alone, without the decision
    spread_before: float


@compiled_large
def _rotate(
    cfg: ResponseSurfaceConfig,
    row: Array,
    seen: Observation,
    surging: bool,
    work: Array,
    others: Array,
) -> Rotated:
    """Rotate an observation into the triangle (eq. 2).

    `work` holds it, then what each row of the triangle has taken of its payoff; `others` will hold
    what is left of the candidates' features.
    """
    p = size_of(row)
    if cfg.memory > 0.0:
        grow_older(row, WEIGHT, AGE, seen.elapsed / cfg.memory)  # eq. 10
    if row[WEIGHT] > LARGEST_WEIGHT:
        rescale(cfg, row)
    if row[KNOWN] == 0.0:
        row[REFERENCE] = seen.z
    root, taken = math.sqrt(row[WEIGHT]), work[p + 1 : 2 * p + 1]
    fill_features(cfg, row, seen.u, seen.y, root, work)
    if others.shape[0] > 0:
        fill_candidates(cfg, row, seen.u, work[first_of(row) : p], root, others)
    work[p] = root * (seen.z - row[REFERENCE])
    if cfg.bounded and is_settled(cfg, row):
        most = largest_digits(cfg, row)
        work[p] = min(max(work[p], -most), most)
    if surging:
        return _rotate_in_surge(cfg, row, root, taken, work, others)
    first = first_of(row)
    turned = rotate_in(cfg, row, work, taken, others, 0, first, NOT_TURNED)
    before, spread_before = work[p] / root, spread_of(turned)
    turned = rotate_in(cfg, row, work, taken, others, first, p, turned)
    return Rotated(work[p] / root, spread_of(turned), False, before, spread_before)


@compiled_large
def _rotate_in_surge(
    cfg: ResponseSurfaceConfig,
    row: Array,
    root: float,
    taken: Array,
    work: Array,
    others: Array,
) -> Rotated:
    """The same for the baseline alone, and for the decision unless the payoff is far off.

    The baseline's columns come first: what is left after their rows is what the payoff says of
    the decision. A triangle that nobody has learned may foresee numbers beyond all payoffs.
    """
    p, first = size_of(row), first_of(row)
    theta, gates = work[2 * p + 1 : 3 * p + 1], work[3 * p + 1 : 3 * p + 3 + cfg.dx]
    fill(taken, 0.0)
    spread = spread_of(rotate_in(cfg, row, work, taken, others, 0, first, NOT_TURNED))
    before = work[p] / root
    fill(gates, 1.0)
    solve(cfg, row, gates, theta)
    left = work[p]
    for i in range(first, p):
        left -= work[i] * theta[i]
    if abs(left) < LARGEST_PAYOFF**1.1 and is_far(row, left / root):
        return Rotated(left / root, spread, True, left / root, spread)
    more = spread_of(rotate_in(cfg, row, work, taken, others, first, p, NOT_TURNED))
    return Rotated(work[p] / root, spread + more, False, before, spread)


@compiled
def _count(cfg: ResponseSurfaceConfig, row: Array, y: Array) -> None:
    for j in range(cfg.dy):
        lowest, highest = TRIED + j, TRIED + cfg.dy + j
        row[lowest], row[highest] = min(row[lowest], y[j]), max(row[highest], y[j])
    row[SEEN] += 1.0
    row[KNOWN] += 1.0
    row[AGE] += 1.0
    count_since(row)
    row[WEIGHT] /= 1.0 - cfg.fade / (row[AGE] + cfg.grace)  # eq. 4
    note_loudest(row)
    if cfg.calm and is_settled(cfg, row):
        set_weight(row)


@compiled
def _is_bounded(cfg: ResponseSurfaceConfig, row: Array, spread: float) -> bool:
    return bool(cfg.bounded and spread > UNFORESEEABLE and is_settled(cfg, row))


@compiled
def _by_decision(rotated: Rotated, variance: float) -> float:
    """The logarithm of how much likelier a payoff was than without the decision.

    An error that is far off counts as just far: neither rare purchases nor absurd payoffs decide.
    """
    most = FAR * FAR * variance
    left, before = rotated.left, rotated.before
    gap = min(left * left, most) - min(before * before, most)
    score = rotated.spread - rotated.spread_before - 0.5 * gap / variance
    return min(max(score, -LARGEST_SCORE), LARGEST_SCORE)


@compiled_large
def learn(cfg: ResponseSurfaceConfig, row: Array, seen: Observation, work: Array) -> Foreseen:
    """A bin learns a payoff; how well it was foreseen, one step ahead."""
    p, follows, forgotten = size_of(row), row[FOLLOWS], row[FORGOTTEN]
    surging, variance = cfg.level and surges(row), variance_of(row)
    if is_growing(cfg) and row[BEGUN] == 0.0:
        begin_candidates(cfg, row)
    beside = 3 * p + 3 + cfg.dx
    others = work[beside : beside + candidates(cfg)]
    judged, surprise, decided = variance > 0.0 and is_settled(cfg, row), 0.0, 0.0
    rotated = _rotate(cfg, row, seen, surging, work, others)
    left, spread, dropped = rotated.left, rotated.spread, rotated.dropped
    judged = judged and spread > UNFORESEEABLE
    if judged:
        surprise = min(max(left / math.sqrt(variance), -MOST_SURPRISED), MOST_SURPRISED)
        decided = _by_decision(rotated, variance)
    cut, excess, jumped, far, uncut = 0.0, 0.0, False, False, left * left
    if _is_bounded(cfg, row, spread):
        taken = work[p + 1 : 2 * p + 1]
        left, cut, excess, jumped, far = bounded(cfg, row, left, spread, taken, dropped)
        if cfg.level and (jumped or (surges(row) and not surging)):
            doubt_the_past(cfg, row)
        if cfg.level and is_certain(row):
            follow_level(cfg, row, left, spread, seen.elapsed)
    square = left * left + excess
    note_square(row, square, spread)
    caution = CAUTION if row[FOLLOWS] > 0.0 else 1.0
    entering, hoped, hoped_of = weigh(
        cfg, row, others, left, square, spread, far or surging, caution
    )
    _count(cfg, row, seen.y)
    gained = 0.0
    if entering >= 0:
        gained, hoped = enter(cfg, row, entering // KINDS, entering % KINDS), 0.0
    began = row[FOLLOWS] > follows
    follows = row[FOLLOWS] > 0.0
    return Foreseen(
        square,
        spread,
        forgotten,
        began,
        follows,
        cut,
        excess,
        jumped,
        surging,
        variance,
        uncut,
        gained,
        hoped,
        hoped_of,
        judged,
        surprise,
        decided,
    )


@compiled_large
def learn_beside(
    cfg: ResponseSurfaceConfig, row: Array, seen: Observation, bin_foresaw: Foreseen, work: Array
) -> float:
    """A challenger learns what its bin has learned; its score against the bin (eq. 7).

    It forgets as much of the level. A payoff that is far off says nothing about it.
    """
    if bin_foresaw.forgotten != row[FORGOTTEN]:
        forget_level(cfg, row, math.exp(min(row[FORGOTTEN] - bin_foresaw.forgotten, 0.0)))
        row[FORGOTTEN] = bin_foresaw.forgotten
    p, variance, excess, far = size_of(row), variance_of(row), 0.0, False
    surging = cfg.level and is_settled(cfg, row) and (surges(row) or bin_foresaw.surging)
    rotated = _rotate(cfg, row, seen, surging, work, work[:0])
    left, spread, dropped = rotated.left, rotated.spread, rotated.dropped
    if _is_bounded(cfg, row, spread):
        taken = work[p + 1 : 2 * p + 1]
        left, _, excess, _, far = bounded_like_bin(
            cfg, row, left, spread, taken, dropped, bin_foresaw
        )
    square = left * left + excess
    note_square(row, square, spread)
    _count(cfg, row, seen.y)
    if variance == 0.0 or far:
        return 0.0
    return float(spread - bin_foresaw.spread - 0.5 * (square - bin_foresaw.square) / variance)
