"""A chain of 80 supermarkets that sets the prices of three orange juices every day.

A decision is the prices of one store for one day, its payoff the profit per visitor of that day,
in cents. The customers are those of the problem `orange-juice`.
"""

from typing import Any, NamedTuple

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.problems import problem

__all__ = ["NAME", "Chain", "Day"]

NAME = "orange-juice"
STEP = 0.05  # dollars
CENTS = 100.0
VISITORS = 1000  # of a store in a day
SHARE = 0.2  # of the days keep the prices of today
LATE_AFTER = 8.0  # seconds after which a payoff is given up
SOON, LATER = 1.0, 2.0  # seconds until a payoff comes: at least, and the mean of what is added
LOST = 0.01  # of the payoffs
STORE = {  # what is known of a store, as the data call it, and in words
    "age60": "age over 60",
    "educ": "education",
    "ethnic": "ethnicity",
    "income": "income",
    "hhlarge": "household size",
    "workwom": "women at work",
    "hval150": "house value",
    "sstrdist": "warehouse distance",
    "sstrvol": "sales vs warehouse",
    "cpdist5": "rival distance",
    "cpwvol5": "sales vs rivals",
}
JUICES = {"tropicana": "Tropicana", "minute_maid": "Minute Maid", "dominicks": "Dominick's"}
SAMPLED = 2000  # visitors, to know how much one differs from another


class Day(NamedTuple):
    """What a day was worth, in cents per visitor.

    paid : the profit, as the service is told it.
    mean, best, today : the profit that is expected of the prices, of the best ones, of today's.
    """

    paid: float
    mean: float
    best: float
    today: float


class Chain:
    """The stores and their customers."""

    def __init__(self, seed: int) -> None:
        self._problem, self._rng = problem(NAME), np.random.default_rng(seed)
        edges = self._problem.decision
        self.box = Box(edges.low, edges.high, edges.names, spacing=STEP)
        self.today = self.box.nearest(self.box.centre)
        stores = self._problem.draw_contexts(self._rng, SAMPLED)
        paid = [self._problem.payoff(store, self.today, self._rng) for store in stores]
        self._spread = float(np.std(paid)) / VISITORS**0.5

    def experiment(self) -> dict[str, Any]:
        """What the service is asked to make."""
        context, box = self._problem.context, self.box
        sides = {"low": context.low.tolist(), "high": context.high.tolist()}
        prices = {"low": box.low.tolist(), "high": box.high.tolist(), "spacing": STEP}
        options = {"start": self.today.tolist(), "share": SHARE, "ttl_seconds": LATE_AFTER}
        stores, juices = [STORE[name] for name in context.names], [JUICES[n] for n in box.names]
        return {
            "context": sides | {"names": stores, "units": ["sd"] * context.dim},
            "decision": prices | {"names": juices, "units": ["$"] * box.dim},
            "payoff": {"name": "profit per visitor", "unit": "¢"},
            "options": options,
        }

    def stores(self, count: int) -> Array:
        """So many stores that want prices for a day."""
        return self._problem.draw_contexts(self._rng, count)

    def day(self, store: Array, prices: Array) -> Day:
        """A day with these prices; the noise of so many visitors together is normal."""
        mean = self._problem.mean_payoff(store, prices)
        paid = mean + self._spread * self._rng.standard_normal()
        best = self._problem.best_payoff(store)
        today = self._problem.mean_payoff(store, self.today)
        return Day(CENTS * paid, CENTS * mean, CENTS * best, CENTS * today)

    def delay(self) -> float | None:
        """Seconds until a payoff comes; a few come too late; None: it is lost."""
        is_lost = self._rng.random() < LOST
        return None if is_lost else SOON + self._rng.exponential(LATER)
