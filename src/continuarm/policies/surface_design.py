"""What partition and learner the recommended policy takes for given dimensions."""

import math

from continuarm.learners.response_surface import ResponseSurface, size
from continuarm.partitions.evidence_tree import EvidenceTree

__all__ = ["surface_design"]

MOST_COEFFICIENTS = 100  # with more, only the diagonal of the Hessian is learned
MOST_VARYING = 50  # with more, less of the Hessian depends on the context
REMEMBERED = 40  # payoffs per coefficient that a bin must have in mind to split, with `memory`
CAUTION = 5.0  # and how many times more evidence, because a drift looks like evidence
MOST_PAIRED = 3  # context dimensions whose products are in the baseline


def surface_design(dx: int, dy: int, memory: float = 0.0) -> tuple[EvidenceTree, ResponseSurface]:
    """The recommended partition and learner."""
    surface = _richest(dx, dy)._replace(memory=memory)
    p = size(surface)
    # eq. 9: the more a challenger can fit, and the more of them there are, the later it wins
    choices = math.log(max(dx, 1))
    split = max(2.0, 0.5 * math.log(p)) + choices
    renew = max(4.0, 1.75 * math.log(p)) + choices
    caution = CAUTION if memory > 0.0 else 1.0
    tree = EvidenceTree(
        dx,
        split_lead=caution * split,
        fresh_lead=caution * renew,
        renew_lead=renew,
        first=2 * p,
        drift=REMEMBERED * p if memory > 0.0 else 0.0,
    )
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
