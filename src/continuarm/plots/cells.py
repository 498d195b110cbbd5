"""Cells as a map: along one context a strip, along two a map."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from continuarm.errors import InputError
from continuarm.plots.canvas import begun, finished
from continuarm.plots.maps import NOT_SHOWN, Area, draw_map, frame_map
from continuarm.plots.subject import Subject, Values, filled, others, wrapped
from continuarm.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["cells_table", "plot_cells"]

PAYOFF, GAIN, PARTS = "payoff", "gain", 8
FEW_PARTS = 10  # of each context: so few that numbers are written into the map
COLUMNS = ("expected", "its error", "more than today", "error of that", "shown yet", "frozen")


def cells_table(
    policy: Subject,
    along: str | Sequence[str] | None = None,
    at: Values = None,
    *,
    parts: int = PARTS,
) -> Table:
    """A row per cell: its contexts, the best decision in its middle, and what that pays.

    *Shown yet* is whether payoffs show where the best lies, in each coordinate.
    """
    return _table(policy, policy.cells(along=along, parts=parts, at=at))


def _table(policy: Subject, cells: Sequence[Any]) -> Table:
    sides = [f"{name} {end}" for name in cells[0].where for end in ("from", "to")]
    best = [f"best {name}" for name in policy.decision.names]
    rows = [
        (
            *(end for rule in one.where.values() for end in rule),
            *one.best.tolist(),
            one.expected,
            one.expected_error,
            one.gain,
            one.gain_error,
            "yes" if one.is_shown() else "no",
            "yes" if one.frozen else "no",
        )
        for one in cells
    ]
    return Table.of((*sides, *best, *COLUMNS), rows)


def plot_cells(
    policy: Subject,
    along: str | Sequence[str] | None = None,
    at: Values = None,
    colour: str | None = None,
    path: str | Path | None = None,
    *,
    parts: int = PARTS,
) -> "Figure":
    """Draw the cells along one or two contexts.

    Parameters
    ----------
    along, at, parts : as in `policy.cells`.
    colour : the name of a coordinate of the best decision, the first by default; `"payoff"`, or
        `"gain"`.
    path : the file to write the figure to.
    """
    context, names = policy.context, policy.decision.names
    chosen = names[0] if colour is None else colour
    if chosen not in (PAYOFF, GAIN, *names):
        known = [PAYOFF, GAIN, *names]
        raise InputError(f"`colour` must be one of {known}, but got {colour!r}")
    cells = policy.cells(along=along, parts=parts, at=at)
    shown = [context.names.index(name) for name in cells[0].where]
    flat = len(shown) < 2
    figure = begun(path, 6.4, 2.3 if flat else 4.6)
    axes = figure.subplots()
    areas = _written([_area(one, names, chosen) for one in cells])
    few = FEW_PARTS ** max(len(shown), 1)
    draw_map(figure, axes, areas, _meaning(chosen), few, 7.0)
    frame_map(axes, context, shown, "no context: one cell for all")
    held = others(context, filled(context, at, context.centre), shown)
    what = f"Best decision known{f' at {held}' if held else ''}, in the middle of each cell"
    grey = "; grey: not known" if any(area.value is None for area in areas) else ""
    axes.set_title(wrapped(f"{what}{grey}", 76), fontsize=10)
    return finished(figure, path)


def _area(one: Any, names: Sequence[str], colour: str) -> Area:
    """A cell on the map."""
    edges = [end for rule in one.where.values() for end in rule]
    marks = ["freeze"] if one.frozen else []
    if colour in names:
        j = names.index(colour)
        value: float | None = float(one.best[j])
        if one.peak_error is None or one.peak_error[j] is None:
            marks.append(NOT_SHOWN)
    else:
        value = one.expected if colour == PAYOFF else one.gain
    return Area(edges, value, "", marks)


def _written(areas: Sequence[Area]) -> list[Area]:
    """The same with their numbers, as exact as tells them apart."""
    values = [area.value for area in areas if area.value is not None]
    apart = max(values) - min(values) if values else 0.0
    apart = apart or max(map(abs, values), default=0.0) or 1.0
    decimals = min(max(2 - math.floor(math.log10(apart)), 0), 9)
    return [
        area if area.value is None else area._replace(text=f"{area.value:,.{decimals}f}")
        for area in areas
    ]


def _meaning(colour: str) -> str:
    known = {PAYOFF: "payoff expected of the best decision"}
    known |= {GAIN: "how much more the best decision is expected to pay than today's"}
    return known.get(colour, f"best {colour}")
