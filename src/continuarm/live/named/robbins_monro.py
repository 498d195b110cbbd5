"""Robbins–Monro: the caller returns an unbiased gradient with each payoff."""

from collections.abc import Sequence
from typing import Any, Unpack

from continuarm import checks
from continuarm.box import Box
from continuarm.core.learners.gradient_ascent import GradientAscent
from continuarm.core.learners.smooth_gradient import SmoothGradient
from continuarm.core.partitions.grid import Grid
from continuarm.core.partitions.tree import Tree
from continuarm.errors import SettingsError
from continuarm.live.named import paper_options as paper
from continuarm.live.named.options import PolicyOptions
from continuarm.live.named.paper_options import Inherit
from continuarm.live.policy import Policy, Start
from continuarm.paper import schedules

__all__ = ["RobbinsMonro"]

STEPS = ("learned", "printed")
BINS = ("printed",)


def RobbinsMonro(
    context: Box,
    decision: Box,
    *,
    horizon: int | None = None,
    curvature: float | None = None,
    step: float | str = "learned",
    holder: float = 1.0,
    start: Start | None = None,
    bins: int | str | None = None,
    depth: int | str | None = None,
    split_after: Sequence[int] | None = None,
    inherit: Inherit = "iterate",
    average: bool = False,
    memory: int | None = None,
    **options: Unpack[PolicyOptions],
) -> Policy:
    """Gradient ascent in each bin, with gradients from the caller (Remark after Theorem 1).

    Every decision is a step and no probe is needed: `tell(decision, payoff, gradient=...)`, the
    gradient in payoff per decision unit. By default the step is learned from the gradients, and
    one bin holds all contexts: nothing but the boxes is needed (docs/robbins-monro.md).

    Parameters
    ----------
    context, decision, holder, start, memory : as for `StaticKWSA`.
    step : `"learned"`; a of `a/n`, or `"printed"`: `1/M1`, which needs `curvature`.
    horizon : T; needed for `"printed"` bins, and for `depth` by name.
    bins : K per context dimension; 1 is the default where the step is learned; `"printed"`,
        `T^(1/(dx+α))`, the default else.
    depth : given, the bins are a tree of this many levels: a number, `"printed"`, `"consistent"`.
    split_after : decisions of a bin of level l before it splits; default `30·2^(αl)`.
    inherit, average : as for `AdaptiveKWSA`, where the step is not learned.
    options : `ttl`, `ttl_seconds`, `share`, `rng` and, where the step is learned, `max_move` of
        `Policy`.

    >>> import numpy as np
    >>> policy = RobbinsMonro(Box([18], [90]), Box([1.0], [9.0]))
    >>> for age in np.random.default_rng(1).uniform(18, 90, 50):
    ...     decision = policy.ask([age])
    ...     policy.tell(decision, 0.0, gradient=age / 10 - decision.value)
    >>> policy.recommend([50]).round(2)
    array([5.03])
    """
    learner = _learner(step, curvature, inherit, average, memory)
    if depth is None and split_after is not None:
        raise SettingsError("`split_after` needs `depth`, but got depth=None")
    if depth is not None and bins is not None:
        raise SettingsError(f"one of `bins` and `depth` is needed, but got {bins} and {depth}")
    if bins == "evidence":
        raise SettingsError(
            'bins do not split by evidence any more, but got bins="evidence": leave `bins` out, '
            "and one bin holds all contexts"
        )
    holder = checks.number("holder", holder, most=2.0)
    horizon = checks.optional(checks.whole, "horizon", horizon, 1)
    partition: Grid | Tree
    if depth is not None:
        partition = Tree(_splits(depth, split_after, horizon, context.dim, decision.dim, holder))
    elif bins is None and isinstance(learner, SmoothGradient):
        partition = Grid(1)
    else:
        chosen = "printed" if bins is None else bins
        partition = Grid(_bins(chosen, horizon, context.dim, decision.dim, holder))
    return Policy(
        context,
        decision,
        partition=partition,
        learner=learner,
        start=start,
        name="RobbinsMonro",
        **options,
    )


def _learner(
    step: Any, curvature: Any, inherit: Any, average: Any, memory: Any
) -> GradientAscent | SmoothGradient:
    curvature = checks.optional(checks.number, "curvature", curvature)
    keep_count, average = paper.keeps_count(inherit), checks.flag("average", average)
    if isinstance(step, str):
        checks.choice("step", step, dict.fromkeys(STEPS))
    if step == "learned":
        if keep_count or average:
            name = "inherit" if keep_count else "average"
            raise SettingsError(f'`{name}` needs a step that is given, but got step="learned"')
        return SmoothGradient(memory=memory)
    if step == "printed":
        step = 1.0 / checks.needed("curvature", curvature, 'for step="printed"')
    return GradientAscent(step=step, keep_count=keep_count, average=average, memory=memory)


def _bins(bins: Any, horizon: int | None, dx: int, dy: int, holder: float) -> int:
    """K, given or as printed."""
    if not isinstance(bins, str):
        return checks.whole("bins", bins, 1, 10**9)
    checks.choice("bins", bins, dict.fromkeys(BINS))
    horizon = checks.needed("horizon", horizon, f"for bins={bins!r}")
    return schedules.bins_with_gradients(horizon, dx, dy, holder)


def _splits(
    depth: Any, split_after: Any, horizon: int | None, dx: int, dy: int, holder: float
) -> list[int]:
    """The decisions of a bin of each level before it splits."""
    if isinstance(depth, str):
        checks.choice("depth", depth, dict.fromkeys(schedules.DEPTHS))
        horizon = checks.needed("horizon", horizon, f"for depth={depth!r}")
        depth = schedules.depth_with_gradients(depth, horizon, dx, dy, holder)
    depth = checks.whole("depth", depth, 0, 50)
    if split_after is None:
        split_after = [round(30 * 2 ** (holder * level)) for level in range(depth)]
    numbers = checks.wholes("split_after", split_after, 1)
    return schedules.split_after(numbers, depth if dx > 0 else 0)
