"""Sets of decisions: a box, or a box with coupled limits, and what compiled code needs of them."""

from continuarm.sets.decisions import (
    Decisions,
    allowed_of,
    box_of,
    is_guarded,
    plain_allowed,
    same_set,
    set_of,
)
from continuarm.sets.polytope import Polytope
from continuarm.sets.within import conflict

__all__ = [
    "Decisions",
    "Polytope",
    "allowed_of",
    "box_of",
    "conflict",
    "is_guarded",
    "plain_allowed",
    "same_set",
    "set_of",
]
