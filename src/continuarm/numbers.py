"""What counts as numbers, wherever a caller hands some over, and whose they are.

Integers and floats of Python and NumPy, alone or in arrays, are numbers, and so are flags where a
context or a decision has them. Text, bytes, Decimals, complex numbers and hidden values of masked
arrays are none. Whatever has names is matched by name: dictionaries, named tuples, series and
frames of pandas or polars, tables of Arrow, structured arrays.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from continuarm.checks import among
from continuarm.core.compiling import Array
from continuarm.errors import InputError

__all__ = ["FLOAT", "by_name", "has_flags", "names_of", "real", "reals"]

FLOAT = np.dtype(np.float64)
TEXT = (str, bytes, bytearray)
HIDING = (np.ma.MaskedArray, list, tuple)
NAMES = ("columns", "column_names", "index")  # of frames, Arrow's tables, pandas' series


def names_of(value: Any) -> list[Any] | None:
    """The names of what a value holds; None: it has an order only."""
    if isinstance(value, Mapping):
        return list(value)
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        return None if fields is None else list(fields)
    structured = getattr(getattr(value, "dtype", None), "names", None)
    if structured:
        return list(structured)
    if hasattr(value, "collect_schema"):  # a lazy frame, which warns where it is asked for columns
        return list(value.collect_schema().names())
    for attribute in NAMES:
        found = getattr(value, attribute, None)
        if found is not None and not callable(found):
            names = list(found)
            return None if all(isinstance(name, int | np.integer) for name in names) else names
    return None


def by_name(value: Any, given: Sequence[Any], wanted: Sequence[str]) -> list[Any]:
    """What a value with the names `given` holds, in the order of the names that are `wanted`."""
    if len(given) != len(wanted) or set(given) != set(wanted):
        raise InputError(f"the names must be {among(wanted)}, but got {among(given)}")
    if isinstance(value, tuple):
        return [getattr(value, name) for name in wanted]
    try:
        return [value[name] for name in wanted]
    except (TypeError, ValueError, KeyError, IndexError):
        kind = type(value).__name__
        raise InputError(f"columns that can be read are needed, but got a {kind}") from None


def reals(value: Any) -> Array | None:
    """A new array of numbers; None where there are others."""
    if type(value) is not np.ndarray and (isinstance(value, TEXT) or _hides(value)):
        return None
    try:
        found = np.array(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if found.dtype is not FLOAT:
        if found.dtype.kind not in "iufb" and found.size:
            return None
        found = found.astype(np.float64)
    return found


def _hides(value: Any, depth: int = 2) -> bool:
    """Whether values of a masked array, or of such arrays in rows, are hidden."""
    if depth and isinstance(value, list | tuple):
        return any(_hides(part, depth - 1) for part in value if isinstance(part, HIDING))
    return isinstance(value, np.ma.MaskedArray) and bool(np.ma.is_masked(value))


def has_flags(value: Any) -> bool:
    """Whether numbers are flags."""
    return np.asarray(value).dtype.kind == "b"


def real(value: Any) -> float | None:
    """One finite number, and no flag; None where it is something else."""
    if type(value) is not float:
        array = reals(value)
        if array is None or array.ndim or has_flags(value):
            return None
        value = float(array)
    return value if isfinite(value) else None
