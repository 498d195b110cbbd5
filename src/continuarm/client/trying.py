"""How often a request is tried, and for how long."""

import time
from collections.abc import Iterator
from typing import Any

from continuarm.client.core import AWAY, refused
from continuarm.errors import MissingExtraError, UnavailableError

try:
    import httpx
except ImportError as error:
    raise MissingExtraError("a client needs httpx: pip install 'continuarm[client]'") from error

__all__ = ["Tries", "answer_of", "headers_of", "httpx"]

TRIES = 4
PAUSE, LONGEST = 0.05, 5.0  # seconds before the second try; each further one waits twice as long


class Tries:
    """The tries of one request.

    timeout : seconds that one try may take. patience: seconds for all of them.
    """

    def __init__(self, timeout: float, patience: float | None = None, most: int = TRIES) -> None:
        self._timeout, self._most = timeout, most
        self._until = None if patience is None else time.monotonic() + patience

    def timeouts(self) -> Iterator[float]:
        """How long each try may take; the last one's error is final."""
        for _ in range(self._most):
            yield max(min(self._timeout, self._left()), 1e-3)

    def _left(self) -> float:
        return self._timeout if self._until is None else self._until - time.monotonic()

    def pause(self, k: int, error: Exception) -> float:
        """Seconds to wait after the k-th try; raises what is final."""
        pause: float = min(PAUSE * 2**k, LONGEST)
        if k == self._most - 1 or (self._until is not None and pause >= self._left()):
            raise _away(error) from error
        return pause


def answer_of(response: httpx.Response) -> dict[str, Any]:
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
    """That a service does not answer."""
    if isinstance(error, UnavailableError):
        return error
    return UnavailableError(f"a service must answer, but {type(error).__name__}: {error}")


def headers_of(token: str | None) -> dict[str, str]:
    """Who asks."""
    return {} if token is None else {"authorization": f"Bearer {token}"}
