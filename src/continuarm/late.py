"""Payoffs of a simulation that come late: when which one is told, and what waits for it."""

import numpy as np
from numpy.typing import NDArray

from continuarm.feedback import NEVER
from continuarm.jit import Array
from continuarm.policies import BinnedPolicy

__all__ = ["Arrivals", "Ring"]

Whole = NDArray[np.int64]


class Arrivals:
    """Which payoffs are told after each decision of a block: delays are known in advance.

    A payoff with delay d is told after d further decisions; those that come at the same time in
    the order of their decisions. What is older than the policy's time to live is told no more.
    With `held` none is told by itself: the payoff waits until its time is up.
    """

    def __init__(self, ttl: int | None, horizon: int, held: bool = False) -> None:
        self.ttl, self.horizon, self.held = ttl, horizon, held
        self.base = self.next_base = 0
        self.numbers: Whole = np.empty(0, np.int64)
        self.offsets: Whole = np.empty(0, np.int64)
        self.delays: Whole = np.empty(0, np.int64)
        self._later: tuple[Whole, Whole] = self.numbers, self.numbers  # numbers, when they are due

    def schedule(self, delays: Whole) -> None:
        """Sort the arrivals of the next block."""
        n, self.base = len(delays), self.next_base
        self.next_base += n
        longest = self.horizon if self.ttl is None else min(self.ttl, self.horizon)
        delays = np.where(delays < longest, delays, NEVER)
        self.delays = delays
        made = np.flatnonzero(delays < (0 if self.held else NEVER))
        numbers = np.concatenate([self._later[0], self.base + made])
        due = np.concatenate([self._later[1], self.base + made + delays[made]])
        now = due < self.next_base
        self._later = numbers[~now], due[~now]
        numbers, due = numbers[now], due[now]
        order = np.lexsort((numbers, due))
        self.numbers = numbers[order]
        self.offsets = np.searchsorted(due[order], self.base + np.arange(n + 1))

    def arrives(self, t: int) -> bool:
        """Whether the payoff of decision `t` of the block will ever be told."""
        return bool(self.delays[t] < NEVER)

    def after(self, t: int) -> list[int]:
        """The decisions whose payoffs are told after decision `t` of the block."""
        return [int(k) for k in self.numbers[self.offsets[t] : self.offsets[t + 1]]]


class Ring:
    """The open decisions of a compiled run, each at its number modulo the ring's length."""

    def __init__(self, policy: BinnedPolicy, horizon: int) -> None:
        self.engine, self.missing = policy.engine, policy.missing
        self.arrivals = Arrivals(policy.ttl, horizon, held=self.missing is not None)
        self.position: Whole = np.zeros(2, np.int64)
        self.made = 0  # decisions
        self._make(0)

    def _make(self, room: int) -> None:
        dx, dy = self.engine.dx, self.engine.dy
        self.tickets: Whole = np.zeros((room, 3), np.int64)  # rows, tickets, delays
        self.is_open = np.zeros(room, np.bool_)
        self.x, self.y = np.zeros((room, dx)), np.zeros((room, dy))
        self.payoffs: Array = np.zeros(room)
        self.slopes = np.zeros((room, dy))

    @property
    def _arrays(self) -> tuple[NDArray[np.generic], ...]:
        return self.tickets, self.is_open, self.x, self.y, self.payoffs, self.slopes

    def schedule(self, delays: Whole) -> None:
        """Sort the arrivals of the next block, and make room for what stays open."""
        arrivals, before = self.arrivals, self.arrivals.next_base
        arrivals.schedule(delays)
        told = arrivals.delays < NEVER
        needed = 1 + int(arrivals.delays[told].max(initial=0))
        if arrivals.ttl is not None and (arrivals.held or not told.all()):
            needed = min(arrivals.ttl, arrivals.horizon) + 1
        room = len(self.is_open)
        if needed <= room:
            return
        old = self._arrays
        self._make(needed)
        numbers = np.arange(max(before - room, 0), before)
        for new, past in zip(self._arrays, old, strict=True):
            new[numbers % needed] = past[numbers % max(room, 1)]

    @property
    def arguments(self) -> tuple[object, ...]:
        """What the compiled loop needs."""
        arrivals = self.arrivals
        ttl = 0 if arrivals.ttl is None else arrivals.ttl
        schedule = (arrivals.delays, arrivals.numbers, arrivals.offsets, self.position)
        held = arrivals.held, self.missing or 0.0
        return (arrivals.base, ttl, *held, *schedule, *self._arrays)

    def forget_all(self) -> None:
        """Forget what is still open, the oldest first; learn what was told and held back."""
        room = len(self.is_open)
        for number in range(max(self.made - room, 0), self.made):
            k = number % room
            if self.is_open[k]:
                row, ticket, delay = self.tickets[k].tolist()
                if self.arrivals.held and delay < self.made - number:
                    payoff = float(self.payoffs[k])
                    self.engine.tell(row, ticket, self.x[k], self.y[k], payoff, self.slopes[k])
                else:
                    self.engine.forget(row, ticket, self.x[k], self.y[k])
                self.is_open[k] = False
