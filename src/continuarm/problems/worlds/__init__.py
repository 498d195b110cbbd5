"""The worlds that come with the package, by theme: each module ends in a table of its own."""

from continuarm.problems.entry import Entries
from continuarm.problems.worlds import (
    demand,
    dimensions,
    drawn,
    edges_and_jumps,
    logit,
    operations,
    paper,
    purchases,
    quadratics,
    randomness,
    shapes,
    shops,
    starts,
    street,
    wide,
)

__all__ = ["THEMES"]

THEMES: tuple[Entries, ...] = (
    paper.WORLDS,
    quadratics.WORLDS,
    demand.WORLDS,
    logit.WORLDS,
    purchases.WORLDS,
    operations.WORLDS,
    shapes.WORLDS,
    edges_and_jumps.WORLDS,
    dimensions.WORLDS,
    randomness.WORLDS,
    drawn.WORLDS,
    shops.WORLDS,
    street.WORLDS,
    starts.WORLDS,
    wide.WORLDS,
)
