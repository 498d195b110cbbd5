"""The incumbent: what would be done for a context if there were no policy.

A decision, an affine rule of the context, or a function of yours. The first two are numbers, which
compiled code follows and files keep. A function is called in Python, before a policy is entered.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.core.model import NO_RULE
from continuarm.errors import InputError, PolicyError, SettingsError
from continuarm.live.affine_rule import AffineRule
from continuarm.own_code import OwnCode

__all__ = ["Affine", "Incumbent", "OwnRule", "Start", "affine", "always", "incumbent_of"]

Context = ArrayLike | Mapping[str, float]
Start = Context | AffineRule | Callable[[Any], Context]


class Incumbent(Protocol):
    """What would be done for a context, in units.

    constant : the decision, if it is the same for every context.
    numbers : what can be saved and exported.
    own : itself, where Python has to be asked for each context.
    """

    @property
    def constant(self) -> Array | None: ...

    @property
    def numbers(self) -> "Affine": ...

    @property
    def own(self) -> "OwnRule | None": ...

    def at(self, context: Array, /) -> Array:
        """For one context."""

    def many(self, contexts: Array, /) -> Array:
        """For contexts of shape `(n, dx)`."""

    def shown(self) -> Any:
        """As a user would type it."""


class Affine(NamedTuple):
    """Numbers in the order of the boxes: `first + slopes · context`, clipped."""

    context: Box
    decision: Box
    first: Array  # for the context 0
    slopes: Array  # (dy, dx)

    @property
    def constant(self) -> Array | None:
        return None if self.slopes.any() else self.first

    @property
    def own(self) -> None:
        return None

    @property
    def numbers(self) -> "Affine":
        return self

    @property
    def rule(self) -> Array:
        """What compiled code follows; nothing, where one decision holds for every context."""
        if not self.slopes.any():
            return NO_RULE
        return np.concatenate([self.first, self.slopes.ravel()])

    def at(self, context: Array) -> Array:
        return np.asarray(self.many(context[None, :])[0])

    def many(self, contexts: Array) -> Array:
        values = np.repeat(self.first[None, :], len(contexts), axis=0)
        for slope, column in zip(self.slopes.T, contexts.T, strict=True):
            values += np.outer(column, slope)  # in the order of compiled code, to the last digit
        return np.asarray(np.minimum(np.maximum(values, self.decision.low), self.decision.high))

    def shown(self) -> AffineRule:
        return AffineRule.of(self.first, self.slopes, self.context, self.decision)


class OwnRule(NamedTuple):
    """A function of yours, called with a context by name if its box has names, or as an array."""

    context: Box
    decision: Box
    function: Callable[[Any], Context]

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def constant(self) -> None:
        return None

    @property
    def own(self) -> "OwnRule":
        return self

    @property
    def numbers(self) -> Affine:
        raise SettingsError(
            "a start that is saved or exported must be a decision or an AffineRule, "
            f"but got the function {self.name!r}"
        )

    def at(self, context: Array) -> Array:
        point, names = self.context.point(context), self.context.names
        given = dict(zip(names, point.tolist(), strict=True)) if self.context.named else point
        rule = f"the start {self.name!r} must answer a decision for every context"
        with OwnCode(PolicyError, rule):
            answer = self.function(given)
        try:
            value = self.decision.point(answer)
        except InputError as error:
            raise PolicyError(f"{rule}, where {error}") from None
        value.flags.writeable = False
        return value

    def many(self, contexts: Array) -> Array:
        found = [self.at(context) for context in contexts]
        return np.array(found).reshape(len(contexts), self.decision.dim)

    def shown(self) -> Callable[[Any], Context]:
        return self.function


def incumbent_of(context: Box, decision: Box, start: Any) -> Incumbent:
    """What a user calls the start."""
    if isinstance(start, AffineRule):
        return affine(context, decision, *start.numbers(context, decision))
    if callable(start):
        return OwnRule(context, decision, start)
    return always(context, decision, decision.point(start))


def always(context: Box, decision: Box, value: Array) -> Affine:
    """One decision for every context."""
    return affine(context, decision, value, np.zeros((decision.dim, context.dim)))


def affine(context: Box, decision: Box, constant: Array, slopes: Array) -> Affine:
    """A rule; if no context matters to it, its constant is a decision."""
    if not slopes.any():
        constant = np.clip(constant, decision.low, decision.high)
    for array in (constant, slopes):
        array.flags.writeable = False
    return Affine(context, decision, constant, slopes)
