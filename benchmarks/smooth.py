"""The smooth surface beside the recommended policy, on every problem of the suite.

    python -m benchmarks.smooth [--seeds 8] [--decisions 100000] [--only jump] [--write]

`--write` puts the table into docs/smooth-surface.md. A quarter of an hour on two cores.
"""

import argparse
import math
from pathlib import Path
from typing import Any

import continuarm as ca
from benchmarks.recommended import noise_and_range
from benchmarks.recommended_page import is_counted
from benchmarks.service_page import machine
from continuarm.box import Box
from continuarm.cli.progress import Progress
from continuarm.table import Table

PAGE, MARK = Path("docs/smooth-surface.md"), "## Measured"
NAME, RIVAL = "smooth-surface", "recommended"


def smooth_surface(context: Box, decision: Box, *, rng: Any = None) -> ca.Policy:
    """The policy of the page."""
    parts: dict[str, Any] = {"partition": ca.Grid(1), "learner": ca.SmoothSurface()}
    return ca.Policy(context, decision, **parts, rng=rng)


def measured(found: ca.Comparison, horizons: list[int], seeds: int, command: str) -> str:
    """The section of the page."""
    problems = list(dict.fromkeys(score.problem for score in found.scores))
    counted = [name for name in problems if _counts(name)]
    rows: list[tuple[str, ...]] = []
    logs: dict[int, list[float]] = {horizon: [] for horizon in horizons}
    for problem in problems:
        cells = [problem]
        for horizon in horizons:
            score = found.of(problem, horizon, NAME)
            if problem == "constant":
                cells.append("")
                continue
            times, low, high = found.ratio(score)
            if problem in counted:
                logs[horizon].append(math.log(times))
            cells.append(f"{times:.2f} [{low:.2f}, {high:.2f}]")
        rows.append((*cells, "" if problem in counted else "outside the mean"))
    means = [f"{math.exp(sum(all_) / max(len(all_), 1)):.3f}" for all_ in logs.values()]
    rows.append((f"geometric mean of {len(counted)}", *means, ""))
    columns = ["problem", *(f"{horizon:,} decisions" for horizon in horizons), ""]
    return f"""{MARK}

Regret divided by that of `recommended`, paired by seed ({seeds} seeds), with 95 % intervals over
seeds; below 1 the smooth surface is better. Its constants were chosen on twenty of these
problems, with other seeds. As on [the comparison](comparison.md), problems whose noise is above
the payoff's range are outside the mean.

{Table.of(columns, rows).markdown()}

`{command}` on {machine()}.

"""


def _counts(name: str) -> bool:
    noise, reach = noise_and_range(ca.problem(name))
    return is_counted(name, {"noise": noise, "range": reach})


def main() -> None:
    """Compare, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--only", action="append", help="a problem; the suite by default")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    horizons = [options.decisions // 100, options.decisions // 10, options.decisions]
    problems = options.only or list(ca.problem_names("suite"))
    policies = {NAME: smooth_surface, RIVAL: RIVAL}
    counted = 2 * len(problems) * options.seeds * options.decisions
    with Progress("comparing", counted, hidden=False) as move:
        found = ca.compare(
            policies,
            problems,
            horizons=horizons,
            replications=options.seeds,
            baseline=RIVAL,
            progress=move,
        )
    scale = f"--decisions {options.decisions} --seeds {options.seeds}"
    command = f"python -m benchmarks.smooth {scale} --write"
    text = measured(found, horizons, options.seeds, command)
    print(text)
    if options.write:
        page = PAGE.read_text()
        begin = page.index(MARK)
        PAGE.write_text(page[:begin] + text + page[page.index("## ", begin + 1) :])


if __name__ == "__main__":
    main()
