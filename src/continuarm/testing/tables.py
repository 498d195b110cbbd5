"""What every exported table promises: a reader decides from it as the policy recommends."""

import numpy as np

from continuarm.errors import PolicyError
from continuarm.live.policy import Policy
from continuarm.live.reader import Reader

__all__ = ["check_table"]

SAME = 1e-9  # of each side of the box


def check_table(policy: Policy) -> None:
    """A reader of its table answers as it does, or it says that no reader can follow it."""
    try:
        reader = Reader(policy.export())
    except PolicyError:
        return
    box, span = policy.context, policy.decision.span
    units = np.vstack([np.random.default_rng(0).random((20, box.dim)), np.ones((1, box.dim))])
    contexts = box.from_unit(units)
    for context, best in zip(contexts, policy.recommend_many(contexts), strict=True):
        gap = abs(np.array(reader.decide(context.tolist())) - best) / span
        assert (gap <= SAME).all(), f"a reader must decide as `recommend` does for {context}"
