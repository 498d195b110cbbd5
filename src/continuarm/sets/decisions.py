"""What compiled code, and readers of exported tables, need of a box or a polytope."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.core.allowed.bundles import Allowed
from continuarm.core.compiling import plain
from continuarm.sets.bundle import Rows, bundle
from continuarm.sets.polytope import Polytope

__all__ = [
    "Decisions",
    "allowed_of",
    "box_of",
    "is_guarded",
    "plain_allowed",
    "same_set",
    "set_of",
]

Decisions = Box | Polytope


def box_of(decision: Decisions) -> Box:
    """The box of a set of decisions."""
    return decision.box if isinstance(decision, Polytope) else decision


def same_set(one: Box, other: Box) -> bool:
    """Whether two sets allow the same decisions, whatever their names."""
    if not one.same_edges(other) or (one.spacing, one.ending) != (other.spacing, other.ending):
        return False
    if isinstance(one, Polytope) and isinstance(other, Polytope):
        pairs = zip((one.A, one.b, *one.equal), (other.A, other.b, *other.equal), strict=True)
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)
    return isinstance(one, Polytope) == isinstance(other, Polytope)


def set_of(state: Any) -> Box:
    """The box, or the polytope, whose state this is."""
    return Polytope.from_state(state) if isinstance(state, Mapping) else Box(*state)


def is_guarded(decision: Box) -> bool:
    """Whether more than a box limits decisions."""
    return decision.spaced or isinstance(decision, Polytope)


def allowed_of(decision: Decisions) -> Allowed:
    """What is allowed; its code is compiled where something is guarded."""
    allowed = _allowed(decision)
    if not allowed.guarded:
        return allowed
    from continuarm.core.allowed.compiled import the_code

    parts: dict[str, Any] = {
        name: part.copy() if isinstance(part, np.ndarray) else part
        for name, part in allowed._asdict().items()
    }
    return Allowed(**parts | {"code": the_code()})


def plain_allowed(decision: Decisions) -> dict[str, Any]:
    """The same as numbers and lists, without the code."""
    numbers = plain(_allowed(decision))
    del numbers["code"]
    return numbers


def _allowed(decision: Decisions) -> Allowed:
    if isinstance(decision, Polytope):
        return decision.allowed
    none = Rows(np.empty((0, decision.dim)), np.empty(0))
    return bundle(decision, none, none, [], decision.nearest(decision.centre))
