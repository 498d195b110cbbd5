"""Simulated worlds: `problem(name, **settings)` gives one by name, `Problem` your own.

`registry.py` finds them, `worlds/` holds them by theme, `building.py` and `curvature.py` are what
they share.
"""

from continuarm.problems.definition import Problem
from continuarm.problems.registry import fingerprint, problem, problem_names, register_problem

__all__ = ["Problem", "fingerprint", "problem", "problem_names", "register_problem"]
