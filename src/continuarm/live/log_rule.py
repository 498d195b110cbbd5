"""The rule that a log followed, and how far its decisions were spread around it.

Least squares in sums and quotients of our own: a replay elsewhere has the same bits, which
libraries for linear algebra do not promise.
"""

from math import sqrt

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.live.incumbent import Affine, affine, always

__all__ = ["reach_of", "rule_of"]

ROWS_PER_NUMBER = 10  # of the rule; with fewer it would follow chance
ALIKE = 1e-9  # variance left of a context, as a part of its own or of its box: it is known already


def rule_of(context: Box, decision: Box, x: Array, y: Array) -> Affine:
    """The affine rule nearest to the decisions `y` for the contexts `x`, in units.

    A context that never changes, or follows from those before it, has no part in it. A short log
    has a mean and nothing more.
    """
    unit_x, unit_y = context.to_unit(x), decision.to_unit(y)
    middle, mean = _mean(unit_x), _mean(unit_y)
    one_for_all = always(context, decision, decision.from_unit(mean))
    if len(x) < ROWS_PER_NUMBER * (1 + context.dim):
        return one_for_all
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = decision.span[:, None] * _slopes(unit_x - middle, unit_y - mean) / context.span
        first = decision.low + decision.span * mean - _times(slopes, context.from_unit(middle))
        farthest = np.maximum(np.abs(context.low), np.abs(context.high))
        finite = np.isfinite(np.abs(first) + _times(np.abs(slopes), farthest)).all()
    return affine(context, decision, first, slopes) if finite else one_for_all


def reach_of(rule: Affine, x: Array, y: Array, least: float) -> Array:
    """Half of the log's half-width around its rule, as a part of each side of the box.

    √3 standard deviations are the half-width of a uniform spread.
    """
    left = rule.decision.to_unit(y) - rule.decision.to_unit(rule.many(x))
    numbers = 1 + np.count_nonzero(rule.slopes.any(axis=0))
    squares = np.array([float((column * column).sum()) for column in left.T])
    half = 0.5 * sqrt(3.0) * np.sqrt(squares / max(len(x) - numbers, 1))
    return np.asarray(np.clip(half, least, 1.0))


def _mean(points: Array) -> Array:
    """Of columns; from the first number on, so that the mean of equal numbers is that number."""
    off = (points - points[0]).T.copy()
    return np.asarray(points[0] + [float(column.sum()) / len(points) for column in off])


def _times(matrix: Array, vector: Array) -> Array:
    return np.asarray((matrix * vector).sum(axis=1))


def _slopes(x: Array, y: Array) -> Array:
    """Least squares of centred columns, `(dy, dx)`, by the elimination of Gauss and Jordan."""
    gram, cross = _products(x, x), _products(x, y)
    own, slopes = gram.diagonal().copy(), np.zeros(cross.shape)
    used = []
    for k in range(len(own)):
        if gram[k, k] > max(ALIKE * own[k], ALIKE**2 * len(x)):
            used.append(k)
            _eliminate(k, gram, cross)
    slopes[used] = cross[used]
    return slopes.T.copy()


def _products(x: Array, y: Array) -> Array:
    """Sums of products of columns, each added up in its order."""
    others = y.T.copy()
    sums = [[float((a * b).sum()) for b in others] for a in x.T.copy()]
    return np.array(sums).reshape(x.shape[1], y.shape[1])


def _eliminate(k: int, gram: Array, cross: Array) -> None:
    """Solve equation `k` for its own unknown, and put that into the others."""
    pivot, factors = gram[k, k], gram[:, k].copy()
    factors[k] = 0.0
    for system in (gram, cross):
        system[k] /= pivot
        system -= np.outer(factors, system[k])
