"""Kiefer–Wolfowitz stochastic approximation in one bin (Algorithm 1).

Legend: ỹ the iterate, n the stencil (from 1), a_n = a/n the step, c_n = δ n^(-1/4) the width, G
the gradient estimate, Z the payoffs of a stencil. docs/reading.md explains each "reading N".

Many stencils may be open at once, each with its own centre, width and signs. One that is completed
moves the iterate of that moment, by a step that is smaller the more steps were made since it was
opened (docs/production.md). A slot whose decision is forgotten is handed out again before any new
stencil is opened.
"""

import math
from typing import NamedTuple

import numpy as np

from continuarm.jit import Array, compiled, copy_into, fill
from continuarm.learners.protocol import FULL, Learner, give_back, register, take

__all__ = ["ALTERNATE", "CENTRAL", "FORWARD", "KieferWolfowitz"]

FORWARD, ALTERNATE, CENTRAL = 0, 1, 2

# a row: numbers, then the iterate, then (with `average`) the average of the iterates. WAITING is a
# chain of stencils in which slots are to be handed out again.
COUNT, DONE, OPENED, NEWEST, NEXT, WAITING, ITERATE = 0, 1, 2, 3, 4, 5, 6
# a stencil in the pool: numbers, then centre, signed offsets, payoffs (NaN: returned)
OPENED_AT, TOLD, RETURNED, LINK, CENTRE = 0, 1, 2, 3, 4
STALE = 4.0  # a gradient that is τ steps old moves by a/(n + 4τ)
MOST_PLACED = 20.0  # steps that a log can stand for: it may be wrong
SLOT_BITS = 20  # a ticket is the stencil's row in the pool and the slot in the stencil


class KieferWolfowitz(NamedTuple):
    """Configuration: one gradient step per stencil of `dy + 1` decisions (`2 dy` if central)."""

    dy: int
    step: float  # a
    width: float  # δ
    probe: int = FORWARD
    keep_count: bool = False  # a child continues its parent's n
    average: bool = False
    memory: float = 0.0  # payoffs of the policy after which a step counts a third; 0: all count


@compiled
def _slots(cfg: KieferWolfowitz) -> int:
    return 2 * cfg.dy if cfg.probe == CENTRAL else cfg.dy + 1


@compiled
def _offsets(cfg: KieferWolfowitz) -> int:
    return 2 * cfg.dy if cfg.probe == CENTRAL else cfg.dy


def width(cfg: KieferWolfowitz) -> int:
    return ITERATE + cfg.dy * (2 if cfg.average else 1)


def pool_width(cfg: KieferWolfowitz) -> int:
    return int(CENTRE + cfg.dy + _offsets(cfg) + _slots(cfg))


def init(cfg: KieferWolfowitz, row: Array, start: Array) -> None:
    row[:] = 0.0
    row[COUNT] = 1.0  # a_n = a/n: the first stencil is n = 1 (reading 4)
    row[NEXT] = _slots(cfg)
    row[ITERATE : ITERATE + cfg.dy] = start
    if cfg.average:
        row[ITERATE + cfg.dy :] = start


@compiled
def _centre(cfg: KieferWolfowitz) -> int:
    """Where in the row the best known decision stands."""
    return ITERATE + cfg.dy if cfg.average else ITERATE


@compiled
def _open(cfg: KieferWolfowitz, row: Array, pool: Array) -> int:
    """Open a stencil at the iterate of this moment; its row in the pool, or FULL."""
    index = take(pool)
    if index == FULL:
        return FULL
    stencil = pool[index]
    dy, centre, count = cfg.dy, _centre(cfg), row[COUNT]
    offsets = CENTRE + dy
    c = cfg.width / np.sqrt(np.sqrt(count))  # c_n = δ n^(-1/4) (Prop. 1)
    sign = -1.0 if cfg.probe == ALTERNATE and row[OPENED] % 2 == 1 else 1.0
    stencil[OPENED_AT] = row[DONE]
    stencil[TOLD] = 0.0
    stencil[RETURNED] = 0.0
    fill(stencil[offsets + _offsets(cfg) :], 0.0)
    for i in range(dy):
        y = row[centre + i]
        stencil[CENTRE + i] = y
        if cfg.probe == CENTRAL:  # both probes, each stopped at the edge
            stencil[offsets + 2 * i] = min(y + c, 1.0) - y
            stencil[offsets + 2 * i + 1] = max(y - c, 0.0) - y
        else:  # a probe outside takes the other side (Remark after Alg. 2, reading 5)
            outside = y + sign * c > 1.0 or y + sign * c < 0.0
            stencil[offsets + i] = -sign * c if outside else sign * c
    row[OPENED] += 1.0
    row[NEWEST] = index
    row[NEXT] = 0.0
    return index


