"""The recommended policy: a sampled response surface in bins that split by evidence."""

from typing import Unpack

from continuarm.box import Box
from continuarm.core.learners.response_surface import ResponseSurface
from continuarm.core.partitions.evidence_tree import EvidenceTree
from continuarm.live.named.options import PolicyOptions
from continuarm.live.policy import Policy, Start

__all__ = ["SurfaceSampling"]


def SurfaceSampling(
    context: Box,
    decision: Box,
    *,
    start: Start | None = None,
    reach: float | None = 0.1,
    memory: int | None = None,
    **options: Unpack[PolicyOptions],
) -> Policy:
    """The policy to start with: two boxes, and nothing to tune.

    In each bin it fits a quadratic payoff whose slope is affine in the context, draws one of the
    surfaces that the payoffs so far leave plausible, and decides for its highest point. The slope
    becomes a polynomial of the context, or the bin splits, in the context dimension where it
    helps, when payoffs are foreseen better so. It knows no horizon, curvature, noise or width, and
    does not depend on the units of contexts, decisions and payoffs. docs/recommended.md derives
    it.

    Parameters
    ----------
    context, decision : the boxes; a context box without dimensions makes it context-free.
    start : what is done today, as for `Policy`: `recommend` answers it before any payoff is told;
        default the centre.
    reach : how far from what is known to be good, as a part of each side of the box, it may try
        before payoffs speak for more; None: anywhere, and then levels that move and absurd payoffs
        mislead it, as they do most.
    memory : keep about this many decisions of the policy in mind, for a payoff that drifts.
    options : `ttl`, `ttl_seconds`, `missing`, `share`, `max_move` and `rng` of `Policy`.

    >>> import numpy as np
    >>> policy = SurfaceSampling(Box([18], [90]), Box([1.0], [9.0]), rng=0)
    >>> for age in np.random.default_rng(1).uniform(18, 90, 500):
    ...     decision = policy.ask([age])
    ...     policy.tell(decision, -((decision.value[0] - age / 10) ** 2))
    >>> policy.recommend([50]).round(1)
    array([5.])
    """
    careful = reach is not None
    return Policy(
        context,
        decision,
        partition=EvidenceTree(drifts=memory is not None),
        learner=ResponseSurface(
            memory=memory, reach=reach, bounded=careful, level=careful, calm=careful, degree=5
        ),
        start=start,
        name="SurfaceSampling",
        **options,
    )
