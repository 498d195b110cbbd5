"""Decision: what `ask` hands out and `tell` needs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from continuarm.jit import Array

__all__ = ["Bin", "Decision", "Decisions"]


class Decision:
    """One decision that was handed out.

    Attributes
    ----------
    id : a number that no other decision of the policy has.
    context : what it was asked for, in the context box's units.
    value : the vector to apply, in the decision box's units.
    names : the names of its numbers.
    policy : a token of the policy that handed it out.
    """

    __slots__ = ("context", "id", "names", "policy", "value")

    def __init__(
        self, id: int, context: Array, value: Array, names: tuple[str, ...], policy: object = None
    ) -> None:
        self.id = id
        self.context = context
        self.value = value
        self.names = names
        self.policy = policy

    def as_dict(self) -> dict[str, float]:
        """The value by name."""
        return dict(zip(self.names, self.value.tolist(), strict=True))

    def __repr__(self) -> str:
        return f"Decision(id={self.id}, value={self.value.tolist()})"


class Decisions(NamedTuple):
    """Many decisions that were handed out together."""

    ids: NDArray[np.int64]
    contexts: Array
    values: Array


class Bin(NamedTuple):
    """One bin: contexts `low <= x < high`, closed above at the edge of the context box.

    `asked` and `told` count its decisions and payoffs, `completed` its stencils (or observations,
    for a learner without stencils); `iterate` is the best decision known in it.
    """

    low: Array
    high: Array
    level: int
    asked: int
    told: int
    completed: int
    iterate: Array
