"""Policies by name: one registry, in which you can register your own.

A maker takes the two boxes, then by keyword its options, and among these whatever it wants to
know of a simulation: `horizon`, `curvature`, `curvature_max`, `problem`, `rng`. With
`**options` it takes what every policy takes, the seed among it. It returns what has `ask` and
`tell` (`live/abilities.py` says what else is used).
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, get_args, get_type_hints

from continuarm.box import Box
from continuarm.errors import PolicyError, SettingsError
from continuarm.live.named.options import PolicyOptions
from continuarm.own_code import OwnCode

__all__ = ["Maker", "maker_of", "makes", "names", "register_policy"]

KNOWN = ("horizon", "curvature", "curvature_max", "problem", "rng")  # what a simulation can say


class Maker(NamedTuple):
    """What makes a policy.

    unless : `{"curvature": "step"}`: with a step of its own it is not told the curvature.
    """

    name: str
    make: Callable[..., Any]
    unless: Mapping[str, str]

    def options(self) -> list[str]:
        """The keywords that it takes."""
        parameters = list(inspect.signature(self.make).parameters.values())
        found = []
        for parameter in parameters[2:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                function = getattr(self.make, "func", self.make)  # of a partial
                hints = get_type_hints(function, include_extras=True)
                kinds = get_args(hints.get(parameter.name))  # Unpack[PolicyOptions]
                for kind in kinds or (PolicyOptions,):
                    found += list(get_type_hints(kind))
            elif parameter.kind is not parameter.VAR_POSITIONAL:
                found.append(parameter.name)
        return found

    def plans(self, settings: Mapping[str, Any]) -> bool:
        """Whether it wants to know the horizon, and so is another policy for another one."""
        return "horizon" in self.options() and settings.get("horizon") is None

    def __call__(
        self,
        context: Box,
        decision: Box,
        known: Mapping[str, Any],
        settings: Mapping[str, Any],
    ) -> Any:
        """The policy for these boxes, told what it wants of what is known."""
        options = self.options()
        unknown = [key for key in settings if key not in options]
        if unknown:
            raise SettingsError(f"{self.name} takes the settings {options}, but got {unknown}")
        told = {
            key: known[key]
            for key in KNOWN
            if key in options
            and settings.get(key) is None
            and known.get(key) is not None
            and settings.get(self.unless.get(key, "")) is None
        }
        with OwnCode(PolicyError, f"{self.name} must make a policy for two boxes"):
            return self.make(context, decision, **{**settings, **told})


_makers: dict[str, Maker] = {}


def register_policy(
    name: str, make: Callable[..., Any], *, unless: Mapping[str, str] | None = None
) -> None:
    """Let `simulate`, `compare`, experiments and the command line find a policy by name.

    What is registered again from where it was, as when a notebook's cell runs twice, replaces it.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[\w-]+", name):
        raise SettingsError(f"a name of letters, digits and dashes is needed, but got {name!r}")
    if not callable(make):
        raise SettingsError(f"what makes {name} must be callable, but got {make!r}")
    if name in _makers and _home(_makers[name].make) != _home(make):
        raise SettingsError(f"a name that is free is needed, but {name!r} is taken")
    _makers[name] = Maker(name, make, unless or {})


def _home(make: Any) -> Any:
    """Where a maker is written."""
    function = getattr(make, "func", make)
    where = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    return make if None in where else where


def names() -> list[str]:
    """The names of all policies."""
    return list(_makers)


def maker_of(policy: Any) -> Maker:
    """What makes the policy of this name, or a callable as a maker."""
    if isinstance(policy, Maker):
        return policy
    if isinstance(policy, str):
        if policy not in _makers:
            raise SettingsError(f"the policy must be one of {names()}, but got {policy!r}")
        return _makers[policy]
    if callable(policy):
        known = next((maker for maker in _makers.values() if maker.make is policy), None)
        function = getattr(policy, "func", policy)  # of a partial
        name = str(getattr(function, "__name__", type(function).__name__))
        return known or Maker(name, policy, {})
    raise SettingsError(
        "`policy` must be a policy, its name, or a callable that makes one for two boxes, "
        f"but got {policy!r}"
    )


def makes(policy: Any, context: Box, decision: Box, **settings: Any) -> Any:
    """The policy of this name with these settings, for these boxes."""
    return maker_of(policy)(context, decision, {}, settings)
