"""Leaving: clients that go before their answer is there."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request as HttpRequest

from continuarm.service.refusals import GoneError

__all__ = ["gone", "unless_gone"]

Found = TypeVar("Found")


async def gone(request: HttpRequest) -> None:
    """Wait until the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def unless_gone(request: HttpRequest, work: Coroutine[Any, Any, Found]) -> Found:
    """What some work answers, which ends when nobody waits for it any more."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(gone(request))
    try:
        await asyncio.wait({working, leaving}, return_when="FIRST_COMPLETED")
        if working.done():
            return working.result()
        raise GoneError("the client has gone")
    finally:
        working.cancel()
        leaving.cancel()
