"""Bearer tokens: who may do what. A store knows only their hashes."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Sequence
from threading import Event, Thread
from typing import NamedTuple

from continuarm.background import Task
from continuarm.errors import ContinuarmError, SettingsError, UnavailableError
from continuarm.store.protocol import Store
from continuarm.store.records import SCOPES, Token

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

BURST = 2.0  # seconds of its rate that a token may use at once
LOOK = 0.5  # seconds between two looks into the store
OLDEST = 5.0  # seconds since a look that succeeded, after which nobody is let in


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


class _Seen(NamedTuple):
    """What the store said of its tokens, and when it was asked."""

    tokens: list[Token]
    needed: bool
    at: float


class Doorkeeper:
    """Lets in who has a token; everybody, where a store needs none and nobody else can reach us.

    A thread of its own reads the tokens again, and waits for nothing else, so that one that was
    revoked is let in no more, whatever this process is busy with.

    rate : requests per second of one token, in this process.
    public : whether other machines may reach this server: then it never serves without tokens.
    """

    def __init__(self, store: Store, rate: float, *, public: bool = False) -> None:
        self._store, self._rate, self._public = store, rate, public
        self._left: dict[str, tuple[float, float]] = {}  # requests a token has left, and when
        self._stop = Event()
        self._thread = Thread(target=self._keep_looking, name="tokens", daemon=True)
        self.look()

    def start(self) -> None:
        """Look again and again from now on."""
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._stop.set()

    def look(self) -> None:
        """Read the tokens of the store again: one that was revoked is let in no more."""
        began = time.monotonic()
        needed = self._store.tokens_needed()
        self._seen = _Seen(self._store.tokens(), needed, began)

    def _keep_looking(self) -> None:
        task = Task("tokens")
        while not self._stop.wait(LOOK):
            with task.surviving():
                self.look()

    @property
    def is_open(self) -> bool:
        """Whether everybody is let in."""
        return not (self._public or self._seen.needed or self._seen.tokens)

    def knows(self, headers: Headers) -> bool:
        """Whether who was let in with these still would be."""
        try:
            self._refuse_if_old(time.monotonic())
            return self.is_open or self._found(self._seen.tokens, headers) is not None
        except ContinuarmError:
            return False

    def let_in(self, headers: Headers, scope: str) -> "_Seen":
        """Refuse who may not do what needs this scope, or asks for too much."""
        now, seen = time.monotonic(), self._seen
        self._count(self._name(headers, scope, now), now)
        return seen

    def let_on(self, headers: Headers, scope: str, seen: "_Seen") -> None:
        """Refuse who was let in with what was seen then, but would not be any more."""
        now = time.monotonic()
        if self._seen is seen:
            self._refuse_if_old(now)
        else:
            self._name(headers, scope, now)

    def _name(self, headers: Headers, scope: str, now: float) -> str:
        """The name of the token that lets somebody in; none where everybody is."""
        self._refuse_if_old(now)
        if self.is_open:
            return ""
        found = self._found(self._seen.tokens, headers)
        if SCOPES.index(found.scope) < SCOPES.index(scope):
            raise ForbiddenError(f"the scope {scope!r} is needed, but got {found.scope!r}")
        return found.name

    def _refuse_if_old(self, now: float) -> None:
        age = now - self._seen.at
        if age > OLDEST:
            raise UnavailableError(
                f"the tokens must have been read within {OLDEST:g} s, but that was {age:.1f} s ago"
            )

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

    def _count(self, name: str, now: float) -> None:
        most = BURST * self._rate
        left, at = self._left.get(name, (most, now))
        left = min(most, left + (now - at) * self._rate)
        if left < 1.0:
            raise TooManyError(f"a token may make {self._rate:g} requests a second, but made more")
        self._left[name] = (left - 1.0, now)
