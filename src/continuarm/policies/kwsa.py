"""The paper's policies: Kiefer–Wolfowitz in a grid (Algorithm 2) or a tree (Algorithm 3)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from continuarm import checks, schedules
from continuarm.box import Box
from continuarm.learners.kiefer_wolfowitz import KieferWolfowitz
from continuarm.partitions.grid import Grid
from continuarm.partitions.tree import Tree
from continuarm.policies import options
from continuarm.policies.open_decisions import TTL
from continuarm.policies.options import Inherit, Probe
from continuarm.policies.policy import BinnedPolicy, Hints

__all__ = ["AdaptiveKWSA", "StaticKWSA"]


def _shared(
    horizon: Any,
    curvature: Any,
    step: Any,
    width: Any,
    holder: Any,
    probe: Any,
    average: Any,
    memory: Any,
) -> dict[str, Any]:
    """Check the options that both policies have."""
    checked = {
        "horizon": None if horizon is None else checks.whole("horizon", horizon, 1),
        "curvature": None if curvature is None else checks.number("curvature", curvature),
        "step": None if step is None else checks.number("step", step),
        "width": checks.number("width", width, most=0.5, least=1e-6),  # reading 5
        "holder": checks.number("holder", holder, most=2.0),  # reading 13
        "probe": probe,
        "average": checks.flag("average", average),
        "memory": None if memory is None else checks.whole("memory", memory, 1),
    }
    checks.choice("probe", probe, options.PROBES)
    if checked["step"] is not None and checked["curvature"] is not None:
        options.warn_step(checked["step"], checked["curvature"])
    return checked


def _learner(
    settings: dict[str, Any], dy: int, hints: Hints | None, keep_count: bool
) -> KieferWolfowitz:
    curvature = settings["curvature"]
    if curvature is None and hints is not None:
        curvature = hints.curvature
    return KieferWolfowitz(
        dy=dy,
        step=options.resolve_step(settings["step"], curvature),
        width=settings["width"],
        probe=options.PROBES[settings["probe"]],
        keep_count=keep_count,
        average=settings["average"],
        memory=float(settings["memory"] or 0),
    )


class StaticKWSA(BinnedPolicy):
    """Kiefer–Wolfowitz in each bin of a fixed grid (Algorithm 2; with one bin, Algorithm 1).

    Parameters
    ----------
    context, decision : the boxes; a context box without dimensions makes it context-free.
    horizon : T, the number of decisions planned; needed for `bins` by name.
    curvature : M1, the smallest curvature of the mean payoff on the unit cube.
    step : a; default the middle of `(1/(4 M1), 1/(2 M1)]`. Too small loses the rate, too large a
        constant: err large.
    width : δ <= 1/2, the probe width of the first stencil, on the unit cube.
    holder : α in (0, 2], the smoothness of the payoff in the context.
    start : the first decision, in decision units; default the centre.
    bins : K per context dimension: a number, `"printed"`, `"consistent"` or `"lipschitz"`.
    probe : `"forward"`, `"alternate"` (the sign alternates) or `"central"`.
    average : Polyak averaging: `recommend` and the next centre are the iterates' average.
    memory : keep about this many decisions of the policy in mind, for a payoff that drifts.
    ttl, ttl_seconds, missing : what becomes of decisions without a payoff (docs/production.md).

    >>> policy = StaticKWSA(Box([18], [90]), Box([1.0], [9.0]), horizon=10_000, curvature=2.0)
    >>> decision = policy.ask([37])
    >>> decision.value
    array([5.])
    >>> policy.tell(decision, 3.2)
    """

    def __init__(
        self,
        context: Box,
        decision: Box,
        *,
        horizon: int | None = None,
        curvature: float | None = None,
        step: float | None = None,
        width: float = 0.2,
        holder: float = 1.0,
        start: ArrayLike | Mapping[str, float] | None = None,
        bins: int | str = "printed",
        probe: Probe = "forward",
        average: bool = False,
        memory: int | None = None,
        ttl: int | None = TTL,
        ttl_seconds: float | None = None,
        missing: float | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        settings = _shared(horizon, curvature, step, width, holder, probe, average, memory)
        if isinstance(bins, str):
            checks.choice("bins", bins, dict.fromkeys(schedules.BINS))
        else:
            bins = checks.whole("bins", bins, 1, 10**9)
        super().__init__(
            context,
            decision,
            start=start,
            rng=rng,
            settings=settings | {"bins": bins},
            ttl=ttl,
            ttl_seconds=ttl_seconds,
            missing=missing,
        )

    def _design(self, horizon: int | None, hints: Hints | None) -> tuple[Grid, KieferWolfowitz]:
        settings, dx, dy = self.settings, self.context.dim, self.decision.dim
        bins = settings["bins"]
        if isinstance(bins, str):
            horizon = checks.needed(
                "horizon", settings["horizon"] or horizon, f"for bins={bins!r}"
            )
            bins = schedules.bins(bins, horizon, dx, dy, settings["holder"])
        return Grid(dx, bins), _learner(settings, dy, hints, keep_count=False)


class AdaptiveKWSA(BinnedPolicy):
    """Kiefer–Wolfowitz in bins that split in all dimensions as payoffs come in (Algorithm 3).

    Parameters as for `StaticKWSA`, and instead of `bins`:

    depth : L, the deepest level: a number, `"printed"` or `"consistent"`.
    split_after : n_l, the stencils that a bin of level l completes before it splits: `"text"`,
        `"appendix"` (needs `curvature_max`), `"lipschitz"`, or one number per level.
    inherit : a child starts at its parent's iterate (`"iterate"`), or continues its count as well
        (`"iterate-and-count"`).
    curvature_max : M5, the largest curvature on the unit cube.

    >>> policy = AdaptiveKWSA(Box.unit(1), Box.unit(1), horizon=1000, curvature=2.0)
    >>> for x in (0.2, 0.3, 0.1, 0.8):  # the first stencil, two decisions, splits the root
    ...     policy.tell(policy.ask([x]), 1.0)
    >>> [(b.low.tolist(), b.high.tolist(), b.level) for b in policy.bins()]
    [([0.0], [0.5], 1), ([0.5], [1.0], 1)]
    """

    def __init__(
        self,
        context: Box,
        decision: Box,
        *,
        horizon: int | None = None,
        curvature: float | None = None,
        step: float | None = None,
        width: float = 0.2,
        holder: float = 1.0,
        start: ArrayLike | Mapping[str, float] | None = None,
        depth: int | str = "printed",
        split_after: str | Sequence[int] = "text",
        probe: Probe = "forward",
        inherit: Inherit = "iterate",
        average: bool = False,
        curvature_max: float | None = None,
        memory: int | None = None,
        ttl: int | None = TTL,
        ttl_seconds: float | None = None,
        missing: float | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        settings = _shared(horizon, curvature, step, width, holder, probe, average, memory)
        checks.choice("inherit", inherit, options.INHERITS)
        if isinstance(depth, str):
            checks.choice("depth", depth, dict.fromkeys(schedules.DEPTHS))
        else:
            depth = checks.whole("depth", depth, 0, 50)
        if isinstance(split_after, str):
            checks.choice("split_after", split_after, dict.fromkeys(schedules.SPLITS))
        else:
            split_after = checks.wholes("split_after", split_after, 1)
        if curvature_max is not None:
            curvature_max = checks.number("curvature_max", curvature_max)
        settings |= {
            "depth": depth,
            "split_after": split_after,
            "inherit": inherit,
            "curvature_max": curvature_max,
        }
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

    def _design(self, horizon: int | None, hints: Hints | None) -> tuple[Tree, KieferWolfowitz]:
        settings, dx, dy = self.settings, self.context.dim, self.decision.dim
        depth, holder = settings["depth"], settings["holder"]
        if isinstance(depth, str):
            horizon = checks.needed(
                "horizon", settings["horizon"] or horizon, f"for depth={depth!r}"
            )
            depth = schedules.depth(depth, horizon, dx, dy, holder)
        largest = settings["curvature_max"]
        if largest is None and hints is not None:
            largest = hints.curvature_max
        levels = depth if dx > 0 else 0
        split_after = schedules.split_after(settings["split_after"], levels, holder, largest)
        keep_count = options.INHERITS[settings["inherit"]]
        tree = Tree(dx, np.array(split_after, np.float64))
        return tree, _learner(settings, dy, hints, keep_count)
