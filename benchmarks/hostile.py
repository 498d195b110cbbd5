"""Decisions a second beside clients that send without end, slowly, or half of a request.

    python -m benchmarks.hostile [--seconds 10] [--write]

Each server runs the service in a process of its own, on SQLite. The load comes from this process,
the hostile clients from another one. Servers other than uvicorn need `pip install granian
hypercorn`. `--write` puts the table into docs/service-measured.md.
"""

import argparse
import selectors
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

from benchmarks.service import CONNECTIONS, HERE, Server, serving
from benchmarks.service_load import load
from benchmarks.service_page import machine, put
from continuarm.table import Table

SERVERS = ("uvicorn", "uvicorn-without-limits", "uvicorn-h11", "granian", "hypercorn")
POST = f"POST {HERE}/decisions HTTP/1.1\r\nhost: 127.0.0.1\r\n".encode()
BODY = b"content-type: application/json\r\ncontent-length: 1000\r\n\r\n{"
ENDLESS, SILENT = 4, 300  # connections
PIECE = b"x" * 2**16
LATE = 45.0  # seconds after which a request that is not whole should have ended


def endless(port: int, pipe: Pipe) -> None:
    """Headers without end, until told to stop; how many bytes were taken."""
    waiting, sent = selectors.DefaultSelector(), 0
    for _ in range(ENDLESS):
        waiting.register(_begun(port), selectors.EVENT_WRITE)
    while not pipe.poll():
        for key, _ in waiting.select(0.1):
            one: Any = key.fileobj
            try:
                sent += one.send(PIECE)
            except BlockingIOError:
                continue
            except OSError:  # it was ended: once more
                waiting.unregister(one)
                one.close()
                waiting.register(_begun(port), selectors.EVENT_WRITE)
    pipe.send(round(sent / 2**20))


def _begun(port: int) -> socket.socket:
    found = _connected(port)
    with suppress(OSError):
        found.sendall(POST + b"x: ")
    found.setblocking(False)
    return found


def slow_headers(port: int, pipe: Pipe) -> None:
    """One byte a second; how many connections are still open."""
    _half(port, pipe, POST + b"x: ", b"x")


def half_bodies(port: int, pipe: Pipe) -> None:
    """The beginning of a body, and no more; how many connections are still open."""
    _half(port, pipe, POST + BODY, b"")


def _half(port: int, pipe: Pipe, begin: bytes, drip: bytes) -> None:
    waiting = selectors.DefaultSelector()
    for _ in range(SILENT):
        one = _connected(port)
        with suppress(OSError):
            one.sendall(begin)
        waiting.register(one, selectors.EVENT_READ)
    while not pipe.poll():
        for key, _ in waiting.select(0.0):
            answered: Any = key.fileobj
            with suppress(OSError):
                if answered.recv(2**16):
                    continue
            waiting.unregister(answered)
            answered.close()
        for key in list(waiting.get_map().values()):
            with suppress(OSError):
                key.fileobj.send(drip)  # type: ignore[union-attr]
        time.sleep(1.0)
    pipe.send(len(waiting.get_map()))


def _connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 30.0)


def beside(attack: Callable[..., None], running: Server, shop: Any, seconds: float) -> list[Any]:
    """Decisions a second beside an attack, the longest wait, and what the attack says at last."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=attack, args=(running.port, theirs), daemon=True)
    process.start()
    time.sleep(2.0)
    asks = shop.asks(int(4000 * seconds))
    try:
        done = load(running.port, asks, connections=CONNECTIONS, seconds=seconds)
        found: list[Any] = [round(done.rate), round(1000.0 * max(done.took))]
    except (AssertionError, OSError):
        found = ["none", None]
    time.sleep(0.0 if attack is endless else max(LATE - seconds - 2.0, 0.0))
    ours.send("stop")
    found.append(ours.recv() if ours.poll(60.0) else None)
    process.kill()
    return found


def measured(server: str, seconds: float) -> list[Any]:
    """A row of the table."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        with serving(str(Path(folder) / "shop.db"), server) as (running, shop):
            asks = shop.asks(int(8000 * seconds))
            alone = load(running.port, asks, connections=CONNECTIONS, seconds=seconds)
            row: list[Any] = [server, round(alone.rate), round(1000.0 * max(alone.took))]
            for attack in (endless, slow_headers, half_bodies):
                row += beside(attack, running, shop, seconds)
    return row


def text(rows: list[list[Any]]) -> str:
    """What is written."""
    columns = ["server", "alone, a second", "longest, ms"]
    for what, last in (
        ("endless headers", "MiB taken"),
        ("slow headers", "open after 45 s"),
        ("half bodies", "open after 45 s"),
    ):
        columns += [f"beside {what}, a second", "longest, ms", last]
    return f"""
Durable asks from {CONNECTIONS} connections on SQLite, one worker: alone, beside {ENDLESS}
connections that send headers without end, beside {SILENT} that send a byte of a header a second,
and beside {SILENT} that send half a body. *uvicorn* is the server that the service runs, with
[its limits](service.md#who-may); *uvicorn-without-limits* is the same without them.

{Table.of(tuple(columns), [tuple(row) for row in rows]).markdown()}

What to read in it is who is still heard, and what is left open. Each server meets the clients one
kind after the other, so what the first have left behind counts for the next. Rates of different
rows do not order the servers: other work ran on this machine at the time. *Requests*, above, has
rates of uvicorn and granian by themselves.

Only with our limits is every kind ended. Without them uvicorn answers nobody beside endless
headers. The others take them as fast as they come, and all keep half bodies for as long as was
looked. So the service keeps uvicorn, which had the highest rates of *Requests*, and limits it.
"""


def main() -> None:
    """Measure all servers, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--server", choices=SERVERS, action="append")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = []
    for server in options.server or SERVERS:
        rows.append(measured(server, options.seconds))
        print(rows[-1], flush=True)
    command = f"python -m benchmarks.hostile --seconds {options.seconds:g} --write"
    found = text(rows) + f"\n`{command}` on {machine()}.\n"
    print(found)
    if options.write:
        put("Hostile clients", found)


if __name__ == "__main__":
    main()
