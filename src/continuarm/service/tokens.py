"""Bearer tokens: who may do what. A store knows only their hashes."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Sequence

from continuarm.errors import ContinuarmError, SettingsError
from continuarm.store.protocol import Store
from continuarm.store.records import Token

__all__ = [
    "SCOPES",
    "Doorkeeper",
    "ForbiddenError",
    "Headers",
    "TooManyError",
    "UnauthorisedError",
    "header_of",
    "issue",
]

SCOPES = ("read", "decide", "admin")  # each may do what those before it may
BURST = 2.0  # seconds of its rate that a token may use at once


Headers = Sequence[tuple[bytes, bytes]]  # names in small letters


def header_of(headers: Headers, name: bytes) -> bytes | None:
    """The value of a header."""
    for found, value in headers:
        if found == name:
            return value
    return None


class UnauthorisedError(ContinuarmError):
    """A token is needed that is known."""


class ForbiddenError(ContinuarmError):
    """A token's scope does not reach so far."""


class TooManyError(ContinuarmError):
    """A token asks for more than its rate."""


def issue(store: Store, name: str, scope: str) -> str:
    """Make a token; it is shown once."""
    if scope not in SCOPES:
        raise SettingsError(f"`scope` must be one of {list(SCOPES)}, but got {scope!r}")
    secret = secrets.token_urlsafe(32)
    store.add_token(Token(name, scope, _hashed(secret), time.time()))
    return secret


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()  # 256 random bits need no slow hash


class Doorkeeper:
    """Lets in who has a token; where a store has never had one, everybody.

    rate : requests per second of one token, in this process.
    is_open : whether everybody is let in.
    """

    def __init__(self, store: Store, rate: float) -> None:
        self._store, self._rate = store, rate
        self.is_open, self._tokens = True, list[Token]()
        self.look()
        self._left: dict[str, tuple[float, float]] = {}  # requests a token has left, and when

    def look(self) -> None:
        """Read the tokens of the store again: one that was revoked is let in no more."""
        self._tokens = self._store.tokens()
        if self._tokens:  # when the last one is revoked, nobody is let in
            self.is_open = False

    def knows(self, headers: Headers) -> bool:
        """Whether who was let in with these still would be."""
        try:
            return self.is_open or self._found(self._tokens, headers) is not None
        except UnauthorisedError:
            return False

    def let_in(self, headers: Headers, scope: str) -> None:
        """Refuse who may not do what needs this scope."""
        name = ""
        if not self.is_open:
            found = self._found(self._tokens, headers)
            if SCOPES.index(found.scope) < SCOPES.index(scope):
                raise ForbiddenError(f"the scope {scope!r} is needed, but got {found.scope!r}")
            name = found.name
        self._count(name)

    @staticmethod
    def _found(tokens: list[Token], headers: Headers) -> Token:
        header = header_of(headers, b"authorization") or b""
        kind, _, secret = header.decode("latin-1").partition(" ")
        given, found = _hashed(secret.strip()), None
        for token in tokens:  # all of them, so that time tells nothing
            if hmac.compare_digest(token.hashed, given) and kind.lower() == "bearer":
                found = token
        if found is None:
            raise UnauthorisedError("a known token is needed, as in `Authorization: Bearer …`")
        return found

    def _count(self, name: str) -> None:
        now, most = time.monotonic(), BURST * self._rate
        left, at = self._left.get(name, (most, now))
        left = min(most, left + (now - at) * self._rate)
        if left < 1.0:
            raise TooManyError(f"a token may make {self._rate:g} requests a second, but made more")
        self._left[name] = (left - 1.0, now)
