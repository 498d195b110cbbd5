"""Decision: what `ask` hands out and `tell` needs."""

import json
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from continuarm.core.compiling import Array
from continuarm.errors import InputError
from continuarm.live.events import Asked

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
    role : why it was made: `"explored"`; `"best"`, where limits left nothing to learn or the bin
        is frozen; or `"incumbent"`, as the `start` would have it.
    projected : whether what the incumbent would do is not allowed, and `value` is the nearest
        decision that is.
    event : the event that handed it out, if somebody listened; not in its JSON.
    """

    __slots__ = ("context", "event", "id", "names", "policy", "projected", "role", "value")

    def __init__(
        self,
        id: int,
        context: Array,
        value: Array,
        names: tuple[str, ...],
        policy: object = None,
        role: str = "explored",
        event: Asked | None = None,
        projected: bool = False,
    ) -> None:
        self.id = id
        self.context = context
        self.value = value
        self.names = names
        self.policy = policy
        self.role = role
        self.event = event
        self.projected = projected

    def as_dict(self) -> dict[str, float]:
        """The value by name."""
        return dict(zip(self.names, self.value.tolist(), strict=True))

    def to_json(self) -> str:
        """As text, so that the payoff can be told in another process."""
        return json.dumps(
            {
                "id": self.id,
                "context": self.context.tolist(),
                "value": self.value.tolist(),
                "names": list(self.names),
                "policy": self.policy,
                "role": self.role,
                "projected": self.projected,
            }
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> "Decision":
        """The decision that `to_json` wrote.

        >>> decision = Decision(7, np.array([0.1]), np.array([2.5]), ("price",), "a policy")
        >>> Decision.from_json(decision.to_json())
        Decision(id=7, value=[2.5])
        """
        try:
            found = json.loads(text)
            id_, policy, names = found["id"], found["policy"], found["names"]
            role, projected = found["role"], found["projected"]
            context, value = (np.array(found[key], np.float64) for key in ("context", "value"))
            whole = isinstance(id_, int) and not isinstance(id_, bool)
            named = isinstance(names, list) and all(isinstance(name, str) for name in names)
            if (policy is not None and not isinstance(policy, str)) or not isinstance(role, str):
                raise ValueError
            if not isinstance(projected, bool):
                raise ValueError
            if not whole or not named or context.ndim != 1 or value.shape != (len(names),):
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
            raise InputError(f"a decision in JSON is needed, but got {text!r}") from None
        return cls(id_, context, value, tuple(names), policy, role, None, projected)

    def __repr__(self) -> str:
        return f"Decision(id={self.id}, value={self.value.tolist()})"


class Decisions(NamedTuple):
    """Many decisions that were handed out together."""

    ids: NDArray[np.int64]
    contexts: Array
    values: Array
    policy: str | None = None  # the token of the policy that handed them out
    roles: tuple[str, ...] = ()  # of each, as `Decision.role`


class Bin(NamedTuple):
    """One bin: contexts `low <= x < high`, closed above at the edge of the context box.

    `id` is its number, which no other bin ever has; `asked` and `told` count its decisions and
    payoffs, `progress` its completed stencils (or observations, for a learner without stencils);
    `best` is the best decision known in it. While it is `frozen` that is what it answers, and it
    learns nothing.
    """

    low: Array
    high: Array
    level: int
    asked: int
    told: int
    progress: int
    best: Array
    id: int
    frozen: bool = False
