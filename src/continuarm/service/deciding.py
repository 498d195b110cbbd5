"""Decisions out, payoffs in."""

from collections.abc import Callable
from typing import Any

from msgspec import UNSET
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from continuarm.errors import ContinuarmError, InputError
from continuarm.ledger.desk import Written
from continuarm.ledger.entries import text_of
from continuarm.live.decision import Decision
from continuarm.service import messages
from continuarm.service.experiments import Experiments
from continuarm.service.http import answered
from continuarm.service.operations import Operation
from continuarm.service.refusals import refusal_of
from continuarm.service.running import Running

__all__ = ["Deciding"]


class Deciding:
    """What a shop asks for."""

    def __init__(self, experiments: Experiments) -> None:
        self._experiments = experiments

    def operations(self, one: str) -> list[Operation]:
        """One: the path of an experiment."""
        m, wrong = messages, (400, 404, 409, 413, 422)
        return [
            Operation("POST", f"{one}/decisions", "Decide for one context, or for several",
                      m.Request, m.Answer, wrong, self.decide, "decide"),
            Operation("POST", f"{one}/payoffs", "Tell what decisions paid",
                      m.Payoff, m.Closing, wrong, self.pay, "decide"),
            Operation("POST", f"{one}/forget", "Say that payoffs will never come",
                      m.Forget, m.Closing, wrong, self.forget, "decide"),
        ]  # fmt: skip

    async def decide(self, request: HttpRequest, body: messages.Request) -> Response:
        """Decide for one context, or for several."""
        running = await self._experiments.running(request)
        if (body.context is UNSET) == (body.contexts is UNSET):
            raise InputError("either `context` or `contexts` is needed, but got both or neither")
        if body.contexts is UNSET:
            [answer] = await running.ask([body.context], body.within, [body.key])
            return answered(_answer(answer, alone=True))
        keys = _keys(body, len(body.contexts))
        answers = await running.ask(body.contexts, body.within, keys)
        return answered(messages.Answers([_answer(a, alone=False) for a in answers]))

    async def pay(self, request: HttpRequest, body: messages.Payoff) -> Response:
        """Tell one payoff, or several."""
        running = await self._experiments.running(request)
        if body.payoffs is not UNSET:
            told = [(one.id, one.payoff, one.value) for one in body.payoffs]
            return await _closed(running, told, running.desk.told, alone=False)
        if body.id is UNSET or body.payoff is UNSET:
            raise InputError("`id` and `payoff`, or `payoffs`, are needed, but got neither")
        told = [(body.id, body.payoff, body.value)]
        return await _closed(running, told, running.desk.told, alone=True)

    async def forget(self, request: HttpRequest, body: messages.Forget) -> Response:
        """Forget one decision, or several."""
        running = await self._experiments.running(request)
        if (body.id is UNSET) == (body.ids is UNSET):
            raise InputError("either `id` or `ids` is needed, but got both or neither")
        ids: list[Any] = [body.id] if body.ids is UNSET else list(body.ids)
        given = [(id_,) for id_ in ids]
        return await _closed(running, given, running.desk.forgotten, alone=body.ids is UNSET)


def _keys(body: messages.Request, count: int) -> list[str | None]:
    if body.key is not None or (body.keys is not None and len(body.keys) != count):
        raise InputError(f"`keys` must be {count}, one for each context, but got {body.keys!r}")
    return [None] * count if body.keys is None else list(body.keys)


def _answer(found: Decision | ContinuarmError, *, alone: bool) -> messages.Answer:
    """A decision; the refusal of one alone is that of the request."""
    if isinstance(found, ContinuarmError):
        if alone:
            raise found
        return messages.Answer(refused=refusal_of(found))
    return messages.Answer(text_of(found.id), found.as_dict(), found.role)


async def _closed(
    running: Running, given: list[Any], written_of: Callable[..., Written], *, alone: bool
) -> Response:
    """Close decisions by their numbers; what became of each."""
    entries: list[Any] = []
    for id_, *rest in given:
        try:
            entries.append(written_of(int(id_, 16), *rest))
        except ContinuarmError as error:
            entries.append(error)
    refused = iter(await running.close_all([e for e in entries if isinstance(e, Written)]))
    found = [e if isinstance(e, ContinuarmError) else next(refused) for e in entries]
    if alone and found[0] is not None:
        raise found[0]
    closed = [
        messages.Closing(id_, error is None, None if error is None else refusal_of(error))
        for (id_, *_), error in zip(given, found, strict=True)
    ]
    return answered(closed[0] if alone else messages.Closings(closed))
