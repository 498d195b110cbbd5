"""Where the numbers of a stencil stand, and whether stencils that were read could be some.

Compiled code follows the links between bins and stencils without looking. Everything it would
follow is looked at here.
"""

import math
from typing import NamedTuple

import numpy as np

from continuarm.core.compiling import Array
from continuarm.core.learners import iterate
from continuarm.core.learners.iterate import MOST_STEPS
from continuarm.core.learners.protocol import Read

__all__ = ["Layout", "stencils_fit"]

# a row: the numbers of `iterate`, then these. WAITING is a chain of stencils in which slots are to
# be handed out again.
OPENED, NEWEST, NEXT, WAITING, ITERATE = 2, 3, 4, 5, 6
# a stencil in the pool: numbers, then centre, signed offsets, payoffs (RETURN: to be asked again)
OPENED_AT, TOLD, RETURNED, LINK, CENTRE = 0, 1, 2, 3, 4
RETURN = math.inf
SLOT_BITS = 20  # a ticket is the stencil's row in the pool and the slot in the stencil
EDGE = 1e-9  # how far a probe may lie outside, by rounding
SHORTEST = 1e-12  # from a probe to what it is compared with


class Layout(NamedTuple):
    """How stencils are laid out."""

    dy: int
    slots: int  # decisions of one stencil
    payoffs: int  # where they stand


class Stencil(NamedTuple):
    """What of a state is about one stencil."""

    owners: set[int]  # rows that ask it, have handed it out, or will ask it again
    open: list[int]  # slots that wait for their payoff


def stencils_fit(layout: Layout, read: Read) -> bool:
    """Open stencils are in the pool, and no slot of theirs is in two places."""
    rows, pool = read.rows, read.pool
    opened = sorted(set(range(1, len(pool))) - read.free)
    numbers = rows[:, OPENED:ITERATE]
    whole = (numbers >= 0).all() and (numbers < MOST_STEPS).all() and (numbers % 1 == 0).all()
    if not iterate.fits(rows, ITERATE) or not whole or (rows[:, NEXT] > layout.slots).any():
        return False
    if not _numbers_fit(layout, pool[opened]):
        return False
    stencils = _stencils(layout, read, opened)
    if stencils is None:
        return False
    handed_out = _handed_out(layout, read, stencils)
    return all(_slots_fit(layout, pool[k], stencils[k], handed_out[k]) for k in opened)


def _numbers_fit(layout: Layout, stencils: Array) -> bool:
    """Decisions in the cube at some distance, and as many slots to be asked again as they say."""
    offsets = CENTRE + layout.dy
    counts, centres = stencils[:, :CENTRE], stencils[:, CENTRE:offsets]
    apart, payoffs = stencils[:, offsets : layout.payoffs], stencils[:, layout.payoffs :]
    runs = apart
    if apart.shape[1] > layout.dy:  # both sides
        runs, centres = apart[:, 0::2] - apart[:, 1::2], centres.repeat(2, axis=1)
    probes = centres + apart
    return bool(
        ((counts >= 0) & (counts < MOST_STEPS) & (counts % 1 == 0)).all()
        and ((payoffs == RETURN).sum(axis=1) == counts[:, RETURNED]).all()
        and (np.isfinite(payoffs) | (payoffs == RETURN)).all()
        and ((centres >= 0.0) & (centres <= 1.0)).all()
        and ((probes >= -EDGE) & (probes <= 1.0 + EDGE)).all()
        and (abs(runs) > SHORTEST).all()
    )


def _stencils(layout: Layout, read: Read, opened: list[int]) -> dict[int, Stencil] | None:
    """Whose each stencil is; None: one is in two chains, twice in one, or not in the pool."""
    stencils = {index: Stencil(set(), []) for index in opened}
    newest, waiting = set[int](), set[int]()
    for number, row in zip(read.numbers, read.rows, strict=True):
        if row[NEXT] < layout.slots and (number in read.asked or number == 0):
            index = int(row[NEWEST])
            if index not in stencils or index in newest:
                return None
            newest.add(index)
            stencils[index].owners.add(number)
        index = int(row[WAITING])
        while index > 0:
            if index not in stencils or index in waiting or read.pool[index, RETURNED] < 1:
                return None
            waiting.add(index)
            stencils[index].owners.add(number)
            index = int(read.pool[index, LINK])
    for number, ticket in read.seats:
        index, slot = ticket >> SLOT_BITS, ticket & ((1 << SLOT_BITS) - 1)
        if ticket >= 0 and index not in stencils:
            return None
        if ticket >= 0:
            stencils[index].owners.add(number)
            stencils[index].open.append(slot)
    return stencils


def _handed_out(layout: Layout, read: Read, stencils: dict[int, Stencil]) -> dict[int, set[float]]:
    """How many slots of each stencil may have been handed out."""
    rows = dict(zip(read.numbers, read.rows, strict=True))
    handed_out: dict[int, set[float]] = {}
    for index, (owners, _) in stencils.items():
        own = [row[NEXT] for row in map(rows.__getitem__, owners) if row[NEWEST] == index]
        handed_out[index] = set(own) if own else {float(layout.slots)}
    for row in read.rows:  # a bin that has split may have left one behind
        if int(row[NEWEST]) in stencils and not stencils[int(row[NEWEST])].owners:
            handed_out[int(row[NEWEST])].add(row[NEXT])
    return handed_out


def _slots_fit(layout: Layout, stencil: Array, whose: Stencil, handed_out: set[float]) -> bool:
    """Every slot that was handed out is open, told, or to be asked again, and none twice."""
    again = np.flatnonzero(stencil[layout.payoffs :] == RETURN).tolist()
    places = [*whose.open, *again]
    out = stencil[TOLD] + len(places)
    if len(whose.owners) > 1 or len(set(places)) < len(places) or out not in handed_out:
        return False
    return bool(max(places, default=-1) < out and stencil[TOLD] < layout.slots)
