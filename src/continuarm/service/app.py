"""The application: all operations on the experiments of a store."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from continuarm.background import Task, every, heard
from continuarm.errors import ExperimentConflictError
from continuarm.service import page
from continuarm.service.browsers import Browsers
from continuarm.service.clock import ClockWatch
from continuarm.service.connections import Connection
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
)
from continuarm.service.log import standard_error
from continuarm.service.looking import Looking
from continuarm.service.metrics import Metrics
from continuarm.service.operations import openapi
from continuarm.service.reads import Reads
from continuarm.service.said import Said
from continuarm.service.shortcuts import Shortcuts
from continuarm.service.steering import Steering
from continuarm.service.stopping import hear
from continuarm.service.streams import Streams
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
    log: Log = standard_error,
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
    watch = ClockWatch(experiments.store)
    said, metrics = Said(experiments, watch), Metrics(experiments, watch)
    door = Doorkeeper(experiments.store, rate, public=public)
    reads, streams = Reads(), Streams(door, lambda: experiments.is_stopping)
    metrics.counts |= {
        "reads_refused": lambda: reads.refused,
        "reads_ended": lambda: reads.ended,
        "log_lines_dropped": lambda: standard_error.dropped,
        "connections_cut": Connection.cut.total,
    }
    deciding = Deciding(experiments).operations(ONE)
    operations = [
        *deciding,
        *Looking(experiments, said, reads).operations(MANY, ONE),
        *Happening(experiments, reads, streams).operations(ONE),
        *Steering(experiments, said).operations(ONE),
    ]
    lines = Lines(log, log_contexts)
    routes, quick = list[Route](), dict[str, Endpoint]()
    for op in operations:
        endpoint = Endpoint(op, door, metrics.counting(op.method, op.path), lines)
        routes.append(Route(op.path, endpoint, methods=[op.method]))
        if op in deciding:
            quick[op.path.rpartition("/")[2]] = endpoint
    health = _Health(
        experiments, door, reads, streams, metrics, lines, encode(openapi(operations))
    )
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
        reads: Reads,
        streams: Streams,
        metrics: Metrics,
        lines: Lines,
        page: bytes,
    ) -> None:
        self._experiments, self._door = experiments, door
        self._reads, self._streams = reads, streams
        self._metrics, self._lines, self._page = metrics, lines, page
        self._watch = metrics.watch
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
        hear(self._stop)
        self._door.start()
        usual = gc.get_threshold()
        with heard(self._say_from(asyncio.get_running_loop())):
            await self._look_at_clock()
            await asyncio.to_thread(self._experiments.open_all)
            gc.freeze()  # what is compiled is many objects, which need not be looked through again
            gc.set_threshold(GARBAGE, *usual[1:])
            self._has_begun = True
            tasks = [
                asyncio.create_task(every(TICK, Task(name), work))
                for name, work in (
                    ("opening", self._look_after),
                    ("expiry", self._pass_time),
                    ("clock", self._look_at_clock),
                )
            ]
            yield
            for task in tasks:
                task.cancel()
        self._door.close()
        self._reads.close()
        self._streams.close()
        await asyncio.to_thread(self._experiments.close)
        self._lines.flush()
        await asyncio.to_thread(standard_error.flush)
        gc.set_threshold(*usual)
        gc.unfreeze()

    def _stop(self) -> None:
        """Let nobody wait any more; a handler of signals calls it."""
        self._experiments.stop()
        self._reads.stop()

    def _say_from(self, loop: asyncio.AbstractEventLoop) -> Callable[[str], None]:
        """What writes a line of log, for any thread to call."""

        def say(text: str) -> None:
            loop.call_soon_threadsafe(self._lines.add, {"background": text})

        return say

    async def _pass_time(self) -> None:
        """In all experiments; one that fails, or was archived meanwhile, holds up no other."""
        running = self._experiments.all_running()
        passed = (one.pass_time() for one in running)
        for error in await asyncio.gather(*passed, return_exceptions=True):
            if error is not None and not isinstance(error, ExperimentConflictError):
                raise error

    async def _look_at_clock(self) -> None:
        await asyncio.to_thread(self._watch.look)

    async def _look_after(self) -> None:
        """Apart from the clock: to open an experiment may take long."""
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
        unwritten = [alarm for one in running if (alarm := one.alarm) is not None]
        alarms = self._watch.alarms(running) + unwritten
        return answered({**found, "alarms": alarms}, 200 if fit else 503)

    async def counted(self, request: HttpRequest) -> Response:
        content = await asyncio.to_thread(self._metrics.text)
        return Response(content, 200, HEADERS, "text/plain; version=0.0.4")

    async def described(self, request: HttpRequest) -> Response:
        return Response(self._page, 200, HEADERS, JSON)


async def _unknown(request: HttpRequest, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    word = {404: "unknown-path", 405: "unknown-method"}.get(status, "failed")
    return failed(request.scope, status, word)
