"""Box: a named, validated box of real numbers and its map to the unit cube."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from continuarm.checks import among, shortened, whole
from continuarm.core.compiling import Array
from continuarm.errors import InputError, SettingsError
from continuarm.numbers import FLOAT, by_name, names_of, reals
from continuarm.spacing import Values, endings_of, spacings_of, values_of

__all__ = ["Box"]

PerCoordinate = float | Sequence[float | None] | Mapping[str, float | None] | None


class Box:
    """A box of real numbers: `low[i] <= value[i] <= high[i]`.

    Parameters
    ----------
    low, high : sequences of `dim` finite numbers with `low < high` everywhere.
    names : `dim` different names, or None for `"0"`, `"1"`, ...
    spacing : the distance of allowed values, which are counted from 0: one number, or one for each
        coordinate in their order or by name. None or 0: any value is allowed.
    ending : what allowed values end in, in the same ways: values are `ending + k * spacing`, with
        a spacing of 1 unless it is given; `0 <= ending < spacing`.

    Allowed values are exact decimals: 3.15, and not 3.1500000000000004. `nearest` and `allows`
    know them. What was done may lie anywhere in the box, so `point` takes any value of it.

    >>> box = Box([1.0, 1.0], [9.0, 5.0], names=["price", "fee"])
    >>> box.point({"fee": 2, "price": 3})
    array([3., 2.])
    >>> box.to_unit([3.0, 2.0])
    array([0.25, 0.25])
    >>> box.point([3.0, 7.0])
    Traceback (most recent call last):
    continuarm.errors.InputError: `1.0 <= fee <= 5.0` must hold, but got 7.0
    >>> prices = Box([1.0, 1.0], [9.0, 5.0], names=["price", "fee"], ending={"price": 0.99})
    >>> prices.nearest([3.2, 2.7182])
    array([2.99  , 2.7182])
    """

    __slots__ = ("ending", "high", "low", "named", "names", "spacing")

    low: Array
    high: Array
    names: tuple[str, ...]
    named: bool
    spacing: tuple[float, ...]  # 0: any value
    ending: tuple[float, ...]

    def __init__(
        self,
        low: ArrayLike | Mapping[str, float],
        high: ArrayLike | Mapping[str, float],
        names: Sequence[str] | None = None,
        spacing: PerCoordinate = None,
        ending: PerCoordinate = None,
    ) -> None:
        lows, highs = _bounds(low, names), _bounds(high, names)
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
        self._space(spacing, ending)

    def _space(self, spacing: PerCoordinate, ending: PerCoordinate) -> None:
        steps = spacings_of(spacing, self.names, self.named)
        ends = endings_of(ending, self.names, self.named)
        for j, end in enumerate(ends):
            if end is not None:
                steps[j] = steps[j] or 1.0
                if not end < steps[j]:
                    raise SettingsError(
                        f"`ending < spacing` must hold, but got ending={end}, spacing={steps[j]}"
                    )
        object.__setattr__(self, "spacing", tuple(steps))
        object.__setattr__(self, "ending", tuple(end or 0.0 for end in ends))
        self.values()

    @classmethod
    def unit(cls, dim: int) -> "Box":
        """The unit cube of `dim` dimensions."""
        dim = whole("dim", dim, 0)
        return cls(np.zeros(dim), np.ones(dim))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Box cannot be changed, but `{name}` was assigned")

    def __getstate__(self) -> Any:
        """What `Box(*state)` is made of; spacing and ending only where there is one."""
        edges = self.low.tolist(), self.high.tolist(), list(self.names) if self.named else None
        if not self.spaced:
            return edges
        ends = [e if s else None for s, e in zip(self.spacing, self.ending, strict=True)]
        return *edges, list(self.spacing), ends

    def __setstate__(self, state: Any) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        return type(other) is Box and self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash((self.low.tobytes(), self.high.tobytes(), self.names, self.spacing))

    def __repr__(self) -> str:
        parts = [str(self.low.tolist()), str(self.high.tolist())]
        if self.named:
            parts.append(f"names={list(self.names)}")
        if self.spaced:
            parts.append(f"spacing={list(self.spacing)}")
        if any(self.ending):
            _, _, _, _, ends = self.__getstate__()
            parts.append(f"ending={ends}")
        return f"Box({', '.join(parts)})"

    def same_edges(self, other: "Box") -> bool:
        """Whether another box has the same edges, whatever its names."""
        return np.array_equal(self.low, other.low) and np.array_equal(self.high, other.high)

    @property
    def spaced(self) -> bool:
        """Whether only some values of a coordinate are allowed."""
        return any(self.spacing)

    def values(self) -> list[Values | None]:
        """The allowed values of each coordinate; None: any."""
        coordinates = zip(self.names, self.low, self.high, self.spacing, self.ending, strict=True)
        return [
            values_of(name, float(low), float(high), step, end) if step else None
            for name, low, high, step, end in coordinates
        ]

    def nearest(self, value: ArrayLike | Mapping[str, float]) -> Array:
        """The allowed value nearest to one that may lie anywhere."""
        point = np.clip(self.array(value), self.low, self.high)
        if np.isnan(point).any():
            raise InputError(f"numbers are needed for {self._label()}, but got {value!r}")
        for j, values in enumerate(self.values()):
            if values is not None:
                point[j] = values.nearest(float(point[j]))
        return point

    def allows(self, value: ArrayLike | Mapping[str, float]) -> bool:
        """Whether a value lies in the box and is allowed."""
        point = self.array(value)
        inside = (self.low <= point) & (point <= self.high)
        return bool(inside.all() and (self.nearest(point) == point).all())

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
        """A value given as sequence or array, or by name, as a new array."""
        listed = self._listed(value) if type(value) is dict else value
        if isinstance(listed, list) and all(type(one) in (float, int) for one in listed):
            try:
                point = np.array(listed)
                if point.dtype is FLOAT and point.shape == self.low.shape:
                    return point  # as almost always
            except (TypeError, ValueError, OverflowError):
                pass
        names = names_of(value)
        point = self._reals(value if names is None else self._columns(value, names))
        if names is not None and point.ndim == 2:
            point = _only_row(point)
        if point.shape != self.low.shape:
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

    def arrays(self, values: ArrayLike | Mapping[str, ArrayLike]) -> Array:
        """Values as a new array `(n, dim)`; columns, or each value, may be given by name."""
        names = names_of(values)
        if names is not None:
            columns = [self._reals(column) for column in self._columns(values, names)]
            if any(column.ndim != 1 or len(column) != len(columns[0]) for column in columns):
                raise InputError(f"columns of one length are needed, but got {values!r}")
            return np.array(columns).T.copy().reshape(-1, self.dim)
        if isinstance(values, Sequence) and len(values) and names_of(values[0]) is not None:
            return np.array([self.array(value) for value in values])
        points = np.ascontiguousarray(self._reals(values))
        if points.shape == (0,):
            return np.empty((0, self.dim))
        if points.ndim != 2 or points.shape[1] != self.dim:
            raise InputError(f"the shape must be (n, {self.dim}), but got {points.shape}")
        return points

    def points(self, values: ArrayLike | Mapping[str, ArrayLike]) -> Array:
        """The same, refused when a point lies outside the box."""
        points = self.arrays(values)
        inside = (self.low <= points) & (points <= self.high)
        if not inside.all():
            t, i = np.unravel_index(int(np.argmin(inside)), inside.shape)
            self.refuse(points[t], int(i))
        return points

    def refuse(self, point: Array, dimension: int) -> None:
        """Raise the error for a point that is outside in this dimension."""
        low, high = float(self.low[dimension]), float(self.high[dimension])
        name = shortened(self.names[dimension]) if self.named else f"value {dimension}"
        raise InputError(f"`{low} <= {name} <= {high}` must hold, but got {point[dimension]}")

    def to_unit(self, points: ArrayLike) -> Array:
        """Points of the box, `(dim,)` or `(n, dim)`, scaled to the unit cube."""
        return np.asarray((np.asarray(points, np.float64) - self.low) / self.span)

    def from_unit(self, units: ArrayLike) -> Array:
        """Points of the unit cube, `(dim,)` or `(n, dim)`, scaled to the box."""
        scaled = np.asarray(units, np.float64) * self.span
        scaled += self.low
        np.maximum(scaled, self.low, out=scaled)
        np.minimum(scaled, self.high, out=scaled)
        return scaled

    def edge_from_unit(self, units: ArrayLike) -> Array:
        """As `from_unit`, and 1 is the upper edge of the box to the last bit.

        >>> box = Box([0.2], [0.9])
        >>> box.from_unit([1.0]) == box.high, box.edge_from_unit([1.0]) == box.high
        (array([False]), array([ True]))
        """
        return np.where(np.asarray(units) == 1.0, self.high, self.from_unit(units))

    def _listed(self, value: dict[str, Any]) -> Any:
        """What a dictionary has for the names, in their order, if it has just these."""
        try:
            found = [value[name] for name in self.names]
        except KeyError:
            return value
        return found if self.named and len(found) == len(value) else value

    def _columns(self, value: Any, names: Sequence[Any]) -> list[Any]:
        if not self.named and self.dim:
            raise InputError(f"values by name need a Box with names, but got {among(names)}")
        return by_name(value, names, self.names)

    def _reals(self, value: Any) -> Array:
        found = reals(value)
        if found is None:
            raise InputError(f"numbers are needed for {self._label()}, but got {value!r}")
        return found

    def _label(self) -> str:
        return among(self.names) if self.named else f"a box of {self.dim} dimensions"


def _only_row(columns: Array) -> Array:
    """The row of a table that has one."""
    if columns.shape[1] != 1:
        raise InputError(
            f"a table of one row is needed, but got {columns.shape[1]} rows: `ask_many` and "
            "`recommend_many` take several"
        )
    return columns[:, 0].copy()


def _bounds(value: Any, names: Any) -> Array:
    given = names_of(value)
    if given is not None:
        try:
            value = by_name(value, given, [] if names is None else names)
        except InputError as error:
            raise SettingsError(f"bounds by name need the names of the box: {error}") from None
    bounds = reals(value)
    if bounds is None:
        raise SettingsError(f"the bounds of a box must be numbers, but got {value!r}")
    if bounds.ndim != 1:
        raise SettingsError(f"the bounds of a box must be 1-D, but got shape {bounds.shape}")
    return bounds + 0.0  # -0 would be another box


def _names(names: Any, dim: int) -> tuple[str, ...]:
    if names is None:
        return tuple(str(i) for i in range(dim))
    if not isinstance(names, Sequence) or isinstance(names, str):
        raise SettingsError(f"`names` must be a sequence of strings, but got {names!r}")
    if not all(isinstance(name, str) for name in names):
        raise SettingsError(f"`names` must be a sequence of strings, but got {names!r}")
    if len(names) != dim or len(set(names)) != dim:
        raise SettingsError(f"`names` must be {dim} different names, but got {among(names)}")
    return tuple(names)
