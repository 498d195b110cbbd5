"""learn_from: start from the log of an older rule, whose propensities nobody knows."""

from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.engine import Engine
from continuarm.errors import InputError
from continuarm.jit import Array
from continuarm.learners import protocol as learner
from continuarm.learners.protocol import ALONE
from continuarm.policies.surface_design import surface_design

__all__ = ["learn", "log_columns"]

NO_GRADIENT = np.empty(0)


def log_columns(table: Any, payoff: str, context: Box, decision: Box) -> tuple[Array, ...]:
    """Contexts, decisions and payoffs of a table with named columns."""
    columns: list[Array] = []
    for name in (*context.names, *decision.names, payoff):
        try:
            given = table[name]
        except Exception:  # each kind of table has its own error for a column it lacks
            raise InputError(
                f"a table with the columns {[*context.names, *decision.names, payoff]} is needed, "
                f"but {name!r} is missing in {type(table).__name__}"
            ) from None
        try:
            if np.asarray(given).dtype.kind in "bSU":
                raise TypeError
            column = np.asarray(given, np.float64)
        except (TypeError, ValueError):
            raise InputError(f"the column {name!r} of the log must hold numbers") from None
        if column.ndim != 1 or (columns and len(column) != len(columns[0])):
            raise InputError(f"the columns of the log must have one length, but {name!r} has not")
        columns.append(column)
    if set(context.names) & set(decision.names) or payoff in (*context.names, *decision.names):
        raise InputError(
            "context, decision and payoff need different column names in a log, but got "
            f"{[*context.names, *decision.names, payoff]}"
        )
    unknown = np.flatnonzero(~np.isfinite(columns[-1]))
    if len(unknown):
        raise InputError(
            f"each payoff of the log must be a finite number (0 where silence means none), but "
            f"row {unknown[0]} of {payoff!r} has {columns[-1][unknown[0]]}"
        )
    dx, n = context.dim, len(columns[0])
    contexts = context.points(np.array(columns[:dx]).T.reshape(n, dx))
    decisions = decision.points(np.array(columns[dx:-1]).T.reshape(n, decision.dim))
    return contexts, decisions, columns[-1]


def learn(engine: Engine, start: Array, x: Array, y: Array, z: Array) -> None:
    """Teach an engine the payoffs `z` of the decisions `y` for the contexts `x`, in their order.

    A learner whose observations stand alone takes them as they are. One that climbs starts where a
    surface fitted to the log is highest, among the decisions that the log has tried.
    """
    if learner.stands_alone(engine.lcfg):
        _tell_all(engine, x, y, z)
        return
    fitted = Engine(*surface_design(engine.dx, engine.dy), start)
    _tell_all(fitted, x, y, z)
    likely = np.clip(fitted.recommend(x), y.min(axis=0), y.max(axis=0))
    rows = [engine.place(point, best, 0.0) for point, best in zip(x, likely, strict=True)]
    _, one, which, payoffs = np.unique(
        rows, return_index=True, return_inverse=True, return_counts=True
    )
    sums = np.zeros((len(one), engine.dy))
    np.add.at(sums, which, likely)
    for k, row in enumerate(one):  # a bin starts at the mean of what is best for its contexts
        engine.place(x[row], sums[k] / payoffs[k], float(payoffs[k]))
    engine.place_others(likely.mean(axis=0))


def _tell_all(engine: Engine, x: Array, y: Array, z: Array) -> None:
    for point, decision, payoff in zip(x, y, z.tolist(), strict=True):
        engine.tell(0, ALONE, point, decision, payoff, NO_GRADIENT)
