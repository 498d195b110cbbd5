"""Compiling with Numba: functions chosen by configuration class, cached entry points.

A configuration is a NamedTuple of numbers, optionally ending in one array. Its class selects the
code: `by_class` turns a function of the protocol into one that compiled callers resolve while
they are compiled. An entry point receives configurations packed into one array of numbers,
because Numba takes far longer to recognise a NamedTuple argument than an array.
"""

import hashlib
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

import numba
import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

Array = NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])

VECTOR = types.float64[::1]
MATRIX = types.float64[:, ::1]

# Compiled functions do not allocate, so that references need not be counted (atomically, at each
# view of a row) and division by zero need not be checked: several times faster. Numba passes
# `_nrt` on from a function to those it calls.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
ALLOCATING: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
INLINED: Any = OPTIONS | {"forceinline": True}

# What only calls, draws or prints.
NUMBERLESS = {
    "__main__.py",
    "cli.py",
    "commands.py",
    "comparison.py",
    "journal.py",
    "parallel.py",
    "plots.py",
    "reproduction",
    "result.py",
    "table.py",
    "theory.py",
}

_code: dict[type, object] = {}


def register(config: type, code: object) -> None:
    """Make `code` (an object whose attributes are functions) the code of a configuration class."""
    _code[config] = code


def code_of(config: type) -> Any:
    """The code registered for a configuration class."""
    return _code[config]


def registered(name: str) -> type | None:
    """The configuration class of this name."""
    return next((config for config in _code if config.__name__ == name), None)


def by_class(function: Function) -> Function:
    """Resolve calls of `function` by the class of their first argument, compiled or not."""
    name = function.__name__

    def resolve(cfg: Any, *_: Any) -> Any:
        implementation = getattr(_code[cfg.instance_class], name)
        return getattr(implementation, "py_func", implementation)

    resolve.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    overload(function, strict=False, jit_options=INLINED)(
        resolve
    )  # implementations have narrower annotations
    return function


def compiled(function: Function) -> Function:
    """Compile a small function that other compiled functions call."""
    return cast(Function, numba.njit(**INLINED)(function))


def compiled_large(function: Function) -> Function:
    """Compile a function once for all its callers: less to compile where it is called often."""
    return cast(Function, numba.njit(**OPTIONS)(function))


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
    """Compile a function that Python calls, and keep the machine code on disk where possible.

    Numba does not notice an edited callee, so a function to be cached must close over `stamp()`.
    Its index on disk is not safe when two processes write different functions to one, so the
    configuration classes and the stamp are part of the name: one index, one function.
    """
    if classes or function.__closure__ is not None:
        names = "_".join(kind.__name__ for kind in classes)
        function.__qualname__ += f"_{names}_{stamp()[:12]}"
    cacheable = cacheable and is_ours(*classes)
    options = ALLOCATING if allocates else OPTIONS
    if cacheable:
        try:
            return cast(Function, numba.njit(signature, cache=True, **options)(function))
        except (RuntimeError, OSError):  # no folder to write to
            pass
    return cast(Function, numba.njit(signature, **options)(function))


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


@cache
def stamp() -> str:
    """A hash of all sources that could change a number, so that an edit there recompiles."""
    digest, root = hashlib.sha256(numba.__version__.encode()), Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in NUMBERLESS or path.name == "plan.py":
            digest.update(path.read_bytes())
    return digest.hexdigest()


def is_ours(*configs: type) -> bool:
    """Whether the code of these configurations is covered by `stamp()`."""
    return all(config.__module__.startswith("continuarm.") for config in configs)


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


@overload(unpack, strict=False, jit_options=INLINED)
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
    namespace = {"config_class": config_class}
    exec(f"def unpacker(packed): return config_class({', '.join(parts)})", namespace)
    return cast(Callable[[Array], Any], compiled(namespace["unpacker"]))
