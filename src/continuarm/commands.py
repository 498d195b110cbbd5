"""What the commands call: loading by name or from a file, running, reporting."""

import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from continuarm.comparison import Comparison, Entrant, compare, decisions, parse
from continuarm.errors import ContinuarmError, SettingsError
from continuarm.plots import check_path, regret_curves
from continuarm.policies import BinnedPolicy, policy_for
from continuarm.problems import PROBLEMS, Problem, problem
from continuarm.result import Result
from continuarm.simulation import simulate
from continuarm.table import Table

__all__ = [
    "check_plot",
    "comparison_of",
    "draw",
    "load_policy",
    "load_problem",
    "report",
    "run",
    "summary",
]

check_plot, draw = check_path, regret_curves
SHOWN = 7  # checkpoints in a printed table


def load_problem(
    text: str, settings: dict[str, Any], noise: float | None
) -> tuple[Problem, dict[str, Any]]:
    """A problem by name, or from `file.py:object` (a Problem, or a function that makes one)."""
    given = settings if noise is None else settings | {"noise": noise}
    if ".py:" not in text:
        return problem(text, **given), given
    found = _own_problem(text, settings)
    if noise is not None:
        found = found.with_noise(noise)
    return found, given


def _own_problem(text: str, settings: dict[str, Any]) -> Problem:
    found = _load(text)
    if not isinstance(found, Problem) and callable(found):
        found = _call(found, settings, text)
    elif settings:
        raise SettingsError(f"{text} takes no settings, but got {list(settings)}")
    if not isinstance(found, Problem):
        raise SettingsError(f"{text} must be a Problem or make one, but got {found!r}")
    found.name = text.rpartition(":")[2] if found.name == "problem" else found.name
    return found


def load_worlds(texts: Sequence[str]) -> dict[str, Problem]:
    """Problems as `compare` takes them: names with settings, files, the suite or parts of it."""
    worlds: dict[str, Problem] = {}
    from continuarm.problems.suite import SUITE, UNSEEN

    for text in texts:
        if text in ("suite", "unseen"):
            chosen = SUITE if text == "suite" else UNSEEN
            worlds |= {name: make() for name, make in chosen.items()}
            continue
        if text in SUITE and text not in PROBLEMS:
            worlds[text] = SUITE[text]()
            continue
        name, settings = parse(text)
        if len(settings) > 1:
            raise SettingsError(f"a problem's settings have one value each, but got {text!r}")
        worlds[text] = load_problem(name, settings[0], None)[0]
    return worlds


def comparison_of(
    policies: Sequence[str],
    problems: Sequence[str],
    horizons: Sequence[int],
    replications: int,
    seed: int,
    baseline: str | None,
    *,
    delay: int,
    lost: float,
) -> tuple[int, Callable[[Callable[[int], None]], Comparison]]:
    """How many decisions it will take at most, and what runs it."""
    worlds = load_worlds(problems)
    if delay > 0 or lost != 0.0:
        worlds = {k: w.with_feedback(delay=delay, lost=lost) for k, w in worlds.items()}
    entrants = []
    for text in policies:
        name, settings = parse(text)
        if ".py:" in name:
            entrants.append(Entrant(text, partial(_player, name), settings))
        else:
            entrants.append(Entrant(text, name, settings))
    for entrant in entrants:  # refuse what is wrong before anything runs
        for world in worlds.values():
            entrant.made_for(world)

    def run(progress: Callable[[int], None]) -> Comparison:
        return compare(
            entrants,
            worlds,
            horizons,
            replications=replications,
            seed=seed,
            baseline=baseline,
            progress=progress,
        )

    return decisions(entrants, len(worlds), horizons, replications), run


def _player(text: str, world: Problem, /, **settings: Any) -> Any:
    return load_policy(text, world, settings)


def load_policy(text: str, world: Problem, settings: dict[str, Any]) -> Any:
    """A policy by name, or from `file.py:object`."""
    if ".py:" not in text:
        return policy_for(text, world, **settings)
    found = _load(text)
    if isinstance(found, type) and issubclass(found, BinnedPolicy):
        return _call(lambda **kw: found(world.context, world.decision, **kw), settings, text)
    if settings:
        raise SettingsError(
            f"`--set` is for policies by name, but got {list(settings)} for {text}"
        )
    return found


def run(
    name: str,
    policy: Any,
    world: Problem,
    horizon: int,
    replications: int,
    seed: int,
    progress: Callable[[int], None],
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
    used = dict(getattr(result.policies[0], "settings", settings))
    if isinstance(result.policies[0], BinnedPolicy):
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
    title = f"{first.problem}, {first.replications} replications of {first.horizon:,} decisions"
    if len(results) == 1:
        table = first.table()
        chosen = np.unique(np.linspace(0, len(table.rows) - 1, SHOWN).astype(int))
        table = Table(table.columns, tuple(table.rows[i] for i in chosen))
        timing = f"{first.seconds:.2f} s, {first.decisions_per_second:,.0f} decisions/s"
        return f"{first.policy} on {title}\n\n{table}\n\n{timing}"
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
    return f"{title}\n\n{Table.of(columns, rows)}"


def _load(text: str) -> Any:
    """The object of `file.py:object`."""
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise SettingsError(f"a file is needed, but {file!r} is not there")
    spec = importlib.util.spec_from_file_location(f"continuarm_user_{path.stem}", path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except ContinuarmError:
        raise
    except (Exception, SystemExit) as error:
        raise SettingsError(
            f"{file} must import, but got {type(error).__name__}: {error}"
        ) from error
    if not hasattr(module, name):
        raise SettingsError(f"{file} must define {name!r}, but does not")
    return getattr(module, name)


def _call(function: Callable[..., Any], settings: dict[str, Any], text: str) -> Any:
    try:
        inspect.signature(function).bind(**settings)
        return function(**settings)
    except TypeError as error:
        raise SettingsError(f"{text} must take the settings given, but {error}") from error
