"""learn_from: start from the log of an older rule, whose propensities nobody knows."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from continuarm.box import Box
from continuarm.checks import among, quoted
from continuarm.core.compiling import Array
from continuarm.core.learners.response_surface import ResponseSurface
from continuarm.core.model import Limits, Model, limits_of
from continuarm.core.partitions.evidence_tree import EvidenceTree
from continuarm.core.request import ALONE
from continuarm.errors import InputError
from continuarm.live.events import LearnedFromLog
from continuarm.live.incumbent import Incumbent
from continuarm.numbers import has_flags, reals

__all__ = ["LearnedLog", "learn", "log_columns"]

NO_GRADIENT = np.empty(0)


class LearnedLog(NamedTuple):
    """What a log has taught a copy of a model, and the incumbent and the reach after it."""

    event: LearnedFromLog
    model: Model
    incumbent: Incumbent
    reach: Array


def log_columns(table: Any, payoff: str, context: Box, decision: Box) -> tuple[Array, ...]:
    """Contexts, decisions and payoffs of a table with named columns."""
    both = set(context.names) & set(decision.names)
    if both and not (context.named and decision.named):
        raise InputError(
            "context and decision need different column names in a log, but got boxes without "
            f"names that share {among(sorted(both))}: `Box(low, high, names=[...])`"
        )
    columns: list[Array] = []
    for name in (*context.names, *decision.names, payoff):
        try:
            given = table[name]
        except Exception:  # each kind of table has its own error for a column it lacks
            raise InputError(
                f"a table with the columns {among((*context.names, *decision.names, payoff))} "
                f"is needed, but {quoted(name)} is missing in {type(table).__name__}"
            ) from None
        column = reals(given)
        if column is None:
            raise InputError(f"the column {name!r} of the log must hold numbers, but does not")
        if name == payoff and len(column) and has_flags(given):
            raise InputError(f"the payoffs {name!r} of the log must be numbers, but are flags")
        if column.ndim != 1 or (columns and len(column) != len(columns[0])):
            raise InputError(f"the columns of the log must have one length, but {name!r} has not")
        columns.append(column)
    if both or payoff in (*context.names, *decision.names):
        raise InputError(
            "context, decision and payoff need different column names in a log, but got "
            f"{among([*context.names, *decision.names, payoff])}"
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


def learn(
    model: Model, x: Array, y: Array, z: Array, *, held: NDArray[np.bool_], limits: Limits
) -> None:
    """Teach a model the payoffs `z` of the decisions `y` for the contexts `x`, in their order.

    What the log did is what the incumbent did. A learner whose observations stand alone takes them
    as they are. One that climbs, by stencils or by gradients, starts where a surface fitted to the
    log is highest, among the decisions that the log has tried.

    held : those of frozen segments, which are counted and not learned.
    """
    for point, decision, start in zip(x[held], y[held], _unit(model, y[held]), strict=True):
        model.count(ALONE, point, decision, start, limits)
    x, y, z = x[~held], y[~held], z[~held]
    if model.stands_alone and not model.uses_gradient:
        _tell_all(model, x, y, z)
        return
    if not len(x):
        return
    surface = ResponseSurface().configured(model.dx, model.dy)
    context, decision = np.split(model.setup.bounds, [2 * model.dx])
    fitted = Model(
        EvidenceTree().configured(model.dx, surface),
        surface,
        context.reshape(2, model.dx),
        decision.reshape(2, model.dy),
    )
    _tell_all(fitted, x, y, z)
    low, high = decision.reshape(2, model.dy)
    best = fitted.recommend(x, limits_of(np.full(model.dy, 0.5)), (y - low) / (high - low))
    likely = np.clip(best, y.min(axis=0), y.max(axis=0))
    rows = [model.place(point, best, 0.0) for point, best in zip(x, likely, strict=True)]
    _, one, which, payoffs = np.unique(
        rows, return_index=True, return_inverse=True, return_counts=True
    )
    sums = np.zeros((len(one), model.dy))
    np.add.at(sums, which, likely)
    tried = likely.min(axis=0), likely.max(axis=0)  # a mean may be rounded beyond
    for k, row in enumerate(one):  # a bin starts at the mean of what is best for its contexts
        model.place(x[row], np.clip(sums[k] / payoffs[k], *tried), float(payoffs[k]))
    model.place_others((likely.mean(axis=0) - low) / (high - low))


def _tell_all(model: Model, x: Array, y: Array, z: Array) -> None:
    for point, decision, payoff, start in zip(x, y, z.tolist(), _unit(model, y), strict=True):
        model.tell(0, ALONE, point, decision, payoff, NO_GRADIENT, start)


def _unit(model: Model, y: Array) -> Array:
    """Decisions on the unit cube."""
    low, high = model.setup.bounds[2 * model.dx :].reshape(2, model.dy)
    return np.asarray((y - low) / (high - low))
