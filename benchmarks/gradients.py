"""What a gradient with each payoff brings: `RobbinsMonro` against what learns from payoffs alone.

    python -m benchmarks.gradients [--seeds 20] [--write docs/gradients.md]

Some ten minutes with 8 seeds. Its options were chosen with rng=0, 100 and 200; the seeds here are
others.
"""

import argparse
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

import continuarm as ca
from benchmarks.recommended_page import mean_and_error
from continuarm.core.compiling import Array
from continuarm.lab.measures import ratio
from continuarm.table import Table

PROBLEM = "two-communities"
HORIZONS = (10**4, 10**5, 10**6)
SUITE_HORIZON = 10**5
LATE_HORIZON = 10**4
DELAYS = (0, 10, 100, 1000)
LIMIT = 1 / 20  # of static KWSA as printed, that we hold ourselves to

OURS: Any = "robbins-monro"
PRINTED: Any = ("robbins-monro", {"step": "printed", "bins": "printed"})
AVERAGED: Any = ("robbins-monro", {"step": "printed", "bins": 30, "average": True})
GIVEN: Any = ("robbins-monro", {"step": 0.5, "bins": 10})


class Tables(NamedTuple):
    """What was measured."""

    paper: Table
    suite: Table
    late: Table
    ahead: int  # problems of the suite on which the interval of the ratio lies below 1
    worst: str  # the problem with the largest ratio


def regret(policy: Any, problem: Any, horizon: int, seeds: int) -> Array:
    """The regret of each seed."""
    name = policy if isinstance(policy, str) else f"{policy[0]} {policy[1]}"
    run = ca.simulate(policy, problem, horizon=horizon, replications=seeds, rng=1, checkpoints=1)
    print(f"{name} on {problem}, {horizon:,}: {run.seconds:.1f} s", file=sys.stderr)
    return run.regret[:, -1]


def paper_table(seeds: int) -> Table:
    """The paper's problem: what each policy needs to be told, and its regret."""
    rows = []
    for horizon in HORIZONS:
        ours = regret(OURS, PROBLEM, horizon, seeds)
        static = regret("static-kwsa", PROBLEM, horizon, seeds)
        others = [regret(p, PROBLEM, horizon, seeds) for p in (PRINTED, AVERAGED, "recommended")]
        value, low, high = ratio(ours, static)
        cells = [f"{horizon:,}", mean_and_error(ours), mean_and_error(static)]
        cells += [f"{value:.4f} [{low:.4f}, {high:.4f}]", f"{LIMIT:.3f}"]
        rows.append((*cells, *map(mean_and_error, others)))
    columns = ("decisions", "learned", "static KWSA as printed", "learned / static", "at most")
    return Table.of((*columns, "printed", "printed step, 30 bins, averaged", "recommended"), rows)


def suite_table(seeds: int) -> tuple[Table, int, str]:
    """Every problem of the suite that has a gradient, largest ratio first."""
    rows, ahead = [], 0
    for name in ca.problem_names():
        world = ca.problem(name)
        if not world.has_gradient:
            continue
        ours = regret(OURS, name, SUITE_HORIZON, seeds)
        theirs = regret("recommended", name, SUITE_HORIZON, seeds)
        value, low, high = ratio(ours, theirs)
        ahead += int(high < 1.0)
        gain = theirs - ours
        errors = gain.mean() / (gain.std(ddof=1) / math.sqrt(seeds))
        cells = (name, world.context.dim, world.decision.dim, mean_and_error(ours))
        interval = f"{value:.3f} [{low:.3f}, {high:.3f}]"
        rows.append((value, (*cells, mean_and_error(theirs), interval, f"{errors:.0f}")))
    rows.sort(reverse=True)
    columns = ("problem", "dx", "dy", "learned", "recommended", "ratio", "ahead by")
    return Table.of(columns, [cells for _, cells in rows]), ahead, str(rows[0][1][0])


def late_table(seeds: int) -> Table:
    """Gradients that come late."""
    rows = []
    for delay in DELAYS:
        world = ca.problem(PROBLEM).with_feedback(delay=delay)
        found = [regret(p, world, LATE_HORIZON, seeds) for p in (OURS, GIVEN, "recommended")]
        rows.append((f"{delay:,}", *map(mean_and_error, found)))
    return Table.of(("decisions late", "learned", "step 0.5, 10 bins", "recommended"), rows)


def page(tables: Tables, seeds: int) -> str:
    """The page of the docs."""
    count = len(tables.suite.rows)
    return f"""# With gradients, measured

Written by `python -m benchmarks.gradients --seeds {seeds} --write docs/gradients.md`. Regrets are
means over {seeds} seeds with standard errors. Policies are paired by seed; ratios have 95 %
intervals. A gradient carries Gaussian noise of the problem's `noise` per dimension of the unit
cube. [How it works](robbins-monro.md) is another page.

- *learned* is `robbins-monro` as it comes: it is told the boxes, and nothing else.
- *printed* is `step="printed", bins="printed"`: told the smallest curvature, too.

## The paper's problem

`{PROBLEM}`, noise 0.1. *Static KWSA as printed* is `static-kwsa`, told the curvature and no
gradients. *At most* is the limit that we hold ourselves to.

{tables.paper.markdown()}

As printed, gradients make it worse: a = 1/M1 is 34 times too large for the steepest direction, so
that the first some thirty steps in each of its bins go from corner to corner. Averaging and fewer
bins help, but have to be known.

## The suite

All {count} problems that have a gradient, {SUITE_HORIZON:,} decisions, largest ratio first. *Ahead
by* is the mean of the paired gains in standard errors. The interval of the ratio lies below 1 on
{tables.ahead} of the {count}; the hardest is `{tables.worst}`.

{tables.suite.markdown()}

## Late gradients

`{PROBLEM}`, {LATE_HORIZON:,} decisions, every gradient told so many decisions after its own. What
is decided before the first gradient comes is decided for the centre.

{tables.late.markdown()}
"""


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="replications, at least 2")
    parser.add_argument("--write", type=Path, help="a page of Markdown to write the tables to")
    options = parser.parse_args()
    suite, ahead, worst = suite_table(options.seeds)
    tables = Tables(
        paper_table(options.seeds), suite, late_table(options.seeds), ahead=ahead, worst=worst
    )
    print(tables.paper, tables.suite, tables.late, sep="\n\n")
    if options.write is not None:
        options.write.write_text(page(tables, options.seeds))


if __name__ == "__main__":
    main()
