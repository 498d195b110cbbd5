"""Serving: the application on an address, in one process or in several that share a store."""

import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing

from continuarm import checks
from continuarm.errors import MissingExtraError, SettingsError
from continuarm.service.listening import bound, is_loopback
from continuarm.service.stopping import end_well, end_with
from continuarm.service.workers import ARE_EVEN, Workers
from continuarm.store import open_store
from continuarm.store.addresses import without_password
from continuarm.store.schema import NoStoreError

try:
    import httptools  # noqa: F401  # the parser that uvicorn is run with
    import uvicorn

    from continuarm.service.app import MOST_A_SECOND, application
    from continuarm.service.experiments import Experiments
    from continuarm.service.running import MAX_BEHIND
    from continuarm.service.server import OPTIONS, allow_connections
    from continuarm.service.shortcuts import Shortcuts
except ModuleNotFoundError as error:
    missing = (error.name or "uvicorn").partition(".")[0]
    raise MissingExtraError(
        f"a server needs {missing}: pip install 'continuarm[service]'"
    ) from error

__all__ = ["serve"]

SWITCH = 0.0005  # seconds after which the thread that writes gets its turn
STORE, MAX_LAG = "CONTINUARM_STORE", "CONTINUARM_MAX_LAG"  # how workers are told
MAX_LAG_EVENTS, MANNER = "CONTINUARM_MAX_LAG_EVENTS", "CONTINUARM_MANNER"
PARENT = "CONTINUARM_PARENT"  # the process that has started the workers


def serve(
    store: str,
    *,
    host: str,
    port: int,
    workers: int,
    max_lag: float,
    max_behind: int = MAX_BEHIND,
    rate: float = MOST_A_SECOND,
    log_contexts: bool = False,
    origins: Sequence[str] = (),
    say: Callable[[str], None] = lambda address: None,
) -> None:
    """Answer until a signal says to stop; what was begun is finished.

    host : what others can reach is refused while the store has no tokens.
    rate, log_contexts, origins : see `application`.
    say : called with the address when nothing is in the way any more.
    """
    if workers > 1 and store == ":memory:":
        raise SettingsError(f"a store in memory has one worker, but got {workers}")
    checks.number("max-lag", max_lag)
    checks.number("rate", rate)
    public = not is_loopback(host)
    with bound(host, port) as free:
        port = free.getsockname()[1]
    try:  # what is wrong with the store is said at once, and once; what is refused makes none
        with closing(open_store(store, make=not public)) as opened:
            has_tokens = bool(opened.tokens())
    except NoStoreError:
        has_tokens = False
    if public and not has_tokens:
        raise SettingsError(
            "without tokens a server listens on loopback, 127.0.0.1 or ::1, but got "
            f"{host!r}: make one with `continuarm token create NAME --store "
            f"{without_password(store)}`"
        )
    manner = {"rate": rate, "log_contexts": log_contexts, "origins": list(origins)}
    manner |= {"public": public}
    os.environ[STORE], os.environ[MAX_LAG] = store, repr(max_lag)
    os.environ[MAX_LAG_EVENTS], os.environ[MANNER] = str(max_behind), json.dumps(manner)
    end_well()
    say(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
    run("continuarm.service.serving:_application", host, port, workers)


def run(factory: str, host: str, port: int, workers: int) -> None:
    """Serve the application that a function makes in every worker, given as `module:function`."""
    os.environ[PARENT] = str(os.getpid())
    if workers == 1 or not ARE_EVEN:
        uvicorn.run(factory, factory=True, host=host, port=port, workers=workers, **OPTIONS)
    else:
        Workers(workers, _work, factory, host, port).run()


def _work(factory: str, host: str, port: int) -> None:
    """Serve in one of several workers."""
    with bound(host, port, is_shared=True) as own:
        uvicorn.Server(uvicorn.Config(factory, factory=True, **OPTIONS)).run(sockets=[own])


def _application() -> Shortcuts:
    """The application of one worker."""
    sys.setswitchinterval(SWITCH)
    allow_connections()
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # the tasks that it concerns say the same
    parent = int(os.environ.get(PARENT, "0"))
    if parent == os.getppid():
        end_with(parent)
    store, max_lag = open_store(os.environ[STORE]), float(os.environ[MAX_LAG])
    manner = json.loads(os.environ.get(MANNER, "{}"))
    behind = int(os.environ.get(MAX_LAG_EVENTS, MAX_BEHIND))
    return application(Experiments(store, max_lag=max_lag, max_behind=behind), **manner)
