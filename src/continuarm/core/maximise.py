"""The best decision of a problem that does not declare it, found numerically.

A projected quasi-Newton ascent (BFGS with differences for the gradient, bounds held by an active
set), then a compass search. A concave function lies below its tangent plane, so the gradient says
how much there is left to gain in the box; where that is not next to nothing (a kink), the
ellipsoid method goes on, which needs no smoothness. The value found is right to 1e-6.
"""

from typing import Any

import numpy as np

from continuarm.core.compiling import Array, compiled_allocating

__all__ = ["maximise"]

DIFFERENCE = 1e-5
NARROW = 1e-10  # next to a kink
ROUNDS = 200
TOLERANCE = 1e-8  # of the value


@compiled_allocating
def _value(mean: Any, x: Array, low: Array, high: Array, v: Array, y: Array) -> float:
    for i in range(v.shape[0]):
        y[i] = min(max(low[i] + v[i] * (high[i] - low[i]), low[i]), high[i])
    return mean(x, y)  # type: ignore[no-any-return]


@compiled_allocating
def _gradient(
    mean: Any,
    x: Array,
    low: Array,
    high: Array,
    v: Array,
    y: Array,
    gradient: Array,
    difference: float = DIFFERENCE,
) -> None:
    for i in range(v.shape[0]):
        centre = v[i]
        above, below = min(centre + difference, 1.0), max(centre - difference, 0.0)
        v[i] = above
        up = _value(mean, x, low, high, v, y)
        v[i] = below
        gradient[i] = (up - _value(mean, x, low, high, v, y)) / (above - below)
        v[i] = centre


@compiled_allocating
def _direction(inverse: Array, gradient: Array, free: Array, direction: Array) -> float:
    """The quasi-Newton direction in the free dimensions; its slope."""
    slope = 0.0
    for i in range(gradient.shape[0]):
        direction[i] = 0.0
        if free[i] > 0.0:
            for j in range(gradient.shape[0]):
                direction[i] += inverse[i, j] * gradient[j] * free[j]
            slope += direction[i] * gradient[i]
    return slope


@compiled_allocating
def _reset(inverse: Array, scale: float) -> None:
    for i in range(inverse.shape[0]):
        for j in range(inverse.shape[0]):
            inverse[i, j] = scale if i == j else 0.0


@compiled_allocating
def _update(inverse: Array, step: Array, change: Array, work: Array) -> None:
    """BFGS for the negative function: `change` is the fall of the gradient along `step`."""
    dy, curvature, middle = step.shape[0], 0.0, 0.0
    for i in range(dy):
        curvature += step[i] * change[i]
    if curvature <= 1e-14:
        return
    for i in range(dy):
        work[i] = 0.0
        for j in range(dy):
            work[i] += inverse[i, j] * change[j]
        middle += work[i] * change[i]
    for i in range(dy):
        for j in range(dy):
            inverse[i, j] += (
                (1.0 + middle / curvature) * step[i] * step[j]
                - work[i] * step[j]
                - step[i] * work[j]
            ) / curvature


@compiled_allocating
def _compass(
    mean: Any, x: Array, low: Array, high: Array, v: Array, y: Array, best: float
) -> None:
    size = 1e-2
    while size > 1e-8:
        moved = False
        for i in range(v.shape[0]):
            centre = v[i]
            for sign in (1.0, -1.0):
                v[i] = min(max(centre + sign * size, 0.0), 1.0)
                value = _value(mean, x, low, high, v, y)
                if value > best:
                    best, moved = value, True
                    break
                v[i] = centre
        if not moved:
            size /= 4.0


@compiled_allocating
def _to_gain(v: Array, gradient: Array) -> float:
    """What the tangent plane at `v` still promises in the box."""
    total = 0.0
    for i in range(v.shape[0]):
        total += max(gradient[i] * (1.0 - v[i]), -gradient[i] * v[i])
    return total


@compiled_allocating
def _ternary(mean: Any, x: Array, low: Array, high: Array, v: Array, y: Array) -> None:
    below, above, trial = 0.0, 1.0, v.copy()
    for _ in range(100):
        third = (above - below) / 3.0
        trial[0] = below + third
        left = _value(mean, x, low, high, trial, y)
        trial[0] = above - third
        if left < _value(mean, x, low, high, trial, y):
            below += third
        else:
            above -= third
    trial[0] = (below + above) / 2.0
    if _value(mean, x, low, high, trial, y) > _value(mean, x, low, high, v, y):
        v[0] = trial[0]


