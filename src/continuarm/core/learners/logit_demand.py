"""A logistic model of whether each product is bought, and Thompson sampling of prices.

Legend: u the context in [-1, 1]^dx, v = 2y - 1 the prices in [-1, 1]^dy, φ the p columns of a
product, f(u) and v_j f(u) with the F functions f; θ their coefficients, [R | d] the triangle with
A = RᵀR the precision and Rθ = d, σ the logistic function, η = φᵀθ the log-odds of a purchase. A
margin is linear in v. The functions and the triangle are in `linear/`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from continuarm import checks
from continuarm.core.compiling import Array, compiled, compiled_large, copy_into, fill
from continuarm.core.learners.linear.basis import products, tabulated
from continuarm.core.learners.linear.features import at_context, fill_columns, fill_functions
from continuarm.core.learners.linear.triangle import (
    draw,
    fill_ridges,
    length,
    numbers,
    pivots,
    rotate_in,
    solve,
)
from continuarm.core.learners.protocol import Learner, Read, register
from continuarm.core.learners.triangle import SMALLEST_PIVOT
from continuarm.core.request import ALONE, UNFORESEEN, Foreseen, Observation, Request, clip_into
from continuarm.errors import PolicyError, SettingsError

__all__ = ["LogitDemand", "LogitDemandConfig", "bought", "margins"]

MOST_PRODUCTS = 6  # of a payoff, all 2^dy baskets are looked at
EXACT = 1e-9  # payoffs are margins as far as the largest margin times this
LARGEST_MARGIN = 1e100
LARGEST_LOGIT = 30.0  # beyond, a purchase is as sure as that
ROUNDS = 100  # of a search for a root, at most
FAR, MOST_COUNTED = 1e100, 2.0**52  # of a state that was read

# A row: the payoffs that said what was bought, and the triangle of each product.
SEEN, TRIANGLES = range(2)
NEITHER = -1  # no basket


@dataclass(frozen=True, kw_only=True)
class LogitDemand:
    """Products that are bought or not, independently, with a logistic chance; for `Grid(1)`.

    Coordinate j of the decision is the price of product j. The log-odds of its purchase are linear
    in that price, with coefficients that are polynomials of the context. The payoff is the sum of
    the margins of what was bought, so that it says what that was. A payoff that does not teaches
    nothing: one that is no such sum, or margins of which two sums are the same. The posterior is
    normal, by Laplace's approximation with each payoff; the decision is best for a draw from it.

    Parameters
    ----------
    low, high : the margin of each product at the lower and at the upper end of its price, in units
        of the payoff.
    degree : of the polynomials, in total.
    ridge : the precision of each coefficient's prior.
    spread : κ, how much of the posterior's spread is sampled.

    >>> import continuarm as ca
    >>> prices = ca.Box([0.0], [2.0])
    >>> learner = ca.LogitDemand(low=[0.0], high=[2.0])
    >>> policy = ca.Policy(ca.Box.unit(1), prices, partition=ca.Grid(1), learner=learner, rng=0)
    >>> result = ca.simulate(policy, "purchase", horizon=1000, rng=0)
    >>> int(result.regret[0, -1])
    14
    """

    low: Sequence[float]
    high: Sequence[float]
    degree: int = 1
    ridge: float = 0.1
    spread: float = 1.0

    def __post_init__(self) -> None:
        checks.normalise(
            self,
            low=_finite("low", self.low),
            high=_finite("high", self.high),
            degree=checks.whole("degree", self.degree, 0, 20),
            ridge=checks.number("ridge", self.ridge, least=1e-9, most=1e9),
            spread=checks.number("spread", self.spread, zero=True, most=1e9),
        )
        if len(self.low) != len(self.high) or not self.low:
            raise SettingsError(
                "`low` and `high` must have a margin for each product, but got "
                f"{list(self.low)} and {list(self.high)}"
            )
        for low, high in zip(self.low, self.high, strict=True):
            if not (low < high and high > 0.0):
                raise SettingsError(
                    f"`low < high` and `0 < high` must hold for margins, but got {low} and {high}"
                )

    def configured(self, dx: int, dy: int) -> "LogitDemandConfig":
        """The numbers of these options."""
        if len(self.low) != dy:
            raise SettingsError(
                f"a margin is needed for each of {dy} prices, but got low={list(self.low)}"
            )
        if dy > MOST_PRODUCTS:
            raise SettingsError(
                f"purchases of at most {MOST_PRODUCTS} products can be told from a payoff, but "
                f"got {dy}"
            )
        found = products(dx, self.degree, 2)
        ridges = np.full(2 * len(found), self.ridge)
        return LogitDemandConfig(
            dx,
            dy,
            functions=len(found),
            size=2 * len(found),
            highest=max(1, self.degree),
            waves=False,
            spread=self.spread,
            table=np.concatenate([tabulated(found), ridges, self.low, self.high]),
        )


def _finite(name: str, values: Any) -> tuple[float, ...]:
    """Numbers that may be below 0."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    right = isinstance(values, Sequence) and all(
        isinstance(value, checks.REAL)
        and not isinstance(value, bool)
        and abs(float(value)) <= LARGEST_MARGIN
        for value in values
    )
    if not right:
        raise SettingsError(
            f"`{name}` must be numbers within ±{LARGEST_MARGIN:g}, but got {values!r}"
        )
    return tuple(float(value) for value in values)


