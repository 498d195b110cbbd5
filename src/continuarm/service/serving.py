"""Serving: the application on an address, in one process or in several that share a store."""

import ipaddress
import os
from contextlib import closing

from starlette.applications import Starlette

from continuarm.errors import MissingExtraError, SettingsError
from continuarm.service.app import application
from continuarm.service.experiments import Experiments
from continuarm.store import open_store

try:
    import uvicorn
except ImportError as error:
    raise MissingExtraError("a server needs uvicorn: pip install 'continuarm[service]'") from error

__all__ = ["serve"]

STORE, MAX_LAG = "CONTINUARM_STORE", "CONTINUARM_MAX_LAG"  # how workers are told


def serve(store: str, *, host: str, port: int, workers: int, max_lag: float) -> None:
    """Answer until a signal says to stop; what was begun is finished.

    host : what others can reach is refused while the store has no tokens.
    """
    if workers > 1 and store == ":memory:":
        raise SettingsError(f"a store in memory has one worker, but got {workers}")
    with closing(open_store(store)) as opened:  # what is wrong with it is said at once, and once
        if not _is_loopback(host) and not opened.tokens():
            raise SettingsError(
                "without tokens a server listens on loopback, 127.0.0.1 or ::1, but got "
                f"{host!r}: make one with `continuarm token create NAME --store {store}`"
            )
    os.environ[STORE], os.environ[MAX_LAG] = store, repr(max_lag)
    run("continuarm.service.serving:_application", host, port, workers)


def run(factory: str, host: str, port: int, workers: int) -> None:
    """Serve the application that a function makes in every worker, given as `module:function`."""
    uvicorn.run(
        factory,
        factory=True,
        host=host,
        port=port,
        workers=workers,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=10,
    )


def _application() -> Starlette:
    """The application of one worker."""
    store, max_lag = open_store(os.environ[STORE]), float(os.environ[MAX_LAG])
    return application(Experiments(store, max_lag=max_lag))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