@compiled_allocating
def _ellipsoid(
    mean: Any, x: Array, low: Array, high: Array, v: Array, y: Array, tolerance: float
) -> None:
    """Cut ellipsoids that hold the maximiser, from a ball around the box.

    Its centre avoids round numbers: a difference across a kink is no slope of the function.
    """
    n = v.shape[0]
    best, centre, normal, across = _value(mean, x, low, high, v, y), v.copy(), v.copy(), v.copy()
    shape = np.zeros((n, n))
    for i in range(n):
        shape[i, i] = float(n)
        centre[i] = 0.47 + 0.05 * ((i + 1) * 0.6180339887498949 % 1.0)
    for _ in range(50 * n * (n + 1)):
        outside = False
        for i in range(n):
            if centre[i] < 0.0 or centre[i] > 1.0:
                outside = True
                for j in range(n):
                    normal[j] = 0.0
                normal[i] = -1.0 if centre[i] < 0.0 else 1.0
                break
        if not outside:
            value = _value(mean, x, low, high, centre, y)
            if value > best:
                best = value
                for i in range(n):
                    v[i] = centre[i]
            _gradient(mean, x, low, high, centre, y, normal, NARROW)
            for i in range(n):
                normal[i] = -normal[i]
        length = 0.0
        for i in range(n):
            across[i] = 0.0
            for j in range(n):
                across[i] += shape[i, j] * normal[j]
            length += across[i] * normal[i]
        length = np.sqrt(max(length, 0.0))
        if length == 0.0 or (not outside and length < tolerance):
            break
        for i in range(n):
            across[i] /= length
            centre[i] -= across[i] / (n + 1)
        for i in range(n):
            for j in range(n):
                shape[i, j] -= 2.0 / (n + 1) * (across[i] * across[j])  # symmetric when rounded
                shape[i, j] *= n * n / (n * n - 1.0)


@compiled_allocating
def maximise(mean: Any, x: Array, low: Array, high: Array, y: Array) -> float:
    """Fill `y` with the maximiser of `mean(x, .)` over the box; the maximum."""
    dy = low.shape[0]
    v, trial = np.full(dy, 0.5), np.empty(dy)
    gradient, newer = np.empty(dy), np.empty(dy)
    free, direction = np.empty(dy), np.empty(dy)
    step, change, work = np.empty(dy), np.empty(dy), np.empty(dy)
    inverse = np.empty((dy, dy))
    value = _value(mean, x, low, high, v, y)
    _gradient(mean, x, low, high, v, y, gradient)
    norm = 0.0
    for i in range(dy):
        norm = max(norm, abs(gradient[i]))
    first = 0.25 / norm if norm > 0.0 else 1.0
    _reset(inverse, first)
    fresh = True
    for _ in range(ROUNDS):
        for i in range(dy):
            out = (v[i] <= 0.0 and gradient[i] <= 0.0) or (v[i] >= 1.0 and gradient[i] >= 0.0)
            free[i] = 0.0 if out else 1.0
        slope = _direction(inverse, gradient, free, direction)
        length, found, higher = 1.0, False, value
        for _ in range(40):
            for i in range(dy):
                trial[i] = min(max(v[i] + length * direction[i], 0.0), 1.0)
            higher = _value(mean, x, low, high, trial, y)
            if higher > value + 1e-4 * length * slope:
                found = True
                break
            length /= 2.0
        if not found:
            if fresh:
                break
            _reset(inverse, first)
            fresh = True
            continue
        gain = higher - value
        value = higher
        _gradient(mean, x, low, high, trial, y, newer)
        for i in range(dy):
            step[i] = trial[i] - v[i]
            change[i] = gradient[i] - newer[i]
            v[i], gradient[i] = trial[i], newer[i]
        _update(inverse, step, change, work)
        if fresh and gain <= 1e-15 * abs(value):
            break
        fresh = False
    _compass(mean, x, low, high, v, y, value)
    value = _value(mean, x, low, high, v, y)
    _gradient(mean, x, low, high, v, y, gradient)
    tolerance = TOLERANCE * (1.0 + abs(value))
    if _to_gain(v, gradient) > tolerance:
        if dy == 1:
            _ternary(mean, x, low, high, v, y)
        else:
            _ellipsoid(mean, x, low, high, v, y, tolerance)
    return _value(mean, x, low, high, v, y)
