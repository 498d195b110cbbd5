"""What may be seen of an experiment: how it fares, what it has learned, what has happened."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from continuarm.errors import InputError, UnavailableError, UnknownDecisionError
from continuarm.ledger.entries import event_of
from continuarm.live.events import Asked
from continuarm.live.policy import Policy
from continuarm.service import messages
from continuarm.service.experiments import Experiments
from continuarm.service.http import HEADERS, JSON, answered, encode
from continuarm.service.operations import Operation
from continuarm.service.running import Running
from continuarm.store.records import Record

__all__ = ["Looking", "said"]

MOST_EVENTS = 1000  # in one answer
GLANCE = 0.05  # seconds between two looks of a stream
BEAT = 15.0  # seconds after which a stream that is silent says that it lives


class Looking:
    """What changes nothing."""

    def __init__(self, experiments: Experiments) -> None:
        self._experiments = experiments

    def operations(self, many: str, one: str) -> list[Operation]:
        """Many: the path of all experiments; one: that of one."""
        m, lines = messages, messages.Lines
        return [
            Operation("GET", many, "All experiments", None, m.Experiments, (), self.names, "read"),
            Operation("GET", one, "An experiment as it is now", None, m.ExperimentSays, (404,),
                      self.experiment, "read"),
            Operation("GET", f"{one}/recommendation", "The best decision known for the context "
                      "in the query", None, m.Recommendation, (404, 422), self.recommend, "read"),
            Operation("GET", f"{one}/explain", "Why it would decide so for the context in the "
                      "query", None, m.Explained, (404, 422), self.explain, "read"),
            Operation("GET", f"{one}/explain/{{id}}", "Why a decision was made, as of then", None,
                      m.Explained, (404,), self.explain_decision, "read"),
            Operation("GET", f"{one}/bins", "Its bins, and what each has learned", None, m.Bins,
                      (404,), self.bins, "read"),
            Operation("GET", f"{one}/uplift", "How much better it is than the incumbent", None,
                      m.Explained, (404, 422), self.uplift, "read"),
            Operation("GET", f"{one}/export", "What it has learned, for `continuarm.Reader`", None,
                      m.Explained, (404,), self.export, "read"),
            Operation("GET", f"{one}/events", "What has happened after a position, one line each",
                      None, lines, (404, 422), self.events, "read"),
            Operation("GET", f"{one}/stream", "What happens from now on, as server-sent events",
                      None, lines, (404, 422), self.stream, "read"),
        ]  # fmt: skip

    async def _policy(self, request: HttpRequest) -> Policy:
        running = await self._experiments.running(request)
        return await asyncio.to_thread(running.policy)

    async def names(self, request: HttpRequest, body: None) -> Response:
        """The names of all experiments."""
        names = await asyncio.to_thread(self._experiments.names)
        return answered(messages.Experiments(names))

    async def experiment(self, request: HttpRequest, body: None) -> Response:
        """An experiment as it is now."""
        running = await self._experiments.running(request)
        return answered(await asyncio.to_thread(said, running))

    async def recommend(self, request: HttpRequest, body: None) -> Response:
        """The best decision known for the context in the query."""
        running = await self._experiments.running(request)
        best = running.recommend(_context(request, running))
        return answered(messages.Recommendation(_by_name(running.decision.names, best.tolist())))

    async def explain(self, request: HttpRequest, body: None) -> Response:
        """The numbers behind a decision for a context, and the text."""
        running = await self._experiments.running(request)
        context, policy = _context(request, running), await asyncio.to_thread(running.policy)
        return _plain(await asyncio.to_thread(policy.explain, context))

    async def explain_decision(self, request: HttpRequest, body: None) -> Response:
        """Why a decision was made, from its event."""
        running, id_ = await self._experiments.running(request), request.path_params["id"]
        record = await asyncio.to_thread(running.store.opening, running.name, id_)
        if record is None:
            raise UnknownDecisionError(f"a decision must have been handed out, but {id_} was not")
        policy = await asyncio.to_thread(running.policy)
        event = event_of(record, record.time if policy.ttl_seconds is not None else 0.0)
        assert isinstance(event, Asked)
        return _plain(await asyncio.to_thread(policy.explain, event))

    async def bins(self, request: HttpRequest, body: None) -> Response:
        """What each bin has learned."""
        policy = await self._policy(request)
        found = await asyncio.to_thread(policy.bins)
        names = policy.decision.names
        return answered(
            messages.Bins(
                [
                    messages.BinSays(
                        id=b.id,
                        low=b.low.tolist(),
                        high=b.high.tolist(),
                        asked=b.asked,
                        told=b.told,
                        best=_by_name(names, b.best.tolist()),
                        frozen=b.frozen,
                    )
                    for b in found
                ]
            )
        )

    async def uplift(self, request: HttpRequest, body: None) -> Response:
        """How much better its decisions are than the incumbent's."""
        policy = await self._policy(request)
        found = policy.uplift()
        return _plain({**asdict(found), "text": str(found)})

    async def export(self, request: HttpRequest, body: None) -> Response:
        """The table from which `Reader` decides."""
        policy = await self._policy(request)
        content = await asyncio.to_thread(policy.export)
        return Response(content, 200, HEADERS, JSON)

    async def events(self, request: HttpRequest, body: None) -> Response:
        """What has happened after a position, at most so much of it."""
        running = await self._experiments.running(request)
        after = _after(request)
        records = await asyncio.to_thread(running.store.read, running.name, after, MOST_EVENTS)
        content = b"".join(encode(_event(record)) + b"\n" for record in records)
        return Response(content, 200, HEADERS, "application/x-ndjson")

    async def stream(self, request: HttpRequest, body: None) -> Response:
        """What happens from now on."""
        running = await self._experiments.running(request)
        after = _after(request, running.replica.position)
        return StreamingResponse(_happening(running, after), 200, HEADERS, "text/event-stream")


