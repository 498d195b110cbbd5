"""Learning a payoff: one rotation, which tells each rung how well it foresaw it (eq. 2 to 4)."""

import math

from continuarm.core.compiling import Array, compiled, compiled_large
from continuarm.core.learners.smooth.chain import hear, look
from continuarm.core.learners.smooth.features import fill_columns, fill_features, fill_functions
from continuarm.core.learners.smooth.layout import (
    AGE,
    ALIKE,
    DEGREES,
    LAST,
    MOST_RUNGS,
    REFERENCE,
    RUNG,
    SCORE,
    SEEN,
    SQUARES,
    WEIGHT,
    SmoothSurfaceConfig,
    alive_of,
    end_of,
    first_payoffs,
    lead_of,
    noise_of,
    rung_at,
)
from continuarm.core.learners.smooth.triangle import (
    Rotation,
    forget_level,
    rescale,
    rotate_in,
    take_in,
)
from continuarm.core.learners.triangle import grow_older
from continuarm.core.request import MOST_SURPRISED, Foreseen, Observation

__all__ = ["GRACE", "LARGEST_WEIGHT", "leading", "learn", "score"]

GRACE = 20.0  # payoffs before old ones, and old scores, fade
LARGEST_WEIGHT = 1e6
FARTHEST = 1e100  # r²/s² that is scored: a score must stay finite
ABSURD, OFTEN = 10.0, 10.0  # standard deviations; payoffs of which one may be as large as all
COUNTED = 4.0  # times the largest square: what the noise is told of it
FEW = 20.0  # payoffs in which a level that moves shows
BY_CHANCE, LARGEST_ALIKE = 3.0, 4.0  # standard deviations of what is alike; of one error
LEAST_KEPT = 1e-3  # of the level
LENIENT = 1.0  # a rung that is larger may score so much less than the best: to see less costs more


@compiled
def score(
    cfg: SmoothSurfaceConfig, row: Array, rung: int, left: float, spread: float, excess: float
) -> None:
    """How likely a rung found this payoff, and what it says of its noise (eq. 4)."""
    k, variance = rung_at(rung), noise_of(row, rung)
    if row[SEEN] >= first_payoffs(cfg):
        row[k + SCORE] *= 1.0 - cfg.recent / (row[AGE] + 1.0 + GRACE)
        if variance > 0.0:
            square = min(left * left / variance, FARTHEST)
            row[k + SCORE] += spread - 0.5 * (math.log(variance) + square)
    share = row[WEIGHT] * math.exp(2.0 * spread)
    row[k + SQUARES] += share * (left * left + excess)
    row[k + DEGREES] += share


@compiled
def leading(row: Array) -> int:
    """The largest rung whose score is nearly the best."""
    best = row[rung_at(0) + SCORE]
    for rung in range(1, MOST_RUNGS):
        best = max(best, row[rung_at(rung) + SCORE])
    lead = 0
    for rung in range(MOST_RUNGS):
        larger = rung == 0 or end_of(row, rung) > end_of(row, rung - 1)
        if larger and row[rung_at(rung) + SCORE] >= best - LENIENT:
            lead = rung
    return lead


@compiled
def _largest(row: Array, variance: float) -> float:
    """The square of the largest error that is learned (eq. 8)."""
    return float(variance * max(ABSURD * ABSURD, row[AGE] / OFTEN))


@compiled
def _follow_level(cfg: SmoothSurfaceConfig, row: Array, error: float) -> None:
    """Forget of the level as much as successive errors are alike (eq. 9)."""
    error = min(max(error, -LARGEST_ALIKE), LARGEST_ALIKE)
    row[ALIKE] = (1.0 - 1.0 / FEW) * row[ALIKE] + error * row[LAST]
    row[LAST] = error
    alike = (row[ALIKE] - BY_CHANCE * math.sqrt(0.5 * FEW)) / FEW
    if alike > 0.0:
        forget_level(cfg, row, max(1.0 - alike, LEAST_KEPT))


@compiled_large
def learn(cfg: SmoothSurfaceConfig, row: Array, seen: Observation, work: Array) -> Foreseen:
    """Learn a payoff; how well the rung that decides had foreseen it."""
    p, m, n = cfg.size, MOST_RUNGS, alive_of(row)
    if cfg.memory > 0.0:
        grow_older(row, WEIGHT, AGE, seen.elapsed / cfg.memory)
    if row[WEIGHT] > LARGEST_WEIGHT:
        rescale(cfg, row)
    if row[SEEN] == 0.0:
        row[REFERENCE] = seen.z
    root, new, k = math.sqrt(row[WEIGHT]), work[:n], 3 * p + 2 * m
    lefts, spreads = work[3 * p : 3 * p + m], work[3 * p + m : k]
    rotation = Rotation(work[p : p + n], work[2 * p : 2 * p + n], lefts, spreads)
    functions, rest = work[k : k + cfg.functions], work[k + cfg.functions :]
    fill_functions(cfg, row, seen.u, rest, functions)
    fill_features(cfg, seen.y, rest)
    fill_columns(row, functions, rest, root, new)
    z = root * (seen.z - row[REFERENCE])
    rotate_in(cfg, row, new, z, rotation)
    lead, variance = lead_of(row), noise_of(row, lead_of(row))
    judged, surprise = variance > 0.0 and row[SEEN] >= first_payoffs(cfg), 0.0
    left, spread = lefts[lead] / root, spreads[lead]
    uncut, cut, excess = left * left, 0.0, 0.0
    if judged:
        surprise = min(max(left / math.sqrt(variance), -MOST_SURPRISED), MOST_SURPRISED)
        largest = _largest(row, variance)
        if uncut > largest:
            kept = math.copysign(math.sqrt(largest), left)
            cut, left = (left - kept) * math.exp(-spread), kept
            excess = min(uncut, COUNTED * largest) - largest
    take_in(cfg, row, z - root * cut, rotation)
    for rung in range(m):
        of_rung = lefts[rung] / root - cut * math.exp(spreads[rung])
        score(cfg, row, rung, of_rung, spreads[rung], excess)
    if judged:
        hear(cfg, row, seen.u, rest, surprise * math.exp(spread))
        look(cfg, row)
        _follow_level(cfg, row, surprise)
    row[RUNG] = leading(row)
    row[SEEN] += 1.0
    row[AGE] += 1.0
    row[WEIGHT] /= 1.0 - cfg.fade / (row[AGE] + GRACE)  # (eq. 2)
    steady = (0.0, False, False, cut, excess, False, False)
    return Foreseen(
        left * left, spread, *steady, variance, uncut, 0.0, 0.0, 0, judged, surprise, 0.0
    )
