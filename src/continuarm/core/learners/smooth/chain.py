"""The chain of columns: which there are, in which order, and where rungs end (eq. 5 to 7).

A group is a function of the context times a kind of features of the decision. The chain is the
constants, and then groups, those that are worth most first. What is worth something brings its
neighbours; a pair of contexts enters when payoffs speak for it.
"""

import math

from continuarm.core.compiling import Array, compiled, compiled_large
from continuarm.core.learners.smooth.layout import (
    ABSENT,
    END,
    KINDS,
    LEVEL,
    LOOK,
    MOST_RUNGS,
    NUMBERS,
    SEEN,
    SINCE,
    SLOPES,
    STEP,
    WEIGHT,
    SmoothSurfaceConfig,
    alive_of,
    column_at,
    function_at,
    group_at,
    kind_of,
    lead_of,
    noise_of,
    row_at,
    rung_at,
    size_of,
    sums_at,
    worth_at,
)
from continuarm.core.learners.smooth.triangle import append, swap

__all__ = ["OFTEN", "begin", "hear", "look"]

OFTEN = 1.2  # the order is looked at when payoffs have grown by this factor
MARGIN = 9.0  # in worth: a group goes before another that is worth so much less
NEIGHBOURS = 2.0  # times what noise is worth now and then: a group worth more brings neighbours
STEPS, MANY = 4.0, 3.0  # the same where steps are brought, and payoffs for each column then
SURE = 3.0  # -log of the chance that a pair enters by noise
GRACE = 20.0  # payoffs before what was heard fades
WIDER = 0.5  # each rung has so many more groups, as a part of those before


@compiled_large
def begin(cfg: SmoothSurfaceConfig, row: Array) -> None:
    """The constants, and the groups of the beginning, in a row of zeros."""
    for function in range(cfg.functions):
        for kind in range(KINDS):
            row[worth_at(cfg, function, kind)] = ABSENT
    for kind in range(KINDS):
        append(cfg, row, 0, kind)
    for group in range(cfg.first):
        k = group_at(cfg, group)
        append(cfg, row, int(cfg.table[k]), int(cfg.table[k + 1]))
    _set_ends(cfg, row)


@compiled
def _kind_at(cfg: SmoothSurfaceConfig, row: Array, column: int) -> int:
    return kind_of(cfg, int(row[column_at(column) + 1]))


@compiled
def _worth_of(cfg: SmoothSurfaceConfig, row: Array, column: int) -> int:
    """Where the worth of a column's group stands."""
    return worth_at(cfg, int(row[column_at(column)]), _kind_at(cfg, row, column))


@compiled_large
def _set_ends(cfg: SmoothSurfaceConfig, row: Array) -> None:
    """Rungs end after 0, 1, 2, 3, 4, 6, 9, ... groups, and after all; others are like the last."""
    n, end, groups, rung, wanted = alive_of(row), cfg.features, 0, 0, 1
    row[rung_at(0) + END] = end
    while end < n:
        end += size_of(cfg, _kind_at(cfg, row, end))
        groups += 1
        if groups == wanted or end == n:
            rung = min(rung + 1, MOST_RUNGS - 1)
            row[rung_at(rung) + END] = end
            wanted += max(1, int(WIDER * groups))
    for other in range(rung + 1, MOST_RUNGS):
        for k in range(NUMBERS):
            row[rung_at(other) + k] = row[rung_at(rung) + k]


@compiled_large
def _weigh(cfg: SmoothSurfaceConfig, row: Array) -> None:
    """What each group is worth, given those before it (eq. 5)."""
    alike = (1.0 + cfg.fade) / (1.0 + 2.0 * cfg.fade)  # payoffs of unequal weight are fewer
    unit, column = alike * row[WEIGHT] * noise_of(row, lead_of(row)), cfg.features
    while column < alive_of(row):
        size, total = size_of(cfg, _kind_at(cfg, row, column)), 0.0
        for i in range(column, column + size):
            d = row[row_at(cfg, i) + cfg.size - i]
            total += d * d
        row[_worth_of(cfg, row, column)] = total / unit - size
        column += size


