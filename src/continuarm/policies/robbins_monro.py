"""Robbins–Monro: the caller returns an unbiased gradient with each payoff."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from continuarm import checks, schedules
from continuarm.box import Box
from continuarm.errors import SettingsError
from continuarm.learners.gradient_ascent import GradientAscent
from continuarm.partitions.grid import Grid
from continuarm.partitions.tree import Tree
from continuarm.policies import options
from continuarm.policies.open_decisions import TTL
from continuarm.policies.options import Inherit
from continuarm.policies.policy import BinnedPolicy, Hints

__all__ = ["RobbinsMonro"]


class RobbinsMonro(BinnedPolicy):
    """Gradient ascent in each bin, with gradients from the caller (Remark after Theorem 1).

    Every decision is a step and no probe is needed: `tell(decision, payoff, gradient=...)`, the
    gradient in payoff per decision unit.

    Parameters
    ----------
    context, decision, horizon, curvature, holder, start, average, memory, ttl, ttl_seconds : as
        for `StaticKWSA`.
    step : a; default `1/M1`. The rate is lost below `1/(2 M1)`.
    bins : K per context dimension; default `T^(1/(dx+α))`.
    depth : given, the bins are a tree of this many levels instead of a grid.
    split_after : decisions of a bin of level l before it splits; default `30·2^(αl)`.
    inherit : as for `AdaptiveKWSA`.

    >>> policy = RobbinsMonro(Box.unit(0), Box([0.0], [4.0]), bins=1, step=0.125)
    >>> policy.tell(policy.ask(), 1.0, gradient=[0.5])
    >>> policy.recommend()
    array([3.])
    """

    def __init__(
        self,
        context: Box,
        decision: Box,
        *,
        horizon: int | None = None,
        curvature: float | None = None,
        step: float | None = None,
        holder: float = 1.0,
        start: ArrayLike | Mapping[str, float] | None = None,
        bins: int | None = None,
        depth: int | None = None,
        split_after: Sequence[int] | None = None,
        inherit: Inherit = "iterate",
        average: bool = False,
        memory: int | None = None,
        ttl: int | None = TTL,
        ttl_seconds: float | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        checks.choice("inherit", inherit, options.INHERITS)
        if depth is None and split_after is not None:
            raise SettingsError("`split_after` needs `depth`, but got depth=None")
        if depth is not None and bins is not None:
            raise SettingsError(f"one of `bins` and `depth` is needed, but got {bins} and {depth}")
        settings: dict[str, Any] = {
            "horizon": None if horizon is None else checks.whole("horizon", horizon, 1),
            "curvature": None if curvature is None else checks.number("curvature", curvature),
            "step": None if step is None else checks.number("step", step),
            "holder": checks.number("holder", holder, most=2.0),
            "bins": None if bins is None else checks.whole("bins", bins, 1, 10**9),
            "depth": None if depth is None else checks.whole("depth", depth, 0, 50),
            "split_after": None
            if split_after is None
            else checks.wholes("split_after", split_after, 1),
            "inherit": inherit,
            "average": checks.flag("average", average),
            "memory": None if memory is None else checks.whole("memory", memory, 1),
        }
        super().__init__(
            context,
            decision,
            start=start,
            rng=rng,
            settings=settings,
            ttl=ttl,
            ttl_seconds=ttl_seconds,
        )

    def _design(
        self, horizon: int | None, hints: Hints | None
    ) -> tuple[Grid | Tree, GradientAscent]:
        settings, dx, dy = self.settings, self.context.dim, self.decision.dim
        step, curvature, holder = settings["step"], settings["curvature"], settings["holder"]
        if curvature is None and hints is not None:
            curvature = hints.curvature
        if step is None:
            step = 1.0 / checks.needed("curvature", curvature, "where `step` is not given")
        keep_count = options.INHERITS[settings["inherit"]]
        memory = float(settings["memory"] or 0)
        learner = GradientAscent(dy, step, keep_count, settings["average"], memory)
        depth, bins = settings["depth"], settings["bins"]
        if depth is not None:
            levels = depth if dx > 0 else 0
            rule = settings["split_after"]
            if rule is None:
                rule = [round(30 * 2 ** (holder * level)) for level in range(levels)]
            split_after = schedules.split_after(rule, levels)
            return Tree(dx, np.array(split_after, np.float64)), learner
        if bins is None:
            why = "where `bins` is not given"
            horizon = checks.needed("horizon", settings["horizon"] or horizon, why)
            bins = schedules.bins_with_gradients(horizon, dx, dy, holder)
        return Grid(dx, bins), learner
