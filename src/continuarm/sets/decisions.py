"""What compiled code, and readers of exported tables, need of a box or a polytope."""

from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.core.allowed.bundles import Allowed
from continuarm.core.compiling import plain
from continuarm.sets.bundle import Rows, bundle
from continuarm.sets.polytope import Polytope

__all__ = ["Decisions", "allowed_of", "box_of", "plain_allowed"]

Decisions = Box | Polytope


def box_of(decision: Decisions) -> Box:
    """The box of a set of decisions."""
    return decision.box if isinstance(decision, Polytope) else decision


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
