"""`continuarm serve` as a process that is killed, frozen and started again on its port."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.attacks.result import Defect
from tests import service
from tests.postgresql import free_port

__all__ = ["PRICES", "Server", "created", "request", "several"]

STARTS = 120.0  # seconds until a server must be ready
AWAY = "a store must answer"  # how it says at its end that its database has not
Answer = tuple[int, Any]


def request(
    port: int,
    method: str,
    path: str,
    body: object = None,
    *,
    token: str | None = None,
    timeout: float = 30.0,
) -> Answer:
    """One request on a connection of its own: the status, and what was answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    headers = {"content-type": "application/json"}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, headers)
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    return answer.status, json.loads(content) if content[:1] in (b"{", b"[") else content.decode()


class Server:
    """A process that serves a store.

    log : where its standard error goes: a file that grows.
    """

    def __init__(
        self, store: str, log: Path, *options: str, environment: dict[str, str] | None = None
    ) -> None:
        self.port, self.log = free_port(), log
        self._command = [sys.executable, "-m", "continuarm", "serve", "--store", store]
        self._command += ["--port", str(self.port), *options]
        self._environment = {**os.environ, **(environment or {})}
        self.start()

    def start(self) -> None:
        """Start it, again or for the first time."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self._command, stderr=log, env=self._environment)

    def ready(self, path: str = "/readyz") -> "Server":
        """Wait until it says that it is."""
        until, said = time.monotonic() + STARTS, ""
        while time.monotonic() < until:
            if self.process.poll() is not None:
                if AWAY not in self.words().rpartition(" / ")[2]:
                    raise Defect(f"a server ended while it started: {self.words()}")
                self.start()  # as a supervisor does, while the database is too busy to answer
            status, answer = self.says(path)
            if status == 200:
                return self
            said = f": {answer}"
            time.sleep(0.05)
        raise Defect(f"a server must become ready within {STARTS:g} s{said}; {self.words()}")

    def says(self, path: str) -> Answer:
        """What it answers, if it does."""
        try:
            return request(self.port, "GET", path)
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)

    def words(self) -> str:
        """The last of what it has written that is no line of its log."""
        lines = self.log.read_bytes()[-200_000:].decode(errors="replace").splitlines()
        return " / ".join(line for line in lines if not line.startswith("{"))[-600:]

    def tracebacks(self, but: bytes = b"nothing") -> int:
        """In how many lines it has written one, but for those that say something."""
        lines = self.log.read_bytes().splitlines()
        return sum(b"Traceback (most recent" in line and but not in line for line in lines)

    def send(self, which: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(which)

    def end(self, how: signal.Signals = signal.SIGKILL) -> int:
        """End it; its exit code."""
        if self.process.poll() is None:
            self.send(signal.SIGCONT)
            self.send(how)
        return self.process.wait(60)


LASTS: dict[str, Any] = {"ttl": 10**7}  # decisions: none expires while its payoff is on its way
PRICES: dict[str, Any] = service.PRICES | {"options": service.PRICES["options"] | LASTS}  # type: ignore[operator]


def created(server: Server, name: str = "prices", **more: Any) -> None:
    """Make an experiment."""
    status, answer = request(
        server.port, "PUT", f"/v1/experiments/{name}", PRICES | more, timeout=300.0
    )
    if status not in (200, 201):
        raise Defect(f"an experiment must be made, but got {status}: {answer}")


@contextmanager
def several(
    count: int, store: str, log: Path, *options: str, **more: Any
) -> Iterator[list[Server]]:
    """Servers on one store, with the experiment `prices`; none is left."""
    servers = [Server(store, log, *options, **more)]
    try:
        created(servers[0].ready())
        servers += [Server(store, log, *options, **more) for _ in range(count - 1)]
        for server in servers:
            server.ready()
        yield servers
    finally:
        for server in servers:
            server.end()
