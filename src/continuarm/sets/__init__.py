"""Sets of decisions: a box, or a box with coupled limits, and what compiled code needs of them."""

from continuarm.sets.decisions import Decisions, allowed_of, box_of, plain_allowed
from continuarm.sets.polytope import Polytope
from continuarm.sets.within import conflict

__all__ = ["Decisions", "Polytope", "allowed_of", "box_of", "conflict", "plain_allowed"]
