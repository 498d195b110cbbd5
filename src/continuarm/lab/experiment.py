"""Experiment: many seeded runs, on this machine or on a cluster, into one table.

A run is one policy on one problem with one seed; it depends on nothing else, so the numbers are
the same on any number of workers. A policy that wants to know the horizon runs once for each; any
other runs once, to the longest, and is read on the way. Finished runs are written to a journal at
once: an interrupted experiment, started again with the same folder, does only what is missing.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from continuarm.checks import whole
from continuarm.core.compiling import stamp
from continuarm.errors import MissingExtraError, SettingsError
from continuarm.lab import specs
from continuarm.lab.journal import Journal
from continuarm.lab.parallel import each
from continuarm.lab.simulation import simulate
from continuarm.lab.specs import Spec
from continuarm.live.named.by_name import maker_of
from continuarm.problems.registry import check_name, entry_of
from continuarm.version import __version__

if TYPE_CHECKING:
    import polars

__all__ = ["Experiment", "Task"]

Row = dict[str, Any]
COLUMNS = (
    "policy",
    "problem",
    "horizon",
    "seed",
    "regret",
    "recommend_regret",
    "seconds",
    "policy_settings",
    "problem_settings",
    "version",
)
PACKAGE = Path(__file__).parent.parent
# what can change a number besides compiled code and the problem itself
ROOMS = tuple(PACKAGE / room for room in ("live", "live/named", "lab", "problems", "paper"))


class Task(NamedTuple):
    """One run that is to be done."""

    policy: str
    problem: str
    horizons: tuple[int, ...]
    seed: int
    policy_spec: Spec
    problem_spec: Spec
    key: str = ""  # what identifies the run, the version of the code included


def _known_everywhere(policy: Spec, world: Spec) -> tuple[Spec, Spec]:
    """Policy and problem, with what makes them where a worker could not know it."""
    return specs.with_maker(policy, maker_of), specs.with_maker(world, entry_of)


def _with_key(task: Task) -> Task:
    """A task with its key, which a worker that knows other files could not find out."""
    kinds = task.policy_spec.identity, specs.problem_identity(task.problem_spec)
    settings = task.policy_spec.settings, task.problem_spec.settings
    text = json.dumps([*task[:4], kinds, settings, stamp(*ROOMS)])
    return task._replace(key=hashlib.sha256(text.encode()).hexdigest()[:24])


class Experiment:
    """Policies × problems × horizons × seeds.

    Parameters
    ----------
    policies, problems : names, or `{label: specification}`. A specification is a name, a pair of
        name and settings (a dict, or a function of the horizon that returns one), or an object:
        whatever `simulate` takes for a policy; a `Problem`, or a function that makes one. Every
        problem by name has the settings `delay` and `lost` of `Problem.with_feedback`.
    horizons : after how many decisions regret is noted; a policy that plans runs for each anew.
    replications : seeds per horizon, a number or a function of the horizon.
    seed : the first seed.

    >>> experiment = Experiment(
    ...     policies=["static-kwsa"], problems=["two-communities"], horizons=[100]
    ... )
    >>> len(experiment.tasks())
    8
    """

    def __init__(
        self,
        *,
        policies: Mapping[str, Any] | Sequence[str],
        problems: Mapping[str, Any] | Sequence[str],
        horizons: Sequence[int],
        replications: int | Callable[[int], int] = 8,
        seed: int = 0,
    ) -> None:
        self.policies = specs.labelled("policies", policies, maker_of)
        self.problems = specs.labelled("problems", problems, check_name)
        if not isinstance(horizons, Sequence) or not horizons:
            raise SettingsError(f"`horizons` must be a sequence of numbers, but got {horizons!r}")
        self.horizons = list(dict.fromkeys(whole("horizons", h, 1) for h in horizons))
        self.replications = {
            horizon: whole(
                "replications",
                replications(horizon) if callable(replications) else replications,
                1,
            )
            for horizon in self.horizons
        }
        self.seed = whole("seed", seed, 0)

    def tasks(self) -> list[Task]:
        """All runs, the longest first, so that no worker is left alone at the end."""
        found = [
            _with_key(Task(policy, world, horizons, seed, *_known_everywhere(*made)))
            for world, problem_spec in self.problems.items()
            for policy, policy_spec in self.policies.items()
            for horizons, seed in self._runs(policy_spec, problem_spec)
            for made in [[specs.concrete(s, horizons[-1]) for s in (policy_spec, problem_spec)]]
        ]
        return sorted(found, key=lambda task: -task.horizons[-1])

    def _runs(self, policy_spec: Any, problem_spec: Any) -> list[tuple[tuple[int, ...], int]]:
        """The horizons and the seed of each run of a policy on a problem."""
        varies = isinstance(problem_spec, tuple) and callable(problem_spec[1])
        alone = varies or specs.plans(policy_spec)
        found = []
        for k in range(max(self.replications.values())):
            wanted = sorted(h for h, count in self.replications.items() if k < count)
            groups = [(h,) for h in wanted] if alone else [tuple(wanted)]
            found += [(group, self.seed + k) for group in groups]
        return found

    def stream(
        self,
        folder: str | Path | None = None,
        *,
        workers: int | None = None,
        cluster: str | None = None,
    ) -> Iterator[Row]:
        """The rows of the table as runs finish; those in the folder's journal come first."""
        tasks = self.tasks()
        with Journal(folder) as journal:
            missing = []
            for task in tasks:
                rows = journal.runs.get(task.key)
                if rows is None:
                    missing.append(task)
                else:
                    yield from rows
            for key, rows in each(run_task, missing, workers=workers, cluster=cluster):
                journal.write(key, rows)
                yield from rows

    def run(
        self,
        folder: str | Path | None = None,
        *,
        workers: int | None = None,
        cluster: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> "polars.DataFrame":
        """All runs as a table, sorted by policy, problem, horizon and seed.

        Parameters
        ----------
        folder : where `runs.jsonl` keeps finished runs; nothing is kept without it.
        workers : processes on this machine, one per core by default.
        cluster : `"local"` or `"tcp://host:port"` for Dask, `"ray"` for Ray, `"threads"` for
            threads of this process.
        progress : called with the decisions of each row that is there.
        """
        rows = []
        for row in self.stream(folder, workers=workers, cluster=cluster):
            rows.append(row)
            if progress is not None:
                progress(row["horizon"])
        return table(rows)


def table(rows: Sequence[Mapping[str, Any]]) -> "polars.DataFrame":
    """Rows as a polars table."""
    try:
        import polars
    except ImportError:
        raise MissingExtraError(
            'experiments need polars and joblib: pip install "continuarm[experiments]"'
        ) from None
    schema = dict.fromkeys(COLUMNS, polars.String) | {
        "horizon": polars.Int64,
        "seed": polars.Int64,
        "regret": polars.Float64,
        "recommend_regret": polars.Float64,
        "seconds": polars.Float64,
    }
    return polars.DataFrame(list(rows), schema=schema, orient="row").sort(COLUMNS[:4])


def run_task(task: Task, progress: Callable[[int], None] | None = None) -> tuple[str, list[Row]]:
    """Do one run, in whatever process this is; a row for each of its horizons."""
    result = simulate(
        specs.policy_of(task.policy_spec),
        specs.problem_of(task.problem_spec),
        horizon=task.horizons[-1],
        replications=1,
        rng=task.seed,
        checkpoints=task.horizons,
        workers=1,
        progress=progress,
    )
    rows = []
    for k, horizon in enumerate(task.horizons):
        values = (
            *task[:2],
            horizon,
            task.seed,
            float(result.regret[0, k]),
            float(result.recommend_regret[0, k]),
            result.seconds,
            task.policy_spec.settings,
            task.problem_spec.settings,
            __version__,
        )
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    return task.key, rows
