"""Whether a state that was read could be one that compiled code made.

Compiled code does not look at what it uses as an index, a length or a link. Everything of that
kind is looked at here, before it is trusted.
"""

from typing import Any

import numpy as np

from continuarm.core.compiling import Array
from continuarm.core.learners import protocol as learner
from continuarm.core.partitions import protocol as partition
from continuarm.core.state import (
    COUNTS,
    FREE_ROW,
    FREE_ROWS,
    HEAD,
    LEVEL,
    NODE,
    ROWS_USED,
    SERIAL,
    TEMPLATE,
    State,
)

__all__ = ["misfit"]


def misfit(pcfg: Any, lcfg: Any, state: State) -> str | None:
    """What of a state does not fit a policy of these configurations; None: it fits."""
    counts, nodes, rows, pool = state
    if any(array.dtype != np.float64 for array in state):
        return "arrays of float64"
    widths = counts.shape == (COUNTS,), rows.ndim == nodes.ndim == pool.ndim == 2
    if not all(widths) or rows.shape[1] != HEAD + learner.width(lcfg):
        return "rows of the learner's width"
    if pool.shape[1] != learner.pool_width(lcfg) or not len(pool) or not len(rows):
        return "a pool of the learner's width"
    used = counts[ROWS_USED]
    if not (is_whole(counts) and 1 <= used <= len(rows) and counts[TEMPLATE] <= 1):
        return "counts of its own rows"
    head = rows[1 : int(used), :HEAD]
    if not is_whole(head[:, [NODE, LEVEL, SERIAL]]) or (head[:, SERIAL] > counts[-2]).any():
        return "heads of rows that are whole numbers"
    free = chain(rows[:, NODE], counts[FREE_ROW], int(used))
    if free is None or len(free) != counts[FREE_ROWS]:
        return "a chain of free rows"
    empty = chain(pool[:, 0], pool[0, 0], int(pool[0, 1])) if is_whole(pool[0, :2]) else None
    if empty is None or not 1 <= pool[0, 1] <= len(pool):
        return "a chain of free stencils"
    if not partition.fits(pcfg, nodes, rows[: int(used)]):
        return "an index of its own bins"
    busy = [k for k in range(1, int(used)) if k not in free]
    if not learner.fits(lcfg, rows[busy, HEAD:], pool, set(empty)):
        return "what its learner could have learned"
    return None


def is_whole(numbers: Array) -> bool:
    """Whether all are whole numbers of at least 0."""
    return bool(((numbers >= 0) & (numbers < 2.0**53) & (numbers == np.floor(numbers))).all())


def chain(links: Array, first: float, end: int) -> list[int] | None:
    """The numbers that a chain of links goes through, 0 ending it; None: it is broken."""
    found, k = dict[int, None](), first
    while k != 0:
        if not 0 < k < end or k != int(k) or int(k) in found or end > len(links):
            return None
        found[int(k)] = None
        k = links[int(k)]
    return list(found)
