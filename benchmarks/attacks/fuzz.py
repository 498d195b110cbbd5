"""Fuzzed bytes over HTTP: no 500, no traceback, and others are answered meanwhile."""

import random
import re
import socket
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Lock, Thread

from benchmarks.attacks.place import STORES, Place
from benchmarks.attacks.reads import Asking
from benchmarks.attacks.requests import sound, volley
from benchmarks.attacks.result import Case, Defect, Tally
from benchmarks.attacks.servers import Server, created, several
from benchmarks.attacks.shop import until

__all__ = ["CASES"]

THREADS = 16
WAITS = 0.1  # seconds for the next answer, of a server that may wait for the rest of a request
Move = Callable[[int], None]
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
PAUSE = 2.0  # seconds that an ask may wait meanwhile
ENDLESS = 64 * 2**20  # bytes of headers
ENDS = 60.0  # seconds until a request that never ends is given up


def fuzz(place: Place, tally: Tally, *, store: str) -> None:
    """Send bytes that nobody would write."""
    wanted = place.often(500_000, 8_000)
    errors = place.folder / f"fuzz-{store}.stderr"
    errors.unlink(missing_ok=True)
    with several(1, place.fresh(store), errors, "--rate", "1e9") as [server]:
        created(server, "other")
        with Asking(server, rest=0.05) as asking, place.progress(store, wanted) as move:
            fuzzers = [_Fuzzer(server, seed, wanted // THREADS, move) for seed in range(THREADS)]
            for fuzzer in fuzzers:
                fuzzer.start()
            for fuzzer in fuzzers:
                fuzzer.join()
                tally.times += fuzzer.sent
                tally.statuses += fuzzer.statuses
        tally.failures = tally.statuses[500]
        for fuzzer in fuzzers:
            for bytes_, answer in fuzzer.failed[:1]:
                raise Defect(f"{bytes_!r} was answered by {answer!r}")
        asking.settle(tally, PAUSE)
        if server.process.poll() is not None:
            raise Defect(f"the server has ended: {server.words()}")
        if server.tracebacks():
            raise Defect(f"tracebacks were written: {server.words()}")
    said = sorted(tally.statuses.items())
    tally.came = ", ".join(f"{status}: {count:,}" for status, count in said)


class _Fuzzer(Thread):
    """One that sends volleys, each on a connection of its own."""

    def __init__(self, server: Server, seed: int, count: int, move: Move) -> None:
        super().__init__(daemon=True)
        self.sent, self.statuses = 0, Counter[int]()
        self.failed: list[tuple[bytes, bytes]] = []
        self._port, self._count, self._move = server.port, count, move
        self._rng = random.Random(seed)

    def run(self) -> None:
        while self.sent < self._count:
            requests = volley(self._rng)
            content = b"".join(requests)
            answers = self._send(content)
            statuses = [int(found) for found in STATUS.findall(answers)]
            self.statuses.update(statuses)
            if 500 in statuses:
                at = answers.index(b" 500 ")
                self.failed.append((content[:3000], answers[max(0, at - 20) : at + 300]))
            self.sent += len(requests)
            with _moving:
                self._move(len(requests))

    def _send(self, content: bytes) -> bytes:
        """All answers; a server that waits for more is left soon."""
        answers = bytearray()
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 10.0) as one:
            one.sendall(content)
            one.settimeout(WAITS)
            while more := one.recv(2**16):
                answers += more
        return bytes(answers)


_moving = Lock()


def endless(place: Place, tally: Tally) -> None:
    """Headers without an end, lines without an end: refused early, and others go on."""
    with several(1, place.fresh("SQLite"), place.folder / "fuzz.stderr") as [server]:
        with Asking(server, rest=0.05) as asking:
            for start in (b"GET / HTTP/1.1\r\nx: ", b"GET /", b"GET / HTTP/1.1\r\n"):
                for _ in range(place.often(5, 1)):
                    sent = _poured(server, start, b"a" * 2**16 if start[-1:] != b"\n" else LINES)
                    tally.times += 1
                    if sent >= ENDLESS:
                        tally.wrong += 1
        asking.settle(tally, PAUSE)
    if tally.wrong:
        raise Defect(f"{ENDLESS >> 20} MiB of headers were read to their end, {tally.wrong} times")
    tally.came = "refused early"


LINES = b"".join(b"x%d: y\r\n" % k for k in range(8000))


def _poured(server: Server, start: bytes, more: bytes) -> int:
    """Send without an end; how many bytes were taken."""
    sent = 0
    with suppress(OSError):
        with socket.create_connection(("127.0.0.1", server.port), 10.0) as connection:
            connection.sendall(start)
            while sent < ENDLESS:
                connection.sendall(more)
                sent += len(more)
    return sent


def halves(place: Place, tally: Tally) -> None:
    """Many connections with half a request, or half a body: they are ended, and others go on."""
    count = place.often(500, 50)
    half = [
        b"GET /healthz HTTP/1.1\r\nho",
        sound("/v1/experiments/prices/decisions", "POST", b"x" * 99)[:-50],
    ]
    with several(1, place.fresh("SQLite"), place.folder / "fuzz.stderr") as [server]:
        with Asking(server, rest=0.05) as asking:
            opened = []
            for k in range(count):
                one = socket.create_connection(("127.0.0.1", server.port), 10.0)
                one.sendall(half[k % 2])
                one.setblocking(False)
                opened.append(one)
                tally.times += 1
            began = time.monotonic()
            try:
                until(
                    lambda: all(map(_is_ended, opened)), f"{count} half requests are ended", ENDS
                )
            finally:
                for one in opened:
                    one.close()
        asking.settle(tally, PAUSE)
    tally.came = f"ended after {time.monotonic() - began:.0f} s"


def _is_ended(connection: socket.socket) -> bool:
    """Whether the server has let go of a connection."""
    try:
        while connection.recv(2**16):
            pass
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True


CASES = [
    *(Case("fuzz", f"{store}, fuzzed bytes", partial(fuzz, store=store)) for store in STORES),
    Case("fuzz", "64 MiB of headers or of a request line", endless),
    Case("fuzz", "500 connections with half a request", halves, False),
]
