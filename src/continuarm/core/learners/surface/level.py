"""The level of a bin's payoffs: followed while it moves, else at rest (eq. 19 and 20)."""

import math

from continuarm.core.compiling import Array, compiled, compiled_large
from continuarm.core.learners.surface.far_payoffs import surges
from continuarm.core.learners.surface.layout import (
    AGE,
    DEGREES,
    FOLLOWS,
    FORGOTTEN,
    LARGEST_PAYOFF,
    LEAD,
    OFFSET,
    SINCE,
    SQUARES,
    WEIGHT,
    ResponseSurfaceConfig,
    size_of,
    triangle,
)
from continuarm.core.learners.surface.triangle import forget_level

__all__ = ["follow_level"]

GAIN = 0.1  # of a level that is followed, per payoff of the policy
SLOW = 0.01  # the gain of a level that rests, seen by one that follows
LONGEST = 50.0  # payoffs of the policy: then nothing of the level is known
FOLLOW, REST = 5.0, 15.0  # evidence for following a level, and for resting again
PER_COEFFICIENT = 0.25  # for following: the more can be misfitted, the more is asked for
LONG = 1000.0  # payoffs: the longer one looks, the more is asked for
LARGEST_SCORE = 3.0


@compiled_large
def follow_level(
    cfg: ResponseSurfaceConfig, row: Array, left: float, spread: float, elapsed: float
) -> None:
    """Follow the level, or let it rest, whichever foresees payoffs better; follow in a surge."""
    kept = (1.0 - GAIN) ** min(elapsed, LONGEST)
    trust = math.exp(2.0 * spread)
    error, offset, follows = left / math.exp(spread), row[OFFSET], row[FOLLOWS] > 0.0
    variance = row[SQUARES] / row[DEGREES]
    score = trust * offset * (error - 0.5 * offset) / variance  # eq. 20
    enough = max(FOLLOW, PER_COEFFICIENT * size_of(row))
    enough += 0.5 * math.log(1.0 + row[AGE] / LONG)  # eq. 20'
    least = -REST if follows else -enough
    lead = row[LEAD] + min(max(score, -LARGEST_SCORE), LARGEST_SCORE)
    if follows:
        _forget(cfg, row, kept)
        offset += SLOW * (error - offset) - (1.0 - trust) * error  # the fit moves by h/(1+h)
        if lead < least:  # it begins again, from here
            offset = 0.0
    else:
        offset += (1.0 - kept) * trust * (error - offset)
    changes = (lead >= FOLLOW and not surges(row)) if follows else (lead >= enough or surges(row))
    if changes:
        row[FOLLOWS] = 0.0 if follows else 1.0
        if not follows:
            _begin(cfg, row, kept)
        offset, lead, least = 0.0, -enough if follows else -REST, -REST
    row[OFFSET] = min(max(offset, -LARGEST_PAYOFF), LARGEST_PAYOFF)
    row[LEAD] = max(lead, least)


@compiled
def _begin(cfg: ResponseSurfaceConfig, row: Array, kept: float) -> None:
    """Forget what a level that has been followed for long would have forgotten."""
    pivot = row[triangle(cfg)]
    _forget(cfg, row, min(row[WEIGHT] / ((1.0 - kept) * pivot * pivot), 1.0))
    row[SINCE] = 0.0


@compiled
def _forget(cfg: ResponseSurfaceConfig, row: Array, share: float) -> None:
    """Forget of the level, and note it for the challengers, who must forget as much."""
    forget_level(cfg, row, share)
    row[FORGOTTEN] -= math.log(share)
