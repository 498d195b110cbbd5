"""One Bayesian linear model of the payoff, and Thompson sampling.

Legend: u the context in [-1, 1]^dx, v = 2y - 1 the decision in [-1, 1]^dy, φ the p columns, θ
their coefficients, [R | d] the triangle with RᵀR = Σ φφᵀ + Λ and Rᵀd = Σ φz, s² the variance of
the noise, ξ standard normal numbers. The functions and the triangle are in `linear/`.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from continuarm import checks
from continuarm.core.compiling import Array, compiled, compiled_large, copy_into, fill
from continuarm.core.guards import climb_in
from continuarm.core.learners.exploration import decide_evenly
from continuarm.core.learners.linear.basis import additive, orders, products, tabulated
from continuarm.core.learners.linear.features import at_context, fill_columns, fill_functions
from continuarm.core.learners.linear.triangle import (
    draw,
    fill_ridges,
    length,
    pivots,
    rotate_in,
)
from continuarm.core.learners.protocol import Learner, Read, register
from continuarm.core.learners.triangle import SMALLEST_PIVOT
from continuarm.core.request import (
    ALONE,
    MOST_SURPRISED,
    Foreseen,
    Observation,
    Region,
    Request,
    clip_into,
)
from continuarm.errors import PolicyError

__all__ = ["BasisSurface", "BasisSurfaceConfig"]

BASES = {"polynomials": False, "cosines": True}
MOST_FULL = 66  # features of the decision; with more, only the diagonal of the Hessian is learned
MOST_MULTIPLIED = 2  # contexts whose cosines are multiplied
LARGEST_PAYOFF = 1e100  # squares of payoffs must stay finite
FAR, MOST_COUNTED = 1e150, 2.0**52  # of a state that was read

# A row: the payoffs seen, the first of them, what was not foreseen, and the triangle.
SEEN, REFERENCE, SQUARES, DEGREES, TRIANGLE = range(5)


@dataclass(frozen=True, kw_only=True)
class BasisSurface:
    """A quadratic in the decision whose coefficients are sums of given functions of the context.

    For `Grid(1)`. The coefficients have the prior N(0, s²/λ), and each decision is the highest
    point of a draw from their posterior, anywhere in the box. Nothing is forgotten.

    Parameters
    ----------
    basis : `"polynomials"`: all products of Legendre polynomials of the contexts up to a total
        degree; `"cosines"`: cos(πk(u+1)/2) of each context u in [-1, 1], and with two contexts
        their products, too.
    order : the total degree, or the highest frequency (of products: the highest sum).
    ridge : λ, of cosines of frequency k that of λ(1 + k²).
    spread : κ, how much of the posterior's spread is sampled.

    >>> import continuarm as ca
    >>> box = ca.Box([0.0], [1.0])
    >>> policy = ca.Policy(box, box, partition=ca.Grid(1), learner=ca.BasisSurface(), rng=0)
    >>> result = ca.simulate(policy, "scalar", horizon=1000, rng=0)
    >>> int(result.regret[0, -1])
    7
    """

    basis: str = "polynomials"
    order: int = 2
    ridge: float = 0.1
    spread: float = 1.0

    def __post_init__(self) -> None:
        checks.choice("basis", self.basis, BASES)
        checks.normalise(
            self,
            order=checks.whole("order", self.order, 0, 100),
            ridge=checks.number("ridge", self.ridge, least=1e-9, most=1e9),
            spread=checks.number("spread", self.spread, zero=True, most=1e9),
        )

    def configured(self, dx: int, dy: int) -> "BasisSurfaceConfig":
        """The numbers of these options."""
        waves = BASES[self.basis]
        alone = waves and dx > MOST_MULTIPLIED
        features = 1 + dy + dy * (dy + 1) // 2
        if features > MOST_FULL:
            features = 1 + 2 * dy
        found = (additive if alone else products)(dx, self.order, features)
        growth = [1.0 + waves * sum(k * k for k in orders(f)) for f in found]
        ridges = np.tile(self.ridge * np.array(growth), features)
        return BasisSurfaceConfig(
            dx,
            dy,
            functions=len(found),
            features=features,
            size=len(found) * features,
            highest=max(1, self.order),
            waves=waves,
            spread=self.spread,
            table=np.concatenate([tabulated(found), ridges]),
        )


class BasisSurfaceConfig(NamedTuple):
    """The same as numbers.

    The features of the decision are 1, its dy dimensions, their halved squares, their products.
    """

    dx: int
    dy: int
    functions: int  # of the context, F
    features: int  # 1 + 2dy (a diagonal Hessian) or 1 + dy + dy(dy+1)/2
    size: int  # p
    highest: int  # order of a function of one context
    waves: bool
    spread: float  # κ
    table: Array  # of the functions, and Λ


def width(cfg: BasisSurfaceConfig) -> int:
    return TRIANGLE + length(cfg.size)


def draws(cfg: BasisSurfaceConfig) -> int:
    """One for each coefficient; the level does not matter for where the payoff is highest."""
    return max(cfg.size - cfg.functions, cfg.dy)


def scratch(cfg: BasisSurfaceConfig) -> int:
    """Columns, functions, features; then polynomials, or the search for a peak."""
    rest = max(cfg.dx * (cfg.highest + 1), cfg.dy * (2 * cfg.dy + 3))
    return cfg.size + 1 + cfg.functions + cfg.features + rest


@compiled
def init(cfg: BasisSurfaceConfig, row: Array, start: Array) -> None:
    fill(row, 0.0)
    fill_ridges(row[TRIANGLE:], cfg.table[3 * (cfg.functions - 1) :])


@compiled
def fill_features(cfg: BasisSurfaceConfig, y: Array, out: Array) -> None:
    """1, v, ½v_j², and row by row v_j v_l."""
    dy = cfg.dy
    out[0] = 1.0
    for j in range(dy):
        v = 2.0 * y[j] - 1.0
        out[1 + j], out[1 + dy + j] = v, 0.5 * v * v
    k = 1 + 2 * dy
    if cfg.features > k:
        for j in range(dy):
            for other in range(j + 1, dy):
                out[k] = out[1 + j] * out[1 + other]
                k += 1


@compiled
def noise_of(row: Array) -> float:
    """s²; 0: not known."""
    return row[SQUARES] / row[DEGREES] if row[SQUARES] > 0.0 else 0.0


@compiled_large
def tell(
    cfg: BasisSurfaceConfig, row: Array, pool: Array, seen: Observation, work: Array
) -> Foreseen:
    p, f = cfg.size, cfg.size + 1 + cfg.functions
    new, functions, features, rest = (
        work[: p + 1],
        work[p + 1 : f],
        work[f : f + cfg.features],
        work[f + cfg.features :],
    )
    if row[SEEN] == 0.0:
        row[REFERENCE] = seen.z
    fill_functions(cfg, seen.u, rest, functions)
    fill_features(cfg, seen.y, features)
    fill_columns(functions, features, 1.0, new)
    new[p] = seen.z - row[REFERENCE]
    variance, judged, surprise = noise_of(row), False, 0.0
    cosine = rotate_in(row[TRIANGLE:], new)
    left = new[p]  # e/√(1+h)
    if variance > 0.0 and not is_early(cfg, row):
        judged = True
        surprise = min(max(left / math.sqrt(variance), -MOST_SURPRISED), MOST_SURPRISED)
    row[SQUARES] += cosine * cosine * left * left  # payoffs that nothing could foresee count less
    row[DEGREES] += cosine * cosine
    row[SEEN] += 1.0
    square, spread = left * left, math.log(cosine)
    steady = (0.0, False, False, 0.0, 0.0, False, False)
    return Foreseen(square, spread, *steady, variance, square, 0.0, 0.0, 0, judged, surprise, 0.0)


@compiled
def is_early(cfg: BasisSurfaceConfig, row: Array) -> bool:
    """Whether there are fewer payoffs than the decision's features need, or all are the same."""
    return bool(row[SEEN] < cfg.features + 3 or row[SQUARES] == 0.0)