class LogitDemandConfig(NamedTuple):
    """The same as numbers."""

    dx: int
    dy: int
    functions: int  # of the context, F
    size: int  # p = 2F, of each product
    highest: int  # degree
    waves: bool  # never
    spread: float  # κ
    table: Array  # of the functions, the ridges, and the margins: all low ones, all high ones


def width(cfg: LogitDemandConfig) -> int:
    return TRIANGLES + cfg.dy * length(cfg.size)


def draws(cfg: LogitDemandConfig) -> int:
    return cfg.dy * cfg.size


def scratch(cfg: LogitDemandConfig) -> int:
    """Columns twice, functions, features; then polynomials, or margins."""
    rest = max(cfg.dx * (cfg.highest + 1), cfg.dy)
    return 2 * cfg.size + 1 + cfg.functions + 2 + rest


@compiled
def margins_at(cfg: LogitDemandConfig) -> int:
    """Where in the table the margins stand."""
    return 3 * (cfg.functions - 1) + cfg.size


@compiled
def triangle_at(cfg: LogitDemandConfig, j: int) -> int:
    """Where in a row the triangle of product j begins."""
    return TRIANGLES + j * numbers(cfg.size)


@compiled
def init(cfg: LogitDemandConfig, row: Array, start: Array) -> None:
    fill(row, 0.0)
    k = margins_at(cfg)
    for j in range(cfg.dy):
        fill_ridges(row[triangle_at(cfg, j) :], cfg.table[k - cfg.size : k])


@compiled
def margins(cfg: LogitDemandConfig, y: Array, out: Array) -> None:
    """What a purchase of each product pays at these prices."""
    k = margins_at(cfg)
    for j in range(cfg.dy):
        low, high = cfg.table[k + j], cfg.table[k + cfg.dy + j]
        out[j] = low + y[j] * (high - low)


@compiled_large
def bought(margin: Array, payoff: float) -> int:
    """Which products a payoff stands for, as bits, or NEITHER: it does not say so.

    Whether it can say so does not depend on what was bought: else what is learned would be biased.
    """
    n, scale, found = margin.shape[0], 0.0, NEITHER
    for j in range(n):
        scale = max(scale, abs(margin[j]))
    for difference in range(1, 3**n):  # of two baskets: the digits are one's, the other's, both's
        gap, rest = 0.0, difference
        for j in range(n):
            gap += margin[j] * (rest % 3 - (3 if rest % 3 == 2 else 0))
            rest //= 3
        if abs(gap) <= 4.0 * n * EXACT * scale:
            return NEITHER
    for basket in range(2**n):
        total = 0.0
        for j in range(n):
            if basket >> j & 1 == 1:
                total += margin[j]
        if abs(total - payoff) <= n * EXACT * scale:
            found = basket
    return found


@compiled
def chance(logit: float) -> float:
    """σ."""
    if logit < 0.0:
        grown = math.exp(max(logit, -LARGEST_LOGIT))
        return grown / (1.0 + grown)
    return 1.0 / (1.0 + math.exp(-min(logit, LARGEST_LOGIT)))


@compiled_large
def mode(logit: float, square: float, outcome: float) -> float:
    """The log-odds after one more outcome: where η' = η + φᵀA⁻¹φ (outcome - σ(η')).

    Newton's method; where it would leave what is known to hold the root, half of that.
    """
    low, high = logit - square * (1.0 - outcome), logit + square * outcome
    found = logit
    for _ in range(ROUNDS):
        p = chance(found)
        gap = found - logit - square * (outcome - p)
        if gap > 0.0:
            high = found
        else:
            low = found
        new = found - gap / (1.0 + square * p * (1.0 - p))
        if not low < new < high:
            new = 0.5 * (low + high)
        moved = abs(new - found)
        found = new
        if moved <= 1e-14 * (1.0 + abs(found)):
            break
    return found


@compiled_large
def _learn(
    cfg: LogitDemandConfig,
    triangle: Array,
    v: float,
    functions: Array,
    outcome: float,
    work: Array,
) -> None:
    """Laplace's approximation: the mode of prior times likelihood, and the curvature there.

    It is that of least squares with weight w = σ'(η') and payoff η' + (outcome - σ(η'))/w.
    """
    p = cfg.size
    new, again, features = work[: p + 1], work[p + 1 : 2 * p + 1], work[2 * p + 1 : 2 * p + 3]
    features[0], features[1] = 1.0, v
    fill_columns(functions, features, 1.0, again)
    copy_into(new, again)
    square, logit = solve(triangle, again)
    logit = mode(logit, square, outcome)
    q = chance(logit)
    root = math.sqrt(q * (1.0 - q))
    for i in range(p):
        new[i] *= root
    new[p] = root * logit + (outcome - q) / root
    rotate_in(triangle, new)


