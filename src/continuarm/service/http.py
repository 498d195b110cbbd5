"""Requests and answers of HTTP: bodies of a type, one shape of refusals, one line of log each."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from continuarm.errors import ContinuarmError
from continuarm.service.connections import JOINED, LARGEST_BODY
from continuarm.service.fields import named
from continuarm.service.messages import Refusal, Request
from continuarm.service.operations import Operation
from continuarm.service.refusals import TooBusyError, TooLargeError, ending, refusal_of, status_of
from continuarm.service.tokens import Doorkeeper, Headers, header_of

__all__ = [
    "HEADERS",
    "JSON",
    "Answered",
    "Endpoint",
    "Lines",
    "Log",
    "answered",
    "encode",
    "failed",
    "refused",
]

JSON = "application/json"
HEADERS = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}
ENCODER = msgspec.json.Encoder()
encode = ENCODER.encode
Log = Callable[[str], None]
Answered = Callable[[int, float], None]  # with this status, in so many milliseconds
RAW = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
PLAIN = JSON.encode()
RAW.append((b"content-type", PLAIN))
NONE: dict[str, Any] = {}
UNAUTHORISED = 401
SLICE, MOST_LARGE = 2**18, 32  # bytes of an answer that are sent at once; larger answers
SOON = 0.05  # seconds until lines of log are written


class _Answer(Response):
    """An answer of JSON, whose headers are always the same, sent without further ado."""

    def init_headers(self, headers: Any = None) -> None:
        """See `Response`."""
        self.raw_headers = [*RAW, (b"content-length", b"%d" % len(self.body))]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See `Response`."""
        start = {"type": "http.response.start", "status": self.status_code}
        joined = scope.get("extensions", NONE).get(JOINED)
        if joined is not None:
            joined.hold()
        try:
            await send({**start, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": self.body})
        finally:
            if joined is not None:
                joined.release()


def answered(message: Any, status: int = 200) -> Response:
    """A message as an answer."""
    return _Answer(encode(message), status)


def refused(error: Exception) -> Response:
    """An error as an answer."""
    response = answered(refusal_of(error), status_of(error))
    if response.status_code == UNAUTHORISED:
        response.raw_headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, TooBusyError):
        response.raw_headers.append((b"retry-after", b"1"))  # seconds
    return response


def failed(scope: Any, status: int = 500, word: str = "failed") -> Response:
    """What is answered where there is no error to say: which request it was."""
    return answered(Refusal(word, f"{scope['method']} {scope['path']}"), status)


class Large(Response):
    """A large answer, sent in slices as its client reads them, so that few are kept in memory."""

    under_way: ClassVar = 0

    @classmethod
    def of(cls, response: Response) -> Response:
        """The same answer in slices, if not too many are under way."""
        if cls.under_way >= MOST_LARGE:
            rule = f"a server has at most {MOST_LARGE} large answers under way"
            return refused(TooBusyError(f"{rule}, but got one more"))
        found = cls(response.body, response.status_code)
        found.raw_headers = response.raw_headers
        return found

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See `Response`."""
        start = {"type": "http.response.start", "status": self.status_code}
        Large.under_way += 1
        try:
            await send({**start, "headers": self.raw_headers})
            for first in range(0, len(self.body), SLICE):
                part = bytes(self.body[first : first + SLICE])
                more = first + SLICE < len(self.body)
                await send({"type": "http.response.body", "body": part, "more_body": more})
        finally:
            Large.under_way -= 1


class Lines:
    """Lines of JSON, written several at a time."""

    def __init__(self, write: Log, with_contexts: bool = False) -> None:
        self._write, self._kept = write, list[dict[str, Any]]()
        self.with_contexts = with_contexts

    def add(self, line: dict[str, Any]) -> None:
        """One more line."""
        self._kept.append({"time": round(time.time(), 3), **line})
        if len(self._kept) == 1:
            asyncio.get_running_loop().call_later(SOON, self.flush)

    def flush(self) -> None:
        """Write what was not written yet."""
        lines, self._kept = self._kept, []
        if lines:
            self._write(ENCODER.encode_lines(lines).decode())


class Endpoint:
    """What answers the requests of an operation: an application of its own."""

    def __init__(self, op: Operation, door: Doorkeeper, count: Answered, lines: Lines) -> None:
        self._op, self._door, self._count, self._lines = op, door, count, lines
        self._decode: Any = msgspec.json.Decoder(op.takes or dict).decode
        self._looks, self._bare = op.method == "GET", op.takes is None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer, count it, and write a line."""
        began, body, op = time.perf_counter(), None, self._op
        request, headers = HttpRequest(scope, receive), scope["headers"]
        try:
            seen = self._door.let_in(headers, op.scope)
            if not (self._looks or (self._bare and _is_empty(headers))):
                content = await _content(headers, receive)
                self._door.let_on(headers, op.scope, seen)  # a token may be revoked meanwhile
                body = self._decoded(content)
            response: Response = await op.handler(request, body)
        except (ContinuarmError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            response = refused(error)
        except asyncio.CancelledError:  # the server ends, and has waited long enough
            response = refused(ending())
        except ClientDisconnect:
            response = answered(Refusal("malformed", "the body must come whole"), 400)
        except Exception:  # a defect of ours: said as such, and raised for who serves it to log
            await failed(scope)(scope, receive, send)
            raise
        if len(getattr(response, "body", b"")) > SLICE:
            response = Large.of(response)
        took = round(1000.0 * (time.perf_counter() - began), 3)
        status = response.status_code
        self._count(status, took)
        line = {"method": op.method, "path": scope["path"], "status": status, "ms": took}
        self._lines.add(line | _asked(request, body) if self._lines.with_contexts else line)
        await response(scope, receive, send)

    def _decoded(self, content: bytearray) -> Any:
        """The body as its type."""
        try:
            return self._decode(content)
        except RecursionError:
            raise msgspec.DecodeError("a body must not be nested so deeply") from None
        except msgspec.ValidationError as error:
            raise named(error, content) from None


def _asked(request: HttpRequest, body: Any) -> dict[str, Any]:
    """What a request asked for, in its query or in its body."""
    query = dict(request.query_params)
    asked = msgspec.to_builtins(body) if isinstance(body, Request) else None
    return ({"query": query} if query else {}) | ({"asked": asked} if asked else {})


def _is_empty(headers: Headers) -> bool:
    """Whether a request says that it has no body."""
    length = header_of(headers, b"content-length") or b"0"
    return length == b"0" and header_of(headers, b"transfer-encoding") is None


async def _content(headers: Headers, receive: Any) -> bytearray:
    """The body of a request, not too large."""
    kind = header_of(headers, b"content-type") or b""
    if kind != PLAIN and kind.partition(b";")[0].strip().lower() != PLAIN:
        raise msgspec.DecodeError(f"the content type must be {JSON}")
    content, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        content += message.get("body", b"")
        more = message.get("more_body", False)
        if len(content) > LARGEST_BODY:
            raise TooLargeError(f"a request has at most {LARGEST_BODY} bytes, but this has more")
    return content
