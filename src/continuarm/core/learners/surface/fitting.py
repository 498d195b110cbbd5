"""Whether rows that were read could be what a response surface has learned."""

import numpy as np

from continuarm.core.compiling import Array
from continuarm.core.learners.protocol import Read
from continuarm.core.learners.surface import layout
from continuarm.core.learners.surface.layout import (
    LARGEST_PAYOFF,
    ResponseSurfaceConfig,
    size,
    triangle,
)
from continuarm.core.learners.surface.noise import LARGEST_FOURTHS

__all__ = ["fits"]

FAR, MOST = 1e150, 2.0**52  # numbers in a triangle, and what is counted
LIGHTEST, HEAVIEST = 1e-3, 1e30  # weights begin at 1, and grow


def fits(cfg: ResponseSurfaceConfig, read: Read) -> bool:
    """Numbers so far from overflowing that what is computed from them is finite."""
    p, k, rows = int(size(cfg)), int(triangle(cfg)), read.rows
    pivots = k + np.cumsum([0, *range(p + 1, 2, -1)])
    lowest, highest = (
        rows[:, layout.TRIED : layout.TRIED + cfg.dy],
        rows[:, layout.TRIED + cfg.dy : k],
    )
    weights = rows[:, layout.WEIGHT]
    counts, known = rows[:, [layout.SEEN, layout.KNOWN, layout.AGE]], rows[:, layout.KNOWN] > 0.0
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        variance = np.where(
            rows[:, layout.SQUARES] > 0.0, rows[:, layout.SQUARES] / rows[:, layout.DEGREES], 0.0
        )
    return bool(
        (abs(rows[:, k:]) <= FAR).all()
        and (abs(rows[:, layout.REFERENCE]) <= LARGEST_PAYOFF).all()
        and ((counts >= 0.0) & (counts < MOST)).all()
        and (rows[:, layout.SEEN] <= rows[:, layout.KNOWN]).all()
        and (rows[:, [layout.SEEN, layout.KNOWN]] % 1 == 0.0).all()
        and ((weights >= LIGHTEST) & (weights <= HEAVIEST)).all()
        and (
            (rows[:, [layout.SQUARES, layout.DEGREES]] >= 0.0)
            & (rows[:, [layout.SQUARES, layout.DEGREES]] <= FAR**1.5)
        ).all()
        and (variance <= FAR**1.5).all()
        and (rows[:, pivots] > 0.0).all()
        and ((lowest >= 0.0) & (lowest <= 1.0) & (highest >= 0.0) & (highest <= 1.0)).all()
        and ((lowest <= highest).all(axis=1) | ~known).all()
        and _is_steady(rows)
    )


def _is_steady(rows: Array) -> bool:
    numbers = rows[:, [layout.RUN, layout.FORGOTTEN, layout.OFFSET, layout.LEAD]]
    counted = rows[:, [layout.FORGOTTEN, layout.SURGE, layout.SINCE, layout.BELIEVED]]
    loudest = rows[:, layout.LOUDEST]
    fourths, usual = rows[:, layout.FOURTHS], rows[:, layout.USUAL]
    return bool(
        (abs(numbers) <= FAR).all()
        and ((counted >= 0.0) & (counted <= FAR)).all()
        and ((loudest >= 0.0) & (loudest <= FAR**1.5)).all()
        and ((usual >= 0.0) & (usual <= 1.0)).all()
        and ((fourths >= 0.0) & (fourths <= LARGEST_FOURTHS)).all()
        and np.isin(rows[:, layout.FOLLOWS], (0.0, 1.0)).all()
    )
