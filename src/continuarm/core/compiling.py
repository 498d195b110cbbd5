"""Compiling with Numba: functions chosen by configuration class, cached entry points.

A configuration is a NamedTuple of numbers, optionally ending in one array. Its class selects the
code: `by_class` turns a function of a protocol into one that compiled callers resolve while they
are compiled. An entry point receives configurations packed into one array of numbers, because
there are many classes of them; the other bundles of arrays that travel together are NamedTuples.
"""

import hashlib
import inspect
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from continuarm.core.few_passes import FewPasses
from continuarm.core.inner import UNCALLED, inner, outermost
from continuarm.errors import SettingsError

Array = NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])

VECTOR = types.float64[::1]
MATRIX = types.float64[:, ::1]
WHOLES = types.int64[::1]
WORDS = types.uint64[::1]

# Compiled functions do not allocate, so that references need not be counted (atomically, at each
# view of a row) and division by zero need not be checked: several times faster. Numba passes
# `_nrt` on from a function to those it calls.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
ALLOCATING: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
INLINED: Any = OPTIONS | {"forceinline": True}
APART: Any = OPTIONS | {"forceinline": False}  # or Numba passes it on from a caller, too
# an overload of many classes, and what Python calls but not C
OVERLOADED: Any = INLINED | UNCALLED | {"pipeline_class": FewPasses}
ENTRY: Any = OPTIONS | {"pipeline_class": FewPasses, "no_cfunc_wrapper": True}

CORE = Path(__file__).parent
# what reading a file raises that is not as it was written
BROKEN_CACHE: tuple[type[Exception], ...] = (
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
)

_code: dict[type, object] = {}


def register(config: type, code: object) -> None:
    """Make `code` (an object whose attributes are functions) the code of a configuration class."""
    _code[config] = code


def code_of(config: type) -> Any:
    """The code registered for a configuration class; None: there is none."""
    return _code.get(config)


def functions_of(code: Any, module: dict[str, Any]) -> dict[str, Any]:
    """The functions of a module that are named like the fields of a class of code."""
    return {name: module[name] for name in code.__dataclass_fields__ if name in module}


def by_class(function: Function) -> Function:
    """Resolve calls of `function` by the class of their first argument, compiled or not."""
    name = function.__name__

    def resolve(cfg: Any, *_: Any) -> Any:
        implementation = getattr(_code[cfg.instance_class], name)
        return getattr(implementation, "py_func", implementation)

    resolve.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    # not strict: implementations have narrower annotations
    overload(function, strict=False, jit_options=OVERLOADED)(resolve)
    return function


def compiled(function: Function) -> Function:
    """Compile a small function that other compiled functions call."""
    return cast(Function, inner(function, INLINED))


def compiled_large(function: Function) -> Function:
    """Compile a function once for all its callers: less to compile where it is called often."""
    return cast(Function, inner(function, APART))


def compiled_allocating(function: Function) -> Function:
    """The same for a function that makes arrays of its own."""
    return cast(Function, numba.njit(**ALLOCATING)(function))


def compile_entry(
    function: Function,
    signature: Any,
    *,
    classes: tuple[type, ...] = (),
    cacheable: bool = True,
    allocates: bool = False,
) -> Function:
    """Compile a function that Python calls with exactly the types of `signature`.

    The machine code is kept on disk where possible. Numba does not notice an edited callee, and
    its index on disk is not safe when two processes write different functions to one: the name
    carries the configuration classes and a stamp of the sources, so one index has one function.
    What is returned skips Numba's recognition of the arguments' types: there is one signature, and
    a bundle takes far longer to recognise than to unpack.
    """
    return cast(
        Function,
        _compiled_entry(function, signature, classes, cacheable, allocates).entry_point,
    )


def compile_function(
    function: Function, signature: Any, *, cacheable: bool, allocates: bool = True
) -> Any:
    """Compile a function that compiled code calls by its address, and Python as it is."""
    if not cacheable:
        return numba.njit(signature, **ALLOCATING)(function)
    return _dispatcher(function, signature, (), True, allocates)


def _compiled_entry(
    function: Any, signature: Any, classes: tuple[type, ...], cacheable: bool, allocates: bool
) -> Any:
    dispatcher = _dispatcher(function, signature, classes, cacheable, allocates)
    if not hasattr(dispatcher, "overloads"):
        raise SettingsError("compiled code is needed, but NUMBA_DISABLE_JIT is set")
    (compiled_once,) = dispatcher.overloads.values()
    return compiled_once


