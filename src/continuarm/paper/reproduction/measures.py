"""Tables from runs: means with errors, slopes with intervals, ratios paired by seed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

from continuarm.core.compiling import Array
from continuarm.lab import measures
from continuarm.lab.measures import Interval

if TYPE_CHECKING:
    import polars

__all__ = ["Curve", "curve", "power", "ratio", "seeds_by_horizon", "seeds_in_words", "slope"]


class Curve(NamedTuple):
    """Mean regret at each horizon, its standard error, half its 95 % interval, and its seeds."""

    horizons: Array
    mean: Array
    error: Array
    half: Array
    seeds: Array


def select(runs: "polars.DataFrame", **columns: object) -> "polars.DataFrame":
    """The runs with these values."""
    for column, value in columns.items():
        runs = runs.filter(runs[column] == value)
    return runs


def curve(runs: "polars.DataFrame", policy: str, problem: str) -> Curve:
    """The mean regret of a policy on a problem at each horizon."""
    chosen = select(runs, policy=policy, problem=problem)
    horizons = sorted(set(chosen["horizon"].to_list()))
    groups = [select(chosen, horizon=h)["regret"].to_numpy() for h in horizons]
    errors = [g.std(ddof=1) / np.sqrt(len(g)) if len(g) > 1 else np.nan for g in groups]
    means = np.array([g.mean() for g in groups])
    quantiles = [stats.t.ppf(0.975, max(len(g) - 1, 1)) for g in groups]
    halves = np.array(errors) * np.array(quantiles)
    seeds = np.array([len(g) for g in groups])
    return Curve(np.array(horizons, np.float64), means, np.array(errors), halves, seeds)


def seeds_by_horizon(runs: "polars.DataFrame") -> dict[int, int]:
    """The seeds of each horizon: as many as every policy has on every problem."""
    found: dict[int, int] = {}
    for (horizon, *_), group in runs.group_by("horizon", "policy", "problem"):
        found[horizon] = min(found.get(horizon, len(group)), len(group))
    return dict(sorted(found.items()))


def seeds_in_words(runs: "polars.DataFrame") -> str:
    """Such as `20 seeds up to T = 1,000,000, and 5 beyond`."""
    found = seeds_by_horizon(runs)
    most, least = max(found.values()), min(found.values())
    if most == least:
        return f"{most} seeds"
    last = max(horizon for horizon, seeds in found.items() if seeds == most)
    return f"{most} seeds up to T = {last:,}, and {least} beyond"


def slope(of: Curve, first: float = 0.0) -> Interval:
    """Least squares of log mean regret on log horizon, from horizon `first` on."""
    chosen = of.horizons >= first
    return power(of.horizons[chosen], of.mean[chosen])


def power(x: Array, y: Array) -> Interval:
    """The exponent of `y ~ x^p`, with the interval of the regression."""
    fit = stats.linregress(np.log(x), np.log(y))
    half = float("inf")
    if len(x) > 2:
        half = float(stats.t.ppf(0.975, len(x) - 2) * fit.stderr)
    value = float(fit.slope)
    return Interval(value, value - half, value + half)


def ratio(
    runs: "polars.DataFrame", policy: str, baseline: str, problem: str, horizon: int
) -> Interval:
    """Mean regret of a policy over that of a baseline, paired by seed (delta method)."""
    ours, theirs = (
        select(runs, policy=name, problem=problem, horizon=horizon)
        .sort("seed")["regret"]
        .to_numpy()
        for name in (policy, baseline)
    )
    return measures.ratio(ours, theirs)


def labels(runs: "polars.DataFrame", column: str) -> Sequence[str]:
    """The values of a column, in the order in which they first appear."""
    return list(dict.fromkeys(runs[column].to_list()))
