"""Whether the numbers of a world can be counted with, and whether its best decision is the best.

A regret has no noise in it: it is the mean payoff of the best decision less that of the decision
made. So one decision whose regret lies below zero is enough to know that the best one is not.
"""

from typing import Any

import numpy as np

from continuarm.core.compiling import Array
from continuarm.errors import ProblemError
from continuarm.problems import Problem

__all__ = ["LARGEST", "check_numbers", "check_regrets", "doubt"]

LARGEST = 1e100  # squares of sums of such payoffs are still finite
SLACK = 1e-6  # of what random decisions lose; what the search for the best decision promises, too
ROUNDING = 1e-12  # of the payoffs


def check_numbers(
    problem: Problem, context: Array, payoff: float, regret: float, slope: Any = None
) -> None:
    """Refuse a payoff, a regret or a gradient that cannot be counted with."""
    for what, value in (("payoff", payoff), ("regret", regret), ("gradient", slope)):
        if value is not None and not np.all(np.abs(value) <= LARGEST):
            raise ProblemError(
                f"the {what} of {problem.name} must be within ±{LARGEST:g}, "
                f"but got {np.asarray(value).tolist()} at context {context.tolist()}"
            )


def check_regrets(problem: Problem, contexts: Array, regrets: Array) -> None:
    """The same of many regrets."""
    wrong = np.flatnonzero(~(np.abs(regrets) <= LARGEST))
    if len(wrong):
        check_numbers(problem, contexts[wrong[0]], 0.0, float(regrets[wrong[0]]))


def doubt(problem: Problem, contexts: Array, best: Array, least: float) -> str | None:
    """What speaks against the best decisions of a problem: a decision with a regret below zero.

    Parameters
    ----------
    contexts, best : some contexts, and the mean payoffs of the best decisions there.
    least : the least regret of a decision.
    """
    if least >= 0.0:
        return None
    units = np.random.default_rng(0).random((len(contexts), problem.decision.dim))
    blind = problem.mean_many(contexts, problem.decision.from_unit(units))
    lost, found = float(np.abs(best - blind).mean()), problem.searches
    slack = SLACK * lost + ROUNDING * float(np.abs(best).max()) + (SLACK if found else 0.0)
    if least >= -slack:
        return None
    cause = (
        "the search found no better one: is the payoff concave in the decision?"
        if found
        else "is `best_decision` right?"
    )
    return (
        f"no decision may earn more than the best one, but on {problem.name} one earned "
        f"{-least:.1g} more, where random decisions lose {lost:.1g}: {cause}"
    )