def _dispatcher(
    function: Any, signature: Any, classes: tuple[type, ...], cacheable: bool, allocates: bool
) -> Any:
    options = ALLOCATING if allocates else ENTRY
    source = Path(inspect.getsourcefile(function) or "")
    if cacheable and source.is_file() and all(is_ours(kind) for kind in classes):
        names = "_".join(kind.__name__ for kind in classes)
        mark = f"_{names}_{stamp(source)[:12]}"
        function.__qualname__ = function.__qualname__.removesuffix(mark) + mark
        try:
            with outermost(function, allocates=allocates):
                return numba.njit(signature, cache=True, **options)(function)
        except BROKEN_CACHE:
            _remove_cached(function, options)
            with suppress(RuntimeError, OSError), outermost(function, allocates=allocates):
                return numba.njit(signature, cache=True, **options)(function)
        except (RuntimeError, OSError):  # no folder to write to
            pass
    with outermost(function, allocates=allocates):
        return numba.njit(signature, **options)(function)


def _remove_cached(function: Any, options: Any) -> None:
    """Remove files that were cut off, or damaged since: what was in them is compiled again."""
    dispatcher = numba.njit(**options)(function)
    dispatcher.enable_caching()
    cache: Any = dispatcher._cache
    for path in Path(cache.cache_path).glob(f"{cache._impl.filename_base}*.nb?"):
        path.unlink(missing_ok=True)


@cache
def stamp(*sources: Path) -> str:
    """A hash of this folder, of Numba's version and of further files or folders.

    A folder counts with the Python files that lie directly in it; this one with all below it.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    files = set(CORE.rglob("*.py"))
    for source in sources:
        files |= set(source.glob("*.py")) if source.is_dir() else {source}
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_ours(config: type) -> bool:
    """Whether the code of a configuration is covered by `stamp()`."""
    return config.__module__.startswith("continuarm.core.")


@compiled
def copy_into(target: Array, source: Array) -> None:
    """`target[:] = source`, which takes Numba a second to compile when written like that."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@compiled
def fill(target: Array, value: float) -> None:
    """`target[:] = value`."""
    for i in range(target.shape[0]):
        target[i] = value


def in_python(function: Function) -> Function:
    """The same function uncompiled: for a number or two that Python wants at once."""
    return cast(Function, getattr(function, "py_func", function))


def tuple_type(*members: Any, named: Any = None) -> Any:
    """The compiled type of a tuple, or of a NamedTuple, of these members."""
    kinds: Any = types
    return kinds.Tuple(members) if named is None else kinds.NamedTuple(members, named)


def pack(config: Any) -> Array:
    """The numbers of a configuration in one array, in the order of its fields."""
    return np.concatenate([np.atleast_1d(np.asarray(value, np.float64)) for value in config])


def plain(config: Any) -> dict[str, Any]:
    """The fields of a configuration as numbers and lists."""
    fields = config._asdict().items()
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in fields}


def unpack(config_class: Any, packed: Array) -> Any:
    """The inverse of `pack`, for compiled code."""
    return _unpacker(config_class)(packed)


@overload(unpack, strict=False, jit_options=OVERLOADED)
def _unpack(config_class: Any, packed: Any) -> Any:
    function = _unpacker(config_class.instance_class)
    return lambda config_class, packed: function(packed)


@cache
def _unpacker(config_class: type) -> Callable[[Array], Any]:
    """Numba cannot build a NamedTuple from an array of any length: write the call out."""
    parts = []
    for i, kind in enumerate(get_type_hints(config_class).values()):
        if kind in (int, bool):
            parts.append(f"{kind.__name__}(packed[{i}])")
        else:
            parts.append(f"packed[{i}]" if kind is float else f"packed[{i}:]")
    namespace: dict[str, Any] = {"config_class": config_class, "__name__": __name__}
    exec(f"def unpacker(packed): return config_class({', '.join(parts)})", namespace)
    return cast(Callable[[Array], Any], compiled(namespace["unpacker"]))


def address_of(function: Any, signature: Any) -> int:
    """Where the machine code of a compiled function lies, for `function_at`."""
    found = function.get_compile_result(signature)
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name))


def function_at(signature: Any) -> Any:
    """A compiled function of an address: the function of this signature that lies there.

    Functions as arguments are recognised a hundred times more slowly than a number.
    """
    kind = types.FunctionType(signature)

    @intrinsic
    def at(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            made = cgutils.create_struct_proxy(kind)(context, builder)  # type: ignore[no-untyped-call]
            pointer = context.get_value_type(types.voidptr)
            nowhere = ir.Constant(pointer, None)
            made.c_addr, made.py_addr = nowhere, nowhere
            made.jit_addr = builder.inttoptr(arguments[0], pointer)
            return made._getvalue()

        return kind(types.int64), generate

    return at
