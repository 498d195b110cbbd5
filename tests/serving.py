"""The service inside a test."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import httpx
import uvicorn

from continuarm.service.app import application
from continuarm.service.experiments import Experiments
from continuarm.service.server import OPTIONS
from continuarm.store import Store
from tests.postgresql import free_port


@contextmanager
def served(store: Store) -> Iterator[httpx.Client]:
    """The service in this process."""
    app = application(Experiments(store), log=lambda line: None)
    server = uvicorn.Server(uvicorn.Config(app, port=free_port(), **OPTIONS))
    thread = Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        url = f"http://127.0.0.1:{server.config.port}"
        with httpx.Client(base_url=url, timeout=120.0) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


def until_ready(server: httpx.Client, status: int) -> None:
    until = time.monotonic() + 30.0
    while server.get("/readyz").status_code != status:
        assert time.monotonic() < until, f"/readyz must become {status}"
        time.sleep(0.05)
