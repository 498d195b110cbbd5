"""Policies that do not learn, as references: the best there is, and one decision for all."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from continuarm.box import Box
from continuarm.decision import Decision
from continuarm.errors import InputError
from continuarm.jit import Array

__all__ = ["Fixed", "Oracle", "World"]


class World(Protocol):
    """What the references need to know of a problem."""

    @property
    def context(self) -> Box: ...

    @property
    def decision(self) -> Box: ...

    def best_many(self, contexts: Array) -> tuple[Array, Array]: ...


class Oracle:
    """Knows the best decision of a problem; its regret is 0."""

    def __init__(self, problem: World) -> None:
        self.problem = problem
        self._asked = 0

    def ask(self, context: ArrayLike | Mapping[str, float] = ()) -> Decision:
        """The best decision for this context."""
        point = self.problem.context.point(context)
        self._asked += 1
        value = self.recommend_many(point[None, :])[0]
        return Decision(self._asked - 1, point, value, self.problem.decision.names)

    def tell(self, decision: Decision, payoff: float) -> None:
        """There is nothing to learn."""

    def recommend(self, context: ArrayLike | Mapping[str, float] = ()) -> Array:
        """The best decision for this context."""
        return np.asarray(self.recommend_many(self.problem.context.point(context)[None, :])[0])

    def recommend_many(self, contexts: ArrayLike) -> Array:
        """The best decisions for contexts of shape `(n, dx)`."""
        return self.problem.best_many(self.problem.context.points(contexts))[0]


class Fixed:
    """One decision for every context; `None` stands for the centre of a problem's box.

    >>> Fixed([2.5, 1.0]).ask([37]).value
    array([2.5, 1. ])
    """

    def __init__(self, decision: ArrayLike | Mapping[str, float] | None = None) -> None:
        self.decision = decision
        self._value, self._names = _fixed(decision)
        self._asked = 0

    def bound_to(self, problem: World) -> "Fixed":
        """The same for a problem; refused when the decision lies outside its box."""
        box = problem.decision
        other = Fixed(box.centre if self.decision is None else box.point(self.decision))
        other._names = box.names
        return other

    def ask(self, context: ArrayLike | Mapping[str, float] = ()) -> Decision:
        """The fixed decision."""
        given = list(context.values()) if isinstance(context, Mapping) else context
        self._asked += 1
        names = self._names
        return Decision(self._asked - 1, np.array(given, np.float64), self.recommend(), names)

    def tell(self, decision: Decision, payoff: float) -> None:
        """There is nothing to learn."""

    def recommend(self, context: Any = ()) -> Array:
        """The fixed decision."""
        if self._value is None:
            raise InputError("a decision is needed outside a simulation, but got None")
        return self._value.copy()

    def recommend_many(self, contexts: ArrayLike) -> Array:
        """The fixed decision for contexts of shape `(n, dx)`."""
        return np.tile(self.recommend(), (len(np.asarray(contexts)), 1))


def _fixed(decision: Any) -> tuple[Array | None, tuple[str, ...]]:
    if decision is None:
        return None, ()
    names = tuple(decision) if isinstance(decision, Mapping) else None
    try:
        value = np.array(list(decision.values()) if names else decision, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"a decision must be numbers, but got {decision!r}") from None
    if value.ndim != 1 or value.size == 0 or not np.isfinite(value).all():
        raise InputError(f"a decision must be a vector of finite numbers, but got {decision!r}")
    return value, names or tuple(str(i) for i in range(value.size))
