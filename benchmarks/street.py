"""Who keeps their feet in a world that does not keep still.

    python -m benchmarks.street [--seeds 20] [--write docs/street.md]

Worlds whose payoffs are disturbed, noise that is unequal, contexts that are alike, and pasts that
mislead. About a quarter of an hour on two cores.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np

import continuarm as ca
from benchmarks.recommended import BOLD, changed
from continuarm.table import Table

MARKS = [15_000, 20_000]
BASES = {"level-rise-loud": "street-loud"}
WORLDS = (
    "level-rise",
    "level-rise-loud",
    "level-week",
    "level-sine",
    "level-segment",
    "absurd-payoffs",
    "cauchy-noise",
)
GROWTH = ("street-quiet", "unequal-noise", "same-context")
PASTS = (
    "two-communities",
    "communities-quiet",
    "quadratic",
    "ridge",
    "turning-valley",
    "kink",
    "smooth-pinball",
    "edge",
    "jump",
    "stairs",
    "heavy-tails",
)
NOW = ("two-communities", "quadratic", "kink", "jump", "edge")
FITTED, RECOVERED = 20_000, [40_000, 50_000]
PAST_SEEDS = (50, 51, 52, 53)
BEFORE = partial(changed, changes=BOLD)
POLICIES: dict[str, Any] = {
    "recommended": "recommended",
    "no reach": partial(changed, changes={"reach": None}),
    "before": BEFORE,
    "static-kwsa": ("static-kwsa", {"curvature": 2.0, "bins": 8, "probe": "alternate"}),
    "adaptive-kwsa": ("adaptive-kwsa", {"curvature": 2.0, "probe": "alternate"}),
}


def late(policy: Any, world: str, seeds: int) -> tuple[np.ndarray[Any, Any], float]:
    """The regret of the last decisions, per seed; the mean number of bins."""
    run = ca.simulate(
        policy, world, horizon=MARKS[-1], replications=seeds, rng=0, checkpoints=MARKS
    )
    bins = float(np.mean([len(made.bins()) for made in run.policies]))
    return np.diff(run.regret, axis=1)[:, 0] / (MARKS[1] - MARKS[0]), bins


def street_table(seeds: int) -> Table:
    """A row for each world: for each policy its ratio to the quiet world, and bins."""
    quiet = {
        (name, base): late(policy, base, seeds)
        for name, policy in POLICIES.items()
        for base in ("street-quiet", "street-loud")
    }
    rows = []
    for world in WORLDS:
        cells: list[Any] = [world]
        for name, policy in POLICIES.items():
            found, bins = late(policy, world, seeds)
            base = quiet[name, BASES.get(world, "street-quiet")][0].mean()
            error = found.std(ddof=1) / np.sqrt(seeds) / base
            cells.append(f"{found.mean() / base:.3g} ± {error:.2g} ({bins:.0f})")
        rows.append(tuple(cells))
        print(rows[-1], flush=True)
    return Table.of(("world", *POLICIES), rows)


def growth_table(seeds: int) -> Table:
    """How regret and bins grow from 10,000 to 100,000 decisions."""
    marks, rows = [10_000, 100_000], []
    for world in GROWTH:
        for name, policy in (("recommended", "recommended"), ("before", BEFORE)):
            runs = [
                ca.simulate(policy, world, horizon=n, replications=seeds, rng=0, checkpoints=[n])
                for n in marks
            ]
            few, many = (run.regret[:, -1] for run in runs)
            bins = [float(np.mean([len(made.bins()) for made in run.policies])) for run in runs]
            error = many.std(ddof=1) / seeds**0.5 / few.mean()
            grown = f"{many.mean() / few.mean():.1f} ± {error:.1f}"
            regrets = [round(float(regret.mean()), 1) for regret in (few, many)]
            rows.append((world, name, *regrets, grown, f"{bins[0]:.1f}, {bins[1]:.1f}"))
            print(rows[-1], flush=True)
    columns = ("world", "policy", "regret at 10⁴", "at 10⁵", "grown", "bins at 10⁴, 10⁵")
    return Table.of(columns, rows)


def recovery(policy: Any, past: str, now: str, seed: int) -> float:
    """The late regret in a world of a policy that was fitted to another one."""
    fitted = ca.simulate(policy, past, horizon=FITTED, rng=seed, checkpoints=1).policies[0]
    run = ca.simulate(fitted, now, horizon=RECOVERED[-1], rng=seed, checkpoints=RECOVERED)
    return float(np.diff(run.regret, axis=1)[0, 0])


def past_tables() -> tuple[Table, Table]:
    """How far from a fresh policy's regret per decision 50 wrong pasts are still."""
    rows, worst = [], []
    pairs = [(past, now) for now in NOW for past in PASTS if past != now]
    for name, policy in (("recommended", "recommended"), ("before", BEFORE)):
        fresh = {}
        for now in NOW:
            run = ca.simulate(
                policy, now, horizon=RECOVERED[-1], replications=20, rng=0, checkpoints=RECOVERED
            )
            fresh[now] = np.diff(run.regret, axis=1).mean()
        tasks = [(past, now, seed) for past, now in pairs for seed in PAST_SEEDS]
        late = joblib.Parallel(n_jobs=-1)(joblib.delayed(recovery)(policy, *t) for t in tasks)
        each = [x / fresh[now] for x, (_, now, _) in zip(late, tasks, strict=True)]
        ratios = np.array(each).reshape(len(pairs), len(PAST_SEEDS)).mean(axis=1)
        within = f"{(ratios <= 2.0).sum()} of {len(ratios)}"
        quartiles = [f"{q:.2f}" for q in np.quantile(ratios, (0.25, 0.5, 0.75, 1.0))]
        rows.append((name, within, *quartiles))
        print(rows[-1], flush=True)
        if name == "recommended":
            order = np.argsort(-ratios)[:5]
            worst = [(*pairs[k], f"{ratios[k]:.2f}") for k in order]
    columns = ("policy", "within 2 times", "a quarter below", "median", "a quarter above", "worst")
    return Table.of(columns, rows), Table.of(("past", "world", "times"), worst)


