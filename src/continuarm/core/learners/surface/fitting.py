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
    k, rows = int(triangle(cfg)), read.rows
    if not _terms_fit(cfg, rows):
        return False
    lowest, highest = (
        rows[:, layout.TRIED : layout.TRIED + cfg.dy],
        rows[:, layout.TRIED + cfg.dy : layout.TRIED + 2 * cfg.dy],
    )
    weights = rows[:, layout.WEIGHT]
    counts, known = rows[:, [layout.SEEN, layout.KNOWN, layout.AGE]], rows[:, layout.KNOWN] > 0.0
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        variance = np.where(
            rows[:, layout.SQUARES] > 0.0, rows[:, layout.SQUARES] / rows[:, layout.DEGREES], 0.0
        )
    return bool(
        (abs(rows[:, k : int(layout.beside(cfg))]) <= FAR).all()
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
        and all(_pivots_fit(cfg, row) for row in rows)
        and ((lowest >= 0.0) & (lowest <= 1.0) & (highest >= 0.0) & (highest <= 1.0)).all()
        and ((lowest <= highest).all(axis=1) | ~known).all()
        and _is_steady(rows)
    )


def _terms_fit(cfg: ResponseSurfaceConfig, rows: Array) -> bool:
    """The degrees are ones that terms can have entered to, and make the size that is noted."""
    begin, middle = int(layout.slope_degree(cfg, 0)), int(layout.baseline_degree(cfg, 0))
    slopes, squares = rows[:, begin:middle], rows[:, middle : middle + cfg.dx]
    if not np.isfinite(rows[:, begin : middle + cfg.dx]).all():
        return False
    grown, deeper = (slopes - layout.LINEAR).sum(axis=1), (squares - layout.SQUARE).sum(axis=1)
    sizes = int(size(cfg)) + cfg.dy * grown + deeper
    return bool(
        ((slopes % 1 == 0.0) & (slopes >= layout.LINEAR) & (slopes <= cfg.degree)).all()
        and ((squares % 1 == 0.0) & (squares >= layout.SQUARE) & (squares <= 2 * slopes)).all()
        and (rows[:, layout.SIZE] == sizes).all()
        and (sizes <= cfg.most).all()
        and (rows[:, layout.FIRST] == int(layout.baseline(cfg)) + deeper).all()
        and np.isin(rows[:, layout.BEGUN], (0.0, 1.0)).all()
    )


def _pivots_fit(cfg: ResponseSurfaceConfig, row: Array) -> bool:
    """The diagonal of the triangle is positive, and so are those of the candidates."""
    p, k = int(row[layout.SIZE]), int(triangle(cfg))
    found = k + np.cumsum([0, *range(p + 1, 2, -1)])
    if not (row[found] > 0.0).all():
        return False
    if row[layout.BEGUN] == 0.0:
        return True
    if not layout.is_growing(cfg):
        return False
    slopes = int(layout.beside_slopes(cfg))
    for i in range(cfg.dx):
        if not all(_noise_fits(row, int(layout.slot(cfg, i, k))) for k in range(layout.KINDS)):
            return False
        for kind, n in ((layout.NEXT_TWO, slopes), (layout.OF_BASELINE, layout.TWO)):
            begin = int(layout.its_triangle(cfg, i, kind))
            pivots = begin + np.cumsum([0, *range(n + 1, 2, -1)])
            own = row[begin : begin + n * (n + 3) // 2]
            if not (row[pivots] > 0.0).all() or not (abs(own) <= FAR).all():
                return False
    return bool((abs(row[int(layout.cross(cfg, 0)) :]) <= FAR).all())


def _noise_fits(row: Array, k: int) -> bool:
    """A candidate's lead and its noise."""
    noise = row[[k + layout.ITS_SQUARES, k + layout.ITS_DEGREES]]
    return bool(
        ((noise >= 0.0) & (noise <= FAR**1.5)).all()
        and abs(row[k + layout.ITS_LEAD]) <= FAR
        and (noise[0] == 0.0 or noise[0] <= FAR**1.5 * noise[1])
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
