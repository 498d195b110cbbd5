"""Whether a state that was read could be one that compiled code made.

Compiled code does not look at what it uses as an index, a length or a link. Everything of that
kind is looked at here, before it is trusted.
"""

from typing import Any

import numpy as np

from continuarm.core import state as layout
from continuarm.core.compiling import Array, in_python
from continuarm.core.learners import protocol as learner
from continuarm.core.learners.protocol import Read
from continuarm.core.numbered_bins import are_distinct
from continuarm.core.partitions import protocol as partition
from continuarm.core.request import ALONE, NOTHING
from continuarm.core.state import State

__all__ = ["MOST", "misfit"]

MOST = 2.0**52  # what is counted can be counted on
Seats = list[tuple[int, int]]


def misfit(pcfg: Any, lcfg: Any, state: State, seats: Seats) -> str | None:
    """What of a state does not fit a policy of these configurations; None: it fits.

    `seats` are the rows and tickets of its open decisions.
    """
    counts, nodes, rows, pool, _ = state
    wrong = _wrong_shapes(lcfg, state)
    if wrong is not None:
        return wrong
    used = int(counts[layout.ROWS_USED])
    free = chain(rows[:, layout.NODE], counts[layout.FREE_ROW], used)
    if free is None or len(free) != counts[layout.FREE_ROWS]:
        return "a chain of free rows"
    empty = chain(pool[:, 0], pool[0, 0], int(pool[0, 1])) if is_whole(pool[0, :2]) else None
    if empty is None or pool[0, 1] != len(pool):
        return "a chain of free stencils"
    busy = sorted(set(range(1, used)) - set(free))
    if not _heads_fit(counts, rows[1:used, : layout.HEAD]):
        return "heads of rows that could have been counted"
    if not partition.fits(pcfg, nodes, rows[:used, : layout.HEAD], busy):
        return "an index of its own bins"
    if not are_distinct(pcfg, state):
        return "bins with numbers of their own"
    if len(counts) > layout.COUNTS and not learner.stands_alone(lcfg):
        return "no frozen bins"
    if not all(_seat_fits(lcfg, state, set(free), *seat) for seat in seats):
        return "open decisions that have a place"
    known = sorted(set(busy) - set(partition.unmade(pcfg, nodes)))
    known = [0, *known] if counts[layout.TEMPLATE] == 1.0 else known
    is_bin = in_python(partition.code(pcfg).is_bin)
    asked = {k for k in busy if is_bin(pcfg, nodes, rows, k)}
    if not learner.fits(
        lcfg, Read(rows[known, layout.HEAD :], known, asked, pool, set(empty), seats)
    ):
        return "what its learner could have learned"
    return None


def _wrong_shapes(lcfg: Any, state: State) -> str | None:
    counts, nodes, rows, pool, _ = state
    if any(array.dtype != np.float64 for array in state):
        return "arrays of float64"
    if any(np.isnan(array).any() for array in (counts, rows, pool)):
        return "numbers"
    counted = counts.ndim == 1 and len(counts) >= layout.COUNTS
    widths = counted, rows.ndim == nodes.ndim == pool.ndim == 2
    if not all(widths) or rows.shape[1] != layout.HEAD + learner.width(lcfg) or not len(nodes):
        return "rows of the learner's width"
    if pool.shape[1] != learner.pool_width(lcfg) or not len(pool) or not len(rows):
        return "a pool of the learner's width"
    if not (
        is_whole(counts) and counts[layout.ROWS_USED] == len(rows) and counts[layout.TEMPLATE] <= 1
    ):
        return "counts of its own rows"
    if rows[0, : layout.HEAD].any() or (counts[layout.TEMPLATE] == 0.0 and rows[0].any()):
        return "a template only where there is one"
    return None


def _heads_fit(counts: Array, heads: Array) -> bool:
    """Those of challengers, and of rows that are free, are what was there before."""
    return bool(
        is_whole(heads)
        and (heads[:, layout.SERIAL] <= counts[layout.SERIALS]).all()
        and (heads[:, [layout.TOLD, layout.LAST]] <= counts[layout.CLOCK]).all()
    )


def _seat_fits(lcfg: Any, state: State, free: set[int], row: int, ticket: int) -> bool:
    """Whether an open decision could have this row and this ticket."""
    if ticket == NOTHING:
        return True
    if learner.stands_alone(lcfg) or ticket < 0:
        return bool(learner.stands_alone(lcfg)) and ticket == ALONE
    here = 1 <= row < state.counts[layout.ROWS_USED] and row not in free
    return here and learner.holds(lcfg, state.pool, ticket)


def is_whole(numbers: Array) -> bool:
    """Whether all are whole numbers of at least 0."""
    return bool(((numbers >= 0) & (numbers < MOST) & (numbers == np.floor(numbers))).all())


def chain(links: Array, first: float, end: int) -> list[int] | None:
    """The numbers that a chain of links goes through, 0 ending it; None: it is broken."""
    found, k = dict[int, None](), first
    while k != 0:
        if not 0 < k < end or k != int(k) or int(k) in found or end > len(links):
            return None
        found[int(k)] = None
        k = links[int(k)]
    return list(found)
