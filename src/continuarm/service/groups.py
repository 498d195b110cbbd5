"""Together: what many requests want, done in one go, while the event loop goes on."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from continuarm.errors import UnavailableError
from continuarm.ledger.groups import taken

__all__ = ["Together", "Waiting"]

LATE = 0.2  # seconds that one may have waited behind a group, and still wait for the next one
IDLE = 10  # rounds of the event loop that bring nothing: no more requests are on their way


class Waiting(NamedTuple):
    """A request that waits since a time."""

    done: "asyncio.Future[list[Any]]"
    since: float


class Together:
    """Wishes of requests, done in groups: while one group is done, the next one gathers.

    work : what fulfils the wishes of a group; it answers each, in their order. It is told which
        request waits for each.
    """

    def __init__(self, work: Callable[[list[Any], list[Waiting]], Awaitable[list[Any]]]) -> None:
        self._work, self._last = work, 0
        self._gathered: list[tuple[Sequence[Any], Waiting]] = []
        self._working: asyncio.Task[None] | None = None

    def do(self, wishes: Sequence[Any]) -> asyncio.Future[list[Any]]:
        """Have wishes fulfilled, with those of other requests; the answers in their order."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[list[Any]] = loop.create_future()
        self._gathered.append((wishes, Waiting(done, time.monotonic())))
        if self._working is None:
            self._working = loop.create_task(self._do_all())
        return done

    async def _do_all(self) -> None:
        try:
            while self._gathered:
                if self._last > 1:
                    await self._gather()
                group, self._gathered = taken(self._gathered)
                self._last = len(group)
                await self._do(group)
        finally:
            self._working = None

    async def _gather(self) -> None:
        """Let requests in that come at this moment: a group costs the same for one or for many.

        Those who were answered together come back together. Where one was alone, nobody waits.
        """
        idle, before = 0, 0
        while idle < IDLE:
            await asyncio.sleep(0)
            idle = idle + 1 if len(self._gathered) == before else 0
            before = len(self._gathered)

    async def _do(self, group: list[Any]) -> None:
        wishes = [wish for given, _ in group for wish in given]
        waiting = [one for given, one in group for _ in given]
        try:
            answers = iter(await self._work(wishes, waiting))
        except Exception as error:
            for _, (done, _) in group:
                if not done.done():
                    done.set_exception(error)
            if isinstance(error, UnavailableError):
                self._refuse_late_ones(error)
            return
        for given, (done, _) in group:
            found = [next(answers) for _ in given]
            if not done.done():
                done.set_result(found)

    def _refuse_late_ones(self, error: UnavailableError) -> None:
        """Who has waited behind a group that the store did not answer waits for no other one."""
        late = time.monotonic() - LATE
        for _, (done, since) in self._gathered:
            if since < late and not done.done():
                done.set_exception(error)
        self._gathered = [one for one in self._gathered if not one[1].done.done()]
