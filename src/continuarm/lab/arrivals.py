"""Payoffs of a simulation that come late: when which one is told, and what waits for it."""

import numpy as np
from numpy.typing import NDArray

from continuarm.lab.loops import DELAY, IS_OPEN, OPEN_BIN, OPEN_ROW, OPEN_TICKET, SEAT, Late
from continuarm.live.abilities import CompiledPolicy
from continuarm.problems.feedback import NEVER

__all__ = ["Arrivals", "Ring"]

Whole = NDArray[np.int64]
NO_GRADIENT = np.empty(0)


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
    """The open decisions of a compiled run, each at its number modulo the ring's length.

    Of each the ring keeps context and decision in units, the gradient per side of the box, and
    the payoff.
    """

    def __init__(self, policy: CompiledPolicy, horizon: int) -> None:
        self.life, self.model = policy.life, policy.life.model
        self.arrivals = Arrivals(policy.ttl, horizon, held=policy.missing is not None)
        self.made = 0  # decisions
        self.come = 0  # payoffs of the blocks before this one that come some time
        self.made_later: Whole = np.empty(0, np.int64)
        self._make(0)

    def _make(self, room: int) -> None:
        self.seats: Whole = np.zeros((room, SEAT), np.int64)
        self.kept = np.zeros((room, self.model.dx + 2 * self.model.dy + 1))

    def schedule(self, delays: Whole) -> None:
        """Sort the arrivals of the next block, and make room for what stays open."""
        arrivals, before = self.arrivals, self.arrivals.next_base
        self.come += int(np.count_nonzero(arrivals.delays < NEVER))
        arrivals.schedule(delays)
        self.made_later = np.empty(len(arrivals.numbers) + len(delays), np.int64)
        told = arrivals.delays < NEVER
        needed = 1 + int(arrivals.delays[told].max(initial=0))
        room = len(self.seats)
        if arrivals.held or not told.all():  # what is never told stays open
            longest = arrivals.next_base if arrivals.ttl is None else arrivals.ttl
            needed = min(longest, arrivals.horizon) + 1
        if needed <= room:
            return
        needed = max(needed, min(2 * room, arrivals.horizon + 1))
        seats, kept = self.seats, self.kept
        self._make(needed)
        numbers = np.arange(max(before - room, 0), before)
        self.seats[numbers % needed] = seats[numbers % max(room, 1)]
        self.kept[numbers % needed] = kept[numbers % max(room, 1)]

    @property
    def bundle(self) -> Late:
        """What the compiled loop needs."""
        arrivals = self.arrivals
        times = arrivals.delays, arrivals.numbers, arrivals.offsets
        return Late(*times, self.kept, self.seats, self.made_later)

    def forget_all(self) -> None:
        """Forget what is still open, the oldest first; learn what was told and held back."""
        room, model, forgotten, early = len(self.seats), self.model, 0, 0
        before = self.life.open.asked - self.made  # those that were asked before this run
        for number in range(max(self.made - room, 0), self.made):
            seat, kept = self.seats[number % room], self.kept[number % room]
            if seat[IS_OPEN]:
                row, ticket = int(seat[OPEN_ROW]), int(seat[OPEN_TICKET])
                context, value = kept[: model.dx], kept[model.dx : model.dx + model.dy]
                if self.arrivals.held and seat[DELAY] < self.made - number:
                    payoff = float(kept[-1])
                    start = self.life.start_for(context)
                    asking = float(before + number), float(self.made - number - 1)
                    paid = (payoff, NO_GRADIENT, start, *asking)
                    bin_ = model.tell(row, ticket, context, value, *paid)
                    if seat[OPEN_BIN] == 0:
                        self.life.bin_is_made(bin_)
                else:
                    model.forget(row, ticket, context, value, float(before + number))
                    forgotten += 1
                    early += int(seat[DELAY] < NEVER)
                seat[IS_OPEN] = 0
        last = self.arrivals.delays[: self.made - self.arrivals.base]
        told = self.come + int(np.count_nonzero(last < NEVER)) - early
        self.life.open.closed.add(told, forgotten, self.made - told - forgotten)
