"""Payoffs that are far off: an absurd one is cut, many in a row are a jump, many are a surge.

Legend: r = e/√(1+h) what was not foreseen of a payoff, s² the variance of the noise, w the weight
of the next observation.
"""

import math
from typing import NamedTuple

from continuarm.core.compiling import Array, compiled, compiled_large
from continuarm.core.learners.surface.layout import (
    AGE,
    BELIEVED,
    DEGREES,
    LARGEST_PAYOFF,
    REFERENCE,
    RUN,
    SINCE,
    SQUARES,
    SURGE,
    USUAL,
    WEIGHT,
    ResponseSurfaceConfig,
    size_of,
    triangle,
)
from continuarm.core.learners.surface.noise import is_certain
from continuarm.core.learners.surface.triangle import forget_decision, forget_level, take_out
from continuarm.core.request import Foreseen

__all__ = [
    "FAR",
    "Bounded",
    "bounded",
    "bounded_like_bin",
    "count_since",
    "doubt_the_past",
    "is_far",
    "largest_digits",
    "surges",
]

FAR = 3.5  # times s
FIRST = 100.0  # times all squares: as large may a payoff be while the noise is not certain
RARE = 10.0  # one payoff moves an estimate no further than this share of all squares would
SEVERAL = 5.0  # and s² by no more than this share
DIGITS = 1e9  # times all payoffs so far: to be cut exactly, a payoff must be below
IN_A_ROW = 3.0  # payoffs far off on one side: the level may have jumped
UNLIKELY = -16.0  # the logarithm of a chance that is not meant
OFTEN = 0.1  # the share of payoffs that are far off in a surge
IN_A_SURGE, HIGHEST_SURGE = 12.0, 20.0  # evidence for one
KEPT = 10.0  # payoffs per coefficient: what is believed of the past when one begins


class Bounded(NamedTuple):
    """What is learned of a payoff."""

    left: float  # r, after the cut
    cut: float  # of the payoff
    excess: float  # of r², for the noise
    jumped: bool  # the level
    far: bool


@compiled
def is_far(row: Array, left: float) -> bool:
    """Whether a payoff is far off."""
    return bool(left * left * row[DEGREES] > FAR * FAR * row[SQUARES])


@compiled
def largest_digits(cfg: ResponseSurfaceConfig, row: Array) -> float:
    """√w z beyond which a payoff would leave no digits of the others in the triangle."""
    k, p, squares = triangle(cfg), size_of(row), row[SQUARES]
    for i in range(p):
        squares += row[k + p - i] * row[k + p - i]
        k += p - i + 1
    return DIGITS * math.sqrt(squares)


@compiled
def surges(row: Array) -> bool:
    """Whether payoffs are far off much more often than usual (eq. 16)."""
    return bool(row[SURGE] >= IN_A_SURGE)


@compiled
def count_since(row: Array) -> None:
    """Count a payoff since the last surge, and one more that is believed."""
    row[SINCE] = 0.0 if surges(row) else min(row[SINCE] + 1.0, row[AGE])
    row[BELIEVED] = min(row[BELIEVED] + 1.0, row[AGE])


@compiled
def doubt_the_past(cfg: ResponseSurfaceConfig, row: Array) -> None:
    """Where a surge begins, keep no more of what is known of the decision than some payoffs say.

    What has changed may be more than a level (eq. 17). The estimates stay as they are.
    """
    most = KEPT * size_of(row)
    if row[BELIEVED] > most:
        forget_decision(cfg, row, most / row[BELIEVED])
        row[BELIEVED] = most


@compiled
def _note(row: Array, left: float, far: bool) -> None:
    """Note how often payoffs are far off, lately and usually, and how many in a row."""
    if not is_certain(row):
        return
    usual = max(row[USUAL], 1.0 / row[AGE])
    grows = max(math.log(OFTEN / usual), 0.0) if far else -OFTEN
    row[SURGE] = min(max(row[SURGE] + grows, 0.0), HIGHEST_SURGE)  # eq. 16
    row[USUAL] += ((1.0 if far else 0.0) - row[USUAL]) / (row[AGE] + 1.0)
    if not far:
        row[RUN] = 0.0
    elif left > 0.0:
        row[RUN] = max(row[RUN], 0.0) + 1.0
    else:
        row[RUN] = min(row[RUN], 0.0) - 1.0


@compiled
def _has_jumped(cfg: ResponseSurfaceConfig, row: Array) -> bool:
    """Whether more payoffs in a row are far off than chance can be blamed for (eq. 18)."""
    in_a_row = abs(row[RUN])
    return bool(cfg.level and in_a_row >= IN_A_ROW and in_a_row * math.log(row[USUAL]) < UNLIKELY)


@compiled_large
def _jump(
    cfg: ResponseSurfaceConfig, row: Array, left: float, spread: float, taken: Array
) -> Bounded:
    """Learn nothing of a payoff but the level."""
    error = left * math.exp(-spread)
    take_out(cfg, row, taken, math.sqrt(row[WEIGHT]) * error)
    row[REFERENCE] = min(max(row[REFERENCE] + error, -LARGEST_PAYOFF), LARGEST_PAYOFF)
    row[RUN] = row[SINCE] = 0.0
    forget_level(cfg, row, 0.0)
    return Bounded(0.0, 0.0, row[SQUARES] / row[DEGREES], True, True)


@compiled_large
def bounded(
    cfg: ResponseSurfaceConfig,
    row: Array,
    left: float,
    spread: float,
    taken: Array,
    dropped: bool,
) -> Bounded:
    """Cut what is left of a payoff that a bin has just learned, if it is absurd (eq. 15).

    dropped : the decision's coefficients have not been told of it.
    """
    far = dropped or is_far(row, left)
    _note(row, left, far)
    if not far:
        return Bounded(left, 0.0, 0.0, False, False)
    if _has_jumped(cfg, row):
        return _jump(cfg, row, left, spread, taken)
    usual = FAR * FAR * row[SQUARES] / row[DEGREES]
    if dropped:
        return Bounded(0.0, 0.0, usual, False, True)
    squares, certain = row[SQUARES] / row[WEIGHT], is_certain(row)
    most = math.sqrt(max(usual, squares / RARE if certain else FIRST * squares))
    kept = min(max(left, -most), most)
    cut = (left - kept) * math.exp(-spread)
    take_out(cfg, row, taken, math.sqrt(row[WEIGHT]) * cut)
    square = min(left * left, max(usual, squares / SEVERAL if certain else FIRST * squares))
    return Bounded(kept, cut, square - kept * kept, False, True)


@compiled_large
def bounded_like_bin(
    cfg: ResponseSurfaceConfig,
    row: Array,
    left: float,
    spread: float,
    taken: Array,
    dropped: bool,
    bin_foresaw: Foreseen,
) -> Bounded:
    """Cut of a payoff, if it is far off for a challenger, too, what its bin has cut."""
    far = dropped or is_far(row, left)
    _note(row, left, far)
    if not far:
        return Bounded(left, 0.0, 0.0, False, False)
    if bin_foresaw.jumped or _has_jumped(cfg, row):
        return _jump(cfg, row, left, spread, taken)
    if dropped:
        return Bounded(0.0, 0.0, FAR * FAR * row[SQUARES] / row[DEGREES], False, True)
    take_out(cfg, row, taken, math.sqrt(row[WEIGHT]) * bin_foresaw.cut)
    kept = left - bin_foresaw.cut * math.exp(spread)
    return Bounded(kept, bin_foresaw.cut, bin_foresaw.excess, False, True)
