"""Which limits conflict, found by taking away what is not needed for that: the slow way."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from continuarm.box import Box
from continuarm.checks import shortened
from continuarm.core.compiling import Array
from continuarm.errors import SettingsError
from continuarm.sets.bundle import Rows, on_cube

__all__ = [
    "NO_ROOM",
    "Limit",
    "irreducible",
    "lengths_along",
    "limits_of",
    "spare_room",
    "whole_numbers",
]

NO_ROOM = 1e-9  # of [-1, 1]: limits that leave less leave none
TOLERANCE = 1e-10  # of the solver


class Limit(NamedTuple):
    """`row · v <= bound` on [-1, 1]^d, or `==`, and how people write it."""

    text: str
    row: Array
    bound: float
    is_equality: bool


def limits_of(
    box: Box, rows: Rows, equal: Rows, texts: Sequence[str], lowest: Array, highest: Array
) -> list[Limit]:
    """All limits of a decision: equalities and rows, whose texts these are, then the edges."""
    found: list[Limit] = []
    for part, is_equality in ((equal, True), (rows, False)):
        cube, _ = on_cube(box, part)
        for row, bound in zip(cube.factors, cube.bounds, strict=True):
            found.append(Limit(texts[len(found)], row, float(bound), is_equality))
    low, high = box.to_unit(lowest) * 2.0 - 1.0, box.to_unit(highest) * 2.0 - 1.0
    for j, unit in enumerate(np.eye(box.dim)):
        name = shortened(box.names[j]) if box.named else f"value {j}"
        found.append(Limit(f"{name} >= {float(lowest[j])!r}", -unit, -float(low[j]), False))
        found.append(Limit(f"{name} <= {float(highest[j])!r}", unit, float(high[j]), False))
    return found


def spare_room(limits: Sequence[Limit]) -> tuple[float, Array]:
    """The point that is farthest inside all limits, and how far that is; below 0: none is.

    Along equalities, distances are measured on what they leave.
    """
    from scipy.optimize import linprog

    d = len(limits[0].row)
    equal = [limit for limit in limits if limit.is_equality]
    rest = [limit for limit in limits if not limit.is_equality]
    lengths = lengths_along([limit.row for limit in equal], [limit.row for limit in rest])
    above = np.array([[*limit.row, size] for limit, size in zip(rest, lengths, strict=True)])
    found = linprog(
        [0.0] * d + [-1.0],
        above.reshape(-1, d + 1),
        [limit.bound for limit in rest],
        np.array([[*limit.row, 0.0] for limit in equal]) if equal else None,
        [limit.bound for limit in equal] if equal else None,
        bounds=[(-4.0, 4.0)] * d + [(-10.0 * d, 1.0)],
        options={
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
        },
    )
    if found.status != 0 or found.x is None:
        return -np.inf, np.zeros(d)
    return float(found.x[d]), np.asarray(found.x[:d])


def lengths_along(equal: Sequence[Array], rows: Sequence[Array]) -> list[float]:
    """How long rows are along the equalities; 0: these decide whether it holds."""
    if not equal:
        return [1.0] * len(rows)
    _, _, rotated = np.linalg.svd(np.array(equal))
    basis = rotated[: len(equal)]
    lengths = [float(np.linalg.norm(row - basis.T @ (basis @ row))) for row in rows]
    return [length if length > 1e-9 else 0.0 for length in lengths]


def irreducible(
    limits: Sequence[Limit], is_conflict: Callable[[Sequence[Limit]], bool]
) -> list[Limit]:
    """Limits that conflict, of which none can be taken away."""
    kept = list(limits)
    for limit in reversed(limits):
        without = [other for other in kept if other is not limit]
        if without and is_conflict(without):
            kept = without
    return kept


def whole_numbers(box: Box, limits: Sequence[Limit]) -> Array | None:
    """An allowed value within these limits, by branch and bound; None: there is none."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    firsts, steps, lasts = np.full(box.dim, -1.0), np.ones(box.dim), np.full(box.dim, 2.0)
    for j, values in enumerate(box.values()):
        if values is not None:
            firsts[j] = 2.0 * (values.at(0.0) - box.low[j]) / box.span[j] - 1.0
            steps[j] = 2.0 * values.step / values.ten / box.span[j]
            lasts[j] = values.last
    matrix = np.array([limit.row for limit in limits])
    above = np.array([limit.bound for limit in limits]) - matrix @ firsts
    below = [a if limit.is_equality else -np.inf for a, limit in zip(above, limits, strict=True)]
    found = milp(
        np.zeros(box.dim),
        integrality=(np.array(box.spacing) > 0.0).astype(np.int64),
        bounds=Bounds(np.zeros(box.dim), lasts),
        constraints=LinearConstraint(matrix * steps, below, above + NO_ROOM),
        options={"time_limit": 20.0},
    )
    if found.x is None:
        return None
    k = np.where(np.array(box.spacing) > 0.0, np.round(found.x), found.x)
    return box.nearest(box.from_unit((firsts + k * steps + 1.0) / 2.0))


def refusal(limits: Sequence[Limit]) -> SettingsError:
    """The error for limits that conflict."""
    return SettingsError(f"limits must leave a decision, but got {listed(limits)}")


def listed(limits: Sequence[Limit]) -> str:
    """Limits in one line."""
    texts = [f"`{limit.text}`" for limit in limits]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
