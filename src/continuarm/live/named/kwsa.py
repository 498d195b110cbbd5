"""The paper's policies: Kiefer–Wolfowitz in a grid (Algorithm 2) or a tree (Algorithm 3)."""

from collections.abc import Sequence
from typing import Unpack

from continuarm import checks
from continuarm.box import Box
from continuarm.core.learners.kiefer_wolfowitz import KieferWolfowitz, Probe
from continuarm.core.partitions.grid import Grid
from continuarm.core.partitions.tree import Tree
from continuarm.live.named import paper_options as paper
from continuarm.live.named.options import PolicyOptions
from continuarm.live.named.paper_options import Inherit
from continuarm.live.policy import Policy, Start

__all__ = ["AdaptiveKWSA", "StaticKWSA"]


def StaticKWSA(
    context: Box,
    decision: Box,
    *,
    horizon: int | None = None,
    curvature: float | None = None,
    step: float | None = None,
    width: float = 0.2,
    holder: float = 1.0,
    start: Start | None = None,
    bins: int | str = "printed",
    probe: Probe = "forward",
    average: bool = False,
    memory: int | None = None,
    **options: Unpack[PolicyOptions],
) -> Policy:
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
    start : what is done today, as for `Policy`: the first decision of a bin; default the centre.
    bins : K per context dimension: a number, `"printed"`, `"consistent"` or `"lipschitz"`.
    probe : `"forward"`, `"alternate"` (the sign alternates) or `"central"`.
    average : Polyak averaging: `recommend` and the next centre are the iterates' average.
    memory : keep about this many decisions of the policy in mind, for a payoff that drifts.
    options : `ttl`, `ttl_seconds`, `missing`, `share` and `rng` of `Policy`.

    >>> policy = StaticKWSA(Box([18], [90]), Box([1.0], [9.0]), horizon=10_000, curvature=2.0)
    >>> decision = policy.ask([37])
    >>> decision.value
    array([5.])
    >>> policy.tell(decision, 3.2)
    """
    learner = KieferWolfowitz(
        step=paper.chosen_step(step, curvature),
        width=width,
        probe=probe,
        average=average,
        memory=memory,
    )
    holder = checks.number("holder", holder, most=2.0)  # reading 13
    return Policy(
        context,
        decision,
        partition=Grid(paper.chosen_bins(bins, horizon, context.dim, decision.dim, holder)),
        learner=learner,
        start=start,
        name="StaticKWSA",
        **options,
    )


def AdaptiveKWSA(
    context: Box,
    decision: Box,
    *,
    horizon: int | None = None,
    curvature: float | None = None,
    step: float | None = None,
    width: float = 0.2,
    holder: float = 1.0,
    start: Start | None = None,
    depth: int | str = "printed",
    split_after: str | Sequence[int] = "text",
    probe: Probe = "forward",
    inherit: Inherit = "iterate",
    average: bool = False,
    curvature_max: float | None = None,
    memory: int | None = None,
    **options: Unpack[PolicyOptions],
) -> Policy:
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
    learner = KieferWolfowitz(
        step=paper.chosen_step(step, curvature),
        width=width,
        probe=probe,
        keep_count=paper.keeps_count(inherit),
        average=average,
        memory=memory,
    )
    holder = checks.number("holder", holder, most=2.0)
    splits = paper.chosen_splits(
        depth, split_after, horizon, context.dim, decision.dim, holder, curvature_max
    )
    return Policy(
        context,
        decision,
        partition=Tree(splits),
        learner=learner,
        start=start,
        name="AdaptiveKWSA",
        **options,
    )
