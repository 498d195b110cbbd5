"""Streams: what happens in an experiment, read and written down once for all who look on.

One task per experiment looks for news as long as it has readers. What a reader costs is to have
the news sent: the more there are, the longer it is between two times. All streams of a process
together send so many bytes a second at most; where more happens, they come later.
"""

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakKeyDictionary

from continuarm.background import Task
from continuarm.errors import StoreError
from continuarm.service.http import encode
from continuarm.service.refusals import TooBusyError
from continuarm.service.running import Running
from continuarm.service.tokens import Doorkeeper, Headers
from continuarm.store.records import Record

__all__ = ["MOST_STREAMS", "Streams", "as_plain"]

MOST_STREAMS = 1000  # of one process
GLANCE = 0.05  # seconds between two looks
A_READER = 0.002  # seconds between two times of news, for each reader
BYTES = 8 * 2**20  # a second, of all streams
AT_ONCE, KEPT = 100, 16  # records that are sent at once, and how many such parts are kept
AGAIN = 1.0  # seconds before a store that does not answer is read again
BEAT = 15.0  # seconds after which a stream that is silent says that it lives
BEATS = b": still here\n\n"
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
    """One stream: how far it has read, and what it waits for."""

    def __init__(self, headers: Headers, after: int) -> None:
        self.headers, self.after = headers, after
        self.news, self.end = asyncio.Event(), asyncio.Event()

    def leave(self) -> None:
        """It is over."""
        self.end.set()
        self.news.set()


class _Feed:
    """The news of one experiment.

    position : how far its readers may read; it goes on from time to time.
    """

    def __init__(self, running: Running, streams: "Streams") -> None:
        self._running, self._streams = running, streams
        self.readers: set[_Reader] = set()
        self.position = running.replica.position
        self._parts: OrderedDict[tuple[int, int], asyncio.Future[bytes]] = OrderedDict()
        self._task = Task("streams", running.name)
        self._run_on = asyncio.ensure_future(self._run())  # what is not kept may be collected

    async def _run(self) -> None:
        told = looked = 0.0
        while self.readers:
            await asyncio.sleep(GLANCE)
            now = time.monotonic()
            if self._running.is_closed or self._streams.is_stopping():
                break
            with self._task.surviving():
                if now - looked > DOOR:
                    looked = now
                    self._show_out()
                newest = self._running.replica.position
                if now - told > A_READER * len(self.readers) and newest != self.position:
                    told, self.position = now, newest
                    for reader in self.readers:
                        reader.news.set()
        self._streams.end(self._running)
        for reader in self.readers:
            reader.leave()

    def _show_out(self) -> None:
        for reader in list(self.readers):
            if not self._streams.door.knows(reader.headers):
                reader.leave()

    async def after(self, position: int) -> tuple[int, bytes]:
        """How far the next part after a position goes, and it; readers of one part share it.

        Parts end where all readers' do, so that those who have fallen behind meet.
        """
        last = min(position // AT_ONCE * AT_ONCE + AT_ONCE, self.position)
        part = self._parts.get((position, last))
        if part is None:
            loop, thread = asyncio.get_running_loop(), self._streams.thread
            part = loop.run_in_executor(thread, self._read, position, last)
            self._parts[position, last] = part
            if len(self._parts) > KEPT:
                self._parts.popitem(last=False)
        try:
            return last, await asyncio.shield(part)
        except StoreError:
            self._parts.pop((position, last), None)
            raise

    def _read(self, after: int, last: int) -> bytes:
        records = self._running.store.read(self._running.name, after, last - after)
        return b"".join(_told(record) for record in records if record.position <= last)


class Streams:
    """All streams of a process.

    thread : that looks into the store for all of them.
    """

    def __init__(self, door: Doorkeeper, is_stopping: Callable[[], bool]) -> None:
        self.door, self.is_stopping = door, is_stopping
        self._feeds: WeakKeyDictionary[Running, _Feed] = WeakKeyDictionary()
        self.thread = ThreadPoolExecutor(1, "stream")
        self._count, self._sent = 0, 0.0  # how many, and until when what they sent takes

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
            while not reader.end.is_set():
                reader.news.clear()
                if reader.after < feed.position:
                    yield await self._part(feed, reader)
                elif not await _happens(reader.news, BEAT):
                    yield BEATS
        finally:
            feed.readers.discard(reader)
            self._count -= 1

    async def _part(self, feed: _Feed, reader: _Reader) -> bytes:
        """The next part for a reader, when it is its turn."""
        try:
            last, news = await feed.after(reader.after)
        except StoreError:
            await _happens(reader.end, AGAIN)
            return BEATS
        now = time.monotonic()
        wait, self._sent = self._sent - now, max(self._sent, now) + len(news) / BYTES
        if wait > 0.0:
            await _happens(reader.end, wait)
        reader.after = last
        return news


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    """Whether an event happens within so many seconds."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
