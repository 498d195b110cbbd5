"""AsyncClient: the same as `Client`, for an event loop."""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Any, Self, overload

from continuarm.client.core import Call, Talk
from continuarm.client.incumbent import incumbent_of, is_own
from continuarm.client.plain import plain_of, rows_of
from continuarm.client.trying import Servers, Tries, answer_of, headers_of, httpx
from continuarm.core.compiling import Array
from continuarm.errors import ContinuarmError, SegmentConflictError, UnavailableError
from continuarm.live.cells import PARTS, Cell
from continuarm.live.decision import Bin, Decision, Decisions
from continuarm.live.segments import Segment, Where

__all__ = ["AsyncClient"]

SOON = 0.2  # seconds until a decision that was not waited for is forgotten


class AsyncClient:
    """The same as `Client`, for an event loop: `await client.ask(...)`."""

    def __init__(
        self,
        address: str | Sequence[str],
        experiment: str,
        *,
        token: str | None = None,
        timeout: float = 10.0,
        incumbent: Any = None,
        patience: float | None = None,
    ) -> None:
        self._talk, self._incumbent = Talk(experiment), incumbent_of(incumbent, patience)
        self._servers = Servers(address, timeout, None if incumbent is not None else patience)
        self._http = httpx.AsyncClient(timeout=timeout, headers=headers_of(token))
        self._unwanted, self._ending = set[asyncio.Task[None]](), asyncio.Event()

    async def call(self, call: Call, tries: Tries | None = None) -> dict[str, Any]:
        """Make a request, as often as it takes."""
        tries = self._servers.tries() if tries is None else tries
        for address, timeout in tries.each():
            try:
                return answer_of(await self._http.request(**call.options(address, timeout)))
            except (httpx.TransportError, UnavailableError) as error:
                await asyncio.sleep(tries.pause(address, error))
        raise AssertionError

    async def _know(self, tries: Tries | None = None) -> None:
        """Learn the names of the boxes, once."""
        if not self._talk.is_known:
            self._talk.know(await self.call(self._talk.experiment(), tries))

    async def ask(
        self, context: Any = (), *, within: Any = None, key: str | None = None
    ) -> Decision:
        """A decision for this context, when it is durable."""
        plain, today, call = plain_of(context, "context"), self._incumbent, None
        if today is not None:
            today.check()
            if today.answered(key):
                return today.decision(context, plain, key)
        tries = self._servers.tries(None if today is None else today.patience)
        try:
            if self._talk.has_no_names(within):
                await self._know(tries)
            call = self._talk.ask(plain, within, key)
            answer = await self.call(call, tries)
        except UnavailableError:
            if today is None:
                raise
            if call is not None:
                self._forget_later(call)
            return today.decision(context, plain, key)
        decision = self._talk.decision(plain, answer)
        if today is not None:
            try:
                today.check_first(context, decision.names)
            except Exception:
                await self.call(self._talk.forget_answer(answer))  # nobody gets it
                raise
        return decision

    def _forget_later(self, call: Call) -> None:
        task = asyncio.create_task(self._forget_unwanted(call))
        self._unwanted.add(task)
        task.add_done_callback(self._unwanted.discard)

    async def _forget_unwanted(self, call: Call) -> None:
        """Forget the decision of a request that was not waited for, when the service answers."""
        while True:
            is_last = self._ending.is_set()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ending.wait(), SOON)
            try:
                answer = await self.call(call, self._servers.few_tries())
                forgotten = self._talk.forget_answer(answer)
                await self.call(forgotten, self._servers.few_tries())
                return
            except UnavailableError:
                if is_last:
                    return
            except ContinuarmError:
                return  # refused: there is no decision, or it is closed

    async def ask_many(self, contexts: Any) -> Decisions:
        """Decisions for contexts of shape `(n, dx)`; if one is refused, there is none."""
        rows = rows_of(contexts, "contexts")
        answers, is_whole = list[dict[str, Any]](), False
        try:
            for call in self._talk.ask_many(rows):
                answers.append(await self.call(call))
            decisions = self._talk.decisions(rows, answers)
            is_whole = True
            return decisions
        finally:
            if not is_whole:
                for forgotten in self._talk.forget_answers(answers):
                    with suppress(ContinuarmError):
                        await self.call(forgotten, self._servers.few_tries())

    async def tell(
        self, decision: Decision | int | str, payoff: float, *, value: Any = None
    ) -> None:
        """Learn the payoff of a decision; the same again changes nothing."""
        if not is_own(decision):
            await self.call(self._talk.tell(decision, payoff, value))

    async def tell_many(
        self, decisions: Decisions | Sequence[Any], payoffs: Any, *, values: Any = None
    ) -> None:
        """Learn many payoffs, each by itself; then raise why the first one was refused, if so."""
        calls = self._talk.tell_many(decisions, payoffs, values)
        self._talk.all_closed([await self.call(call) for call in calls])

    async def forget(self, decision: Decision | int | str) -> None:
        """A payoff will never come."""
        if not is_own(decision):
            await self.call(self._talk.forget(decision))

    async def recommend(self, context: Any = ()) -> Array:
        """The best decision known now."""
        plain = plain_of(context, "context")
        if self._talk.has_no_names(plain):
            await self._know()
        answer = await self.call(self._talk.recommend(plain))
        if self._incumbent is not None:
            self._incumbent.check_first(context, tuple(answer["decision"]))
        return self._talk.best(answer)

    async def explain(self, what: Any = ()) -> dict[str, Any]:
        """Why a decision was made, or what is best for a context."""
        if isinstance(what, Decision):
            return await self.call(self._talk.explain_decision(what))
        plain = plain_of(what, "context")
        if self._talk.has_no_names(plain):
            await self._know()
        return await self.call(self._talk.explain(plain))

    async def cells(
        self, *, along: str | Sequence[str] | None = None, parts: int = PARTS, at: Any = None
    ) -> list[Cell]:
        """What is known in equal parts of one or two contexts, each of which can be frozen.

        Parameters
        ----------
        along : the names of one or two contexts; default the two along which the best decision
            moves most.
        parts : of each, at most 32.
        at : where the others are held, by name for some or in order for all; default the middle.
        """
        plain = None if at is None else plain_of(at, "context")
        if self._talk.has_no_names(plain):
            await self._know()
        return self._talk.all_cells(await self.call(self._talk.cells(along, parts, plain)))

    async def pause(self) -> None:
        """Let every decision be the incumbent's, for everybody, until `resume`."""
        await self.call(self._talk.steer("pause"))

    async def resume(self) -> None:
        """Decide again."""
        await self.call(self._talk.steer("resume"))

    @overload
    async def freeze(self, what: Bin | int) -> None: ...

    @overload
    async def freeze(self, what: Where | Segment) -> Segment: ...

    async def freeze(self, what: Bin | int | Where | Segment) -> Segment | None:
        """Let a segment of contexts, or a bin, answer as now and learn nothing, for everybody.

        Parameters
        ----------
        what : from where to where for some contexts by name, such as `{"hour": (18, 24)}`, both
            included; or the number of a bin.
        """
        return await self._freeze("freeze", what)

    async def unfreeze(self, what: Bin | int | Where | Segment) -> None:
        """Let it decide and learn again."""
        await self._freeze("unfreeze", what)

    async def _freeze(self, verb: str, what: Any) -> Segment | None:
        call, tries, answer = self._talk.freeze(verb, what), self._servers.tries(), {}
        try:
            answer = await self.call(call, tries)
        except SegmentConflictError:
            if not tries.again:  # or else a try before it was not heard of, and has done it
                raise
        return self._talk.segment(call, answer)

    @property
    def frozen(self) -> Awaitable[list[Segment | int]]:
        """What is frozen: segments, the one that answers first before others, numbers of bins."""
        return self._frozen()

    async def _frozen(self) -> list[Segment | int]:
        return self._talk.frozen(await self.call(self._talk.experiment()))

    async def close(self) -> None:
        """Forget what is left to forget, if the service answers, and let go of the connection."""
        self._ending.set()
        await asyncio.gather(*self._unwanted)
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
