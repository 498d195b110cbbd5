"""The page of the recommended policy's comparison, made from the stored results."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import continuarm as ca
from continuarm.lab.figures.plots import ratio_dots
from continuarm.lab.measures import Interval, ratio
from continuarm.paper import theory
from continuarm.table import Table

HORIZONS = (10**3, 10**4, 10**5, 10**6)
FACTORS = (5, 8, 10, 11)  # of the printed algorithm's regret, that we hold ourselves to
PAPER_LIMIT = 1.1  # of version 0.1.0's regret
SUITE_HORIZON = 10**5
ABLATION_HORIZON = 5 * 10**4
EARLY_HORIZON = 1000
NOISY = (  # payoffs that are mostly noise
    "orange-juice",
    "logit-demand",
    "linear-demand",
    "rare-purchase",
    "two-subscriptions",
    "purchase",
    "communities-drowned",
)

Regrets = np.ndarray[Any, Any]


def by_policy(scores: list[dict[str, Any]]) -> dict[str, Regrets]:
    """The regrets of each policy."""
    return {score["policy"]: np.array(score["regret"]) for score in scores}


def mean_and_error(regret: Regrets) -> str:
    """For a cell of a table."""
    error = regret.std(ddof=1) / math.sqrt(len(regret))
    digits = 0 if error >= 10.0 else 1 if error >= 1.0 else 2
    return f"{regret.mean():,.{digits}f} ± {error:,.{digits}f}"


def verdict(found: Interval, limit: float) -> str:
    """Whether a ratio is at most `limit`, and whether its interval says so surely."""
    word = "holds" if found.value <= limit else "**missed**"
    return f"{word}, not surely" if found.low <= limit < found.high else word


def paper_table(found: dict[str, Any]) -> Table:
    """One line per rival and horizon."""
    rows = []
    for name, label, limits in (
        ("static-kwsa as printed", "static as printed", [1 / factor for factor in FACTORS]),
        ("uniform-ucb tuned", "uniform tuned", [1 / 3] * len(HORIZONS)),
    ):
        for horizon, limit in zip(HORIZONS, limits, strict=True):
            regrets = by_policy(found[str(horizon)]["scores"])
            ours, theirs = regrets["recommended"], regrets[name]
            cells = [label, f"{horizon:,}", mean_and_error(ours), mean_and_error(theirs)]
            found_ratio = ratio(ours, theirs)
            rows.append([*cells, str(found_ratio), f"{limit:.3f}", verdict(found_ratio, limit)])
    columns = ("rival", "decisions", "recommended", "the rival", "ratio", "at most", "")
    return Table.of(columns, rows)


def before_table(found: dict[str, Any]) -> Table:
    """The paper's problem against the policy of version 0.1.0."""
    rows = []
    for horizon in HORIZONS:
        regrets = by_policy(found[str(horizon)]["paired"])
        ours, theirs = regrets["recommended"], regrets["before"]
        cells = (mean_and_error(ours), mean_and_error(theirs))
        interval = ratio(ours, theirs)
        says = verdict(interval, PAPER_LIMIT)
        rows.append((f"{horizon:,}", len(ours), *cells, str(interval), PAPER_LIMIT, says))
    columns = ("decisions", "seeds", "recommended", "before", "ratio", "at most", "")
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
        value, low, high = ratio(ours, theirs)
        kind = "unseen" if name in ca.problem_names("unseen") else "seen"
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


def cheaper_at_the_centre(found: dict[str, Any], constants: dict[str, float]) -> str:
    """All problems where deciding for the centre costs less than the policy, named."""
    means = {name: by_policy(e["scores"])["recommended"].mean() for name, e in found.items()}
    return ", ".join(f"`{name}`" for name, mean in means.items() if constants[name] < mean)


def is_worse(ours: Regrets, theirs: Regrets, limit: float) -> float:
    """How likely regrets at least so far above `limit` times the others' are, if none is above."""
    above = ours - limit * theirs
    return float(stats.ttest_1samp(above, 0.0, alternative="greater").pvalue)


def surely_worse(chances: dict[str, float]) -> list[str]:
    """Those whose 95 % interval lies wholly above its limit, corrected for their number (Holm)."""
    found, left = [], len(chances)
    for name, chance in sorted(chances.items(), key=lambda item: item[1]):
        if chance > 0.025 / left:
            break
        found.append(name)
        left -= 1
    return found


def limit_of(name: str) -> float:
    """The ratio to version 0.1.0 that no problem's regret is surely above."""
    return 1.4 if name in NOISY else 1.3


def safety_tables(found: dict[str, Any]) -> tuple[Table, Table]:
    """What a safe start and steadiness cost, against version 0.1.0; the means, the problems."""
    rows, logs, chances = [], {True: [], False: []}, {}  # type: ignore[var-annotated]
    for name, entry in found.items():
        regrets = by_policy(entry["paired"])
        ours, theirs = regrets["recommended"], regrets["before"]
        if not theirs.any():
            continue
        value, low, high = ratio(ours, theirs)
        noisy = name in NOISY
        logs[noisy].append(math.log(value))
        chances[name] = is_worse(ours, theirs, limit_of(name))
        rows.append((value, f"{value:.2f} [{low:.2f}, {high:.2f}]", name, noisy, len(ours)))
    worse = surely_worse(chances)
    cells = [
        (name, "noisy" if noisy else "", cell, seeds, "worse" if name in worse else "")
        for _, cell, name, noisy, seeds in sorted(rows)
    ]
    means = []
    for noisy, limit, each in ((True, 0.8, 1.4), (False, 1.08, 1.3)):
        number = sum(1 for row in rows if row[3] == noisy and row[2] in worse)
        mean = f"{math.exp(np.mean(logs[noisy])):.3f}"
        label = "mostly noise" if noisy else "the rest"
        says = "holds" if float(mean) <= limit and not number else "**missed**"
        means.append((label, len(logs[noisy]), mean, limit, each, number, says))
    columns = ("problems", "number", "geometric mean", "at most", "none above", "surely above", "")
    names = ("problem", "", "regret / before", "seeds", "")
    return Table.of(columns, means), Table.of(names, cells)


