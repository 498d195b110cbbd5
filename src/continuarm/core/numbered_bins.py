"""Bins by their numbers: which there are, which are frozen, and which followed one that is gone.

No two bins ever have the same number. A bin that is renewed keeps its own. One that has split is
remembered by its node, so that nothing grows with what has been.
"""

from typing import Any

import numpy as np

from continuarm.core.partitions import protocol as partition
from continuarm.core.state import COUNTS, SERIAL, SERIALS, State

__all__ = ["are_distinct", "frozen", "numbers", "successors", "with_frozen"]


def _present(pcfg: Any, state: State) -> partition.Boxes:
    """The bins there are: numbers and boxes."""
    found = partition.boxes(pcfg, state.nodes)
    return [(int(state.rows[row, SERIAL]), low, high) for row, low, high in found]


def numbers(pcfg: Any, state: State) -> list[int]:
    """Those of the bins there are."""
    return sorted(number for number, _, _ in _present(pcfg, state))


def frozen(state: State) -> list[int]:
    """Those of the bins that are frozen."""
    return [int(number) for number in state.counts[COUNTS:]]


def with_frozen(state: State, number: int, is_frozen: bool) -> State:
    """The same with one bin frozen, or not."""
    others = set(frozen(state)) - {number}
    now = sorted(others | {number}) if is_frozen else sorted(others)
    counts = np.concatenate([state.counts[:COUNTS], np.array(now, np.float64)])
    return state._replace(counts=counts)


def successors(pcfg: Any, state: State, number: int) -> list[int]:
    """The bins that hold the contexts of one that is gone.

    One that no split knows was there before a newcomer took the place of all.
    """
    present = _present(pcfg, state)
    for split, low, high in partition.former(pcfg, state.nodes, state.rows):
        if split == number:
            present = [one for one in present if (one[1] >= low).all() and (one[2] <= high).all()]
    return sorted(one for one, _, _ in present)


def are_distinct(pcfg: Any, state: State) -> bool:
    """Whether bins that were read have numbers of their own, and those that are frozen exist."""
    present = numbers(pcfg, state)
    gone = [number for number, _, _ in partition.former(pcfg, state.nodes, state.rows)]
    every, now = present + gone, frozen(state)
    known = all(1 <= number <= state.counts[SERIALS] for number in every)
    return known and len(set(every)) == len(every) and now == sorted(set(now) & set(present))
