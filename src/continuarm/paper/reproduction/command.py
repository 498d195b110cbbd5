"""reproduce: run the studies, compute the tables, draw the figures, write the report."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from continuarm.drawing import figure_class
from continuarm.errors import SettingsError
from continuarm.lab.experiment import table as as_table
from continuarm.lab.simulation import simulate
from continuarm.paper.reproduction import claims, figures
from continuarm.paper.reproduction.measures import seeds_in_words
from continuarm.paper.reproduction.plan import PRINTED, STUDIES
from continuarm.paper.reproduction.report import Section, markdown, write_report
from continuarm.problems import problem
from continuarm.table import Table
from continuarm.version import __version__

if TYPE_CHECKING:
    import polars

__all__ = ["FIGURES", "reproduce", "total_decisions"]

FIGURES = tuple(STUDIES)
TITLE = "A Dimension-free Algorithm for Contextual Continuum-armed Bandits: reproduction"
SEEDS = "Each regret is the mean of {seeds}, for each policy, problem and horizon."
TEXTS = {
    "regret": (
        "The experiment of Section 5",
        "Regret against the horizon on the paper's example, each horizon a run of its own with "
        "its own K and L. As printed: K and L as in the theorems, n_l = 2^(2αl) stencils, a "
        "child inherits the iterate. The paper leaves open the step (the middle of its interval "
        "here), the width δ = 0.2, the start (the centre) and the noise (Gaussian, standard "
        "deviation 0.1). With the corrections: alternating or central probes, bins T^(1/5) for "
        "the static algorithm, n_l = 30·16^l stencils and the inherited count for the adaptive "
        "one, and a uniform algorithm whose bonus and grid were tuned on this problem. In the "
        "table of claims, with corrections means alternating probes for the static and the "
        "adaptive algorithm, and the tuned uniform one.\n\n"
        "What intervals range over. A slope is that of the line of least squares through the "
        "logarithms of mean regret and horizon, from T = 10,000 on (with --quick from 1,000). "
        "Its 95 % interval is that of the regression: it ranges over horizons, not over seeds. "
        "The 95 % interval of a ratio ranges over seeds, paired. So do the bands of all "
        "figures. A run time is the median of three runs, and has no interval.\n\n"
        "When a claim holds. A slope may be up to 0.05 above the paper's. The paper's rates are "
        "upper bounds, so one that is more than 0.05 below holds with room; the best decision "
        "is Lipschitz in the context in this example, where the lower bound is 3/5. Not surely "
        "stands where the interval contains the limit. An order holds if the whole interval of "
        "the ratio lies below 1. For run times the paper gives minutes: uniform must take "
        "longer than static, and adaptive at most 1.5 times as long, which is our reading of "
        '"slightly". With fewer than five seeds, as with --quick, the verdict is "too few seeds '
        'to say" where the interval contains the limit.\n\n'
        "The rows about dy are of the study of the dimension below. The last rows of the third "
        "table change one thing in the printed settings: the probes' sign alternates, which "
        "removes the bias of the one-sided difference.",
    ),
    "noise": (
        "Other noise levels",
        "The paper does not state its noise. The same with standard deviations 0.01 and 0.5.",
    ),
    "dimension": (
        "What the title claims: the dimension of the decision",
        "A quadratic payoff with one context dimension and equal curvatures in dy dimensions: "
        "the slope in T at each dy, which Theorems 1 and 2 put at 2/3 for every dy, and the "
        "power of dy by which regret grows at the last horizon, which they put at 1 (their "
        "exponent as corrected in reading 12 of how the paper is read). The interval of a slope "
        "ranges over the horizons, that of the power over the dimensions. A stencil takes dy + "
        "1 decisions, so with many dimensions few steps fit into these horizons: the power is "
        "that of this horizon, not yet of the limit. The uniform algorithm is shown as far as "
        "its grid, of at least two decisions per dimension, fits into the horizon.",
    ),
    "lower-bound": (
        "The lower bound",
        "The hard family of Theorem 3 with T^(1/(dx+4)) cells per dimension, dy = 2.",
    ),
    "contexts": (
        "Skewed contexts",
        "Contexts from Beta(0.5, 5), most of them near 0, for which the paper expects adaptive "
        "bins to pay off; a ratio further below 1 than under uniform contexts would show it. "
        "The table has the ratio of adaptive to static regret, paired by seed, with 95 % "
        "intervals.",
    ),
}


def total_decisions(chosen: Sequence[str], *, quick: bool) -> int:
    """The decisions of all runs, for a progress bar."""
    return sum(
        sum(t.horizons)
        for name in dict.fromkeys(chosen)
        for e in _experiments(name, quick)
        for t in e.tasks()
    )


def _experiments(name: str, quick: bool) -> list[Any]:
    study = STUDIES[name]()
    return study.quick if quick else study.full


def reproduce(
    folder: str | Path,
    *,
    chosen: Sequence[str] = FIGURES,
    quick: bool = False,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Table | None:
    """Fill the folder; the table of claims, if the experiment of Section 5 was among the chosen.

    Finished runs are kept in `runs.jsonl`: started again, only what is missing is done.
    """
    chosen = tuple(dict.fromkeys(chosen))
    for name in chosen:
        if name not in FIGURES:
            raise SettingsError(f"the figure must be one of {list(FIGURES)}, but got {name!r}")
    figure_class()
    folder = Path(folder)
    runs = {
        name: _run(_experiments(name, quick), folder, workers, cluster, progress)
        for name in chosen
    }
    everything = _with_study(runs)
    everything.write_parquet(folder / "runs.parquet")
    everything.write_csv(folder / "runs.csv")
    return write(folder, runs, quick=quick)


def write(folder: Path, runs: Mapping[str, "polars.DataFrame"], *, quick: bool) -> Table | None:
    """Draw the figures of these studies and write the report; the table of claims."""
    for name, rows in runs.items():
        figures.save(figures.draw(name, rows), folder, name)
    seconds, horizon = ({}, 0) if "regret" not in runs else timing(folder, quick)
    sections = {name: _section(name, runs, seconds, horizon) for name in runs}
    title = f"{TITLE}{' (quick)' if quick else ''}"
    write_report(folder / "report.html", title, list(sections.values()), folder)
    page = markdown(title, list(sections.values()), {name: f"{name}.png" for name in runs})
    (folder / "report.md").write_text(page, encoding="utf-8")
    return sections["regret"][2][0] if "regret" in sections else None


def _run(
    experiments: Sequence[Any],
    folder: Path,
    workers: int | None,
    cluster: str | None,
    progress: Callable[[int], None] | None,
) -> "polars.DataFrame":
    rows = []
    for experiment in experiments:
        for row in experiment.stream(folder, workers=workers, cluster=cluster):
            rows.append(row)
            if progress is not None:
                progress(row["horizon"])
    order = {
        name: k for k, name in enumerate(dict.fromkeys(p for e in experiments for p in e.policies))
    }
    return as_table(sorted(rows, key=lambda row: order[row["policy"]]))


def _with_study(runs: dict[str, "polars.DataFrame"]) -> "polars.DataFrame":
    import polars

    return polars.concat(
        [rows.with_columns(polars.lit(name).alias("study")) for name, rows in runs.items()]
    )


def timing(folder: Path, quick: bool) -> tuple[dict[str, float], int]:
    """Seconds of one run of each algorithm, alone on the machine; kept in the folder."""
    horizon = 10**6 if quick else 10**7
    path = folder / "timing.json"
    try:
        kept = json.loads(path.read_text("utf-8"))
        if kept["horizon"] == horizon and kept["version"] == __version__:
            return kept["seconds"], horizon
    except (OSError, ValueError, TypeError, KeyError):
        pass  # not there, or damaged: measure
    world = problem("two-communities")
    seconds: dict[str, float] = {}
    for label, name in PRINTED.items():
        runs = [
            simulate(name, world, horizon=horizon, rng=k, checkpoints=1, workers=1).seconds
            for k in range(3)
        ]
        seconds[label] = float(np.median(runs))
    kept = {"seconds": seconds, "horizon": horizon, "version": __version__, "time": time.time()}
    path.write_text(json.dumps(kept))
    return seconds, horizon


def _section(
    name: str, studies: Mapping[str, "polars.DataFrame"], seconds: dict[str, float], horizon: int
) -> Section:
    heading, text = TEXTS[name]
    runs = studies[name]
    text = f"{text}\n\n{SEEDS.format(seeds=seeds_in_words(runs))}"
    makers: dict[str, Callable[[], list[Table]]] = {
        "regret": lambda: [
            claims.claims_table(runs, seconds, studies.get("dimension")),
            claims.time_table(seconds, horizon),
            claims.slope_table(runs),
        ],
        "noise": lambda: [],
        "dimension": lambda: [claims.dimension_table(runs), claims.power_table(runs)],
        "lower-bound": lambda: [claims.lower_bound_table(runs)],
        "contexts": lambda: [claims.context_table(runs)],
    }
    return heading, text, makers[name](), [name]
