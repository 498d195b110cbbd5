"""Together: what many requests want, done in one go by a thread, while the event loop goes on."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from continuarm.ledger.groups import taken

__all__ = ["Together"]


class Together:
    """Wishes of requests, done in groups: while one group is done, the next one gathers.

    work : what fulfils the wishes of a group; it answers each, in their order.
    """

    def __init__(self, work: Callable[[list[Any]], list[Any]], name: str) -> None:
        self._work, self._thread = work, ThreadPoolExecutor(1, name)
        self._gathered: list[tuple[Sequence[Any], asyncio.Future[list[Any]]]] = []
        self._working: asyncio.Task[None] | None = None

    async def do(self, wishes: Sequence[Any]) -> list[Any]:
        """Have wishes fulfilled, with those of other requests; the answers in their order."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[list[Any]] = loop.create_future()
        self._gathered.append((wishes, done))
        if self._working is None:
            self._working = loop.create_task(self._do_all(loop))
        return await done

    async def _do_all(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while self._gathered:
                group, self._gathered = taken(self._gathered)
                await self._do(loop, group)
        finally:
            self._working = None

    async def _do(self, loop: asyncio.AbstractEventLoop, group: list[Any]) -> None:
        wishes = [wish for given, _ in group for wish in given]
        try:
            answers = iter(await loop.run_in_executor(self._thread, self._work, wishes))
        except Exception as error:
            for _, done in group:
                if not done.done():
                    done.set_exception(error)
            return
        for given, done in group:
            found = [next(answers) for _ in given]
            if not done.done():
                done.set_result(found)

    def close(self) -> None:
        """Do no more, when what was begun is done."""
        self._thread.shutdown()
