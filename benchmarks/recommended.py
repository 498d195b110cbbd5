"""What the recommended policy achieves, against what, and what each ingredient brings.

    python -m benchmarks.recommended [--folder comparison] [--part paper] [--write docs]

Each part is kept in the folder as JSON and not run again; `--write` makes docs/comparison.md and
its figure from them. About half an hour on two cores.
"""

import argparse
import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import continuarm as ca
from continuarm import comparison as cmp
from continuarm import theory
from continuarm.learners.response_surface import ResponseSurface
from continuarm.partitions.evidence_tree import EvidenceTree
from continuarm.plots import ratio_dots
from continuarm.problems.suite import SUITE, UNSEEN
from continuarm.problems.worlds import curvature_at_best
from continuarm.table import Table

HORIZONS = (10**3, 10**4, 10**5, 10**6)
FACTORS = (5, 8, 10, 11)  # of the printed algorithm's regret, that we hold ourselves to
SUITE_HORIZON = 10**5
ABLATION_HORIZON = 5 * 10**4
OURS = cmp.Entrant("recommended", "recommended")


def paper(seeds: int) -> dict[str, Any]:
    """The paper's problem: the static algorithm as printed, and the uniform one tuned."""
    found: dict[str, Any] = {}
    for horizon in HORIZONS:
        printed = {"step": 1.0, "width": 0.2, "start": [0.0, 0.0]}
        printed["bins"] = round(horizon ** (1 / 3))
        bins = sorted({max(1, round(f * horizon**0.2)) for f in (0.5, 1.0, 2.0)})
        arms = sorted({max(2, round(f * horizon**0.1)) for f in (1.5, 2.0, 3.0)})
        tuned = tuple(
            {"bins": k, "arms": a, "scale": s}
            for k in bins
            for a in arms
            for s in (0.05, 0.1, 0.2)
        )
        entrants = [
            OURS,
            cmp.Entrant("static-kwsa as printed", "static-kwsa", (printed,)),
            cmp.Entrant("uniform-ucb tuned", "uniform-ucb", tuned),
        ]
        worlds = {"two-communities": ca.problem("two-communities")}
        run = cmp.compare(entrants, worlds, [horizon], replications=seeds)
        found[str(horizon)] = run.report()["scores"]
        print(run.table(), flush=True)
    return found


def rival(world: ca.Problem) -> cmp.Entrant:
    """Adaptive KWSA with the corrections, told the curvature, the best of many in hindsight."""
    at_best = curvature_at_best(world) if world.decision.dim <= 10 else None
    curvatures = {c for c in (world.curvature, at_best) if c is not None and c > 1e-6}
    settings = tuple(
        {
            "curvature": c,
            "width": width,
            "split_after": split,
            "depth": depth,
            "probe": "alternate",
            "inherit": "iterate-and-count",
        }
        for c in sorted(curvatures)
        for width in (0.1, 0.2, 0.4)
        for split in ("text", "lipschitz")
        for depth in (3, 6)
    )
    return cmp.Entrant("adaptive-kwsa", "adaptive-kwsa", settings)


def noise_and_range(world: ca.Problem) -> tuple[float, float]:
    """The payoff's noise at the best decisions, and the range of its mean over the decisions."""
    rng = np.random.default_rng(0)
    points = world.draw_contexts(rng, 300)
    best, heights = world.best_many(points)
    gaps = [world.payoff(x, y, rng) - h for x, y, h in zip(points, best, heights, strict=True)]
    ranges = []
    for x, height in zip(points[:60], heights[:60], strict=True):
        drawn = world.decision.from_unit(rng.random((200, world.decision.dim)))
        ranges.append(height - min(world.mean_payoff(x, y) for y in drawn))
    return float(np.std(gaps)), float(np.mean(ranges))


def suite(seeds: int) -> dict[str, Any]:
    """Every problem of the suite, seen and unseen."""
    found: dict[str, Any] = {}
    for name, make in SUITE.items():
        world = make()
        entrants = [OURS, rival(world)]
        run = cmp.compare(
            entrants, {name: world}, [SUITE_HORIZON], replications=seeds, baseline="adaptive-kwsa"
        )
        noise, reach = noise_and_range(world)
        shape = {"dx": world.context.dim, "dy": world.decision.dim, "noise": noise, "range": reach}
        found[name] = {"scores": run.report()["scores"], **shape}
        print(run.table(), flush=True)
    return found


