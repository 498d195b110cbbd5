"""compare: policies × problems × horizons, paired by seed, as ratios to a baseline."""

import itertools
import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from continuarm.errors import SettingsError
from continuarm.jit import Array
from continuarm.plots import ratio_dots
from continuarm.policies import Fixed, Oracle, policy_for
from continuarm.problems import Problem
from continuarm.simulation import simulate
from continuarm.table import Table

__all__ = ["Comparison", "Entrant", "Score", "compare", "parse", "ratio"]

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Entrant:
    """A policy with settings; where a setting has several values, the best in hindsight counts."""

    label: str
    policy: Any  # a name, or what makes a policy of a problem and settings
    settings: tuple[dict[str, Any], ...] = ({},)

    def made_for(self, world: Problem) -> list[Any]:
        """The policies to try."""
        if callable(self.policy):
            return [self.policy(world, **chosen) for chosen in self.settings]
        return [policy_for(self.policy, world, **chosen) for chosen in self.settings]


@dataclass(frozen=True)
class Score:
    """One policy on one problem at one horizon."""

    problem: str
    horizon: int
    policy: str
    regret: Array  # one number per seed
    settings: dict[str, Any]  # of the best in hindsight


@dataclass(frozen=True)
class Comparison:
    """All scores, and the policy to which the others are compared."""

    scores: list[Score]
    baseline: str

    def of(self, problem: str, horizon: int, policy: str) -> Score:
        """One of the scores."""
        wanted = problem, horizon, policy
        return next(s for s in self.scores if (s.problem, s.horizon, s.policy) == wanted)

    def ratio(self, score: Score) -> tuple[float, float, float]:
        """Regret relative to the baseline's, with its 95 % interval."""
        return ratio(score.regret, self.of(score.problem, score.horizon, self.baseline).regret)

    def table(self) -> Table:
        """Means with standard errors, and ratios with 95 % intervals."""
        columns = (
            "problem", "decisions", "policy", "regret", "std error", "ratio", "95 % from", "to"
        )  # fmt: skip
        rows = []
        for score in self.scores:
            n = len(score.regret)
            error = float(score.regret.std(ddof=1) / np.sqrt(n)) if n > 1 else None
            near = [None if np.isnan(v) else round(v, 3) for v in self.ratio(score)]
            if score.policy == self.baseline:
                near = [1.0 if near[0] is not None else None, None, None]
            mean = float(score.regret.mean())
            rows.append((score.problem, score.horizon, score.policy, mean, error, *near))
        return Table.of(columns, rows)

    def draw(self, path: str | Path) -> None:
        """The ratios as a figure."""
        others = list(dict.fromkeys(s.policy for s in self.scores if s.policy != self.baseline))
        horizons = {score.horizon for score in self.scores}
        groups = []
        for name, horizon in dict.fromkeys((s.problem, s.horizon) for s in self.scores):
            label = name if len(horizons) == 1 else f"{name}, {horizon:,}"
            ratios = [self.ratio(self.of(name, horizon, policy)) for policy in others]
            groups.append((label, ratios))
        ratio_dots(groups, others, self.baseline, path)

    def report(self) -> dict[str, Any]:
        """The same as one JSON object."""
        found = []
        for score in self.scores:
            value, low, high = (None if np.isnan(v) else v for v in self.ratio(score))
            found.append(
                {
                    "problem": score.problem,
                    "horizon": score.horizon,
                    "policy": score.policy,
                    "settings": score.settings,
                    "regret": score.regret.tolist(),
                    "regret_mean": float(score.regret.mean()),
                    "ratio": value,
                    "ratio_interval": [low, high],
                }
            )
        return {"baseline": self.baseline, "scores": found}


def ratio(mine: Array, base: Array) -> tuple[float, float, float]:
    """The ratio of two mean regrets paired by seed, and its 95 % interval (delta method)."""
    n, mean = len(mine), float(base.mean())
    if mean == 0.0:
        return np.nan, np.nan, np.nan
    value = float(mine.mean()) / mean
    if n < 2:
        return value, np.nan, np.nan
    error = float((mine - value * base).std(ddof=1)) / (abs(mean) * np.sqrt(n))
    reach = float(student.ppf(0.975, n - 1)) * error
    return value, value - reach, value + reach


def parse(text: str) -> tuple[str, tuple[dict[str, Any], ...]]:
    """`"name key=value key=value|value"`: a name, and every combination of settings."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise SettingsError(f"quotes must be closed, but got {text!r}: {error}") from None
    if not words:
        raise SettingsError(f"a name is needed, but got {text!r}")
    keys, choices = [], []
    for word in words[1:]:
        key, equals, values = word.partition("=")
        if not (equals and key and values):
            raise SettingsError(f"`key=value` is needed after a name, but got {word!r}")
        if key in keys:
            raise SettingsError(f"each setting must be given once, but got {key!r} again")
        keys.append(key)
        choices.append([_value(value) for value in values.split("|")])
    combined = itertools.product(*choices)
    return words[0], tuple(dict(zip(keys, chosen, strict=True)) for chosen in combined)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def compare(
    entrants: Sequence[Entrant],
    problems: dict[str, Problem],
    horizons: Sequence[int],
    *,
    replications: int,
    seed: int = 0,
    baseline: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Run every policy on every problem with the same seeds.

    A policy that never asks for the horizon (`anytime`) runs once, up to the longest, and is read
    on the way; the others run once for each horizon. The baseline is the last by default.
    """
    labels = [entrant.label for entrant in entrants]
    if len(set(labels)) < len(labels):
        raise SettingsError(f"each policy must be given once, but got {labels}")
    baseline = labels[-1] if baseline is None else baseline
    if baseline not in labels:
        raise SettingsError(f"the baseline must be one of {labels}, but got {baseline!r}")
    horizons = sorted(set(horizons))
    scores = []
    for name, world in problems.items():
        for entrant in entrants:
            candidates = entrant.made_for(world)
            tried = [
                _curve(policy, world, horizons, replications, seed, progress)
                for policy in candidates
            ]
            for k, horizon in enumerate(horizons):
                best = min(range(len(tried)), key=lambda i: tried[i][:, k].mean())
                chosen, regret = entrant.settings[best], tried[best][:, k]
                scores.append(Score(name, horizon, entrant.label, regret, chosen))
    order = {label: i for i, label in enumerate(labels)}
    names = {name: i for i, name in enumerate(problems)}
    scores.sort(key=lambda s: (names[s.problem], s.horizon, order[s.policy]))
    return Comparison(scores, baseline)


def _curve(
    policy: Any,
    world: Problem,
    horizons: Sequence[int],
    replications: int,
    seed: int,
    progress: Progress | None,
) -> Array:
    """Regret per seed and horizon."""

    def run(horizon: int, marks: Sequence[int]) -> Array:
        result = simulate(
            policy,
            world,
            horizon=horizon,
            replications=replications,
            rng=seed,
            checkpoints=marks,
            progress=progress,
        )
        return result.regret

    if isinstance(policy, Oracle | Fixed) or getattr(policy, "anytime", False):
        return run(horizons[-1], horizons)
    return np.hstack([run(horizon, [horizon])[:, -1:] for horizon in horizons])


def decisions(
    entrants: Sequence[Entrant], problems: int, horizons: Sequence[int], replications: int
) -> int:
    """At most how many decisions `compare` will make, for a progress bar."""
    runs = sum(len(entrant.settings) for entrant in entrants)
    return runs * problems * sum(horizons) * replications
