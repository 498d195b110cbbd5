"""What a policy can do, each as a small protocol that is asked of it.

A policy of your own needs `ask` and `tell`; whatever else it has is used where it helps.
"""

from typing import Any, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from continuarm.core.compiling import Array

__all__ = [
    "CompiledPolicy",
    "DecidesAtOnce",
    "ForgetsOpen",
    "LivePolicy",
    "Recommends",
    "RecommendsMany",
    "TakesGradients",
    "name_of",
]


@runtime_checkable
class LivePolicy(Protocol):
    """It decides, and it learns."""

    def ask(self, context: Any, /) -> Any:
        """A decision for this context: a `Decision`, or anything that `tell` takes back."""

    def tell(self, decision: Any, payoff: float, /) -> None:
        """Learn the payoff of a decision."""


@runtime_checkable
class TakesGradients(Protocol):
    """`tell` has a keyword `gradient`, and wants it if `uses_gradient` is true."""

    @property
    def uses_gradient(self) -> bool:
        """Whether `tell` needs the gradient."""


@runtime_checkable
class DecidesAtOnce(Protocol):
    """It learns nothing, so it can decide for a whole block of contexts."""

    def decide_many(self, contexts: Array, /) -> Array:
        """The decisions `(n, dy)` for contexts `(n, dx)`."""


@runtime_checkable
class Recommends(Protocol):
    """It says what is best without exploring."""

    def recommend(self, context: Any, /) -> Any:
        """The best decision known for a context."""


@runtime_checkable
class RecommendsMany(Protocol):
    """The same for many contexts."""

    def recommend_many(self, contexts: ArrayLike, /) -> Array:
        """The best decisions known for contexts `(n, dx)`."""


@runtime_checkable
class ForgetsOpen(Protocol):
    """It has a time to live for decisions, and ends with nothing open."""

    @property
    def ttl(self) -> int | None:
        """Decisions after which a payoff is not waited for any more."""

    @property
    def missing(self) -> float | None:
        """What silence is worth; None: it is forgotten."""

    def forget_all(self) -> None:
        """Forget every open decision."""


@runtime_checkable
class CompiledPolicy(ForgetsOpen, Protocol):
    """Partition × learner: a simulation runs it in compiled code, and hands it back."""

    @property
    def life(self) -> Any:
        """The state that compiled code changes."""

    def rehearsed(self, rng: Any, /) -> "CompiledPolicy":
        """An independent copy with nothing open and random numbers of its own."""


def name_of(policy: Any) -> str:
    """What tables call a policy."""
    return str(getattr(policy, "name", None) or type(policy).__name__)
