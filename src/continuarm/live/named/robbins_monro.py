"""Robbins–Monro: the caller returns an unbiased gradient with each payoff."""

from collections.abc import Sequence
from typing import Unpack

from continuarm import checks
from continuarm.box import Box
from continuarm.core.learners.gradient_ascent import GradientAscent
from continuarm.core.partitions.grid import Grid
from continuarm.core.partitions.tree import Tree
from continuarm.errors import SettingsError
from continuarm.live.named import paper_options as paper
from continuarm.live.named.options import PolicyOptions
from continuarm.live.named.paper_options import Inherit
from continuarm.live.policy import Context, Policy
from continuarm.paper import schedules

__all__ = ["RobbinsMonro"]


def RobbinsMonro(
    context: Box,
    decision: Box,
    *,
    horizon: int | None = None,
    curvature: float | None = None,
    step: float | None = None,
    holder: float = 1.0,
    start: Context | None = None,
    bins: int | None = None,
    depth: int | None = None,
    split_after: Sequence[int] | None = None,
    inherit: Inherit = "iterate",
    average: bool = False,
    memory: int | None = None,
    **options: Unpack[PolicyOptions],
) -> Policy:
    """Gradient ascent in each bin, with gradients from the caller (Remark after Theorem 1).

    Every decision is a step and no probe is needed: `tell(decision, payoff, gradient=...)`, the
    gradient in payoff per decision unit.

    Parameters
    ----------
    context, decision, horizon, curvature, holder, start, average, memory : as for `StaticKWSA`.
    step : a; default `1/M1`. The rate is lost below `1/(2 M1)`.
    bins : K per context dimension; default `T^(1/(dx+α))`.
    depth : given, the bins are a tree of this many levels instead of a grid.
    split_after : decisions of a bin of level l before it splits; default `30·2^(αl)`.
    inherit : as for `AdaptiveKWSA`.
    options : `ttl`, `ttl_seconds` and `rng` of `Policy`.

    >>> policy = RobbinsMonro(Box.unit(0), Box([0.0], [4.0]), bins=1, step=0.125)
    >>> policy.tell(policy.ask(), 1.0, gradient=[0.5])
    >>> policy.recommend()
    array([3.])
    """
    if depth is None and split_after is not None:
        raise SettingsError("`split_after` needs `depth`, but got depth=None")
    if depth is not None and bins is not None:
        raise SettingsError(f"one of `bins` and `depth` is needed, but got {bins} and {depth}")
    holder = checks.number("holder", holder, most=2.0)
    horizon = checks.optional(checks.whole, "horizon", horizon, 1)
    curvature = checks.optional(checks.number, "curvature", curvature)
    if step is None:
        step = 1.0 / checks.needed("curvature", curvature, "where `step` is not given")
    partition: Grid | Tree
    if depth is not None:
        depth = checks.whole("depth", depth, 0, 50)
        rule = split_after
        if rule is None:
            rule = [round(30 * 2 ** (holder * level)) for level in range(depth)]
        levels = depth if context.dim > 0 else 0
        numbers = checks.wholes("split_after", rule, 1)
        partition = Tree(schedules.split_after(numbers, levels))
    else:
        if bins is None:
            horizon = checks.needed("horizon", horizon, "where `bins` is not given")
            bins = schedules.bins_with_gradients(horizon, context.dim, decision.dim, holder)
        partition = Grid(bins)
    return Policy(
        context,
        decision,
        partition=partition,
        learner=GradientAscent(
            step=step, keep_count=paper.keeps_count(inherit), average=average, memory=memory
        ),
        start=start,
        name="RobbinsMonro",
        **options,
    )