def million_table(found: dict[str, Any]) -> Table:
    """A row for each shop."""
    rows = []
    for name, scores in found.items():
        regrets = by_policy(scores)
        interval = ratio(regrets["recommended"], regrets["before"])
        rows.append((name, str(interval), 1.0, verdict(interval, 1.0)))
    return Table.of(("problem", "regret / before, 10⁶ decisions", "at most", ""), rows)


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
    labels = [score["policy"] for score in next(iter(found.values()))]
    for label in labels[1:]:  # the first is the policy as it is
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


def write_page(parts: dict[str, dict[str, Any]], seeds: dict[str, int], docs: Path) -> None:
    """Write docs/comparison.md and its figure."""
    problems, means, groups = suite_tables(parts["suite"], parts["fixed"])
    (docs / "figures").mkdir(exist_ok=True)
    ratio_dots(groups, ["recommended"], "the rival", docs / "figures" / "suite.png")
    counted = {name: is_counted(name, entry) for name, entry in parts["suite"].items()}
    safety, prices = safety_tables(parts["suite"])
    text = f"""# The comparison

Written by `python -m benchmarks.recommended --write docs`; the same comparisons can be made with
`continuarm compare`. Regrets are means over seeds with standard errors; ratios are paired by seed,
with 95 % intervals over seeds. *At most* is the limit that we hold ourselves to: a ratio above it
is *missed*, and *not surely* stands where the interval contains the limit. `recommended` runs
once, without the horizon, and is read on the way.

## The paper's problem

`two-communities`, noise 0.1, {seeds["paper"]} seeds. *Static as printed* is `static-kwsa` with
a = 1, δ = 0.2, K = T^(1/3), from the corner. *Uniform tuned* is `uniform-ucb` with the best in
hindsight, for each number of decisions, of 27 combinations of bins, arms and bonus.

{paper_table(parts["paper"]).markdown()}

The uniform algorithm's limit is missed by a little at every number of decisions. It is told more
than the policy: the number of decisions, and for each of them the best of 27 settings in
hindsight. [The reproduction](reproduction.md) reads the paper in another way: its *as printed*
starts from the centre with the middle step, and its uniform algorithm has one tuning for all
numbers of decisions.

## The suite

{len(parts["suite"])} problems, {SUITE_HORIZON:,} decisions, {seeds["suite"]} seeds. The
rival is `adaptive-kwsa` told the true curvature (the problem's, or that at its best decisions,
whichever serves it better), with `probe="alternate"` and `inherit="iterate-and-count"`, and the
best in hindsight of widths 0.1, 0.2, 0.4, `split_after` text and lipschitz, depth 3 and 6. The
unseen problems were written and first run when the policy of version 0.1.0 was finished; what has
been added since was chosen with them in sight. A constant payoff, and noise above the payoff's
range, are outside the mean.

{means.markdown()}

![Ratios on the suite](figures/suite.png)

The star marks unseen problems; those outside the mean are only in the table. Its last column of
numbers is what deciding for the centre of the box costs, whatever the context. The centre costs
less than the policy on {cheaper_at_the_centre(parts["suite"], parts["fixed"])}. There it happens
to be good, and these many decisions are not enough to do better.

{problems.markdown()}

## What safety costs

[A safe start](recommended.md#a-safe-start) and [a steady surface](recommended.md#a-steady-surface)
are for the street. This is what they cost, or bring, in the laboratory: regret on the suite,
divided by that of version 0.1.0, paired by seed. *Surely above* counts the problems whose 95 %
interval, corrected for the number of problems (Holm), lies wholly above *none above*. Where the
interval straddles that limit, seeds were added, up to 100.

{safety.markdown()}

{prices.markdown()}

The paper's problem:

{before_table(parts["paper"]).markdown()}

Shops after a million decisions, {seeds["million"]} seeds:

{million_table(parts["million"]).markdown()}

## Growth

The slope of the logarithm of regret against that of decisions, between 10⁴ and 10⁶, fitted for
each of {seeds["growth"]} seeds.

{growth_table(parts["growth"]).markdown()}

## What each ingredient brings

The suite with one thing taken out or changed, {ABLATION_HORIZON:,} decisions,
{seeds["ablation"]} seeds a problem: the geometric mean of the regret relative to the policy as
it is, over the problems that count, with its 95 % interval over problems.

{ablation_table(parts["ablation"], counted).markdown()}

What matters early does not show in so many decisions. After {EARLY_HORIZON:,}, with
{seeds["early"]} seeds:

{ablation_table(parts["early"], counted).markdown()}

What brings nothing on average is kept for what it prevents. A renewal ends a bin that its past
misleads. Challengers that start again find the cut of a bin whose first contexts were odd, which
would otherwise never split (a test shows it); they cost some regret on these problems, where that
does not happen. What makes it safe and steady, and the newcomer, are kept for
[the first day](first-day.md) and [the street](street.md), which are not in this suite. The column
of largest ratios shows which problem misses an ingredient most.
"""
    (docs / "comparison.md").write_text(text)
