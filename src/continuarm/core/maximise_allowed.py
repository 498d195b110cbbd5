"""The best allowed decision of a problem, found numerically from the best one of its box.

Quadratics are fitted by differences, and their peaks among what coupled limits leave are gone to,
until nothing is gained: right where the payoff is smooth and concave. Spaced values are then tried
one by one where they are few, else neighbours for as long as one is better. Legend: v = 2y - 1 the
decision in [-1, 1]^d.
"""

from typing import Any

import numpy as np

from continuarm.core.allowed.bundles import ANY, FIRST, LAST, STEP, TEN
from continuarm.core.allowed.compiled import best, nearest, room_for, to_units
from continuarm.core.compiling import Array, compiled_allocating

__all__ = ["maximise_allowed"]

Bundle = Any  # what is allowed, of arrays

DIFFERENCE = 1e-4
ROUNDS, HALVINGS = 40, 30
STILL = 1e-10
MOST_TRIED = 10_000  # combinations of spaced values


@compiled_allocating
def _value(mean: Any, x: Array, edges: Array, v: Array, y: Array) -> float:
    for j in range(v.shape[0]):
        low, high = edges[0, j], edges[1, j]
        y[j] = min(max(low + (0.5 + 0.5 * v[j]) * (high - low), low), high)
    return mean(x, y)  # type: ignore[no-any-return]


@compiled_allocating
def _fit(
    mean: Any, x: Array, edges: Array, v: Array, slope: Array, bends: Array, twists: Array
) -> None:
    """The quadratic through differences at v; its slope is that at 0."""
    d, h, k = v.shape[0], DIFFERENCE, 0
    at, y, hessian = np.empty(d), np.empty(d), np.empty((d, d))
    for j in range(d):
        at[j] = min(max(v[j], 2.0 * h - 1.0), 1.0 - 2.0 * h)
    centre, middle = at.copy(), _value(mean, x, edges, at, y)
    for j in range(d):
        at[j] = centre[j] + h
        above = _value(mean, x, edges, at, y)
        at[j] = centre[j] - h
        below = _value(mean, x, edges, at, y)
        at[j] = centre[j]
        slope[j] = (above - below) / (2.0 * h)
        hessian[j, j] = bends[j] = (above - 2.0 * middle + below) / (h * h)
    for i in range(d):
        for j in range(i + 1, d):
            total = 0.0
            for one, two, sign in ((h, h, 1.0), (h, -h, -1.0), (-h, h, -1.0), (-h, -h, 1.0)):
                at[i], at[j] = centre[i] + one, centre[j] + two
                total += sign * _value(mean, x, edges, at, y)
            at[i], at[j] = centre[i], centre[j]
            twists[k] = hessian[i, j] = hessian[j, i] = total / (4.0 * h * h)
            k += 1
    for i in range(d):
        for j in range(d):
            slope[i] -= hessian[i, j] * centre[j]


