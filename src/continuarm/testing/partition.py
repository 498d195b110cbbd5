"""check_partition: every context lies in one bin, whatever has been learned."""

from functools import partial
from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.core.learners.gradient_ascent import GradientAscent
from continuarm.core.learners.protocol import LearnerOptions
from continuarm.core.learners.response_surface import ResponseSurface
from continuarm.core.partitions import protocol as partition
from continuarm.core.partitions.protocol import PartitionOptions
from continuarm.live.policy import Policy
from continuarm.testing.playing import play
from continuarm.testing.policy import check_policy

__all__ = ["check_partition"]


def check_partition(options: PartitionOptions, *, dx: int = 2, rounds: int = 400) -> None:
    """Check the contract of a partition.

    Parameters
    ----------
    options : what a user would type, such as `Grid(bins=7)`.
    dx : context dimensions.
    rounds : decisions of each trial.

    >>> from continuarm.core.partitions.grid import Grid
    >>> check_partition(Grid(3), rounds=50)
    """
    for learner in _learners(options, dx):
        make = partial(Policy, partition=options, learner=learner)
        context = Box([0.0] * dx, [1.0] * dx, names=[f"x{i}" for i in range(dx)])
        check_policy(make, context=context, rounds=min(rounds, 100))
        policy = make(context, Box.unit(2), rng=0)
        for seed in range(4):
            play(policy, rounds // 4, seed=seed)
            _check_boxes(policy, np.random.default_rng(seed).random((50, dx)))
        serials = [bin_.id for bin_ in policy.bins()]
        assert len(set(serials)) == len(serials), "each bin needs a number of its own"


def _learners(options: PartitionOptions, dx: int) -> list[LearnerOptions]:
    """Those that fit: a split by evidence needs one that scores."""
    surface = ResponseSurface()
    by_evidence = partition.by_evidence(options.configured(dx, surface.configured(dx, 2)))
    return [surface] if by_evidence else [surface, GradientAscent(step=0.1)]


def _check_boxes(policy: Policy, points: Array) -> None:
    """A context lies in the one box that the partition says is its bin's."""
    bins: dict[int, Any] = {bin_.id: bin_ for bin_ in policy.bins()}
    for x in points:
        holding = [
            bin_.id
            for bin_ in bins.values()
            if ((bin_.low <= x) & ((x < bin_.high) | (bin_.high == 1.0))).all()
        ]
        assert len(holding) <= 1, f"{x} lies in the bins {holding}"
        found = policy.explain(x)
        low, high = np.array(found["low"]), np.array(found["high"])
        assert ((low <= x) & (x <= high)).all(), f"{x} must lie in its box, {low} to {high}"
        if found["bin"] is None:
            assert holding == [], f"{x} lies in a bin, but the partition finds none"
        else:
            assert holding == [found["bin"]], f"{x} lies in {holding}, not in {found['bin']}"
            assert np.allclose(low, bins[found["bin"]].low)
            assert np.allclose(high, bins[found["bin"]].high)
