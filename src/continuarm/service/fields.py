"""Which part of a request an error is about."""

import re
from types import NoneType
from typing import Any

import msgspec

from continuarm.errors import ContinuarmError

__all__ = ["about", "field_of"]

PLACE = re.compile(r"at `\$\.?([^`]*)`$")  # where msgspec says that a body is wrong
STEP = re.compile(r"\.?(\w+)|\[(\d+)\]")  # of such a place
GOT = re.compile(r"got `(\w+)`")
LENGTH = re.compile(r"of length (<= )?(\d+)")
ANY = "[...]"  # what msgspec says instead of a name
KINDS = {str: "str", bool: "bool", NoneType: "null", list: "array", dict: "object"}
KINDS |= {int: "int", float: "float"}
NOT_THERE = (LookupError, AttributeError, TypeError, StopIteration)
UNKNOWN = re.compile(r"(?:unknown|missing required) field `([^`]+)`")


class about:
    """What is refused in here is about this field."""

    __slots__ = ("_field",)

    def __init__(self, field: str) -> None:
        self._field = field

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ContinuarmError):
            error.field = error.field or self._field


def named(error: msgspec.ValidationError, content: bytes | bytearray) -> msgspec.ValidationError:
    """The same with the name of the value that is wrong, where msgspec says `[...]`."""
    text = str(error)
    place = PLACE.search(text)
    if place is None or place[1].count(ANY) != 1:
        return error
    before, after = (STEP.findall(part) for part in place[1].split(ANY))
    try:
        values = _at(msgspec.json.decode(content), before)
        wrong = next(key for key, value in values.items() if _is_wrong(value, after, text))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, *NOT_THERE):
        return error
    return msgspec.ValidationError(text.replace(ANY, f".{wrong}"))


def _at(value: Any, steps: list[tuple[str, str]]) -> Any:
    """What is in a value at a place, step by step."""
    for word, index in steps:
        value = value[int(index)] if index else value[word]
    return value


def _is_wrong(value: Any, steps: list[tuple[str, str]], text: str) -> bool:
    """Whether it is the value that is refused: of the kind that was got, or of a wrong length."""
    got, length = GOT.search(text), LENGTH.search(text)
    try:
        found = _at(value, steps)
    except NOT_THERE:
        return False
    if got is None and length is not None and isinstance(found, list):
        return len(found) > int(length[2]) or (len(found) != int(length[2]) and not length[1])
    return got is not None and KINDS.get(type(found)) == got[1]


def field_of(error: Exception) -> str | None:
    """The field that an error is about, as a path: `context`, `payoffs[3].id`."""
    if isinstance(error, ContinuarmError):
        return error.field
    if not isinstance(error, msgspec.ValidationError):
        return None
    place, named = PLACE.search(str(error)), UNKNOWN.search(str(error))
    parts = [found[1] for found in (place, named) if found and found[1]]
    return ".".join(parts) or None
