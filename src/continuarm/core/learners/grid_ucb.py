"""UCB over a grid of decisions in one bin: the paper's "uniform algorithm" (Section 5).

Each decision of the grid once in index order, then the lowest index that maximises
`mean + scale·√(2 ln N / n)`. Legend: k cells per dimension, N payoffs told in the bin, n of one
arm.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from continuarm import checks
from continuarm.core.compiling import Array, compiled, fill
from continuarm.core.learners.protocol import AS_INCUMBENT, Learner, Read, register
from continuarm.core.request import (
    ALONE,
    NOTHING,
    UNFORESEEN,
    Foreseen,
    Observation,
    Request,
    clip_into,
    is_inside,
)
from continuarm.errors import SettingsError

__all__ = ["GridUCB", "GridUCBConfig"]

MOST_ARMS = 2**24
LARGEST = 5e307  # payoff: the difference of two must stay finite
MOST = 2.0**52  # times
# a row: numbers, then k^dy means, then k^dy values 1/√n (AGAIN for an arm without a payoff whose
# decision was forgotten: it is asked again; WANTED counts them)
ASKED, TOLD, BEST, WANTED, ARMS = 0, 1, 2, 3, 4
AGAIN = -1.0


@dataclass(frozen=True, kw_only=True)
class GridUCB:
    """UCB over the centres of a grid of cells of decisions.

    Parameters
    ----------
    arms : k, the cells per dimension.
    scale : factor of the bonus, 1 for payoffs between 0 and 1.
    """

    arms: int
    scale: float = 1.0

    def __post_init__(self) -> None:
        checks.normalise(
            self,
            arms=checks.whole("arms", self.arms, 1),
            scale=checks.number("scale", self.scale, zero=True),
        )

    def configured(self, dx: int, dy: int) -> "GridUCBConfig":
        """The numbers of these options."""
        if self.arms**dy > MOST_ARMS:
            raise SettingsError(
                f"`arms^dy <= {MOST_ARMS}` must hold, the grid does not fit otherwise, "
                f"but got {self.arms}^{dy}"
            )
        return GridUCBConfig(dy, self.arms, self.scale)


class GridUCBConfig(NamedTuple):
    """The same as numbers."""

    dy: int
    arms: int  # k
    scale: float


@compiled
def _size(cfg: GridUCBConfig) -> int:
    return int(cfg.arms**cfg.dy)


def width(cfg: GridUCBConfig) -> int:
    return int(ARMS + 2 * _size(cfg))


@compiled
def init(cfg: GridUCBConfig, row: Array, start: Array) -> None:
    fill(row, 0.0)
    fill(row[ARMS : ARMS + _size(cfg)], -np.inf)  # an arm without a payoff is never the maximum
    row[BEST] = _arm(cfg, start)


@compiled
def _decision(cfg: GridUCBConfig, arm: int, y: Array) -> None:
    """The centre of cell `arm`, the last dimension running fastest."""
    for i in range(cfg.dy - 1, -1, -1):
        y[i] = (arm % cfg.arms + 0.5) / cfg.arms
        arm //= cfg.arms


@compiled
def _arm(cfg: GridUCBConfig, y: Array) -> int:
    arm = 0
    for i in range(cfg.dy):
        arm = arm * cfg.arms + min(int(y[i] * cfg.arms), cfg.arms - 1)
    return arm


@compiled
def _argmax(means: Array, roots: Array, bonus: float) -> int:
    """The lowest index of the highest value; even and odd arms apart, which do not wait."""
    even, odd, index, other, n = -np.inf, -np.inf, 0, 0, means.shape[0]
    for pair in range(n // 2):
        arm = 2 * pair
        one, two = means[arm] + bonus * roots[arm], means[arm + 1] + bonus * roots[arm + 1]
        if one > even:
            even, index = one, arm
        if two > odd:
            odd, other = two, arm + 1
    if n % 2 == 1 and means[n - 1] + bonus * roots[n - 1] > even:
        even, index = means[n - 1] + bonus * roots[n - 1], n - 1
    return other if odd > even or (odd == even and other < index) else index


@compiled
def decide(
    cfg: GridUCBConfig, row: Array, pool: Array, request: Request, work: Array, y: Array
) -> int:
    if not request.region.whole:
        best(cfg, row, request, work, y)
        return NOTHING
    size = _size(cfg)
    if row[ASKED] < size:
        arm = int(row[ASKED])
    elif row[WANTED] > 0.0:
        arm = 0
        while row[ARMS + size + arm] != AGAIN:
            arm += 1
    elif row[TOLD] == 0.0:
        arm = int(row[ASKED]) % size
    else:
        bonus = cfg.scale * np.sqrt(2.0 * np.log(row[TOLD]))
        arm = _argmax(row[ARMS : ARMS + size], row[ARMS + size :], bonus)
    _decision(cfg, arm, y)
    return ALONE


@compiled
def asked(cfg: GridUCBConfig, row: Array, pool: Array, ticket: int, y: Array) -> bool:
    size = _size(cfg)
    if row[ASKED] >= size and row[WANTED] > 0.0:
        row[ARMS + size + _arm(cfg, y)] = 0.0
        row[WANTED] -= 1.0
    row[ASKED] += 1.0
    return True


@compiled
def tell(cfg: GridUCBConfig, row: Array, pool: Array, seen: Observation, work: Array) -> Foreseen:
    z = seen.z
    arm, size = ARMS + _arm(cfg, seen.y), _size(cfg)
    n = 1.0
    if row[arm] == -np.inf:
        row[arm] = z
        if row[arm + size] == AGAIN:
            row[WANTED] -= 1.0
    else:
        n = np.rint(1.0 / (row[arm + size] * row[arm + size])) + 1.0
        row[arm] += (z - row[arm]) / n
    row[arm + size] = 1.0 / np.sqrt(n)
    row[TOLD] += 1.0
    return UNFORESEEN


@compiled
def forget(
    cfg: GridUCBConfig, row: Array, pool: Array, ticket: int, y: Array, is_bin: bool
) -> None:
    arm, size = ARMS + _arm(cfg, y), _size(cfg)
    if row[arm] == -np.inf and row[arm + size] != AGAIN:
        row[arm + size] = AGAIN
        row[WANTED] += 1.0


@compiled
def _best_arm(cfg: GridUCBConfig, row: Array) -> int:
    """The arm of the highest mean; before any payoff the cell of the start."""
    size = _size(cfg)
    if row[TOLD] == 0.0:
        return int(row[BEST])
    return _argmax(row[ARMS : ARMS + size], row[ARMS + size :], 0.0)


@compiled
def best(cfg: GridUCBConfig, row: Array, request: Request, work: Array, y: Array) -> None:
    region, mean, arm = request.region, -np.inf, -1
    if not region.whole:  # the best of those that it allows
        for k in range(_size(cfg)):
            if row[ARMS + k] > mean:
                _decision(cfg, k, y)
                if is_inside(region, y):
                    mean, arm = row[ARMS + k], k
    _decision(cfg, arm if arm >= 0 else _best_arm(cfg, row), y)
    clip_into(region, y)


@compiled
def inherit(
    cfg: GridUCBConfig, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    """A child starts afresh; until it has a payoff it answers with its parent's best arm."""
    arm = _best_arm(cfg, parent)
    fill(child, 0.0)
    fill(child[ARMS : ARMS + _size(cfg)], -np.inf)
    child[BEST] = arm


