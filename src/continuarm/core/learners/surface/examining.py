"""What the payoffs of a bin say about the assumptions of its response surface."""

import math
from typing import Any

import numpy as np

from continuarm.core.compiling import Array
from continuarm.core.learners.surface import layout
from continuarm.core.learners.surface.explaining import degrees, dense
from continuarm.core.learners.surface.layout import ResponseSurfaceConfig

__all__ = ["examine"]


def examine(cfg: ResponseSurfaceConfig, row: Array) -> dict[str, Any]:
    """In the middle of the bin, on the unit cube."""
    r, d = dense(cfg, row)
    theta = np.asarray(np.linalg.solve(r, d), np.float64)
    variance = row[layout.SQUARES] / row[layout.DEGREES] * row[layout.WEIGHT]
    inverse = np.asarray(math.sqrt(variance) * np.linalg.inv(r), np.float64)
    first = int(row[layout.FIRST])
    return {
        **_bend(cfg, theta, inverse, first),
        **_moves(cfg, row, theta, inverse),
        "one_payoff": float(min(math.sqrt(row[layout.FOURTHS]) / row[layout.SQUARES], 1.0)),
    }


def _bend(cfg: ResponseSurfaceConfig, theta: Array, inverse: Array, first: int) -> dict[str, Any]:
    """The largest eigenvalue of the Hessian, and its standard error in its direction."""
    dy, squares = cfg.dy, first + cfg.dy
    hessian = np.diag(theta[squares : squares + dy])
    if cfg.terms > 2 * dy:
        twists = theta[squares + dy : first + cfg.terms]
        hessian[np.triu_indices(dy, 1)] = twists
        hessian.T[np.triu_indices(dy, 1)] = twists
    values, vectors = np.linalg.eigh(hessian)
    way = vectors[:, -1]
    weights = way**2
    if cfg.terms > 2 * dy:
        weights = np.append(weights, (2.0 * np.outer(way, way))[np.triu_indices(dy, 1)])
    error = np.linalg.norm(weights @ inverse[squares : first + cfg.terms])
    numbers = {"largest_bend": 4.0 * values[-1], "bend_error": 4.0 * error}  # dv/dy = 2
    found: dict[str, Any] = {name: float(number) for name, number in numbers.items()}
    return found | {"bends": cfg.terms - dy, "bends_most": int(np.argmax(abs(way)))}


def _moves(cfg: ResponseSurfaceConfig, row: Array, theta: Array, inverse: Array) -> dict[str, Any]:
    """How far each context moves the peak along each coordinate, as a part of its side.

    From u = -1 to 1 the slope in v changes by 2b and the peak in v by 2b/|H|. A context of which
    higher degrees have entered moves it by all.
    """
    dx, dy, first = cfg.dx, cfg.dy, int(row[layout.FIRST])
    if cfg.varying == 0:
        return {}
    begin = first + cfg.terms + cfg.varying * np.arange(dx)[:, None]
    columns = begin + np.arange(dy)
    bends = np.maximum(abs(theta[first + dy : first + 2 * dy]), np.finfo(float).tiny)
    errors = np.linalg.norm(inverse, axis=1)
    with np.errstate(over="ignore"):
        moves, spread = (np.minimum(abs(v[columns]) / bends, 1.0) for v in (theta, errors))
    moves[np.array(degrees(cfg, row)) > layout.LINEAR] = 1.0
    return {"moves": (moves * np.sign(theta[columns])).tolist(), "moves_error": spread.tolist()}
