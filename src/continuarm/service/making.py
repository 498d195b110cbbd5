"""Making: the decisions of a group, so that nobody else waits for them.

Cheap ones are made by the event loop, which lets others come between. Where one alone takes long,
a thread makes them, from a copy of the state: neither the event loop nor who folds waits for it.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from continuarm.core.compiling import Array
from continuarm.ledger.desk import Desk, Known, Written
from continuarm.live.gate import Gate
from continuarm.live.limits import Within
from continuarm.service.groups import Waiting
from continuarm.service.helpers import in_thread
from continuarm.service.refusals import TooBusyError

__all__ = ["Making", "Wish", "is_late", "late", "tried"]

SECONDS = 30.0  # in which the decisions of a request are made, from its coming on
SLICE = 0.005  # that the event loop decides at a stretch; who needs longer for one is slow
SLICE_ASIDE = 0.5  # the same for a thread: so old a state may be, and so long others wait for it
TIMES = 50.0  # as long as a slow one took, all are made by threads: some of them may be cheap


class Wish(NamedTuple):
    """A decision is wanted."""

    point: Array
    within: Within | None
    key: str | None


class Making:
    """The decisions of one experiment.

    is_aside : whether threads make them. At first they do: nobody knows how long one takes.
    is_under_way : whether some are made now.
    """

    def __init__(self, desk: Desk, gate: Gate, threads: ThreadPoolExecutor) -> None:
        self._desk, self._gate, self._threads = desk, gate, threads
        self.is_aside, self._aside_until = True, 0.0
        self.is_under_way = False

    async def made(
        self, wishes: Sequence[Wish | Written], waiting: Sequence[Waiting]
    ) -> list[Any]:
        """For each wish what is to be appended, or why nothing is; None: nobody waits for it."""
        made, self.is_under_way = list[Any](), True
        try:
            while len(made) < len(wishes):
                if made:
                    _refuse_late(wishes[len(made) :], waiting[len(made) :])
                    await asyncio.sleep(0.0)
                made += await self._next(zip(wishes, waiting, strict=True), len(made))
        finally:
            self.is_under_way = False
        return [
            None if isinstance(wish, Wish) and one.done.done() else found
            for wish, one, found in zip(wishes, waiting, made, strict=True)
        ]

    async def _next(self, group: Iterable[tuple[Wish | Written, Waiting]], first: int) -> Any:
        """As many as are made at a stretch."""
        rest = islice(group, first, None)
        if self.is_aside:
            return await in_thread(self._threads, self._made_aside, rest)
        return self._gate.alone(self._some, self._desk.asked, rest, SLICE)

    def known(self) -> Known:
        """A copy of what is known now."""
        return self._gate.alone(self._desk.known)

    def _made_aside(self, rest: Any) -> list[Any]:
        return self._some(partial(self._desk.asked, known=self.known()), rest, SLICE_ASIDE)

    def _some(self, asked: Callable[..., Written], rest: Any, seconds: float) -> list[Any]:
        """Make the next ones, until so many seconds have passed."""
        made, longest = list[Any](), 0.0
        began = last = time.monotonic()
        computing = time.thread_time()
        for wish, waiting in rest:
            if not isinstance(wish, Wish):
                made.append(wish)
                continue
            made.append(None if waiting.done.done() else tried(asked, *wish))
            now = time.monotonic()
            longest, last = max(longest, now - last), now
            if now - began > seconds:
                break
        if longest > SLICE:  # unless others had the core meanwhile
            longest = min(longest, time.thread_time() - computing)
        self._notice(longest, last)
        return made

    def _notice(self, longest: float, now: float) -> None:
        """Choose who makes the next ones, by how long these took."""
        if longest > SLICE:
            self.is_aside, self._aside_until = True, now + TIMES * longest
        elif now > self._aside_until:
            self.is_aside = False


def _refuse_late(wishes: Sequence[Wish | Written], waiting: Sequence[Waiting]) -> None:
    """Refuse requests of which a decision is still to be made, when their time is over."""
    for wish, one in zip(wishes, waiting, strict=True):
        if isinstance(wish, Wish) and is_late(one) and not one.done.done():
            one.done.set_exception(late())


def is_late(one: Waiting) -> bool:
    """Whether the time of a request is over."""
    return time.monotonic() - one.since > SECONDS


def late() -> TooBusyError:
    """What is said to it then."""
    return TooBusyError(
        f"the decisions of a request take at most {SECONDS:g} s here, but these took longer: ask "
        f"for fewer at once"
    )


def tried(work: Any, *given: Any) -> Any:
    """What some work answers, or the error: others of its group go on."""
    try:
        return work(*given)
    except Exception as error:
        return error
