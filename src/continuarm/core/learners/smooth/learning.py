"""Learning a payoff: one rotation, which tells each rung how well it foresaw it (eq. 2 to 4)."""

import math

from continuarm.core.compiling import Array, compiled, compiled_large
from continuarm.core.learners.smooth.features import fill_columns, fill_features, fill_functions
from continuarm.core.learners.smooth.layout import (
    AGE,
    DEGREES,
    REFERENCE,
    RUNG,
    SCORE,
    SEEN,
    SQUARES,
    WEIGHT,
    SmoothSurfaceConfig,
    first_payoffs,
    lead_of,
    noise_of,
    rung_at,
)
from continuarm.core.learners.smooth.triangle import rescale, rotate_in
from continuarm.core.learners.triangle import grow_older
from continuarm.core.request import MOST_SURPRISED, Foreseen, Observation

__all__ = ["learn"]

GRACE = 20.0  # payoffs before old ones, and old scores, fade
LARGEST_WEIGHT = 1e6


@compiled
def _score(cfg: SmoothSurfaceConfig, row: Array, rung: int, left: float, spread: float) -> None:
    """How likely a rung found this payoff, and what it says of its noise (eq. 4)."""
    k, variance = rung_at(cfg, rung), noise_of(cfg, row, rung)
    if row[SEEN] >= first_payoffs(cfg):
        row[k + SCORE] *= 1.0 - cfg.recent / (row[AGE] + 1.0 + GRACE)
        if variance > 0.0:
            row[k + SCORE] += spread - 0.5 * (math.log(variance) + left * left / variance)
    share = row[WEIGHT] * math.exp(2.0 * spread)
    row[k + SQUARES] += share * left * left
    row[k + DEGREES] += share


@compiled
def _lead(cfg: SmoothSurfaceConfig, row: Array) -> int:
    """The rung with the highest score; the one that decides stays where none is higher."""
    lead = lead_of(row)
    for rung in range(cfg.rungs):
        if row[rung_at(cfg, rung) + SCORE] > row[rung_at(cfg, lead) + SCORE]:
            lead = rung
    return lead


@compiled_large
def learn(cfg: SmoothSurfaceConfig, row: Array, seen: Observation, work: Array) -> Foreseen:
    """Learn a payoff; how well the rung that decides had foreseen it."""
    p, m = cfg.size, cfg.rungs
    if cfg.memory > 0.0:
        grow_older(row, WEIGHT, AGE, seen.elapsed / cfg.memory)
    if row[WEIGHT] > LARGEST_WEIGHT:
        rescale(cfg, row)
    if row[SEEN] == 0.0:
        row[REFERENCE] = seen.z
    root, new = math.sqrt(row[WEIGHT]), work[: p + 1]
    lefts, spreads = work[p + 1 : p + 1 + m], work[p + 1 + m : p + 1 + 2 * m]
    functions, rest = work[3 * p : 3 * p + cfg.functions], work[3 * p + cfg.functions :]
    fill_functions(cfg, seen.u, rest, functions)
    fill_features(cfg, seen.y, rest)
    fill_columns(cfg, functions, rest, root, new[:p])
    new[p] = root * (seen.z - row[REFERENCE])
    rotate_in(cfg, row, new, lefts, spreads)
    lead, variance = lead_of(row), noise_of(cfg, row, lead_of(row))
    judged, surprise = variance > 0.0 and row[SEEN] >= first_payoffs(cfg), 0.0
    left, spread = lefts[lead] / root, spreads[lead]
    if judged:
        surprise = min(max(left / math.sqrt(variance), -MOST_SURPRISED), MOST_SURPRISED)
    for rung in range(m):
        _score(cfg, row, rung, lefts[rung] / root, spreads[rung])
    row[RUNG] = _lead(cfg, row)
    row[SEEN] += 1.0
    row[AGE] += 1.0
    row[WEIGHT] /= 1.0 - cfg.fade / (row[AGE] + GRACE)  # (eq. 2)
    square = left * left
    steady = (0.0, False, False, 0.0, 0.0, False, False)
    return Foreseen(square, spread, *steady, variance, square, 0.0, 0.0, 0, judged, surprise, 0.0)
