"""The bins as a map: one context dimension a strip, two a map; of more, two are chosen."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from continuarm.core.compiling import Array
from continuarm.errors import InputError
from continuarm.plots.canvas import MUTED, begun, finished
from continuarm.plots.maps import Area, draw_map, frame_map
from continuarm.plots.subject import (
    Subject,
    Values,
    dimension,
    filled,
    names_of,
    others,
    set_by,
    wrapped,
)
from continuarm.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["bins_table", "plot_bins"]

VISITS, PAYOFF = "visits", "payoff"
FEW = 40  # bins whose numbers are written into the map
MIDDLE: dict[str, Any] = {"ha": "center", "va": "center", "color": MUTED}


def bins_table(
    policy: Subject,
    dimensions: str | Sequence[str] | None = None,
    at: Values = None,
    colour: str = VISITS,
) -> Table:
    """A row per bin that holds the other contexts at their values: its edges, and its colour.

    *Set by* are the guards that set the best decision in its middle, among them `freeze`.

    colour : `"visits"` (payoffs learned), `"payoff"` (expected of its best decision, in its
        middle), or the name of a coordinate of the decision (its best, there).
    """
    shown = _shown(policy, dimensions)
    context, names = policy.context, policy.decision.names
    if colour not in (VISITS, PAYOFF, *names):
        known = [VISITS, PAYOFF, *names]
        raise InputError(f"`colour` must be one of {known}, but got {colour!r}")
    point = filled(context, at, context.centre)
    held = [i for i in range(context.dim) if i not in shown]
    rows = []
    for one in policy.bins():
        if all(_holds(one, context.high, point, i) for i in held):
            edges = [float(edge) for i in shown for edge in (one.low[i], one.high[i])]
            guards = set_by(policy.explain(0.5 * (one.low + one.high)))
            rows.append((one.id, *edges, guards, _value(policy, one, colour)))
    sides = [f"{context.names[i]} {end}" for i in shown for end in ("from", "to")]
    return Table.of(("bin", *sides, "set by", colour), rows)


def _shown(policy: Subject, given: str | Sequence[str] | None) -> list[int]:
    context = policy.context
    if given is None:
        return list(range(min(context.dim, 2)))
    found = [dimension(context, name, "context") for name in names_of(given)]
    if not 1 <= len(found) <= 2 or len(set(found)) < len(found):
        raise InputError(f"a map has one or two different contexts, but got {given!r}")
    return found


def _holds(one: Any, top: Array, point: Array, i: int) -> bool:
    inside = one.low[i] <= point[i] < one.high[i]
    return bool(inside or point[i] == one.high[i] == top[i])


def _value(policy: Subject, one: Any, colour: str) -> float | None:
    if colour == VISITS:
        return int(one.told)
    if colour != PAYOFF:
        return float(one.best[policy.decision.names.index(colour)])
    found = policy.expected(0.5 * (one.low + one.high), one.best[None, :])
    return None if found is None else float(found[0, 0])


def plot_bins(
    policy: Subject,
    dimensions: str | Sequence[str] | None = None,
    at: Values = None,
    colour: str = VISITS,
    path: str | Path | None = None,
) -> "Figure":
    """Draw the bins along one or two context dimensions, the first two unless they are named.

    Parameters
    ----------
    dimensions : the names of one or two contexts.
    at : where the other contexts are held, by name for some or in order for all; default the
        middle of their box.
    colour : `"visits"`, `"payoff"`, or the name of a coordinate of the decision.
    path : the file to write the figure to.
    """
    table, shown = bins_table(policy, dimensions, at, colour), _shown(policy, dimensions)
    context, flat = policy.context, len(shown) < 2
    figure = begun(path, 6.4, 2.3 if flat else 4.6)
    axes = figure.subplots()
    if not table.rows:
        axes.text(0.5, 0.5, "no bin was visited here yet", **MIDDLE, transform=axes.transAxes)
    areas = [
        Area(row[1:-2], row[-1], str(row[0]), tuple(row[-2].split(", "))) for row in table.rows
    ]
    draw_map(figure, axes, areas, _meaning(colour), FEW)
    frame_map(axes, context, shown, "no context: one bin for all")
    held = others(context, filled(context, at, context.centre), shown)
    counted = "1 bin" if len(table.rows) == 1 else f"{len(table.rows):,} bins"
    white = "; white: not visited yet" if _covered(policy, table, shown) < 1.0 - 1e-9 else ""
    grey = "; grey: not known" if any(row[-1] is None for row in table.rows) else ""
    numbers = ", with their numbers" if 1 < len(table.rows) <= FEW else ""
    title = f"{counted}{f' at {held}' if held else ''}{numbers}{white}{grey}"
    axes.set_title(wrapped(title, 76), fontsize=10)
    return finished(figure, path)


def _covered(policy: Subject, table: Table, shown: Sequence[int]) -> float:
    """The part of the map that bins cover."""
    sides = [policy.context.span[i] for i in shown]
    total = 0.0
    for _, *edges, _, _ in table.rows:
        parts = [(edges[2 * k + 1] - edges[2 * k]) / side for k, side in enumerate(sides)]
        total += float(np.prod(parts))
    return total


def _meaning(colour: str) -> str:
    known = {VISITS: "payoffs learned", PAYOFF: "payoff expected of its best decision"}
    return known.get(colour, f"best {colour}, in the middle of the bin")