@compiled_large
def _sort(cfg: SmoothSurfaceConfig, row: Array) -> None:
    """Let each group go before those that are worth much less."""
    column = cfg.features
    while column < alive_of(row):
        size, worth = size_of(cfg, _kind_at(cfg, row, column)), row[_worth_of(cfg, row, column)]
        to = column
        while to > cfg.features and row[_worth_of(cfg, row, to - 1)] < worth - MARGIN:
            to -= size_of(cfg, _kind_at(cfg, row, to - 1))
        for i in range(size):
            for k in range(column + i - 1, to + i - 1, -1):
                swap(cfg, row, k)
        column += size


@compiled
def _brings(cfg: SmoothSurfaceConfig, row: Array, parent: int, kind: int, step: bool) -> bool:
    """Whether a function is worth enough to be refined (eq. 6)."""
    if parent < 1:
        return False
    by_chance = 1.0 + math.sqrt(2.0 * size_of(cfg, kind))
    times = STEPS if step else NEIGHBOURS
    return bool(row[worth_at(cfg, parent, kind)] > times * by_chance)


@compiled_large
def _grow(cfg: SmoothSurfaceConfig, row: Array) -> None:
    """Append the neighbours of what is worth something."""
    for function in range(1, cfg.functions):
        k = function_at(function)
        one, two = int(cfg.table[k + 4]), int(cfg.table[k + 5])
        step = cfg.table[k + 1] == STEP
        if step and row[SEEN] < MANY * alive_of(row):
            continue
        for kind in range(KINDS):
            if row[worth_at(cfg, function, kind)] == ABSENT:
                wanted = _brings(cfg, row, one, kind, step) or _brings(cfg, row, two, kind, step)
                if kind == LEVEL:  # a slope that differs has a level that differs
                    wanted = wanted or _brings(cfg, row, function, SLOPES, False)
                if wanted:
                    append(cfg, row, function, kind)


@compiled_large
def hear(cfg: SmoothSurfaceConfig, row: Array, u: Array, features: Array, surprise: float) -> None:
    """What a payoff that was not foreseen, in standard deviations, says for each pair (eq. 7)."""
    keep = 1.0 - 1.0 / (row[SINCE] + GRACE)
    for pair in range(cfg.pairs):
        at = function_at(cfg.functions - cfg.pairs + pair)
        function = u[int(cfg.table[at])] * u[int(cfg.table[at + 2])]
        for feature in range(1 + cfg.dy):
            k = sums_at(cfg, pair, feature)
            x = surprise * function * features[feature]
            row[k] = keep * row[k] + x
            row[k + 1] = keep * keep * row[k + 1] + x * x
    row[SINCE] += 1.0


@compiled_large
def _admit(cfg: SmoothSurfaceConfig, row: Array) -> None:
    """Append the pairs that payoffs speak for, beyond what noise says of the best (eq. 7)."""
    chance = SURE + math.log(2.0 * max(cfg.pairs, 1))
    for pair in range(cfg.pairs):
        function = cfg.functions - cfg.pairs + pair
        for kind in range(SLOPES + 1):
            if row[worth_at(cfg, function, kind)] == ABSENT:
                size, total = size_of(cfg, kind), 0.0
                for j in range(size):
                    k = sums_at(cfg, pair, kind + j)
                    if row[k + 1] > 0.0:
                        total += row[k] * row[k] / row[k + 1]
                if total > size + 2.0 * math.sqrt(size * chance) + 2.0 * chance:
                    append(cfg, row, function, kind)


@compiled_large
def look(cfg: SmoothSurfaceConfig, row: Array) -> None:
    """Order the chain anew now and then: at a number of payoffs that grows by a factor."""
    if row[SEEN] < row[LOOK]:
        return
    row[LOOK] = OFTEN * row[SEEN] + 3.0
    _weigh(cfg, row)
    _admit(cfg, row)
    _grow(cfg, row)
    _sort(cfg, row)
    _set_ends(cfg, row)
