"""Client and AsyncClient: a policy that lives in a service."""

import asyncio
import time
from typing import Any, Self

from continuarm.client.core import AWAY, Call, Talk, refused
from continuarm.core.compiling import Array
from continuarm.errors import MissingExtraError, UnavailableError
from continuarm.live.decision import Decision

try:
    import httpx
except ImportError as error:
    raise MissingExtraError("a client needs httpx: pip install 'continuarm[client]'") from error

__all__ = ["AsyncClient", "Client"]

TRIES = 4
PAUSE = 0.05  # seconds before the second try; each further one waits twice as long


class Client:
    """An experiment of a service, with the verbs of a policy.

    Parameters
    ----------
    address : of the service, such as `http://127.0.0.1:8080`.
    experiment : its name.
    token : if the service needs one.
    timeout : seconds that one try may take.

    Every `ask` has a key, the caller's or one of its own. So a try that was cut off is made again
    without harm. What the service refuses is raised as a policy would.
    """

    def __init__(
        self, address: str, experiment: str, *, token: str | None = None, timeout: float = 10.0
    ) -> None:
        self._talk = Talk(experiment)
        self._http = httpx.Client(base_url=address, timeout=timeout, headers=_headers(token))

    def _call(self, call: Call) -> dict[str, Any]:
        for k in range(TRIES):
            try:
                return _answer(self._http.request(*call[:2], json=call.body, params=call.query))
            except (httpx.TransportError, UnavailableError) as error:
                if k == TRIES - 1:
                    raise _away(error) from error
                time.sleep(PAUSE * 2**k)
        raise AssertionError

    def ask(self, context: Any = (), *, within: Any = None, key: str | None = None) -> Decision:
        """A decision for this context, when it is durable."""
        return self._talk.decision(context, self._call(self._talk.ask(context, within, key)))

    def tell(self, decision: Decision | int, payoff: float, *, value: Any = None) -> None:
        """Learn the payoff of a decision; the same again changes nothing."""
        self._call(self._talk.tell(decision, payoff, value))

    def forget(self, decision: Decision | int) -> None:
        """A payoff will never come."""
        self._call(self._talk.forget(decision))

    def recommend(self, context: Any = ()) -> Array:
        """The best decision known now."""
        return self._talk.best(self._call(self._talk.recommend(context)))

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient:
    """The same for an event loop: `await client.ask(...)`."""

    def __init__(
        self, address: str, experiment: str, *, token: str | None = None, timeout: float = 10.0
    ) -> None:
        self._talk = Talk(experiment)
        self._http = httpx.AsyncClient(base_url=address, timeout=timeout, headers=_headers(token))

    async def _call(self, call: Call) -> dict[str, Any]:
        for k in range(TRIES):
            try:
                found = await self._http.request(*call[:2], json=call.body, params=call.query)
                return _answer(found)
            except (httpx.TransportError, UnavailableError) as error:
                if k == TRIES - 1:
                    raise _away(error) from error
                await asyncio.sleep(PAUSE * 2**k)
        raise AssertionError

    async def ask(
        self, context: Any = (), *, within: Any = None, key: str | None = None
    ) -> Decision:
        """A decision for this context, when it is durable."""
        answer = await self._call(self._talk.ask(context, within, key))
        return self._talk.decision(context, answer)

    async def tell(self, decision: Decision | int, payoff: float, *, value: Any = None) -> None:
        """Learn the payoff of a decision; the same again changes nothing."""
        await self._call(self._talk.tell(decision, payoff, value))

    async def forget(self, decision: Decision | int) -> None:
        """A payoff will never come."""
        await self._call(self._talk.forget(decision))

    async def recommend(self, context: Any = ()) -> Array:
        """The best decision known now."""
        return self._talk.best(await self._call(self._talk.recommend(context)))

    async def close(self) -> None:
        """Let go of the connection."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _headers(token: str | None) -> dict[str, str]:
    return {} if token is None else {"authorization": f"Bearer {token}"}


def _answer(response: httpx.Response) -> dict[str, Any]:
    """What was answered, or the error of a refusal."""
    try:
        answer: dict[str, Any] = response.json()
    except ValueError:
        answer = {}
    if response.status_code in AWAY:
        raise UnavailableError(str(answer.get("message", f"status {response.status_code}")))
    if response.status_code >= 400:
        raise refused(response.status_code, answer)
    return answer


def _away(error: Exception) -> UnavailableError:
    if isinstance(error, UnavailableError):
        return error
    return UnavailableError(f"a service must answer, but {type(error).__name__}: {error}")
