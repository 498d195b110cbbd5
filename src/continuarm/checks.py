"""Checks of options: the rule first, then the value that broke it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from continuarm.errors import SettingsError

__all__ = [
    "among",
    "choice",
    "flag",
    "generator",
    "needed",
    "normalise",
    "number",
    "optional",
    "quoted",
    "shortened",
    "text",
    "whole",
    "wholes",
]


LARGEST = float(np.finfo(np.float64).max)
MOST_NAMES, MOST_CHARACTERS = 8, 60  # in a line that says what is wrong
REAL = (int, float, np.integer, np.floating)


def whole(name: str, value: Any, least: int, most: int = 2**53) -> int:
    """A whole number from `least` to `most`; 1e6 and 100000.0 count as whole."""
    if isinstance(value, REAL) and not isinstance(value, bool) and value >= least:
        if value > most:
            raise SettingsError(f"`{name} <= {most}` must hold, but got {value!r}")
        if value == int(value):
            return int(value)
    raise SettingsError(f"`{name}` must be a whole number >= {least}, but got {value!r}")


def generator(rng: Any) -> np.random.Generator:
    """Random numbers from a seed or a generator."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise SettingsError(f"`rng` must be a seed or a Generator, but got {rng!r}") from None


def wholes(name: str, values: Any, least: int) -> list[int]:
    """A sequence of such numbers."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, str | Mapping) or not isinstance(values, Sequence):
        raise SettingsError(f"`{name}` must be a sequence of whole numbers, but got {values!r}")
    return [whole(name, value, least) for value in values]


def number(
    name: str, value: Any, *, most: float = math.inf, least: float = 0.0, zero: bool = False
) -> float:
    """A finite number in `(0, most]`, or `[0, most]` where zero is allowed, at least `least`."""
    if isinstance(value, np.floating):
        value = float(value)
    if isinstance(value, REAL) and not isinstance(value, bool) and value >= least:
        if (0 < value <= most or (zero and value == 0)) and value <= LARGEST:
            return float(value)
    low = f"{least} <= " if least > 0 else "0 <= " if zero else "0 < "
    limit = f"{low}{name}" + (f" <= {most}" if most < math.inf else "")
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


def optional(check: Callable[..., Any], name: str, value: Any, *limits: Any) -> Any:
    """A value that may be None, else what a check makes of it."""
    return None if value is None else check(name, value, *limits)


def normalise(options: Any, **checked: Any) -> None:
    """Give a frozen value the fields that its checks returned: 1e6 becomes 1000000."""
    for name, value in checked.items():
        object.__setattr__(options, name, value)


def text(name: str, value: Any) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value:
        raise SettingsError(f"`{name}` must be text, but got {value!r}")
    return value


def among(names: Iterable[Any]) -> str:
    """Names in a line that says what is wrong: the first, and how many more there are.

    >>> among(["age", "income"])
    "['age', 'income']"
    >>> among(str(i) for i in range(900))
    "['0', '1', '2', '3', '4', '5', '6', '7', and 892 more]"
    """
    every = list(names)
    said = [quoted(name) for name in every[:MOST_NAMES]]
    if len(every) > MOST_NAMES:
        said.append(f"and {len(every) - MOST_NAMES:,} more")
    return f"[{', '.join(said)}]"


def shortened(text: str) -> str:
    """A name in such a line, of which the beginning is enough.

    >>> shortened("age"), len(shortened("age" * 60))
    ('age', 61)
    """
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def quoted(name: Any) -> str:
    """A name in quotation marks in such a line."""
    return repr(shortened(name)) if type(name) is str else shortened(repr(name))
