"""AsyncGroups: entries of many requests, appended in one stroke, while the event loop goes on."""

import asyncio
from collections.abc import Sequence

from continuarm.store.protocol import Store
from continuarm.store.records import Entry, Outcome

__all__ = ["AsyncGroups"]

MOST = 1000  # entries in a group, beyond those of its first request

Waiting = tuple[Sequence[Entry], "asyncio.Future[list[Outcome]]"]


class AsyncGroups:
    """What this process appends to one ledger.

    While one group is on its way to the disk, the next one gathers.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._gathered: list[Waiting] = []
        self._writing: asyncio.Task[None] | None = None

    async def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Append entries, with those of other requests; what became of them, in their order."""
        done: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        self._gathered.append((entries, done))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        return await asyncio.shield(done)

    async def _write_all(self) -> None:
        try:
            while self._gathered:
                await self._write(self._taken())
        finally:
            self._writing = None

    def _taken(self) -> list[Waiting]:
        taken, count = 0, 0
        while taken < len(self._gathered) and (taken == 0 or count <= MOST):
            count += len(self._gathered[taken][0])
            taken += 1
        group, self._gathered = self._gathered[:taken], self._gathered[taken:]
        return group

    async def _write(self, group: list[Waiting]) -> None:
        entries = [entry for given, _ in group for entry in given]
        try:
            found = iter(await asyncio.to_thread(self._store.append, self._name, entries))
        except Exception as error:
            for _, done in group:
                if not done.done():
                    done.set_exception(error)
            return
        for given, done in group:
            outcomes = [next(found) for _ in given]
            if not done.done():
                done.set_result(outcomes)
