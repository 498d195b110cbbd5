"""What was paid over time, ours against the incumbent's."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from continuarm.plots.canvas import LEARNED, TODAY, begun, finished, frame, legend_below, say
from continuarm.plots.subject import Subject
from continuarm.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["history_table", "plot_history"]

SURE = 2.0  # standard errors


def history_table(policy: Subject) -> Table:
    """Mean payoffs over time, with standard errors."""
    return policy.history()


def plot_history(policy: Subject, path: str | Path | None = None) -> "Figure":
    """Draw mean payoffs over time, ours and the incumbent's, with ± 2 standard errors.

    Parameters
    ----------
    path : the file to write the figure to.
    """
    table = history_table(policy)
    figure = begun(path, 6.4, 3.7)
    axes = figure.subplots()
    for whose, colour, mark in (("ours", LEARNED, "o"), ("incumbent's", TODAY, "X")):
        rows = [row[1:] for row in table.rows if row[0] == whose]
        if rows:
            _draw(axes, rows, whose, colour, mark)
    if not table.rows:
        say(axes, "no payoff was told yet")
        axes.set_xticks([])
    elif any(row[0] == "incumbent's" for row in table.rows):
        legend_below(figure, [axes])
    axes.set_xlabel("payoffs learned")
    axes.set_ylabel("mean payoff")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlim(left=0.0)
    axes.set_title("Mean payoff over time, ± 2 standard errors", fontsize=10)
    frame(axes)
    return finished(figure, path)


def _draw(axes: Any, rows: list[tuple[Any, ...]], whose: str, colour: str, mark: str) -> None:
    numbers = np.array([[np.nan if n is None else n for n in row] for row in rows], float)
    first, last, _, mean, error = numbers.T
    middle = 0.5 * (first + last)
    half = SURE * error  # of a single payoff there is none
    label = "our decisions" if whose == "ours" else "the incumbent's"
    axes.fill_between(middle, mean - half, mean + half, color=colour, alpha=0.18, linewidth=0)
    axes.plot(middle, mean, color=colour, marker=mark, markersize=4, linewidth=1, label=label)
