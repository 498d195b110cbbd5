"""Who keeps their feet in a world that does not keep still.

    python -m benchmarks.street [--seeds 10] [--write docs/street.md]

Regret per decision of the last 5,000 of 20,000 decisions, relative to the same policy in the same
world where nothing happens. About three minutes on two cores.
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
STEADY: dict[str, Any] = {"bounded": True, "level": True, "calm": True}


def surface(context: ca.Box, decision: ca.Box, *, options: dict[str, Any], rng: Any) -> ca.Policy:
    """The recommended policy with other options of its surface."""
    learner = ca.ResponseSurface(**options)
    return ca.Policy(
        context, decision, partition=ca.EvidenceTree(), learner=learner, rng=rng, name="surface"
    )


POLICIES: dict[str, Any] = {
    "recommended": "recommended",
    "steady": partial(surface, options=STEADY),
    "steady, reach 0.1": partial(surface, options=STEADY | {"reach": 0.1}),
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


def page(seeds: int, table: Table) -> str:
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
- *steady, reach 0.1* also has [a safe start](recommended.md#a-safe-start).
- The paper's policies are told the curvature; their probes alternate.

{table.markdown()}
"""


def main() -> None:
    """Measure, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="replications of each run")
    parser.add_argument("--write", type=Path, help="the page")
    options = parser.parse_args()
    table = street_table(options.seeds)
    print(table)
    if options.write is not None:
        options.write.write_text(page(options.seeds, table))


if __name__ == "__main__":
    main()
