"""Box: a named, validated box of real numbers and its map to the unit cube."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from continuarm.checks import whole
from continuarm.errors import InputError, SettingsError
from continuarm.jit import Array, compiled

__all__ = ["Box", "from_unit", "to_unit"]


@compiled
def to_unit(low: Array, high: Array, point: Array, unit: Array) -> int:
    """Scale a point to the unit cube; -1, or the first dimension in which it is outside."""
    for i in range(low.shape[0]):
        if not low[i] <= point[i] <= high[i]:  # NaN is outside, too
            return i
        unit[i] = (point[i] - low[i]) / (high[i] - low[i])
    return -1


@compiled
def from_unit(low: Array, high: Array, unit: Array, point: Array) -> None:
    """Scale a point of the unit cube to the box, clipped again because products are rounded."""
    for i in range(low.shape[0]):
        point[i] = min(max(low[i] + unit[i] * (high[i] - low[i]), low[i]), high[i])


class Box:
    """A box of real numbers: `low[i] <= value[i] <= high[i]`.

    Parameters
    ----------
    low, high : sequences of `dim` finite numbers with `low < high` everywhere.
    names : `dim` different names, or None for `"0"`, `"1"`, ...

    >>> box = Box([1.0, 1.0], [9.0, 5.0], names=["price", "fee"])
    >>> box.point({"fee": 2, "price": 3})
    array([3., 2.])
    >>> box.to_unit([3.0, 2.0])
    array([0.25, 0.25])
    >>> box.point([3.0, 7.0])
    Traceback (most recent call last):
    continuarm.errors.InputError: `1.0 <= fee <= 5.0` must hold, but got 7.0
    """

    __slots__ = ("high", "low", "named", "names")

    low: Array
    high: Array
    names: tuple[str, ...]
    named: bool

    def __init__(
        self, low: ArrayLike, high: ArrayLike, names: Sequence[str] | None = None
    ) -> None:
        lows, highs = _bounds(low), _bounds(high)
        if lows.shape != highs.shape:
            raise SettingsError(
                f"`low` and `high` must have one length, but got {lows.size} and {highs.size}"
            )
        if not (np.isfinite(lows).all() and np.isfinite(highs).all() and (lows < highs).all()):
            raise SettingsError(
                "`low < high` must hold in every dimension, both finite, "
                f"but got low={lows.tolist()}, high={highs.tolist()}"
            )
        with np.errstate(over="ignore"):
            finite = np.isfinite(highs - lows).all()
        if not finite:
            raise SettingsError(
                f"`high - low` must be finite, but got low={lows.tolist()}, high={highs.tolist()}"
            )
        for name, value in (("low", lows), ("high", highs)):
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        object.__setattr__(self, "names", _names(names, lows.size))
        object.__setattr__(self, "named", names is not None)

    @classmethod
    def unit(cls, dim: int) -> "Box":
        """The unit cube of `dim` dimensions."""
        dim = whole("dim", dim, 0)
        return cls(np.zeros(dim), np.ones(dim))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Box cannot be changed, but `{name}` was assigned")

    def __getstate__(self) -> tuple[list[float], list[float], list[str] | None]:
        return self.low.tolist(), self.high.tolist(), list(self.names) if self.named else None

    def __setstate__(self, state: tuple[list[float], list[float], list[str] | None]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash((self.low.tobytes(), self.high.tobytes(), self.names))

    def __repr__(self) -> str:
        low, high, names = self.__getstate__()
        return f"Box({low}, {high}{'' if names is None else f', names={names}'})"

    @property
    def dim(self) -> int:
        """The number of dimensions."""
        return int(self.low.size)

    @property
    def span(self) -> Array:
        """`high - low`."""
        return self.high - self.low

    @property
    def centre(self) -> Array:
        """The point in the middle."""
        return self.from_unit(np.full(self.dim, 0.5))

    def array(self, value: ArrayLike | Mapping[str, float]) -> Array:
        """A value given as sequence, array or `{name: value}`, as a new array."""
        if isinstance(value, Mapping):
            value = self._by_name(value)
        try:
            point = np.array(value)
        except (TypeError, ValueError):
            raise self._no_numbers(value) from None
        if point.dtype != np.float64:
            if point.dtype.kind not in "iufb" and point.size:
                raise self._no_numbers(value)
            point = point.astype(np.float64)
        if point.shape != (self.dim,):
            raise InputError(
                f"{self.dim} numbers are needed for {self._label()}, "
                f"but got {point.size if point.ndim == 1 else f'shape {point.shape}'}"
            )
        return point

    def point(self, value: ArrayLike | Mapping[str, float]) -> Array:
        """The same, and refused when it lies outside the box."""
        point = self.array(value)
        inside = (self.low <= point) & (point <= self.high)
        if not inside.all():
            self.refuse(point, int(np.argmin(inside)))
        return point

    def points(self, values: ArrayLike) -> Array:
        """An `(n, dim)` array of points, refused when one lies outside the box."""
        try:
            points = np.array(values, dtype=np.float64, order="C")
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"an array of numbers is needed, but got {values!r}") from None
        if points.ndim != 2 or points.shape[1] != self.dim:
            raise InputError(f"the shape must be (n, {self.dim}), but got {points.shape}")
        inside = (self.low <= points) & (points <= self.high)
        if not inside.all():
            t, i = np.unravel_index(int(np.argmin(inside)), inside.shape)
            self.refuse(points[t], int(i))
        return points

    def refuse(self, point: Array, dimension: int) -> None:
        """Raise the error for a point that is outside in this dimension."""
        low, high = float(self.low[dimension]), float(self.high[dimension])
        name = self.names[dimension] if self.named else f"value {dimension}"
        raise InputError(f"`{low} <= {name} <= {high}` must hold, but got {point[dimension]}")

    def to_unit(self, points: ArrayLike) -> Array:
        """Points of the box, `(dim,)` or `(n, dim)`, scaled to the unit cube."""
        return np.asarray((np.asarray(points, np.float64) - self.low) / self.span)

    def from_unit(self, units: ArrayLike) -> Array:
        """Points of the unit cube, `(dim,)` or `(n, dim)`, scaled to the box."""
        scaled = self.low + np.asarray(units, np.float64) * self.span
        return np.minimum(np.maximum(scaled, self.low), self.high)

    def _by_name(self, value: Mapping[str, float]) -> list[float]:
        if not self.named:
            raise InputError(f"values by name need a Box with names, but got {dict(value)}")
        try:
            if len(value) == len(self.names):
                return [value[name] for name in self.names]
        except KeyError:
            pass
        raise InputError(f"the names must be {list(self.names)}, but got {list(value)}")

    def _no_numbers(self, value: object) -> InputError:
        return InputError(f"numbers are needed for {self._label()}, but got {value!r}")

    def _label(self) -> str:
        return str(list(self.names)) if self.named else f"a box of {self.dim} dimensions"


def _bounds(value: ArrayLike) -> Array:
    try:
        bounds = np.array(value, dtype=np.float64) + 0.0  # -0 would be another box
    except (TypeError, ValueError, OverflowError):
        raise SettingsError(f"the bounds of a box must be numbers, but got {value!r}") from None
    if bounds.ndim != 1:
        raise SettingsError(f"the bounds of a box must be 1-D, but got shape {bounds.shape}")
    return bounds


def _names(names: Any, dim: int) -> tuple[str, ...]:
    if names is None:
        return tuple(str(i) for i in range(dim))
    if not isinstance(names, Sequence) or isinstance(names, str):
        raise SettingsError(f"`names` must be a sequence of strings, but got {names!r}")
    if not all(isinstance(name, str) for name in names):
        raise SettingsError(f"`names` must be a sequence of strings, but got {names!r}")
    if len(names) != dim or len(set(names)) != dim:
        raise SettingsError(f"`names` must be {dim} different names, but got {list(names)}")
    return tuple(names)
