"""The service with echoes beside it: the same body is parsed, an answer of the same size goes."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from continuarm.service import messages, serving
from continuarm.service.connections import Connection
from continuarm.service.http import HEADERS, JSON
from continuarm.service.server import OPTIONS
from continuarm.service.shortcuts import Shortcuts

__all__ = ["SIZE", "application"]

SIZE = "CONTINUARM_ECHO"  # bytes of an answer


def application() -> Shortcuts:
    """The application of one worker."""
    app, answer = serving._application(), b"x" * int(os.environ[SIZE])

    async def echo(request: HttpRequest) -> Response:
        msgspec.json.decode(await request.body(), type=messages.Request)
        return Response(answer, 200, HEADERS, JSON)

    async def bare(scope: Any, receive: Any, send: Any) -> None:
        msgspec.json.decode((await receive())["body"], type=messages.Request)
        await Response(answer, 200, HEADERS, JSON)(scope, receive, send)

    app.router.routes.insert(0, Route("/echo", echo, methods=["POST"]))
    app.endpoints["echo"] = bare  # type: ignore[assignment]
    return app


def main(server: str, store: str, port: str, workers: str, size: str) -> None:
    """Serve it, by one of several servers."""
    os.environ.update({serving.STORE: store, serving.MAX_LAG: "60.0", SIZE: size})
    os.environ[serving.MANNER] = '{"rate": 1e9}'
    SERVERS[server](int(port), int(workers))


def _uvicorn(http: Any) -> Callable[[int, int], None]:
    def serve(port: int, workers: int) -> None:
        OPTIONS["http"] = http
        serving.run(HERE, "127.0.0.1", port, workers)

    return serve


def _granian(port: int, workers: int) -> None:
    from granian import Granian
    from granian.constants import Interfaces

    Granian(
        HERE,
        port=port,
        interface=Interfaces.ASGI,
        workers=workers,
        factory=True,
        log_enabled=False,
    ).serve()


def _hypercorn(port: int, workers: int) -> None:
    import uvloop

    serve = import_module("hypercorn.asyncio").serve
    config = import_module("hypercorn.config").Config()
    config.bind = [f"127.0.0.1:{port}"]
    uvloop.run(serve(application(), config))


HERE = "benchmarks.service_app:application"
SERVERS: dict[str, Callable[[int, int], None]] = {
    "uvicorn": _uvicorn(Connection),
    "uvicorn-without-limits": _uvicorn("httptools"),
    "uvicorn-h11": _uvicorn("h11"),
    "granian": _granian,
    "hypercorn": _hypercorn,
}


if __name__ == "__main__":
    main(*sys.argv[1:])
