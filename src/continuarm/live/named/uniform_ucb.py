"""The paper's baseline: a grid of contexts times a grid of decisions, UCB in each bin."""

from typing import Unpack

from continuarm import checks
from continuarm.box import Box
from continuarm.core.learners.grid_ucb import GridUCB
from continuarm.core.partitions.grid import Grid
from continuarm.live.named.options import PolicyOptions
from continuarm.live.policy import Policy
from continuarm.paper import schedules

__all__ = ["UniformUCB"]


def UniformUCB(
    context: Box,
    decision: Box,
    *,
    horizon: int | None = None,
    holder: float = 1.0,
    bins: int | None = None,
    arms: int | None = None,
    scale: float = 1.0,
    **options: Unpack[PolicyOptions],
) -> Policy:
    """UCB over a grid of decisions in each bin of a grid of contexts (the uniform algorithm).

    Each decision of the grid once in index order, then the lowest index that maximises
    `mean + scale·√(2 ln N / n)`, N the payoffs of the bin so far and n those of the decision.

    Parameters
    ----------
    context, decision : the boxes.
    horizon : T; needed where `bins` or `arms` is not given.
    holder : α in (0, 2].
    bins, arms : K and k, the cells per dimension of contexts and of decisions; default both
        `T^(1/(dx+dy+2α))`. Decisions are at the cells' centres.
    scale : factor of the bonus, 1 for payoffs between 0 and 1.
    options : `ttl`, `ttl_seconds`, `missing`, `share` and `rng` of `Policy`.

    >>> policy = UniformUCB(Box.unit(1), Box.unit(2), bins=1, arms=2)
    >>> [policy.ask([0.5]).value.tolist() for _ in range(4)]
    [[0.25, 0.25], [0.25, 0.75], [0.75, 0.25], [0.75, 0.75]]
    """
    horizon = checks.optional(checks.whole, "horizon", horizon, 1)
    holder = checks.number("holder", holder, most=2.0)
    if bins is None or arms is None:
        horizon = checks.needed("horizon", horizon, "where `bins` or `arms` is not given")
        size = schedules.uniform_size(horizon, context.dim, decision.dim, holder)
        bins, arms = size if bins is None else bins, size if arms is None else arms
    return Policy(
        context,
        decision,
        partition=Grid(bins),
        learner=GridUCB(arms=arms, scale=scale),
        name="UniformUCB",
        **options,
    )