@compiled
def progress(cfg: GridUCBConfig, row: Array) -> int:
    return int(row[TOLD])


def explain(cfg: GridUCBConfig, row: Array, request: Request, centre: Array) -> dict[str, Any]:
    arm, size = ARMS + _best_arm(cfg, row), _size(cfg)
    told = row[TOLD] > 0.0 and row[arm + size] > 0.0
    times = round(float(row[arm + size]) ** -2) if told else 0
    return {"mean": float(row[arm]) if told else None, "times": times}


def fits(cfg: GridUCBConfig, read: Read) -> bool:
    size, rows = int(_size(cfg)), read.rows
    numbers, means, roots = rows[:, :ARMS], rows[:, ARMS : ARMS + size], rows[:, ARMS + size :]
    whole = (numbers >= 0).all() and (numbers < MOST).all() and (numbers % 1 == 0).all()
    tried = abs(means) <= LARGEST
    known = (tried | (means == -np.inf)).all() and (tried.any(axis=1) == (rows[:, TOLD] > 0)).all()
    told = ((roots >= MOST**-0.5) & (roots <= 1)) == tried
    untold = np.isin(roots[~tried], (0.0, AGAIN)).all()
    wanted = (roots == AGAIN).sum(axis=1) == rows[:, WANTED]
    best = (numbers[:, BEST] < size).all()
    return bool(whole and best and known and told.all() and untold and wanted.all())


def unvisited(cfg: GridUCBConfig) -> dict[str, Any]:
    return AS_INCUMBENT | {"cells": cfg.arms}


register(
    GridUCBConfig,
    Learner.of(
        globals(),
        counts_asking=lambda cfg: True,
        largest_payoff=LARGEST,
    ),
)
