"""A hash of what a function does: its source, and all that it refers to by name.

Functions are followed in this package and in that of the function itself, but not into
`continuarm.core`, which has a stamp of its own. Classes are not followed: `Problem` and `Box` are
the frame in which a world stands, not its definition.
"""

import dis
import hashlib
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources.abc import Traversable
from numbers import Number
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from continuarm.errors import SettingsError

__all__ = ["source_hash"]

PLAIN = (Number, np.generic, str, bytes, type(None))
ELSEWHERE = "continuarm.core"


def source_hash(maker: Callable[..., Any]) -> str:
    """The hash of a function, compiled or not, of a method, a partial, a class or its object."""
    root = _unwrapped(maker)
    functions = _functions(root)
    if not functions:
        raise SettingsError(f"a function is needed for its source, but got {maker!r}")
    walk = _Walk({"continuarm", _package(functions[0])})
    walk.visit(maker)
    if not isinstance(root, FunctionType | type):
        walk.visit(getattr(root, "__dict__", {}))
    for function in functions:
        walk.follow(function)
    return walk.digest.hexdigest()


class _Walk:
    """A walk through what functions refer to, each part of it hashed once."""

    def __init__(self, packages: set[str]) -> None:
        self.packages, self.seen = packages, set[int]()
        self.digest = hashlib.sha256()

    def visit(self, value: Any) -> None:
        """Hash a value that a function refers to, if it is a part of what the function does."""
        if isinstance(value, PLAIN):
            self._add(repr(value).encode())
        elif isinstance(value, tuple | list | dict):
            self._visit_all(value)
        elif isinstance(value, np.ndarray):
            self._add(f"{value.dtype} {value.shape}".encode() + value.tobytes())
        elif isinstance(value, partial):
            self.visit(value.func)
            self._visit_all(value.args)
            self._visit_all(value.keywords)
        elif _is_file(value):
            self._add(value.read_bytes())
        else:
            function = _unwrapped(value)
            if isinstance(function, FunctionType) and self._is_ours(function):
                self.follow(function)

    def follow(self, function: FunctionType) -> None:
        """Hash a function's source, and visit its defaults, its closure and its globals."""
        if id(function) in self.seen:
            return
        self.seen.add(id(function))
        self._add(_source(function.__code__))
        self.visit(function.__defaults__)
        self.visit(function.__kwdefaults__)
        for value in (*_enclosed(function), *_globals(function)):
            self.visit(value)

    def _visit_all(self, values: tuple[Any, ...] | list[Any] | dict[Any, Any]) -> None:
        self._add(f"{type(values).__name__} of {len(values)}".encode())
        for value in values.items() if isinstance(values, dict) else values:
            self.visit(value)

    def _is_ours(self, function: FunctionType) -> bool:
        inside = function.__module__ + "."
        return _package(function) in self.packages and not inside.startswith(ELSEWHERE + ".")

    def _add(self, part: bytes) -> None:
        self.digest.update(len(part).to_bytes(8, "little") + part)


def _unwrapped(value: Any) -> Any:
    """The Python function behind a partial, a method or a function compiled by Numba."""
    while isinstance(value, partial):
        value = value.func
    if isinstance(value, MethodType):
        value = value.__func__
    return getattr(value, "py_func", value)


def _functions(value: Any) -> list[FunctionType]:
    """A function itself, or the methods of a class or of the class of an object."""
    if isinstance(value, FunctionType):
        return [value]
    kind = value if isinstance(value, type) else type(value)
    return [method for method in vars(kind).values() if isinstance(method, FunctionType)]


def _is_file(value: Any) -> bool:
    return not isinstance(value, type) and isinstance(value, Traversable) and value.is_file()


def _package(function: FunctionType) -> str:
    return function.__module__.partition(".")[0]


def _source(code: CodeType) -> bytes:
    """The text of a function, or its instructions where no text is kept."""
    try:
        return inspect.getsource(code).encode()
    except OSError:
        return b"".join(
            repr((part.co_code, part.co_names, _constants(part))).encode() for part in _codes(code)
        )


def _constants(code: CodeType) -> list[Any]:
    return [value for value in code.co_consts if not isinstance(value, CodeType)]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those written inside it."""
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _codes(value)


def _enclosed(function: FunctionType) -> Iterator[Any]:
    """The values of a closure that are there already."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue


def _globals(function: FunctionType) -> Iterator[Any]:
    """What a function refers to by global name, `name` or `module.name`."""
    for code in _codes(function.__code__):
        value: Any = None
        for step in dis.get_instructions(code):
            if isinstance(value, ModuleType) and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                value = getattr(value, step.argval, None)
            elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                value = function.__globals__.get(step.argval)
            else:
                value = None
            if value is not None and not isinstance(value, ModuleType):
                yield value
