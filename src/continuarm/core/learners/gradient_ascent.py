"""Robbins–Monro stochastic approximation in one bin (the Remark after Theorem 1).

The caller returns an unbiased gradient with each payoff, so every decision is a step and no probe
is needed. Legend: ỹ the iterate, n the step (from 1), a_n = a/n.

A gradient moves the iterate of the moment it is told, by a step that is smaller the more steps
were made since its decision was asked for (docs/production.md). The ticket of a decision is the
number of steps made before it.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from continuarm import checks
from continuarm.core.compiling import Array, compiled
from continuarm.core.learners import iterate
from continuarm.core.learners.iterate import COUNT, DONE, STALE
from continuarm.core.learners.protocol import Learner, Read, register
from continuarm.core.request import UNFORESEEN, Foreseen, Observation, Request

__all__ = ["GradientAscent", "GradientAscentConfig"]

ITERATE = 2  # a row: the numbers of `iterate`, then the iterate and its average


@dataclass(frozen=True, kw_only=True)
class GradientAscent:
    """One gradient step per decision; the caller tells the gradient with the payoff.

    Parameters
    ----------
    step : a, on the unit cube.
    keep_count, average, memory : as for `KieferWolfowitz`.
    """

    step: float
    keep_count: bool = False
    average: bool = False
    memory: int | None = None

    def __post_init__(self) -> None:
        checks.normalise(
            self,
            step=checks.number("step", self.step, least=1e-200),  # or a step may underflow: 0 · ∞
            keep_count=checks.flag("keep_count", self.keep_count),
            average=checks.flag("average", self.average),
            memory=checks.optional(checks.whole, "memory", self.memory, 1),
        )

    def configured(self, dx: int, dy: int) -> "GradientAscentConfig":
        """The numbers of these options."""
        memory = float(self.memory or 0)
        return GradientAscentConfig(dy, self.step, self.keep_count, self.average, memory)


class GradientAscentConfig(NamedTuple):
    """The same as numbers."""

    dy: int
    step: float  # a
    keep_count: bool
    average: bool
    memory: float  # 0: all count


def width(cfg: GradientAscentConfig) -> int:
    return int(ITERATE + iterate.size(cfg.dy, cfg.average))


@compiled
def init(cfg: GradientAscentConfig, row: Array, start: Array) -> None:
    iterate.begin(row, ITERATE, cfg.dy, cfg.average, start)


@compiled
def decide(
    cfg: GradientAscentConfig, row: Array, pool: Array, request: Request, work: Array, y: Array
) -> int:
    best(cfg, row, request, work, y)
    return int(row[DONE])


@compiled
def tell(
    cfg: GradientAscentConfig, row: Array, pool: Array, seen: Observation, work: Array
) -> Foreseen:
    iterate.fade(row, cfg.memory, seen.elapsed)
    age = max(row[DONE] - seen.ticket, 0.0)  # τ, 0 when told one by one
    step = cfg.step / (row[COUNT] + STALE * age)  # a_n = a/n
    for i in range(cfg.dy):
        iterate.move(row, ITERATE, cfg.dy, cfg.average, i, step * seen.gradient[i])
    iterate.count_step(row)
    return UNFORESEEN


@compiled
def best(cfg: GradientAscentConfig, row: Array, request: Request, work: Array, y: Array) -> None:
    iterate.best(row, ITERATE, cfg.dy, cfg.average, request.region, y)


@compiled
def inherit(
    cfg: GradientAscentConfig, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    iterate.hand_down(parent, child, ITERATE, cfg.dy, cfg.average, cfg.keep_count)


@compiled
def place(cfg: GradientAscentConfig, row: Array, y: Array, payoffs: float) -> None:
    if row[DONE] == 0.0:
        iterate.place(row, ITERATE, cfg.dy, cfg.average, y, payoffs, 1 + cfg.dy)


@compiled
def progress(cfg: GradientAscentConfig, row: Array) -> int:
    return int(row[DONE])


def explain(
    cfg: GradientAscentConfig, row: Array, request: Request, centre: Array
) -> dict[str, Any]:
    return {"step": float(cfg.step / row[COUNT])}


def holds(cfg: GradientAscentConfig, pool: Array, ticket: int) -> bool:
    return ticket >= 0


def fits(cfg: GradientAscentConfig, read: Read) -> bool:
    return iterate.fits(read.rows, ITERATE)


register(
    GradientAscentConfig,
    Learner.of(
        globals(),
        uses_gradient=True,
        stands_alone=lambda cfg: False,
        counts_asking=lambda cfg: True,  # a bin that is asked is made: its steps are the clock
    ),
)
