"""View: what was known when a decision was made, as numbers that an event can keep."""

import math
from typing import NamedTuple

import numpy as np

from continuarm.core.compiling import Array
from continuarm.core.draws import Key
from continuarm.core.learners import protocol as learner
from continuarm.core.learners.protocol import VIEWED, size
from continuarm.core.model import Limits, Model
from continuarm.core.state import TOLD
from continuarm.live import events

__all__ = ["HOW", "View", "is_affordable", "sizes", "viewed"]

MOST = 2**20  # operations, about a millisecond, that an `ask` may take longer to be explained
HOW = {
    learner.PLAIN: events.OWN_RULE,
    learner.EARLY: events.EARLY,
    learner.DRAWN: events.DRAWN,
    learner.UNIFORM: events.UNIFORM,
}


class View(NamedTuple):
    """What was known about a decision, in units.

    payoffs : that its bin had learned.
    low, high : the edges of the bin.
    surface : `(4, dy)`, or None where there is none: where it is highest, the standard errors of
        that (below 0: not known), what one more unit brings at the decision, and its errors.
    """

    payoffs: int
    low: Array
    high: Array
    surface: Array | None

    @classmethod
    def of(cls, numbers: Array, dx: int, dy: int) -> "View":
        """The view in an array of `viewed`."""
        edges, rest = numbers[1 : 1 + 2 * dx].reshape(2, dx), numbers[1 + 2 * dx :]
        surface = rest.reshape(4, dy) if len(rest) else None
        return cls(int(numbers[0]), edges[0], edges[1], surface)


def viewed(
    model: Model, context: Array, limits: Limits, value: Array, key: Key, draw: int
) -> tuple[int, Array]:
    """How a decision came about, and a view in one array."""
    edges, surface = sizes(model.dx, model.dy)
    numbers = np.zeros(surface)
    row, made, how = model.view(context, limits, value, numbers[1:], key, draw)
    numbers[0] = model.state.rows[row, TOLD] if made else 0.0
    if how not in VIEWED or not _are_finite(numbers):
        numbers = numbers[:edges].copy()
    return how, numbers


def _are_finite(numbers: Array) -> bool:
    """Whether all are; a sum of squares is quicker to find, and seldom overflows."""
    return math.isfinite(numbers.dot(numbers)) or bool(np.isfinite(numbers).all())


def sizes(dx: int, dy: int) -> tuple[int, int]:
    """How many numbers a view has, without a surface and with it."""
    return 1 + 2 * dx, 1 + 2 * dx + 4 * dy


def is_affordable(model: Model) -> bool:
    """Whether a view is quick to make, beside a decision."""
    return bool(model.dy * size(model.lcfg) ** 2 <= MOST)
