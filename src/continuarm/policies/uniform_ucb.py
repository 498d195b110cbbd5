"""The paper's baseline: a grid of contexts times a grid of decisions, UCB in each bin."""

from typing import Any

import numpy as np

from continuarm import checks, schedules
from continuarm.box import Box
from continuarm.errors import SettingsError
from continuarm.learners.grid_ucb import GridUCB
from continuarm.partitions.grid import Grid
from continuarm.policies.open_decisions import TTL
from continuarm.policies.policy import BinnedPolicy, Hints

__all__ = ["UniformUCB"]

MOST_ARMS = 2**24


class UniformUCB(BinnedPolicy):
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
    ttl, ttl_seconds, missing : as for `StaticKWSA`.

    >>> policy = UniformUCB(Box.unit(1), Box.unit(2), bins=1, arms=2)
    >>> [policy.ask([0.5]).value.tolist() for _ in range(4)]
    [[0.25, 0.25], [0.25, 0.75], [0.75, 0.25], [0.75, 0.75]]
    """

    def __init__(
        self,
        context: Box,
        decision: Box,
        *,
        horizon: int | None = None,
        holder: float = 1.0,
        bins: int | None = None,
        arms: int | None = None,
        scale: float = 1.0,
        ttl: int | None = TTL,
        ttl_seconds: float | None = None,
        missing: float | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        settings: dict[str, Any] = {
            "horizon": None if horizon is None else checks.whole("horizon", horizon, 1),
            "holder": checks.number("holder", holder, most=2.0),
            "bins": None if bins is None else checks.whole("bins", bins, 1, 10**9),
            "arms": None if arms is None else checks.whole("arms", arms, 1),
            "scale": checks.number("scale", scale, zero=True),
        }
        super().__init__(
            context,
            decision,
            start=None,
            rng=rng,
            settings=settings,
            ttl=ttl,
            ttl_seconds=ttl_seconds,
            missing=missing,
        )

    def _design(self, horizon: int | None, hints: Hints | None) -> tuple[Grid, GridUCB]:
        settings, dx, dy = self.settings, self.context.dim, self.decision.dim
        bins, arms = settings["bins"], settings["arms"]
        if bins is None or arms is None:
            why = "where `bins` or `arms` is not given"
            horizon = checks.needed("horizon", settings["horizon"] or horizon, why)
            size = schedules.uniform_size(horizon, dx, dy, settings["holder"])
            bins, arms = bins or size, arms or size
        if arms**dy > MOST_ARMS:
            raise SettingsError(
                f"`arms^dy <= {MOST_ARMS}` must hold, the grid does not fit otherwise, "
                f"but got {arms}^{dy}"
            )
        return Grid(dx, bins), GridUCB(dy, arms, settings["scale"])
