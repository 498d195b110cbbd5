"""The decisions of a policy that wait for their payoff, and how long they may."""

from collections import deque
from collections.abc import Iterator
from copy import copy
from typing import Any, Final, NamedTuple

from continuarm import checks
from continuarm.core.compiling import Array
from continuarm.errors import SettingsError, UnknownDecisionError
from continuarm.live.closings import Closings

__all__ = ["TTL", "Open", "OpenDecisions", "Waiting"]


class Assumed(int):
    """A number that nobody has given."""


TTL: Final = Assumed(
    100_000
)  # decisions that a payoff may take, unless a policy is told otherwise

# What is kept of a decision until its payoff is told: row, ticket, context, value, start, when it
# was asked, the how-manieth, the bin that answered. A plain tuple of numbers and arrays, because
# the garbage collector stops looking at those, and there may be a great many.
Open = tuple[int, int, Array, Array, Array, float, int, int]
VALUE: Final = 3
AT: Final = 5
NUMBER: Final = 6
BIN: Final = 7


class Waiting(NamedTuple):
    """How long a payoff is waited for.

    ttl : decisions of the policy; None: for ever.
    ttl_seconds : the same in the caller's time.
    missing : the payoff of a decision whose time is up; None: it is forgotten.
    """

    ttl: int | None = TTL
    ttl_seconds: float | None = None
    missing: float | None = None

    @classmethod
    def checked(cls, ttl: Any, ttl_seconds: Any, missing: float | None) -> "Waiting":
        """The options of a policy, whose `missing` has been checked."""
        waiting = cls(
            checks.optional(checks.whole, "ttl", ttl, 1),
            checks.optional(checks.number, "ttl_seconds", ttl_seconds),
            missing,
        )
        if missing is not None and (ttl is None or isinstance(ttl, Assumed)) and not ttl_seconds:
            raise SettingsError(
                "`ttl` or `ttl_seconds` is needed with `missing`: after how long is it silence? "
                "But got neither"
            )
        return waiting


def _remembered(waiting: Waiting) -> int:
    """Of how many decisions it is remembered what became of them."""
    return max(2 * (waiting.ttl or TTL), 1000)


class OpenDecisions:
    """Open decisions by number, in the order in which they were asked."""

    def __init__(self, waiting: Waiting) -> None:
        self.waiting = waiting
        self.open: dict[int, Open] = {}
        self.held: dict[int, float] = {}  # payoffs told before their decision's time is up
        self.asked = 0  # decisions so far
        self.next_id = 0  # larger than any so far
        self.closed = Closings(_remembered(waiting))
        self.expires = waiting.ttl is not None or waiting.ttl_seconds is not None
        # those with a time to live, the oldest first: a number, and the how-manieth it was
        self.queue: deque[tuple[int, int]] = deque()

    def closed_of(self, waiting: Waiting) -> Closings:
        """What is kept of closed decisions where these are the times to live: counts, at least."""
        if waiting.ttl == self.waiting.ttl:
            return self.closed
        closed = Closings(_remembered(waiting))
        closed.numbers = self.closed.numbers
        return closed

    def queue_of(self, waiting: Waiting) -> tuple[bool, deque[tuple[int, int]]]:
        """Whether decisions expire, and which wait for it, where these are the times to live."""
        if waiting.ttl is None and waiting.ttl_seconds is None:
            return False, deque()
        return True, deque((id_, decision[NUMBER]) for id_, decision in self.open.items())

    def copy(self) -> "OpenDecisions":
        """An independent one in the same state."""
        other = copy(self)
        other.open, other.held, other.queue = dict(self.open), dict(self.held), self.queue.copy()
        other.closed = self.closed.copy()
        return other

    def asked_by(self, now: float) -> dict[int, Open]:
        """All that are open, asked at a time at the latest."""
        return {
            id_: (*decision[:AT], min(decision[AT], now), *decision[NUMBER:])
            for id_, decision in self.open.items()
        }

    def is_open(self, id_: int) -> bool:
        """Whether a payoff of this decision can be told."""
        return id_ in self.open and id_ not in self.held

    def value(self, id_: int) -> Array:
        """What was decided."""
        return self.open[id_][VALUE]

    def refusal(self, id_: int) -> UnknownDecisionError:
        """Why no payoff of this decision can be told."""
        ttl, seconds = self.waiting.ttl, self.waiting.ttl_seconds
        limits = [f"{ttl} decisions"] if ttl is not None else []
        limits += [f"{seconds:g} seconds"] if seconds is not None else []
        return self.closed.refusal(id_, self.next_id, " and ".join(limits))

    def is_due(self, at: float) -> bool:
        """Whether the time of a decision is over."""
        queue = self.queue
        while queue:
            id_, number = queue[0]
            decision = self.open.get(id_)
            if decision is None or decision[NUMBER] != number:  # closed; its number came again
                queue.popleft()
                continue
            return self._is_over(decision, at)
        return False

    def _is_over(self, decision: Open, at: float) -> bool:
        ttl, seconds = self.waiting.ttl, self.waiting.ttl_seconds
        if ttl is not None and self.asked - decision[NUMBER] >= ttl:
            return True
        return seconds is not None and at - decision[AT] >= seconds

    def all_due(self, at: float) -> Iterator[int]:
        """Those whose time is over, the oldest first; after one that is not, none is."""
        for id_, number in self.queue:
            decision = self.open.get(id_)
            if decision is not None and decision[NUMBER] == number:
                if not self._is_over(decision, at):
                    return
                yield id_

    def oldest_due(self) -> int:
        """The oldest one that waits, after `is_due`."""
        return self.queue[0][0]

    @property
    def oldest_known(self) -> int:
        """The oldest decision that is open or whose fate is remembered."""
        return min([self.closed.first_known(self.next_id), *self.open])

    def restore(
        self, open_: dict[int, Open], held: dict[int, float], asked: int, next_id: int
    ) -> None:
        """Take over what was saved."""
        self.open, self.held, self.asked, self.next_id = open_, held, asked, next_id
        self.expires, self.queue = self.queue_of(self.waiting)
