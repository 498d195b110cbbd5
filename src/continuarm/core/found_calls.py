"""Calls whose types are inferred once.

Numba infers each `a + b` anew, by trying in turn all that it knows of `+`: of arrays, lists and
dates, too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.types import functions

__all__ = ["calls_found_once"]

kind: Any = functions.BaseFunction
find = kind.get_call_type  # noted before it is changed: an interrupt may keep us from going back


@contextmanager
def calls_found_once() -> Iterator[None]:
    """Remember what a function is for arguments of some types, while something is compiled."""
    found = dict[Any, Any]()

    def find_once(self: Any, context: Any, types: Any, named: Any) -> Any:
        if named:
            return find(self, context, types, named)
        call = self, tuple(types)
        if call not in found:
            found[call] = find(self, context, types, named)
        return found[call]

    kind.get_call_type = find_once
    try:
        yield
    finally:
        kind.get_call_type = find