async def _happening(running: Running, after: int) -> AsyncIterator[bytes]:
    """Events as they are folded; a comment now and then, so that a lost reader is noticed."""
    silent = 0.0
    while not running.is_closed:
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


def _event(record: Record) -> dict[str, Any]:
    id_ = record.opens or record.closes
    plain: dict[str, Any] = {"position": record.position, "time": record.time}
    plain |= {"event": record.kind} | ({} if id_ is None else {"id": id_})
    plain |= json.loads(record.body)
    return plain


def _after(request: HttpRequest, default: int = 0) -> int:
    text = request.query_params.get("after", str(default))
    if not text.isdecimal() or len(text) > 15:
        raise InputError(f"`after` must be a position, but got {text!r}")
    return int(text)


def _context(request: HttpRequest, running: Running) -> Any:
    """The context in the query, by name; without names in order, as 0=…&1=…"""
    given = {name: _number(name, text) for name, text in request.query_params.items()}
    if running.context.named:
        return given
    if list(given) != list(running.context.names):
        raise InputError(f"the names must be {list(running.context.names)}, but got {list(given)}")
    return list(given.values())


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"`{name}` must be a number, but got {text!r}") from None


def _plain(found: dict[str, Any]) -> Response:
    return answered(json.loads(json.dumps(found, allow_nan=False, default=str)))


def _by_name(names: tuple[str, ...], values: list[float]) -> dict[str, float]:
    return dict(zip(names, values, strict=True))


def said(running: Running) -> messages.ExperimentSays:
    """An experiment as it is now."""
    found, policy = running.store.experiment(running.name), running.policy()
    stats = policy.stats()
    return messages.ExperimentSays(
        name=found.name,
        archived=found.archived,
        events=found.head,
        asked=stats.asked,
        told=stats.told,
        open=stats.open,
        expired=stats.expired,
        forgotten=stats.forgotten,
        bins=stats.bins,
        paused=policy.paused,
        mean_payoff=stats.mean_payoff,
        settings=json.loads(found.settings),
    )
