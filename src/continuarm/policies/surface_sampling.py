"""The recommended policy: a sampled response surface in bins that split by evidence."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from continuarm.box import Box
from continuarm.learners.response_surface import ResponseSurface, size
from continuarm.partitions.evidence_tree import EvidenceTree
from continuarm.policies.policy import BinnedPolicy, Hints

__all__ = ["SurfaceSampling"]

MOST_COEFFICIENTS = 100  # with more, only the diagonal of the Hessian is learned
MOST_VARYING = 50  # with more, less of the Hessian depends on the context
MOST_PAIRED = 3  # context dimensions whose products are in the baseline


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

    >>> policy = SurfaceSampling(Box([18], [90]), Box([1.0], [9.0]), rng=0)
    >>> for age in np.random.default_rng(1).uniform(18, 90, 500):
    ...     decision = policy.ask([age])
    ...     policy.tell(decision, -((decision.value[0] - age / 10) ** 2))
    >>> policy.recommend([50]).round(2)
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
        rng: np.random.Generator | int | None = None,
    ) -> None:
        super().__init__(context, decision, start=start, rng=rng, settings={})

    def _design(
        self, horizon: int | None, hints: Hints | None
    ) -> tuple[EvidenceTree, ResponseSurface]:
        dx, dy = self.context.dim, self.decision.dim
        surface = _richest(dx, dy)
        p = size(surface)
        # eq. 9: the more a challenger can fit, and the more of them there are, the later it wins
        choices = math.log(max(dx, 1))
        split = max(2.0, 0.5 * math.log(p)) + choices
        renew = max(4.0, 1.75 * math.log(p)) + choices
        tree = EvidenceTree(dx, split_lead=split, fresh_lead=renew, renew_lead=renew, first=2 * p)
        return tree, surface


def _richest(dx: int, dy: int) -> ResponseSurface:
    """The model with the most coefficients that can be paid for."""
    full = dy + dy * (dy + 1) // 2
    surface = ResponseSurface(dx, dy, terms=full, varying=dy, pairs=dx <= MOST_PAIRED)
    if size(surface) > MOST_COEFFICIENTS:
        return surface._replace(terms=2 * dy)
    for varying in (full, 2 * dy):
        richer = surface._replace(varying=varying)
        if size(richer) <= MOST_VARYING:
            return richer
    return surface
