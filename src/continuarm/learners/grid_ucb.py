"""UCB over a grid of decisions in one bin: the paper's "uniform algorithm" (Section 5).

Each decision of the grid once in index order, then the lowest index that maximises
`mean + scale·√(2 ln N / n)`. Legend: k cells per dimension, N payoffs told in the bin, n of one
arm.
"""

from typing import NamedTuple

import numpy as np

from continuarm.jit import Array, compiled, fill
from continuarm.learners.protocol import ALONE, Learner, register

__all__ = ["GridUCB"]

# a row: numbers, then k^dy means, then k^dy values 1/√n (AGAIN for an arm without a payoff whose
# decision was forgotten: it is asked again; WANTED counts them)
ASKED, TOLD, BEST, WANTED, ARMS = 0, 1, 2, 3, 4
AGAIN = -1.0


class GridUCB(NamedTuple):
    """Configuration: decisions at the centres of `arms` cells per dimension."""

    dy: int
    arms: int  # k
    scale: float = 1.0


@compiled
def _size(cfg: GridUCB) -> int:
    return int(cfg.arms**cfg.dy)


def width(cfg: GridUCB) -> int:
    return int(ARMS + 2 * _size(cfg))


def init(cfg: GridUCB, row: Array, start: Array) -> None:
    row[:] = 0.0
    row[ARMS : ARMS + _size(cfg)] = -np.inf  # an arm without a payoff is never the maximum
    y = np.minimum(np.floor(start * cfg.arms), cfg.arms - 1)
    row[BEST] = int(np.polyval(y, cfg.arms))


@compiled
def _decision(cfg: GridUCB, arm: int, y: Array) -> None:
    """The centre of cell `arm`, the last dimension running fastest."""
    for i in range(cfg.dy - 1, -1, -1):
        y[i] = (arm % cfg.arms + 0.5) / cfg.arms
        arm //= cfg.arms


@compiled
def _arm(cfg: GridUCB, y: Array) -> int:
    arm = 0
    for i in range(cfg.dy):
        arm = arm * cfg.arms + min(int(y[i] * cfg.arms), cfg.arms - 1)
    return arm


@compiled
def _argmax(means: Array, roots: Array, bonus: float) -> int:
    best, index = -np.inf, 0
    for arm in range(means.shape[0]):
        value = means[arm] + bonus * roots[arm]
        if value > best:
            best, index = value, arm
    return index


@compiled
def ask(cfg: GridUCB, row: Array, pool: Array, u: Array, work: Array, xi: Array, y: Array) -> int:
    size = _size(cfg)
    if row[ASKED] < size:
        arm = int(row[ASKED])
    elif row[WANTED] > 0.0:
        arm = 0
        while row[ARMS + size + arm] != AGAIN:
            arm += 1
        row[ARMS + size + arm] = 0.0
        row[WANTED] -= 1.0
    elif row[TOLD] == 0.0:
        arm = int(row[ASKED]) % size
    else:
        bonus = cfg.scale * np.sqrt(2.0 * np.log(row[TOLD]))
        arm = _argmax(row[ARMS : ARMS + size], row[ARMS + size :], bonus)
    row[ASKED] += 1.0
    _decision(cfg, arm, y)
    return ALONE


@compiled
def tell(
    cfg: GridUCB,
    row: Array,
    pool: Array,
    ticket: int,
    u: Array,
    work: Array,
    y: Array,
    z: float,
    gradient: Array,
    elapsed: float,
    asked: bool,
) -> None:
    arm, size = ARMS + _arm(cfg, y), _size(cfg)
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


@compiled
def forget(cfg: GridUCB, row: Array, pool: Array, ticket: int, y: Array, asked: bool) -> None:
    arm, size = ARMS + _arm(cfg, y), _size(cfg)
    if row[arm] == -np.inf and row[arm + size] != AGAIN:
        row[arm + size] = AGAIN
        row[WANTED] += 1.0


@compiled
def best(cfg: GridUCB, row: Array, u: Array, work: Array, y: Array) -> None:
    """The arm of the highest mean; before any payoff the cell of the start."""
    size = _size(cfg)
    arm = int(row[BEST])
    if row[TOLD] > 0.0:
        arm = _argmax(row[ARMS : ARMS + size], row[ARMS + size :], 0.0)
    _decision(cfg, arm, y)


@compiled
def inherit(
    cfg: GridUCB, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    """A child starts afresh; until it has a payoff it answers with its parent's best arm."""
    size = _size(cfg)
    arm = int(parent[BEST])
    if parent[TOLD] > 0.0:
        arm = _argmax(parent[ARMS : ARMS + size], parent[ARMS + size :], 0.0)
    fill(child, 0.0)
    fill(child[ARMS : ARMS + size], -np.inf)
    child[BEST] = arm


@compiled
def progress(cfg: GridUCB, row: Array) -> int:
    return int(row[TOLD])


register(
    GridUCB,
    Learner(
        width=width,
        pool_width=lambda cfg: 3,
        draws=lambda cfg: 0,
        uses_context=lambda cfg: False,
        uses_gradient=lambda cfg: False,
        init=init,
        ask=ask,
        tell=tell,
        best=best,
        inherit=inherit,
        progress=progress,
        forget=forget,
    ),
)