@compiled_large
def _fill_highest(
    cfg: BasisSurfaceConfig, row: Array, request: Request, sigma: float, work: Array, y: Array
) -> None:
    """Where in the region a draw is highest; the start, if nothing is allowed."""
    p, dy, f = cfg.size, cfg.dy, cfg.size + 1 + cfg.functions
    theta, functions, surface, rest = (
        work[:p],
        work[p + 1 : f],
        work[f : f + cfg.features],
        work[f + cfg.features :],
    )
    fill_functions(cfg, request.u, rest, functions)
    draw(row[TRIANGLE:], sigma, request.xi[: p - cfg.functions], theta)
    at_context(functions, theta[cfg.functions :], surface[1:])
    region, low, high = request.region, rest[:dy], rest[dy : 2 * dy]
    for j in range(dy):
        low[j], high[j] = 2.0 * region.low[j] - 1.0, 2.0 * region.high[j] - 1.0
    slopes, bends = surface[1 : 1 + dy], surface[1 + dy : 1 + 2 * dy]
    here = Region(low, high, False, region.guard)
    if not climb_in(region.guard, slopes, bends, surface[1 + 2 * dy :], here, rest[2 * dy :], y):
        for j in range(dy):
            y[j] = 2.0 * request.start[j] - 1.0
    for j in range(dy):
        y[j] = 0.5 + 0.5 * y[j]


