"""Shortcuts: what a shop asks for most is answered without a search through all routes."""

from typing import Any

from starlette.applications import Starlette

from continuarm.service.browsers import Browsers
from continuarm.service.http import Endpoint

__all__ = ["Shortcuts"]


class Shortcuts(Starlette):
    """An application with a short way to `POST /v1/experiments/{name}/{verb}`.

    endpoints : by verb; none where something is done to every answer.
    """

    endpoints: dict[str, Endpoint]
    browsers: Browsers

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer the request, or leave that to the routes."""
        if scope["type"] == "http" and scope["method"] == "POST":
            words = scope["path"].split("/")
            if len(words) == 5 and words[:3] == ["", "v1", "experiments"] and words[3]:
                endpoint = self.endpoints.get(words[4])
                if endpoint is not None and self.browsers.lets_in(scope):
                    scope["path_params"] = {"name": words[3]}
                    return await endpoint(scope, receive, send)
        return await super().__call__(scope, receive, send)
