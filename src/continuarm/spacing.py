"""The allowed values of a coordinate: exact decimals, counted by whole numbers."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from continuarm.checks import among
from continuarm.errors import SettingsError
from continuarm.numbers import names_of, real

__all__ = ["Values", "endings_of", "spacings_of", "values_of"]

MOST = 2**53  # whole numbers up to here are exact
MOST_DECIMALS = 22  # and so is 10 to this power


class Values(NamedTuple):
    """The values (first + k step)/ten for k = 0, ..., last.

    Where first, step and ten are whole numbers up to 2^53, each is the decimal, rounded once.
    """

    first: float
    step: float
    ten: float
    last: float

    def at(self, k: float) -> float:
        """The k-th value."""
        return (self.first + k * self.step) / self.ten

    def nearest(self, value: float) -> float:
        """The value that is nearest; of two, the higher one."""
        k = math.floor((value * self.ten - self.first) / self.step + 0.5)
        return self.at(min(max(float(k), 0.0), self.last))


def values_of(name: str, low: float, high: float, spacing: float, ending: float) -> Values:
    """The values ending + k spacing, k any whole number, between low and high."""
    ends = Fraction(repr(low)), Fraction(repr(high))
    step, origin = Fraction(repr(spacing)), Fraction(repr(ending))
    first, last = math.ceil((ends[0] - origin) / step), math.floor((ends[1] - origin) / step)
    if first > last:
        raise SettingsError(
            f"an allowed value must lie between {low} and {high}, but got none of {name} "
            f"with spacing={spacing}" + (f", ending={ending}" if ending else "")
        )
    if last - first >= MOST:
        raise SettingsError(
            f"at most 2**53 values of a coordinate can be counted, but got spacing={spacing} "
            f"for {name} between {low} and {high}"
        )
    decimals = max(_decimals(spacing), _decimals(ending))
    ten = 10**decimals
    largest = ten * max(abs(origin + first * step), abs(origin + last * step), step)
    if decimals <= MOST_DECIMALS and largest <= MOST:
        start = ten * (origin + first * step)
        return Values(float(start), float(ten * step), float(ten), float(last - first))
    return _between(Values(float(origin + first * step), spacing, 1.0, float(last - first)), high)


def _between(values: Values, high: float) -> Values:
    """Values that are no short decimals are rounded: the last one must not exceed the edge."""
    return values if values.at(values.last) <= high else values._replace(last=values.last - 1.0)


def _decimals(number: float) -> int:
    """Digits after the point of the shortest decimal that is this number."""
    exponent = Decimal(repr(number)).normalize().as_tuple().exponent
    return max(-int(exponent), 0)


def spacings_of(given: Any, names: Sequence[str], named: bool) -> list[float]:
    """A spacing for each coordinate; 0: any value."""
    each = _for_each("spacing", given, names, named)
    return [0.0 if one is None else _at_least_zero("spacing", one) for one in each]


def endings_of(given: Any, names: Sequence[str], named: bool) -> list[float | None]:
    """What the values of each coordinate end in; None: nothing is said."""
    each = _for_each("ending", given, names, named)
    return [None if one is None else _at_least_zero("ending", one) for one in each]


def _for_each(option: str, given: Any, names: Sequence[str], named: bool) -> list[Any]:
    """One for all coordinates, or one for each in their order or by name."""
    wanted = names_of(given)
    if wanted is not None:
        if not named or not set(wanted) <= set(names):
            known = among(names) if named else "those of a Box with names"
            raise SettingsError(
                f"the names of `{option}` must be among {known}, but got {among(wanted)}"
            )
        return [given[name] if name in wanted else None for name in names]
    if isinstance(given, str) or not hasattr(given, "__len__") or not hasattr(given, "__iter__"):
        return [given] * len(names)
    each = list(given)
    if len(each) != len(names):
        raise SettingsError(f"`{option}` must be one number, or {len(names)}, but got {len(each)}")
    return each


def _at_least_zero(option: str, given: Any) -> float:
    number = real(given)
    if number is None or number < 0.0:
        raise SettingsError(f"`0 <= {option}` must hold, a finite number, but got {given!r}")
    return number + 0.0
