"""The policies by name: constructors of `Policy`, and references that do not learn."""

from continuarm.live.named.by_name import makes, names, register_policy
from continuarm.live.named.kwsa import AdaptiveKWSA, StaticKWSA
from continuarm.live.named.references import Fixed, Oracle
from continuarm.live.named.robbins_monro import RobbinsMonro
from continuarm.live.named.surface_sampling import SurfaceSampling
from continuarm.live.named.thompson import CosineThompson, LinearThompson, LogitThompson
from continuarm.live.named.uniform_ucb import UniformUCB

__all__ = [
    "AdaptiveKWSA",
    "CosineThompson",
    "Fixed",
    "LinearThompson",
    "LogitThompson",
    "Oracle",
    "RobbinsMonro",
    "StaticKWSA",
    "SurfaceSampling",
    "UniformUCB",
    "makes",
    "names",
    "register_policy",
]

register_policy("recommended", SurfaceSampling)
register_policy("static-kwsa", StaticKWSA, unless={"curvature": "step"})
register_policy("adaptive-kwsa", AdaptiveKWSA, unless={"curvature": "step"})
register_policy("uniform-ucb", UniformUCB)
register_policy("robbins-monro", RobbinsMonro)
register_policy("linear-thompson", LinearThompson)
register_policy("cosine-thompson", CosineThompson)
register_policy("logit-thompson", LogitThompson)
register_policy("oracle", Oracle.made_for)
register_policy("fixed", Fixed.made_for)
