"""The service in a thread of this process, on a store that is gone afterwards."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from continuarm.demo.ending import Ending
from continuarm.errors import ContinuarmError, MissingExtraError

try:
    import httpx
    import uvicorn

    from continuarm.service.app import application
    from continuarm.service.experiments import Experiments
    from continuarm.service.server import OPTIONS
except ImportError as error:
    raise MissingExtraError(
        "the demonstration needs the service and its client: "
        "pip install 'continuarm[service,client]'"
    ) from error

from continuarm.service.listening import bound
from continuarm.store import open_store

__all__ = ["served"]

HOST = "127.0.0.1"
PATIENCE = 60.0  # seconds
QUIETLY: dict[str, Any] = {"log_level": "error", "timeout_graceful_shutdown": 5}


@contextmanager
def served(port: int, ending: Ending) -> Iterator[httpx.Client]:
    """A client of a service that answers on this port; at the end nothing is left of it."""
    with TemporaryDirectory(prefix="continuarm-demo-") as folder, bound(HOST, port) as found:
        experiments = Experiments(open_store(Path(folder) / "demo.db"))
        app = application(experiments, log=lambda line: None)
        server = uvicorn.Server(uvicorn.Config(app, **OPTIONS | QUIETLY))
        thread = Thread(target=server.run, kwargs={"sockets": [found]}, name="demo", daemon=True)
        thread.start()
        try:
            url = f"http://{HOST}:{found.getsockname()[1]}"
            with httpx.Client(base_url=url, timeout=300.0) as client:
                _wait_for(client, ending)
                yield client
        finally:
            experiments.stop()  # a page that looks on is not waited for
            server.should_exit = True
            thread.join(PATIENCE)


def _wait_for(client: httpx.Client, ending: Ending) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        ending.look()
        try:
            if client.get("/readyz").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.02)
    raise ContinuarmError(f"the service must be ready within {PATIENCE:g} s, but is not")
