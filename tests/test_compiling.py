"""How compiled code is made: optimised once, in every thread."""

import threading
from typing import Any

from numba import types
from numba.core import codegen

from continuarm.core import compiling
from continuarm.core.compiling import compile_entry, compiled


@compiled
def twice(x: float) -> float:
    return 2.0 * x


def entry_of(factor: float) -> Any:
    def entry(x):  # type: ignore[no-untyped-def]
        return factor * twice(x)

    return compile_entry(entry, types.float64(types.float64), cacheable=False)


def test_threads_that_compile_leave_numba_as_it_was() -> None:
    library: Any = codegen.CPUCodeLibrary
    before, found = library._optimize_final_module, list[float]()
    threads = [
        threading.Thread(target=lambda k=k: found.append(entry_of(1.0 * k)(1.0))) for k in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
    assert library._optimize_final_module is before


def test_what_an_entry_calls_is_inlined() -> None:
    """The machine code has the function, and its two wrappers for callers in Python and in C."""

    def entry(x):  # type: ignore[no-untyped-def]
        return 3.0 * twice(x)

    made = compiling._compiled_entry(entry, types.float64(types.float64), (), False, False)
    defined = [line for line in made.library.get_llvm_str().splitlines() if line[:6] == "define"]
    assert len(defined) == 3, defined
    assert made.entry_point(1.5) == 9.0
