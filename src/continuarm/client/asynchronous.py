"""AsyncClient: the same as `Client`, for an event loop."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

from continuarm.client.core import Call, Talk
from continuarm.client.incumbent import incumbent_of, is_own
from continuarm.client.trying import Tries, answer_of, headers_of, httpx
from continuarm.core.compiling import Array
from continuarm.errors import ContinuarmError, UnavailableError
from continuarm.live.decision import Decision, Decisions

__all__ = ["AsyncClient"]

SOON = 0.2  # seconds until a decision that was not waited for is forgotten


class AsyncClient:
    """The same as `Client`, for an event loop: `await client.ask(...)`."""

    def __init__(
        self,
        address: str,
        experiment: str,
        *,
        token: str | None = None,
        timeout: float = 10.0,
        incumbent: Any = None,
        patience: float | None = None,
    ) -> None:
        self._talk, self._timeout = Talk(experiment), timeout
        self._incumbent = incumbent_of(incumbent, patience)
        headers = headers_of(token)
        self._http = httpx.AsyncClient(base_url=address, timeout=timeout, headers=headers)
        self._unwanted, self._ending = set[asyncio.Task[None]](), asyncio.Event()

    async def call(self, call: Call, tries: Tries | None = None) -> dict[str, Any]:
        """Make a request, as often as it takes."""
        tries = tries or Tries(self._timeout)
        for k, timeout in enumerate(tries.timeouts()):
            try:
                return answer_of(await self._http.request(**call.options(timeout)))
            except (httpx.TransportError, UnavailableError) as error:
                await asyncio.sleep(tries.pause(k, error))
        raise AssertionError

    async def ask(
        self, context: Any = (), *, within: Any = None, key: str | None = None
    ) -> Decision:
        """A decision for this context, when it is durable."""
        call = self._talk.ask(context, within, key)
        if self._incumbent is None:
            return self._talk.decision(context, await self.call(call))
        try:
            answer = await self.call(call, Tries(self._timeout, self._incumbent.patience))
        except UnavailableError:
            task = asyncio.create_task(self._forget_unwanted(call))
            self._unwanted.add(task)
            task.add_done_callback(self._unwanted.discard)
            return self._incumbent.decision(context)
        return self._talk.decision(context, answer)

    async def _forget_unwanted(self, call: Call) -> None:
        """Forget the decision of a request that was not waited for, when the service answers."""
        while True:
            is_last = self._ending.is_set()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ending.wait(), SOON)
            try:
                await self.call(self._talk.forget_answer(await self.call(call)))
                return
            except UnavailableError:
                if is_last:
                    return
            except ContinuarmError:
                return  # refused: there is no decision, or it is closed

    async def ask_many(self, contexts: Any) -> Decisions:
        """Decisions for contexts of shape `(n, dx)`; if one is refused, there is none."""
        answers = [await self.call(call) for call in self._talk.ask_many(contexts)]
        unwanted = list[str]()
        try:
            return self._talk.decisions(contexts, answers, unwanted.extend)
        finally:
            if unwanted:
                await self.call(self._talk.forget_all(unwanted))

    async def tell(self, decision: Decision | int, payoff: float, *, value: Any = None) -> None:
        """Learn the payoff of a decision; the same again changes nothing."""
        if not is_own(decision):
            await self.call(self._talk.tell(decision, payoff, value))

    async def tell_many(
        self, decisions: Decisions | Sequence[Any], payoffs: Any, *, values: Any = None
    ) -> None:
        """Learn many payoffs, each by itself; then raise why the first one was refused, if so."""
        calls = self._talk.tell_many(decisions, payoffs, values)
        self._talk.all_closed([await self.call(call) for call in calls])

    async def forget(self, decision: Decision | int) -> None:
        """A payoff will never come."""
        if not is_own(decision):
            await self.call(self._talk.forget(decision))

    async def recommend(self, context: Any = ()) -> Array:
        """The best decision known now."""
        return self._talk.best(await self.call(self._talk.recommend(context)))

    async def explain(self, what: Any = ()) -> dict[str, Any]:
        """Why a decision was made, or what is best for a context."""
        return await self.call(self._talk.explain(what))

    async def pause(self) -> None:
        """Let every decision be the incumbent's, for everybody, until `resume`."""
        await self.call(self._talk.steer("pause"))

    async def resume(self) -> None:
        """Decide again."""
        await self.call(self._talk.steer("resume"))

    async def close(self) -> None:
        """Forget what is left to forget, if the service answers, and let go of the connection."""
        self._ending.set()
        await asyncio.gather(*self._unwanted)
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
