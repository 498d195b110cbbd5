"""Figures: each draws what a table of a `Result` holds."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from continuarm.core.compiling import Array
from continuarm.drawing import COLOURS, STYLES, figure_class, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ratio_dots", "regret_curves"]


FEW = 2  # an interval of so few runs has one degree of freedom, and says nothing


class Drawable(Protocol):
    """What a curve needs to know of a result."""

    @property
    def policy(self) -> str: ...

    @property
    def problem(self) -> str: ...

    @property
    def feedback(self) -> str: ...

    @property
    def replications(self) -> int: ...

    @property
    def checkpoints(self) -> NDArray[np.int64]: ...

    @property
    def mean(self) -> Array: ...

    @property
    def standard_error(self) -> Array: ...


def regret_curves(results: Sequence[Drawable], path: str | Path | None = None) -> "Figure":
    """Regret against decisions on a log-log plot, with 95 % bands; written to `path` if given."""
    figure: Figure = figure_class()(figsize=(5.2, 3.9), layout="constrained")
    axes = figure.add_subplot()
    for i, result in enumerate(results):
        _curve(axes, result, COLOURS[i % len(COLOURS)], STYLES[i % len(STYLES)])
    axes.set(xscale="log", yscale="log", xlabel="decisions", ylabel="cumulative regret")
    problems = sorted({", ".join(filter(None, (r.problem, r.feedback))) for r in results})
    runs = sorted({result.replications for result in results})
    band = ", 95 % band" if max(runs) > FEW else ""
    title = f"{'; '.join(problems)}: mean of {', '.join(map(str, runs))} runs{band}"
    axes.set_title(title, fontsize=10)
    axes.grid(True, which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=9, loc="outside lower center", ncols=2)
    if path is not None:
        write(figure, path)
    return figure


def _curve(axes: Any, result: Drawable, colour: str, style: str) -> None:
    mean = result.mean
    shown = mean > 0  # a logarithm; the oracle's regret is 0
    t = result.checkpoints[shown]
    label = result.policy if shown.any() else f"{result.policy} (0)"
    axes.plot(t, mean[shown], color=colour, linestyle=style, label=label)
    if result.replications > FEW:
        half = stats.t.ppf(0.975, result.replications - 1) * result.standard_error[shown]
        low = np.maximum(mean[shown] - half, mean[shown] * 1e-3)
        axes.fill_between(t, low, mean[shown] + half, color=colour, alpha=0.2, linewidth=0)


Interval = tuple[float, float, float]


def ratio_dots(
    groups: Sequence[tuple[str, Sequence[Interval]]],
    labels: Sequence[str],
    baseline: str,
    path: str | Path | None = None,
    feedback: str = "",
) -> "Figure":
    """One line per group: each policy's regret relative to the baseline's, with 95 % intervals.

    An interval that is not finite is not drawn. `feedback` says delay and loss in the title.
    """
    figure: Figure = figure_class()(figsize=(6.4, 1.2 + 0.24 * len(groups)), layout="constrained")
    axes = figure.add_subplot()
    spread = np.linspace(0.15, -0.15, len(labels)) if len(labels) > 1 else [0.0]
    for i, label in enumerate(labels):
        values = np.array([intervals[i] for _, intervals in groups])
        height = len(groups) - 1 - np.arange(len(groups)) + spread[i]
        colour = COLOURS[i % len(COLOURS)]
        axes.hlines(height, np.maximum(values[:, 1], 1e-3), values[:, 2], color=colour, alpha=0.6)
        axes.plot(values[:, 0], height, "o", markersize=4, color=colour, label=label)
    axes.axvline(1.0, color="0.4", linewidth=1)
    has_intervals = any(np.isfinite(one[1]) for _, intervals in groups for one in intervals)
    said = ", 95 % intervals" if has_intervals else ""
    axes.set_xscale("log")
    axes.set_xlabel(f"regret relative to the baseline{said} (left is better)", fontsize=9)
    title = "; ".join(filter(None, (f"baseline: {baseline}", feedback)))
    axes.set_title(title, fontsize=8, loc="left")
    axes.xaxis.set_major_formatter("{x:g}")
    _label_between(axes)
    axes.set_yticks(range(len(groups)), [name for name, _ in groups][::-1], fontsize=8)
    axes.set_ylim(-0.7, len(groups) - 0.3)
    axes.grid(True, axis="x", which="both", color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    if len(labels) > 1:
        figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=2)
    if path is not None:
        write(figure, path)
    return figure


def _label_between(axes: Any) -> None:
    """Name ticks between powers of ten too, as many as there is room for."""
    from matplotlib.ticker import FuncFormatter

    low, high = axes.get_xlim()
    named = range(2, 10) if high < 9.0 * low else (2, 5) if high < 3e3 * low else ()

    def text(x: float, _: object) -> str:
        digit = x / 10.0 ** np.floor(np.log10(x) + 1e-9)
        return f"{x:g}" if round(digit) in named else ""

    axes.xaxis.set_minor_formatter(FuncFormatter(text))
    axes.tick_params(axis="x", which="both", labelsize=8, length=3)
