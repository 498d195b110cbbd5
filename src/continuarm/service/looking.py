"""What may be seen of an experiment: how it fares, and what it has learned."""

import json
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from continuarm.errors import UnknownDecisionError
from continuarm.ledger.entries import event_of
from continuarm.live.cells import PARTS, columns_of
from continuarm.live.events import Asked
from continuarm.plots.subject import dimension, filled
from continuarm.service import seen, shown
from continuarm.service.experiments import Experiments
from continuarm.service.fields import about
from continuarm.service.http import HEADERS, JSON, answered
from continuarm.service.operations import Operation
from continuarm.service.outside import clipped
from continuarm.service.queries import context_of, numbers_of, whole_of
from continuarm.service.reads import Read, Reads
from continuarm.service.running import Running
from continuarm.service.said import Said
from continuarm.service.walking import Walks

__all__ = ["Looking"]

MOST_BINS = 2000  # in one answer
MOST_PARTS = 32  # of a context: a thousand cells take seconds
POINTS, MOST_POINTS = 49, 289  # of a curve


class Looking:
    """What changes nothing."""

    def __init__(self, experiments: Experiments, said: Said, reads: Reads) -> None:
        self._experiments, self._said, self._walks = experiments, said, Walks()
        self._reads = reads

    def operations(self, many: str, one: str) -> list[Operation]:
        """Many: the path of all experiments; one: that of one."""
        m, wrong = shown, (404, 422)
        return [
            Operation("GET", many, "All experiments that are not archived, as they are now", None,
                      m.Experiments, (), self.all, "read"),
            Operation("GET", one, "An experiment as it is now", None, m.ExperimentSays, (404,),
                      self.experiment, "read"),
            Operation("GET", f"{one}/diagnosis", "What contradicts the assumptions of learning",
                      None, m.Diagnosis, (404,), self.diagnosis, "read"),
            Operation("GET", f"{one}/bins", "Its bins, and what each has learned", None, m.Bins,
                      wrong, self.bins, "read", ("after", "most")),
            Operation("GET", f"{one}/cells", "What is known in parts of one or two contexts", None,
                      m.Cells, wrong, self.cells, "read", ("along[]", "parts", "context")),
            Operation("GET", f"{one}/history", "Mean payoffs over time, ours and the incumbent's",
                      None, m.HistorySays, (404,), self.history, "read"),
            Operation("GET", f"{one}/curve", "The learned decision along a context", None, m.Curve,
                      wrong, self.curve, "read", ("along", "points", "context")),
            Operation("GET", f"{one}/payoff", "The expected payoff over a coordinate of the "
                      "decision", None, m.PayoffCurve, wrong, self.payoff, "read",
                      ("over", "context")),
            Operation("GET", f"{one}/uplift", "How much better it is than the incumbent", None,
                      m.UpliftSays, wrong, self.uplift, "read"),
            Operation("GET", f"{one}/recommendation", "The best decision known for the context "
                      "in the query", None, m.Recommendation, wrong, self.recommend, "read",
                      ("context",)),
            Operation("GET", f"{one}/explain", "Why it would decide so for the context in the "
                      "query", None, m.Explained, wrong, self.explain, "read", ("context",)),
            Operation("GET", f"{one}/explain/{{id}}", "Why a decision was made, as of then", None,
                      m.Explained, (404,), self.explain_decision, "read"),
            Operation("GET", f"{one}/export", "What it has learned, for `continuarm.Reader`", None,
                      m.Explained, (404,), self.export, "read"),
        ]  # fmt: skip

    async def all(self, request: HttpRequest, body: None) -> Response:
        """All experiments."""
        return await self._reads.short(request, lambda read: answered(self._said.all(read)))

    async def experiment(self, request: HttpRequest, body: None) -> Response:
        """An experiment as it is now."""
        running = await self._experiments.running(request)
        return await self._reads.short(request, lambda read: answered(self._said.of(running)))

    async def diagnosis(self, request: HttpRequest, body: None) -> Response:
        """What the checks of learning have found."""
        running = await self._experiments.running(request)
        return await self._reads.long(
            request, lambda read: answered(self._said.diagnosis(running))
        )

    async def bins(self, request: HttpRequest, body: None) -> Response:
        """What each bin has learned."""
        after, most = whole_of(request, "after", 0), whole_of(request, "most", 100, MOST_BINS)
        running = await self._experiments.running(request)
        return await self._reads.long(
            request, lambda read: answered(self._walks.page(read, running, after, most))
        )

    async def cells(self, request: HttpRequest, body: None) -> Response:
        """What is known in parts of one or two contexts."""
        running = await self._experiments.running(request)
        along, given = request.query_params.getlist("along"), numbers_of(request, "along", "parts")
        parts = whole_of(request, "parts", PARTS, MOST_PARTS)
        with about("along"):
            if along:
                columns_of(running.context, along)

        def work(read: Read) -> Response:
            return answered(seen.cells_seen(read.policy(running), along, parts, given))

        with about("context"):
            filled(running.context, given, running.context.centre)  # what is wrong is said at once
            return await self._reads.long(request, work)

    async def history(self, request: HttpRequest, body: None) -> Response:
        """What was paid over time."""
        running = await self._experiments.running(request)
        return await self._reads.short(
            request, lambda read: answered(seen.history_seen(running.view()))
        )

    async def curve(self, request: HttpRequest, body: None) -> Response:
        """The learned decision along a context."""
        running = await self._experiments.running(request)
        along, given = request.query_params.get("along"), numbers_of(request, "along", "points")
        points = whole_of(request, "points", POINTS, MOST_POINTS)
        with about("along"):
            dimension(running.context, along, "context")

        def work(read: Read) -> Response:
            return answered(seen.curve_seen(read.policy(running), along, given, points))

        with about("context"):
            filled(running.context, given, running.context.centre)  # what is wrong is said at once
            return await self._reads.long(request, work)

    async def payoff(self, request: HttpRequest, body: None) -> Response:
        """The expected payoff over a coordinate of the decision."""
        running = await self._experiments.running(request)
        over, given = request.query_params.get("over"), numbers_of(request, "over")
        with about("over"):
            dimension(running.decision, over, "coordinate")

        def work(read: Read) -> Response:
            return answered(seen.payoff_seen(read.policy(running), over, given))

        with about("context"):
            filled(running.context, given, running.context.centre)
            return await self._reads.long(request, work)

    async def uplift(self, request: HttpRequest, body: None) -> Response:
        """How much better its decisions are than the incumbent's."""
        running = await self._experiments.running(request)
        return await self._reads.short(
            request, lambda read: answered(seen.uplift_seen(running.view().uplift()))
        )

    async def recommend(self, request: HttpRequest, body: None) -> Response:
        """The best decision known for the context in the query."""
        running = await self._experiments.running(request)
        context, names = context_of(request, running), list[str]()
        if running.clips:
            [context], [names] = clipped(running.context, [context])
        with about("context"):
            best = await running.recommend(context)
        return answered(shown.Recommendation(seen.by_name(running.decision, best), names))

    async def explain(self, request: HttpRequest, body: None) -> Response:
        """The numbers behind a decision for a context, and the text."""
        running = await self._experiments.running(request)
        context = context_of(request, running)
        with about("context"):
            running.context.point(context)
            return await self._reads.long(
                request, lambda read: _plain(read.policy(running).explain(context))
            )

    async def explain_decision(self, request: HttpRequest, body: None) -> Response:
        """Why a decision was made, from its event."""
        running, id_ = await self._experiments.running(request), request.path_params["id"]
        return await self._reads.long(request, lambda read: _explained(read, running, id_))

    async def export(self, request: HttpRequest, body: None) -> Response:
        """The table from which `Reader` decides."""
        running = await self._experiments.running(request)

        def work(read: Read) -> Response:
            return Response(read.policy(running).export(), 200, HEADERS, JSON)

        return await self._reads.long(request, work)


def _explained(read: Read, running: Running, id_: str) -> Response:
    """Why a decision of this number was made."""
    record = running.store.opening(running.name, id_)
    if record is None:
        with about("id"):
            raise UnknownDecisionError(f"a decision must have been handed out, but {id_} was not")
    policy = read.policy(running)
    event = event_of(record, record.time if policy.ttl_seconds is not None else 0.0)
    assert isinstance(event, Asked)
    found = policy.explain(event)
    text = found["text"].replace(f"Decision {event.id}", f"Decision {id_}", 1)
    return _plain(found | {"id": id_, "text": text})


def _plain(found: dict[str, Any]) -> Response:
    return answered(json.loads(json.dumps(found, allow_nan=False, default=str)))
