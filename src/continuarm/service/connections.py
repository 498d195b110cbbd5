"""Connections: how much a client may send, how long it may take, and how many there may be.

uvicorn has no limits on headers, on the time for a request or for reading an answer. They are kept
here, around its own protocol: bytes are counted as they come, and once a second a sweep looks at
every connection, so that a request pays nothing for a clock.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from heapq import nlargest
from itertools import count
from typing import Any, ClassVar, NamedTuple
from weakref import WeakSet

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from continuarm.background import Task
from continuarm.service.messages import Refusal
from continuarm.service.upgrades import Parser

__all__ = ["JOINED", "LARGEST_BODY", "Connection", "Joined", "Limits"]

JOINED = "continuarm.joined"  # an extension of ASGI: the transport of a request, as `Joined`

LARGEST_BODY = 2**20  # bytes
SWEEP = 1.0  # seconds between two looks at all connections
PIECE = 2**16  # bytes that are parsed at once
IDLE, HEADERS, BODY = "idle", "headers", "body"  # what a client sends, or has to send
UNLIMITED = 2**62
UNREAD = 2**18  # bytes that the system keeps for a client that does not read
PARTS = 64  # one of which makes room when there are too many connections
HEAD = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"


class Limits(NamedTuple):
    """Of one process; times in seconds, sizes in bytes.

    request_bytes : of a body with what frames its chunks and follows them.
    headers_seconds : from the first byte of a request to the end of its headers.
    body_seconds : from there to the end of its body.
    idle_seconds : before the first byte of a request.
    stuck_seconds : in which a client reads at least `stuck_bytes` of an answer.
    linger_seconds, linger_bytes : for which one that was refused is still read from.
    pipelined : requests that wait for the answer to the one before.
    """

    header_bytes: int = 2**16
    request_bytes: int = 2 * LARGEST_BODY
    headers_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: float = 75.0
    stuck_seconds: float = 30.0
    stuck_bytes: int = 2**15
    linger_seconds: float = 2.0
    linger_bytes: int = 2**18
    pipelined: int = 64
    connections: int = 4000


class Joined:
    """A transport that can join what is written: each write of its own is a call of the system."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self._held = transport, list[Any]()
        self.is_closing = transport.is_closing
        self._write: Callable[[Any], None]
        self.write: Callable[[Any], None]
        self._write = self.write = transport.write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def hold(self) -> None:
        """Write nothing until `release`."""
        self.write = self._held.append

    def release(self) -> None:
        """Write what was held, at once."""
        self.write = self._write
        if self._held:
            held, self._held = self._held, []
            self._write(b"".join(held))

    def close(self) -> None:
        """See `asyncio.Transport`."""
        self.release()
        self._transport.close()

    def write_eof(self) -> None:
        """See `asyncio.Transport`; what is written or released later reaches nobody."""
        self.release()
        self._transport.write_eof()
        self.write = self._write = _lose


def _lose(piece: Any) -> None:
    """Write nothing."""


