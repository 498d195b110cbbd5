"""What is run: the policies with their settings, the problems, the horizons, the seeds."""

from typing import Any, NamedTuple

import numpy as np

from continuarm.core.compiling import Array
from continuarm.lab.experiment import Experiment
from continuarm.paper import schedules
from continuarm.problems import Problem, problem

__all__ = ["CORRECTED", "PRINTED", "STUDIES", "UNBIASED", "Study", "half_decades"]

SEED = 20_190_705
PRINTED: dict[str, Any] = {
    "static": "static-kwsa",
    "adaptive": "adaptive-kwsa",
    "uniform": "uniform-ucb",
}


def tuned(horizon: int) -> dict[str, Any]:
    """The uniform algorithm with a bonus and a grid tuned to the noise of this problem."""
    return {"bins": round(horizon**0.2), "arms": round(2 * horizon**0.1), "scale": 0.1}


STATIC_SETTINGS = {"bins": "lipschitz"}
ADAPTIVE_SETTINGS = {"split_after": "lipschitz", "inherit": "iterate-and-count"}
CORRECTED: dict[str, Any] = {
    "static, alternate": ("static-kwsa", STATIC_SETTINGS | {"probe": "alternate"}),
    "static, central": ("static-kwsa", STATIC_SETTINGS | {"probe": "central"}),
    "adaptive, alternate": ("adaptive-kwsa", ADAPTIVE_SETTINGS | {"probe": "alternate"}),
    "adaptive, central": ("adaptive-kwsa", ADAPTIVE_SETTINGS | {"probe": "central"}),
    "uniform, tuned": ("uniform-ucb", tuned),
}
# Not drawn: only the bias of the one-sided difference taken away from the printed setting.
UNBIASED: dict[str, Any] = {
    "static, alternate, bins as printed": ("static-kwsa", {"probe": "alternate"}),
    "adaptive, alternate, else as printed": ("adaptive-kwsa", {"probe": "alternate"}),
}
BEST = ("static, alternate", "adaptive, alternate")
GROWING = ("static", "adaptive", *BEST)
DIMENSIONS = (1, 2, 5, 10, 20, 50)


class Study(NamedTuple):
    """One experiment behind one or more figures, full and quick."""

    full: list[Experiment]
    quick: list[Experiment]


def half_decades(first: float, last: float) -> list[int]:
    """Horizons 10^first to 10^last, two per decade."""
    return [round(10**e) for e in np.arange(first, last + 0.25, 0.5)]


def skewed() -> Problem:
    """The paper's example with contexts from Beta(0.5, 5), most of them near 0."""
    plain = problem("two-communities")
    return Problem(
        context=plain.context,
        decision=plain.decision,
        mean_payoff=plain.sources.mean_payoff,
        best_decision=plain.sources.best_decision,
        curvature=plain.curvature,
        curvature_max=plain.curvature_max,
        noise=plain.noise,
        contexts=_beta,
        name="two-communities, Beta(0.5, 5)",
    )


def _beta(rng: np.random.Generator, n: int) -> Array:
    return rng.beta(0.5, 5.0, (n, 1))


def _seeds(horizon: int) -> int:
    return 20 if horizon <= 10**6 else 5


def _experiment(policies: Any, problems: Any, horizons: list[int], seeds: Any) -> Experiment:
    return Experiment(
        policies=policies, problems=problems, horizons=horizons, replications=seeds, seed=SEED
    )


def _regret() -> Study:
    world = ["two-communities"]
    return Study(
        [_experiment(PRINTED | CORRECTED | UNBIASED, world, half_decades(3, 7), _seeds)],
        [_experiment(PRINTED | CORRECTED | UNBIASED, world, half_decades(3, 5), 4)],
    )


def _noise() -> Study:
    worlds = {f"noise {n}": ("two-communities", {"noise": n}) for n in (0.01, 0.5)}
    policies = PRINTED | {name: CORRECTED[name] for name in ("adaptive, alternate",)}
    return Study(
        [_experiment(policies, worlds, half_decades(3, 6), 10)],
        [_experiment(policies, worlds, half_decades(3, 4), 3)],
    )


def uniform_fits(dy: int, horizon: int) -> bool:
    """Whether the uniform algorithm has a choice, and each bin can try each decision once."""
    size = schedules.uniform_size(horizon, 1, dy)
    return size >= 2 and int(size ** (1 + dy)) <= horizon


def _dimension() -> Study:
    def experiments(horizons: list[int], seeds: int) -> list[Experiment]:
        found = []
        for dy in DIMENSIONS:
            world = {f"dy = {dy}": ("quadratic", _quadratic(dy))}
            policies = {name: (PRINTED | CORRECTED)[name] for name in GROWING}
            found.append(_experiment(policies, world, horizons, seeds))
            fitting = [t for t in horizons if uniform_fits(dy, t)]
            if fitting:
                found.append(_experiment({"uniform": "uniform-ucb"}, world, fitting, seeds))
        return found

    return Study(experiments(half_decades(4, 5.5), 8), experiments([1000, 10_000], 2))


def _quadratic(dy: int) -> dict[str, Any]:
    return {"dx": 1, "dy": dy, "condition": 1.0, "curvature": 2.0, "rotation": False}


def _lower_bound() -> Study:
    def experiments(horizons: list[int], seeds: int) -> list[Experiment]:
        policies = {name: CORRECTED[name] for name in BEST} | {"uniform": "uniform-ucb"}
        worlds = {"dx = 1": ("hard", _hard(1)), "dx = 2": ("hard", _hard(2))}
        return [_experiment(policies, worlds, horizons, seeds)]

    return Study(experiments(half_decades(4, 6.5), 10), experiments(half_decades(3, 4), 3))


def _hard(dx: int) -> Any:
    def settings(horizon: int) -> dict[str, Any]:
        return {"dx": dx, "dy": 2, "cells": max(1, round(horizon ** (1 / (dx + 4))))}

    return settings


def _contexts() -> Study:
    policies = {"static": PRINTED["static"], "adaptive": PRINTED["adaptive"]}
    policies |= {name: CORRECTED[name] for name in BEST}
    worlds = {"uniform contexts": "two-communities", "Beta(0.5, 5)": skewed}
    return Study(
        [_experiment(policies, worlds, half_decades(3, 6), 20)],
        [_experiment(policies, worlds, half_decades(3, 4), 3)],
    )


STUDIES = {
    "regret": _regret,
    "noise": _noise,
    "dimension": _dimension,
    "lower-bound": _lower_bound,
    "contexts": _contexts,
}
