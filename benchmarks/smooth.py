"""The smooth surface beside the recommended policy, on named problems.

    python -m benchmarks.smooth [--seeds 8] [--decisions 10000] [--write]

`--write` puts the table into docs/smooth-surface.md.
"""

import argparse
import math
from pathlib import Path
from typing import Any

import continuarm as ca
from benchmarks.service_page import machine
from continuarm.box import Box
from continuarm.cli.progress import Progress
from continuarm.table import Table

PAGE, MARK = Path("docs/smooth-surface.md"), "## Measured"
NAME, RIVAL = "smooth-surface", "recommended"
PROBLEMS = (
    *("two-communities", "scalar", "plane", "purchase", "auction", "stairs", "edge", "jump"),
    *("log-utility-3", "heavy-tails", "step-and-slope", "sine-5", "one-of-5", "orange-juice"),
)


def smooth_surface(context: Box, decision: Box, *, rng: Any = None) -> ca.Policy:
    """The policy of the page."""
    parts: dict[str, Any] = {"partition": ca.Grid(1), "learner": ca.SmoothSurface()}
    return ca.Policy(context, decision, **parts, rng=rng)


def measured(found: ca.Comparison, horizons: list[int], seeds: int) -> str:
    """The section of the page."""
    columns = ["problem"]
    columns += [f"{horizon:,} decisions" for horizon in horizons]
    rows: list[tuple[str, ...]] = []
    logs: dict[int, list[float]] = {horizon: [] for horizon in horizons}
    for problem in PROBLEMS:
        cells = [problem]
        for horizon in horizons:
            ratio, low, high = found.ratio(found.of(problem, horizon, NAME))
            logs[horizon].append(math.log(ratio))
            cells.append(f"{ratio:.2f} [{low:.2f}, {high:.2f}]")
        rows.append(tuple(cells))
    means = [f"{math.exp(sum(all_) / len(all_)):.2f}" for all_ in logs.values()]
    rows.append(("geometric mean", *means))
    return f"""{MARK}

Regret divided by that of `recommended`, paired by seed ({seeds} seeds), with 95 % intervals over
seeds; below 1 the smooth surface is better. Its constants were chosen on eleven of these problems,
with other seeds.

{Table.of(columns, rows).markdown()}

`python -m benchmarks.smooth --write` on {machine()}.

"""


def main() -> None:
    """Compare, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--decisions", type=int, default=10_000)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    horizons = [options.decisions // 10, options.decisions]
    policies = {NAME: smooth_surface, RIVAL: RIVAL}
    counted = 2 * len(PROBLEMS) * options.seeds * options.decisions
    with Progress("comparing", counted, hidden=False) as move:
        found = ca.compare(
            policies,
            list(PROBLEMS),
            horizons=horizons,
            replications=options.seeds,
            baseline=RIVAL,
            progress=move,
        )
    text = measured(found, horizons, options.seeds)
    print(text)
    if options.write:
        page = PAGE.read_text()
        begin = page.index(MARK)
        PAGE.write_text(page[:begin] + text + page[page.index("## ", begin + 1) :])


if __name__ == "__main__":
    main()
