"""How often a request is tried, where, and for how long."""

import random
import time
from collections.abc import Iterator, Sequence
from typing import Any

from continuarm import checks
from continuarm.client.core import AWAY, refused
from continuarm.errors import MissingExtraError, SettingsError, UnavailableError

try:
    import httpx
except ImportError as error:
    raise MissingExtraError("a client needs httpx: pip install 'continuarm[client]'") from error

__all__ = ["Servers", "Tries", "answer_of", "headers_of", "httpx"]

PATIENCE = 30.0  # seconds
FEW = 4  # rounds of tries where nobody waits for the answer
PAUSE, LONGEST = 0.05, 1.0  # seconds after the first round; after each further one twice as long


class Servers:
    """The addresses of a service, and how long its clients wait.

    timeout : seconds that one try may take. patience: seconds for all of a request's tries.
    """

    def __init__(
        self, addresses: str | Sequence[str], timeout: float, patience: float | None
    ) -> None:
        given = [addresses] if isinstance(addresses, str) else list(addresses)
        if not given or not all(str(one).startswith(("http://", "https://")) for one in given):
            raise SettingsError(
                "`address` must be such as http://127.0.0.1:8080, or a sequence of such, but got "
                f"{addresses!r}"
            )
        self.addresses = [str(one).rstrip("/") for one in given]
        self.timeout = checks.number("timeout", timeout)
        default = max(PATIENCE, self.timeout)
        self.patience = default if patience is None else checks.number("patience", patience)
        self.first = 0  # which one is tried first: that of the last answer

    def tries(self, patience: float | None = None) -> "Tries":
        """The tries of a request."""
        return Tries(self, self.patience if patience is None else patience)

    def few_tries(self) -> "Tries":
        """Those of one that nobody waits for, and that is made again later."""
        return Tries(self, self.patience, FEW)


class Tries:
    """The tries of one request, all together within the patience."""

    def __init__(self, servers: Servers, patience: float, rounds: int | None = None) -> None:
        self._servers, self._rounds = servers, rounds
        self._until = time.monotonic() + patience
        self._count = 0

    def each(self) -> Iterator[tuple[str, float]]:
        """Where each try is made, and how long it may take."""
        servers, self._count = self._servers, 0
        number = len(servers.addresses)
        while True:
            share = self._left() / (number - self._count % number)  # one that hangs leaves some
            yield servers.addresses[servers.first], max(min(servers.timeout, share), 1e-3)

    @property
    def again(self) -> bool:
        """Whether a try has failed before."""
        return self._count > 0

    def _left(self) -> float:
        return self._until - time.monotonic()

    def pause(self, address: str, error: Exception) -> float:
        """Seconds to wait after a try that failed, none before all have; raises what is final."""
        servers, self._count = self._servers, self._count + 1
        number = len(servers.addresses)
        servers.first = (servers.addresses.index(address) + 1) % number
        rounds, tried = divmod(self._count, number)
        pause = 0.0 if tried else min(PAUSE * 2.0 ** (rounds - 1), LONGEST)
        pause *= random.uniform(0.5, 1.0)  # clients that failed together come again one by one
        if rounds == self._rounds or pause >= self._left():
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
