"""Objects whose end would do harm: they last until the process is gone."""

import ctypes
from typing import Any

__all__ = ["keep_for_ever", "let_go"]


def keep_for_ever(thing: Any) -> None:
    """Let neither the collection of garbage nor the end of the interpreter finalise it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def let_go(thing: Any) -> None:
    """No longer so."""
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(thing))
