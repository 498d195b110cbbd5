"""What has happened in an experiment, and what happens."""

from collections.abc import AsyncIterable

from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from continuarm.service import shown
from continuarm.service.experiments import Experiments
from continuarm.service.http import HEADERS, encode
from continuarm.service.operations import Operation
from continuarm.service.queries import whole_of
from continuarm.service.reads import Read, Reads
from continuarm.service.streams import Streams, as_plain

__all__ = ["Happening"]

MOST_EVENTS = 1000  # in one answer


class Happening:
    """The ledger of an experiment, as others may read it."""

    def __init__(self, experiments: Experiments, reads: Reads, streams: Streams) -> None:
        self._experiments, self._reads, self._streams = experiments, reads, streams

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

        def work(read: Read) -> Response:
            records = running.store.read(running.name, after, MOST_EVENTS)
            content = b"".join(encode(as_plain(record)) + b"\n" for record in records)
            return Response(content, 200, HEADERS, "application/x-ndjson")

        return await self._reads.short(request, work)

    async def stream(self, request: HttpRequest, body: None) -> Response:
        """What happens from now on."""
        running = await self._experiments.running(request)
        given = "after" in request.query_params
        after = whole_of(request, "after", 0) if given else None
        lines: AsyncIterable[bytes] | tuple[()] = ()  # of which `HEAD` has none
        if request.method != "HEAD":
            lines = self._streams.read(running, after, request.scope["headers"])
        return StreamingResponse(lines, 200, HEADERS, "text/event-stream")
