"""Tables and figures of what it brings that contexts earn their way in."""

import json
import math
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import stats

import continuarm as ca
from benchmarks.contexts_run import WORLDS
from benchmarks.recommended_page import is_worse, surely_worse
from continuarm.drawing import COLOURS, figure_class, write
from continuarm.lab.figures.plots import ratio_dots
from continuarm.lab.measures import Interval, ratio
from continuarm.paper.reproduction.measures import power
from continuarm.table import Table

HORIZON = 10**5
KEPT_LIMIT, MEAN_LIMIT, RIVAL_LIMIT, WIDE_LIMIT = 1.15, 0.8, 0.18, 1.3
NAMED = {"one-of-5": 0.35, "one-of-10": 0.35, "sine-5": 0.7, "sine-20": 0.7, "cosine-hills": 0.7}
WIDE = ("two-communities", "one_matters(1)", "linear-demand")
DRAWN = range(7300, 7320)  # chosen when all was finished
LABELS = {"recommended": "recommended", "adaptive-kwsa": "adaptive KWSA",
          "static-kwsa": "static KWSA", "uniform-ucb": "uniform"}  # fmt: skip
MARKERS = dict(zip(LABELS, "osD^", strict=True))
TIME = ("ask, µs", "tell, µs")

Regrets = np.ndarray[Any, Any]
Found = dict[str, Any]


def key_of(version: str, world: list[Any], policy: Any) -> str:
    """Under which a run is kept."""
    return json.dumps([version, world, list(policy)])


def regrets_of(found: Found, world: list[Any], version: str = "now") -> Regrets:
    """The last regret of each seed of the recommended policy."""
    return np.array(found[key_of(version, world, ("recommended", {}))])[:, -1]


def of_two(found: Found, world: list[Any]) -> tuple[Regrets, Regrets]:
    """Now and before, the same seeds."""
    ours, theirs = (regrets_of(found, world, version) for version in ("now", "before"))
    n = min(len(ours), len(theirs))
    return ours[:n], theirs[:n]


def mean_of(logs: list[float]) -> Interval:
    """A geometric mean, with the 95 % interval over what it is taken of."""
    mean, half = float(np.mean(logs)), 1.96 * float(stats.sem(logs))
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def cell(value: Interval) -> str:
    """For a table."""
    if math.isnan(value.low):
        return f"{value.value:.2f}"
    return f"{value.value:.2f} [{value.low:.2f}, {value.high:.2f}]"


def verdict(value: Interval, limit: float) -> str:
    """Whether a limit holds, is missed, or lies inside the interval."""
    return "holds" if value.high <= limit else "missed" if value.low > limit else "open"


class Suite:
    """Every problem now and before."""

    def __init__(self, found: Found) -> None:
        pairs = {name: of_two(found, ["suite", name]) for name in ca.problem_names("suite")}
        self.pairs = {name: pair for name, pair in pairs.items() if pair[1].any()}
        self.ratios = {name: ratio(*pair) for name, pair in self.pairs.items()}
        self.order = sorted(self.ratios, key=lambda name: self.ratios[name].value)
        self.mean = mean_of([math.log(value.value) for value in self.ratios.values()])
        chances = {name: is_worse(*pair, KEPT_LIMIT) for name, pair in self.pairs.items()}
        self.worse = surely_worse(chances)

    def table(self) -> Table:
        """A row per problem, the best first."""
        rows = [
            (name, *(f"{side.mean():,.1f}" for side in self.pairs[name]), cell(self.ratios[name]),
             len(self.pairs[name][0]), "worse" if name in self.worse else "")
            for name in self.order
        ]  # fmt: skip
        return Table.of(("problem", "now", "before", "now / before", "seeds", ""), rows)

    def named(self) -> Table:
        """The problems with a limit of their own."""
        rows = [
            (name, cell(self.ratios[name]), limit, verdict(self.ratios[name], limit))
            for name, limit in NAMED.items()
        ]
        return Table.of(("problem", "now / before", "at most", ""), rows)

    def gain(self) -> tuple[int, Interval]:
        """How many problems are not as before, within 3 %, and the geometric mean over these."""
        other = [v.value for v in self.ratios.values() if abs(v.value - 1.0) > 0.03]
        return len(other), mean_of([math.log(value) for value in other])

    def losers(self) -> list[str]:
        """Where it is likelier worse than better."""
        return [name for name in reversed(self.order) if self.ratios[name].low > 1.0]

    def draw(self, path: Path) -> None:
        """All ratios."""
        shown = {
            name: value._replace(low=max(value.low, 0.1)) for name, value in self.ratios.items()
        }
        ratio_dots([(name, [shown[name]]) for name in self.order], ["now"], "before", path)


