"""What the query of a request says: contexts by name, whole numbers, words."""

from typing import Any

from starlette.requests import Request as HttpRequest

from continuarm.checks import among
from continuarm.errors import InputError
from continuarm.service.fields import about
from continuarm.service.running import Running

__all__ = ["context_of", "numbers_of", "whole_of"]

DIGITS = 15


def numbers_of(request: HttpRequest, *words: str) -> dict[str, float]:
    """The numbers in the query, by name; these words are none of them."""
    given = request.query_params.items()
    return {name: _number(name, text) for name, text in given if name not in words}


def context_of(request: HttpRequest, running: Running) -> Any:
    """The context in the query, by name; without names in order, as 0=…&1=…"""
    given = numbers_of(request)
    if running.context.named:
        return given
    if list(given) != list(running.context.names):
        with about("context"):
            names = among(running.context.names)
            raise InputError(f"the names must be {names}, but got {among(given)}")
    return list(given.values())


def whole_of(request: HttpRequest, name: str, default: int, most: int | None = None) -> int:
    """A whole number in the query."""
    text = request.query_params.get(name, str(default))
    with about(name):
        if not (text.isascii() and text.isdecimal()) or len(text) > DIGITS:
            rule = f"a whole number from 0 on, of at most {DIGITS} digits"
            raise InputError(f"`{name}` must be {rule}, but got {text!r}")
        if most is not None and not 1 <= int(text) <= most:
            raise InputError(f"`{name}` must be from 1 to {most}, but got {text!r}")
    return int(text)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        with about(name):
            raise InputError(f"`{name}` must be a number, but got {text!r}") from None
