"""Policies and problems from a user's file, `file.py:object`."""

import importlib.util
import inspect
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from continuarm.errors import ContinuarmError, ProblemError, SettingsError
from continuarm.own_code import OwnCode
from continuarm.problems import Problem

__all__ = ["is_file", "load", "own_problem"]


def is_file(text: str) -> bool:
    """Whether a text names an object of a file."""
    return ".py:" in text


def load(text: str) -> Any:
    """The object of `file.py:object`."""
    file, _, name = text.rpartition(":")
    if not Path(file).is_file():
        raise SettingsError(f"a file is needed, but {file!r} is not there")
    module = _module(file)
    if not hasattr(module, name):
        raise SettingsError(f"{file} must define {name!r}, but does not")
    return getattr(module, name)


@cache
def _module(file: str) -> ModuleType:
    """A file as a module, run once; workers are sent what it defines, not its name."""
    path = Path(file)
    spec = importlib.util.spec_from_file_location(f"continuarm_user_{path.stem}", path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except ContinuarmError:
        raise
    except (Exception, SystemExit) as error:
        raise SettingsError(
            f"{file} must import, but got {type(error).__name__}: {error}"
        ) from error
    finally:
        sys.modules.pop(spec.name, None)  # no worker could import it: it is sent as it is
    return module


def own_problem(text: str, settings: dict[str, Any]) -> Problem:
    """A Problem of a file, or what a function there makes."""
    found = load(text)
    if not isinstance(found, Problem) and callable(found):
        found = _call(found, settings, text)
    elif settings:
        raise SettingsError(f"{text} takes no settings, but got {list(settings)}")
    if not isinstance(found, Problem):
        raise SettingsError(f"{text} must be a Problem or make one, but got {found!r}")
    found.name = text.rpartition(":")[2] if found.name == "problem" else found.name
    return found


def _call(function: Callable[..., Any], settings: dict[str, Any], text: str) -> Any:
    try:
        inspect.signature(function).bind(**settings)
    except TypeError as error:
        raise SettingsError(f"{text} must take the settings given, but {error}") from error
    with OwnCode(ProblemError, f"{text} must make a problem"):
        return function(**settings)