def fixed(seeds: int) -> dict[str, Any]:
    """What it costs to decide for the centre of the box, whatever the context."""
    found: dict[str, Any] = {}
    for name, make in SUITE.items():
        run = ca.simulate(
            "fixed", make(), horizon=SUITE_HORIZON, replications=seeds, rng=0, checkpoints=1
        )
        found[name] = float(run.mean[-1])
        print(name, found[name], flush=True)
    return found


def growth(seeds: int) -> dict[str, Any]:
    """Regret along one run to a million decisions."""
    marks = [round(10 ** (k / 4)) for k in range(12, 25)]
    worlds = {
        "two-communities": ca.problem("two-communities"),
        "quadratic dx=2 dy=2": ca.problem("quadratic", dx=2, dy=2),
    }
    found = {}
    for name, world in worlds.items():
        run = ca.simulate(
            "recommended", world, horizon=marks[-1], replications=seeds, rng=0, checkpoints=marks
        )
        found[name] = {"marks": marks, "regret": run.regret.tolist()}
        print(name, run.mean, flush=True)
    return found


class Changed(ca.SurfaceSampling):
    """The policy with some numbers changed."""

    def __init__(self, world: ca.Problem, changes: dict[str, Any]) -> None:
        self.changes = changes
        super().__init__(world.context, world.decision)

    def _design(self, horizon: Any, hints: Any) -> tuple[EvidenceTree, ResponseSurface]:
        tree, surface = super()._design(horizon, hints)
        changes = dict(self.changes)
        if changes.pop("diagonal", False):
            surface = surface._replace(terms=2 * surface.dy, varying=surface.dy)
        if changes.pop("constant_hessian", False):
            surface = surface._replace(varying=surface.dy)
        for key, value in changes.items():
            if key in tree._fields:
                tree = tree._replace(**{key: value})
            else:
                surface = surface._replace(**{key: value})
        return tree, surface


NEVER = 1e300
ABLATIONS: dict[str, dict[str, Any]] = {
    "never splits": {"split_lead": NEVER, "fresh_lead": NEVER},
    "halves that keep all only": {"fresh_lead": NEVER, "renew_lead": NEVER},
    "halves that keep little only": {"split_lead": NEVER},
    "no renewal of a bin": {"renew_lead": NEVER},
    "challengers never start again": {"again": NEVER},
    "cuts in the middle of the box": {"median": False},
    "nothing fades (γ = 0)": {"fade": 0.0},
    "fades twice as fast (γ = 1)": {"fade": 1.0},
    "samples all of the posterior (κ = 1)": {"spread": 1.0},
    "first decisions in the whole box": {"middle": 1.0},
    "contexts may differ from the start (ridge 10⁻⁴)": {"varying_ridge": 1e-4},
    "Hessian constant in the context": {"constant_hessian": True},
    "Hessian diagonal": {"diagonal": True},
}


def ablation(seeds: int) -> dict[str, Any]:
    """The suite with one ingredient taken out."""
    found: dict[str, Any] = {}
    for name, make in SUITE.items():
        world = make()
        entrants = [OURS]
        entrants += [
            cmp.Entrant(label, partial(Changed, changes=changes))
            for label, changes in ABLATIONS.items()
        ]
        run = cmp.compare(
            entrants,
            {name: world},
            [ABLATION_HORIZON],
            replications=seeds,
            baseline="recommended",
        )
        found[name] = run.report()["scores"]
        print(name, [round(s["ratio"] or math.nan, 2) for s in found[name]], flush=True)
    return found


PARTS: dict[str, tuple[Callable[[int], dict[str, Any]], int]] = {
    "paper": (paper, 20),
    "suite": (suite, 10),
    "fixed": (fixed, 2),
    "growth": (growth, 10),
    "ablation": (ablation, 3),
}


