"""Together: what many requests want, done in one go, while the event loop goes on."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from continuarm.ledger.groups import taken

__all__ = ["Together"]

IDLE = 10  # rounds of the event loop that bring nothing: no more requests are on their way


class Together:
    """Wishes of requests, done in groups: while one group is done, the next one gathers.

    work : what fulfils the wishes of a group; it answers each, in their order.
    """

    def __init__(self, work: Callable[[list[Any]], Awaitable[list[Any]]]) -> None:
        self._work, self._last = work, 0
        self._gathered: list[tuple[Sequence[Any], asyncio.Future[list[Any]]]] = []
        self._working: asyncio.Task[None] | None = None

    def do(self, wishes: Sequence[Any]) -> asyncio.Future[list[Any]]:
        """Have wishes fulfilled, with those of other requests; the answers in their order."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[list[Any]] = loop.create_future()
        self._gathered.append((wishes, done))
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
        try:
            answers = iter(await self._work(wishes))
        except Exception as error:
            for _, done in group:
                if not done.done():
                    done.set_exception(error)
            return
        for given, done in group:
            found = [next(answers) for _ in given]
            if not done.done():
                done.set_result(found)
