"""Rivals to compare with: Thompson sampling on one Bayesian model of all contexts."""

from collections.abc import Sequence
from typing import Any, Protocol, Unpack

import numpy as np

from continuarm import checks
from continuarm.box import Box
from continuarm.core.compiling import Array, in_python
from continuarm.core.learners.basis_surface import BasisSurface
from continuarm.core.learners.logit_demand import NEITHER, LogitDemand, bought, margins
from continuarm.core.partitions.grid import Grid
from continuarm.errors import SettingsError
from continuarm.live.named.options import PolicyOptions
from continuarm.live.policy import Policy, Start

__all__ = ["CosineThompson", "LinearThompson", "LogitThompson"]

TRIED = 200  # payoffs of a problem that are looked at
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


def LogitThompson(
    context: Box,
    decision: Box,
    *,
    cost: float | Sequence[float] = 0.0,
    degree: int = 1,
    ridge: float = 0.1,
    spread: float = 1.0,
    start: Start | None = None,
    problem: Any = None,
    **options: Unpack[PolicyOptions],
) -> Policy:
    """Thompson sampling that is told the form of demand: products that are bought or not.

    It applies where each coordinate of the decision is the price of a product, products are bought
    independently of each other, and the payoff is the sum of `price - cost` of what was bought, so
    that it says what that was. The log-odds of a purchase are linear in the price, with
    coefficients that are polynomials of the context. In a simulation, a problem with other payoffs
    is refused. Live, such a payoff teaches nothing.

    Parameters
    ----------
    cost : of each product, or of all; below the highest price.
    degree : the total degree of the polynomials, 0 to 20.
    ridge : λ; each coefficient has the prior N(0, 1/λ).
    problem : where payoffs come from, as a simulation tells it.
    context, decision, spread, start, options : as for `LinearThompson`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> policy = LogitThompson(Box([0], [1]), Box([0.0], [2.0]), rng=0)
    >>> for trait in rng.random(5000):
    ...     decision = policy.ask([trait])
    ...     price = decision.value[0]
    ...     is_bought = rng.random() < 1 / (1 + np.exp(4 * price - 2 - 2 * trait))
    ...     policy.tell(decision, price if is_bought else 0.0)
    >>> policy.recommend([0.5]).round(1)
    array([0.6])
    """
    costs = _costs(cost, decision)
    learner = LogitDemand(
        low=(decision.low - costs).tolist(),
        high=(decision.high - costs).tolist(),
        degree=degree,
        ridge=ridge,
        spread=spread,
    )
    made = _everywhere(context, decision, learner, start, "LogitThompson", options)
    if hasattr(problem, "payoff"):
        _check_payoffs(problem, learner)
    return made


def _everywhere(
    context: Box,
    decision: Box,
    learner: BasisSurface | LogitDemand,
    start: Start | None,
    name: str,
    options: PolicyOptions,
) -> Policy:
    """One model of all contexts."""
    return Policy(
        context, decision, partition=Grid(1), learner=learner, start=start, name=name, **options
    )


def _costs(cost: Any, decision: Box) -> Array:
    """The cost of each product, below its highest price."""
    given = [cost] * decision.dim if isinstance(cost, checks.REAL) else cost
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != decision.dim:
        raise SettingsError(
            f"`cost` must be a number, or one for each of {decision.dim} prices, but got {cost!r}"
        )
    costs = np.array([checks.number("cost", value, zero=True) for value in given])
    if not (costs < decision.high).all():
        raise SettingsError(
            f"`cost < {decision.high.tolist()}`, the highest prices, must hold, but got {cost!r}"
        )
    return costs


class World(Protocol):
    """What of a problem shows which payoffs it has."""

    name: str
    decision: Box

    def draw_contexts(self, rng: np.random.Generator, n: int) -> Array: ...

    def payoff(self, context: Array, decision: Array, rng: np.random.Generator) -> float: ...

    def disturb(self, rng: np.random.Generator, first: int, contexts: Array) -> Array: ...


def _check_payoffs(world: World, learner: LogitDemand) -> None:
    """Refuse a world whose payoffs are no margins of what was bought."""
    rng, margin = np.random.default_rng(0), np.empty(world.decision.dim)
    cfg = learner.configured(0, world.decision.dim)
    contexts, ys = world.draw_contexts(rng, TRIED), rng.random((TRIED, world.decision.dim))
    for x, y, added in zip(contexts, ys, world.disturb(rng, 0, contexts), strict=True):
        prices = world.decision.from_unit(y)
        payoff = world.payoff(x, prices, rng) + added
        in_python(margins)(cfg, y, margin)
        if in_python(bought)(margin, payoff) == NEITHER:
            raise SettingsError(
                "LogitThompson needs payoffs that are sums of `price - cost` of what was bought, "
                f"but {world.name} pays {payoff:g} for the prices {prices.round(4).tolist()} at "
                f"the margins {margin.round(4).tolist()}"
            )
