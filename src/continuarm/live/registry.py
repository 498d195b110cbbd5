"""The kinds of partitions and learners, by name, so that a saved policy finds its own again."""

import dataclasses
from typing import Any, TypeVar

import numpy as np

from continuarm.core.learners.basis_surface import BasisSurface
from continuarm.core.learners.gradient_ascent import GradientAscent
from continuarm.core.learners.grid_ucb import GridUCB
from continuarm.core.learners.kiefer_wolfowitz import KieferWolfowitz
from continuarm.core.learners.logit_demand import LogitDemand
from continuarm.core.learners.response_surface import ResponseSurface
from continuarm.core.learners.smooth_gradient import SmoothGradient
from continuarm.core.learners.smooth_surface import SmoothSurface
from continuarm.core.partitions.evidence_tree import EvidenceTree
from continuarm.core.partitions.grid import Grid
from continuarm.core.partitions.tree import Tree
from continuarm.errors import SavedFileError, SettingsError

__all__ = ["brief", "from_plain", "register", "to_plain"]

Kind = TypeVar("Kind", bound=type)

_kinds: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Grid,
        Tree,
        EvidenceTree,
        KieferWolfowitz,
        GradientAscent,
        GridUCB,
        BasisSurface,
        LogitDemand,
        ResponseSurface,
        SmoothGradient,
        SmoothSurface,
    )
}

# kinds of versions before, and what to do instead
_gone = {"GradientSurface": "make a new `RobbinsMonro`, and tell it the gradients again"}


def register(kind: Kind) -> Kind:
    """Let saved policies find a partition or a learner of yours by the name of its class.

    A frozen dataclass (or a NamedTuple) whose fields can be written as JSON, with `configured`.
    """
    has_fields = dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")
    if not callable(getattr(kind, "configured", None)) or not has_fields:
        raise SettingsError(
            f"a dataclass or a NamedTuple with `configured` is needed, but got {kind!r}"
        )
    if _kinds.get(kind.__name__, kind) is not kind:
        known = _kinds[kind.__name__]
        if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
            raise SettingsError(f"the name {kind.__name__!r} must be free, but {known!r} has it")
    _kinds[kind.__name__] = kind
    return kind


def _fields(kind: type) -> tuple[str, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(getattr(kind, "_fields", ()))


def brief(part: Any) -> str:
    """A partition or a learner as its user would type it: with the options that were given."""
    if not dataclasses.is_dataclass(part):
        return repr(part)
    given = [
        f"{field.name}={value!r}"
        for field in dataclasses.fields(part)
        if (value := getattr(part, field.name)) is not field.default
        and (field.default is dataclasses.MISSING or value != field.default)
    ]
    return f"{type(part).__name__}({', '.join(given)})"


def to_plain(part: Any) -> dict[str, Any]:
    """A partition or a learner as its name and plain values."""
    options = {name: _plain(getattr(part, name)) for name in _fields(type(part))}
    return {"kind": type(part).__name__, "options": options}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def is_registered(part: Any) -> bool:
    """Whether `from_plain` finds the kind of this part."""
    return _kinds.get(type(part).__name__) is type(part)


def from_plain(plain: dict[str, Any]) -> Any:
    """The part that `to_plain` wrote."""
    kind = _kinds.get(plain["kind"])
    if kind is None and plain["kind"] in _gone:
        raise SavedFileError(
            f"the kinds of a saved policy must be of this version, but got {plain['kind']!r}: "
            f"{_gone[plain['kind']]}"
        )
    if kind is None:
        raise SavedFileError(
            f"the kinds of a saved policy must be registered, but got {plain['kind']!r}: import "
            "the module that registers it"
        )
    if not set(plain["options"]) <= set(_fields(kind)):  # those that are absent have defaults
        raise SavedFileError(
            f"{plain['kind']} has the options {list(_fields(kind))}, but the file has "
            f"{list(plain['options'])}"
        )
    return kind(**plain["options"])
