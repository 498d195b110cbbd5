"""Notes: sums over a policy's whole life that a diagnosis needs; their number is fixed.

Legend: q how surprised a bin was by a payoff, in standard deviations of its noise; d the logarithm
of 1 + the delay of a payoff. Of learners that cannot say how surprised they are, only what is told
and lost is noted.
"""

import math
from typing import NamedTuple

import numpy as np

from continuarm.core.compiling import Array, compiled, in_python
from continuarm.core.request import MOST_SURPRISED, Foreseen
from continuarm.core.state import Space

__all__ = [
    "MOST_WATCHED",
    "NOBODY",
    "Asking",
    "by_asking",
    "by_time",
    "empty",
    "fits",
    "note_lost",
    "note_payoff",
    "note_told",
]

# Payoffs learned, and their mean lately.
PAYOFFS, MEAN = range(2)
# Those that surprise is known of: how many, Σq²; the most surprising one: how much, its payoff,
# its bin; the logarithm of how much better payoffs are foreseen by the decision than without, and
# the largest that it ever was.
JUDGED, SQUARES, LARGEST, ITS_PAYOFF, ITS_BIN, DECIDED, MOST_DECIDED = range(2, 9)
# Of those that were asked for: how many, Σd, Σd², Σq, Σq², Σqd, Σq²d, Σq²d².
LATE, DELAY, DELAY_SQUARES, LATE_SUM, LATE_SQUARES, PRODUCT, PRODUCT_1, PRODUCT_2 = range(9, 17)
# Payoffs by time: how many each period holds at most, then each: how many, Σq, how many came while
# the level was followed. Decisions by when they were asked: how many each period holds, then each:
# told, lost, and for each coordinate of context and decision, told and lost, Σ and Σ of squares.
TIME, ASKED, FIRST = 17, 18, 19
PERIODS, ASKING_PERIODS = 16, 8
COUNT, SUM, FOLLOWED, PERIOD = range(4)
TOLD_OF, LOST_OF, COORDINATES = range(3)
MOST_WATCHED = 64  # coordinates of context and of decision, each
LATELY = 1000.0  # payoffs
MOST_SIZE = 1e150
MOST = 2.0**52
SMALLEST = 1e-300
NOBODY = -1.0
COUNTED = [PAYOFFS, JUDGED, ITS_BIN, LATE]
SUMS = [SQUARES, DECIDED, MOST_DECIDED, *range(DELAY, TIME)]


class Asking(NamedTuple):
    """When a decision was asked for."""

    number: float  # of those asked for before it; NOBODY: nobody has, as those of a log
    delay: float  # of its payoff, in decisions, or in seconds where there is a clock


@compiled
def asking_width(dx: int, dy: int) -> int:
    """Numbers of a period of asking."""
    return COORDINATES + 4 * (min(dx, MOST_WATCHED) + min(dy, MOST_WATCHED))


@compiled
def asking_begin(dx: int, dy: int, period: int) -> int:
    """Where a period of asking begins."""
    return FIRST + PERIODS * PERIOD + period * asking_width(dx, dy)


def empty(dx: int, dy: int) -> Array:
    """Notes of nothing."""
    notes = np.zeros(in_python(asking_begin)(dx, dy, ASKING_PERIODS))
    notes[TIME] = notes[ASKED] = 1.0
    return notes


@compiled
def note_told(notes: Array, space: Space, number: float) -> None:
    """The payoff of a decision came; the space holds its context and the decision."""
    if number >= 0.0:
        _note_fate(notes, space, number, TOLD_OF)


@compiled
def note_lost(notes: Array, space: Space, number: float) -> None:
    """The payoff of a decision will never come."""
    if number >= 0.0:
        _note_fate(notes, space, number, LOST_OF)


@compiled
def note_payoff(
    notes: Array, space: Space, payoff: float, foreseen: Foreseen, bin_: float, asking: Asking
) -> None:
    """A bin has learned a payoff."""
    clock = notes[PAYOFFS]
    notes[PAYOFFS] = clock + 1.0
    weight = 1.0 / min(clock + 1.0, LATELY)
    notes[MEAN] = (1.0 - weight) * notes[MEAN] + weight * payoff
    note_told(notes, space, asking.number)
    if foreseen.judged:
        _note_surprise(notes, clock, foreseen)
        _note_largest(notes, payoff, foreseen, bin_)
        if asking.number >= 0.0:
            _note_delay(notes, foreseen.surprise, math.log1p(asking.delay))


