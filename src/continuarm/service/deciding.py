"""Decisions out, payoffs in."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from continuarm.errors import ContinuarmError, InputError, KeyConflictError
from continuarm.ledger.desk import Written
from continuarm.ledger.entries import text_of
from continuarm.live.decision import Decision
from continuarm.service import messages
from continuarm.service.experiments import Experiments
from continuarm.service.fields import about
from continuarm.service.http import answered
from continuarm.service.leaving import unless_gone
from continuarm.service.operations import Operation
from continuarm.service.outside import clipped
from continuarm.service.refusals import refusal_of
from continuarm.service.running import Running

__all__ = ["Deciding"]

MOST_NUMBERS = 100_000  # of all decisions in the answer to a batch


class Deciding:
    """What a shop asks for."""

    def __init__(self, experiments: Experiments) -> None:
        self._experiments = experiments

    def operations(self, one: str) -> list[Operation]:
        """One: the path of an experiment."""
        m, wrong = messages, (400, 404, 409, 413, 422)
        return [
            Operation("POST", f"{one}/decisions", "Decide for one context, or for several",
                      m.Request, (m.Answer, m.Answers), wrong, self.decide, "decide"),
            Operation("POST", f"{one}/payoffs", "Tell what decisions paid",
                      m.Payoff, (m.Closing, m.Closings), wrong, self.pay, "decide"),
            Operation("POST", f"{one}/forget", "Say that payoffs will never come",
                      m.Forget, (m.Closing, m.Closings), wrong, self.forget, "decide"),
        ]  # fmt: skip

    async def decide(self, request: HttpRequest, body: messages.Request) -> Response:
        """Decide for one context, or for several."""
        running = await self._experiments.running(request)
        if (body.context is UNSET) == (body.contexts is UNSET):
            raise InputError("either `context` or `contexts` is needed, but got both or neither")
        if body.contexts is UNSET:
            return answered(await _decided_one(running, body.context, body.within, body.key))
        keys = _keys(body, len(body.contexts))
        _check_size(running, len(body.contexts))
        decided = _decided(running, body.contexts, body.within, keys)
        answers = await unless_gone(request, decided)
        return answered(messages.Answers([_or_refused(answer) for answer in answers]))

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


def _check_size(running: Running, count: int) -> None:
    most = MOST_NUMBERS // running.decision.dim
    if count > most:
        with about("contexts"):
            raise InputError(
                f"the decisions of a batch have at most {MOST_NUMBERS:,} numbers, which are "
                f"{most} of {running.decision.dim}, but got {count} contexts"
            )


def _keys(body: messages.Request, count: int) -> list[str | None]:
    if body.key is not None or (body.keys is not None and len(body.keys) != count):
        with about("keys"):
            raise InputError(f"`keys` must be {count}, one for each context, but got {body.keys}")
    return [None] * count if body.keys is None else list(body.keys)


async def _decided_one(
    running: Running, given: Any, within: Any, key: str | None
) -> messages.Answer:
    """A decision for one context."""
    context, names = given, None
    if running.clips:
        [context], [names] = clipped(running.context, [given])
    try:
        return _answer(await running.ask(context, within, key), names)
    except ContinuarmError as error:
        raise _labelled(running, error, context) from None


async def _decided(
    running: Running, given: Sequence[Any], within: Any, keys: Sequence[str | None]
) -> list[messages.Answer | ContinuarmError]:
    """For each context a decision, or why there is none."""
    contexts, names = clipped(running.context, given) if running.clips else (given, None)
    found = await running.ask_all(contexts, within, keys)
    return [
        _labelled(running, one, contexts[k])
        if isinstance(one, ContinuarmError)
        else _answer(one, None if names is None else names[k])
        for k, one in enumerate(found)
    ]


def _answer(found: Decision, names: list[str] | None) -> messages.Answer:
    return messages.Answer(text_of(found.id), found.as_dict(), found.role, names or None)


def _labelled(running: Running, error: ContinuarmError, context: Any) -> ContinuarmError:
    """The same, with the field that it is about: limits may leave nothing for a good context."""
    if isinstance(error, KeyConflictError):
        error.field = "key"
    elif isinstance(error, InputError) and error.field is None:
        try:
            running.context.point(context)
            error.field = "within"
        except InputError:
            error.field = "context"
    return error


def _or_refused(found: messages.Answer | ContinuarmError) -> messages.Answer:
    """One of a batch."""
    if isinstance(found, ContinuarmError):
        return messages.Answer(refused=refusal_of(found))
    return found


async def _closed(
    running: Running, given: list[Any], written_of: Callable[..., Written], *, alone: bool
) -> Response:
    """Close decisions by their numbers; what became of each."""
    entries: list[Any] = []
    for id_, *rest in given:
        try:
            entries.append(written_of(int(id_, 16), *rest))
        except ContinuarmError as error:
            error.field = _wrong(running, rest)
            entries.append(error)
    refused = iter(await running.close_all([e for e in entries if isinstance(e, Written)]))
    found = [e if isinstance(e, ContinuarmError) else next(refused) for e in entries]
    for one in found:
        if one is not None:
            one.field = one.field or "id"
            if alone:
                raise one
    closed = [
        messages.Closing(id_, error is None, None if error is None else refusal_of(error))
        for (id_, *_), error in zip(given, found, strict=True)
    ]
    return answered(closed[0] if alone else messages.Closings(closed))


def _wrong(running: Running, rest: list[Any]) -> str:
    """Which of a payoff and what was really done is refused."""
    if not rest or rest[1] is None:
        return "payoff"
    try:
        running.decision.point(rest[1])
    except InputError:
        return "value"
    return "payoff"
