"""The application: all operations on the experiments of a store."""

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from continuarm.errors import ContinuarmError
from continuarm.service import page
from continuarm.service.browsers import Browsers
from continuarm.service.deciding import Deciding
from continuarm.service.experiments import Experiments
from continuarm.service.happening import Happening
from continuarm.service.http import (
    HEADERS,
    JSON,
    Endpoint,
    Lines,
    Log,
    answered,
    encode,
    failed,
    to_standard_error,
)
from continuarm.service.looking import Looking
from continuarm.service.metrics import Metrics
from continuarm.service.operations import openapi
from continuarm.service.said import Said
from continuarm.service.shortcuts import Shortcuts
from continuarm.service.steering import Steering
from continuarm.service.stopping import hear
from continuarm.service.tokens import Doorkeeper

__all__ = ["application"]

MANY, ONE = "/v1/experiments", "/v1/experiments/{name}"
MOST_A_SECOND = 10_000.0  # requests of one token
GARBAGE = (
    10_000  # objects after which it is looked for; a request makes a few dozen, none in rings
)
TICK = 0.5  # seconds between two looks for what is over its time


def application(
    experiments: Experiments,
    *,
    rate: float = MOST_A_SECOND,
    log: Log = to_standard_error,
    log_contexts: bool = False,
    origins: Sequence[str] = (),
    public: bool = False,
) -> Shortcuts:
    """The service on the experiments of a store.

    rate : requests per second of one token.
    log_contexts : whether the log says what was asked for.
    origins : of pages of others that may ask, and read answers.
    public : whether other machines may reach it: without tokens nobody is let in then.
    """
    said = Said(experiments)
    door, metrics = Doorkeeper(experiments.store, rate, public=public), Metrics(experiments)
    metrics.counts["token_reads_failed"] = lambda: door.failures
    deciding = Deciding(experiments).operations(ONE)
    operations = [
        *deciding,
        *Looking(experiments, said).operations(MANY, ONE),
        *Happening(experiments, door).operations(ONE),
        *Steering(experiments, said).operations(ONE),
    ]
    lines = Lines(log, log_contexts)
    routes, quick = list[Route](), dict[str, Endpoint]()
    for op in operations:
        endpoint = Endpoint(op, door, metrics.counting(op.method, op.path), lines)
        routes.append(Route(op.path, endpoint, methods=[op.method]))
        if op in deciding:
            quick[op.path.rpartition("/")[2]] = endpoint
    health = _Health(experiments, door, metrics, lines, encode(openapi(operations)))
    handlers: Any = {404: _unknown, 405: _unknown, 500: _unknown}
    app = Shortcuts(
        routes=[*routes, *page.routes(), *health.routes()],
        lifespan=health.life,
        exception_handlers=handlers,
        middleware=[
            *(_for_pages_of(origins) if origins else ()),
            Middleware(Browsers, door, lines, origins),
        ],
    )
    app.endpoints = {} if origins else quick
    app.browsers = Browsers(app, door, lines, origins)
    return app


def _for_pages_of(origins: Sequence[str]) -> list[Middleware]:
    """What lets browsers show answers to pages of others."""
    headers, methods = ["authorization", "content-type"], ["GET", "POST", "PUT", "DELETE"]
    return [
        Middleware(
            CORSMiddleware, allow_origins=origins, allow_methods=methods, allow_headers=headers
        )
    ]


class _Health:
    """Whether it lives, whether it is ready, and what it counts."""

    def __init__(
        self,
        experiments: Experiments,
        door: Doorkeeper,
        metrics: Metrics,
        lines: Lines,
        page: bytes,
    ) -> None:
        self._experiments, self._door = experiments, door
        self._metrics, self._lines, self._page = metrics, lines, page
        self._has_begun = False

    def routes(self) -> list[Route]:
        return [
            Route("/healthz", self.alive),
            Route("/readyz", self.ready),
            Route("/metrics", self.counted),
            Route("/openapi.json", self.described),
        ]

    @asynccontextmanager
    async def life(self, app: Starlette) -> AsyncIterator[None]:
        """Open what there is, look after what is over its time, and close it at the end."""
        hear(self._experiments.stop)
        self._door.start()
        await asyncio.to_thread(self._experiments.open_all)
        gc.freeze()  # what is compiled is many objects, which need not be looked through again
        usual = gc.get_threshold()
        gc.set_threshold(GARBAGE, *usual[1:])
        self._has_begun = True
        tasks = [asyncio.create_task(work()) for work in (self._pass_time, self._look_after)]
        yield
        for task in tasks:
            task.cancel()
        self._door.close()
        await asyncio.to_thread(self._experiments.close)
        self._lines.flush()
        gc.set_threshold(*usual)
        gc.unfreeze()

    async def _pass_time(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            for running in self._experiments.all_running():
                with suppress(ContinuarmError):  # one that is archived holds up no other
                    await running.pass_time()

    async def _look_after(self) -> None:
        """Apart from the clock: to open an experiment may take long."""
        while True:
            await asyncio.sleep(TICK)
            await asyncio.to_thread(self._experiments.look_after)

    async def alive(self, request: HttpRequest) -> Response:
        return answered({"alive": True})

    async def ready(self, request: HttpRequest) -> Response:
        running = self._experiments.all_running()
        late = [one.name for one in running if one.is_behind]
        apart = [one.replica for one in running if one.replica.differs is not None]
        differ = [one.differs for one in apart if not one.is_broken]  # that is quarantined soon
        held = {name: one.said for name, one in self._experiments.quarantined.items()}
        serves = any(not one.is_behind and one.replica.differs is None for one in running)
        fit = self._has_begun and (serves or not (running or held))
        found = {"ready": fit, "behind": late, "differ": differ, "quarantined": held}
        return answered(found, 200 if fit else 503)

    async def counted(self, request: HttpRequest) -> Response:
        content = await asyncio.to_thread(self._metrics.text)
        return Response(content, 200, HEADERS, "text/plain; version=0.0.4")

    async def described(self, request: HttpRequest) -> Response:
        return Response(self._page, 200, HEADERS, JSON)


async def _unknown(request: HttpRequest, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    word = {404: "unknown-path", 405: "unknown-method"}.get(status, "failed")
    return failed(request.scope, status, word)
