"""How much better our decisions are than the incumbent's: a confidence sequence.

A share s of decisions, chosen by the policy's own draws, is the incumbent's. Of each decision
whose time is up, in the order in which they were asked, let z be the payoff, and let g and g' be
what ours and the incumbent's have paid lately, known before. Then

    α = g + (z - g)/(1 - s) if it was ours, else g
    β = g' + (z - g')/s if it was the incumbent's, else g'

have, given all that happened before, the expected payoffs of our decision and of the incumbent's
as their means, whatever the policy has learned. The mean of α - β less that of its expectations is
a martingale over time, which stays within

    σ √(2 (nr + 1)/(n² r) ln(√(nr + 1)/a))

for all n at once with a probability of 1 - a (the asymptotic confidence sequence of Waudby-Smith,
Arbour, Sinha, Kennedy and Ramdas, 2024), σ² the variance of α - β so far. So one may look after
every decision. docs/switching-on.md says under which conditions, benchmarks/uplift.py measures it.
"""

import math
from collections import OrderedDict
from collections.abc import Container
from dataclasses import dataclass
from typing import Any, NamedTuple

from continuarm import checks
from continuarm.errors import SettingsError

__all__ = ["Awaited", "Comparison", "Interval", "Tally", "Uplift", "checked_share"]
__all__ += ["tally_of", "uplift_of"]

LEAST_SHARE = 0.001
MOST = 2**52  # decisions
LARGEST = 1e100  # payoff: squares must stay finite
LATELY = 1000  # payoffs that g and g' look back
BEGIN = 20  # decisions that only say what payoffs are like
TIGHT = 10_000.0  # decisions at which the sequence is as tight as it can be
ENOUGH = 10.0  # times the largest square of α, and of β: below, one payoff rules what is known


class Tally(NamedTuple):
    """What is kept of the decisions that have been counted: nothing grows with their number."""

    ours: int = 0  # decisions
    theirs: int = 0
    ours_lately: float = 0.0  # g
    theirs_lately: float = 0.0  # g'
    counted: int = 0  # n, those after the first
    a: float = 0.0  # the mean of α
    b: float = 0.0  # of β
    aa: float = 0.0  # the sum of squares of α less its mean
    ab: float = 0.0  # of products
    bb: float = 0.0
    largest: float = 0.0  # square of α less its mean before
    their_largest: float = 0.0  # of β

    def with_payoff(self, payoff: float, *, theirs: bool, share: float) -> "Tally":
        """The same with one more decision, which was the incumbent's or ours."""
        payoff = min(max(payoff, -LARGEST), LARGEST)
        ours, others, g, h, counted, a, b, aa, ab, bb, largest, their_largest = self
        if ours + others >= BEGIN:
            if theirs:
                alpha, beta = g, h + (payoff - h) / share
            else:
                alpha, beta = g + (payoff - g) / (1.0 - share), h
            from_a, from_b = (alpha - a, beta - b) if counted else (alpha - g, beta - h)
            largest = max(largest, from_a * from_a)
            their_largest = max(their_largest, from_b * from_b)
            counted += 1  # Welford's way: a level that is large against the noise does no harm
            from_a, from_b = alpha - a, beta - b
            a, b = (a + from_a / counted, b + from_b / counted) if counted > 1 else (alpha, beta)
            aa, ab = aa + from_a * (alpha - a), ab + from_a * (beta - b)
            bb += from_b * (beta - b)
        if theirs:
            others += 1
            h += (payoff - h) / min(others, LATELY)
            g = g if ours else h
        else:
            ours += 1
            g += (payoff - g) / min(ours, LATELY)
            h = h if others else g
        sizes = (aa, ab, bb, largest, their_largest)
        return Tally(ours, others, g, h, counted, a, b, *sizes)

    @property
    def is_enough(self) -> bool:
        """Whether no single payoff rules what is known, of ours or of the incumbent's."""
        return (
            self.aa > ENOUGH * self.largest > 0.0 and self.bb > ENOUGH * self.their_largest > 0.0
        )


def tally_of(numbers: Any) -> Tally:
    """The tally of these numbers, which somebody has written."""
    tally = Tally(*numbers)
    ours, theirs, counted = (checks.whole("a count", n, 0, MOST) for n in _counts(tally))
    most = 2.0 * LARGEST / LEAST_SHARE
    means = (tally.ours_lately, tally.theirs_lately, tally.a, tally.b)
    squares = (tally.aa, tally.bb, tally.largest, tally.their_largest)
    small = all(abs(mean) <= most for mean in means)
    small &= all(0.0 <= square <= MOST * most * most for square in squares)
    together = tally.ab * tally.ab <= (1.0 + 1e-9) * tally.aa * tally.bb + 1e-300
    if not small or not together or counted != max(ours + theirs - BEGIN, 0):
        raise ValueError(f"a tally of such numbers is needed, but got {list(tally)}")
    return tally._replace(ours=ours, theirs=theirs, counted=counted)


def _counts(tally: Tally) -> list[Any]:
    """As whole numbers, if they are."""
    numbers = (tally.ours, tally.theirs, tally.counted)
    return [int(n) if float(n).is_integer() else n for n in numbers]


