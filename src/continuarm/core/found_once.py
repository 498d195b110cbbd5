"""What Numba finds out anew each time, found out once.

It infers each `a + b` by trying in turn all that it knows of `+`: of arrays, lists and dates, too.
And it asks LLVM for the size of a type by having it read a module that is written for that.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import cpu
from numba.core.types import functions

__all__ = ["found_once"]

kind: Any = functions.BaseFunction
context: Any = cpu.CPUContext
# noted before they are changed: an interrupt may keep us from going back
find, measure = kind.get_call_type, context.get_abi_sizeof


@contextmanager
def found_once() -> Iterator[None]:
    """Remember what a function is for arguments of some types, and how large these are, while
    something is compiled."""
    found, sizes = dict[Any, Any](), dict[str, int]()

    def find_once(self: Any, context: Any, types: Any, named: Any) -> Any:
        if named:
            return find(self, context, types, named)
        call = self, tuple(types)
        if call not in found:
            found[call] = find(self, context, types, named)
        return found[call]

    def measure_once(self: Any, type_: Any) -> int:
        name = str(type_)
        if name not in sizes:
            sizes[name] = measure(self, type_)
        return sizes[name]

    kind.get_call_type, context.get_abi_sizeof = find_once, measure_once
    try:
        yield
    finally:
        kind.get_call_type, context.get_abi_sizeof = find, measure
