"""What docs/safe-and-quick.md compares: policies, shops, logs, and one run of each."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import continuarm as ca
from benchmarks.recommended_page import NOISY
from continuarm.core.compiling import Array

FAR = ("far-purchase", "far-edge", "far-third")  # the start is far from the best
SHOPS = (*NOISY, "insurance", "three-tariffs", *FAR)
TUNED = ("tuned-already", "tuned-purchase", "tuned-loud")  # the start is the best
WIDE = ("wide-10", "wide-30", "wide-80", "wide-30-loud")
SPREADS = (0.0, 0.03, 0.1)  # of a log around the start, as a part of each side
LOG = 1  # a stream of random numbers apart from those of the run


def today(
    context: ca.Box, decision: ca.Box, *, reach: float | None = 0.1, rng: Any = None
) -> ca.Policy:
    """What `recommended` was at commit 425fb8f."""
    learner = ca.ResponseSurface(reach=reach, bounded=True, level=True, calm=True, degree=5)
    return ca.Policy(context, decision, partition=ca.EvidenceTree(), learner=learner, rng=rng)


def smooth(
    context: ca.Box, decision: ca.Box, *, reach: float | None = 0.1, rng: Any = None
) -> ca.Policy:
    """One smooth surface over all contexts."""
    learner = ca.SmoothSurface(reach=reach)
    return ca.Policy(context, decision, partition=ca.Grid(1), learner=learner, rng=rng)


TODAY, NEW, FREE = "today", "smooth", "smooth, no reach"
POLICIES: dict[str, Callable[..., ca.Policy]] = {
    TODAY: today,
    "today, no reach": partial(today, reach=None),
    NEW: smooth,
    FREE: partial(smooth, reach=None),
}
START = "start"  # always decides for it


class Scale(NamedTuple):
    """After how many decisions is looked; how many rows a log has.

    The last of `shops` and `middle` are where regrets are compared.
    """

    shops: tuple[int, ...]
    middle: int
    wide: tuple[int, ...]
    rows: int


FULL = Scale(
    (30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000), 10_000, (2000, 20_000, 100_000), 10_000
)
QUICK = Scale((30, 100, 300, 1000), 300, (100, 300, 1000), 300)


class Task(NamedTuple):
    """A policy in a world, with or without a log of decisions within `spread` of the start."""

    world: str
    policy: str
    marks: tuple[int, ...]
    rows: int = 0
    spread: float | None = None

    @property
    def key(self) -> str:
        """Under which its runs are kept."""
        return key_of(self.world, self.policy, self.spread)


def key_of(world: str, policy: str, spread: float | None = None) -> str:
    """Under which the runs of a policy in a world are kept."""
    return f"{world} | {policy}" + ("" if spread is None else f" | log within {spread}")


def shops(scale: Scale) -> Iterator[Task]:
    """What the first days cost, and what is lost later."""
    for world in (*SHOPS, *TUNED):
        for policy in (START, *POLICIES):
            yield Task(world, policy, scale.shops)


def wide(scale: Scale) -> Iterator[Task]:
    """Tables of many columns."""
    for world in WIDE:
        for policy in (START, *POLICIES):
            yield Task(world, policy, scale.wide)


def logs(scale: Scale) -> Iterator[Task]:
    """With and without a log."""
    for world in SHOPS:
        for policy in (TODAY, NEW):
            for spread in (None, *SPREADS):
                yield Task(world, policy, (scale.middle,), scale.rows, spread)


def named(box: ca.Box, letter: str) -> ca.Box:
    """The box with names that a log's columns can have."""
    return ca.Box(box.low, box.high, names=[f"{letter}{k}" for k in range(box.dim)])


def log_of(world: ca.Problem, rows: int, spread: float, seed: int) -> dict[str, Array]:
    """Columns of a log whose decisions lie around the centre."""
    rng = np.random.default_rng([seed, LOG])
    x = world.draw_contexts(rng, rows)
    off = rng.uniform(-spread, spread, (rows, world.decision.dim)) * world.decision.span
    y = world.decision.centre + off
    columns = dict(zip(named(world.context, "x").names, x.T, strict=True))
    columns |= dict(zip(named(world.decision, "y").names, y.T, strict=True))
    payoffs = [world.payoff(*row, rng) for row in zip(x, y, strict=True)]
    return columns | {"payoff": np.array(payoffs)}


def taught(
    world: ca.Problem, make: Callable[..., ca.Policy], rows: int, spread: float, seed: int
) -> ca.Policy:
    """A policy that has learned from such a log."""
    policy = make(named(world.context, "x"), named(world.decision, "y"), rng=seed)
    policy.learn_from(log_of(world, rows, spread, seed))
    return policy


def run(task: Task, world: ca.Problem, seed: int) -> dict[str, list[float]]:
    """The regret so far at each mark, and that of `recommend` per decision."""
    policy: Any = "fixed" if task.policy == START else POLICIES[task.policy]
    if task.spread is not None:
        policy = taught(world, policy, task.rows, task.spread, seed)
    found = ca.simulate(
        policy, world, horizon=task.marks[-1], rng=seed, checkpoints=task.marks, workers=1
    )
    regret, recommend = found.regret[0].tolist(), found.recommend_regret[0].tolist()
    return {"regret": regret, "recommend": recommend}
