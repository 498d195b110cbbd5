"""Rivals to compare with: Thompson sampling on one Bayesian model of all contexts."""

from typing import Unpack

from continuarm import checks
from continuarm.box import Box
from continuarm.core.learners.basis_surface import BasisSurface
from continuarm.core.partitions.grid import Grid
from continuarm.live.named.options import PolicyOptions
from continuarm.live.policy import Policy, Start

__all__ = ["CosineThompson", "LinearThompson"]

LEAST_DEGREE, MOST_DEGREE, MOST_FREQUENCIES = 2, 3, 100


def LinearThompson(
    context: Box,
    decision: Box,
    *,
    degree: int = 2,
    ridge: float = 0.1,
    spread: float = 1.0,
    start: Start | None = None,
    **options: Unpack[PolicyOptions],
) -> Policy:
    """Thompson sampling on one linear model: polynomials of the context × a quadratic decision.

    Each decision is the highest point in the box of a draw from the posterior. The first ones, a
    few more than the quadratic has coefficients, are uniform. A payoff and a decision cost p²
    operations each, p the columns: the polynomials of the context times 1, v_j, v_j²/2 and v_i v_j
    (beyond 66 of these without the products).

    Parameters
    ----------
    context, decision : the boxes; a context box without dimensions makes it context-free.
    degree : the total degree of the polynomials, 2 or 3.
    ridge : λ; each coefficient has the prior N(0, s²/λ), s the payoff's noise, which is estimated.
    spread : κ, how much of the posterior's spread is sampled.
    start : what is done today, as for `Policy`: `recommend` answers it before payoffs teach more.
    options : `ttl`, `ttl_seconds`, `missing`, `share`, `max_move` and `rng` of `Policy`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> policy = LinearThompson(Box([18], [90]), Box([1.0], [9.0]), rng=0)
    >>> for age in rng.uniform(18, 90, 500):
    ...     decision = policy.ask([age])
    ...     policy.tell(decision, rng.normal() - (decision.value[0] - age / 10) ** 2)
    >>> policy.recommend([50]).round(1)
    array([5.1])
    """
    degree = checks.whole("degree", degree, LEAST_DEGREE, MOST_DEGREE)
    learner = BasisSurface(order=degree, ridge=ridge, spread=spread)
    return _everywhere(context, decision, learner, start, "LinearThompson", options)


def CosineThompson(
    context: Box,
    decision: Box,
    *,
    frequencies: int = 5,
    ridge: float = 0.1,
    spread: float = 1.0,
    start: Start | None = None,
    **options: Unpack[PolicyOptions],
) -> Policy:
    """The same as `LinearThompson` with cosines of the context, for what changes more quickly.

    The functions of the context are cos(πk(u+1)/2), u in [-1, 1], for k up to `frequencies`; with
    two contexts their products, too, whose frequencies add up to no more than that.

    Parameters
    ----------
    frequencies : the highest k, 1 to 100.
    ridge : λ of what is constant; that of frequency k is λ(1 + k²), of a product λ(1 + k² + l²).
    context, decision, spread, start, options : as for `LinearThompson`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> policy = CosineThompson(Box([0], [24]), Box([0.0], [12.0]), rng=0)
    >>> for hour in rng.uniform(0, 24, 1000):
    ...     decision = policy.ask([hour])
    ...     policy.tell(decision, rng.normal() - (decision.value[0] - abs(hour - 12)) ** 2)
    >>> policy.recommend([5]).round(1)
    array([7.])
    """
    frequencies = checks.whole("frequencies", frequencies, 1, MOST_FREQUENCIES)
    learner = BasisSurface(basis="cosines", order=frequencies, ridge=ridge, spread=spread)
    return _everywhere(context, decision, learner, start, "CosineThompson", options)


def _everywhere(
    context: Box,
    decision: Box,
    learner: BasisSurface,
    start: Start | None,
    name: str,
    options: PolicyOptions,
) -> Policy:
    """One model of all contexts."""
    return Policy(
        context, decision, partition=Grid(1), learner=learner, start=start, name=name, **options
    )
