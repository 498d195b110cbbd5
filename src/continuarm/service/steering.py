"""What an administrator does: make experiments, pause them, freeze parts, begin from a log."""

import asyncio
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from continuarm.errors import InputError
from continuarm.service import messages, seen, shown
from continuarm.service.experiments import Experiments, changeable
from continuarm.service.fields import about
from continuarm.service.http import answered
from continuarm.service.operations import Operation
from continuarm.service.said import Said

__all__ = ["Steering"]


class Steering:
    """What changes how an experiment decides."""

    def __init__(self, experiments: Experiments, said: Said) -> None:
        self._experiments, self._said = experiments, said

    def operations(self, one: str) -> list[Operation]:
        """One: the path of an experiment."""
        m, done, wrong = messages, messages.Done, (400, 404, 409, 413, 422)
        return [
            Operation("PUT", one, "Make an experiment, or find the same", m.NewExperiment,
                      shown.ExperimentSays, (400, 409, 413, 422), self.put, "admin"),
            Operation("DELETE", one, "Archive an experiment: nothing is decided in it any more",
                      None, done, (400, 404, 413), self.archive, "admin"),
            Operation("POST", f"{one}/pause", "Let every decision be the incumbent's", None, done,
                      wrong, self.pause, "admin"),
            Operation("POST", f"{one}/resume", "Decide again", None, done, wrong, self.resume,
                      "admin"),
            Operation("POST", f"{one}/bins/{{bin}}/freeze", "Let a bin learn nothing", None, done,
                      wrong, self.freeze, "admin"),
            Operation("POST", f"{one}/bins/{{bin}}/unfreeze", "Let a bin learn again", None, done,
                      wrong, self.unfreeze, "admin"),
            Operation("POST", f"{one}/freeze", "Let a segment of contexts learn nothing", m.Freeze,
                      shown.SegmentIsFrozen, wrong, self.freeze_segment, "admin"),
            Operation("POST", f"{one}/unfreeze", "Let a segment of contexts learn again", m.Freeze,
                      done, wrong, self.unfreeze_segment, "admin"),
            Operation("POST", f"{one}/reference", "Count moves from what is learned by now", None,
                      done, wrong, self.renew_reference, "admin"),
            Operation("POST", f"{one}/log", "Begin from the log of an older rule", m.Log, done,
                      (400, 404, 409, 413, 422), self.log, "admin"),
        ]  # fmt: skip

    async def put(self, request: HttpRequest, body: messages.NewExperiment) -> Response:
        """Make an experiment, or find the same."""
        name, preparing = request.path_params["name"], self._experiments.preparing
        preparing.add(name)
        try:
            is_new = await asyncio.to_thread(self._experiments.create, name, body)
            running = await self._experiments.running(request)
        finally:
            preparing.discard(name)
        if not is_new:
            await running.steer("change", **changeable(body))
        found = await asyncio.to_thread(self._said.of, running)
        return answered(found, 201 if is_new else 200)

    async def archive(self, request: HttpRequest, body: None) -> Response:
        """Archive an experiment."""
        await asyncio.to_thread(self._experiments.archive, request.path_params["name"])
        return answered(messages.Done())

    async def pause(self, request: HttpRequest, body: None) -> Response:
        """Let every decision be the incumbent's."""
        return await self._steer(request, "pause")

    async def resume(self, request: HttpRequest, body: None) -> Response:
        """Decide again."""
        return await self._steer(request, "resume")

    async def freeze(self, request: HttpRequest, body: None) -> Response:
        """Let a bin answer with its best decision and learn nothing."""
        return await self._steer(request, "freeze", _bin(request))

    async def unfreeze(self, request: HttpRequest, body: None) -> Response:
        """Let it decide and learn again."""
        return await self._steer(request, "unfreeze", _bin(request))

    async def freeze_segment(self, request: HttpRequest, body: messages.Freeze) -> Response:
        """Let contexts be answered as now, and learn nothing."""
        running = await self._experiments.running(request)
        with about("segment"):
            segment = await running.steer("freeze", body.segment)
        return answered(shown.SegmentIsFrozen(seen.segment_seen(segment, running.context)))

    async def unfreeze_segment(self, request: HttpRequest, body: messages.Freeze) -> Response:
        """Let them decide and learn again."""
        with about("segment"):
            return await self._steer(request, "unfreeze", body.segment)

    async def renew_reference(self, request: HttpRequest, body: None) -> Response:
        """Let what is learned by now be the reference of `max_move`."""
        return await self._steer(request, "renew_reference")

    async def log(self, request: HttpRequest, body: messages.Log) -> Response:
        """Learn a log."""
        running = await self._experiments.running(request)
        await running.learn_from(body.columns)
        return answered(messages.Done())

    async def _steer(self, request: HttpRequest, verb: str, *given: Any) -> Response:
        running = await self._experiments.running(request)
        await running.steer(verb, *given)
        return answered(messages.Done())


def _bin(request: HttpRequest) -> int:
    text = request.path_params["bin"]
    if not (text.isascii() and text.isdecimal()) or len(text) > 15:
        with about("bin"):
            raise InputError(f"a bin has a number, but got {text!r}")
    return int(text)
