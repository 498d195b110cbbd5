"""Streams: what happens in an experiment, read and written down once for all who look on.

One task per experiment looks for news as long as it has readers. What a reader costs is to have
the news sent: the more there are, the longer it is between two times.
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakKeyDictionary

from continuarm.background import Task
from continuarm.service.http import encode
from continuarm.service.refusals import TooBusyError
from continuarm.service.running import Running
from continuarm.service.tokens import Doorkeeper, Headers
from continuarm.store.protocol import MOST_READ
from continuarm.store.records import Record

__all__ = ["MOST_STREAMS", "Streams", "as_plain"]

MOST_STREAMS = 1000  # of one process
GLANCE = 0.05  # seconds between two looks
A_READER = 0.001  # seconds between two times of news, for each reader
BEAT = 15.0  # seconds after which a stream that is silent says that it lives
DOOR = 0.5  # seconds between two looks whether the readers may still read


def as_plain(record: Record) -> dict[str, Any]:
    """A record as it is shown."""
    id_ = record.opens or record.closes
    plain: dict[str, Any] = {"position": record.position, "time": record.time}
    plain |= {"event": record.kind} | ({} if id_ is None else {"id": id_})
    plain |= json.loads(record.body)
    return plain


def _told(record: Record) -> bytes:
    return b"id: %d\ndata: %s\n\n" % (record.position, encode(as_plain(record)))


class _Reader:
    """One stream: how far it has read, and whether there is news."""

    def __init__(self, headers: Headers, after: int) -> None:
        self.headers, self.after = headers, after
        self.news, self.goes_on = asyncio.Event(), True

    def wake(self, *, to_end: bool = False) -> None:
        self.goes_on = self.goes_on and not to_end
        self.news.set()


class _Feed:
    """The news of one experiment, the last ones, as they are sent."""

    def __init__(self, running: Running, streams: "Streams") -> None:
        self._running, self._streams = running, streams
        self.readers: set[_Reader] = set()
        self.position = running.replica.position
        self._first = self.position  # news begin after it
        self._news: deque[tuple[int, bytes]] = deque()
        self._joined: dict[int, bytes] = {}
        self._task = Task("streams", running.name)
        self._run_on = asyncio.ensure_future(self._run())  # what is not kept may be collected

    async def _run(self) -> None:
        told = looked = 0.0
        while self.readers:
            await asyncio.sleep(GLANCE)
            now = time.monotonic()
            if self._running.is_closed or self._streams.is_stopping():
                break
            if now - looked > DOOR:
                looked = now
                self._show_out()
            if now - told > self._rest and self._has_news:
                told = now
                with self._task.surviving():
                    await self._tell()
        self._streams.end(self._running)
        for reader in self.readers:
            reader.wake(to_end=True)

    @property
    def _rest(self) -> float:
        """Seconds between two times of news."""
        return max(A_READER * len(self.readers), self._task.pause)

    @property
    def _has_news(self) -> bool:
        return self._running.replica.position > self.position

    def _show_out(self) -> None:
        for reader in list(self.readers):
            if not self._streams.door.knows(reader.headers):
                reader.wake(to_end=True)

    async def _tell(self) -> None:
        found = await self._read(self.position)
        self._news.extend(found)
        self._joined.clear()
        while len(self._news) > MOST_READ:
            self._first, _ = self._news.popleft()
        if found:
            self.position = found[-1][0]
            for reader in self.readers:
                reader.wake()

    async def _read(self, after: int) -> list[tuple[int, bytes]]:
        """What the store has after a position, ready to be sent, at most so much of it."""
        running = self._running

        def read() -> list[tuple[int, bytes]]:
            records = running.store.read(running.name, after)
            return [(record.position, _told(record)) for record in records]

        return await asyncio.get_running_loop().run_in_executor(self._streams.thread, read)

    async def after(self, position: int) -> tuple[int, bytes]:
        """How far the news after a position go, at most so many of them, and all of them."""
        if position >= self.position:
            return position, b""
        if position < self._first:  # it was away for long
            found = await self._read(position)
            last = found[-1][0] if found else self.position
            return last, b"".join(text for _, text in found)
        if position not in self._joined:
            self._joined[position] = b"".join(t for at, t in self._news if at > position)
        return self.position, self._joined[position]


class Streams:
    """All streams of a process.

    thread : that looks into the store for all of them.
    """

    def __init__(self, door: Doorkeeper, is_stopping: Callable[[], bool]) -> None:
        self.door, self.is_stopping = door, is_stopping
        self._feeds: WeakKeyDictionary[Running, _Feed] = WeakKeyDictionary()
        self.thread = ThreadPoolExecutor(1, "stream")
        self._count = 0

    def close(self) -> None:
        """Look no more."""
        self.thread.shutdown(wait=False, cancel_futures=True)

    def end(self, running: Running) -> None:
        """Its last reader has gone."""
        self._feeds.pop(running, None)

    def read(self, running: Running, after: int | None, headers: Headers) -> AsyncIterator[bytes]:
        """What happens after a position, by default from now on, as server-sent events."""
        if self._count >= MOST_STREAMS:
            raise TooBusyError(f"a server has at most {MOST_STREAMS} streams, but got one more")
        reader = _Reader(headers, running.replica.position if after is None else after)
        return self._lines(running, reader)

    async def _lines(self, running: Running, reader: _Reader) -> AsyncIterator[bytes]:
        feed = self._feeds.get(running) or _Feed(running, self)
        self._feeds[running] = feed
        self._count += 1
        feed.readers.add(reader)
        try:
            while reader.goes_on:
                reader.news.clear()
                reader.after, news = await feed.after(reader.after)
                if news:
                    yield news
                elif not await _happens(reader.news, BEAT):
                    yield b": still here\n\n"
        finally:
            feed.readers.discard(reader)
            self._count -= 1


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    """Whether an event happens within so many seconds."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
