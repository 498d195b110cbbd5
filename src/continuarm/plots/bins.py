"""The bins as a map: one context dimension a strip, two a map; of more, two are chosen."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from continuarm.core.compiling import Array
from continuarm.errors import InputError
from continuarm.plots.canvas import MUTED, SET_BY, begun, finished, says_of
from continuarm.plots.subject import (
    Subject,
    Values,
    dimension,
    filled,
    name_axis,
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
    _draw(figure, axes, table, len(shown), _meaning(colour))
    if shown:
        axes.set_xlim(context.low[shown[0]], context.high[shown[0]])
        name_axis(axes.xaxis, context, shown[0], 60)
    else:
        axes.set_xlim(0.0, 1.0)
        axes.set_xticks([])
        axes.set_xlabel("no context: one bin for all")
    if flat:
        axes.set_yticks([])
        axes.set_ylim(0.0, 1.0)
    else:
        axes.set_ylim(context.low[shown[1]], context.high[shown[1]])
        name_axis(axes.yaxis, context, shown[1], 40)
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


def _draw(figure: "Figure", axes: Any, table: Table, shown: int, meaning: str) -> None:
    from matplotlib import colormaps
    from matplotlib.collections import PolyCollection

    corners, values = [], []
    for _, *edges, _, value in table.rows:
        left, right = edges[:2] if shown else (0.0, 1.0)
        low, high = edges[2:4] if shown > 1 else (0.0, 1.0)
        corners.append([(left, low), (right, low), (right, high), (left, high)])
        values.append(np.nan if value is None else float(value))
    colours = colormaps["viridis"].with_extremes(bad="0.8")  # grey: nobody knows
    boxes = PolyCollection(corners, array=np.array(values), cmap=colours, edgecolor="white")
    axes.add_collection(boxes)
    _hatch(figure, axes, corners, [str(row[-2]).split(", ") for row in table.rows])
    if np.isfinite(values).any():
        if np.nanmin(values) == np.nanmax(values):  # one colour, and a scale around it
            half = 0.5 * abs(np.nanmin(values)) or 0.5
            boxes.set_clim(np.nanmin(values) - half, np.nanmin(values) + half)
        bar = figure.colorbar(boxes, ax=axes, location="bottom" if shown < 2 else "right")
        bar.set_label(wrapped(meaning, 40))
    if 0 < len(corners) <= FEW:
        middle, span = np.nanmean(boxes.get_clim()), np.ptp(boxes.get_clim()) or 1.0
        for box, (number, *_), value in zip(corners, table.rows, values, strict=True):
            (left, low), (right, high) = box[0], box[2]
            bright = value > middle + 0.1 * span or not np.isfinite(value)
            axes.text(
                0.5 * (left + right),
                0.5 * (low + high),
                str(number),
                ha="center",
                va="center",
                fontsize=8,
                color="black" if bright else "white",
                clip_on=True,
            )


def _hatch(figure: "Figure", axes: Any, corners: list[Any], guards: list[list[str]]) -> None:
    """Hatch the bins whose best decision a guard has set, each guard in its own way."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    marks = []
    for guard, (_, hatch) in SET_BY.items():
        held = [box for box, names in zip(corners, guards, strict=True) if guard in names]
        if held:
            look: dict[str, Any] = {"facecolor": "none", "edgecolor": "0.7", "hatch": hatch}
            axes.add_collection(PolyCollection(held, linewidth=0, **look))
            marks.append(Patch(label=says_of(guard), **look))
    if marks:
        figure.legend(handles=marks, loc="outside upper right", ncols=3, frameon=False, fontsize=9)
