"""Kiefer–Wolfowitz stochastic approximation in one bin (Algorithm 1).

Legend: ỹ the iterate, n the stencil (from 1), a_n = a/n the step, c_n = δ n^(-1/4) the width, G
the gradient estimate, Z the payoffs of a stencil. docs/reading.md explains each "reading N".

Many stencils may be open at once, each with its own centre, width and signs. One that is completed
moves the iterate of that moment, by a step that is smaller the more steps were made since it was
opened (docs/production.md). A slot whose decision is forgotten is handed out again before any new
stencil is opened.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from continuarm import checks
from continuarm.core.compiling import Array, compiled, fill
from continuarm.core.learners import iterate
from continuarm.core.learners.iterate import COUNT, DONE, STALE
from continuarm.core.learners.protocol import (
    Learner,
    Read,
    give_back,
    next_free,
    register,
    take,
)
from continuarm.core.learners.stencil import (
    CENTRE,
    ITERATE,
    LINK,
    NEWEST,
    NEXT,
    OPENED,
    OPENED_AT,
    RETURN,
    RETURNED,
    SLOT_BITS,
    TOLD,
    WAITING,
    Layout,
    stencils_fit,
)
from continuarm.core.request import (
    FULL,
    NOTHING,
    UNFORESEEN,
    Foreseen,
    Observation,
    Request,
)

__all__ = ["KieferWolfowitz", "KieferWolfowitzConfig", "Probe"]

Probe = Literal["forward", "alternate", "central"]
FORWARD, ALTERNATE, CENTRAL = 0, 1, 2
PROBES = {"forward": FORWARD, "alternate": ALTERNATE, "central": CENTRAL}


@dataclass(frozen=True, kw_only=True)
class KieferWolfowitz:
    """One gradient step per stencil: a centre and a probe in each dimension (Algorithm 1).

    Parameters
    ----------
    step : a, on the unit cube.
    width : δ <= 1/2, the probe width of the first stencil, on the unit cube.
    probe : `"forward"`, `"alternate"` (the sign alternates) or `"central"` (both sides).
    keep_count : a child continues its parent's n.
    average : Polyak averaging: the best decision, and the next centre, is the iterates' average.
    memory : payoffs of the policy after which a step counts a third; None: all count.
    """

    step: float
    width: float = 0.2
    probe: Probe = "forward"
    keep_count: bool = False
    average: bool = False
    memory: int | None = None

    def __post_init__(self) -> None:
        checks.normalise(
            self,
            step=checks.number("step", self.step, least=1e-200),  # or a step may underflow: 0 · ∞
            width=checks.number("width", self.width, most=0.5, least=1e-6),  # reading 5
            keep_count=checks.flag("keep_count", self.keep_count),
            average=checks.flag("average", self.average),
            memory=checks.optional(checks.whole, "memory", self.memory, 1),
        )
        checks.choice("probe", self.probe, PROBES)

    def configured(self, dx: int, dy: int) -> "KieferWolfowitzConfig":
        """The numbers of these options."""
        return KieferWolfowitzConfig(
            dy,
            self.step,
            self.width,
            PROBES[self.probe],
            self.keep_count,
            self.average,
            float(self.memory or 0),
        )


class KieferWolfowitzConfig(NamedTuple):
    """The same as numbers: a stencil has `dy + 1` decisions (`2 dy` if central)."""

    dy: int
    step: float  # a
    width: float  # δ
    probe: int
    keep_count: bool
    average: bool
    memory: float  # 0: all count


@compiled
def _slots(cfg: KieferWolfowitzConfig) -> int:
    return 2 * cfg.dy if cfg.probe == CENTRAL else cfg.dy + 1


@compiled
def _offsets(cfg: KieferWolfowitzConfig) -> int:
    return 2 * cfg.dy if cfg.probe == CENTRAL else cfg.dy


@compiled
def _payoffs(cfg: KieferWolfowitzConfig) -> int:
    """Where in a stencil its payoffs stand."""
    return CENTRE + cfg.dy + _offsets(cfg)


def width(cfg: KieferWolfowitzConfig) -> int:
    return int(ITERATE + iterate.size(cfg.dy, cfg.average))


def pool_width(cfg: KieferWolfowitzConfig) -> int:
    return int(_payoffs(cfg) + _slots(cfg))


@compiled
def init(cfg: KieferWolfowitzConfig, row: Array, start: Array) -> None:
    iterate.begin(row, ITERATE, cfg.dy, cfg.average, start)
    row[NEXT] = _slots(cfg)


@compiled
def _width(cfg: KieferWolfowitzConfig, row: Array) -> float:
    """c_n = δ n^(-1/4) (Prop. 1)."""
    return cfg.width / math.sqrt(math.sqrt(row[COUNT]))


@compiled
def _upward(y: float, c: float) -> float:
    """The upper one of both probes, stopped at the edge."""
    return min(y + c, 1.0) - y


@compiled
def decide(
    cfg: KieferWolfowitzConfig, row: Array, pool: Array, request: Request, work: Array, y: Array
) -> int:
    if not request.region.whole:
        best(cfg, row, request, work, y)
        return NOTHING
    dy, slots, dropped = cfg.dy, _slots(cfg), 0
    index = int(row[WAITING])
    while index > 0 and pool[index, RETURNED] == slots:  # `asked` drops it
        dropped, index = index, int(pool[index, LINK])
    if index > 0:
        slot = _returned_slot(cfg, pool[index])
    else:
        index, slot = int(row[NEWEST]), int(row[NEXT])
        if slot == slots:  # `asked` will open a stencil at the iterate
            centre = iterate.centre(ITERATE, dy, cfg.average)
            for i in range(dy):
                y[i] = row[centre + i]
            if cfg.probe == CENTRAL:
                y[0] += _upward(y[0], _width(cfg, row))
            return (dropped if dropped > 0 else next_free(pool)) << SLOT_BITS
    stencil = pool[index]
    for i in range(dy):
        y[i] = stencil[CENTRE + i]
    if cfg.probe == CENTRAL:
        y[slot // 2] += stencil[CENTRE + dy + slot]
    elif slot > 0:  # y_t = ỹ_n + c_n e_m (Alg. 1, reading 2)
        y[slot - 1] += stencil[CENTRE + dy + slot - 1]
    return (index << SLOT_BITS) | slot


@compiled
def _returned_slot(cfg: KieferWolfowitzConfig, stencil: Array) -> int:
    """The first slot that is to be handed out again."""
    payoffs, slot = _payoffs(cfg), 0
    while stencil[payoffs + slot] != RETURN:
        slot += 1
    return slot


@compiled
def asked(cfg: KieferWolfowitzConfig, row: Array, pool: Array, ticket: int, y: Array) -> bool:
    _drop_empty(cfg, row, pool)
    slot = ticket & ((1 << SLOT_BITS) - 1)
    waiting = int(row[WAITING])
    if waiting > 0:
        stencil = pool[waiting]
        stencil[_payoffs(cfg) + slot] = 0.0
        stencil[RETURNED] -= 1.0
        if stencil[RETURNED] == 0.0:
            row[WAITING] = stencil[LINK]
        return True
    if row[NEXT] == _slots(cfg):
        index = take(pool)
        if index == FULL:
            return False
        _open(cfg, row, pool[index])
        row[NEWEST] = index
    row[NEXT] = slot + 1
    return True


@compiled
def _drop_empty(cfg: KieferWolfowitzConfig, row: Array, pool: Array) -> None:
    """A stencil all of which was forgotten would only be asked again where the bin once was."""
    index = int(row[WAITING])
    while index > 0 and pool[index, RETURNED] == _slots(cfg):
        row[WAITING] = pool[index, LINK]
        give_back(pool, index)
        index = int(row[WAITING])


@compiled
def _open(cfg: KieferWolfowitzConfig, row: Array, stencil: Array) -> None:
    """Open a stencil at the iterate of this moment."""
    dy, centre = cfg.dy, iterate.centre(ITERATE, cfg.dy, cfg.average)
    offsets, c = CENTRE + dy, _width(cfg, row)
    sign = -1.0 if cfg.probe == ALTERNATE and row[OPENED] % 2 == 1 else 1.0
    stencil[OPENED_AT] = row[DONE]
    stencil[TOLD] = 0.0
    stencil[RETURNED] = 0.0
    stencil[LINK] = 0.0
    fill(stencil[_payoffs(cfg) :], 0.0)
    for i in range(dy):
        y = row[centre + i]
        stencil[CENTRE + i] = y
        if cfg.probe == CENTRAL:  # both probes, each stopped at the edge
            stencil[offsets + 2 * i] = _upward(y, c)
            stencil[offsets + 2 * i + 1] = max(y - c, 0.0) - y
        else:  # a probe outside takes the other side (Remark after Alg. 2, reading 5)
            outside = y + sign * c > 1.0 or y + sign * c < 0.0
            stencil[offsets + i] = -sign * c if outside else sign * c
    row[OPENED] += 1.0


@compiled
def tell(
    cfg: KieferWolfowitzConfig, row: Array, pool: Array, seen: Observation, work: Array
) -> Foreseen:
    index, slot = seen.ticket >> SLOT_BITS, seen.ticket & ((1 << SLOT_BITS) - 1)
    stencil = pool[index]
    stencil[_payoffs(cfg) + slot] = seen.z
    stencil[TOLD] += 1.0
    iterate.fade(row, cfg.memory, seen.elapsed)
    if stencil[TOLD] == _slots(cfg):
        _move(cfg, row, stencil)
        give_back(pool, index)
    elif not seen.is_bin:
        _drop_if_idle(cfg, row, pool, index)
    return UNFORESEEN


@compiled
def forget(
    cfg: KieferWolfowitzConfig, row: Array, pool: Array, ticket: int, y: Array, is_bin: bool
) -> None:
    index, slot = ticket >> SLOT_BITS, ticket & ((1 << SLOT_BITS) - 1)
    stencil = pool[index]
    stencil[_payoffs(cfg) + slot] = RETURN
    stencil[RETURNED] += 1.0
    if not is_bin:
        _drop_if_idle(cfg, row, pool, index)
    elif stencil[RETURNED] == 1.0:
        stencil[LINK] = row[WAITING]
        row[WAITING] = index


@compiled
def _drop_if_idle(cfg: KieferWolfowitzConfig, row: Array, pool: Array, index: int) -> None:
    """A stencil that cannot be completed any more is given back with its last open slot."""
    handed_out = row[NEXT] if index == row[NEWEST] else float(_slots(cfg))
    if pool[index, TOLD] + pool[index, RETURNED] == handed_out:
        give_back(pool, index)


@compiled
def retire(cfg: KieferWolfowitzConfig, row: Array, pool: Array) -> None:
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
def _move(cfg: KieferWolfowitzConfig, row: Array, stencil: Array) -> None:
    """A completed stencil moves the current iterate."""
    dy, offsets = cfg.dy, CENTRE + cfg.dy
    payoffs = _payoffs(cfg)
    age = max(row[DONE] - stencil[OPENED_AT], 0.0)  # τ, 0 when told one by one
    step = cfg.step / (row[COUNT] + STALE * age)  # a_n = a/n
    for i in range(dy):
        if cfg.probe == CENTRAL:
            rise = stencil[payoffs + 2 * i] - stencil[payoffs + 2 * i + 1]
            run = stencil[offsets + 2 * i] - stencil[offsets + 2 * i + 1]
        else:  # entry i of G: probe i minus centre (eq. 4, reading 3)
            rise = stencil[payoffs + 1 + i] - stencil[payoffs]
            run = stencil[offsets + i]
        change = step * (rise / run)
        iterate.move(row, ITERATE, dy, cfg.average, i, change)  # f is maximised (reading 1)
    iterate.count_step(row)


@compiled
def best(cfg: KieferWolfowitzConfig, row: Array, request: Request, work: Array, y: Array) -> None:
    iterate.best(row, ITERATE, cfg.dy, cfg.average, request.region, y)


@compiled
def inherit(
    cfg: KieferWolfowitzConfig, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    iterate.hand_down(parent, child, ITERATE, cfg.dy, cfg.average, cfg.keep_count)
    child[NEXT] = _slots(cfg)


@compiled
def place(cfg: KieferWolfowitzConfig, row: Array, y: Array, payoffs: float) -> None:
    if row[OPENED] == 0.0:
        iterate.place(row, ITERATE, cfg.dy, cfg.average, y, payoffs, _slots(cfg))


@compiled
def progress(cfg: KieferWolfowitzConfig, row: Array) -> int:
    return int(row[DONE])


def explain(
    cfg: KieferWolfowitzConfig, row: Array, request: Request, centre: Array
) -> dict[str, Any]:
    return {"step": float(cfg.step / row[COUNT]), "width": float(_width(cfg, row))}


def holds(cfg: KieferWolfowitzConfig, pool: Array, ticket: int) -> bool:
    index, slot = ticket >> SLOT_BITS, ticket & ((1 << SLOT_BITS) - 1)
    return bool(0 < index < pool[0, 1] <= len(pool) and slot < _slots(cfg))


def fits(cfg: KieferWolfowitzConfig, read: Read) -> bool:
    return stencils_fit(Layout(cfg.dy, int(_slots(cfg)), int(_payoffs(cfg))), read)


register(
    KieferWolfowitzConfig,
    Learner.of(globals(), stands_alone=lambda cfg: False, counts_asking=lambda cfg: True),
)
