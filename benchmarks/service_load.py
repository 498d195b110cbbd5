"""A light load of HTTP requests: each connection sends the next one when it has its answer."""

import re
import select
import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Measured", "load", "post"]

LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
LARGEST = 2**16  # bytes of an answer that are read at once
PATIENCE = 30.0  # seconds without any answer


@dataclass
class Measured:
    """What a load has measured.

    rate : answers a second.
    took : seconds that each answer took.
    bodies : the answers.
    """

    rate: float
    took: list[float] = field(repr=False)
    bodies: list[bytes] = field(repr=False)

    def milliseconds(self, part: float) -> float:
        """A quantile of the times."""
        return round(1000.0 * float(np.quantile(self.took, part)), 2)


def post(path: str, body: bytes) -> bytes:
    """A request as it is sent."""
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


class _Connection:
    """One connection, and the answer that it waits for."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._since, self._missing, self._got = 0.0, 0, b""

    def send(self, request: bytes) -> None:
        self._since, self._missing, self._got = time.perf_counter(), -1, b""
        self.socket.sendall(request)

    def body(self) -> bytes | None:
        """The answer, if it is whole."""
        more = self.socket.recv(LARGEST)
        assert more, "the server must not close a connection"
        self._got += more
        head = self._got.find(b"\r\n\r\n") + 4
        if head < 4:
            return None
        found = LENGTH.search(self._got, 0, head)
        assert found is not None
        if len(self._got) - head < int(found[1]):
            return None
        assert self._got.startswith(b"HTTP/1.1 200"), self._got
        return self._got[head:]

    def took(self) -> float:
        return time.perf_counter() - self._since


def load(
    port: int, requests: Iterable[bytes], *, connections: int, seconds: float = np.inf
) -> Measured:
    """Send requests over some connections, for so long at most; every answer must be a 200."""
    left, took, bodies = iter(requests), list[float](), list[bytes]()
    poll, waiting = select.epoll(), dict[int, _Connection]()
    opened = [_Connection(port) for _ in range(connections)]
    began = time.perf_counter()
    for connection in opened:
        _next(left, connection, poll, waiting)
    while waiting:
        ready = poll.poll(PATIENCE)
        assert ready, "a server must answer"
        for number, _ in ready:
            connection = waiting[number]
            body = connection.body()
            if body is None:
                continue
            took.append(connection.took())
            bodies.append(body)
            if time.perf_counter() - began > seconds:
                left = iter(())
            _next(left, connection, poll, waiting)
    spent = time.perf_counter() - began
    for connection in opened:
        connection.socket.close()
    return Measured(len(took) / spent, took, bodies)


def _next(
    left: Iterator[bytes],
    connection: _Connection,
    poll: select.epoll,
    waiting: dict[int, _Connection],
) -> None:
    """Send the next request, or let a connection go."""
    number, request = connection.socket.fileno(), next(left, None)
    if request is None:
        if waiting.pop(number, None) is not None:
            poll.unregister(number)
        return
    if number not in waiting:
        waiting[number] = connection
        poll.register(number, select.EPOLLIN)
    connection.send(request)