class Comparison:
    """What is compared with the incumbent, a share of decisions.

    tally : of the decisions that were counted.
    line : those that will be, in this order, and whether each is the incumbent's.
    paid : what those of them paid that are closed.
    """

    def __init__(self, share: float) -> None:
        self.share, self.tally = share, Tally()
        self.line: OrderedDict[int, bool] = OrderedDict()
        self.paid: dict[int, float] = {}

    def copy(self) -> "Comparison":
        """An independent one."""
        other = Comparison(self.share)
        other.tally, other.line, other.paid = self.tally, self.line.copy(), self.paid.copy()
        return other

    def count_closed(self, open_: Container[int]) -> None:
        """Count what the decisions paid whose turn it is, and forget those that were lost.

        The order is that of asking, whatever the order of payoffs: those that come late are not
        like the others.
        """
        line, paid = self.line, self.paid
        while line:
            id_ = next(iter(line))
            if id_ in open_:
                return
            tally = self.tally
            if id_ in paid:
                tally = tally.with_payoff(paid[id_], theirs=line[id_], share=self.share)
            self.tally = tally  # a stroke: nothing is called from here on
            del line[id_]
            if id_ in paid:
                del paid[id_]

    def uplift(self, confidence: float, awaited: "Awaited | None") -> "Uplift":
        """What it says."""
        return uplift_of(self.tally, len(self.line), confidence, awaited)


class Interval(NamedTuple):
    """An estimate, and what it is between."""

    low: float
    estimate: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:+.4g} [{self.low:+.4g}, {self.high:+.4g}]"


class Awaited(NamedTuple):
    """The open decision that all others wait for.

    decisions : that were asked since.
    seconds : that have passed since, where there is a clock.
    """

    id: int
    decisions: int
    seconds: float | None

    def __str__(self) -> str:
        ago = "1 decision" if self.decisions == 1 else f"{self.decisions:,} decisions"
        seconds = "" if self.seconds is None else f" and {self.seconds:,.0f} seconds"
        return f"asked {ago}{seconds} ago"


@dataclass(frozen=True)
class Uplift:
    """How much better our decisions are than the incumbent's would have been.

    per_decision : in payoff, the mean over the decisions that were counted; None: too few.
    percent : of the incumbent's mean payoff; None: too few, or that may be 0.
    counted, incumbents : decisions, and those of them that were the incumbent's.
    waiting : decisions that are not counted yet: they, or some asked before them, are open.
    confidence : that the intervals are right at every moment at once.
    awaited : the oldest of them that is open, and since when; None: nothing waits.
    """

    per_decision: Interval | None
    percent: Interval | None
    counted: int
    incumbents: int
    waiting: int
    confidence: float
    awaited: Awaited | None = None

    def __str__(self) -> str:
        noun = "decision" if self.counted == 1 else "decisions"
        of = f"of {self.counted:,} {noun}, {self.incumbents:,} of them the incumbent's"
        if self.waiting:
            of += f" ({self.waiting:,} more wait{self._for()})"
        if self.per_decision is None:
            return f"too little is known yet {of}"
        text = f"{self.per_decision} per decision"
        if self.percent is not None:
            low, estimate, high = self.percent
            text += f", {estimate:+.1f} % [{low:+.1f} %, {high:+.1f} %]"
        return f"{text}: the mean {of}, right at every look with {100.0 * self.confidence:g} %"

    def _for(self) -> str:
        """What the others wait for."""
        if self.awaited is None:
            return " until all before them are told or given up"
        return f" until decision {self.awaited.id}, {self.awaited}, is told or given up"


def checked_share(share: Any) -> float:
    """A share of decisions that can be compared with the others; 0: none."""
    found = checks.number("share", share, zero=True)
    if found != 0.0 and not LEAST_SHARE <= found <= 1.0 - LEAST_SHARE:
        raise SettingsError(
            f"`share` must be 0, or from {LEAST_SHARE} to {1.0 - LEAST_SHARE}, but got {share!r}"
        )
    return found


def uplift_of(
    tally: Tally, waiting: int, confidence: float, awaited: Awaited | None = None
) -> Uplift:
    """What a tally says."""
    n, per_decision, percent = tally.counted, None, None
    if tally.is_enough:
        width = _width(n, 1.0 - confidence)
        a, b, aa, ab, bb = tally.a, tally.b, tally.aa / n, tally.ab / n, tally.bb / n
        half = width * math.sqrt(max(aa - 2.0 * ab + bb, 0.0))
        per_decision = Interval(a - b - half, a - b, a - b + half)
        percent = _percent(a, b, *(width * width * square for square in (aa, ab, bb)))
    counted = tally.ours + tally.theirs, tally.theirs
    return Uplift(per_decision, percent, *counted, waiting, confidence, awaited)


def _width(n: int, alpha: float) -> float:
    """Half of the sequence's width after n decisions, in standard deviations."""
    r = (-2.0 * math.log(alpha) + math.log(1.0 - 2.0 * math.log(alpha))) / TIGHT
    return math.sqrt(2.0 * (n * r + 1.0) / (n * n * r) * math.log(math.sqrt(n * r + 1.0) / alpha))


def _percent(a: float, b: float, aa: float, ab: float, bb: float) -> Interval | None:
    """The q for which 0 is in the sequence of ours - (1 + q) times the incumbent's.

    The variances are times the squared width. Where payoffs are costs, fewer are better.
    """
    square = b * b - bb
    if square <= 0.0:
        return None
    middle = (a * b - ab) / square
    half = math.sqrt(max(middle * middle - (a * a - aa) / square, 0.0))
    ends = [100.0 * math.copysign(q - 1.0, (q - 1.0) * b) for q in (middle - half, middle + half)]
    return Interval(min(ends), 100.0 * (a - b) / abs(b), max(ends))
