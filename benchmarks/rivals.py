"""The recommended policy beside Thompson sampling on one Bayesian model of all contexts.

    python -m benchmarks.rivals [--seeds 8] [--decisions 10000] [--only scalar] [--write]

Each rival runs with its defaults, and with the best in hindsight, for each problem, of a grid of
settings. `--write` makes docs/rivals.md. About an hour on two cores.
"""

import argparse
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import continuarm as ca
from benchmarks.service_page import machine
from continuarm.cli.progress import Progress
from continuarm.errors import SettingsError
from continuarm.lab.comparison import Choices
from continuarm.lab.measures import Interval, ratio
from continuarm.live.named import makes
from continuarm.table import Table

PAGE = Path("docs/rivals.md")
OURS = "recommended"
GRIDS: dict[str, dict[str, list[float]]] = {
    "linear-thompson": {"degree": [2, 3], "ridge": [0.01, 0.1], "spread": [0.25, 0.5, 1.0]},
    "cosine-thompson": {
        "frequencies": [3, 5, 10],
        "ridge": [0.01, 0.1],
        "spread": [0.25, 0.5, 1.0],
    },
    "logit-thompson": {"degree": [1, 2], "ridge": [0.03, 0.1, 0.3], "spread": [0.25, 0.5, 1.0]},
}
MOST_COLUMNS = 500  # of a setting of a grid: more take minutes
LEFT_OUT = ("constant",)  # nothing can be lost there

Settings = dict[str, float]


def settings_of(rival: str) -> list[Settings]:
    """All settings of a grid."""
    grid = GRIDS[rival]
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def columns(rival: str, settings: Settings, world: ca.Problem) -> float:
    """The columns of its model; infinity: it refuses this problem."""
    told: dict[str, Any] = {"problem": world} if rival == "logit-thompson" else {}
    try:
        made = makes(rival, world.context, world.decision, **settings, **told)
    except SettingsError:
        return math.inf
    return float(made.life.model.lcfg.size)


def entrants(world: ca.Problem) -> dict[str, Any]:
    """Ours, and each rival that applies: with its defaults, and all settings of its grid."""
    found: dict[str, Any] = {OURS: OURS}
    for rival in GRIDS:
        if columns(rival, {}, world) < math.inf:
            found[rival] = rival
        all_ = [s for s in settings_of(rival) if columns(rival, s, world) <= MOST_COLUMNS]
        if all_:
            found[f"{rival}, best"] = Choices(rival, tuple(all_))
    return found


def runs(found: dict[str, Any]) -> int:
    """How many runs of a seed these are."""
    return sum(len(one.settings) if isinstance(one, Choices) else 1 for one in found.values())


def measured(
    problems: Sequence[str], seeds: int, decisions: int
) -> dict[str, dict[str, Interval]]:
    """For each problem, our regret divided by each rival's."""
    rivals = {name: entrants(ca.problem(name)) for name in problems}
    counted = sum(map(runs, rivals.values())) * seeds * decisions
    results = {}
    with Progress("comparing", counted, hidden=False) as move:
        for name, found in rivals.items():
            run = ca.compare(
                found,
                [name],
                horizons=[decisions],
                replications=seeds,
                baseline=OURS,
                progress=move,
            )
            regrets = {score.policy: score.regret for score in run.scores}
            results[name] = {
                label: ratio(regrets[OURS], regrets[label]) for label in found if label != OURS
            }
    return results


def geometric_mean(ratios: Sequence[Interval]) -> Interval:
    """Of ratios of different problems, with its 95 % interval over seeds (delta method).

    It is a little too wide: Student's quantile is that of one problem.
    """
    n = len(ratios)
    middle = sum(math.log(one.value) for one in ratios) / n
    reaches = [(one.high - one.low) / (2.0 * one.value) for one in ratios]
    error = math.sqrt(sum(reach**2 for reach in reaches)) / n
    return Interval(math.exp(middle), math.exp(middle - error), math.exp(middle + error))


def table(results: dict[str, dict[str, Interval]]) -> Table:
    """A row for each problem, a column for each rival."""
    labels = [f"{rival}{best}" for rival in GRIDS for best in ("", ", best")]
    rows = []
    for name, ratios in results.items():
        rows.append((name, *(_cell(ratios.get(label)) for label in labels)))
    means, counts = [], []
    for label in labels:
        here = [ratios[label] for ratios in results.values() if label in ratios]
        means.append(_cell(geometric_mean(here) if here else None))
        counts.append(len(here))
    rows.append(("geometric mean", *means))
    rows.append(("problems", *map(str, counts)))
    return Table.of(["problem", *labels], rows)


def _cell(found: Interval | None) -> str:
    if found is None:
        return ""
    if not math.isfinite(found.high):
        return f"{found.value:.2f}"
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def page(results: dict[str, dict[str, Interval]], seeds: int, decisions: int) -> str:
    """The page of the docs."""
    grids = []
    for rival, grid in GRIDS.items():
        written = [f"{key} {', '.join(map(str, values))}" for key, values in grid.items()]
        grids.append(f"- `{rival}`: {'; '.join(written)}")
    listed = "\n".join(grids)
    return f"""# Against Thompson sampling

The regret of `recommended` divided by that of [rivals](policies.md#thompson-sampling) that learn
one Bayesian model of all contexts: below 1 the recommended policy is better. {decisions:,}
decisions, {seeds} seeds, paired, with 95 % intervals over seeds. A rival runs with its defaults,
and as the best in hindsight, for each problem and by the same seeds, of these settings:

{listed}

Settings with more than {MOST_COLUMNS} columns are left out. A cell is empty where a rival does not
apply, or has more columns than that. `logit-thompson` is told the form of demand.

{table(results).markdown()}

This page is written by `python -m benchmarks.rivals --seeds {seeds} --decisions {decisions}
--write` on {machine()}.
"""


def main() -> None:
    """Compare, print, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--decisions", type=int, default=10_000)
    parser.add_argument("--only", action="append", help="this problem alone; again for several")
    parser.add_argument("--write", action="store_true", help=f"make {PAGE}")
    options = parser.parse_args()
    suite = [name for name in ca.problem_names("suite") if name not in LEFT_OUT]
    results = measured(options.only or suite, options.seeds, options.decisions)
    print(table(results))
    if options.write:
        PAGE.write_text(page(results, options.seeds, options.decisions))


if __name__ == "__main__":
    main()
