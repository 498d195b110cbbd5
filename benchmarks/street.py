"""Who keeps their feet in a world that does not keep still.

    python -m benchmarks.street [--seeds 20] [--write docs/street.md]

Worlds whose payoffs are disturbed, noise that is unequal, contexts that are alike, and pasts that
mislead. About ten minutes on two cores.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import continuarm as ca
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
STEADY: dict[str, Any] = {"bounded": True, "level": True, "calm": True}


def surface(context: ca.Box, decision: ca.Box, *, options: dict[str, Any], rng: Any) -> ca.Policy:
    """The recommended policy with other options of its surface."""
    learner = ca.ResponseSurface(**options)
    return ca.Policy(
        context, decision, partition=ca.EvidenceTree(), learner=learner, rng=rng, name="surface"
    )


REACH = ("recommended", {"reach": 0.1})
POLICIES: dict[str, Any] = {
    "recommended": "recommended",
    "steady": partial(surface, options=STEADY),
    "reach 0.1": REACH,
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
        for name, policy in (("recommended", "recommended"), ("reach 0.1", REACH)):
            runs = [
                ca.simulate(policy, world, horizon=n, replications=seeds, rng=0, checkpoints=[n])
                for n in marks
            ]
            few, many = (run.regret[:, -1] for run in runs)
            bins = [float(np.mean([len(made.bins()) for made in run.policies])) for run in runs]
            error = many.std(ddof=1) / seeds**0.5 / few.mean()
            grown = f"{many.mean() / few.mean():.1f} ± {error:.1f}"
            rows.append(
                (world, name, round(few.mean(), 1), grown, f"{bins[0]:.1f}, {bins[1]:.1f}")
            )
            print(rows[-1], flush=True)
    columns = ("world", "policy", "regret at 10⁴", "times at 10⁵", "bins at 10⁴, 10⁵")
    return Table.of(columns, rows)


def recovery(policy: Any, past: str, now: str, seed: int) -> float:
    """The late regret in a world of a policy that was fitted to another one."""
    fitted = ca.simulate(policy, past, horizon=FITTED, rng=seed, checkpoints=1).policies[0]
    run = ca.simulate(fitted, now, horizon=RECOVERED[-1], rng=seed, checkpoints=RECOVERED)
    return float(np.diff(run.regret, axis=1)[0, 0])


def past_table() -> Table:
    """How far from a fresh policy's regret per decision 50 wrong pasts are still."""
    rows = []
    for name, policy in (("recommended", "recommended"), ("reach 0.1", REACH)):
        found = []
        for now in NOW:
            fresh = ca.simulate(
                policy, now, horizon=RECOVERED[-1], replications=8, rng=0, checkpoints=RECOVERED
            )
            late = np.diff(fresh.regret, axis=1).mean()
            found += [recovery(policy, past, now, 50) / late for past in PASTS if past != now]
        ratios = np.array(found)
        within = f"{(ratios <= 2.0).sum()} of {len(ratios)}"
        quartiles = [f"{q:.1f}" for q in np.quantile(ratios, (0.25, 0.5, 0.75, 1.0))]
        rows.append((name, within, *quartiles))
        print(rows[-1], flush=True)
    columns = ("policy", "within 2 times", "a quarter below", "median", "a quarter above", "worst")
    return Table.of(columns, rows)


def page(seeds: int, table: Table, growth: Table, pasts: Table) -> str:
    """The page."""
    return f"""# The street

This page is written by `python -m benchmarks.street --write docs/street.md`.

Worlds whose payoffs' level moves, or whose payoffs are sometimes absurd
([the street](problems.md#all-worlds-by-theme)). None of this concerns the best decision. A number
is the regret per decision of the last 5,000 of 20,000 decisions, divided by that of the same
policy in the same world where nothing happens: the mean over {seeds} seeds, its standard error,
and in parentheses the mean number of bins. 1 is best.

- *recommended* is `SurfaceSampling` as it comes.
- *steady* has the parts of [a steady surface](recommended.md#a-steady-surface), which are off by
  default: `ResponseSurface(bounded=True, level=True, calm=True)`.
- *reach 0.1* is `SurfaceSampling(..., reach=0.1)`: these parts and
  [a safe start](recommended.md#a-safe-start).
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

## A past that misleads

A policy that was fitted to another world for {FITTED:,} decisions meets a new one. Its regret over
decisions {RECOVERED[0]:,} to {RECOVERED[1]:,} there is divided by that of a fresh policy.
{len(PASTS)} pasts and {len(NOW)} worlds, all of one context and two decisions, make 50 wrong
pasts. Wanted was that all come within 2 times. That is **missed**. A fit that is steady believes
least in what contradicts all it knows. A past of hundreds of bins, such as that of
`communities-quiet`, would have to be unlearned bin by bin.

{pasts.markdown()}
"""


def main() -> None:
    """Measure, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="replications of each run")
    parser.add_argument("--write", type=Path, help="the page")
    options = parser.parse_args()
    tables = street_table(options.seeds), growth_table(10), past_table()
    for table in tables:
        print(table)
    if options.write is not None:
        options.write.write_text(page(options.seeds, *tables))


if __name__ == "__main__":
    main()
