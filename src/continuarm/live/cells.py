"""Cells: what was learned, in parts of one or two contexts that somebody chooses.

They are cut for who looks on. Nothing is learned by cell, so they are for policies without bins,
too, and each is a segment that can be frozen.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from continuarm import checks
from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.errors import InputError
from continuarm.live.segments import Between, Segment
from continuarm.live.shell import Shell
from continuarm.plots.subject import Values, dimension, filled, names_of

__all__ = ["MOST_PARTS", "PARTS", "Cell", "cells_of", "columns_of"]

PARTS, MOST_PARTS = 8, 64  # of each context
LOOKED_AT = 9  # values of a context, to see how far it moves the best decision


class Cell(NamedTuple):
    """A part of the contexts, and what is known in its middle.

    where : the lowest and the highest value by name, as `freeze` takes them; of other contexts
        any value.
    context : its middle; the others are where they are held.
    best, today : the best decision known there, and what the incumbent does.
    expected, expected_error : the payoff of `best`, and its standard error; None: not known.
    gain, gain_error : by how much more `best` pays than `today`.
    peak, peak_error : where payoffs put the best decision, and its standard errors; an error is
        None where they do not show it yet.
    frozen : whether its middle is frozen.
    """

    where: dict[str, Between]
    context: Array
    best: Array
    today: Array
    expected: float | None
    expected_error: float | None
    gain: float | None
    gain_error: float | None
    peak: list[float] | None
    peak_error: list[float | None] | None
    frozen: bool

    def in_words(self, context: Box) -> str:
        """Its contexts."""
        return Segment(self.where).in_words(context) if self.where else "all contexts"

    def is_shown(self) -> bool:
        """Whether payoffs show yet where the best lies, in every coordinate."""
        return self.peak_error is not None and None not in self.peak_error


def cells_of(
    policy: Shell, along: str | Sequence[str] | None, parts: int, at: Values
) -> Iterator[Cell]:
    """The cells one after the other, along the last context first."""
    me: Any = policy
    context, parts = policy.context, checks.whole("parts", parts, 1, MOST_PARTS)
    point = filled(context, at, context.centre)
    shown = _widest(me, point) if along is None else columns_of(context, along)
    edges = [np.linspace(context.low[i], context.high[i], parts + 1).tolist() for i in shown]
    for numbers in product(range(parts), repeat=len(shown)):
        where = dict[str, Between]()
        for i, ends, k in zip(shown, edges, numbers, strict=True):
            where[context.names[i]] = Between(ends[k], ends[k + 1])
            point[i] = 0.5 * (ends[k] + ends[k + 1])
        yield _cell(me, where, point.copy())


def _widest(policy: Any, point: Array) -> list[int]:
    """The two contexts along which the best decision moves most through a point."""
    context, moves = policy.context, []
    for i in range(context.dim):
        points = np.tile(point, (LOOKED_AT, 1))
        points[:, i] = np.linspace(context.low[i], context.high[i], LOOKED_AT)
        moves.append(
            float((np.ptp(policy.recommend_many(points), axis=0) / policy.decision.span).max())
        )
    order = sorted(range(context.dim), key=lambda i: -moves[i])
    return sorted(order[:2])


def columns_of(context: Box, along: str | Sequence[str]) -> list[int]:
    """The contexts of one or two names."""
    given = names_of(along) if isinstance(along, Sequence) else [along]
    found = [dimension(context, name, "context") for name in given]
    if not 1 <= len(found) <= 2 or len(set(found)) < len(found):
        raise InputError(f"cells lie along one or two different contexts, but got {along!r}")
    return found


def _cell(policy: Any, where: dict[str, Between], point: Array) -> Cell:
    known = policy.explain(point)
    best, today = np.array(known["centre"]), np.array(known["start"])
    paid = policy.expected(point, best[None, :])
    gained = policy.gate.alone(_gained, policy, point, best, today)
    if gained is None and paid is not None:
        instead = policy.expected(point, today[None, :])
        gained = float(paid[0, 0] - instead[0, 0]), None
    expected, gain = (None, None) if paid is None else paid[0].tolist(), gained or (None, None)
    return Cell(
        where=where,
        context=point,
        best=best,
        today=today,
        expected=expected[0],
        expected_error=expected[1],
        gain=gain[0],
        gain_error=gain[1],
        peak=known.get("peak"),
        peak_error=known.get("peak_error"),
        frozen=known["frozen"],
    )


def _gained(policy: Shell, point: Array, best: Array, today: Array) -> tuple[float, float] | None:
    """By how much more the best pays, and the standard error of that, if the learner knows."""
    life, (y, start) = policy.life, policy.decision.to_unit(np.array([best, today]))
    own = life.incumbent.own
    limits = life.limits_within(None, None if own is None else own.at(point))
    found = life.model.gains(point, limits, y[None, :], start)
    return None if found is None else (float(found[0, 0]), float(found[0, 1]))
