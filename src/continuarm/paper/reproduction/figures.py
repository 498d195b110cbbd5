"""The figures: each draws a table that `measures` computed, at the width of a journal's page."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from continuarm.core.compiling import Array
from continuarm.drawing import COLOURS, figure_class
from continuarm.lab.simulation import simulate
from continuarm.paper import theory
from continuarm.paper.reproduction.measures import Curve, curve, labels, slope
from continuarm.paper.reproduction.plan import CORRECTED, DIMENSIONS, GROWING, PRINTED, skewed

if TYPE_CHECKING:
    import polars
    from matplotlib.figure import Figure

__all__ = ["draw", "save"]

FORMATS = ("svg", "png", "pdf")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LOOKS = {
    name: (COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)])
    for i, name in enumerate(("static", "uniform", "adaptive", "central", "other"))
}
FEW = 2  # an interval of so few numbers has one degree of freedom, and says nothing
SHIFTS = (0.84, 0.92, 1.0, 1.09, 1.19)  # of positions, so that no two intervals share one
OPEN = "open choices: a = 3/(8 M1), δ = 0.2, start at the centre, Gaussian noise 0.1"


def draw(name: str, runs: "polars.DataFrame") -> "Figure":
    """The figure of a study."""
    return {
        "regret": _regret,
        "noise": _noise,
        "dimension": _dimension,
        "lower-bound": _lower_bound,
        "contexts": _contexts,
    }[name](runs)


def save(figure: "Figure", folder: Path, name: str) -> None:
    """Write a figure in every format."""
    for form in FORMATS:
        figure.savefig(folder / f"{name}.{form}", dpi=200, metadata=_metadata(form))


def _metadata(form: str) -> dict[str, Any]:
    return {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[form]


def _panels(columns: int, height: float = 3.8, rows: int = 1) -> tuple["Figure", Any]:
    figure = figure_class()(figsize=(7.2, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _look(policy: str) -> tuple[str, str, str]:
    """Colour by algorithm, marker and line by variant."""
    for word in ("static", "adaptive", "uniform"):
        if policy.startswith(word):
            colour, marker = LOOKS[word]
            if "central" in policy:
                return colour, "D", ":"
            return colour, marker, "-"
    return *LOOKS["other"], "-"


def _line(axes: Any, of: Curve, policy: str, *, hollow: bool = False) -> None:
    """A curve with its band; `hollow` tells corrected algorithms from printed ones."""
    colour, marker, style = _look(policy)
    axes.plot(
        of.horizons, of.mean, color=colour, marker=marker, markersize=3.5, linewidth=1.2,
        linestyle=style, label=policy,
    )  # fmt: skip
    half = np.where(of.seeds > FEW, np.nan_to_num(of.half), np.nan)
    low = np.maximum(of.mean - half, 1e-2 * of.mean)
    axes.fill_between(of.horizons, low, of.mean + half, color=colour, alpha=0.18, linewidth=0)
    if "alternate" in policy and hollow:
        axes.lines[-1].set(linestyle="--", markerfacecolor="white")


def _reference(axes: Any, of: Curve, exponent: float, label: str, style: str) -> None:
    """A line of this slope through the last point of a curve, a little below it."""
    end = 0.55 * of.mean[-1]
    values = end * (of.horizons / of.horizons[-1]) ** exponent
    axes.plot(of.horizons, values, color="0.45", linewidth=0.9, linestyle=style, label=label)


def _finish(axes: Any, title: str, x: str = "horizon T", y: str = "regret") -> None:
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.set_title(title, fontsize=9)
    axes.grid(True, which="major", color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.yaxis.set_minor_formatter("")
    axes.legend(frameon=False, fontsize=7, handlelength=2.2, ncols=2, loc="upper center",
                bbox_to_anchor=(0.5, -0.2))  # fmt: skip


def _same_scale(panels: Sequence[Any]) -> None:
    low = min(axes.get_ylim()[0] for axes in panels)
    high = max(axes.get_ylim()[1] for axes in panels)
    for axes in panels:
        axes.set_ylim(low, high)


def _regret(runs: "polars.DataFrame") -> "Figure":
    figure, ((left, right),) = _panels(2, 4.4)
    rate = (2 / 3, "slope 2/3: Theorems 1, 2", "--")
    lower, uniform = (3 / 5, "slope 3/5: lower bound", ":"), (4 / 5, "slope 4/5: uniform", ":")
    for axes, policies, title, references in (
        (left, PRINTED, "settings as printed", (("static", rate), ("uniform", uniform))),
        (right, CORRECTED, "with the corrections",
         (("adaptive, central", rate), ("adaptive, central", lower))),
    ):  # fmt: skip
        for policy in policies:
            _line(axes, curve(runs, policy, "two-communities"), policy)
        for policy, reference in references:
            _reference(axes, curve(runs, policy, "two-communities"), *reference)
        _finish(axes, title)
    _same_scale((left, right))
    figure.supxlabel(OPEN, fontsize=7, color="0.35")
    return figure


def _noise(runs: "polars.DataFrame") -> "Figure":
    worlds = labels(runs, "problem")
    figure, (panels,) = _panels(len(worlds))
    for axes, world in zip(panels, sorted(worlds), strict=True):
        for policy in (*PRINTED, "adaptive, alternate"):
            _line(axes, curve(runs, policy, world), policy, hollow=True)
        _finish(axes, f"two-communities, {world}")
    _same_scale(panels)
    return figure


def _dimension(runs: "polars.DataFrame") -> "Figure":
    figure, ((left, right),) = _panels(2, 4.2)
    last = int(max(runs["horizon"]))
    for shift, policy in zip(SHIFTS, (*GROWING, "uniform"), strict=True):
        found = [(dy, curve(runs, policy, f"dy = {dy}")) for dy in DIMENSIONS]
        found = [(dy, of) for dy, of in found if len(of.horizons) > 1 and of.horizons[-1] == last]
        dims = np.array([dy for dy, _ in found], np.float64)
        means = np.array([of.mean[-1] for _, of in found])
        errors, halves, seeds = np.array([[of[k][-1] for _, of in found] for k in (2, 3, 4)])
        _line(left, Curve(dims, means, errors, halves, seeds), policy, hollow=True)
        _slopes(right, dims * shift, [of for _, of in found], policy)
    dims = np.array(DIMENSIONS, np.float64)
    static = curve(runs, "static, alternate", "dy = 1")
    left.plot(dims, 0.4 * static.mean[-1] * dims, color="0.45", linestyle="--", linewidth=0.9,
              label="linear in dy")  # fmt: skip
    right.plot(dims, [theory.horizon_exponent("static", 1, int(d)) for d in dims], color="0.45",
               linestyle="--", linewidth=0.9, label="paper: 2/3")  # fmt: skip
    right.plot(dims, [theory.horizon_exponent("uniform", 1, int(d)) for d in dims], color="0.45",
               linestyle=":", linewidth=0.9, label="paper: uniform")  # fmt: skip
    _finish(left, f"regret at T = {last:,}", "dimension dy of the decision")
    _finish(right, "slope in T, 95 % interval over horizons", "dimension dy of the decision",
            "slope")  # fmt: skip
    right.set(yscale="linear", ylim=(0.2, 1.3))
    for axes in (left, right):
        axes.set_xticks(DIMENSIONS, [str(dy) for dy in DIMENSIONS], minor=False)
        axes.minorticks_off()
    return figure


def _slopes(axes: Any, at: Array, curves: Sequence[Curve], policy: str) -> None:
    """The slope in T at each dimension; an interval of one degree of freedom is not drawn."""
    colour, marker, _ = _look(policy)
    slopes = [slope(of) for of in curves]
    axes.plot(at, [s.value for s in slopes], color=colour, marker=marker, markersize=3.5,
              linewidth=1.2, label=policy)  # fmt: skip
    if "alternate" in policy:
        axes.lines[-1].set(linestyle="--", markerfacecolor="white")
    drawn = [len(of.horizons) > FEW + 1 for of in curves]
    low, high = (np.array([s[k] if d else np.nan for s, d in zip(slopes, drawn, strict=True)])
                 for k in (1, 2))  # fmt: skip
    axes.vlines(at, low, high, color=colour, linewidth=0.9)


def _lower_bound(runs: "polars.DataFrame") -> "Figure":
    figure, (panels,) = _panels(2)
    for axes, dx in zip(panels, (1, 2), strict=True):
        world = f"dx = {dx}"
        for policy in ("static, alternate", "adaptive, alternate", "uniform"):
            _line(axes, curve(runs, policy, world), policy)
        of = curve(runs, "adaptive, alternate", world)
        lower, upper = (theory.horizon_exponent(n, dx, 2) for n in ("lower-bound", "static"))
        _reference(axes, of, lower, f"slope {_fraction(lower)}: lower bound", ":")
        _reference(axes, of, upper, f"slope {_fraction(upper)}: Theorems 1, 2", "--")
        _finish(axes, f"hard family, dx = {dx}")
    _same_scale(panels)
    return figure


def _fraction(value: float) -> Fraction:
    """As the paper writes its exponents."""
    return Fraction(value).limit_denominator(20)


def _contexts(runs: "polars.DataFrame") -> "Figure":
    figure, ((left, right),) = _panels(2, 3.9)
    for policy in ("static", "adaptive", "static, alternate", "adaptive, alternate"):
        _line(left, curve(runs, policy, "Beta(0.5, 5)"), policy, hollow=True)
    _finish(left, "contexts from Beta(0.5, 5)")
    _bins(right, int(max(runs["horizon"])))
    return figure


def _bins(axes: Any, horizon: int) -> None:
    """The bins that the adaptive algorithm ended with, their decisions, and the best ones."""
    world = skewed()
    run = simulate("adaptive-kwsa", world, horizon=horizon, rng=0, checkpoints=1, workers=1)
    x = np.linspace(0, 1, 400)[:, None]
    best = world.best_many(x)[0]
    for i, colour in enumerate(COLOURS[:2]):
        axes.plot(x[:, 0], best[:, i], color=colour, linewidth=1.2, label=f"best y{i + 1}")
        for k, found in enumerate(run.bins()):
            label = f"bin's y{i + 1}" if k == 0 else None
            ends = [found.low[0], found.high[0]]
            axes.plot(ends, [found.best[i]] * 2, color=colour, linewidth=2.5, alpha=0.5,
                      solid_capstyle="butt", label=label)  # fmt: skip
    edges = sorted({float(b.low[0]) for b in run.bins()} | {1.0})
    axes.vlines(edges, -0.1, -0.05, color="0.3", linewidth=0.6)
    _finish(axes, f"adaptive, T = {horizon:,}: {len(edges) - 1} bins", "context x (edges of bins)",
            "decision")  # fmt: skip
    axes.set(xscale="linear", yscale="linear", ylim=(-0.1, 1.03), xlim=(0, 1))
    axes.set_yticks(np.linspace(0, 1, 6))
