"""Requests and answers of HTTP: bodies of a type, one shape of refusals, one line of log each."""

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from continuarm.errors import ContinuarmError
from continuarm.service.messages import Refusal, Request
from continuarm.service.operations import Operation
from continuarm.service.refusals import TooLargeError, refusal_of, status_of
from continuarm.service.tokens import Doorkeeper

__all__ = [
    "HEADERS",
    "JSON",
    "Answered",
    "Lines",
    "Log",
    "answered",
    "encode",
    "endpoint_of",
    "refused",
    "to_standard_error",
]

LARGEST_BODY = 2**20  # bytes
JSON = "application/json"
HEADERS = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}
encode = msgspec.json.Encoder().encode
Log = Callable[[str], None]
Answered = Callable[[int, float], None]  # with this status, in so many milliseconds
RAW = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
RAW.append((b"content-type", JSON.encode()))
UNAUTHORISED = 401
SOON = 0.05  # seconds until lines of log are written


class _Answer(Response):
    """An answer of JSON, whose headers are always the same."""

    def init_headers(self, headers: Any = None) -> None:
        """See `Response`."""
        self.raw_headers = [*RAW, (b"content-length", b"%d" % len(self.body))]


def answered(message: Any, status: int = 200) -> Response:
    """A message as an answer."""
    return _Answer(encode(message), status)


def refused(error: Exception) -> Response:
    """An error as an answer."""
    response = answered(refusal_of(error), status_of(error))
    if response.status_code == UNAUTHORISED:
        response.raw_headers.append((b"www-authenticate", b"Bearer"))
    return response


class Lines:
    """Lines of JSON, written several at a time."""

    def __init__(self, write: Log, with_contexts: bool = False) -> None:
        self._write, self._kept = write, list[bytes]()
        self.with_contexts = with_contexts

    def add(self, line: dict[str, Any]) -> None:
        """One more line."""
        self._kept.append(encode({"time": round(time.time(), 3), **line}))
        if len(self._kept) == 1:
            asyncio.get_running_loop().call_later(SOON, self.flush)

    def flush(self) -> None:
        """Write what was not written yet."""
        lines, self._kept = self._kept, []
        if lines:
            self._write(b"\n".join(lines).decode() + "\n")


def to_standard_error(text: str) -> None:
    """Where lines go."""
    sys.stderr.write(text)


def endpoint_of(op: Operation, door: Doorkeeper, count: Answered, lines: Lines) -> Any:
    """What answers the requests of an operation."""

    decode: Any = msgspec.json.Decoder(op.takes or dict).decode
    looks, bare = op.method == "GET", op.takes is None

    async def endpoint(request: HttpRequest) -> Response:
        began, body = time.perf_counter(), None
        try:
            door.let_in(_header(request, b"authorization"), op.scope)
            if not (looks or (bare and _is_empty(request))):
                body = decode(await _content(request))
            response: Response = await op.handler(request, body)
        except (ContinuarmError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            response = refused(error)
        except ClientDisconnect:
            response = answered(Refusal("malformed", "the body must come whole"), 400)
        took = round(1000.0 * (time.perf_counter() - began), 3)
        path, status = request.scope["path"], response.status_code
        count(status, took)
        asked = _asked(request, body) if lines.with_contexts else {}
        lines.add({"method": op.method, "path": path, "status": status, "ms": took, **asked})
        return response

    return endpoint


def _asked(request: HttpRequest, body: Any) -> dict[str, Any]:
    """What a request asked for, in its query or in its body."""
    query = dict(request.query_params)
    asked = msgspec.to_builtins(body) if isinstance(body, Request) else None
    return ({"query": query} if query else {}) | ({"asked": asked} if asked else {})


def _is_empty(request: HttpRequest) -> bool:
    """Whether a request says that it has no body."""
    length = _header(request, b"content-length") or "0"
    return length == "0" and _header(request, b"transfer-encoding") is None


async def _content(request: HttpRequest) -> bytes:
    """The body of a request, not too large."""
    if (_header(request, b"content-type") or "").partition(";")[0].strip() != JSON:
        raise msgspec.DecodeError(f"the content type must be {JSON}")
    content, more = b"", True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        content, more = content + message.get("body", b""), message.get("more_body", False)
        if len(content) > LARGEST_BODY:
            raise TooLargeError(f"a request has at most {LARGEST_BODY} bytes, but this has more")
    return content


def _header(request: HttpRequest, name: bytes) -> str | None:
    """The value of a header."""
    for found, value in request.scope["headers"]:
        if found == name:
            return str(value, "latin-1")
    return None
