"""What a caller may hand to `tell`: checked, and refused with the rule that it breaks."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from continuarm.decision import Decisions
from continuarm.errors import InputError

__all__ = ["decision_ids", "finite", "listed"]

NO_PAYOFF = (bool, np.bool_, str, bytes)  # although float() would take them


def finite(payoff: Any) -> float:
    """A payoff."""
    try:
        value = float(payoff)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"the payoff must be a finite number, but got {payoff!r}") from None
    if not math.isfinite(value) or isinstance(payoff, NO_PAYOFF):
        raise InputError(f"the payoff must be a finite number, but got {payoff!r}")
    return value


def listed(payoffs: ArrayLike) -> list[Any]:
    """Payoffs or gradients, one after the other."""
    if isinstance(payoffs, np.ndarray):
        payoffs = payoffs.tolist()
    if not isinstance(payoffs, Sequence) or isinstance(payoffs, str | bytes):
        raise InputError(f"a sequence is needed, but got {payoffs!r}")
    return list(payoffs)


def decision_ids(decisions: Decisions | ArrayLike) -> list[int]:
    """The numbers of decisions."""
    if isinstance(decisions, Decisions):
        decisions = decisions.ids
    try:
        ids: NDArray[Any] = np.asarray(decisions)
    except ValueError:
        raise InputError(f"`Decisions` or whole numbers are needed, got {decisions!r}") from None
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise InputError(f"`Decisions` or whole numbers are needed, but got {decisions!r}")
    return [int(id_) for id_ in ids]
