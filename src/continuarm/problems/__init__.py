"""Simulated worlds: `problem(name, **settings)` gives a named one, `Problem` your own."""

import inspect
from collections.abc import Callable
from typing import Any

from continuarm.errors import SettingsError
from continuarm.problems import hard, linear_demand, logit, quadratic, two_communities
from continuarm.problems.definition import Problem

__all__ = ["PROBLEMS", "Problem", "problem"]

PROBLEMS: dict[str, Callable[..., Problem]] = {
    "two-communities": two_communities.two_communities,
    "hard": hard.hard,
    "quadratic": quadratic.quadratic,
    "linear-demand": linear_demand.linear_demand,
    "logit-demand": logit.logit_demand,
    "orange-juice": logit.orange_juice,
}


def problem(name: str, /, **settings: Any) -> Problem:
    """The problem of this name.

    >>> problem("quadratic", dx=2, dy=5, condition=100.0)
    <Problem quadratic: dx=2, dy=5>
    """
    if name not in PROBLEMS:
        raise SettingsError(f"the problem must be one of {list(PROBLEMS)}, but got {name!r}")
    known = list(inspect.signature(PROBLEMS[name]).parameters)
    unknown = [key for key in settings if key not in known]
    if unknown:
        raise SettingsError(f"{name} takes the settings {known}, but got {unknown}")
    return PROBLEMS[name](**settings)
