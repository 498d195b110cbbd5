"""Naming: what a policy is called, from its parts."""

from functools import lru_cache

from continuarm.box import Box
from continuarm.core.learners.response_surface import ResponseSurface
from continuarm.live.named import SurfaceSampling
from continuarm.live.policy import Policy

__all__ = ["policy_named"]


def policy_named(policy: Policy) -> str:
    """`recommended` where its parts are those of `SurfaceSampling`, else these parts."""
    beginning = policy.life.beginning
    learner, parts = beginning.learner, (beginning.partition, beginning.learner)
    if isinstance(learner, ResponseSurface) and parts == _recommended(
        learner.reach, learner.memory
    ):
        return "recommended"
    return " × ".join(type(part).__name__ for part in parts)


@lru_cache(maxsize=64)
def _recommended(reach: float | None, memory: int | None) -> tuple[object, object]:
    box = Box([0.0], [1.0])
    beginning = SurfaceSampling(box, box, reach=reach, memory=memory).life.beginning
    return beginning.partition, beginning.learner
