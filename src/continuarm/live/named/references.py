"""Policies that do not learn, as references: the best there is, and one decision for all."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.live.decision import Decision
from continuarm.live.incumbent import Start, incumbent_of
from continuarm.live.policy import Context
from continuarm.sets import is_guarded

__all__ = ["Fixed", "Oracle", "World"]


class World(Protocol):
    """What the references need to know of a problem."""

    @property
    def context(self) -> Box: ...

    @property
    def decision(self) -> Box: ...

    def best_many(self, contexts: Array) -> tuple[Array, Array]: ...


class _Reference:
    """A rule that is known from the start: `decide_many` is all there is to it."""

    def __init__(self, context: Box, decision: Box) -> None:
        self.context, self.decision = context, decision
        self._asked = 0

    def decide_many(self, contexts: ArrayLike) -> Array:
        """The decisions for contexts of shape `(n, dx)`."""
        raise NotImplementedError

    def ask(self, context: Context = ()) -> Decision:
        """The decision for this context."""
        point = self.context.point(context)
        self._asked += 1
        value = self.decide_many(point[None, :])[0]
        return Decision(self._asked - 1, point, value, self.decision.names)

    def tell(self, decision: Decision, payoff: float) -> None:
        """There is nothing to learn."""

    def recommend(self, context: Context = ()) -> Array:
        """The decision for this context."""
        return np.asarray(self.decide_many(self.context.point(context)[None, :])[0])

    def recommend_many(self, contexts: ArrayLike) -> Array:
        """The decisions for contexts of shape `(n, dx)`."""
        return self.decide_many(contexts)


class Oracle(_Reference):
    """Knows the best decision of a problem; its regret is 0."""

    def __init__(self, problem: World) -> None:
        super().__init__(problem.context, problem.decision)
        self.problem = problem

    @classmethod
    def made_for(cls, context: Box, box: Box, /, *, problem: World) -> "Oracle":
        """The oracle of a simulation."""
        return cls(problem)

    def __repr__(self) -> str:
        return f"<Oracle of {self.problem!r}>"

    def decide_many(self, contexts: ArrayLike) -> Array:
        """The best decisions for contexts of shape `(n, dx)`."""
        return self.problem.best_many(self.context.points(contexts))[0]


class Fixed(_Reference):
    """One decision for every context, an `AffineRule`, or a function of the context.

    The default is the centre of the box. What is not allowed is moved to the nearest decision that
    is.

    >>> Fixed(Box([18], [90]), Box([1.0, 0.5], [9.0, 4.0]), value=[2.5, 1.0]).ask([37]).value
    array([2.5, 1. ])
    """

    def __init__(self, context: Box, decision: Box, *, value: Start | None = None) -> None:
        super().__init__(context, decision)
        self.rule = incumbent_of(context, decision, decision.centre if value is None else value)

    @classmethod
    def made_for(cls, context: Box, box: Box, /, *, decision: Any = None) -> "Fixed":
        """The fixed decision of a simulation."""
        return cls(context, box, value=decision)

    def __repr__(self) -> str:
        constant = self.rule.constant
        return f"<Fixed: {self.rule.shown() if constant is None else constant.tolist()}>"

    def decide_many(self, contexts: ArrayLike) -> Array:
        """The decisions for contexts of shape `(n, dx)`."""
        values = self.rule.many(self.context.points(contexts))
        if not is_guarded(self.decision):
            return values
        known: dict[bytes, Array] = {}
        for value in values:
            if value.tobytes() not in known:
                known[value.tobytes()] = self.decision.nearest(value)
        return np.array([known[value.tobytes()] for value in values])
