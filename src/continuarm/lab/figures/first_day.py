"""The figure of a first day: what it costs so far, and when the improvement is seen."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from continuarm.drawing import COLOURS, figure_class, write
from continuarm.planning import answers
from continuarm.planning.first_day import FirstDay

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["cost_curve"]

POINTS = "offset points"


def cost_curve(day: FirstDay, path: str | Path | None = None) -> "Figure":
    """Cost so far against decisions; written to `path` if given."""
    figure: Figure = figure_class()(figsize=(6.4, 4.1), layout="constrained")
    axes = figure.add_subplot()
    n, even, ends = np.array(day.curve().rows).T
    axes.fill_between(n, even, ends, color=COLOURS[0], alpha=0.15, linewidth=0)
    axes.plot(n, ends, color=COLOURS[0])
    axes.plot(n, even, color=COLOURS[0], linestyle="--")
    axes.set(xlim=(0.0, n[-1]), ylim=(0.0, 1.1 * ends[-1]))
    _name(axes, n[-1], ends[-1], "every decision at\nthe ends of reach")
    _name(axes, n[-1], even[-1], "drawn evenly\nwithin reach")
    _mark_day(axes, day)
    _mark_seen(axes, day, float(n[-1]))
    axes.set(xlabel="decisions", ylabel="cost so far, in units of the payoff")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.set_title(_title(day, float(n[-1])), fontsize=8, loc="left")
    axes.grid(True, color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    if path is not None:
        write(figure, path)
    return figure


def _title(day: FirstDay, last: float) -> str:
    where = "where the dots lie" if day.seen_after.ends <= last else "beyond this figure"
    seen = [answers.count(decisions) for decisions in reversed(day.seen_after)]
    cost = answers.number(day.cost_until_seen)
    return (
        f"Cost against the start within reach {day.reach:g}, if nothing is learned: noise "
        f"{day.noise:.3g}, curvature {day.curvature:.3g}\n"
        f"An improvement of {answers.improvement(day)} is seen after {seen[0]} to {seen[1]} "
        f"decisions,\nat a cost of {cost} ({where})"
    )


def _name(axes: Any, x: float, y: float, name: str) -> None:
    axes.annotate(name, (x, y), (4, 0), textcoords=POINTS, va="center", fontsize=8)


def _mark_day(axes: Any, day: FirstDay) -> None:
    axes.axvline(day.decisions, color="0.4", linewidth=1)
    axes.annotate(
        f"the day: {day.decisions:,}",
        (day.decisions, 1.0),
        (3, -2) if day.decisions < axes.get_xlim()[1] else (-3, -2),
        xycoords=("data", "axes fraction"),
        textcoords=POINTS,
        ha="left" if day.decisions < axes.get_xlim()[1] else "right",
        va="top",
        fontsize=8,
        color="0.3",
    )


def _mark_seen(axes: Any, day: FirstDay, last: float) -> None:
    """The improvement is seen where a line has cost what seeing costs (eq. F11)."""
    if day.seen_after.ends > last:
        return
    axes.hlines(day.cost_until_seen, 0.0, last, color=COLOURS[1], linewidth=1, linestyle=":")
    for seen, each in zip(day.seen_after, day.per_decision, strict=True):
        if seen <= last:
            axes.plot([seen], [seen * each], "o", markersize=5, color=COLOURS[1])
