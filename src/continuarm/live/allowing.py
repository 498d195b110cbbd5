"""What a policy allows beside the edges of its box, as limits of its requests."""

import numpy as np

from continuarm.box import Box
from continuarm.core.allowed.plain import fill_limits
from continuarm.core.compiling import Array
from continuarm.core.entries import Limits
from continuarm.core.guarded import Guarded
from continuarm.core.request import FREE, Free
from continuarm.errors import InputError
from continuarm.live.limits import Within
from continuarm.sets import allowed_of, conflict

__all__ = ["guard_of", "guarded", "narrowed", "nothing_allowed", "with_steps"]

A_STEP = 1.0 + 1e-9  # the neighbouring value lies within it, however it is rounded


def guard_of(decision: Box) -> Free | Guarded:
    """What guards the decisions of a policy."""
    allowed = allowed_of(decision)
    return Guarded(allowed, decision.low, decision.high) if allowed.guarded else FREE


def guarded(limits: Limits, guard: Free | Guarded) -> Limits:
    """Limits with a guard."""
    if isinstance(guard, Free):
        return limits
    found = narrowed(limits._replace(guard=guard), Within(*guard[1:]), whole=True)
    assert found is not None  # a set of decisions is never empty
    return found


def narrowed(limits: Limits, within: Within, *, whole: bool = False) -> Limits | None:
    """Limits with a guard, in which these hold; spaced values are those inside them.

    None: a coordinate has no allowed value there.
    """
    guard: Guarded = limits.guard._replace(lowest=within.low, highest=within.high)
    low, high = np.empty(len(within.low)), np.empty(len(within.low))
    if not fill_limits(guard.allowed, within.low, within.high, low, high):
        return None
    cube = (0.5 + 0.5 * edge for edge in (low, high))  # v goes from -1 to 1
    return limits._replace(low=next(cube), high=next(cube), whole=whole, guard=guard)


def nothing_allowed(decision: Box, within: Within) -> InputError:
    """The error for limits that leave nothing."""
    reason = conflict(decision, within.low, within.high)
    return InputError(f"`within` must leave a decision that is allowed, but got {reason}")


def with_steps(decision: Box, reach: Array | float) -> Array:
    """A reach on the unit cube in which each spaced value has its neighbours.

    Or else nothing but the start would ever be tried.
    """
    wanted = np.full(decision.dim, reach)
    if not decision.spaced or not wanted.any():
        return wanted
    steps = A_STEP * np.array(decision.spacing) / decision.span
    return np.asarray(np.minimum(np.maximum(wanted, steps), 1.0))
