"""Segments: contexts that are frozen together, by a condition on their names.

A condition says by name which values are meant. Each name has a rule; today a rule is an interval,
both ends included, in units of the box. What is not named may be anything.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from continuarm import checks
from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.errors import InputError
from continuarm.numbers import real, reals
from continuarm.words import label_of, listed, number_in_words

__all__ = ["MOST", "MOST_BYTES", "Between", "Edges", "Segment", "Where", "edges_of"]
__all__ += ["plain_where", "segment_of", "where_of"]

MOST = 100  # that are frozen at once
MOST_BYTES = 64 * 2**20  # of what was known in all states in which one was frozen
MOST_ASKED = 2**53
FIRST_DATE, LAST_DATE = 1e8, 2.5e11  # seconds since 1970; others are a clock of the caller's own


class Between(NamedTuple):
    """A rule: from the lowest to the highest value, both included."""

    low: float
    high: float


Where = Mapping[str, Sequence[float]]  # a rule for each name, as a caller gives it


class Segment(NamedTuple):
    """Contexts that are frozen: those in which each named value is as its rule says.

    where : the lowest and the highest value by name, both included, in units.
    asked : how many decisions had been asked for when it was frozen.
    at : when that was, in seconds; 0 where the policy has no clock.
    """

    where: dict[str, Between]
    asked: int = 0
    at: float = 0.0

    def plain(self) -> dict[str, Any]:
        """As numbers, strings and lists."""
        return {"where": plain_where(self.where), "asked": self.asked, "at": self.at}

    def in_words(self, context: Box) -> str:
        """Its condition.

        >>> box = Box([0, 0], [24, 2.5e5], names=["hour", "income"])
        >>> Segment({"hour": Between(18, 24), "income": Between(0, 2e4)}).in_words(box)
        'hour 18 to 24 and income 0 to 20,000'
        """
        return listed([_rule_in_words(name, rule, context) for name, rule in self.where.items()])

    def since(self) -> str:
        """Since when it is frozen.

        >>> Segment({}, 4003).since(), Segment({}, 1, 1.7e9).since()
        ('since 4,003 decisions were asked', 'since 2023-11-14 22:13 UTC, after 1 decision')
        """
        decisions = f"{self.asked:,} decision{'' if self.asked == 1 else 's'}"
        if self.at == 0.0:
            return f"since {decisions} {'was' if self.asked == 1 else 'were'} asked"
        if FIRST_DATE < self.at < LAST_DATE:
            date = datetime.fromtimestamp(self.at, UTC)
            return f"since {date:%Y-%m-%d %H:%M} UTC, after {decisions}"
        return f"since second {self.at:g}, after {decisions}"


class Edges(NamedTuple):
    """The rules of all segments that are frozen, one after the other, as a context is compared.

    columns, low, high : which value of a context a rule is of, and from where to where it may be.
    first : the first rule of each segment.
    """

    columns: NDArray[np.int64]
    low: Array
    high: Array
    first: NDArray[np.int64]

    def first_of(self, point: Array) -> int | None:
        """The number of the first segment that has a context; None: no segment has it."""
        values = point[self.columns]
        fits = (self.low <= values) & (values <= self.high)
        holds = np.logical_and.reduceat(fits, self.first)
        found = int(holds.argmax())
        return found if holds[found] else None

    def each_of(self, points: Array) -> Iterator[NDArray[np.bool_]]:
        """For one segment after the other, which of the contexts `(n, dx)` it has."""
        ends = [*self.first.tolist(), len(self.columns)]
        for start, end in pairwise(ends):
            values = points[:, self.columns[start:end]]
            fits = (self.low[start:end] <= values) & (values <= self.high[start:end])
            yield np.logical_and.reduce(fits, axis=1)


def edges_of(segments: Sequence[Segment], context: Box) -> Edges | None:
    """The rules of segments; None: there are no segments."""
    if not segments:
        return None
    number = {name: i for i, name in enumerate(context.names)}
    rules = [rule for segment in segments for rule in segment.where.items()]
    sizes = [len(segment.where) for segment in segments]
    low, high = np.array([edges for _, edges in rules]).T.copy()
    columns = np.array([number[name] for name, _ in rules])
    return Edges(columns, low, high, np.cumsum([0, *sizes[:-1]]))


def plain_where(where: Mapping[str, Between]) -> dict[str, list[float]]:
    """A condition as lists by name."""
    return {name: list(rule) for name, rule in where.items()}


def where_of(given: Any, context: Box) -> dict[str, Between]:
    """A condition that somebody has given, in the order of the box and inside it.

    >>> where_of({"hour": (18, 30)}, Box([0], [24], names=["hour"]))
    {'hour': Between(low=18.0, high=24.0)}
    """
    if not isinstance(given, Mapping) or not given:
        raise InputError(
            "`segment` must say from where to where for some contexts, such as "
            f'{{"hour": (18, 24)}}, but got {given!r}'
        )
    for name in given:
        if name not in context.names:
            raise InputError(
                f"the names of `segment` must be among {checks.among(context.names)}, "
                f"but got {checks.quoted(name)}"
            )
    return {name: _rule_of(name, given[name], context) for name in context.names if name in given}


def segment_of(plain: Any, context: Box) -> Segment:
    """The segment that `plain` wrote."""
    if not isinstance(plain, dict) or set(plain) != {"where", "asked", "at"}:
        raise InputError(f"a segment has `where`, `asked` and `at`, but got {plain!r}")
    asked, at = checks.whole("asked", plain["asked"], 0, MOST_ASKED), real(plain["at"])
    if at is None:
        raise InputError(f"a segment is frozen at a time, but got {plain['at']!r}")
    return Segment(where_of(plain["where"], context), asked, at)


def _rule_of(name: str, given: Any, context: Box) -> Between:
    """The rule of one name: an interval, and what of it is in the box."""
    i, edges, label = context.names.index(name), reals(given), checks.shortened(name)
    if edges is None or edges.shape != (2,) or not -np.inf < edges[0] <= edges[1] < np.inf:
        raise InputError(
            f"`low <= high` must hold for {label} in `segment`, both finite, but got {given!r}"
        )
    low, high = float(context.low[i]), float(context.high[i])
    first, last = edges.tolist()
    if first > high or last < low:
        raise InputError(
            f"the interval of {label} in `segment` must meet its box, {low} to {high}, "
            f"but got {given!r}"
        )
    return Between(max(first, low) + 0.0, min(last, high) + 0.0)  # zeros have no sign


def _rule_in_words(name: str, rule: Between, context: Box) -> str:
    span = float(context.span[context.names.index(name)])
    label = f"{label_of(name, context)}{'' if context.named else ':'}"
    low, high = (number_in_words(end, span) for end in rule)
    return f"{label} {low}" if rule.low == rule.high else f"{label} {low} to {high}"