@compiled
def decide(
    cfg: BasisSurfaceConfig, row: Array, pool: Array, request: Request, work: Array, y: Array
) -> int:
    if is_early(cfg, row):
        decide_evenly(request, False, 1.0, work, y)
    else:
        sigma = cfg.spread * math.sqrt(noise_of(row))
        _fill_highest(cfg, row, request, sigma, work, y)
    clip_into(request.region, y)
    return ALONE


@compiled
def best(cfg: BasisSurfaceConfig, row: Array, request: Request, work: Array, y: Array) -> None:
    if is_early(cfg, row):
        copy_into(y, request.start)
    else:
        _fill_highest(cfg, row, request, 0.0, work, y)
    clip_into(request.region, y)


@compiled
def inherit(
    cfg: BasisSurfaceConfig, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    """The model is that of the whole context: a bin that splits begins anew."""
    init(cfg, child, low)


@compiled
def progress(cfg: BasisSurfaceConfig, row: Array) -> int:
    return int(row[SEEN])


@compiled
def uses_context(cfg: BasisSurfaceConfig) -> bool:
    return True


def size(cfg: BasisSurfaceConfig) -> int:
    return cfg.size


def explain(
    cfg: BasisSurfaceConfig, row: Array, request: Request, centre: Array
) -> dict[str, Any]:
    """Its columns, and its noise."""
    found: dict[str, Any] = {"known": float(row[SEEN]), "columns": cfg.size}
    if row[SQUARES] > 0.0:
        found["noise"] = math.sqrt(row[SQUARES] / row[DEGREES])
    return found


def rule(cfg: BasisSurfaceConfig, row: Array) -> dict[str, Any] | None:
    """No reader of exported tables can follow it."""
    raise PolicyError(
        "a table is exported of what a reader can follow, but got `BasisSurface`: take "
        "`ResponseSurface`, or ask the policy itself"
    )


def fits(cfg: BasisSurfaceConfig, read: Read) -> bool:
    """Numbers so far from overflowing that what is computed from them is finite."""
    rows = read.rows
    sums, seen = rows[:, [SQUARES, DEGREES]], rows[:, SEEN]
    diagonal = rows[:, [TRIANGLE + k for k in pivots(cfg.size)]]
    return bool(
        np.isfinite(rows).all()
        and (abs(rows[:, TRIANGLE:]) <= FAR).all()
        and (diagonal >= SMALLEST_PIVOT).all()
        and (abs(rows[:, REFERENCE]) <= LARGEST_PAYOFF).all()
        and ((seen >= 0.0) & (seen < MOST_COUNTED) & (seen % 1 == 0.0)).all()
        and ((sums >= 0.0) & (sums <= FAR**1.5)).all()
        and ((sums[:, 1] >= 1e-30) | (sums[:, 0] == 0.0)).all()
    )


register(
    BasisSurfaceConfig,
    Learner.of(globals(), guarded=lambda cfg: True, largest_payoff=LARGEST_PAYOFF),
)