@compiled
def _note_surprise(notes: Array, clock: float, foreseen: Foreseen) -> None:
    q = foreseen.surprise
    notes[JUDGED] += 1.0
    notes[SQUARES] += q * q
    notes[DECIDED] += foreseen.decided
    notes[MOST_DECIDED] = max(notes[MOST_DECIDED], notes[DECIDED])
    while clock >= PERIODS * notes[TIME]:
        _merge(notes, FIRST, PERIODS, PERIOD)
        notes[TIME] *= 2.0
    k = FIRST + PERIOD * int(clock / notes[TIME])
    notes[k + COUNT] += 1.0
    notes[k + SUM] += q
    notes[k + FOLLOWED] += 1.0 if foreseen.follows else 0.0


@compiled
def _note_largest(notes: Array, payoff: float, foreseen: Foreseen, bin_: float) -> None:
    size = min(math.sqrt(foreseen.uncut) / math.sqrt(foreseen.variance), MOST_SIZE)
    if size > notes[LARGEST]:
        notes[LARGEST], notes[ITS_PAYOFF], notes[ITS_BIN] = size, payoff, bin_


@compiled
def _note_delay(notes: Array, q: float, d: float) -> None:
    square = q * q
    notes[LATE] += 1.0
    notes[DELAY] += d
    notes[DELAY_SQUARES] += d * d
    notes[LATE_SUM] += q
    notes[LATE_SQUARES] += square
    notes[PRODUCT] += q * d
    notes[PRODUCT_1] += square * d
    notes[PRODUCT_2] += square * d * d


@compiled
def _note_fate(notes: Array, space: Space, number: float, fate: int) -> None:
    """Note what became of a decision, with those that were asked for at about the same time."""
    dx, dy = space.x.shape[0], space.y.shape[0]
    while number >= ASKING_PERIODS * notes[ASKED]:
        _merge(notes, asking_begin(dx, dy, 0), ASKING_PERIODS, asking_width(dx, dy))
        notes[ASKED] *= 2.0
    k = asking_begin(dx, dy, int(number / notes[ASKED]))
    notes[k + fate] += 1.0
    k += COORDINATES + 2 * fate
    k = _note_point(notes, k, space.x, min(dx, MOST_WATCHED))
    _note_point(notes, k, space.y, min(dy, MOST_WATCHED))


@compiled
def _note_point(notes: Array, k: int, point: Array, n: int) -> int:
    """Add the first n coordinates, and their squares, each four numbers after the last."""
    for i in range(n):
        notes[k] += point[i]
        notes[k + 1] += point[i] * point[i]
        k += 4
    return k


@compiled
def _merge(notes: Array, begin: int, periods: int, width: int) -> None:
    """Let two periods each be one, so that there is room for as many again."""
    for period in range(periods):
        low, high = begin + 2 * period * width, begin + (2 * period + 1) * width
        for i in range(width):
            both = notes[low + i] + notes[high + i] if 2 * period < periods else 0.0
            notes[begin + period * width + i] = both


def by_time(notes: Array) -> Array:
    """One row per period of payoffs."""
    return notes[FIRST : FIRST + PERIODS * PERIOD].reshape(PERIODS, PERIOD)


def by_asking(notes: Array) -> tuple[Array, Array]:
    """Decisions told and lost in each period; by coordinate and fate their sums and squares."""
    rows = notes[FIRST + PERIODS * PERIOD :].reshape(ASKING_PERIODS, -1)
    return rows[:, :COORDINATES], rows[:, COORDINATES:].reshape(ASKING_PERIODS, -1, 2, 2)


def fits(notes: Array, dx: int, dy: int) -> bool:
    """Whether notes that were read could have been noted."""
    if notes.shape != empty(dx, dy).shape or not np.isfinite(notes).all():
        return False
    periods, (fates, points), widths = by_time(notes), by_asking(notes), notes[[TIME, ASKED]]
    counts = np.concatenate([notes[COUNTED], periods[:, COUNT], fates.ravel(), widths])
    squares = notes[[SQUARES, LARGEST, DELAY_SQUARES, LATE_SQUARES, PRODUCT_2]]
    return bool(
        ((counts >= 0.0) & (counts < MOST) & (counts % 1 == 0.0)).all()
        and (widths >= 1.0).all()
        and (notes[[JUDGED, LATE]] <= notes[PAYOFFS]).all()
        and (squares >= 0.0).all()
        and (abs(notes[SUMS]) <= MOST * MOST).all()
        and (abs(periods[:, SUM]) <= MOST_SURPRISED * periods[:, COUNT]).all()
        and ((periods[:, FOLLOWED] >= 0.0) & (periods[:, FOLLOWED] <= periods[:, COUNT])).all()
        and ((points >= 0.0) & (points <= fates[:, None, :, None])).all()
    )
