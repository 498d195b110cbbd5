"""Worlds by name: one registry, in which you can register your own."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

from continuarm.errors import SettingsError
from continuarm.problems.definition import Problem
from continuarm.problems.entry import Entries, Entry
from continuarm.problems.source_hash import source_hash
from continuarm.problems.worlds import THEMES

__all__ = [
    "check_name",
    "entry_of",
    "fingerprint",
    "problem",
    "problem_names",
    "register_problem",
    "tags",
]

_entries: Entries = {}


def register_problem(name: str, make: Callable[..., Problem], *, tags: Sequence[str] = ()) -> None:
    """Let `simulate`, `compare`, experiments and the command line find a world by name.

    Parameters
    ----------
    name : one that is free.
    make : takes settings by keyword and returns a Problem.
    tags : what `problem_names(tag)` finds it by.
    """
    taken = isinstance(name, str) and name in _entries and _entries[name].make != make
    if not isinstance(name, str) or not name or taken:
        raise SettingsError(f"a name that is free is needed, but got {name!r}")
    if not callable(make):
        raise SettingsError(f"`make` must be a function, but got {make!r}")
    if isinstance(tags, str) or not all(isinstance(tag, str) and tag for tag in tags):
        raise SettingsError(f"`tags` must be a sequence of texts, but got {tags!r}")
    _entries[name] = Entry(make, tuple(tags))


def problem(name: str, /, **settings: Any) -> Problem:
    """The problem of this name.

    >>> problem("quadratic", dx=2, dy=5, condition=100.0)
    <Problem quadratic: dx=2, dy=5>
    >>> problem("rare-purchase")
    <Problem rare-purchase: dx=1, dy=1>
    """
    return entry_of(name).made(name, settings)


def problem_names(tag: str | None = None) -> list[str]:
    """The names of all worlds, or of those with a tag.

    >>> problem_names("named")
    ['two-communities', 'hard', 'quadratic', 'linear-demand', 'logit-demand', 'orange-juice']
    """
    if tag is None:
        return list(_entries)
    found = [name for name, entry in _entries.items() if tag in entry.tags]
    if not found:
        raise SettingsError(f"the tag must be one of {tags()}, but got {tag!r}")
    return found


def tags() -> list[str]:
    """All tags."""
    return sorted({tag for entry in _entries.values() for tag in entry.tags})


def check_name(name: object) -> None:
    """Refuse a name that no world has."""
    entry_of(name)


def fingerprint(problem: str | Callable[..., Problem], /) -> str:
    """A hash that changes when the definition of a world changes, and with no other world.

    Parameters
    ----------
    problem : a name, or a function that makes a problem.

    >>> len(fingerprint("kink"))
    64
    """
    return source_hash(entry_of(problem).make if isinstance(problem, str) else problem)


def entry_of(name: Any) -> Entry:
    """How the world of this name is made."""
    if not isinstance(name, str) or name not in _entries:
        known = problem_names()
        near = get_close_matches(name, known, 3) if isinstance(name, str) else []
        which = f"{len(known)} names such as {near}" if near else f"{known}"
        raise SettingsError(f"the problem must be one of {which}, but got {name!r}")
    return _entries[name]


def _register_worlds() -> None:
    for theme in THEMES:
        for name, entry in theme.items():
            register_problem(name, entry.make, tags=entry.tags)


_register_worlds()
