"""The expected payoff over one or two coordinates of the decision, with what was tried."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.errors import InputError
from continuarm.plots.canvas import (
    LEARNED,
    MUTED,
    TODAY,
    begun,
    finished,
    frame,
    legend_below,
    say,
)
from continuarm.plots.subject import (
    Subject,
    Values,
    dimension,
    filled,
    name_axis,
    names_of,
    others,
    wrapped,
)
from continuarm.sets import Polytope
from continuarm.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["payoff_table", "plot_payoff"]

POINTS = {1: 121, 2: 41}  # to a side
SURE = 2.0  # standard errors
FORBIDDEN: dict[str, Any] = {
    "facecolor": "none",
    "edgecolor": "0.6",
    "hatch": "//",
    "linewidth": 0,
    "label": "not allowed by max_move or coupled limits",
}
UNKNOWN = "too little is known here yet,\nor the learner fits no payoff"


def payoff_table(
    policy: Subject,
    context: Any = (),
    over: str | Sequence[str] | None = None,
    at: Values = None,
) -> Table:
    """The payoff expected along coordinates, whether that was tried, and whether it is allowed.

    Allowed is what coupled limits and `max_move` allow, whatever the spacing is. The others are
    held at `at`, by default at the best decision known. No rows: nobody knows.
    """
    shown, best = _shown(policy, over), policy.explain(context)
    decision = policy.decision
    point = filled(decision, at, np.array(best["centre"]))
    sides = [np.linspace(decision.low[j], decision.high[j], POINTS[len(shown)]) for j in shown]
    grid = np.array(np.meshgrid(*sides, indexing="ij")).reshape(len(shown), -1).T
    values = np.tile(point, (len(grid), 1))
    values[:, shown] = grid
    found, rows = policy.expected(context, values), []
    if found is not None:
        low, high = np.array(best["tried"])
        tried = ((low <= values) & (values <= high))[:, shown].all(axis=1)
        rows = [
            (*place, *foreseen, bool(seen), bool(may))
            for place, foreseen, seen, may in zip(
                grid.tolist(), found.tolist(), tried, _allowed(decision, best, values), strict=True
            )
        ]
    names = [decision.names[j] for j in shown]
    return Table.of((*names, "expected payoff", "standard error", "tried", "allowed"), rows)


def _allowed(decision: Box, best: Mapping[str, Any], values: Array) -> Array:
    """Whether coupled limits, and those near a reference, allow each of these decisions."""
    low, high = best["limits"] or (decision.low, decision.high)
    room = 1e-9 * decision.span
    allowed = ((values >= low - room) & (values <= high + room)).all(axis=1)
    if isinstance(decision, Polytope):
        allowed &= (values @ decision.A.T <= decision.b + 1e-9 * abs(decision.b)).all(axis=1)
    return np.asarray(allowed)


def _shown(policy: Subject, over: str | Sequence[str] | None) -> list[int]:
    decision = policy.decision
    if over is None:
        return list(range(min(decision.dim, 2)))
    found = [dimension(decision, name, "coordinate") for name in names_of(over)]
    if not 1 <= len(found) <= 2 or len(set(found)) < len(found):
        raise InputError(f"`over` needs one or two different coordinates, but got {over!r}")
    return found


def plot_payoff(
    policy: Subject,
    context: Any = (),
    over: str | Sequence[str] | None = None,
    at: Values = None,
    path: str | Path | None = None,
) -> "Figure":
    """Draw the expected payoff for a context over one or two coordinates of the decision.

    Parameters
    ----------
    over : the names of one or two coordinates; default the first two.
    at : where the others are held, by name for some or in order for all; default at the best
        decision known.
    path : the file to write the figure to.
    """
    shown, table = _shown(policy, over), payoff_table(policy, context, over, at)
    found, decision = policy.explain(context), policy.decision
    figure = begun(path, 6.4, 4.3)
    axes = figure.subplots()
    marks = {"best known": np.array(found["centre"]), "done today": np.array(found["start"])}
    if not table.rows:
        say(axes, UNKNOWN)
        axes.set_xlim(decision.low[shown[0]], decision.high[shown[0]])
    elif len(shown) == 1:
        _curve(axes, np.array(table.rows, float), marks, shown[0])
    else:
        _map(figure, axes, np.array(table.rows, float), marks, shown, np.array(found["tried"]))
    name_axis(axes.xaxis, decision, shown[0], 60)
    if len(shown) == 1:
        axes.set_ylabel("expected payoff")
    else:
        axes.set_ylim(decision.low[shown[1]], decision.high[shown[1]])
        name_axis(axes.yaxis, decision, shown[1], 40)
    point = filled(decision, at, np.array(found["centre"]))
    held, title = others(decision, point, shown), "Expected payoff"
    if found["frozen"]:
        title += f" (its {'segment' if 'segment' in found else 'bin'} is frozen)"
    if policy.context.dim:
        title += f" for {others(policy.context, np.array(found['context']), [])}"
    axes.set_title(wrapped(f"{title}{f', {held}' if held else ''}", 76), fontsize=10)
    if axes.get_legend_handles_labels()[0]:
        legend_below(figure, [axes])
    return finished(figure, path)


def _curve(axes: Any, rows: Array, marks: dict[str, Array], j: int) -> None:
    x, mean, error, tried, allowed = rows.T
    inside = tried > 0.0
    axes.plot(x, mean, color=LEARNED, linestyle=":", label="beyond what was tried")
    low, high = mean - SURE * error, mean + SURE * error
    axes.fill_between(x, low, high, color=LEARNED, alpha=0.08, linewidth=0)
    axes.fill_between(x, low, high, where=inside, color=LEARNED, alpha=0.2, linewidth=0)
    axes.plot(x[inside], mean[inside], color=LEARNED, linewidth=2, label="expected (± 2 s.e.)")
    axes.axvline(marks["best known"][j], color=LEARNED, linewidth=1, label="best known")
    axes.axvline(marks["done today"][j], color=TODAY, linestyle="--", label="done today")
    if inside.any():  # far outside the band says nothing, and would hide the rest
        near = np.concatenate([low[inside], high[inside]])
        room = max(float(np.ptp(near)), 1e-9 * np.abs(near).max(), 1e-300)
        axes.set_ylim(max(low.min(), near.min() - room), near.max() + 0.1 * room)
    axes.set_xlim(x[0], x[-1])
    if not allowed.all():
        ends = {"transform": axes.get_xaxis_transform(), "step": "mid"}
        axes.fill_between(x, 0.0, 1.0, where=allowed == 0.0, **ends, **FORBIDDEN)
    frame(axes)


def _map(
    figure: "Figure",
    axes: Any,
    rows: Array,
    marks: dict[str, Array],
    shown: Sequence[int],
    tried: Array,
) -> None:
    from matplotlib.ticker import MaxNLocator

    n = POINTS[2]
    x, y, mean = (rows[:, k].reshape(n, n) for k in range(3))
    inside = rows[:, 4].reshape(n, n) > 0.0
    if np.ptp(mean) > 0.0:  # far outside nothing is known: its colours would hide the rest
        deep = 2.0 * np.ptp(mean[inside]) if inside.sum() > 1 else np.ptp(mean)
        lowest = max(mean.max() - (deep or np.ptp(mean)), mean.min())
        levels = MaxNLocator(13).tick_values(lowest, mean.max())
        filled_in = axes.contourf(x, y, mean, levels, cmap="viridis", extend="min")
        figure.colorbar(filled_in, ax=axes, label="expected payoff")
    else:
        say(axes, f"the same payoff everywhere: {mean[0, 0]:.4g}")
    forbidden = rows[:, 5].reshape(n, n) == 0.0
    if forbidden.any():
        axes.contourf(x, y, forbidden, [0.5, 1.5], colors="none", hatches=["//"])
        axes.fill_between([], [], **FORBIDDEN)
    (left, low), (right, high) = tried[:, shown]
    _fade(axes, (x[0, 0], x[-1, 0], y[0, 0], y[0, -1]), (left, right, low, high))
    corners = [(left, low), (right, low), (right, high), (left, high), (left, low)]
    axes.plot(*np.array(corners).T, color="white", linewidth=2.5)
    axes.plot(*np.array(corners).T, color="black", linewidth=1, label="tried so far; pale: beyond")
    for (label, at), shape, colour in zip(marks.items(), "oX", (LEARNED, TODAY), strict=True):
        axes.plot(
            *at[shown],
            shape,
            markersize=9,
            color=colour,
            markeredgecolor="white",
            label=label,
            linestyle="none",
            clip_on=False,
            zorder=5,
        )
    axes.tick_params(colors=MUTED, labelcolor="black")


def _fade(axes: Any, box: Sequence[float], tried: Sequence[float]) -> None:
    """Make what lies beyond what was tried pale: the fit says little there."""
    west, east, south, north = box
    left, right, low, high = tried
    for a, b, c, d in (
        (west, left, south, north),
        (right, east, south, north),
        (left, right, south, low),
        (left, right, high, north),
    ):
        axes.fill_between([a, b], c, d, color="white", alpha=0.6, linewidth=0)
