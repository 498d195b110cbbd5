"""What keeps a surface steady when the world is not: absurd payoffs, a level that moves.

Legend: r = e/√(1+h) what was not foreseen of a payoff, s² the variance of the noise, w the weight
of the next observation.
"""

import math

from continuarm.core.compiling import Array, compiled, compiled_large
from continuarm.core.learners.surface.layout import (
    AGE,
    DEGREES,
    FOLLOWS,
    FORGOTTEN,
    LEAD,
    LOUDEST,
    OFFSET,
    REFERENCE,
    RUN,
    SQUARES,
    WEIGHT,
    ResponseSurfaceConfig,
    size,
    triangle,
)
from continuarm.core.learners.surface.triangle import forget_level, take_out

__all__ = ["bounded", "follow_level", "is_settled", "set_weight"]

SETTLED = 20.0  # payoffs beyond the coefficients from which the noise is known
FAR = 3.5  # times s
RARE = 20.0  # what has happened so often is not absurd
IN_A_ROW = 3.0  # payoffs that are far off on one side: the level has moved
GAIN = 0.1  # of a level that is followed, per payoff of the policy
SLOW = 0.01  # the gain of a level that rests, seen by one that follows
LONGEST = 50.0  # payoffs of the policy: then nothing of the level is known
FOLLOW, REST = 4.0, 15.0  # evidence for following a level, and for resting again
LARGEST_SCORE = 3.0
CALM = 16.0  # times: a variance that has fallen so far makes what was learned before count less
LARGEST_WEIGHT = 1e12


@compiled
def is_settled(cfg: ResponseSurfaceConfig, row: Array) -> bool:
    """Whether a bin knows its noise."""
    return bool(row[AGE] > size(cfg) + SETTLED and row[SQUARES] > 0.0)


@compiled_large
def bounded(
    cfg: ResponseSurfaceConfig, row: Array, left: float, spread: float, taken: Array
) -> float:
    """Cut what is left of a payoff just learned, if it is absurd (eq. 14); what is left then.

    After three payoffs in a row that are far off on one side, the level has jumped, and only that
    is learned of the third.
    """
    s = math.sqrt(row[SQUARES] / row[DEGREES])
    if abs(left) <= FAR * s:
        row[RUN] = 0.0
        return left
    side = 1.0 if left > 0.0 else -1.0
    row[RUN] = row[RUN] + side if row[RUN] * side > 0.0 else side
    most = max(FAR, math.sqrt(row[AGE] / RARE)) * s
    kept = min(max(left, -most), most)
    jumped = abs(row[RUN]) >= IN_A_ROW and cfg.level
    if jumped:
        kept = 0.0
    cosines = math.exp(spread)
    take_out(cfg, row, taken, math.sqrt(row[WEIGHT]) * (left - kept) / cosines)
    if jumped:
        row[REFERENCE] += left / cosines
        row[RUN] = 0.0
        forget_level(cfg, row, 0.0)
    return kept


@compiled_large
def follow_level(
    cfg: ResponseSurfaceConfig, row: Array, left: float, spread: float, elapsed: float
) -> None:
    """Follow the level, or let it rest, whichever foresees payoffs better (eq. 15 and 16)."""
    kept = (1.0 - GAIN) ** min(elapsed, LONGEST)
    trust = math.exp(2.0 * spread)
    error, offset, follows = left / math.exp(spread), row[OFFSET], row[FOLLOWS] > 0.0
    variance = row[SQUARES] / row[DEGREES]
    score = trust * offset * (error - 0.5 * offset) / variance
    least = -REST if follows else -FOLLOW
    lead = row[LEAD] + min(max(score, -LARGEST_SCORE), LARGEST_SCORE)
    if follows:
        _forget(cfg, row, kept)
        offset += SLOW * (error - offset) - (1.0 - trust) * error  # the fit moves by h/(1+h)
        if lead < least:  # it begins again, from here
            offset = 0.0
    else:
        offset += (1.0 - kept) * trust * (error - offset)
    if lead >= FOLLOW:
        row[FOLLOWS] = 0.0 if follows else 1.0
        if not follows:
            pivot = row[triangle(cfg)]
            _forget(cfg, row, min(row[WEIGHT] / ((1.0 - kept) * pivot * pivot), 1.0))
        offset, lead, least = 0.0, -FOLLOW if follows else -REST, -REST
    row[OFFSET], row[LEAD] = offset, max(lead, least)


@compiled
def _forget(cfg: ResponseSurfaceConfig, row: Array, share: float) -> None:
    """Forget of the level, and note it for the challengers, who must forget as much."""
    forget_level(cfg, row, share)
    row[FORGOTTEN] -= math.log(share)


@compiled
def set_weight(row: Array) -> None:
    """What was learned when payoffs were much noisier than now counts less (eq. 17)."""
    now = row[SQUARES] / row[DEGREES]
    if now > row[LOUDEST]:
        row[LOUDEST] = now
    elif CALM * now < row[LOUDEST]:
        row[WEIGHT] = min(row[WEIGHT] * row[LOUDEST] / now, LARGEST_WEIGHT)
        row[LOUDEST] = now
