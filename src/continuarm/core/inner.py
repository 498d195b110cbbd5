"""Functions that compiled code calls: they become intermediate code, not machine code.

Numba makes every function that it compiles callable from Python, optimises it, and turns it into
machine code, each time together with all that it calls. Here only the outermost function gets all
that, because the others end up inside it. That halves the time to compile.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from typing import Any, cast

import numba
from numba.core import codegen, config, cpu
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

__all__ = ["UNCALLED", "inner", "outermost"]

# without what Python would need to call a function
UNCALLED: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
NOT_FOR_PYTHON = ("continuarm.", "numba.")  # where functions of compiled code alone are from

library: Any = codegen.JITCodeLibrary
context: Any = cpu.CPUContext
Dispatcher: Any = CPUDispatcher


class Inner(Dispatcher):  # type: ignore[misc]
    """A function for compiled callers; if Python calls it, a twin is compiled for that."""

    def add_overload(self, compiled: Any) -> None:
        """Keep it from Python, which could not call it."""
        self.overloads[tuple(compiled.signature.args)] = compiled

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
    return Inner(function, targetoptions=options | UNCALLED | {"nopython": True})


@contextmanager
def outermost(function: Any) -> Iterator[None]:
    """Make machine code only of this function while it is compiled.

    Functions of other packages get theirs, too, because Python may call them.
    """
    with cast(Any, global_compiler_lock), _no_garbage_collected():  # other threads wait here
        with _only_machine_code_of(function.__qualname__):
            yield


@contextmanager
def _only_machine_code_of(name: str) -> Iterator[None]:
    optimise, finish = library._optimize_final_module, library._finalize_final_module
    executable = context.get_executable

    def optimise_last(self: Any) -> None:
        if self.name == name:
            optimise(self)

    def finish_last(self: Any) -> None:
        if self.name == name:
            finish(self)
        else:
            self._finalized = True

    def executable_last(self: Any, made: Any, described: Any, environment: Any) -> Any:
        if made.name != name:
            if described.modname.startswith(NOT_FOR_PYTHON):
                return _nothing_to_call(made, described, environment)
            made._ensure_finalized()
            optimise(made)
            finish(made)
        return executable(self, made, described, environment)

    library._optimize_final_module = optimise_last
    library._finalize_final_module = finish_last
    context.get_executable = executable_last
    try:
        yield
    finally:
        library._optimize_final_module = optimise
        library._finalize_final_module = finish
        context.get_executable = executable


def _nothing_to_call(made: Any, described: Any, environment: Any) -> Any:
    """What Numba knows a compiled function by; there is no code behind it."""
    make = import_module("numba._dynfunc").make_function
    return make(described.lookup_module(), described.qualname, "", 0, environment, (made,))


@contextmanager
def _no_garbage_collected() -> Iterator[None]:
    """A compiler makes a great many objects, and hardly any are garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
