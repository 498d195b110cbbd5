"""An explanation as a figure: for each coordinate, what was decided among what could have been."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from continuarm.plots.canvas import LEARNED, MUTED, TODAY, begun, finished, legend_below
from continuarm.plots.subject import wrapped
from continuarm.table import Table
from continuarm.words import plus_minus

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["explanation_table", "plot_explanation"]

SURE = 2.0  # standard errors
COLUMNS = ("coordinate", "box from", "box to", "allowed from", "allowed to", "today")
MORE = (
    "best known",
    "payoffs point to",
    "standard error",
    "decision",
    "per unit",
    "its error",
)


def explanation_table(explanation: Mapping[str, Any]) -> Table:
    """A row per coordinate of an explanation."""
    unknown = [None] * len(explanation["names"])
    keys = ("start", "centre", "peak", "peak_error", "value", "per_unit", "per_unit_error")
    columns = [explanation.get(key, unknown) for key in keys]
    rows = zip(
        explanation["names"], *explanation["box"], *explanation["allowed"], *columns, strict=True
    )
    return Table.of((*COLUMNS, *MORE), list(rows))


def plot_explanation(explanation: Mapping[str, Any], path: str | Path | None = None) -> "Figure":
    """Draw an explanation: a ruler per coordinate, from one end of its box to the other.

    Parameters
    ----------
    path : the file to write the figure to.
    """
    table = explanation_table(explanation)
    figure = begun(path, 6.4, 1.3 + 0.95 * len(table.rows))
    rulers = figure.subplots(len(table.rows), 1, squeeze=False)[:, 0]
    for axes, row in zip(rulers, table.dicts(), strict=True):
        _draw(axes, row, asked=explanation["id"] is not None)
    title = str(explanation["text"]).splitlines()[0]
    figure.suptitle(wrapped(title, 80), fontsize=10)
    legend_below(figure, rulers)
    return finished(figure, path)


def _draw(axes: Any, row: dict[str, Any], *, asked: bool) -> None:
    low, high, error = row["box from"], row["box to"], row["standard error"]
    axes.plot([low, high], [0, 0], color="0.8", linewidth=2, zorder=1)
    allowed = [row["allowed from"], row["allowed to"]]
    axes.plot(allowed, [0, 0], color="0.55", linewidth=7, zorder=2, label="could be chosen")
    if error is not None:
        ends = np.clip(row["payoffs point to"] + np.array([-SURE, SURE]) * error, low, high)
        label = "payoffs put the best (± 2 s.e.)"
        axes.plot(ends, [0.28, 0.28], color=LEARNED, linewidth=3, alpha=0.5, label=label)
    marks = [("best known", row["best known"], 0.28, "o", LEARNED)]
    marks.append(("done today", row["today"], -0.28, "X", TODAY))
    if asked:
        marks.append(("decided", row["decision"], 0.0, "D", "black"))
    for label, value, height, shape, colour in marks:
        axes.plot([value], [height], shape, color=colour, markersize=7, zorder=4, label=label)
    axes.set(ylim=(-0.6, 0.6), yticks=[])
    axes.set_xlim(low - 0.02 * (high - low), high + 0.02 * (high - low))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(MUTED)
    axes.set_ylabel(wrapped(row["coordinate"], 14), rotation=0, ha="right", va="center")
    if row["its error"] is not None:
        gain = plus_minus(row["per unit"], SURE * row["its error"], sign=True)
        axes.set_title(
            f"one more unit: {gain} in payoff (± 2 s.e.)", fontsize=8, loc="right", color=MUTED
        )
