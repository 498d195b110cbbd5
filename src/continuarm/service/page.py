"""The page: files that a browser needs, and nothing that the API does not say."""

import hashlib
from importlib.resources import files

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from continuarm.service.http import HEADERS

__all__ = ["routes"]

TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def routes() -> list[Route]:
    """The page itself, and what it is made of."""
    found = [path for path in files("continuarm.service").joinpath("page").iterdir()]
    return [_route(path.name, path.read_bytes()) for path in found if _ending(path.name) in TYPES]


def _ending(name: str) -> str:
    return name.rpartition(".")[2]


def _route(name: str, content: bytes) -> Route:
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = HEADERS | {
        "content-security-policy": POLICY,
        "cache-control": "no-cache",  # kept, and asked for again: an update is seen at once
        "etag": tag,
        "referrer-policy": "no-referrer",
    }

    async def answer(request: HttpRequest) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(b"", 304, headers)
        return Response(content, 200, headers, TYPES[_ending(name)])

    return Route("/" if name == "index.html" else f"/page/{name}", answer)
