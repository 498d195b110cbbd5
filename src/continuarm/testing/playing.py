"""What the contracts of policies do with one: ask and tell against a noisy hill."""

from collections.abc import Callable
from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.live.abilities import TakesGradients

__all__ = ["CONTEXT", "DECISION", "play", "policy_box", "refuses", "tell"]

CONTEXT = Box([18.0, 0.0], [90.0, 2.5e5], names=["age", "income"])
DECISION = Box([1.0, 0.5], [9.0, 4.0], names=["price", "fee"])


def play(policy: Any, rounds: int, seed: int, keep: int = 0) -> list[Array]:
    """Ask and tell against a noisy hill; the last `keep` decisions stay open."""
    rng, values, box = np.random.default_rng(seed), [], policy_box(policy)
    points = box.from_unit(rng.random((rounds, box.dim)))
    for k, x in enumerate(points):
        asked = policy.ask(x)
        value = np.asarray(getattr(asked, "value", asked), np.float64)
        values.append(value.copy())
        if k < rounds - keep:
            tell(policy, asked, value, float(rng.standard_normal()))
    return values


def policy_box(policy: Any) -> Box:
    """The contexts that a policy was made for."""
    box = getattr(policy, "context", None)
    return box if isinstance(box, Box) else CONTEXT


def tell(policy: Any, asked: Any, value: Array, noise: float) -> None:
    """The payoff of a hill around a third of each side, with its gradient where it is wanted."""
    box = policy.decision if isinstance(getattr(policy, "decision", None), Box) else DECISION
    gap = box.to_unit(value) - 1.0 / 3.0
    payoff = -float(gap @ gap) + 0.1 * noise
    sloped = isinstance(policy, TakesGradients) and policy.uses_gradient
    extra = {"gradient": -2.0 * gap / box.span} if sloped else {}
    policy.tell(asked, payoff, **extra)


def refuses(call: Callable[[], object], *kinds: type[Exception]) -> bool:
    """Whether a call raises one of these."""
    try:
        call()
    except kinds:
        return True
    return False
