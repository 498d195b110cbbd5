"""The noise of a bin: its variance (eq. 3), and what a calmer time does to weights (eq. 21)."""

import math

from continuarm.core.compiling import Array, compiled
from continuarm.core.learners.surface.layout import (
    AGE,
    DEGREES,
    FOURTHS,
    LOUDEST,
    SQUARES,
    WEIGHT,
    ResponseSurfaceConfig,
    size_of,
)

__all__ = [
    "LARGEST_FOURTHS",
    "LARGEST_WEIGHT",
    "is_certain",
    "is_settled",
    "note_loudest",
    "note_square",
    "set_weight",
    "variance_of",
]

SETTLED = 20.0  # payoffs beyond the coefficients from which the noise is known
CALM = 16.0  # times: a variance that has fallen so far makes what was learned before count less
MANY = 20.0  # squares of one size, by their mean and fourth powers, that make a variance certain
LARGEST_WEIGHT = 1e12
LARGEST_FOURTHS = 1e300


@compiled
def variance_of(row: Array) -> float:
    """s²; 0 while payoffs are the same."""
    return float(row[SQUARES] / row[DEGREES] if row[SQUARES] > 0.0 else 0.0)


@compiled
def is_settled(cfg: ResponseSurfaceConfig, row: Array) -> bool:
    """Whether a bin has an idea of its noise."""
    return bool(row[AGE] > size_of(row) + SETTLED and row[SQUARES] > 0.0)


@compiled
def is_certain(row: Array) -> bool:
    """Whether many payoffs have made its variance, once.

    Until then a payoff that is far off may be one of the first purchases.
    """
    return bool(row[LOUDEST] > 0.0)


@compiled
def note_square(row: Array, square: float, spread: float) -> None:
    """Note r² of a payoff and -½ ln(1+h): what could not be foreseen says little (eq. 3)."""
    share = row[WEIGHT] * math.exp(2.0 * spread)
    counted = share * square
    row[SQUARES] += counted
    row[DEGREES] += share
    row[FOURTHS] = min(row[FOURTHS] + counted * counted, LARGEST_FOURTHS)


@compiled
def note_loudest(row: Array) -> None:
    """Note the largest variance; one that few payoffs have made says nothing."""
    if row[SQUARES] > row[LOUDEST] * row[DEGREES]:
        if row[SQUARES] * row[SQUARES] > MANY * row[FOURTHS]:
            row[LOUDEST] = row[SQUARES] / row[DEGREES]


@compiled
def set_weight(row: Array) -> None:
    """What was learned when payoffs were much noisier than now counts less (eq. 21)."""
    now = row[SQUARES] / row[DEGREES]
    if CALM * now < row[LOUDEST]:
        row[WEIGHT] = min(row[WEIGHT] * row[LOUDEST] / now, LARGEST_WEIGHT)
        row[LOUDEST] = now
