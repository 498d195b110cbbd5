"""Functions that compiled code calls: they become intermediate code, not machine code.

Numba makes every function that it compiles callable from Python, optimises it, and turns it into
machine code, each time together with all that it calls. Here only the outermost function gets all
that, because the others end up inside it or beside it.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, cast

import numba
from numba import types
from numba.core import config
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from continuarm.core.few_passes import FewPasses
from continuarm.core.found_once import found_once
from continuarm.core.lean_items import items_in_few_words
from continuarm.core.machine_code import only_machine_code_of

__all__ = ["UNCALLED", "inner", "outermost"]

# without what Python would need to call a function
UNCALLED: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

Dispatcher: Any = CPUDispatcher
unliteral: Any = types.unliteral


class Inner(Dispatcher):  # type: ignore[misc]
    """A function for compiled callers; if Python calls it, a twin is compiled for that."""

    def add_overload(self, compiled: Any) -> None:
        """Keep it from Python, which could not call it."""
        self.overloads[tuple(compiled.signature.args)] = compiled

    def get_call_template(self, args: Any, names: Any) -> Any:
        """A constant is a number like others: no version of the function for each."""
        numbers = {name: unliteral(kind) for name, kind in names.items()}
        return super().get_call_template([unliteral(kind) for kind in args], numbers)

    def _compile_for_args(self, *args: Any, **names: Any) -> Any:
        return self._twin

    @cached_property
    def _twin(self) -> Any:
        without = (*UNCALLED, "nopython")
        options = {k: v for k, v in self.targetoptions.items() if k not in without}
        return numba.njit(**options)(self.py_func)


def inner(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Compile a function for compiled callers."""
    if cast(Any, config).DISABLE_JIT:
        return function
    wanted = options | UNCALLED | {"nopython": True}
    return Inner(function, targetoptions=wanted, pipeline_class=FewPasses)


@contextmanager
def outermost(function: Any, *, allocates: bool) -> Iterator[None]:
    """Make machine code only of this function while it is compiled.

    Functions of other packages get theirs, too, because Python may call them.
    """
    lock = cast(Any, global_compiler_lock)  # other threads wait here
    with lock, _no_garbage_collected(), found_once(), items_in_few_words():
        with only_machine_code_of(function.__qualname__, allocates=allocates):
            yield


@contextmanager
def _no_garbage_collected() -> Iterator[None]:
    """A compiler makes a great many objects, and hardly any are garbage.

    They count as old afterwards, or all of them would be looked through at once.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_freeze_count() == 0:  # or others have frozen objects, and want them so
                gc.freeze()
                gc.unfreeze()
            gc.enable()
