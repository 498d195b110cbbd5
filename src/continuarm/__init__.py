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

from continuarm.version import __version__ as __version__

if TYPE_CHECKING:
    from continuarm import errors as errors
    from continuarm import plots as plots
    from continuarm import testing as testing
    from continuarm.box import Box as Box
    from continuarm.client import AsyncClient as AsyncClient
    from continuarm.client import Client as Client
    from continuarm.core.learners.basis_surface import BasisSurface as BasisSurface
    from continuarm.core.learners.gradient_ascent import GradientAscent as GradientAscent
    from continuarm.core.learners.grid_ucb import GridUCB as GridUCB
    from continuarm.core.learners.kiefer_wolfowitz import KieferWolfowitz as KieferWolfowitz
    from continuarm.core.learners.logit_demand import LogitDemand as LogitDemand
    from continuarm.core.learners.response_surface import ResponseSurface as ResponseSurface
    from continuarm.core.learners.smooth_gradient import SmoothGradient as SmoothGradient
    from continuarm.core.learners.smooth_surface import SmoothSurface as SmoothSurface
    from continuarm.core.partitions.evidence_tree import EvidenceTree as EvidenceTree
    from continuarm.core.partitions.grid import Grid as Grid
    from continuarm.core.partitions.tree import Tree as Tree
    from continuarm.lab.comparison import Comparison as Comparison
    from continuarm.lab.comparison import compare as compare
    from continuarm.lab.experiment import Experiment as Experiment
    from continuarm.lab.result import Result as Result
    from continuarm.lab.simulation import simulate as simulate
    from continuarm.ledger import SharedPolicy as SharedPolicy
    from continuarm.ledger import share as share
    from continuarm.live import events as events
    from continuarm.live.affine_rule import AffineRule as AffineRule
    from continuarm.live.closings import Stats as Stats
    from continuarm.live.decision import Bin as Bin
    from continuarm.live.decision import Decision as Decision
    from continuarm.live.decision import Decisions as Decisions
    from continuarm.live.diagnosis.findings import Finding as Finding
    from continuarm.live.diagnosis.findings import Findings as Findings
    from continuarm.live.explanation import Explanation as Explanation
    from continuarm.live.named import AdaptiveKWSA as AdaptiveKWSA
    from continuarm.live.named import CosineThompson as CosineThompson
    from continuarm.live.named import Fixed as Fixed
    from continuarm.live.named import LinearThompson as LinearThompson
    from continuarm.live.named import LogitThompson as LogitThompson
    from continuarm.live.named import Oracle as Oracle
    from continuarm.live.named import RobbinsMonro as RobbinsMonro
    from continuarm.live.named import StaticKWSA as StaticKWSA
    from continuarm.live.named import SurfaceSampling as SurfaceSampling
    from continuarm.live.named import UniformUCB as UniformUCB
    from continuarm.live.named import register_policy as register_policy
    from continuarm.live.policy import Policy as Policy
    from continuarm.live.policy import load as load
    from continuarm.live.reader import Reader as Reader
    from continuarm.live.registry import register as register
    from continuarm.live.uplift import Uplift as Uplift
    from continuarm.paper import schedules as schedules
    from continuarm.paper import theory as theory
    from continuarm.planning.first_day import FirstDay as FirstDay
    from continuarm.planning.first_day import first_day as first_day
    from continuarm.planning.old_log import first_day_of_log as first_day_of_log
    from continuarm.problems import Problem as Problem
    from continuarm.problems import problem as problem
    from continuarm.problems import problem_names as problem_names
    from continuarm.problems import register_problem as register_problem
    from continuarm.sets.polytope import Polytope as Polytope

_HOME = {
    "AdaptiveKWSA": "live.named",
    "AffineRule": "live.affine_rule",
    "AsyncClient": "client",
    "BasisSurface": "core.learners.basis_surface",
    "Bin": "live.decision",
    "Box": "box",
    "Client": "client",
    "Comparison": "lab.comparison",
    "CosineThompson": "live.named",
    "Decision": "live.decision",
    "Decisions": "live.decision",
    "Stats": "live.closings",
    "EvidenceTree": "core.partitions.evidence_tree",
    "Experiment": "lab.experiment",
    "Explanation": "live.explanation",
    "Finding": "live.diagnosis.findings",
    "Findings": "live.diagnosis.findings",
    "FirstDay": "planning.first_day",
    "Fixed": "live.named",
    "GradientAscent": "core.learners.gradient_ascent",
    "Grid": "core.partitions.grid",
    "GridUCB": "core.learners.grid_ucb",
    "KieferWolfowitz": "core.learners.kiefer_wolfowitz",
    "LinearThompson": "live.named",
    "LogitDemand": "core.learners.logit_demand",
    "LogitThompson": "live.named",
    "Oracle": "live.named",
    "Policy": "live.policy",
    "Polytope": "sets.polytope",
    "Problem": "problems",
    "Reader": "live.reader",
    "ResponseSurface": "core.learners.response_surface",
    "SmoothGradient": "core.learners.smooth_gradient",
    "SmoothSurface": "core.learners.smooth_surface",
    "Result": "lab.result",
    "RobbinsMonro": "live.named",
    "SharedPolicy": "ledger",
    "StaticKWSA": "live.named",
    "SurfaceSampling": "live.named",
    "Tree": "core.partitions.tree",
    "UniformUCB": "live.named",
    "Uplift": "live.uplift",
    "compare": "lab.comparison",
    "errors": "errors",
    "events": "live.events",
    "first_day": "planning.first_day",
    "first_day_of_log": "planning.old_log",
    "load": "live.policy",
    "plots": "plots",
    "problem": "problems",
    "problem_names": "problems",
    "register": "live.registry",
    "register_policy": "live.named",
    "register_problem": "problems",
    "schedules": "paper.schedules",
    "share": "ledger",
    "simulate": "lab.simulation",
    "testing": "testing",
    "theory": "paper.theory",
}
_MODULES = ("errors", "events", "plots", "schedules", "testing", "theory")
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Load a part of the package when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'continuarm' has no attribute {name!r}")
    module = import_module(f"continuarm.{_HOME[name]}")
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