class Connection(HttpToolsProtocol):
    """A connection that ends when its client takes too much or too long.

    limits : of all connections of this process.
    cut : how many were ended, by the reason.
    """

    limits: ClassVar = Limits()
    cut: ClassVar[Counter[str]] = Counter()
    parser: Parser
    _serials: ClassVar = count()
    _sweeping: ClassVar = Task("connections")
    _swept: ClassVar[WeakSet[ServerState]] = WeakSet()

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.parser = Parser(self)
        self._stage, self._received, self._most = IDLE, 0, UNLIMITED
        self._refused = False
        self._answered: Any = None  # the cycle of the request that is answered now, if any is
        self._serial = next(self._serials)
        self._seen: tuple[str, bool, int] = (IDLE, False, 0)
        self._age = 0.0  # since the sweep has seen it so, in seconds
        self._unread: tuple[int, float] | None = None  # bytes of answers, and since when

    # What the transport calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(Joined(transport))  # type: ignore[arg-type]
        plain = transport.get_extra_info("socket")
        if plain is not None and plain.family != socket.AF_UNIX:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD)
        if self.server_state not in self._swept:
            self._swept.add(self.server_state)
            self.loop.call_later(SWEEP, self._sweep, self.loop, self.server_state)
        if len(self.connections) > self.limits.connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        super().connection_lost(exc)
        self._answer_nobody()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._refused or len(data) > PIECE:
            self._receive_much(data)
            return
        self._received += len(data)
        super().data_received(data)
        if self.transport.is_closing():  # after bytes that are no request
            self._answer_nobody()
        elif self._received > self._most:
            self._refuse_size()

    def _receive_much(self, data: bytes) -> None:
        """Parse it piece by piece, until it is too much; of what is refused nothing is parsed."""
        for first in range(0, len(data), PIECE):
            if self.transport.is_closing():
                return
            if self._refused:
                self._received += len(data) - first
                if self._received > self.limits.linger_bytes:
                    self.flow.pause_reading()  # the sweep ends it
                return
            self.data_received(data[first : first + PIECE])

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._unread = None
        super().resume_writing()

    # What the parser calls.

    def on_message_begin(self) -> None:
        """See `httptools`."""
        self._stage, self._received, self._most = HEADERS, 0, self.limits.header_bytes
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """See `httptools`."""
        if self.parser.is_offered:
            return
        self._stage, self._most = BODY, self.limits.request_bytes
        if len(self.pipeline) < self.limits.pipelined:
            self.scope["extensions"] = {JOINED: self.transport}  # type: ignore[dict-item]
            super().on_headers_complete()
            if not self.pipeline:
                self._answered = self.cycle
        elif not self.transport.is_closing():
            self._cut("pipelined")

    def on_message_complete(self) -> None:
        """See `httptools`."""
        if self.parser.is_offered:
            return
        self._stage, self._most = IDLE, UNLIMITED
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer is written; as long as others wait for theirs nothing more is read."""
        following = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()
        self._answered = following
        if self.pipeline:
            self.flow.pause_reading()

    # What is refused, and what ends.

    def _cut(self, reason: str) -> None:
        """End it now."""
        self.cut[reason] += 1
        self.connections.discard(self)
        self.transport.abort()

    def _refuse_size(self) -> None:
        if self._stage == HEADERS:
            rule = f"the headers of a request have at most {self.limits.header_bytes} bytes"
            self._refuse("headers", 431, "too-large", f"{rule}, but these have more")
        else:
            rule = f"a request has at most {self.limits.request_bytes} bytes"
            self._refuse("body", 413, "too-large", f"{rule}, but this has more")

    def _refuse(self, reason: str, status: int, word: str, message: str) -> None:
        """Say why, and read on for a moment: else the client might lose what was said."""
        self.cut[reason] += 1
        self._refused, self._received = True, 0
        if self._may_answer:
            body = msgspec.json.encode(Refusal(word, message))
            self.transport.write(STATUS_LINE[status] + HEAD % len(body) + body)
        self._answer_nobody()
        self.flow.resume_reading()
        self.transport.write_eof()

    def _answer_nobody(self) -> None:
        """Let nothing more be written to it."""
        waiting = [cycle for cycle, _ in self.pipeline]
        for cycle in [self._answered, self.cycle, *waiting]:
            if cycle is not None:
                cycle.disconnected = True
                cycle.message_event.set()

    @property
    def _is_busy(self) -> bool:
        """Whether a request is answered now."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _may_answer(self) -> bool:
        """Whether an answer of ours would be that of the request that is refused."""
        if self._stage == BODY:
            return self._is_busy and not self.cycle.response_started and not self.pipeline
        return not self._is_busy

    @property
    def _is_waiting(self) -> bool:
        """Whether it waits for its client, and not the client for us."""
        return self._refused or not self._is_busy or self._stage == BODY

    def _make_room(self) -> None:
        """Let those go that have waited for their clients the longest: a newcomer is heard.

        Several at once, so that they need not be looked for at every newcomer.
        """
        waiting = [c for c in self.connections if isinstance(c, Connection) and c._is_waiting]
        some = max(self.limits.connections // PARTS, 1)
        for one in nlargest(some, waiting, key=lambda one: (one._age, -one._serial)):
            one._cut("full")

    def look(self, seconds: float) -> None:
        """End it if it has taken too long; so many seconds have passed since the last look."""
        seen = self._stage, self._is_busy, id(self.cycle)
        self._age = self._age + seconds if seen == self._seen else 0.0
        self._seen = seen
        if self._refused:
            if self._age >= self.limits.linger_seconds:
                self.transport.abort()
        elif self._is_stuck(seconds):
            self._cut("unread")
        elif self._stage == HEADERS and not self._is_busy:
            self._end_if_late(self.limits.headers_seconds, "the headers of a request")
        elif self._stage == BODY and not self.flow.read_paused:
            self._end_if_late(self.limits.body_seconds, "the body of a request")
        elif not self._is_busy and self._age >= self.limits.idle_seconds:
            self._cut("idle")

    def _end_if_late(self, seconds: float, what: str) -> None:
        if self._age >= seconds:
            reason = f"slow {self._stage}"
            self._age = 0.0
            message = f"{what} must come within {seconds:g} s, but did not"
            self._refuse(reason, 408, "too-slow", message)

    def _is_stuck(self, seconds: float) -> bool:
        """Whether the client has hardly read of its answer for long."""
        size = self.transport.get_write_buffer_size()
        if size == 0 or self._unread is None:
            self._unread = (size, 0.0) if size else None
            return False
        before, age = self._unread
        self._unread = before, age + seconds
        if age + seconds < self.limits.stuck_seconds:
            return False
        self._unread = size, 0.0
        return before - size < self.limits.stuck_bytes

    @classmethod
    def _sweep(cls, loop: asyncio.AbstractEventLoop, server: ServerState) -> None:
        """Look at all connections, as long as there are any."""
        for one in list(server.connections):
            with cls._sweeping.surviving():
                one.look(SWEEP)  # type: ignore[union-attr]
        if server.connections:
            loop.call_later(SWEEP, cls._sweep, loop, server)
        else:
            cls._swept.discard(server)
