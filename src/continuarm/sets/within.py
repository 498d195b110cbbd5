"""Which limits conflict where those of a request leave nothing."""

from collections.abc import Sequence

import numpy as np

from continuarm.box import Box
from continuarm.checks import shortened
from continuarm.core.compiling import Array
from continuarm.sets.bundle import Rows
from continuarm.sets.conflicts import (
    NO_ROOM,
    Limit,
    irreducible,
    limits_of,
    listed,
    spare_room,
    whole_numbers,
)
from continuarm.sets.decisions import Decisions, box_of
from continuarm.sets.polytope import Polytope

__all__ = ["conflict"]


def conflict(decision: Decisions, lowest: Array, highest: Array) -> str:
    """Limits of a request, in units, that leave nothing, with those they conflict with, in a line.

    For the message of an error: it is found by linear and integer programs, which is slow.
    """
    box = box_of(decision)
    for j, values in enumerate(box.values()):
        if values is not None:
            nearest = [values.nearest(float(edge[j])) for edge in (lowest, highest)]
            if not any(lowest[j] <= value <= highest[j] for value in nearest):
                ending = f", ending={box.ending[j]}" if box.ending[j] else ""
                name = shortened(box.names[j]) if box.named else f"value {j}"
                return (
                    f"`{name} >= {float(lowest[j])!r}` and `{name} <= {float(highest[j])!r}` "
                    f"with spacing={box.spacing[j]}{ending}"
                )
    limits = _limits(decision, lowest, highest)
    if spare_room(limits)[0] < -NO_ROOM:
        return listed(irreducible(limits, lambda some: spare_room(some)[0] < -NO_ROOM))
    return _of_whole_numbers(box, limits)


def _limits(decision: Decisions, lowest: Array, highest: Array) -> list[Limit]:
    box, none = box_of(decision), Rows(np.empty((0, decision.dim)), np.empty(0))
    if isinstance(decision, Polytope):
        rows, equal = Rows(decision.A, decision.b), Rows(*decision.equal)
        return limits_of(box, rows, equal, decision.texts, lowest, highest)
    return limits_of(box, none, none, [], lowest, highest)


def _of_whole_numbers(box: Box, limits: Sequence[Limit]) -> str:
    """Some leave a point, but no allowed value; or one that rounding does not allow."""
    if box.spaced and whole_numbers(box, limits) is None:
        limits = irreducible(limits, lambda some: whole_numbers(box, some) is None)
    return listed(limits) + (f" with spacing={list(box.spacing)}" if box.spaced else "")