def wide_table(found: Found) -> Table:
    """With ten more dimensions, relative to without."""
    rows = []
    for name in WIDE:
        cells: list[Any] = [name]
        for version in ("before", "now"):
            plain, more = (regrets_of(found, ["wider", name, k], version) for k in (0, 10))
            value = ratio(more, plain)
            cells += [f"{plain.mean():,.0f}", f"{more.mean():,.0f}", cell(value)]
        rows.append((*cells, WIDE_LIMIT, verdict(value, WIDE_LIMIT)))
    both = [
        f"{version}: {what}" for version in ("before", "now") for what in ("alone", "+10", "ratio")
    ]
    return Table.of(("problem", *both, "at most", ""), rows)


def rivals(page: str) -> dict[str, float]:
    """The rival's mean regrets, on the problems that count, from the page of the comparison."""
    found = {}
    for line in page.splitlines():
        cells = [one.strip() for one in line.strip("|").split("|")]
        if len(cells) == 10 and cells[1] in ("seen", "unseen") and not cells[9]:
            found[cells[0]] = float(cells[6].split("±")[0].replace(",", ""))
    return found


def rival_mean(suite: Suite, page: str, *, before: bool = False) -> tuple[int, Interval]:
    """The number of problems, and the geometric mean of the ratios to the rival's regret."""
    logs = [
        math.log(float(suite.pairs[name][before].mean()) / mean)
        for name, mean in rivals(page).items()
    ]
    return len(logs), mean_of(logs)


def drawn_table(found: Found) -> tuple[Table, Interval, Interval]:
    """A row per world, and the two geometric means."""
    rows, before, rival = [], [], []
    for seed in DRAWN:
        world = ca.problem("drawn", seed=seed)
        ours, theirs = of_two(found, ["drawn", seed])
        tried = [np.array(v)[:, -1] for k, v in found.items()
                 if json.loads(k)[1] == ["drawn", seed] and "adaptive" in k]  # fmt: skip
        best = min(tried, key=lambda one: float(one.mean()))
        values = ratio(ours, theirs), ratio(ours[: len(best)], best[: len(ours)])
        before.append(math.log(values[0].value))
        rival.append(math.log(values[1].value))
        means = (f"{one.mean():,.0f}" for one in (ours, theirs, best))
        rows.append((seed, world.context.dim, world.decision.dim, f"{world.noise:.2g}", *means,
                     *(f"{v.value:.2f}" for v in values)))  # fmt: skip
    columns = ("seed", "dx", "dy", "noise", "now", "before", "rival", "now / before")
    return Table.of((*columns, "now / rival"), rows), mean_of(before), mean_of(rival)


def growth_table(found: Found, marks: list[int]) -> Table:
    """Slopes of log regret, one per seed."""
    rows = []
    for label, world, low, high in (
        ("one_matters(1)", ["one matters", 1], 1 / 2, 1 / 2),
        ("two-communities", ["suite", "two-communities"], 3 / 5, 2 / 3),
    ):
        runs = np.array(found[key_of("now", world, ("recommended", {}))])
        slopes = [np.polyfit(np.log(marks), np.log(run), 1)[0] for run in runs]
        half = stats.t.ppf(0.975, len(slopes) - 1) * stats.sem(slopes)
        ends = [f"{runs[:, k].mean():,.0f}" for k in (0, -1)]
        mean = np.mean(slopes)
        came = "below" if mean + half < low else "above" if mean - half > high else "as expected"
        expected = f"{low:.2g}" if low == high else f"{low:.2g} to {high:.2g}"
        rows.append((label, len(runs), *ends, f"{mean:.3f} ± {half:.3f}", expected, came))
    columns = ("problem", "seeds", "regret at 10⁴", "at 10⁶", "slope, 95 %", "expected", "came")
    return Table.of(columns, rows)


def series(found: Found, kind: str) -> dict[str, tuple[Any, ...]]:
    """For each policy the dimensions, the mean regrets and their standard errors."""
    points: dict[str, list[tuple[int, float, float]]] = {}
    for key, values in found.items():
        _, (of, dim), (policy, _) = json.loads(key)
        if of == kind:
            last = np.array(values)[:, -1]
            points.setdefault(policy, []).append((dim, last.mean(), stats.sem(last)))
    return {name: tuple(zip(*sorted(of), strict=True)) for name, of in points.items()}


def without_contexts(world: ca.Problem) -> float:
    """The regret of the best decision that is the same for all contexts, where payoffs are square.

    Then that decision is the mean of the best ones.
    """
    points = world.draw_contexts(np.random.default_rng(0), 20_000)
    best, heights = world.best_many(points)
    same = np.tile(best.mean(axis=0), (len(points), 1))
    return HORIZON * float((heights - world.mean_many(points, same)).mean())


