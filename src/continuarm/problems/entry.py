"""Entry: how a world of the registry is made, and the tags it is found by."""

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import Any, NamedTuple

from continuarm.errors import ProblemError, SettingsError
from continuarm.own_code import OwnCode
from continuarm.problems.definition import Problem

__all__ = [
    "DRAWN",
    "NAMED",
    "SHOPS",
    "STARTS",
    "STREET",
    "SUITE",
    "SUITE_AND_NAMED",
    "UNSEEN",
    "WIDE",
    "Entries",
    "Entry",
]

SUITE = ("suite",)  # policies are compared on it
UNSEEN = ("suite", "unseen")  # written, and first run, when the policies were finished
NAMED = ("named",)  # one of the six that the docs describe, with its settings
SUITE_AND_NAMED = ("suite", "named")
STREET = ("street",)  # worlds that do not keep still
DRAWN = ("drawn",)  # by a seed
SHOPS = ("shops",)  # first days; written, and first run, when the safe start was finished
STARTS = ("starts",)  # the centre of the box is far from the best, or the best already
WIDE = ("wide",)  # many context columns, of which few matter


class Entry(NamedTuple):
    """A maker of problems and its tags.

    make : takes settings by keyword and returns a Problem.
    """

    make: Callable[..., Problem]
    tags: tuple[str, ...]

    def settings(self) -> list[str] | None:
        """The settings that the maker takes; None when it takes any.

        What a partial has fixed is no setting.
        """
        parameters = inspect.signature(self.make).parameters.values()
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            return None
        fixed = self.make.keywords if isinstance(self.make, partial) else {}
        return [parameter.name for parameter in parameters if parameter.name not in fixed]

    def made(self, name: str, settings: Mapping[str, Any]) -> Problem:
        """The problem with these settings, under this name."""
        known = self.settings()
        unknown = [] if known is None else [key for key in settings if key not in known]
        if unknown:
            raise SettingsError(f"{name} takes the settings {known}, but got {unknown}")
        with OwnCode(ProblemError, f"the maker of {name} must make a problem"):
            found = self.make(**settings)
        if not isinstance(found, Problem):
            raise SettingsError(f"the maker of {name} must return a Problem, but got {found!r}")
        problem = copy(found)  # a maker may keep what it returned
        problem.name = name
        return problem


Entries = dict[str, Entry]
