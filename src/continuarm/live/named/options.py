"""Options that every named policy takes and hands on to `Policy`."""

from typing import TypedDict

import numpy as np

__all__ = ["PolicyOptions"]


class PolicyOptions(TypedDict, total=False):
    """What becomes of decisions without a payoff (docs/production.md), and the seed."""

    ttl: int | None
    ttl_seconds: float | None
    missing: float | None
    rng: np.random.Generator | int | None
