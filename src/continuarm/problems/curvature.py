"""The curvature of a problem at its best decisions, found by differences."""

import numpy as np

from continuarm.core.compiling import Array
from continuarm.problems.definition import Problem

__all__ = ["curvature_at_best", "with_curvature"]

STEP = 1e-3  # of a side of the box, for second differences


def curvature_at_best(problem: Problem, contexts: int = 20) -> float:
    """The smallest curvature on the unit cube at the best decisions of some contexts."""
    dy, span, found = problem.decision.dim, problem.decision.span, []
    points = problem.draw_contexts(np.random.default_rng(1), contexts)
    for x, best in zip(points, problem.best_many(points)[0], strict=True):
        centre = np.clip(problem.decision.to_unit(best), 2 * STEP, 1.0 - 2 * STEP)

        def height(step: Array, x: Array = x, centre: Array = centre) -> float:
            point = problem.decision.low + (centre + step) * span
            return float(problem.functions.mean(x, point))

        hessian, e = np.empty((dy, dy)), STEP * np.eye(dy)
        for i in range(dy):
            for j in range(i, dy):
                rise = height(e[i] + e[j]) + height(-e[i] - e[j])
                rise -= height(e[i] - e[j]) + height(e[j] - e[i])
                hessian[i, j] = hessian[j, i] = rise / (4.0 * STEP * STEP)
        found.append(float(np.linalg.eigvalsh(-hessian)[0]))
    return min(found)


def with_curvature(problem: Problem) -> Problem:
    """The problem, with its curvature at the best decisions."""
    problem.curvature = curvature_at_best(problem)
    return problem
