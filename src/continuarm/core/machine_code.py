"""Machine code of one function and of all that it calls, linked and optimised once.

Numba links, optimises and turns into machine code every function that it compiles, each time
together with all that it calls, so the innermost ones again in every caller.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from llvmlite import binding
from numba.core import codegen, cpu

__all__ = ["only_machine_code_of"]

NOT_FOR_PYTHON = ("continuarm.", "numba.")  # where functions of compiled code alone are from

library: Any = codegen.JITCodeLibrary
context: Any = cpu.CPUContext
llvm: Any = binding
# Numba's own ways, noted before anything is changed: an interrupt may keep us from going back
ensure, optimise_functions = library._ensure_finalized, library._optimize_functions
executable = context.get_executable


@contextmanager
def only_machine_code_of(name: str, *, allocates: bool) -> Iterator[None]:
    """Make machine code only of the function of this name, and of those of other packages.

    The others stay as they are until one that is outside of this calls them.
    """

    def executable_last(self: Any, made: Any, described: Any, environment: Any) -> Any:
        is_last = made.name == name
        if made._finalized:  # it has been read from disk
            return executable(self, made, described, environment)
        if not is_last and described.modname.startswith(NOT_FOR_PYTHON):
            return _nothing_to_call(made, described, environment)
        _link(made)
        if is_last and not allocates:
            _optimise(made)
        else:  # with what prunes the counting of references
            made._optimize_final_module()
        made._finalize_final_module()
        return executable(self, made, described, environment)

    library._ensure_finalized = _wait
    library._optimize_functions = _tidy
    context.get_executable = executable_last
    try:
        yield
    finally:
        library._ensure_finalized = ensure
        library._optimize_functions = optimise_functions
        context.get_executable = executable


def _wait(self: Any) -> None:
    """Leave a library unlinked."""


def _tidy(self: Any, module: Any) -> None:
    """Undo the wordiness of what Numba writes, so that there is less to inline and to optimise."""
    module.data_layout = self._codegen._data_layout
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    builder = self._codegen._pass_builder()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def _link(made: Any) -> None:
    """Bring in all that is called, at any depth, for this library alone."""
    module, seen, waiting = made._final_module, {made}, list(made._linking_libraries)
    finished: list[Any] = []
    own = {function.name for function in module.functions if not function.is_declaration}
    while waiting:
        called = waiting.pop()
        if called in seen:
            continue
        seen.add(called)
        made._reload_init.update(called._reload_init)
        if called._finalized:
            finished.append(called)
        else:
            module.link_in(called._final_module, preserve=True)
            waiting += called._linking_libraries
    for called in finished:  # last: what nobody calls by then is left out
        module.link_in(called._get_module_for_linking(), preserve=True)
    for function in module.functions:
        if not function.is_declaration and function.name not in own:
            function.linkage = "internal"
            # Calls into it may lose arguments, and a loader knows internal functions by name, too:
            # no other code may find this version.
            function.name = f"{function.name}.in.{made.name}"


def _optimise(made: Any) -> None:
    """Optimise what allocates nothing.

    Loops are not unrolled: it nearly doubles the code, and no policy was faster with it.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.loop_unrolling = True, False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(made._codegen._tm, options)
    builder.getModulePassManager().run(made._final_module, builder)


def _nothing_to_call(made: Any, described: Any, environment: Any) -> Any:
    """What Numba knows a compiled function by; there is no code behind it."""
    make = import_module("numba._dynfunc").make_function
    return make(described.lookup_module(), described.qualname, "", 0, environment, (made,))
