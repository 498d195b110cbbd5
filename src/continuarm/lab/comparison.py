"""compare: policies × problems × horizons, paired by seed, as ratios to a baseline.

A view on an `Experiment`: it resumes, and runs on a cluster, like one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from continuarm.core.compiling import Array
from continuarm.errors import SettingsError
from continuarm.lab import specs
from continuarm.lab.experiment import Experiment
from continuarm.lab.figures.plots import FEW, ratio_dots
from continuarm.lab.measures import Interval, ratio
from continuarm.live.abilities import LivePolicy, name_of
from continuarm.live.named.by_name import maker_of
from continuarm.problems import Problem, problem_names
from continuarm.problems.registry import tags
from continuarm.table import Table

__all__ = ["Choices", "Comparison", "Score", "compare"]

Progress = Callable[[int], None]


class Choices(NamedTuple):
    """A policy with several settings, of which the best in hindsight counts.

    policy : a name, or what makes a policy for two boxes.
    """

    policy: Any
    settings: tuple[Mapping[str, Any], ...]

    def specs(self) -> list[Any]:
        """The specifications to try."""
        if isinstance(self.policy, str):
            return [(self.policy, dict(settings)) for settings in self.settings]
        if isinstance(self.policy, LivePolicy) and not any(self.settings):
            return [self.policy]
        maker = maker_of(self.policy)
        unknown = {key for settings in self.settings for key in settings} - set(maker.options())
        if unknown:
            raise SettingsError(
                f"{maker.name} takes the settings {maker.options()}, but got {sorted(unknown)}"
            )
        return [partial(self.policy, **settings) for settings in self.settings]


@dataclass(frozen=True)
class Score:
    """One policy on one problem at one horizon."""

    problem: str
    horizon: int
    policy: str
    regret: Array  # one number per seed
    settings: dict[str, Any]  # of the best in hindsight


@dataclass(frozen=True, repr=False)
class Comparison:
    """All scores, and the policy to which the others are compared."""

    scores: list[Score]
    baseline: str
    feedback: Mapping[str, str] = field(default_factory=dict)  # of a problem: delay, loss

    def of(self, problem: str, horizon: int, policy: str) -> Score:
        """One of the scores."""
        wanted = problem, horizon, policy
        return next(s for s in self.scores if (s.problem, s.horizon, s.policy) == wanted)

    def ratio(self, score: Score) -> Interval:
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

    def __repr__(self) -> str:
        policies = dict.fromkeys(score.policy for score in self.scores)
        problems = dict.fromkeys(score.problem for score in self.scores)
        return f"<Comparison to {self.baseline} of {list(policies)} on {list(problems)}>"

    def _repr_html_(self) -> str:
        return self.table().html()

    def draw(self, path: str | Path) -> None:
        """The ratios as a figure."""
        others = list(dict.fromkeys(s.policy for s in self.scores if s.policy != self.baseline))
        horizons = {score.horizon for score in self.scores}
        feedback = {self.feedback.get(score.problem, "") for score in self.scores}
        groups = []
        for name, horizon in dict.fromkeys((s.problem, s.horizon) for s in self.scores):
            late = "" if len(feedback) == 1 else self.feedback.get(name)
            number = "" if len(horizons) == 1 else f"{horizon:,}"
            label = ", ".join(filter(None, (name, late, number)))
            ratios = [self._drawn(self.of(name, horizon, policy)) for policy in others]
            groups.append((label, ratios))
        shared = feedback.pop() if len(feedback) == 1 else ""
        ratio_dots(groups, others, self.baseline, path, shared)

    def _drawn(self, score: Score) -> Interval:
        """The ratio; of few seeds without its interval, which would say nothing."""
        found = self.ratio(score)
        few = len(score.regret) <= FEW
        return Interval(found.value, np.nan, np.nan) if few else found

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


def compare(
    policies: Sequence[Any] | Mapping[str, Any],
    problems: Sequence[Any] | Mapping[str, Any],
    *,
    horizons: Sequence[int] = (100_000,),
    replications: int = 8,
    seed: int = 0,
    baseline: str | None = None,
    folder: str | Path | None = None,
    workers: int | None = None,
    cluster: str | None = "threads",
    progress: Progress | None = None,
) -> Comparison:
    """Run every policy on every problem with the same seeds.

    Parameters
    ----------
    policies : what `Experiment` takes, in a list or by label; a name may be followed by settings,
        `"static-kwsa width=0.1|0.3"`. Of several values of a setting the best in hindsight counts.
    problems : the same; a tag such as `"suite"` stands for all problems that have it.
    horizons, replications, seed : as for `Experiment`.
    baseline : the label of the policy to which the others are compared; the last by default.
    folder, workers, cluster : as for `Experiment.run`; threads of this process by default.
    progress : called with the decisions of each row that is there.

    >>> found = compare(["fixed", "oracle"], ["two-communities"], horizons=[100], replications=2)
    >>> [score.policy for score in found.scores]
    ['fixed', 'oracle']
    """
    entrants = _by_label(policies, _unfolded)
    worlds = _by_label(problems, _worlds)
    if not isinstance(horizons, Sequence):
        raise SettingsError(f"`horizons` must be a sequence of numbers, but got {horizons!r}")
    baseline = list(entrants)[-1] if baseline is None else baseline
    if baseline not in entrants:
        raise SettingsError(f"the baseline must be one of {list(entrants)}, but got {baseline!r}")
    tried = {
        (label, k): spec
        for label, given in entrants.items()
        for k, spec in enumerate(given.specs() if isinstance(given, Choices) else [given])
    }
    experiment = Experiment(
        policies={f"{label} #{k}": spec for (label, k), spec in tried.items()},
        problems=worlds,
        horizons=sorted(set(horizons)),
        replications=replications,
        seed=seed,
    )
    check(experiment)
    regrets: dict[tuple[str, str, int], dict[int, float]] = {}
    for row in experiment.stream(folder, workers=workers, cluster=cluster):
        key = row["policy"], row["problem"], row["horizon"]
        regrets.setdefault(key, {})[row["seed"]] = row["regret"]
        if progress is not None:
            progress(row["horizon"])
    scores = [
        _best_in_hindsight(label, given, name, horizon, regrets)
        for name in worlds
        for horizon in experiment.horizons
        for label, given in entrants.items()
    ]
    feedback = {
        task.problem: specs.problem_of(task.problem_spec).feedback.in_words
        for task in {task.problem: task for task in experiment.tasks()}.values()
    }
    return Comparison(scores, baseline, feedback)


def _best_in_hindsight(
    label: str,
    given: Any,
    problem: str,
    horizon: int,
    regrets: Mapping[tuple[str, str, int], Mapping[int, float]],
) -> Score:
    settings = given.settings if isinstance(given, Choices) else ({},)
    found = []
    for k in range(len(settings)):
        by_seed = regrets[f"{label} #{k}", problem, horizon]
        found.append(np.array([by_seed[seed] for seed in sorted(by_seed)]))
    best = min(range(len(found)), key=lambda k: found[k].mean())
    return Score(problem, horizon, label, found[best], dict(settings[best]))


def check(experiment: Experiment) -> None:
    """Refuse what is wrong before anything runs: make every policy for every problem."""
    for task in {(t.policy, t.problem): t for t in experiment.tasks()}.values():
        spec, world = task.policy_spec, specs.problem_of(task.problem_spec)
        if isinstance(spec.target, str):
            known = world.knowledge | {
                "horizon": task.horizons[-1],
                "rng": np.random.default_rng(0),
            }
            maker_of(spec.target)(world.context, world.decision, known, spec.options)


def _by_label(given: Any, unfold: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    if isinstance(given, str) or not isinstance(given, Mapping | Sequence) or not given:
        raise SettingsError(f"a sequence or {{label: ...}} is needed, but got {given!r}")
    if isinstance(given, Mapping):
        return dict(given)
    found: dict[str, Any] = {}
    for spec in given:
        for label, made in unfold(spec).items():
            if label in found:
                raise SettingsError(
                    f"each policy must be given once, and each problem, but got {label!r} again"
                )
            found[label] = made
    return found


def _unfolded(spec: Any) -> dict[str, Any]:
    if isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[1], Mapping):
        name, settings = spec
        return {" ".join([name, *(f"{key}={value}" for key, value in settings.items())]): spec}
    if not isinstance(spec, str):
        ready = isinstance(spec, LivePolicy) and not isinstance(spec, type)
        return {name_of(spec) if ready else maker_of(spec).name: spec}
    return {spec: Choices(*specs.parse(spec))}


def _worlds(spec: Any) -> dict[str, Any]:
    if not isinstance(spec, str):
        if not isinstance(spec, Problem):
            raise SettingsError(f"a problem or its name is needed, but got {spec!r}")
        return {spec.name: spec}
    if spec in tags():
        return {name: name for name in problem_names(spec)}
    name, settings = specs.parse(spec)
    if len(settings) > 1:
        raise SettingsError(f"a problem's settings have one value each, but got {spec!r}")
    return {spec: (name, settings[0])}
