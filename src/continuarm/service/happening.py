"""What has happened in an experiment, and what happens."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from continuarm.errors import UnavailableError
from continuarm.service import shown
from continuarm.service.experiments import Experiments
from continuarm.service.http import HEADERS, encode
from continuarm.service.operations import Operation
from continuarm.service.queries import whole_of
from continuarm.service.running import Running
from continuarm.service.tokens import Doorkeeper, Headers
from continuarm.store.records import Record

__all__ = ["Happening"]

MOST_EVENTS = 1000  # in one answer
GLANCE = 0.05  # seconds between two looks of a stream
BEAT = 15.0  # seconds after which a stream that is silent says that it lives


class Happening:
    """The ledger of an experiment, as others may read it."""

    def __init__(self, experiments: Experiments, door: Doorkeeper) -> None:
        self._experiments, self._door = experiments, door

    def operations(self, one: str) -> list[Operation]:
        """One: the path of an experiment."""
        return [
            Operation("GET", f"{one}/events", "What has happened after a position, one line each",
                      None, shown.Lines, (404, 422), self.events, "read", ("after",)),
            Operation("GET", f"{one}/stream", "What happens from now on, as server-sent events",
                      None, shown.Lines, (404, 422), self.stream, "read", ("after",)),
        ]  # fmt: skip

    async def events(self, request: HttpRequest, body: None) -> Response:
        """What has happened after a position, at most so much of it."""
        running = await self._experiments.running(request)
        after = whole_of(request, "after", 0)
        records = await asyncio.to_thread(running.store.read, running.name, after, MOST_EVENTS)
        content = b"".join(encode(_event(record)) + b"\n" for record in records)
        return Response(content, 200, HEADERS, "application/x-ndjson")

    async def stream(self, request: HttpRequest, body: None) -> Response:
        """What happens from now on."""
        running = await self._experiments.running(request)
        after = whole_of(request, "after", running.replica.position)
        lines = self._lines(running, after, request.scope["headers"])
        return StreamingResponse(lines, 200, HEADERS, "text/event-stream")

    async def _lines(self, running: Running, after: int, headers: Headers) -> AsyncIterator[bytes]:
        """Events as they are folded; a comment now and then, so that a lost reader is noticed."""
        silent = 0.0
        while self._goes_on(running, headers):
            if running.replica.position <= after:
                await asyncio.sleep(GLANCE)  # no thread waits for a reader
                silent += GLANCE
            else:
                with suppress(UnavailableError):
                    for record in await asyncio.to_thread(running.store.read, running.name, after):
                        yield b"id: %d\ndata: %s\n\n" % (record.position, encode(_event(record)))
                        after, silent = record.position, 0.0
            if silent >= BEAT:
                yield b": still here\n\n"
                silent = 0.0

    def _goes_on(self, running: Running, headers: Headers) -> bool:
        over = running.is_closed or self._experiments.is_stopping
        return not over and self._door.knows(headers)


def _event(record: Record) -> dict[str, Any]:
    id_ = record.opens or record.closes
    plain: dict[str, Any] = {"position": record.position, "time": record.time}
    plain |= {"event": record.kind} | ({} if id_ is None else {"id": id_})
    plain |= json.loads(record.body)
    return plain
