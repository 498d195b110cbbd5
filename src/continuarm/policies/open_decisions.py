"""The decisions of a policy that wait for their payoff, and how long they may."""

import time
from collections.abc import Sequence
from copy import copy
from secrets import token_hex
from typing import Any, Final

import numpy as np

from continuarm import checks
from continuarm.decision import Decision
from continuarm.errors import InputError, UnknownDecisionError
from continuarm.jit import Array

__all__ = ["ASKED_AT", "TTL", "VALUE", "Open", "OpenDecisions"]

TTL = 100_000  # decisions that a payoff may take, unless a policy is told otherwise

# What is kept of a decision until its payoff is told: row, ticket, x, y, value, when it was asked.
# A plain tuple of numbers and arrays, because the garbage collector stops looking at those, and
# there may be a great many.
Open = tuple[int, int, Array, Array, Array, float]
WHOLE = (int, np.integer)
FAR = 1e300  # seconds
VALUE: Final = 4
ASKED_AT: Final = 5


class OpenDecisions:
    """Open decisions by number; numbers are given in order and never twice."""

    def __init__(self, ttl: int | None, ttl_seconds: float | None) -> None:
        self.ttl = None if ttl is None else checks.whole("ttl", ttl, 1)
        self.ttl_seconds = None
        if ttl_seconds is not None:
            self.ttl_seconds = checks.number("ttl_seconds", ttl_seconds)
        self.waiting: dict[int, Open] = {}
        self.held: dict[int, float] = {}  # payoffs told before their decision's time is up
        self.tokens: list[tuple[int, str]] = []  # from this number on, decisions bear this token
        self.next_id = 0
        self.oldest = 0  # all before it are closed; kept up only where there is `ttl_seconds`
        self.now = -np.inf
        self.new_token()

    def copy(self) -> "OpenDecisions":
        """An independent one in the same state; what it hands out is its own."""
        other = copy(self)
        other.waiting, other.held = dict(self.waiting), dict(self.held)
        other.new_token()
        return other

    def new_token(self) -> None:
        """Tell what is handed out from now on from what others hand out under the same numbers."""
        oldest = min(self.waiting, default=self.next_id)
        before = [one for one in self.tokens if one[0] < self.next_id]
        needed = max((k for k, one in enumerate(before) if one[0] <= oldest), default=0)
        kept = before[needed:] if self.waiting else []
        self.tokens = [*kept, (self.next_id, token_hex(8))]

    @property
    def token(self) -> str:
        """What decisions handed out now bear."""
        return self.tokens[-1][1]

    def bears(self, id_: int, token: object) -> bool:
        """Whether the decision of this number was handed out with this token."""
        for first, own in reversed(self.tokens):
            if first <= id_:
                return own == token
        return False

    def number_of(self, decision: Any, token: object = None) -> int:
        """The number of an open decision, which may be given instead of it, with its token."""
        id_ = decision
        if isinstance(decision, Decision):
            id_, token = decision.id, decision.policy
        if isinstance(id_, bool) or not isinstance(id_, WHOLE):
            raise UnknownDecisionError(f"a Decision or its number is needed, but got {decision!r}")
        if token is not None and not self.bears(int(id_), token):
            raise UnknownDecisionError(
                f"the decision must be of this policy, but got {decision!r} of another"
            )
        if id_ not in self.waiting or id_ in self.held:
            raise UnknownDecisionError(
                "the decision must be open (handed out, not told or forgotten before, and not "
                f"older than its time to live), but got {decision!r}"
            )
        if isinstance(decision, Decision):
            value = self.waiting[int(id_)][VALUE]
            if decision.value is not value and not np.array_equal(decision.value, value):
                raise UnknownDecisionError(
                    f"decision {id_} must be {value.tolist()}, but got {decision!r}"
                )
        return int(id_)

    def add(self, decision: Open) -> int:
        """The number of a new decision."""
        id_ = self.next_id
        self.waiting[id_] = decision
        self.next_id = id_ + 1
        return id_

    def time(self, now: Any) -> float:
        """The caller's time, the clock's where it is not given; it never goes back."""
        if self.ttl_seconds is None:
            return 0.0
        if now is None:
            now = time.time()
        elif isinstance(now, bool) or not isinstance(now, checks.REAL) or not -FAR < now < FAR:
            raise InputError(f"`now` must be a finite number of seconds, but got {now!r}")
        return max(self.now, float(now))

    def due(self, now: float) -> Sequence[int]:
        """The decisions whose time is over when the next one is asked, the oldest first."""
        late = () if self.ttl_seconds is None else self._late(now, self.ttl_seconds)
        if self.ttl is None or self.next_id - self.ttl not in self.waiting:
            return late
        return sorted({self.next_id - self.ttl, *late})

    def _late(self, now: float, ttl_seconds: float) -> Sequence[int]:
        self.now, late = now, []
        while self.oldest < self.next_id:
            decision = self.waiting.get(self.oldest)
            if decision is not None:
                if now - decision[ASKED_AT] < ttl_seconds:
                    break
                late.append(self.oldest)
            self.oldest += 1
        return late
