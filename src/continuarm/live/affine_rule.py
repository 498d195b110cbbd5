"""AffineRule: a decision that is affine in the context, in the users' units."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from continuarm.box import Box
from continuarm.checks import among, quoted
from continuarm.core.compiling import Array
from continuarm.errors import InputError, SettingsError
from continuarm.numbers import by_name, names_of, real, reals

__all__ = ["AffineRule"]

ByContext = ArrayLike | Mapping[str, Mapping[str, float]]


class AffineRule:
    """The rule `decision = constant + by_context · context`, clipped into the decision box.

    Parameters
    ----------
    constant : a decision for the context 0, by order or by name; it may lie outside the box.
    by_context : what one unit of each context adds: a matrix with a row for each dimension of the
        decision, or a mapping by names, in which what is missing is 0. Default: nothing.

    >>> rule = AffineRule({"price": 2.0, "fee": 1.0}, {"price": {"age": 0.03}})
    >>> rule
    AffineRule({'price': 2.0, 'fee': 1.0}, {'price': {'age': 0.03}})
    >>> rule == AffineRule({"fee": 1, "price": 2}, {"price": {"age": 0.03}})
    True
    """

    __slots__ = ("by_context", "constant")

    constant: Any
    by_context: Any

    def __init__(self, constant: Any, by_context: ByContext | None = None) -> None:
        object.__setattr__(self, "constant", _constant(constant))
        object.__setattr__(self, "by_context", _by_context(by_context))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an AffineRule cannot be changed, but `{name}` was assigned")

    def __reduce__(self) -> tuple[Any, tuple[Any, Any]]:
        return AffineRule, (_plain(self.constant), _plain(self.by_context))

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, AffineRule) and self.constant == other.constant
        return same and self.by_context == other.by_context  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.constant)))

    def __repr__(self) -> str:
        slopes = "" if self.by_context is None else f", {_plain(self.by_context)!r}"
        return f"AffineRule({_plain(self.constant)!r}{slopes})"

    @classmethod
    def of(cls, constant: Array, slopes: Array, context: Box, decision: Box) -> "AffineRule":
        """The rule of numbers in the order of the boxes; by name, where both have names."""
        names, rows = decision.names, slopes.tolist()
        first = constant.tolist()
        given = dict(zip(names, first, strict=True)) if decision.named else first
        if not slopes.any():
            return cls(given)
        if not (decision.named and context.named):
            return cls(given, rows)
        by_names = (dict(zip(context.names, row, strict=True)) for row in rows)
        found = {
            name: {other: slope for other, slope in row.items() if slope != 0.0}
            for name, row in zip(names, by_names, strict=True)
        }
        return cls(given, {name: row for name, row in found.items() if row})

    def numbers(self, context: Box, decision: Box) -> tuple[Array, Array]:
        """Constant and slopes in the order of these boxes."""
        try:
            constant = decision.array(_plain(self.constant))
        except InputError as error:
            raise SettingsError(f"the constant of a rule must be a decision: {error}") from None
        slopes = self._slopes(context, decision)
        farthest = np.maximum(np.abs(context.low), np.abs(context.high))
        with np.errstate(over="ignore"):
            finite = np.isfinite(np.abs(constant) + np.abs(slopes) @ farthest).all()
        if not finite:
            raise SettingsError(f"a rule must be finite for every context, but got {self!r}")
        return constant, slopes

    def _slopes(self, context: Box, decision: Box) -> Array:
        slopes, given = np.zeros((decision.dim, context.dim)), self.by_context
        if given is None:
            return slopes
        if not isinstance(given, Mapping):
            if np.shape(given) != slopes.shape:
                raise SettingsError(
                    f"the shape of `by_context` must be {slopes.shape}, but got {np.shape(given)}"
                )
            return np.array(given, np.float64).reshape(slopes.shape)
        for name, row in given.items():
            j = _index("decision", name, decision)
            for other, slope in row.items():
                slopes[j, _index("context", other, context)] = slope
        return slopes


def _index(what: str, name: str, box: Box) -> int:
    if not box.named:
        raise SettingsError(f"`by_context` by name needs a {what} with names, but got {name!r}")
    if name not in box.names:
        wanted = among(box.names)
        raise SettingsError(
            f"a {what} of `by_context` must be one of {wanted}, but got {quoted(name)}"
        )
    return box.names.index(name)


def _constant(given: Any) -> Any:
    names = names_of(given)
    if names is not None:
        return _row("constant", dict(zip(names, by_name(given, names, names), strict=True)))
    numbers = reals(given)
    if numbers is None or numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise SettingsError(f"`constant` must be a decision of finite numbers, but got {given!r}")
    return tuple(numbers.tolist())


def _by_context(given: Any) -> Any:
    if given is None:
        return None
    if isinstance(given, Mapping):
        if not all(isinstance(row, Mapping) for row in given.values()):
            raise SettingsError(
                f"`by_context` must be such as {{'price': {{'age': 0.03}}}}, but got {given!r}"
            )
        rows = {name: _row("by_context", row) for name, row in given.items()}
        return MappingProxyType({_name("by_context", name): row for name, row in rows.items()})
    numbers = reals(given)
    if numbers is None or numbers.ndim != 2 or not np.isfinite(numbers).all():
        raise SettingsError(f"`by_context` must be a matrix of finite numbers, but got {given!r}")
    return tuple(map(tuple, numbers.tolist()))


def _row(option: str, given: Mapping[Any, Any]) -> MappingProxyType[str, float]:
    return MappingProxyType(
        {_name(option, name): _number(option, value) for name, value in given.items()}
    )


def _name(option: str, name: Any) -> str:
    if not isinstance(name, str):
        raise SettingsError(f"the names of `{option}` must be text, but got {name!r}")
    return name


def _number(option: str, value: Any) -> float:
    number = real(value)
    if number is None:
        raise SettingsError(f"`{option}` must hold finite numbers, but got {value!r}")
    return number


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, tuple) else value
