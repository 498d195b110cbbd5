"""The learned decision along a context dimension, with its uncertainty."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.errors import InputError
from continuarm.plots.canvas import (
    LEARNED,
    SET_BY,
    TODAY,
    begun,
    finished,
    frame,
    legend_below,
    says_of,
)
from continuarm.plots.subject import (
    Subject,
    Values,
    dimension,
    filled,
    name_axis,
    others,
    set_by,
    wrapped,
)
from continuarm.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["learned_table", "plot_learned"]

COLUMNS = ("coordinate", "learned", "payoffs point to", "standard error", "today", "set by")
MOST_PANELS = 6
SURE = 2.0  # standard errors


def learned_table(
    policy: Subject, along: str | None = None, at: Values = None, points: int = 145
) -> Table:
    """Best decisions from one end of a context dimension to the other, a row per coordinate."""
    context, names = policy.context, policy.decision.names
    if context.dim == 0:
        raise InputError("a figure along a context needs a context, but the policy has none")
    i = dimension(context, along, "context")
    point, rows = filled(context, at, context.centre), []
    for x in np.linspace(context.low[i], context.high[i], points):
        point[i] = x
        found = policy.explain(point)
        unknown = [None] * len(names)
        peaks, errors = found.get("peak", unknown), found.get("peak_error", unknown)
        guards = [set_by(found)] * len(names)
        parts = zip(names, found["centre"], peaks, errors, found["start"], guards, strict=True)
        rows += [(float(x), *part) for part in parts]
    return Table.of((context.names[i], *COLUMNS), rows)


def plot_learned(
    policy: Subject,
    along: str | None = None,
    at: Values = None,
    path: str | Path | None = None,
) -> "Figure":
    """Draw the learned decision along a context dimension, the first unless one is named.

    Parameters
    ----------
    at : where the other contexts are held, by name for some or in order for all; default the
        middle of their box.
    path : the file to write the figure to.
    """
    context, decision = policy.context, policy.decision
    table = learned_table(policy, along, at)
    shown = min(decision.dim, MOST_PANELS)
    figure = begun(path, 6.4, 1.1 + 1.9 * shown)
    panels = figure.subplots(shown, 1, sharex=True, squeeze=False)[:, 0]
    for j, axes in enumerate(panels):
        _draw(axes, table, decision, j)
    i = dimension(context, along, "context")
    name_axis(panels[-1].xaxis, context, i, 60)
    panels[-1].set_xlim(context.low[i], context.high[i])
    held = others(context, filled(context, at, context.centre), [i])
    more = f", {shown} of {decision.dim} coordinates" if shown < decision.dim else ""
    title = f"Best decision known{f' for {held}' if held else ''}{more}"
    figure.suptitle(wrapped(title, 80), fontsize=10)
    legend_below(figure, panels)
    return finished(figure, path)


def _draw(axes: Any, table: Table, decision: Box, j: int) -> None:
    rows = [row for row in table.rows if row[1] == decision.names[j]]
    wanted = [[np.nan if n is None else n for n in (r[0], *r[2:-1])] for r in rows]
    x, learned, peak, error, today = np.array(wanted, float).T
    steps = "steps-mid" if decision.spacing[j] else "default"
    low, high = peak - SURE * error, peak + SURE * error
    edges = decision.low[j], decision.high[j]
    band = "where payoffs put the best (± 2 standard errors)"
    if np.isfinite(error).any():
        low, high = np.clip(low, *edges), np.clip(high, *edges)
        axes.fill_between(x, low, high, color=LEARNED, alpha=0.18, linewidth=0, label=band)
    if np.isnan(error).any():
        _say_unknown(axes, x, np.isnan(error))
    for guard, (colour, _) in SET_BY.items():
        here = np.array([guard in row[-1].split(", ") for row in rows])
        if here.any():
            line = np.where(here, learned, np.nan)
            wide: dict[str, Any] = {"color": colour, "linewidth": 8, "alpha": 0.5}
            axes.plot(x, line, drawstyle=steps, label=says_of(guard), zorder=1.9, **wide)
    axes.plot(x, today, color=TODAY, linestyle="--", label="done today")
    axes.plot(x, learned, color=LEARNED, linewidth=2, drawstyle=steps, label="best known")
    frame(axes)
    name_axis(axes.yaxis, decision, j, 24)


def _say_unknown(axes: Any, x: Array, unknown: Array) -> None:
    """Hatch where payoffs do not show yet where the best lies: it may be anywhere in the box."""
    axes.fill_between(
        x,
        0.0,
        1.0,
        where=unknown,
        step="mid",
        transform=axes.get_xaxis_transform(),
        facecolor="none",
        edgecolor="0.85",
        hatch="\\\\",
        linewidth=0,
        label="payoffs do not show yet where it lies",
    )
