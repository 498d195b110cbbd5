"""The policies: partition × learner, by name."""

import inspect
from typing import Any

from continuarm.errors import SettingsError
from continuarm.policies.kwsa import AdaptiveKWSA, StaticKWSA
from continuarm.policies.loading import load
from continuarm.policies.policy import BinnedPolicy, Policy
from continuarm.policies.references import Fixed, Oracle, World
from continuarm.policies.robbins_monro import RobbinsMonro
from continuarm.policies.surface_sampling import SurfaceSampling
from continuarm.policies.uniform_ucb import UniformUCB

__all__ = [
    "POLICIES",
    "AdaptiveKWSA",
    "BinnedPolicy",
    "Fixed",
    "Oracle",
    "Policy",
    "RobbinsMonro",
    "StaticKWSA",
    "SurfaceSampling",
    "UniformUCB",
    "load",
    "policy_for",
]

LEARNING: dict[str, type[BinnedPolicy]] = {
    "recommended": SurfaceSampling,
    "static-kwsa": StaticKWSA,
    "adaptive-kwsa": AdaptiveKWSA,
    "uniform-ucb": UniformUCB,
    "robbins-monro": RobbinsMonro,
}
POLICIES = (*LEARNING, "oracle", "fixed")


def policy_for(name: str, problem: World, /, **settings: Any) -> BinnedPolicy | Oracle | Fixed:
    """The policy of this name for a problem."""
    if name not in POLICIES:
        raise SettingsError(f"the policy must be one of {list(POLICIES)}, but got {name!r}")
    made: Any = {"oracle": Oracle, "fixed": Fixed}.get(name) or LEARNING[name]
    known = [k for k in inspect.signature(made).parameters if k not in ("context", "problem")]
    if name in LEARNING:
        known.remove("decision")
    unknown = [key for key in settings if key not in known]
    if unknown:
        raise SettingsError(f"{name} takes the settings {known}, but got {unknown}")
    if name == "fixed":
        return Fixed(**settings)
    if name == "oracle":
        return Oracle(problem)
    policy: BinnedPolicy = made(problem.context, problem.decision, **settings)
    return policy
