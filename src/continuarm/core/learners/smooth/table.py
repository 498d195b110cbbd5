"""The surface that decides as plain lists, for a reader of exported tables (eq. 11)."""

from typing import Any

import numpy as np

from continuarm.core.compiling import Array
from continuarm.core.learners.smooth import layout
from continuarm.core.learners.smooth.deciding import trust_of
from continuarm.core.learners.smooth.layout import (
    FUNCTION,
    KINDS,
    RUNG,
    STEP,
    SmoothSurfaceConfig,
)
from continuarm.core.learners.smooth.triangle import draw

__all__ = ["groups_of", "surface_of"]

NAMES = "level", "slopes", "curvatures"  # of the kinds of features, in their order


def surface_of(cfg: SmoothSurfaceConfig, row: Array, r: Array) -> dict[str, Any] | None:
    """The groups of the rung that decides, and with a reach its triangle; None: they overflow.

    r : the triangle of all columns.
    """
    end = int(layout.end_of(row, int(row[RUNG])))
    mean = np.empty(end)
    draw(cfg, row, 0.0, np.zeros(end), np.empty(end), mean)
    if not np.isfinite(mean).all():
        return None
    found: dict[str, Any] = {"groups": groups_of(cfg, row, mean)}
    if cfg.reach > 0.0:
        found["trust"] = float(trust_of(row))
        found["triangle"] = [r[i, i:end].tolist() for i in range(end)]
    return found


def groups_of(cfg: SmoothSurfaceConfig, row: Array, mean: Array) -> list[dict[str, Any]]:
    """Of each group contexts with their degrees or its step, its kind, and its coefficients."""
    at, table = int(layout.column_at(0)), cfg.table[: FUNCTION * cfg.functions]
    columns = row[at : at + 2 * len(mean)].reshape(-1, 2).astype(int).tolist()
    functions = table.reshape(-1, FUNCTION)
    firsts = [int(layout.first_of(cfg, kind)) for kind in range(KINDS + 1)]
    found, begin = [], 0
    while begin < len(mean):
        function, feature = columns[begin]
        kind = firsts.index(feature)
        end = begin + firsts[kind + 1] - feature
        group = _function(*functions[function, :4].tolist()) | {"kind": NAMES[kind]}
        found.append(group | {"coefficients": mean[begin:end].tolist()})
        begin = end
    return found


def _function(i: float, a: float, j: float, b: float) -> dict[str, Any]:
    if a == STEP:
        return {"context": [], "step": [int(i), b]}
    return {"context": [[int(of), int(degree)] for of, degree in ((i, a), (j, b)) if degree > 0]}
