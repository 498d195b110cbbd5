"""Requests and answers of HTTP: bodies of a type, one shape of refusals, one line of log each."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from continuarm.errors import ContinuarmError
from continuarm.service.messages import Refusal
from continuarm.service.operations import Operation
from continuarm.service.refusals import TooLargeError, refusal_of, status_of
from continuarm.service.tokens import Doorkeeper

__all__ = ["HEADERS", "JSON", "Log", "answered", "encode", "endpoint_of", "print_line"]

LARGEST_BODY = 2**20  # bytes
JSON = "application/json"
HEADERS = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'",
}
encode = msgspec.json.Encoder().encode
Log = Callable[[dict[str, Any]], None]


def answered(message: Any, status: int = 200) -> Response:
    """A message as an answer."""
    return Response(encode(message), status, HEADERS, JSON)


def endpoint_of(op: Operation, door: Doorkeeper, log: Log) -> Any:
    """What answers the requests of an operation."""

    async def endpoint(request: HttpRequest) -> Response:
        began = time.perf_counter()
        try:
            door.let_in(request.headers.get("authorization"), op.scope)
            body = None if op.takes is None else await _body(request, op.takes)
            response: Response = await op.handler(request, body)
        except (ContinuarmError, msgspec.MsgspecError) as error:
            response = answered(refusal_of(error), status_of(error))
        except ClientDisconnect:
            response = answered(Refusal("malformed", "the body must come whole"), 400)
        took = round(1000.0 * (time.perf_counter() - began), 3)
        path, status = request.url.path, response.status_code
        log({"method": op.method, "path": path, "status": status, "ms": took})
        return response

    return endpoint


async def _body(request: HttpRequest, kind: type) -> Any:
    """The body of a request, of its type and not too large."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != JSON:
        raise msgspec.DecodeError(f"the content type must be {JSON}")
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > LARGEST_BODY:
            raise TooLargeError(f"a request has at most {LARGEST_BODY} bytes, but this has more")
    return msgspec.json.decode(bytes(content), type=kind)


def print_line(line: dict[str, Any]) -> None:
    """One line of JSON on standard error."""
    sys.stderr.write(json.dumps({"time": round(time.time(), 3), **line}) + "\n")
