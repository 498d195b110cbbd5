"""The recommended policy: a sampled response surface in bins that split by evidence."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from continuarm import checks
from continuarm.box import Box
from continuarm.learners.response_surface import ResponseSurface
from continuarm.partitions.evidence_tree import EvidenceTree
from continuarm.policies.open_decisions import TTL
from continuarm.policies.policy import BinnedPolicy, Hints
from continuarm.policies.surface_design import surface_design

__all__ = ["SurfaceSampling"]


class SurfaceSampling(BinnedPolicy):
    """The policy to start with: two boxes, and nothing to tune.

    In each bin it fits a quadratic payoff whose slope is affine in the context, draws one of the
    surfaces that the payoffs so far leave plausible, and decides for its highest point. A bin
    splits, in the context dimension where it helps, when its halves foresee payoffs better than
    the whole. It knows no horizon, curvature, noise or width, and does not depend on the units of
    contexts, decisions and payoffs. docs/recommended.md derives it.

    Parameters
    ----------
    context, decision : the boxes; a context box without dimensions makes it context-free.
    start : what `recommend` answers before any payoff is told; default the centre.
    memory : keep about this many decisions of the policy in mind, for a payoff that drifts.
    ttl, ttl_seconds, missing : what becomes of decisions without a payoff (docs/production.md).

    >>> policy = SurfaceSampling(Box([18], [90]), Box([1.0], [9.0]), rng=0)
    >>> for age in np.random.default_rng(1).uniform(18, 90, 500):
    ...     decision = policy.ask([age])
    ...     policy.tell(decision, -((decision.value[0] - age / 10) ** 2))
    >>> policy.recommend([50]).round(1)
    array([5.])
    """

    anytime = True
    largest_payoff = 1e100  # squares of payoffs must stay finite

    def __init__(
        self,
        context: Box,
        decision: Box,
        *,
        start: ArrayLike | Mapping[str, float] | None = None,
        memory: int | None = None,
        ttl: int | None = TTL,
        ttl_seconds: float | None = None,
        missing: float | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        settings = {}
        if memory is not None:
            settings["memory"] = checks.whole("memory", memory, 1)
        super().__init__(
            context,
            decision,
            start=start,
            rng=rng,
            settings=settings,
            ttl=ttl,
            ttl_seconds=ttl_seconds,
            missing=missing,
        )

    def _design(
        self, horizon: int | None, hints: Hints | None
    ) -> tuple[EvidenceTree, ResponseSurface]:
        memory = float(self.settings.get("memory", 0))
        return surface_design(self.context.dim, self.decision.dim, memory)
