"""Checks of options: the rule first, then the value that broke it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from continuarm.errors import SettingsError

__all__ = ["choice", "flag", "needed", "number", "whole", "wholes"]


REAL = (int, float, np.integer, np.floating)


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`; 1e6 and 100000.0 count as whole."""
    if isinstance(value, REAL) and not isinstance(value, bool) and value >= least:
        if math.isfinite(value) and value == int(value):
            return int(value)
    raise SettingsError(f"`{name}` must be a whole number >= {least}, but got {value!r}")


def wholes(name: str, values: Any, least: int) -> list[int]:
    """A sequence of such numbers."""
    if isinstance(values, str | Mapping) or not isinstance(values, Sequence):
        raise SettingsError(f"`{name}` must be a sequence of whole numbers, but got {values!r}")
    return [whole(name, value, least) for value in values]


def number(name: str, value: Any, *, most: float = math.inf, zero: bool = False) -> float:
    """A finite number in `(0, most]`, or `[0, most]` where zero is allowed."""
    if isinstance(value, REAL) and not isinstance(value, bool):
        if (0 < value <= most or (zero and value == 0)) and math.isfinite(value):
            return float(value)
    limit = f"0 {'<=' if zero else '<'} {name}" + (f" <= {most}" if most < math.inf else "")
    raise SettingsError(f"`{limit}` must hold, but got {value!r}")


def choice(name: str, value: Any, known: dict[str, Any]) -> Any:
    """What an option's name stands for."""
    if not isinstance(value, str) or value not in known:
        raise SettingsError(f"`{name}` must be one of {list(known)}, but got {value!r}")
    return known[value]


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise SettingsError(f"`{name}` must be true or false, but got {value!r}")
    return value


def needed(name: str, value: Any, why: str) -> Any:
    """A value that something else needs."""
    if value is None:
        raise SettingsError(f"`{name}` is needed {why}, but got None")
    return value
