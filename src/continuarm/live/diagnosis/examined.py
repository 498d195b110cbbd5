"""What the checks look at: gathered while nothing else happens, judged afterwards."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from continuarm.box import Box
from continuarm.core import notes
from continuarm.core.compiling import Array
from continuarm.core.learners import protocol as learner
from continuarm.core.model import ModelBin
from continuarm.core.partitions import protocol as partition
from continuarm.core.request import Region, Request
from continuarm.core.state import HEAD, SERIAL
from continuarm.live.life import Life
from continuarm.live.limits import at_ends
from continuarm.live.open_decisions import BIN
from continuarm.words import box_in_words

__all__ = ["Examined", "ExaminedBin", "examined", "named", "widest"]

MOST_LOOKED_AT = 20  # bins in which a context is varied
POINTS = (0.1, 0.3, 0.5, 0.7, 0.9)  # along its side
FIRST_PAYOFFS = 3  # or stencils: what a learner needs that does not say


class ExaminedBin(NamedTuple):
    """A bin, and what its learner says of it."""

    id: int
    where: str  # in words
    low: Array  # on the unit cube
    high: Array
    best: Array  # in its middle, on the unit cube
    asked: int
    told: int
    open: int
    numbers: dict[str, Any]  # of `examine`
    held: Array  # coordinates that are as far from the reference as `max_move` allows

    @property
    def is_fitted(self) -> bool:
        """Whether its learner has fitted a surface."""
        return "largest_bend" in self.numbers

    @property
    def needs(self) -> float:
        """Payoffs, or stencils, without which nothing can be learned."""
        return float(self.numbers.get("needs", FIRST_PAYOFFS))

    @property
    def has(self) -> float:
        """How many it has, inherited ones included."""
        return float(self.numbers.get("has", self.numbers["observations"]))


class Examined(NamedTuple):
    """A policy at one moment."""

    context: Box
    decision: Box
    start: Array  # what is done today in the middle of each bin, on the unit cube
    reach: Array  # on the unit cube; 0: anywhere
    max_move: Array | None  # in units
    bins: list[ExaminedBin]
    asked: int
    unmade: int  # decisions of bins that were never told anything, and that wait no more
    open: int
    notes: Array

    @property
    def payoffs(self) -> int:
        """Payoffs learned."""
        return int(self.notes[notes.PAYOFFS])

    @property
    def fitted(self) -> list[ExaminedBin]:
        """The bins whose learner has fitted a surface."""
        return [one for one in self.bins if one.is_fitted]

    def share(self, bins: Sequence[ExaminedBin]) -> float:
        """How much of what all bins were told was told to these."""
        return sum(one.told for one in bins) / max(sum(one.told for one in self.bins), 1)

    def where(self, bins: Sequence[ExaminedBin]) -> str:
        """The bins that something concerns, in words: the one with most payoffs, and how many."""
        if len(bins) == len(self.bins):
            return "overall"
        others = len(bins) - 1
        more = f", and {others} other bin{'s' if others > 1 else ''}" if others else ""
        return max(bins, key=lambda one: one.told).where + more

    def varied(self) -> Array:
        """Contexts that vary one coordinate at a time, `(dx, bins, points, dx)`, in units."""
        dx = self.context.dim
        middles = [0.5 * (one.low + one.high) for one in self.largest()]
        points = np.tile(np.array(middles)[None, :, None, :], (dx, 1, len(POINTS), 1))
        for i in range(dx):
            points[i, :, :, i] = POINTS
        return self.context.from_unit(points)

    def largest(self) -> list[ExaminedBin]:
        """The bins with most payoffs."""
        return sorted(self.fitted, key=lambda one: -one.told)[:MOST_LOOKED_AT]


def examined(life: Life) -> Examined:
    """A life as it is now; nothing in it changes later."""
    beginning, opened, found = life.beginning, life.open, life.model
    context, decision = beginning.context, beginning.decision
    waiting = Counter(one[BIN] for one in opened.open.values())
    bins, starts = [], []
    for one, numbers in _of_model(life):
        low, high = (context.edge_from_unit(edge) for edge in (one.low, one.high))
        counts = life.asked_of.get(one.serial, 0), one.told, waiting[one.serial]
        where, best = box_in_words(low, high, context), decision.to_unit(one.best)
        edges, held = (one.low, one.high), _held(life, 0.5 * (low + high))
        bins.append(ExaminedBin(one.serial, where, *edges, best, *counts, numbers, held))
        starts.append(life.start_for(0.5 * (low + high)))
    return Examined(
        context,
        decision,
        np.array(starts).reshape(len(starts), decision.dim),
        life.limits.reach.copy(),
        beginning.max_move,
        bins,
        opened.asked,
        life.asked_of.get(0, 0) - waiting[0],
        len(opened.open),
        found.state.notes.copy(),
    )


def _held(life: Life, context: Array) -> Array:
    """Whether `max_move` keeps each coordinate of the best decision from going further."""
    beginning, own = life.beginning, life.incumbent.own
    if beginning.max_move is None:
        return np.zeros(beginning.decision.dim, bool)
    start = None if own is None else own.at(context)
    near = life.near(context, None, start)
    assert near is not None  # there is a reference
    starts = None if start is None else start[None, :]
    [value] = life.recommend(context[None, :], None, starts)
    return np.asarray(at_ends(beginning.decision, near, value).any(axis=0))


def _of_model(life: Life) -> Iterator[tuple[ModelBin, dict[str, Any]]]:
    """Each bin, with what its learner says of its assumptions in the bin's middle."""
    model, limits, at = life.model, life.limits, life.start_at or (lambda x: life.limits.start)
    boxes, rows = partition.boxes(model.pcfg, model.state.nodes), model.state.rows
    places = {int(rows[row, SERIAL]): row for row, _, _ in boxes}
    region = Region(limits.low, limits.high, limits.whole)
    for one in model.bins(limits, life.start_at):
        start, u = at(0.5 * (one.low + one.high)), np.zeros(model.dx)
        request = Request(u, region, start, limits.reach, np.zeros(0))
        known = rows[places[one.serial], HEAD:].copy()
        centre = life.beginning.decision.to_unit(one.best)
        yield one, learner.examine(model.lcfg, known, request, centre)


def named(box: Box, i: int) -> str:
    """What a coordinate is called."""
    return box.names[i] if box.named else f"dimension {box.names[i]}"


def widest(values: Array) -> Array:
    """The range of decisions along a coordinate that was varied, `(dx, bins, dy)`."""
    return np.asarray(values.max(axis=2) - values.min(axis=2))