def _panel(axes: Any, found: Found, kind: str, title: str, x: str) -> None:
    """Regret against a number of dimensions, on logarithmic axes; bars are 95 % intervals."""
    each, few = series(found, kind), min(len(values) for values in found.values()) < 3
    for i, (name, label) in enumerate(LABELS.items()):
        if name in each:
            dims, means, errors = each[name]
            beside = 1.03 ** (2 * i - len(LABELS) + 1)  # no two error bars lie over each other
            axes.errorbar(
                beside * np.array(dims), means, color=COLOURS[i],
                yerr=None if few else 1.96 * np.array(errors), marker=MARKERS[name],
                markersize=4, linewidth=1.2, label=label, capsize=2,
            )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel=x)
    axes.set_title(title, fontsize=9)
    dims = each["recommended"][0]
    axes.set_xticks(dims, [str(dim) for dim in dims])
    axes.minorticks_off()
    axes.grid(True, which="major", color="0.92")
    axes.spines[["top", "right"]].set_visible(False)


def draw_contexts(found: Found, path: Path) -> None:
    """The picture of the open problem."""
    figure = figure_class()(figsize=(7.2, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    x = "context dimensions dx"
    _panel(left, found, "one matters", "one context matters", x)
    _panel(right, found, "all matter", "all contexts matter", x)
    for axes, kind in ((left, "one matters"), (right, "all matter")):
        axes.axhline(without_contexts(WORLDS[kind](1)), color="0.45", linestyle="--",
                     linewidth=0.9, label="the best decision without contexts")  # fmt: skip
    left.set_ylabel("regret after 100,000 decisions, 95 %")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=8, loc="outside lower center", ncols=4)
    write(figure, path)


def draw_decisions(found: Found, path: Path) -> None:
    """The title's claim, with the recommended policy in it."""
    figure = figure_class()(figsize=(4.8, 3.9), layout="constrained")
    axes = figure.add_subplot()
    _panel(axes, found, "quadratic", "a quadratic payoff, equal curvatures, dx = 1",
           "dimension dy of the decision")  # fmt: skip
    dims, means, _ = series(found, "quadratic")["recommended"]
    axes.plot(dims, 0.6 * means[0] * np.array(dims), "--", color="0.45", linewidth=0.9,
              label="linear in dy")  # fmt: skip
    axes.set_ylabel("regret after 100,000 decisions, 95 %")
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=3)
    write(figure, path)


def dimension_table(found: Found, kinds: dict[str, str], what: str) -> Table:
    """The numbers of a figure."""
    rows = []
    for kind, label in kinds.items():
        for name, (dims, means, errors) in series(found, kind).items():
            cells = dict(zip(dims, zip(means, errors, strict=True), strict=True))
            shown = {dim: f"{m:,.0f} ± {e:,.0f}" for dim, (m, e) in cells.items()}
            rows.append((label, LABELS[name], shown))
    dims = sorted({dim for _, _, shown in rows for dim in shown})
    lines = [(*one, *(shown.get(dim, "") for dim in dims)) for *one, shown in rows]
    return Table.of(("", "policy", *(f"{what} = {dim}" for dim in dims)), lines)


def power_table(found: Found) -> Table:
    """The power of dy by which regret grows."""
    rows = []
    for name, (dims, means, _) in series(found, "quadratic").items():
        if len(dims) > 3:
            value = power(np.array(dims, np.float64), np.array(means))
            rows.append((LABELS[name], str(value)))
    return Table.of(("policy", "regret grows like dy^p: p"), rows)


def cost_table(found: list[dict[str, Any]]) -> Table:
    """Before and now, medians over rounds by turns."""
    rows = []
    for one in found:
        rounds = [tuple(dict(each) for each in pair) for pair in one["rounds"]]
        for pair in rounds:
            for each in pair:
                each["ask + tell, µs"] = sum(each[name] for name in TIME)
        limit = {1: 1.5, 10: 1.0}[one["dx"]]
        for what in ("ask + tell, µs", *TIME, "bins", "KB per bin"):
            old, new = ([pair[side][what] for pair in rounds] for side in (0, 1))
            times = median(b / a for a, b in zip(old, new, strict=True))
            most = limit if what == "ask + tell, µs" else None
            said = None if most is None else "holds" if times <= most else "missed"
            cells = (round(median(old), 1), round(median(new), 1), round(times, 2))
            rows.append((one["dx"], one["dy"], what, *cells, most, said))
    return Table.of(("dx", "dy", "what", "before", "now", "ratio", "at most", ""), rows)


def seeds_of(found: Found) -> str:
    """How many seeds the runs of a part have."""
    counts = sorted({len(values) for values in found.values()})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
