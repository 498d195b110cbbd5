"""`continuarm serve` for the tests: as a process of its own, or inside theirs."""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import uvicorn

from continuarm.service.app import application
from continuarm.service.experiments import Experiments
from continuarm.service.server import OPTIONS
from continuarm.store import Store
from tests.postgresql import free_port

__all__ = ["CUSTOMER", "HERE", "PRICES", "SIZES", "Server", "free_port", "served", "until"]

PRICES = {
    "policy": "recommended",
    "context": {"low": [18, 0], "high": [90, 250000], "names": ["age", "income"]},
    "decision": {"low": [1], "high": [9], "names": ["price"], "spacing": 0.05},
    "options": {"ttl_seconds": 7200, "share": 0.1, "start": [4.0]},
}
SIZES = {"low": [1, 1], "high": [9, 9], "names": ["small", "large"]}
CUSTOMER = {"age": 37, "income": 52000}
HERE = "/v1/experiments/prices"


class Server:
    """`continuarm serve` in a process of its own."""

    def __init__(self, store: str | Path, *options: str, log: int | None = None) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "continuarm", "serve", "--store", str(store)]
        self.log = tempfile.TemporaryFile("w+")  # nobody reads it meanwhile: a pipe would fill
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port), *options], stderr=self.log if log is None else log
        )
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=120.0)

    def ready(self) -> "Server":
        until = time.monotonic() + 300.0
        while time.monotonic() < until and self.process.poll() is None:
            try:
                if self.client.get("/readyz").status_code == 200:
                    return self
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        raise AssertionError("the server must become ready")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> str:
        self.process.send_signal(how)
        self.process.wait(60)
        self.client.close()
        with self.log as log:
            log.seek(0)
            return log.read()

    def __enter__(self) -> "Server":
        return self.ready()

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop(signal.SIGKILL)


@contextmanager
def served(
    store: Store, *, most: int = 1000, max_lag: float = 5.0, grace: int = 10, **options: Any
) -> Iterator[httpx.Client]:
    """The service on a thread of this process: quicker to start than a process."""
    experiments = Experiments(store, most=most, max_lag=max_lag)
    app, port = application(experiments, **options), free_port()
    given = OPTIONS | {"timeout_graceful_shutdown": grace}
    server = uvicorn.Server(uvicorn.Config(app, port=port, lifespan="on", **given))
    thread = Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300.0) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


def until(holds: Any) -> None:
    """Wait for what is folded a few milliseconds later."""
    end = time.monotonic() + 10.0
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)
