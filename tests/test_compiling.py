"""How compiled code is made: optimised once, in every thread."""

import gc
import math
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import types
from numba.core import codegen, cpu

from continuarm.core import compiling
from continuarm.core.compiling import (
    MATRIX,
    VECTOR,
    WHOLES,
    compile_entry,
    compiled,
    compiled_large,
)


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


def test_items_are_read_and_written_as_numba_does() -> None:
    """From the end, too, and of arrays that are no rows of floats."""

    def entry(row: Any, table: Any, wholes: Any, i: int, j: int) -> None:
        row[i], table[i, j] = table[j, i], row[j] + wholes[i]
        table[i - 3, -1] = row[-1] - wholes[-2]

    signature = types.void(VECTOR, MATRIX, WHOLES, types.int64, types.int64)
    made = compile_entry(entry, signature, cacheable=False)
    for i in range(3):
        for j in range(-3, 3):
            found, expected = [
                (np.array([1.5, 2.5, 4.0]), np.arange(9.0).reshape(3, 3), np.array([7, 8, 9]))
                for _ in range(2)
            ]
            entry(*expected, i, j)
            made(*found, i, j)
            for one, other in zip(found, expected, strict=True):
                assert (one == other).all(), (i, j)


def test_compiling_leaves_numba_and_the_collection_of_garbage_as_they_were() -> None:
    context: Any = cpu.CPUContext
    before = context.get_function, context.get_abi_sizeof
    entry_of(20.0)
    assert (context.get_function, context.get_abi_sizeof) == before
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        entry_of(21.0)
        assert gc.get_freeze_count() == pytest.approx(frozen, rel=0.01)
    finally:
        gc.unfreeze()
    gc.disable()
    try:
        entry_of(22.0)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_an_entry_calls_is_inlined() -> None:
    """The machine code has the function, and its wrapper for callers in Python."""

    def entry(x):  # type: ignore[no-untyped-def]
        return 3.0 * twice(x)

    made = compiling._compiled_entry(entry, types.float64(types.float64), (), False, False)
    defined = [line for line in made.library.get_llvm_str().splitlines() if line[:6] == "define"]
    assert len(defined) == 2, defined
    assert made.entry_point(1.5) == 9.0


@compiled_large
def many_terms(x: float) -> float:
    total = 0.0
    for k in range(10):
        for j in range(k):
            total += math.sin(x * k) * math.exp(x * j) / math.cos(x + j * k) + math.log(x + k)
    return total


@compiled
def both_ends(x: float) -> float:
    return many_terms(x) + many_terms(10.0 - x) + many_terms(0.5 * x) * many_terms(0.1 * x)


def test_a_large_function_stands_once_beside_what_calls_it() -> None:
    def entry(x):  # type: ignore[no-untyped-def]
        return both_ends(x) * both_ends(x + 1.0)

    made = compiling._compiled_entry(entry, types.float64(types.float64), (), False, False)
    text = made.library.get_llvm_str().splitlines()
    assert sum(line[:6] == "define" and "many_terms" in line for line in text) == 1
    expected = both_ends.py_func(1.5) * both_ends.py_func(2.5)  # type: ignore[attr-defined]
    assert made.entry_point(1.5) == pytest.approx(expected, rel=1e-12)


def test_python_may_call_what_compiled_code_calls(tmp_path: Path) -> None:
    """Functions of our own without machine code, and others, before and after they are cached."""
    (tmp_path / "mine.py").write_text("""
import math, numba
from numba import types
from continuarm.core.compiling import compile_entry, compiled, compiled_large
@numba.njit
def theirs(x): return int(3.0 * x) + abs(min(x, 2.0))
@numba.njit
def outer(x): return 2.0 * theirs(x) + math.sin(x)
@compiled
def ours(x): return outer(x) + theirs(x)
@compiled_large
def large(x): return ours(x) + 1.0
def entry(x): return large(x) + ours(x) + outer(x + 1.0) + theirs(x)
compiled_entry = compile_entry(entry, types.float64(types.float64))
print("compiled" if large.overloads else "read")
for call in (compiled_entry, theirs, outer, ours, large):
    plain = getattr(call, "py_func", entry)
    assert call(1.5) == plain(1.5), call
assert ours(2) == ours.py_func(2)  # of another type
@numba.njit
def later(x): return large(x) + ours(x) + theirs(x)
assert later(1.5) == later.py_func(1.5)
""")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for happened in ("compiled", "read"):
        done = subprocess.run(
            [sys.executable, "-c", "import mine"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert (done.stdout, done.returncode) == (f"{happened}\n", 0), done.stderr


def test_python_may_call_inner_functions_after_entries_that_hold_them(tmp_path: Path) -> None:
    """An entry keeps a version of its own of what it calls: nobody else may run into it."""
    code = """
import numba
import numpy as np
import continuarm as ca
from continuarm.core.learners import response_surface as rs
from tests.test_response_surface import NO_POOL
from tests.test_steady_surface import STEADY, surface_of

ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(1)).warm_up()
ca.simulate("recommended", "street-quiet", horizon=300, rng=0)
surface, y = surface_of(1, 1, n=2000, **STEADY), np.empty(1)
for k in range(200):
    surface.tell(surface.rng.uniform(-1, 1, 1), surface.rng.random(1), 1e3 * (k % 3))
for xi in surface.rng.standard_normal((200, 40)):
    request = surface.request(np.zeros(1), xi)
    rs.decide(surface.cfg, surface.row, NO_POOL, request, surface.work, y)
print("lives")
"""
    room = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=room
    )
    assert (done.stdout, done.returncode) == ("lives\n", 0), done.stderr


def test_what_python_has_called_before_is_part_of_an_entry_that_is_cached(tmp_path: Path) -> None:
    """Whatever is linked first: what is left out would be found in this process alone."""
    code = """
import sys, continuarm as ca
policy = ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(2), rng=0)
if sys.argv[1] == "first":
    policy.bins(), policy.life.model.rules(policy.life.limits)
print(policy.ask([0.5]).id)
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    for turn in ("first", "second"):
        command = [sys.executable, "-c", code, turn]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr


def test_who_wants_indices_checked_has_them_checked() -> None:
    def item(row: Any, i: int) -> Any:
        return row[i]

    checked = numba.njit(boundscheck=True)(item)

    def entry(row, i):  # type: ignore[no-untyped-def]
        return checked(row, i)

    signature = types.float64(VECTOR, types.int64)
    made: Any = compile_entry(entry, signature, cacheable=False, allocates=True)
    assert made(np.array([1.0, 2.0]), 1) == 2.0
    with pytest.raises(IndexError):
        made(np.array([1.0, 2.0]), 5)


LOOKING = """
import numba.core.dispatcher as numba
import continuarm as ca

policy, compiled = ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(1), rng=0), []
for k in range(60):
    decision = policy.ask([k / 60.0])
    policy.tell(decision, -float((decision.value[0] - 0.3) ** 2) + 0.01 * (k % 7))
compile_ = numba.Dispatcher.compile
numba.Dispatcher.compile = lambda self, *given: (
    compiled.append(self.py_func.__qualname__), compile_(self, *given))[1]
policy.bins(), policy.explain([0.5]), policy.diagnose(), policy.export()
print(sorted({name for name in compiled if name in ("best", "fill_best", "decide", "learn")}))
"""


def test_to_look_into_a_policy_does_not_wait_for_the_compiler_again() -> None:
    for _ in range(2):  # the first may fill the cache
        done = subprocess.run(
            [sys.executable, "-c", LOOKING], capture_output=True, text=True, check=True
        )
    assert done.stdout.strip() == "[]"
