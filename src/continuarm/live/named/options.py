"""Options that every named policy takes and hands on to `Policy`."""

from typing import TypedDict

import numpy as np

from continuarm.live.near_reference import Move

__all__ = ["PolicyOptions"]


class PolicyOptions(TypedDict, total=False):
    """What becomes of decisions without a payoff (docs/production.md), what is compared with the
    incumbent and how far decisions may move (docs/switching-on.md), and the seed."""

    ttl: int | None
    ttl_seconds: float | None
    missing: float | None
    share: float
    max_move: Move | None
    rng: np.random.Generator | int | None
