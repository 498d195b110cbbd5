"""Continuarm: contextual bandits whose decision is a continuous vector.

>>> import continuarm as ca
>>> policy = ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(2))
>>> decision = policy.ask([0.3])
>>> policy.tell(decision, payoff=1.5)
>>> policy.recommend([0.3])
array([0.5, 0.5])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from continuarm import errors as errors
    from continuarm import schedules as schedules
    from continuarm import theory as theory
    from continuarm.box import Box as Box
    from continuarm.decision import Bin as Bin
    from continuarm.decision import Decision as Decision
    from continuarm.decision import Decisions as Decisions
    from continuarm.experiments import Experiment as Experiment
    from continuarm.policies import AdaptiveKWSA as AdaptiveKWSA
    from continuarm.policies import Fixed as Fixed
    from continuarm.policies import Oracle as Oracle
    from continuarm.policies import RobbinsMonro as RobbinsMonro
    from continuarm.policies import StaticKWSA as StaticKWSA
    from continuarm.policies import SurfaceSampling as SurfaceSampling
    from continuarm.policies import UniformUCB as UniformUCB
    from continuarm.policies import load as load
    from continuarm.problems import Problem as Problem
    from continuarm.problems import problem as problem
    from continuarm.result import Result as Result
    from continuarm.simulation import simulate as simulate

__version__ = "0.1.0"

_HOME = {
    "errors": "",
    "schedules": "",
    "theory": "",
    "Box": "box",
    "Bin": "decision",
    "Decision": "decision",
    "Decisions": "decision",
    "Experiment": "experiments",
    "AdaptiveKWSA": "policies",
    "Fixed": "policies",
    "Oracle": "policies",
    "RobbinsMonro": "policies",
    "StaticKWSA": "policies",
    "SurfaceSampling": "policies",
    "UniformUCB": "policies",
    "load": "policies",
    "Problem": "problems",
    "problem": "problems",
    "Result": "result",
    "simulate": "simulation",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Load a part of the package when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'continuarm' has no attribute {name!r}")
    module = import_module(f"continuarm.{_HOME[name] or name}")
    value = module if not _HOME[name] else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
