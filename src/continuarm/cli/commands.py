"""What the commands call: loading by name or from a file, running, reporting."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from continuarm.cli import own_files
from continuarm.drawing import check_path
from continuarm.errors import SettingsError
from continuarm.lab import specs
from continuarm.lab.comparison import Choices, Comparison, compare
from continuarm.lab.figures.plots import regret_curves
from continuarm.lab.result import Result
from continuarm.lab.simulation import simulate
from continuarm.lab.specs import key_value, plain_value
from continuarm.live.named.by_name import maker_of
from continuarm.problems import Problem, problem, problem_names
from continuarm.problems.registry import tags
from continuarm.table import Table

__all__ = [
    "check_plot",
    "comparison_of",
    "draw",
    "load_policy",
    "load_problem",
    "report",
    "run",
    "settings_of",
    "summary",
]

check_plot, draw = check_path, regret_curves
SHOWN = 7  # checkpoints in a printed table
Progress = Callable[[int], None]


def settings_of(texts: Sequence[str]) -> dict[str, Any]:
    """`key=value` with JSON values; what is not JSON is a string."""
    pairs = [key_value(text) for text in texts]
    return {key: plain_value(value) for key, value in pairs}


def load_problem(
    text: str, settings: dict[str, Any], noise: float | None
) -> tuple[Problem, dict[str, Any]]:
    """A problem by name, or from `file.py:object` (a Problem, or a function that makes one)."""
    given = settings if noise is None else settings | {"noise": noise}
    if not own_files.is_file(text):
        return problem(text, **given), given
    found = own_files.own_problem(text, settings)
    if noise is not None:
        found = found.with_noise(noise)
    return found, given


def load_policy(text: str, world: Problem, horizon: int, settings: dict[str, Any]) -> Any:
    """A policy by name or from `file.py:object`, as `simulate` takes it; tried before it runs."""
    target = own_files.load(text) if own_files.is_file(text) else text
    known = world.knowledge | {"horizon": horizon, "rng": np.random.default_rng(0)}
    if isinstance(target, str):
        maker_of(target)(world.context, world.decision, known, settings)
        return target, settings
    if settings:
        unknown = [key for key in settings if key not in maker_of(target).options()]
        if unknown:
            raise SettingsError(f"{text} must take the settings given, but not {unknown}")
        return partial(target, **settings)
    return target


def comparison_of(
    policies: Sequence[str],
    problems: Sequence[str],
    horizons: Sequence[int],
    replications: int,
    seed: int,
    feedback: dict[str, Any],
    **options: Any,
) -> tuple[int, Callable[[Progress], Comparison]]:
    """How many decisions it will take at most, and what runs it."""
    entrants: dict[str, Any] = {}
    for text in policies:
        if text in entrants:
            raise SettingsError(f"each policy must be given once, but got {text!r} again")
        name, settings = specs.parse(text)
        target = own_files.load(name) if own_files.is_file(name) else name
        entrants[text] = Choices(target, settings)
    worlds = {name: spec for text in problems for name, spec in _worlds(text, feedback).items()}
    rows = sum(len(choices.settings) for choices in entrants.values()) * len(worlds)
    length = rows * sum(horizons) * replications

    def run(progress: Progress) -> Comparison:
        return compare(
            entrants,
            worlds,
            horizons=horizons,
            replications=replications,
            seed=seed,
            progress=progress,
            **options,
        )

    return length, run


def _worlds(text: str, feedback: dict[str, Any]) -> dict[str, Any]:
    """Problems as `compare` takes them: names with settings, files, all that have a tag."""
    if text in tags():
        return {name: (name, feedback) for name in problem_names(text)}
    name, settings = specs.parse(text)
    if len(settings) > 1:
        raise SettingsError(f"a problem's settings have one value each, but got {text!r}")
    if own_files.is_file(name):
        found = own_files.own_problem(name, settings[0])
        return {text: found.with_feedback(**feedback) if feedback else found}
    return {text: (name, settings[0] | feedback)}


def run(
    name: str,
    policy: Any,
    world: Problem,
    horizon: int,
    replications: int,
    seed: int,
    progress: Progress,
) -> Result:
    """Simulate, with the name that the user gave."""
    result = simulate(
        policy, world, horizon=horizon, replications=replications, rng=seed, progress=progress
    )
    return Result(**{**vars(result), "policy": name})


def report(
    result: Result, seed: int, settings: dict[str, Any], problem_settings: dict[str, Any]
) -> dict[str, Any]:
    """A result as one JSON object."""
    used = dict(settings)
    if hasattr(result.policies[0], "describe"):
        used["as_run"] = result.policies[0].describe()
    return {
        "policy": result.policy,
        "problem": result.problem,
        "horizon": result.horizon,
        "replications": result.replications,
        "seed": seed,
        "settings": {"policy": used, "problem": problem_settings},
        "checkpoints": result.checkpoints.tolist(),
        "regret_mean": result.mean.tolist(),
        "regret_std_error": [None if np.isnan(e) else e for e in result.standard_error.tolist()],
        "seconds": result.seconds,
        "decisions_per_second": result.decisions_per_second,
    }


def summary(results: Sequence[Result]) -> str:
    """The table that people read: one row per checkpoint for one policy, else one per policy."""
    first = results[0]
    if len(results) == 1:
        table = first.table()
        chosen = np.unique(np.linspace(0, len(table.rows) - 1, SHOWN).astype(int))
        table = Table(table.columns, tuple(table.rows[i] for i in chosen))
        timing = f"{first.seconds:.2f} s, {first.decisions_per_second:,.0f} decisions/s"
        return f"{first.title}\n\n{table}\n\n{timing}"
    rows = [
        (
            result.policy,
            float(result.mean[-1]),
            None if result.replications < 2 else float(result.standard_error[-1]),
            float(result.mean[-1]) / result.horizon,
            None
            if np.isnan(result.recommend_regret[0, -1])
            else float(result.recommend_regret[:, -1].mean()),
            round(result.seconds, 2),
        )
        for result in results
    ]
    columns = ("policy", "regret", "std error", "per decision", "of recommend", "seconds")
    title = first.title.removeprefix(f"{first.policy} on ")
    return f"{title}\n\n{Table.of(columns, rows)}"
