"""Experiment: many seeded runs, on this machine or on a cluster, into one table.

A run is one policy on one problem with one horizon and one seed; it depends on nothing else, so
the numbers are the same on any number of workers. Finished runs are written to a journal at once:
an interrupted experiment, started again with the same folder, does only what is missing.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from continuarm import __version__
from continuarm.checks import whole
from continuarm.errors import MissingExtraError, SettingsError
from continuarm.jit import stamp
from continuarm.journal import Journal
from continuarm.parallel import each
from continuarm.policies import POLICIES, policy_for
from continuarm.problems import PROBLEMS, Problem, problem
from continuarm.simulation import simulate

if TYPE_CHECKING:
    import polars

__all__ = ["Experiment", "Task"]

# A specification: a name, (name, settings), (name, function of the horizon -> settings), or an
# object (for a policy whatever `simulate` takes; for a problem a Problem or a function for one).
Spec = Any
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


class Task(NamedTuple):
    """One run that is to be done."""

    policy: str
    problem: str
    horizon: int
    seed: int
    policy_spec: tuple[Any, str]  # a name or an object, and its settings as JSON
    problem_spec: tuple[Any, str]

    @property
    def key(self) -> str:
        """What identifies the run, the version of the code included."""
        names = [spec if isinstance(spec, str) else "object" for spec, _ in self[4:]]
        settings = [settings for _, settings in self[4:]]
        text = json.dumps([*self[:4], names, settings, stamp()])
        return hashlib.sha256(text.encode()).hexdigest()[:24]


class Experiment:
    """Policies × problems × horizons × seeds.

    Parameters
    ----------
    policies, problems : names, or `{label: specification}`. A specification is a name, a pair of
        name and settings (a dict, or a function of the horizon that returns one), or an object:
        whatever `simulate` takes for a policy; a `Problem`, or a function that makes one.
    horizons : each is a run of its own, so that policies may plan for it.
    replications : seeds per horizon, a number or a function of the horizon.
    seed : the first seed.

    >>> experiment = Experiment(policies=["fixed"], problems=["two-communities"], horizons=[100])
    >>> len(experiment.tasks())
    8
    """

    def __init__(
        self,
        *,
        policies: Mapping[str, Spec] | Sequence[str],
        problems: Mapping[str, Spec] | Sequence[str],
        horizons: Sequence[int],
        replications: int | Callable[[int], int] = 8,
        seed: int = 0,
    ) -> None:
        self.policies = _labelled("policies", policies, POLICIES)
        self.problems = _labelled("problems", problems, tuple(PROBLEMS))
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
        return [
            Task(policy, world, horizon, self.seed + k, *specs)
            for horizon in sorted(self.horizons, reverse=True)
            for world, problem_spec in self.problems.items()
            for policy, policy_spec in self.policies.items()
            for specs in [(_concrete(policy_spec, horizon), _concrete(problem_spec, horizon))]
            for k in range(self.replications[horizon])
        ]

    def stream(
        self,
        folder: str | Path | None = None,
        *,
        workers: int | None = None,
        cluster: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The rows of the table as runs finish; those in the folder's journal come first."""
        tasks = self.tasks()
        with Journal(folder) as journal:
            missing = []
            for task in tasks:
                row = journal.rows.get(task.key)
                if row is None:
                    missing.append(task)
                else:
                    yield row
            for key, row in each(run_task, missing, workers=workers, cluster=cluster):
                journal.write(key, row)
                yield row

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
        cluster : `"local"` or `"tcp://host:port"` for Dask, `"ray"` for Ray.
        progress : called with the decisions of each run that is there.
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


def run_task(task: Task) -> tuple[str, dict[str, Any]]:
    """Do one run, in whatever process this is."""
    (policy, settings), (world, world_settings) = task.policy_spec, task.problem_spec
    if isinstance(world, str):
        world = _named_problem(world, world_settings)
    elif not isinstance(world, Problem):
        world = _made_problem(world)
    if isinstance(policy, str):
        policy = policy_for(policy, world, **json.loads(settings))
    result = simulate(
        policy,
        world,
        horizon=task.horizon,
        replications=1,
        rng=task.seed,
        checkpoints=1,
        workers=1,
    )
    values = (
        *task[:4],
        float(result.regret[0, -1]),
        float(result.recommend_regret[0, -1]),
        result.seconds,
        settings,
        world_settings,
        __version__,
    )
    return task.key, dict(zip(COLUMNS, values, strict=True))


@lru_cache(maxsize=16)
def _named_problem(name: str, settings: str) -> Problem:
    return problem(name, **json.loads(settings))


@lru_cache(maxsize=16)
def _made_problem(make: Callable[[], Problem]) -> Problem:
    made = make()
    if not isinstance(made, Problem):
        raise SettingsError(f"a function that makes a Problem is needed, but it made {made!r}")
    return made


def _labelled(option: str, given: Any, names: tuple[str, ...]) -> dict[str, Spec]:
    if isinstance(given, str) or not isinstance(given, Mapping | Sequence) or not given:
        raise SettingsError(f"`{option}` must be names or {{label: ...}}, but got {given!r}")
    if not isinstance(given, Mapping) and not all(isinstance(name, str) for name in given):
        raise SettingsError(f"`{option}` without labels must be names, but got {given!r}")
    labelled = dict(given) if isinstance(given, Mapping) else {name: name for name in given}
    for spec in labelled.values():
        if isinstance(spec, tuple):
            pair = len(spec) == 2 and isinstance(spec[0], str)
            if not (pair and (isinstance(spec[1], Mapping) or callable(spec[1]))):
                raise SettingsError(f"`{option}` takes (name, settings), but got {spec!r}")
        name = spec[0] if isinstance(spec, tuple) else spec
        if isinstance(name, str) and name not in names:
            raise SettingsError(f"`{option}` must be among {list(names)}, but got {name!r}")
    return labelled


def _concrete(spec: Spec, horizon: int) -> tuple[Any, str]:
    """The name or object, and the settings for this horizon as JSON."""
    if not isinstance(spec, tuple):
        return spec, "{}"
    name, settings = spec
    if callable(settings):
        settings = settings(horizon)
    try:
        return name, json.dumps(settings, sort_keys=True, default=_plain)
    except TypeError:
        raise SettingsError(f"settings must be plain values, but got {settings!r}") from None


def _plain(value: Any) -> Any:
    """A number or array of NumPy as JSON knows it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError
