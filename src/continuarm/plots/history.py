"""What was paid over time, ours against the incumbent's."""

from collections.abc import Sequence
from itertools import pairwise
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
ENOUGH = 30  # payoffs in a point of the figure
LONG = 1 / 16  # of all payoffs without one of a kind, such as ours during a pause: a gap, if also
USUAL = 5  # times as long as is usual between two of them


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
            _draw(axes, rows, whose, colour, mark, told=max(row[2] for row in table.rows))
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


def pooled(rows: Sequence[tuple[Any, ...]], least: int = ENOUGH) -> list[tuple[Any, ...]]:
    """Neighbours together, until each has enough payoffs, if there are as many.

    >>> pooled([(0, 2, 2, 1.0, 1.0), (2, 4, 2, 5.0, 1.0)], least=4)
    [(0, 4, 4, 3.0, 1.2909944487358056)]
    """
    found: list[tuple[Any, ...]] = []
    for row in rows:
        if found and found[-1][2] < least:
            found[-1] = _together(found[-1], row)
        else:
            found.append(row)
    if len(found) > 1 and found[-1][2] < least:
        last = found.pop()
        found[-1] = _together(found[-1], last)
    return found


def _together(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    (first, _, n, a, _), (_, last, m, b, _) = one, other
    mean = (n * a + m * b) / (n + m)
    squares = sum((row[4] or 0.0) ** 2 * row[2] * (row[2] - 1) for row in (one, other))
    squares += n * (a - mean) ** 2 + m * (b - mean) ** 2
    return first, last, n + m, mean, (squares / ((n + m) * (n + m - 1))) ** 0.5


def _parts(rows: Sequence[tuple[Any, ...]], told: int) -> list[list[tuple[Any, ...]]]:
    """Rows between which there was for long no payoff of their kind."""
    long = told * max(LONG, USUAL / sum(row[2] for row in rows))
    found = [[rows[0]]]
    for before, row in pairwise(rows):
        if row[0] - before[1] <= long:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def _draw(
    axes: Any, rows: list[tuple[Any, ...]], whose: str, colour: str, mark: str, told: int
) -> None:
    together: list[tuple[Any, ...]] = []
    for part in _parts(rows, told):  # nothing is drawn across a gap
        together += [(None,) * 5, *pooled(part)] if together else pooled(part)
    numbers = np.array([[np.nan if n is None else n for n in row] for row in together], float)
    first, last, _, mean, error = numbers.T
    middle = 0.5 * (first + last)
    half = SURE * error  # of a single payoff there is none
    label = "our decisions" if whose == "ours" else "the incumbent's"
    axes.fill_between(middle, mean - half, mean + half, color=colour, alpha=0.18, linewidth=0)
    axes.plot(middle, mean, color=colour, marker=mark, markersize=4, linewidth=1, label=label)
