"""Streams that are left without a word, and a log that nobody reads."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.attacks.place import Place
from benchmarks.attacks.reads import Asking
from benchmarks.attacks.result import Case, Defect, Tally
from benchmarks.attacks.servers import Server, several

__all__ = ["CASES"]

STREAMS = 800
SLOWER = 3.0  # times as long as before an ask may take on average


def streams(place: Place, tally: Tally) -> None:
    """Many streams of events that are opened, and left without a word."""
    with several(1, place.fresh("SQLite"), place.folder / "reads.stderr") as [server]:
        seconds, count = place.often(5, 1), place.often(STREAMS, 200)
        before = _mean(server, tally, seconds)
        with _opened(server, count):
            tally.times += count
            held = _mean(server, tally, seconds)
        after = _mean(server, tally, seconds)
        time.sleep(3.0)
        sockets = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    tally.came = f"an ask took {1e3 * before:.1f}, {1e3 * held:.1f}, {1e3 * after:.1f} ms"
    if max(held, after) > SLOWER * before + 0.005:
        raise Defect(f"{count} left streams slow asks: before, with and after them {tally.came}")
    if sockets > 100:
        raise Defect(f"{sockets} files are open after {count} streams were left")


@contextmanager
def _opened(server: Server, count: int) -> Iterator[None]:
    line = b"GET /v1/experiments/prices/stream HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    opened = []
    try:
        for _ in range(count):
            one = socket.create_connection(("127.0.0.1", server.port), 10.0)
            one.sendall(line)
            opened.append(one)
        yield
    finally:
        for one in opened:
            one.close()


def _mean(server: Server, tally: Tally, seconds: float) -> float:
    """How long an ask takes on average."""
    with Asking(server, rest=0.0) as asking:
        time.sleep(seconds)
    asking.settle(tally, longest=10.0)
    return sum(asking.took) / len(asking.took)


def full_pipe(place: Place, tally: Tally) -> None:
    """Nobody reads the server's log, and its pipe is full: it answers all the same."""
    address = place.fresh("SQLite")
    with several(1, address, place.folder / "reads.stderr") as [server]:
        server.end()
        reads, writes = os.pipe()
        server.process = subprocess.Popen(server._command, stderr=writes)
        os.close(writes)
        try:
            server.ready()
            with Asking(server, rest=0.0) as asking:
                end = time.monotonic() + place.often(60, 20)
                while len(asking.took) < 5000 and time.monotonic() < end:
                    time.sleep(0.1)
                told = len(asking.took)
            tally.times = told
            asking.settle(tally)
        finally:
            os.close(reads)
    tally.came = "asks go on"


CASES = [
    Case("streams", "800 streams, left", streams),
    Case("streams", "a log pipe that nobody reads", full_pipe),
]
