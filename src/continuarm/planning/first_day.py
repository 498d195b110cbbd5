"""What a first day can cost, and what it can show; "eq. F…" cites docs/first-day.md.

Legend: ρ the reach, v the mean square of what a decision deviates from the start, C the curvature
(minus the trace of the payoff's Hessian on the unit cube), s the noise, Δ the improvement.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from continuarm import checks
from continuarm.core.learners.response_surface import ResponseSurface, size
from continuarm.errors import SettingsError
from continuarm.planning import answers
from continuarm.power import signal_needed
from continuarm.table import Table

__all__ = ["WIDEST", "FirstDay", "Span", "amount", "first_day"]

NARROWEST = 1e-4
WIDEST = 0.5  # within this reach of its middle lies the whole box
REACHES = (0.02, 0.05, 0.1, 0.2, 0.5)
LONGEST = 4  # days in a curve


class Span(NamedTuple):
    """A number for decisions drawn evenly within reach, and for decisions at its ends."""

    even: float
    ends: float


@dataclass(frozen=True, kw_only=True, repr=False)
class FirstDay:
    """What a first day can cost, and what it can show (eq. F3 to F12).

    Attributes
    ----------
    decisions : of the day.
    noise : the standard deviation of a payoff around its mean.
    curvature : minus the trace of the payoff's Hessian, the decision scaled to the unit cube; the
        largest that may be, so that costs are on the safe side.
    flattest : the smallest that may be, where known.
    gain : the improvement to be seen, in units of the payoff.
    reach : how far from the start it may decide, as a part of each side of the box.
    dimensions, contexts : of the decision, and of the context.
    mean, range : the start's mean payoff, and the payoff's range over the box, where known.
    budget : what the day may cost, as a part of the mean payoff.
    notes : what should be known about where these numbers come from.
    """

    decisions: int
    noise: float
    curvature: float
    gain: float
    reach: float = 0.1
    dimensions: int = 1
    contexts: int = 0
    mean: float | None = None
    range: float | None = None
    flattest: float | None = None
    budget: float | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.normalise(
            self,
            decisions=checks.whole("decisions", self.decisions, 1),
            noise=amount("noise", self.noise),
            curvature=amount("curvature", self.curvature),
            gain=amount("gain", self.gain),
            reach=checks.number("reach", self.reach, least=NARROWEST, most=WIDEST),
            dimensions=checks.whole("dimensions", self.dimensions, 1, 1000),
            contexts=checks.whole("contexts", self.contexts, 0, 1000),
            mean=checks.optional(amount, "mean", self.mean),
            range=checks.optional(amount, "range", self.range),
            flattest=checks.optional(amount, "flattest", self.flattest),
            budget=checks.optional(amount, "budget", self.budget),
        )
        if self.budget is not None and self.mean is None:
            raise SettingsError("`mean` is needed with a budget, but got None")
        if self.range is not None and self.gain > self.range:
            raise SettingsError(
                "the improvement must lie within the payoff's range, "
                f"but got {self.gain:.4g} > {self.range:.4g}"
            )
        ResponseSurface().configured(self.contexts, self.dimensions)  # refuses too many

    def __repr__(self) -> str:
        cost, seen = self.day, self.seen_after
        return (
            f"<{self.decisions:,} decisions within reach {self.reach:g}: cost {cost.even:.4g} to "
            f"{cost.ends:.4g}; an improvement of {answers.improvement(self)} is seen after "
            f"{answers.count(seen.ends)} to {answers.count(seen.even)}>"
        )

    def __str__(self) -> str:
        return answers.text(self)

    @property
    def coefficients(self) -> int:
        """p, what the model of a bin has to fit."""
        return int(size(ResponseSurface().configured(self.contexts, self.dimensions)))

    @property
    def deviation(self) -> Span:
        """v, the mean square of what a decision deviates from the start (eq. F3)."""
        return Span(self.reach**2 / 3.0, self.reach**2)

    @property
    def per_decision(self) -> Span:
        """What a decision costs on average (eq. F4)."""
        return Span(*(0.5 * self.curvature * v for v in self.deviation))

    @property
    def day(self) -> Span:
        """What the day costs if nothing is learned from it."""
        return Span(*(self.decisions * cost for cost in self.per_decision))

    @property
    def astray(self) -> float:
        """What the day costs if noise also leads the centre a reach astray (eq. F5)."""
        return 2.0 * self.day.ends

    @property
    def worst_decision(self) -> float | None:
        """What the worst single decision costs, wherever the start is (eq. F6)."""
        return None if self.range is None else 4.0 * self.reach * (1.0 - self.reach) * self.range

    @property
    def at_edge(self) -> float | None:
        """What a decision costs at most where the start is best, on an edge (eq. F7)."""
        return None if self.range is None else self.reach * self.range

    @property
    def information(self) -> float:
        """S, the squared deviations that show the improvement, per dimension (eq. F9)."""
        signal = signal_needed(self.dimensions)
        return signal * self.dimensions * self.noise**2 / (2.0 * self.curvature * self.gain)

    @property
    def seen_after(self) -> Span:
        """After how many decisions the improvement is seen (eq. F10)."""
        return Span(*(self.coefficients + self.information / v for v in self.deviation))

    @property
    def seen_at_the_latest(self) -> Span | None:
        """The same where the payoff is as flat as it may be; None: nobody knows."""
        if self.flattest is None:
            return None
        return replace(self, curvature=self.flattest, flattest=None).seen_after

    @property
    def cost_until_seen(self) -> float:
        """What it costs to see the improvement: the same at any reach but for p decisions
        (eq. F11)."""
        fitting = self.coefficients * self.per_decision.ends
        return 0.5 * self.curvature * self.information + fitting

    @property
    def pays_back_after(self) -> float:
        """Decisions at the improvement that earn this cost: so many start-regrets it is."""
        return self.cost_until_seen / self.gain

    @property
    def reach_in_time(self) -> float | None:
        """The reach with which it is seen on this day, drawn evenly; None: with no reach
        (eq. F12)."""
        left = self.decisions - self.coefficients
        found = math.sqrt(3.0 * self.information / left) if left > 0 else math.inf
        return found if found <= WIDEST else None

    @property
    def reach_in_budget(self) -> float | None:
        """The largest reach whose ends the budget can pay (eq. F12)."""
        if self.budget is None or self.mean is None:
            return None
        return min(math.sqrt(2.0 * self.budget * self.mean / self.curvature), WIDEST)

    @property
    def budget_of_day(self) -> float | None:
        """The budget in units of the payoff."""
        if self.budget is None or self.mean is None:
            return None
        return self.budget * self.mean * self.decisions

    def with_reach(self, reach: float) -> "FirstDay":
        """The same day with another reach."""
        return replace(self, reach=reach)

    def table(self) -> Table:
        """The frontier: for several reaches, what it costs and when it is seen."""
        return answers.frontier([self.with_reach(r) for r in sorted({*REACHES, self.reach})])

    def curve(self, points: int = 101) -> Table:
        """The cost so far against decisions, drawn evenly and at the ends; what figures draw."""
        seen, longest = self.seen_after, float(LONGEST * self.decisions)
        last = min(1.1 * seen.even, longest) if seen.ends < longest else 0.0
        last = max(last, float(self.decisions))
        at = [last * k / (points - 1) for k in range(points)]
        rows = [(n, *(n * cost for cost in self.per_decision)) for n in at]
        return Table.of(("decisions", "drawn evenly", "at the ends"), rows)

    def to_dict(self) -> dict[str, Any]:
        """All numbers, for JSON; None where something is not known."""
        return answers.report(self)


def amount(name: str, value: float) -> float:
    """A number whose products with a few others can be counted with."""
    return checks.number(name, value, least=1e-30, most=1e30)


def first_day(
    *,
    noise: float,
    range: float,
    decisions: int = 5000,
    mean: float | None = None,
    dimensions: int = 1,
    contexts: int = 0,
    improvement: float = 0.05,
    reach: float = 0.1,
    budget: float | None = None,
) -> FirstDay:
    """What a first day can cost and show, from a few numbers of one's own.

    Parameters
    ----------
    noise : the standard deviation of a payoff around its mean.
    range : how much the mean payoff differs between the best and the worst decision of the box.
    decisions : of the day.
    mean : the mean payoff of the present rule.
    dimensions, contexts : of the decision, and of the context.
    improvement : what should be seen, as a part of `mean`; of `range`, if there is no mean.
    reach : how far from the start it may decide, as a part of each side of the box.
    budget : what the day may cost, as a part of `mean`.

    >>> first_day(noise=2.0, range=1.0, mean=1.5)
    <5,000 decisions within reach 0.1: cost 66.67 to 200; an improvement of 0.075 (5 %) is seen
     after 2,620 to 7,852>
    """
    mean, range = checks.optional(amount, "mean", mean), amount("range", range)
    return FirstDay(
        decisions=decisions,
        noise=noise,
        curvature=8.0 * range,  # eq. F2
        gain=amount("improvement", improvement) * (range if mean is None else mean),
        reach=reach,
        dimensions=dimensions,
        contexts=contexts,
        mean=mean,
        range=range,
        flattest=2.0 * range,
        budget=budget,
    )