def page(seeds: int, table: Table, growth: Table, pasts: tuple[Table, Table]) -> str:
    """The page."""
    return f"""# The street

This page is written by `python -m benchmarks.street --write docs/street.md`.

Worlds whose payoffs' level moves, or whose payoffs are sometimes absurd
([the street](problems.md#all-worlds-by-theme)). None of this concerns the best decision. A number
is the regret per decision of the last 5,000 of 20,000 decisions, divided by that of the same
policy in the same world where nothing happens: the mean over {seeds} seeds, its standard error,
and in parentheses the mean number of bins. 1 is best.

- *recommended* is `SurfaceSampling` as it comes, with [a safe start](recommended.md#a-safe-start),
  [a steady surface](recommended.md#a-steady-surface) and
  [a newcomer](recommended.md#a-past-that-misleads).
- *no reach* is the same without a safe start.
- *before* is the policy of version 0.1.0, which has none of this.
- The paper's policies are told the curvature; their probes alternate.

{table.markdown()}

Wanted were at most 3 times for levels that move (5 for the segment) and 5 for absurd payoffs.
Cauchy noise has no variance, so that no average of payoffs settles down. What it costs is shown,
not bounded.

## Noise that is unequal, contexts that are alike

In `unequal-noise` the standard deviation falls from 1 to 0.01 along the context; in `same-context`
all contexts are equal. Bins should not grow with decisions, nor regret faster than where noise is
equal (`street-quiet`).

{growth.markdown()}

Where noise is unequal, the safe start spares most of what is paid early. So its regret grows by a
larger factor from 10⁴ to 10⁵ than that of *before*, from less.

## A past that misleads

A policy that was fitted to another world for {FITTED:,} decisions meets a new one. Its regret over
decisions {RECOVERED[0]:,} to {RECOVERED[1]:,} there is divided by that of fresh policies, the mean
of 20 seeds. {len(PASTS)} pasts and {len(NOW)} worlds, all of one context and two decisions, make
50 wrong pasts; a number is the mean over {len(PAST_SEEDS)} seeds of each. Wanted was that all come
within 2 times. Not all do, because a decision that is wrong looks like a level that has changed:
who follows levels can tell them apart only by what decisions that differ pay. Single runs in which
they hardly differ, as at an edge of the box, stay wrong for long.

{pasts[0].markdown()}

The pasts that are worst for the recommended policy:

{pasts[1].markdown()}
"""


def main() -> None:
    """Measure, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="replications of each run")
    parser.add_argument("--write", type=Path, help="the page")
    options = parser.parse_args()
    tables = street_table(options.seeds), growth_table(10), past_tables()
    for table in (*tables[:2], *tables[2]):
        print(table)
    if options.write is not None:
        options.write.write_text(page(options.seeds, *tables))


if __name__ == "__main__":
    main()
