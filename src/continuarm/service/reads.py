"""Reads: what takes long and changes nothing, in threads of its own.

They are few, so that deciding goes on beside them. How many may wait is limited, and so is the
time of each. A read ends where it next looks when its time is over, or its client has gone.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from continuarm.live.gate import Answer, Gate
from continuarm.live.policy import Policy
from continuarm.service.leaving import gone
from continuarm.service.refusals import GoneError, TooBusyError, ending
from continuarm.service.running import Running

__all__ = ["Read", "Reads"]

THREADS = 2  # for long reads, and as many for short ones
MOST = 64  # reads of each kind that run or wait
SECONDS = 30.0  # for a read, from its request on
NICE = 10  # below what decides, where the system lets threads differ


class Read:
    """One read, which looks now and then whether anybody waits for it."""

    def __init__(self, reads: "Reads", seconds: float) -> None:
        self._reads, self._seconds = reads, seconds
        self._until, self._is_wanted = time.monotonic() + seconds, True

    def end(self) -> None:
        """Nobody waits for it any more."""
        self._is_wanted = False

    def goes_on(self) -> None:
        """Raise what ends it."""
        if not self._is_wanted:
            raise GoneError("an answer must be waited for, but the client has gone")
        if self._reads.is_stopping:
            raise ending()
        if time.monotonic() > self._until:
            raise self.late()

    def late(self) -> TooBusyError:
        """Its time is over."""
        return TooBusyError(f"a read takes at most {self._seconds:g} s here, but took longer")

    def policy(self, running: Running) -> Policy:
        """A copy of a policy, with which the read ends between two calls."""
        self.goes_on()
        policy = running.policy()
        policy.gate = _Turnstile(self.goes_on)
        return policy


class _Turnstile(Gate):
    """A gate that lets nobody in whose time is over."""

    __slots__ = ("_look",)

    def __init__(self, look: Callable[[], None]) -> None:
        super().__init__()
        self._look = look

    def alone(self, work: Callable[..., Answer], *given: Any) -> Answer:
        """See `Gate`."""
        self._look()
        return super().alone(work, *given)


class Reads:
    """The reads of a process.

    refused : how many found too many others.
    ended : how many had nobody who waits for them, or no time left.
    is_stopping : whether the process was told to end.
    """

    def __init__(self) -> None:
        kinds = ("long", "short")
        self._threads = {k: ThreadPoolExecutor(THREADS, f"{k} read", _step_back) for k in kinds}
        self._under_way: dict[str, set[Read]] = {kind: set() for kind in kinds}
        self.refused = self.ended = 0
        self.is_stopping = False

    async def long(self, request: HttpRequest, work: Callable[[Read], Response]) -> Response:
        """What computes for long, such as a curve."""
        return await self._do("long", request, work)

    async def short(self, request: HttpRequest, work: Callable[[Read], Response]) -> Response:
        """What looks at what is there."""
        return await self._do("short", request, work)

    async def _do(
        self, kind: str, request: HttpRequest, work: Callable[[Read], Response]
    ) -> Response:
        under_way, seconds = self._under_way[kind], SECONDS
        if self.is_stopping:
            raise ending()
        if len(under_way) >= MOST:
            self.refused += 1
            raise TooBusyError(f"a server has at most {MOST} reads under way, but got one more")
        read = Read(self, seconds)
        under_way.add(read)
        found: asyncio.Future[Any] = asyncio.get_running_loop().run_in_executor(
            self._threads[kind], work, read
        )
        found.add_done_callback(lambda done: _forget(under_way, read, done))
        leaving: asyncio.Future[Any] = asyncio.ensure_future(gone(request))
        try:
            await asyncio.wait({found, leaving}, timeout=seconds, return_when="FIRST_COMPLETED")
            if found.done():
                response: Response = found.result()
                return response
            self.ended += 1
            raise GoneError("the client has gone") if leaving.done() else read.late()
        finally:
            read.end()
            found.cancel()
            leaving.cancel()

    def stop(self) -> None:
        """Let what is under way end soon; a handler of signals may call it."""
        self.is_stopping = True

    def close(self) -> None:
        """Begin nothing more."""
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)


def _forget(under_way: set[Read], read: Read, done: "asyncio.Future[Response]") -> None:
    under_way.discard(read)
    if not done.cancelled():
        done.exception()  # it was heard by who waits, if anybody does


def _step_back() -> None:
    """Let who decides go first."""
    with suppress(AttributeError, OSError):  # as on Linux, where each thread has its own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
