"""Policies and problems as people write them: names with settings, or objects.

`"static-kwsa width=0.1|0.2"` on a command line; in Python a name, a pair of name and settings, or
an object (for a policy whatever `simulate` takes; for a problem a Problem, or what makes one).
"""

import hashlib
import itertools
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

from continuarm.errors import ProblemError, SettingsError
from continuarm.live.abilities import LivePolicy
from continuarm.live.named.by_name import maker_of
from continuarm.own_code import OwnCode
from continuarm.problems import Problem, problem
from continuarm.problems.registry import fingerprint

__all__ = ["Spec", "key_value", "labelled", "parse", "plain_value", "policy_of", "problem_of"]

FEEDBACK = ("delay", "lost")  # settings that every problem by name has


class Spec(NamedTuple):
    """A name or an object, and its settings as JSON."""

    target: Any
    settings: str = "{}"
    maker: Any = None  # of a name that other processes do not know: a Maker, or an Entry

    @property
    def options(self) -> dict[str, Any]:
        """The settings."""
        options: dict[str, Any] = json.loads(self.settings)
        return options

    @property
    def identity(self) -> str:
        """What a policy is in a journal, besides its label: its name, and the file it is made in.

        A policy that was made before counts by its label alone.
        """
        if isinstance(self.target, str):
            return f"{self.target} {_own_file(maker_of(self.target).make)}"
        given = ""
        if isinstance(self.target, partial):
            given = f"{self.target.args!r} {sorted(self.target.keywords.items())!r}"
        made = isinstance(self.target, LivePolicy) and not isinstance(self.target, type)
        return f"object {given} {'' if made else _own_file(self.target)}"


def _module_of(make: Any) -> str:
    return str(getattr(getattr(make, "func", make), "__module__", ""))


def _own_file(make: Any) -> str:
    """A hash of the file in which a user's maker stands; our own have a stamp in common."""
    function = getattr(make, "func", make)
    methods = [
        m for m in getattr(function, "__dict__", {}).values() if isinstance(m, FunctionType)
    ]
    written = function if isinstance(function, FunctionType) else next(iter(methods), None)
    if written is None or _module_of(make).partition(".")[0] == "continuarm":
        return ""
    path = Path(written.__code__.co_filename)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def plain_value(text: str) -> Any:
    """A value that was typed: JSON, otherwise a string."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def key_value(text: str) -> tuple[str, str]:
    """The parts of `key=value`."""
    key, equals, value = text.partition("=")
    if not (equals and key and value):
        raise SettingsError(f"`key=value` is needed, but got {text!r}")
    return key, value


def parse(text: str) -> tuple[str, tuple[dict[str, Any], ...]]:
    """`"name key=value key=value|value"`: a name, and every combination of settings."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise SettingsError(f"quotes must be closed, but got {text!r}: {error}") from None
    if not words:
        raise SettingsError(f"a name is needed, but got {text!r}")
    choices: dict[str, list[Any]] = {}
    for word in words[1:]:
        key, values = key_value(word)
        if key in choices:
            raise SettingsError(f"each setting must be given once, but got {key!r} again")
        choices[key] = [plain_value(value) for value in values.split("|")]
    combined = itertools.product(*choices.values())
    return words[0], tuple(dict(zip(choices, chosen, strict=True)) for chosen in combined)


def labelled(option: str, given: Any, check: Callable[[Any], object]) -> dict[str, Any]:
    """Specifications by label; names without labels are their own."""
    if isinstance(given, str) or not isinstance(given, Mapping | Sequence) or not given:
        raise SettingsError(f"`{option}` must be names or {{label: ...}}, but got {given!r}")
    if not isinstance(given, Mapping) and not all(isinstance(name, str) for name in given):
        raise SettingsError(f"`{option}` without labels must be names, but got {given!r}")
    found = dict(given) if isinstance(given, Mapping) else {name: name for name in given}
    for spec in found.values():
        if isinstance(spec, tuple):
            pair = len(spec) == 2 and isinstance(spec[0], str)
            if not (pair and (isinstance(spec[1], Mapping) or callable(spec[1]))):
                raise SettingsError(f"`{option}` takes (name, settings), but got {spec!r}")
        name = spec[0] if isinstance(spec, tuple) else spec
        if isinstance(name, str):
            check(name)
    return found


def concrete(spec: Any, horizon: int) -> Spec:
    """The specification for this horizon."""
    name, settings = spec if isinstance(spec, tuple) else (spec, {})
    if callable(settings):
        settings = settings(horizon)
    try:
        return Spec(name, json.dumps(settings, sort_keys=True, default=_plain))
    except (TypeError, RecursionError):
        raise SettingsError(f"settings must be plain values, but got {_short(settings)}") from None


def _short(value: Any) -> str:
    """A value as far as it can be written."""
    try:
        return repr(value)
    except RecursionError:
        return f"a {type(value).__name__} that is too deep to write"


def _plain(value: Any) -> Any:
    """A number or array of NumPy as JSON knows it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError


def plans(spec: Any) -> bool:
    """Whether a policy is another one for another horizon."""
    name, settings = spec if isinstance(spec, tuple) else (spec, {})
    if callable(settings):
        return True
    if isinstance(name, LivePolicy) and not isinstance(name, type):
        return False
    return maker_of(name).plans(settings)


def with_maker(spec: Spec, find: Callable[[str], Any]) -> Spec:
    """What a user has registered, with what makes it: workers know only ours by name."""
    if isinstance(spec.target, str):
        maker = find(spec.target)
        if _module_of(maker.make).partition(".")[0] != "continuarm":
            return spec._replace(maker=maker)
    return spec


def policy_of(spec: Spec) -> Any:
    """The policy as `simulate` takes it."""
    if isinstance(spec.target, str):
        return (spec.maker or spec.target, spec.options)
    return spec.target


def problem_of(spec: Spec) -> Problem:
    """The problem; one that was made before is used again."""
    if isinstance(spec.target, Problem):
        return spec.target
    if spec.maker is not None:
        return _with_feedback(partial(spec.maker.made, spec.target), spec.options)
    return _made(spec.target, spec.settings)


def _with_feedback(make: Callable[[dict[str, Any]], Problem], options: dict[str, Any]) -> Problem:
    """The problem of these settings, of which some are about feedback."""
    feedback = {key: options.pop(key) for key in FEEDBACK if key in options}
    world = make(options)
    return world.with_feedback(**feedback) if feedback else world


@lru_cache(maxsize=16)
def _made(target: Any, settings: str) -> Problem:
    if isinstance(target, str):
        return _with_feedback(lambda options: problem(target, **options), json.loads(settings))
    if not callable(target):
        raise SettingsError(f"a problem, its name or its maker is needed, but got {target!r}")
    with OwnCode(ProblemError, f"{_name_of(target)} must make a problem"):
        made = target()
    if not isinstance(made, Problem):
        raise SettingsError(f"a function that makes a Problem is needed, but it made {made!r}")
    return made


def _name_of(target: Any) -> str:
    return str(getattr(target, "__name__", type(target).__name__))


def problem_identity(spec: Spec) -> str:
    """What identifies a problem: how it is written; a Problem counts by its label alone."""
    return "object" if isinstance(spec.target, Problem) else fingerprint(spec.target)