def by_policy(scores: list[dict[str, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """The regrets of each policy."""
    return {score["policy"]: np.array(score["regret"]) for score in scores}


def mean_and_error(regret: np.ndarray[Any, Any]) -> str:
    """For a cell of a table."""
    error = regret.std(ddof=1) / math.sqrt(len(regret))
    digits = 0 if error >= 10.0 else 1 if error >= 1.0 else 2
    return f"{regret.mean():,.{digits}f} ± {error:,.{digits}f}"


def paper_table(found: dict[str, Any]) -> Table:
    """One line per horizon."""
    rows = []
    for horizon, factor in zip(HORIZONS, FACTORS, strict=True):
        regrets = by_policy(found[str(horizon)])
        ours = regrets["recommended"]
        cells = [f"{horizon:,}", mean_and_error(ours)]
        for name, limit in (("static-kwsa as printed", 1 / factor), ("uniform-ucb tuned", 1 / 3)):
            value, low, high = cmp.ratio(ours, regrets[name])
            cells += [mean_and_error(regrets[name]), f"{value:.3f} [{low:.3f}, {high:.3f}]"]
            cells += [f"{limit:.3f}"]
        rows.append(cells)
    columns = ["decisions", "recommended", "static as printed", "ratio", "at most"]
    columns += ["uniform tuned", "ratio", "at most"]
    return Table.of(columns, rows)


def is_counted(name: str, entry: dict[str, Any]) -> bool:
    """Whether a problem counts in the mean: its payoff varies, by more than its noise."""
    return name != "constant" and entry["noise"] <= entry["range"]


def suite_tables(
    found: dict[str, Any], constants: dict[str, float]
) -> tuple[Table, Table, list[tuple[str, Any]]]:
    """One line per problem, the means, and what the figure shows."""
    rows, groups, logs = [], [], {"seen": [], "unseen": []}  # type: ignore[var-annotated]
    for name, entry in found.items():
        regrets = by_policy(entry["scores"])
        ours, theirs = regrets["recommended"], regrets["adaptive-kwsa"]
        value, low, high = cmp.ratio(ours, theirs)
        kind = "unseen" if name in UNSEEN else "seen"
        counted = is_counted(name, entry)
        cell = "" if math.isnan(value) else f"{value:.2f} [{low:.2f}, {high:.2f}]"
        if counted:
            logs[kind].append(math.log(value))
            groups.append((f"{name}{' *' if kind == 'unseen' else ''}", [(value, low, high)]))
        noise = f"{entry['noise'] / entry['range']:.2g}" if entry["range"] > 1e-12 else ""
        outside = "" if counted else "outside the mean"
        rows.append(
            (name, kind, entry["dx"], entry["dy"], noise, mean_and_error(ours),
             mean_and_error(theirs), cell, f"{constants[name]:,.0f}", outside)
        )  # fmt: skip
    columns = ["problem", "", "dx", "dy", "noise / range", "recommended", "rival", "ratio"]
    columns += ["the centre", ""]
    means = []
    for kind, values in (("all", logs["seen"] + logs["unseen"]), *logs.items()):
        worst = max(values)
        means.append(
            (kind, len(values), f"{math.exp(np.mean(values)):.3f}", f"{math.exp(worst):.2f}")
        )
    summary = Table.of(("problems", "number", "geometric mean of ratios", "largest"), means)
    return Table.of(columns, rows), summary, groups


def growth_table(found: dict[str, Any]) -> Table:
    """Slopes of log regret between 10^4 and 10^6, one per seed."""
    rows = []
    for name, entry in found.items():
        marks, regret = np.array(entry["marks"]), np.array(entry["regret"])
        late = marks >= 10**4
        slopes = [np.polyfit(np.log(marks[late]), np.log(run[late]), 1)[0] for run in regret]
        reach = stats.t.ppf(0.975, len(slopes) - 1) * stats.sem(slopes)
        dx = 2 if "dx=2" in name else 1
        rows.append(
            (
                name,
                f"{np.mean(slopes):.3f} ± {reach:.3f}",
                f"{theory.horizon_exponent('static', dx, 2):.3f}",
                f"{theory.horizon_exponent('lower-bound', dx, 2):.3f}",
            )
        )
    columns = ("problem", "slope, 95 %", "the paper's rate, α = 1", "the paper's lower bound")
    return Table.of(columns, rows)


def ablation_table(found: dict[str, Any], counted: dict[str, bool]) -> Table:
    """Geometric means over the problems that count, with a standard error over problems."""
    rows = []
    for label in ABLATIONS:
        logs, worst = [], (0.0, "")
        for name, scores in found.items():
            value = next(score["ratio"] for score in scores if score["policy"] == label)
            if counted[name] and value:
                logs.append(math.log(value))
                worst = max(worst, (value, name))
        mean, error = np.mean(logs), stats.sem(logs)
        interval = f"[{math.exp(mean - 1.96 * error):.2f}, {math.exp(mean + 1.96 * error):.2f}]"
        rows.append((label, f"{math.exp(mean):.2f} {interval}", f"{worst[0]:.1f} ({worst[1]})"))
    return Table.of(("without, or instead", "regret relative to the policy", "largest"), rows)


def page(parts: dict[str, dict[str, Any]], docs: Path) -> None:
    """Write docs/comparison.md and its figure."""
    problems, means, groups = suite_tables(parts["suite"], parts["fixed"])
    (docs / "figures").mkdir(exist_ok=True)
    ratio_dots(groups, ["recommended"], "the rival", docs / "figures" / "suite.png")
    counted = {name: is_counted(name, entry) for name, entry in parts["suite"].items()}
    text = f"""# The comparison

Written by `python -m benchmarks.recommended --write docs`; the same comparisons can be made with
`continuarm compare`. Regrets are means over seeds with standard errors; ratios are paired by seed,
with 95 % intervals; *at most* is the limit that we hold ourselves to. `recommended` runs once,
without the horizon, and is read on the way.

## The paper's problem

`two-communities`, noise 0.1, {PARTS["paper"][1]} seeds. *Static as printed* is `static-kwsa` with
a = 1, δ = 0.2, K = T^(1/3), from the corner. *Uniform tuned* is `uniform-ucb` with the best in
hindsight, for each number of decisions, of 27 combinations of bins, arms and bonus.

{paper_table(parts["paper"]).markdown()}

With few decisions, those weigh most that are made before anything is known: p + 3 of them, here
16, which the uniform algorithm, tuned to 1,000 decisions, does not need. Against a Gaussian
process, which does not either: [GP-UCB](gp-ucb.md).

## The suite

{len(parts["suite"])} problems, {SUITE_HORIZON:,} decisions, {PARTS["suite"][1]} seeds. The
rival is `adaptive-kwsa` told the true curvature (the problem's, or that at its best decisions,
whichever serves it better), with `probe="alternate"` and `inherit="iterate-and-count"`, and the
best in hindsight of widths 0.1, 0.2, 0.4, `split_after` text and lipschitz, depth 3 and 6. The
unseen problems were written and first run when the policy was finished. A constant payoff, and
noise above the payoff's range, are outside the mean.

{means.markdown()}

![Ratios on the suite](figures/suite.png)

The star marks unseen problems; those outside the mean are only in the table. Its last column of
numbers is what deciding for the centre of the box costs, whatever the context. Where payoffs are
nearly all noise and the centre happens to be good (`logit-demand`, `orange-juice`), these many
decisions are not enough to do better.

{problems.markdown()}

## Growth

The slope of the logarithm of regret against that of decisions, between 10⁴ and 10⁶, fitted for
each of {PARTS["growth"][1]} seeds.

{growth_table(parts["growth"]).markdown()}

## What each ingredient brings

The suite with one thing taken out or changed, {ABLATION_HORIZON:,} decisions,
{PARTS["ablation"][1]} seeds a problem: the geometric mean of the regret relative to the policy as
it is, over the problems that count, with its 95 % interval over problems.

{ablation_table(parts["ablation"], counted).markdown()}

What brings nothing on average is kept for what it prevents. A renewal ends a bin that its past
misleads. Challengers that start again find the cut of a bin whose first contexts were odd, which
would otherwise never split; they cost some regret on these problems, where that does not happen.
Cuts at the median serve skewed contexts, a full Hessian that varies with the context serves
payoffs of high condition and little noise. The first decisions in the middle, and the ridge, serve
the first thousand decisions, which a horizon of {ABLATION_HORIZON:,} hardly shows.
"""
    (docs / "comparison.md").write_text(text)


def main() -> None:
    """Run what is missing, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("comparison"), help="for the results")
    parser.add_argument("--part", choices=list(PARTS), action="append", help="only this part")
    parser.add_argument("--write", type=Path, help="the folder of the docs")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    parts = {}
    for name in options.part or PARTS:
        run, seeds = PARTS[name]
        file = options.folder / f"{name}.json"
        if not file.exists():
            file.write_text(json.dumps(run(seeds)))
        parts[name] = json.loads(file.read_text())
    if options.write is not None:
        page(parts, options.write)


if __name__ == "__main__":
    main()
