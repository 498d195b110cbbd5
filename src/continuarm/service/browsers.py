"""What browsers are made to ask by pages of others: nothing of it is done."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from continuarm.service.http import Lines, refused
from continuarm.service.listening import is_loopback
from continuarm.service.refusals import status_of
from continuarm.service.tokens import Doorkeeper, ForbiddenError

__all__ = ["Browsers"]

LOOKING = ("GET", "HEAD", "OPTIONS")  # these change nothing
OURS = (b"same-origin", b"none")  # of a page of this service, or typed in by its reader


class Browsers:
    """The application, behind a look at who made the browser ask.

    origins : of pages of others that may ask.
    """

    def __init__(self, app: Any, door: Doorkeeper, lines: Lines, origins: Sequence[str]) -> None:
        self._app, self._door, self._lines = app, door, lines
        self._origins = {origin.encode() for origin in origins}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer, or refuse in one line."""
        try:
            if scope["type"] == "http":
                self._look(scope)
        except ForbiddenError as error:
            line = {"method": scope["method"], "path": scope["path"], "status": status_of(error)}
            self._lines.add({**line, "ms": 0.0})
            await refused(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def lets_in(self, scope: Any) -> bool:
        """Whether a request is answered."""
        try:
            self._look(scope)
        except ForbiddenError:
            return False
        return True

    def _look(self, scope: Any) -> None:
        host, origin, site = _said(scope["headers"])
        if self._door.is_open and not _is_for_us(scope["server"], host):
            raise ForbiddenError(
                "without tokens a server is asked as localhost, 127.0.0.1 or [::1], but got the "
                f"host {(host or b'').decode('latin-1')!r}"
            )
        if scope["method"] not in LOOKING and self._is_foreign(host, origin, site):
            shown = (origin or site or b"").decode("latin-1")
            raise ForbiddenError(
                "a page changes something only at its own address or with its origin in "
                f"`--cors-origin`, but got the origin {shown!r}"
            )

    def _is_foreign(self, host: bytes | None, origin: bytes | None, site: bytes | None) -> bool:
        """Whether a page of others asks. A proxy may have changed the host: the browser knows."""
        if origin in self._origins or b"*" in self._origins or site in OURS:
            return False
        if site is not None or origin is None:
            return site is not None
        return origin.partition(b"://")[2].lower() != (host or b"").lower()


def _said(headers: Iterable[tuple[bytes, bytes]]) -> tuple[bytes | None, ...]:
    """The host that was asked, and what a browser says of the page that asks."""
    host, origin, site = None, None, None
    for name, value in headers:
        if name == b"host":
            host = value
        elif name == b"origin":
            origin = value
        elif name == b"sec-fetch-site":
            site = value
    return host, origin, site


def _is_for_us(server: tuple[str, int] | None, host: bytes | None) -> bool:
    """Whether loopback was asked; a browser that a page of others leads here says a host."""
    return (server is None or is_loopback(server[0])) and (host is None or _is_us(host))


@lru_cache(maxsize=256)
def _is_us(host: bytes) -> bool:
    try:
        return is_loopback(urlsplit(f"//{host.decode('latin-1')}").hostname or "")
    except ValueError:
        return False