@compiled_allocating
def _climb(
    mean: Any, x: Array, free: Bundle, low: Array, high: Array, work: Array, v: Array
) -> float:
    """Climb from v between low and high and coupled limits; the value reached."""
    d, edges = v.shape[0], free.edges
    slope, bends, trial, y = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    twists, peak = np.empty(d * (d - 1) // 2), np.empty(d)
    value = _value(mean, x, edges, v, y)
    for _ in range(ROUNDS):
        _fit(mean, x, edges, v, slope, bends, twists)
        if not best(free, slope, bends, twists, low, high, work, peak):
            break
        part, moved = 1.0, 0.0
        for _ in range(HALVINGS):
            for j in range(d):
                trial[j] = v[j] + part * (peak[j] - v[j])
            higher = _value(mean, x, edges, trial, y)
            if higher > value:
                for j in range(d):
                    moved = max(moved, abs(trial[j] - v[j]))
                    v[j] = trial[j]
                value = higher
                break
            part /= 2.0
        if moved <= STILL:
            break
    return value


@compiled_allocating
def _try(
    mean: Any,
    x: Array,
    free: Bundle,
    allowed: Bundle,
    whole: Array,
    work: Array,
    v: Array,
    value: Array,
    least: float,
) -> float:
    """The best decision with these numbers of spaced values: its payoff, itself in units.

    -inf, if there is none, or none above `least`.
    """
    d = v.shape[0]
    low, high, fixed = np.full(d, -1.0), np.ones(d), True
    lowest, highest = allowed.edges[0].copy(), allowed.edges[1].copy()
    for j in range(d):
        c, bottom, top = allowed.coordinates[j], allowed.edges[0, j], allowed.edges[1, j]
        if c[STEP] == ANY:
            fixed = False
        else:
            lowest[j] = highest[j] = (c[FIRST] + whole[j] * c[STEP]) / c[TEN]
            v[j] = low[j] = high[j] = 2.0 * (lowest[j] - bottom) / (top - bottom) - 1.0
    if not fixed:
        if not nearest(free, v, low, high, work, v):
            return -np.inf
        _climb(mean, x, free, low, high, work, v)
    elif mean(x, lowest) <= least:
        return -np.inf
    if not to_units(allowed, v, lowest, highest, work, value):
        return -np.inf
    return mean(x, value)  # type: ignore[no-any-return]


@compiled_allocating
def _try_all(
    mean: Any, x: Array, free: Bundle, allowed: Bundle, work: Array, v: Array, value: Array
) -> float:
    d, highest, trial, at = v.shape[0], -np.inf, np.empty(v.shape[0]), v.copy()
    whole = np.zeros(d)
    while True:
        for j in range(d):
            at[j] = v[j]
        found = _try(mean, x, free, allowed, whole, work, at, trial, highest)
        if found > highest:
            highest = found
            for j in range(d):
                value[j] = trial[j]
        j = 0
        while j < d:
            if allowed.coordinates[j, STEP] != ANY and whole[j] < allowed.coordinates[j, LAST]:
                whole[j] += 1.0
                break
            whole[j] = 0.0
            j += 1
        if j == d:
            return highest


@compiled_allocating
def _number(allowed: Bundle, j: int, value: float) -> float:
    c = allowed.coordinates[j]
    return float(np.floor((value * c[TEN] - c[FIRST]) / c[STEP] + 0.5)) if c[STEP] != ANY else 0.0


@compiled_allocating
def _search(
    mean: Any, x: Array, free: Bundle, allowed: Bundle, work: Array, v: Array, value: Array
) -> float:
    """From the best of the fitted quadratic to neighbours, one step or two, that are better."""
    d = v.shape[0]
    slope, bends, twists = np.empty(d), np.empty(d), np.empty(d * (d - 1) // 2)
    whole, at, trial = np.empty(d), v.copy(), np.empty(d)
    _fit(mean, x, allowed.edges, v, slope, bends, twists)
    low, high = np.full(d, -1.0), np.ones(d)
    best(allowed, slope, bends, twists, low, high, work, at)
    to_units(allowed, at, allowed.edges[0].copy(), allowed.edges[1].copy(), work, value)
    for j in range(d):
        whole[j] = _number(allowed, j, value[j])
    highest = _try(mean, x, free, allowed, whole, work, at, value, -np.inf)
    moved = True
    while moved:
        moved = False
        for i in range(d):
            for j in range(d):
                for one in (-1.0, 0.0, 1.0):
                    for two in (-1.0, 1.0):
                        if i == j and one != 0.0:
                            continue
                        whole[i] += one
                        whole[j] += two
                        inside = True
                        for k in range(d):
                            inside = inside and 0.0 <= whole[k] <= allowed.coordinates[k, LAST]
                        found = -np.inf
                        if inside:
                            found = _try(mean, x, free, allowed, whole, work, at, trial, highest)
                        if found > highest:
                            highest, moved = found, True
                            for k in range(d):
                                value[k] = trial[k]
                        else:
                            whole[i] -= one
                            whole[j] -= two
    return highest


@compiled_allocating
def maximise_allowed(mean: Any, x: Array, free: Bundle, allowed: Bundle, value: Array) -> float:
    """Fill the best allowed decision in units, from the best one of the box; its mean payoff.

    free : the same without spacings.
    """
    d = value.shape[0]
    work = np.empty(room_for(d, allowed.bounds.shape[0]))
    low, high, v, count = np.full(d, -1.0), np.ones(d), np.empty(d), 1.0
    for j in range(d):
        bottom, top = allowed.edges[0, j], allowed.edges[1, j]
        v[j] = 2.0 * (value[j] - bottom) / (top - bottom) - 1.0
        if allowed.coordinates[j, STEP] != ANY:
            count *= allowed.coordinates[j, LAST] + 1.0
    nearest(free, v, low, high, work, v)
    _climb(mean, x, free, low, high, work, v)
    if allowed.spaced and count <= MOST_TRIED:
        return _try_all(mean, x, free, allowed, work, v, value)
    if allowed.spaced:
        return _search(mean, x, free, allowed, work, v, value)
    to_units(allowed, v, allowed.edges[0].copy(), allowed.edges[1].copy(), work, value)
    return mean(x, value)  # type: ignore[no-any-return]