@compiled_large
def tell(
    cfg: LogitDemandConfig, row: Array, pool: Array, seen: Observation, work: Array
) -> Foreseen:
    f = 2 * cfg.size + 3
    functions, rest = work[f : f + cfg.functions], work[f + cfg.functions :]
    margins(cfg, seen.y, rest)
    basket = bought(rest[: cfg.dy], seen.z)
    if basket == NEITHER:
        return UNFORESEEN
    fill_functions(cfg, seen.u, rest, functions)
    for j in range(cfg.dy):
        outcome, v = float(basket >> j & 1), 2.0 * seen.y[j] - 1.0
        _learn(cfg, row[triangle_at(cfg, j) :], v, functions, outcome, work)
    row[SEEN] += 1.0
    return UNFORESEEN


@compiled_large
def price(level: float, slope: float, offset: float, low: float, high: float) -> float:
    """Where in [low, high] (v + offset) σ(level + slope v) is highest.

    With b = -slope > 0 at v + offset = (1 + W(e^(level + b offset - 1)))/b, W Lambert's function:
    W = e^t with t + e^t = level + b offset - 1. Where demand rises with the price, at the top.
    """
    if slope >= 0.0:
        return high
    right = level - slope * offset - 1.0
    t = right if right < 1.0 else math.log(right)
    for _ in range(ROUNDS):
        grown = math.exp(t)
        step = (t + grown - right) / (1.0 + grown)
        t -= step
        if abs(step) <= 1e-14 * (1.0 + abs(t)):
            break
    return min(max(-(1.0 + math.exp(t)) / slope - offset, low), high)


@compiled_large
def _fill_prices(
    cfg: LogitDemandConfig, row: Array, request: Request, sigma: float, work: Array, y: Array
) -> None:
    """The best prices for a draw; σ = 0: for the mean."""
    p, k, f = cfg.size, margins_at(cfg), 2 * cfg.size + 3
    theta, demand = work[:p], work[2 * p + 1 : f]
    functions, rest = work[f : f + cfg.functions], work[f + cfg.functions :]
    fill_functions(cfg, request.u, rest, functions)
    for j in range(cfg.dy):
        draw(row[triangle_at(cfg, j) :], sigma, request.xi[j * p : (j + 1) * p], theta)
        at_context(functions, theta, demand)
        least, most = cfg.table[k + j], cfg.table[k + cfg.dy + j]
        offset = (most + least) / (most - least)  # the margin is a multiple of v + offset
        low, high = 2.0 * request.region.low[j] - 1.0, 2.0 * request.region.high[j] - 1.0
        y[j] = 0.5 + 0.5 * price(demand[0], demand[1], offset, low, high)


@compiled
def decide(
    cfg: LogitDemandConfig, row: Array, pool: Array, request: Request, work: Array, y: Array
) -> int:
    _fill_prices(cfg, row, request, cfg.spread, work, y)
    clip_into(request.region, y)
    return ALONE


@compiled
def best(cfg: LogitDemandConfig, row: Array, request: Request, work: Array, y: Array) -> None:
    if row[SEEN] == 0.0:
        copy_into(y, request.start)
    else:
        _fill_prices(cfg, row, request, 0.0, work, y)
    clip_into(request.region, y)


@compiled
def inherit(
    cfg: LogitDemandConfig, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    """The model is that of the whole context: a bin that splits begins anew."""
    init(cfg, child, low)


@compiled
def progress(cfg: LogitDemandConfig, row: Array) -> int:
    return int(row[SEEN])


@compiled
def uses_context(cfg: LogitDemandConfig) -> bool:
    return True


def size(cfg: LogitDemandConfig) -> int:
    return cfg.dy * cfg.size


def explain(cfg: LogitDemandConfig, row: Array, request: Request, centre: Array) -> dict[str, Any]:
    """Its columns."""
    return {"known": float(row[SEEN]), "columns": cfg.dy * cfg.size}


def rule(cfg: LogitDemandConfig, row: Array) -> dict[str, Any] | None:
    """No reader of exported tables can follow it."""
    raise PolicyError(
        "a table is exported of what a reader can follow, but got `LogitDemand`: take "
        "`ResponseSurface`, or ask the policy itself"
    )


def fits(cfg: LogitDemandConfig, read: Read) -> bool:
    """Numbers so far from overflowing that what is computed from them is finite."""
    rows, n = read.rows, length(cfg.size)
    diagonal = [TRIANGLES + j * n + k for j in range(cfg.dy) for k in pivots(cfg.size)]
    seen = rows[:, SEEN]
    return bool(
        np.isfinite(rows).all()
        and (abs(rows[:, TRIANGLES:]) <= FAR).all()
        and (rows[:, diagonal] >= SMALLEST_PIVOT).all()
        and ((seen >= 0.0) & (seen < MOST_COUNTED) & (seen % 1 == 0.0)).all()
    )


register(LogitDemandConfig, Learner.of(globals()))
