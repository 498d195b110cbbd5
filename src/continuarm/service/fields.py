"""Which part of a request an error is about."""

import re

import msgspec

from continuarm.errors import ContinuarmError

__all__ = ["about", "field_of"]

PLACE = re.compile(r"at `\$\.?([^`]*)`$")  # where msgspec says that a body is wrong
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


def field_of(error: Exception) -> str | None:
    """The field that an error is about, as a path: `context`, `payoffs[3].id`."""
    if isinstance(error, ContinuarmError):
        return error.field
    if not isinstance(error, msgspec.ValidationError):
        return None
    place, named = PLACE.search(str(error)), UNKNOWN.search(str(error))
    parts = [found[1] for found in (place, named) if found and found[1]]
    return ".".join(parts) or None
