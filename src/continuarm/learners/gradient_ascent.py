"""Robbins–Monro stochastic approximation in one bin (the Remark after Theorem 1).

The caller returns an unbiased gradient with each payoff, so every decision is a step and no probe
is needed. Legend: ỹ the iterate, n the step (from 1), a_n = a/n.
"""

import math
from typing import NamedTuple

from continuarm.jit import Array, compiled, copy_into, fill
from continuarm.learners.protocol import ALONE, Learner, register

__all__ = ["GradientAscent"]

COUNT, DONE, ITERATE = 0, 1, 2  # a row: numbers, then the iterate, then the average


MOST_PLACED = 20.0  # steps that a log can stand for: it may be wrong


class GradientAscent(NamedTuple):
    """Configuration: one gradient step per decision."""

    dy: int
    step: float  # a
    keep_count: bool = False
    average: bool = False
    memory: float = 0.0  # as in Kiefer–Wolfowitz


def width(cfg: GradientAscent) -> int:
    return ITERATE + cfg.dy * (2 if cfg.average else 1)


def init(cfg: GradientAscent, row: Array, start: Array) -> None:
    row[:] = 0.0
    row[COUNT] = 1.0
    row[ITERATE : ITERATE + cfg.dy] = start
    if cfg.average:
        row[ITERATE + cfg.dy :] = start


@compiled
def _centre(cfg: GradientAscent) -> int:
    return ITERATE + cfg.dy if cfg.average else ITERATE


@compiled
def ask(
    cfg: GradientAscent, row: Array, pool: Array, u: Array, work: Array, xi: Array, y: Array
) -> int:
    centre = _centre(cfg)
    for i in range(cfg.dy):
        y[i] = row[centre + i]
    return ALONE


@compiled
def tell(
    cfg: GradientAscent,
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
    if cfg.memory > 0.0:
        row[COUNT] = 1.0 + (row[COUNT] - 1.0) * math.exp(-elapsed / cfg.memory)
    step = cfg.step / row[COUNT]
    for i in range(cfg.dy):
        moved = row[ITERATE + i] + step * gradient[i]
        row[ITERATE + i] = min(max(moved, 0.0), 1.0)  # Π_Y
        if cfg.average:
            mean = ITERATE + cfg.dy + i
            row[mean] += (row[ITERATE + i] - row[mean]) / row[COUNT]
    row[COUNT] += 1.0
    row[DONE] += 1.0


@compiled
def best(cfg: GradientAscent, row: Array, u: Array, work: Array, y: Array) -> None:
    centre = _centre(cfg)
    for i in range(cfg.dy):
        y[i] = row[centre + i]


@compiled
def inherit(
    cfg: GradientAscent, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    fill(child, 0.0)
    child[COUNT] = parent[COUNT] if cfg.keep_count else 1.0
    centre = _centre(cfg)
    for i in range(cfg.dy):
        child[ITERATE + i] = parent[ITERATE + i] if cfg.keep_count else parent[centre + i]
        child[centre + i] = parent[centre + i]


@compiled
def place(cfg: GradientAscent, row: Array, y: Array, payoffs: float) -> None:
    row[COUNT] = 1.0 + min(payoffs / (1.0 + cfg.dy), MOST_PLACED)
    copy_into(row[ITERATE : ITERATE + cfg.dy], y)
    if cfg.average:
        copy_into(row[ITERATE + cfg.dy :], y)


@compiled
def progress(cfg: GradientAscent, row: Array) -> int:
    return int(row[DONE])


register(
    GradientAscent,
    Learner(
        width=width,
        pool_width=lambda cfg: 3,
        draws=lambda cfg: 0,
        uses_context=lambda cfg: False,
        uses_gradient=lambda cfg: True,
        init=init,
        ask=ask,
        tell=tell,
        best=best,
        inherit=inherit,
        progress=progress,
        place=place,
    ),
)
