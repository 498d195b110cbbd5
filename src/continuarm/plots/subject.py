"""What a figure asks of a policy, and how its axes are chosen and named."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from continuarm.box import Box
from continuarm.checks import among
from continuarm.core.compiling import Array
from continuarm.errors import InputError
from continuarm.plots.canvas import SET_BY
from continuarm.table import Table
from continuarm.words import number_in_words

__all__ = ["Subject", "Values", "dimension", "filled", "name_axis", "names_of", "others"]
__all__ += ["set_by", "wrapped"]

Values = Mapping[str, float] | Sequence[float] | Array | None
WIDE = 34  # characters of an axis' name in a line


class Subject(Protocol):
    """A policy, as far as figures are concerned."""

    name: str

    @property
    def context(self) -> Box: ...

    @property
    def decision(self) -> Box: ...

    def explain(self, what: Any = (), /) -> dict[str, Any]: ...

    def expected(self, context: Any, values: Any, /) -> Array | None: ...

    def bins(self) -> Sequence[Any]: ...

    @property
    def has_one_bin(self) -> bool: ...

    def cells(self, *, along: Any, parts: int, at: Any) -> Sequence[Any]: ...

    def history(self) -> Table: ...


def dimension(box: Box, name: str | None, role: str, default: int = 0) -> int:
    """The number of a dimension that is called so."""
    if name is None:
        return default
    if name not in box.names:
        hint = f"; a file is given by `path={str(name)!r}`" if is_file(name) else ""
        raise InputError(f"a {role} is one of {among(box.names)}, but got {name!r}{hint}")
    return box.names.index(name)


def is_file(name: object) -> bool:
    """Whether this looks like the file of a figure, given in place of a name."""
    return isinstance(name, Path) or str(name).endswith((".png", ".pdf", ".svg", ".jpg"))


def set_by(explanation: Mapping[str, Any]) -> str:
    """The guards that have set the best decision known, in the words of `explain`."""
    held = [one["guard"] for one in explanation["guards"] if one["held"]]
    return ", ".join(guard for guard in held if guard in SET_BY)


def names_of(given: str | Sequence[str]) -> list[str]:
    """One name, or several."""
    return [given] if isinstance(given, str | Path) else list(given)


def filled(box: Box, at: Values, default: Array) -> Array:
    """A point of the box: given by name for some dimensions, or in order for all."""
    if at is None:
        return default.copy()
    if not isinstance(at, Mapping):
        return box.point(at)
    point = default.copy()
    for name, value in at.items():
        point[dimension(box, name, "name of `at`")] = value
    return box.point(point)


def others(box: Box, point: Array, shown: Sequence[int]) -> str:
    """The dimensions that are held, in words."""
    parts = [
        f"{_label(box, i)} {number_in_words(float(point[i]), float(box.span[i]))}"
        for i in range(box.dim)
        if i not in shown
    ]
    rest = f" and {len(parts) - 4} more" if len(parts) > 5 else ""
    return ", ".join(parts[:4] if rest else parts) + rest


def wrapped(text: str, width: int = WIDE) -> str:
    """A long name in several lines, at most three."""
    return textwrap.fill(text, width, max_lines=3, placeholder=" …")


def _label(box: Box, i: int) -> str:
    return box.names[i] if box.named else f"dimension {box.names[i]}"


def name_axis(axis: Any, box: Box, i: int, room: int = WIDE) -> None:
    """Name an axis after a dimension of a box, in whose units it is."""
    axis.set_label_text(wrapped(_label(box, i), room))
    thousands = 1e4 <= np.max(np.abs([box.low[i], box.high[i]])) < 1e7
    if thousands:
        axis.set_major_formatter("{x:,.0f}")