@compiled
def ask(
    cfg: KieferWolfowitz, row: Array, pool: Array, u: Array, work: Array, xi: Array, y: Array
) -> int:
    index, slot = int(row[NEWEST]), int(row[NEXT])
    _drop_empty(cfg, row, pool)
    if row[WAITING] > 0.0:
        index = int(row[WAITING])
        slot = _again(cfg, row, pool[index])
    else:
        if slot == _slots(cfg):
            index, slot = _open(cfg, row, pool), 0
            if index == FULL:
                return FULL
        row[NEXT] = slot + 1
    stencil = pool[index]
    dy = cfg.dy
    for i in range(dy):
        y[i] = stencil[CENTRE + i]
    if cfg.probe == CENTRAL:
        y[slot // 2] += stencil[CENTRE + dy + slot]
    elif slot > 0:  # y_t = ỹ_n + c_n e_m (Alg. 1, reading 2)
        y[slot - 1] += stencil[CENTRE + dy + slot - 1]
    return (index << SLOT_BITS) | slot


@compiled
def _drop_empty(cfg: KieferWolfowitz, row: Array, pool: Array) -> None:
    """A stencil all of which was forgotten would only be asked again where the bin once was."""
    index = int(row[WAITING])
    while index > 0 and pool[index, RETURNED] == _slots(cfg):
        row[WAITING] = pool[index, LINK]
        give_back(pool, index)
        index = int(row[WAITING])


@compiled
def _again(cfg: KieferWolfowitz, row: Array, stencil: Array) -> int:
    """A slot of the first waiting stencil, to be handed out again."""
    payoffs, slot = CENTRE + cfg.dy + _offsets(cfg), 0
    while stencil[payoffs + slot] == stencil[payoffs + slot]:  # until NaN
        slot += 1
    stencil[payoffs + slot] = 0.0
    stencil[RETURNED] -= 1.0
    if stencil[RETURNED] == 0.0:
        row[WAITING] = stencil[LINK]
    return slot


@compiled
def tell(
    cfg: KieferWolfowitz,
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
    index, slot = ticket >> SLOT_BITS, ticket & ((1 << SLOT_BITS) - 1)
    stencil = pool[index]
    payoffs = CENTRE + cfg.dy + _offsets(cfg)
    stencil[payoffs + slot] = z
    stencil[TOLD] += 1.0
    if cfg.memory > 0.0:
        row[COUNT] = 1.0 + (row[COUNT] - 1.0) * math.exp(-elapsed / cfg.memory)
    if stencil[TOLD] == _slots(cfg):
        _move(cfg, row, stencil)
        give_back(pool, index)
    elif not asked:
        _drop_if_idle(cfg, row, pool, index)


@compiled
def forget(
    cfg: KieferWolfowitz, row: Array, pool: Array, ticket: int, y: Array, asked: bool
) -> None:
    index, slot = ticket >> SLOT_BITS, ticket & ((1 << SLOT_BITS) - 1)
    stencil = pool[index]
    stencil[CENTRE + cfg.dy + _offsets(cfg) + slot] = math.nan
    stencil[RETURNED] += 1.0
    if not asked:
        _drop_if_idle(cfg, row, pool, index)
    elif stencil[RETURNED] == 1.0:
        stencil[LINK] = row[WAITING]
        row[WAITING] = index


@compiled
def _drop_if_idle(cfg: KieferWolfowitz, row: Array, pool: Array, index: int) -> None:
    """A stencil that cannot be completed any more is given back with its last open slot."""
    handed_out = row[NEXT] if index == row[NEWEST] else float(_slots(cfg))
    if pool[index, TOLD] + pool[index, RETURNED] == handed_out:
        give_back(pool, index)


@compiled
def retire(cfg: KieferWolfowitz, row: Array, pool: Array) -> None:
    newest = int(row[NEWEST])
    if row[NEXT] < _slots(cfg) and pool[newest, RETURNED] == 0.0:
        _drop_if_idle(cfg, row, pool, newest)
    index = int(row[WAITING])
    while index > 0:
        following = int(pool[index, LINK])
        _drop_if_idle(cfg, row, pool, index)
        index = following
    row[WAITING] = 0.0


@compiled
def _move(cfg: KieferWolfowitz, row: Array, stencil: Array) -> None:
    """A completed stencil moves the current iterate."""
    dy, offsets = cfg.dy, CENTRE + cfg.dy
    payoffs = offsets + _offsets(cfg)
    age = row[DONE] - stencil[OPENED_AT]  # τ, 0 when told one by one
    step = cfg.step / (row[COUNT] + STALE * age)  # a_n = a/n
    for i in range(dy):
        if cfg.probe == CENTRAL:
            rise = stencil[payoffs + 2 * i] - stencil[payoffs + 2 * i + 1]
            run = stencil[offsets + 2 * i] - stencil[offsets + 2 * i + 1]
        else:  # entry i of G: probe i minus centre (eq. 4, reading 3)
            rise = stencil[payoffs + 1 + i] - stencil[payoffs]
            run = stencil[offsets + i]
        moved = row[ITERATE + i] + step * (rise / run)  # plus: f is maximised (reading 1)
        row[ITERATE + i] = min(max(moved, 0.0), 1.0)  # Π_Y
        if cfg.average:
            mean = ITERATE + dy + i
            row[mean] += (row[ITERATE + i] - row[mean]) / row[COUNT]
    row[COUNT] += 1.0
    row[DONE] += 1.0


@compiled
def best(cfg: KieferWolfowitz, row: Array, u: Array, work: Array, y: Array) -> None:
    centre = _centre(cfg)
    for i in range(cfg.dy):
        y[i] = row[centre + i]


@compiled
def inherit(
    cfg: KieferWolfowitz, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    """A child starts at its parent's iterate (reading 6), with or without its count."""
    fill(child, 0.0)
    child[NEXT] = _slots(cfg)
    child[COUNT] = parent[COUNT] if cfg.keep_count else 1.0
    centre = _centre(cfg)
    for i in range(cfg.dy):
        child[ITERATE + i] = parent[ITERATE + i] if cfg.keep_count else parent[centre + i]
        child[centre + i] = parent[centre + i]


@compiled
def place(cfg: KieferWolfowitz, row: Array, y: Array, payoffs: float) -> None:
    row[COUNT] = 1.0 + min(payoffs / _slots(cfg), MOST_PLACED)
    copy_into(row[ITERATE : ITERATE + cfg.dy], y)
    if cfg.average:
        copy_into(row[ITERATE + cfg.dy :], y)


@compiled
def progress(cfg: KieferWolfowitz, row: Array) -> int:
    return int(row[DONE])


def holds(cfg: KieferWolfowitz, pool: Array, ticket: int) -> bool:
    index, slot = ticket >> SLOT_BITS, ticket & ((1 << SLOT_BITS) - 1)
    return bool(0 < index < pool[0, 1] <= len(pool) and slot < _slots(cfg))


register(
    KieferWolfowitz,
    Learner(
        width=width,
        pool_width=pool_width,
        draws=lambda cfg: 0,
        uses_context=lambda cfg: False,
        uses_gradient=lambda cfg: False,
        init=init,
        ask=ask,
        tell=tell,
        best=best,
        inherit=inherit,
        progress=progress,
        place=place,
        holds=holds,
        forget=forget,
        retire=retire,
    ),
)
