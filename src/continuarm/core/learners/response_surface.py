"""A sampled response surface in one bin; "eq. N" cites docs/recommended.md.

Legend: u the context in [-1, 1]^dx of its bin, v = 2y - 1 the decision in [-1, 1]^dy, φ the p
features, θ their coefficients, w the weight of the next observation, [R | d] the triangle with
RᵀR = Σ wφφᵀ + ridge and Rᵀd = Σ wφz, s² the variance of the noise.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from continuarm import checks
from continuarm.core.compiling import Array, compiled, compiled_large, copy_into, fill
from continuarm.core.learners.boxed_peak import climb, peak
from continuarm.core.learners.protocol import Learner, Read, register
from continuarm.core.learners.triangle import LEAST_DEGREES, SMALLEST_PIVOT, grow_older, rotate
from continuarm.core.request import (
    ALONE,
    Foreseen,
    Observation,
    Region,
    Request,
    clip_into,
    is_inside,
)
from continuarm.errors import SettingsError

__all__ = ["ResponseSurface", "ResponseSurfaceConfig"]

Hessian = Literal["varying", "constant", "diagonal"]
HESSIANS = {"varying": 0, "constant": 1, "diagonal": 2}
MOST_COEFFICIENTS = 100  # with more, only the diagonal of the Hessian is learned
MOST_VARYING = 50  # with more, less of the Hessian depends on the context
MOST_IN_A_ROW = 1000  # with more, nothing depends on the context but the baseline
MOST_AT_ALL = 2000  # a row has p²/2 numbers
MOST_PAIRED = 3  # context dimensions whose products are in the baseline

# a row: numbers, then the lowest and the highest decision told, then the rows of the triangle
# [R | d], each without the zeros before its diagonal. SEEN counts the bin's own payoffs, KNOWN
# also the inherited ones, AGE those with the weight that they have kept.
SEEN, KNOWN, AGE, WEIGHT, SQUARES, DEGREES, REFERENCE, TRIED = 0, 1, 2, 3, 4, 5, 6, 7
LARGEST_WEIGHT = 1e12  # beyond it all weights are scaled back
LARGEST_PAYOFF = 1e100  # squares of payoffs must stay finite
# of a state that was read: numbers in a triangle, the weight, and what is counted
FAR, HEAVIEST, MOST = 1e150, 1e30, 2.0**52


@dataclass(frozen=True, kw_only=True)
class ResponseSurface:
    """A quadratic in the decision, affine in the context, fitted and sampled (eq. 1 to 6).

    Parameters
    ----------
    memory : payoffs of the policy after which one counts a third; None: only eq. 4 fades.
    hessian : `"varying"`, the richest that can be paid for, `"constant"` in the context, or
        `"diagonal"` and constant.
    fade : γ of eq. 4, how old payoffs fade.
    spread : κ of eq. 5, how much of the posterior's spread is sampled.
    ridge, varying_ridge : λ, and that of what depends on the context.
    middle : the first decisions keep to this part of each side of the box.
    grace : observations before old ones fade.
    """

    memory: int | None = None
    hessian: Hessian = "varying"
    fade: float = 0.5
    spread: float = 0.6
    ridge: float = 1e-4
    varying_ridge: float = 0.3
    middle: float = 0.5
    grace: float = 20.0

    def __post_init__(self) -> None:
        checks.choice("hessian", self.hessian, HESSIANS)
        checks.normalise(
            self,
            memory=checks.optional(checks.whole, "memory", self.memory, 1),
            fade=checks.number("fade", self.fade, most=1.0, zero=True),
            spread=checks.number("spread", self.spread, zero=True),
            ridge=checks.number("ridge", self.ridge),
            varying_ridge=checks.number("varying_ridge", self.varying_ridge),
            middle=checks.number("middle", self.middle, most=1.0),
            grace=checks.number("grace", self.grace, least=2.0),
        )

    def configured(self, dx: int, dy: int) -> "ResponseSurfaceConfig":
        """The model with the most coefficients that can be paid for."""
        full = dy + dy * (dy + 1) // 2
        surface = ResponseSurfaceConfig(
            dx,
            dy,
            terms=2 * dy if self.hessian == "diagonal" else full,
            varying=dy,
            pairs=dx <= MOST_PAIRED,
            fade=self.fade,
            spread=self.spread,
            ridge=self.ridge,
            varying_ridge=self.varying_ridge,
            middle=self.middle,
            grace=self.grace,
            memory=float(self.memory or 0),
        )
        if size(surface) > MOST_COEFFICIENTS:
            diagonal = surface._replace(terms=2 * dy)
            if size(diagonal) <= MOST_IN_A_ROW:
                return diagonal
            return _affordable(diagonal._replace(varying=0))  # a tell takes p², a row as much room
        if self.hessian == "varying":
            for varying in (full, 2 * dy):
                richer = surface._replace(varying=varying)
                if size(richer) <= MOST_VARYING:
                    return richer
        return surface


def _affordable(surface: "ResponseSurfaceConfig") -> "ResponseSurfaceConfig":
    p = int(size(surface))
    if p > MOST_AT_ALL:
        raise SettingsError(
            f"a response surface has at most {MOST_AT_ALL} coefficients, "
            f"but got {p} with dx={surface.dx}, dy={surface.dy}: take `StaticKWSA`"
        )
    return surface


class ResponseSurfaceConfig(NamedTuple):
    """The same as numbers.

    The features of the decision are its dy dimensions, their dy squares, their products.
    """

    dx: int
    dy: int
    terms: int  # q features of the decision: 2dy (a diagonal Hessian) or dy + dy(dy+1)/2
    varying: int  # for the first of them, from dy on (or none), it depends on the context
    pairs: bool  # all products of two context dimensions in the baseline, or the squares
    fade: float  # γ
    spread: float  # κ
    ridge: float  # λ
    varying_ridge: float  # λ' of what depends on the context
    middle: float
    grace: float
    memory: float  # 0: only eq. 4 fades


@compiled
def _baseline(cfg: ResponseSurfaceConfig) -> int:
    return 1 + cfg.dx + (cfg.dx * (cfg.dx + 1) // 2 if cfg.pairs else cfg.dx)


@compiled
def size(cfg: ResponseSurfaceConfig) -> int:
    """p, the number of coefficients."""
    return _baseline(cfg) + cfg.terms + cfg.dx * cfg.varying


@compiled
def _triangle(cfg: ResponseSurfaceConfig) -> int:
    return TRIED + 2 * cfg.dy


def width(cfg: ResponseSurfaceConfig) -> int:
    p = size(cfg)
    return int(_triangle(cfg) + p * (p + 3) // 2)


def scratch(cfg: ResponseSurfaceConfig) -> int:
    """θ, or φ and z; the region in v; room for the search for the peak."""
    return int(size(cfg) + 1 + 2 * cfg.dy + cfg.dy * (2 * cfg.dy + 1))


@compiled
def init(cfg: ResponseSurfaceConfig, row: Array, start: Array) -> None:
    fill(row, 0.0)
    row[WEIGHT] = 1.0
    fill(row[TRIED : TRIED + cfg.dy], 1.0)
    k = _triangle(cfg)
    p, constant = size(cfg), _baseline(cfg) + cfg.terms
    for i in range(p):
        row[k] = math.sqrt(cfg.ridge if i < constant else cfg.varying_ridge)
        k += p - i + 1


@compiled
def _features(cfg: ResponseSurfaceConfig, u: Array, y: Array, scale: float, out: Array) -> None:
    """φ times `scale`: 1, u, u_i u_j; v, ½v_j², v_j v_l; u_i times the first of these (eq. 1)."""
    dx, dy = cfg.dx, cfg.dy
    out[0] = scale
    for i in range(dx):
        out[1 + i] = scale * u[i]
    k = 1 + dx
    for i in range(dx):
        for other in range(i, dx if cfg.pairs else i + 1):
            out[k] = u[i] * out[1 + other]
            k += 1
    v = k
    for j in range(dy):
        out[v + j] = scale * (2.0 * y[j] - 1.0)
        out[v + dy + j] = (y[j] - 0.5) * out[v + j]
    k += 2 * dy
    if cfg.terms > 2 * dy:
        for j in range(dy):
            for other in range(j + 1, dy):
                out[k] = (2.0 * y[j] - 1.0) * out[v + other]
                k += 1
    for i in range(dx):
        for j in range(cfg.varying):
            out[k] = u[i] * out[v + j]
            k += 1


@compiled_large
def _age(cfg: ResponseSurfaceConfig, row: Array, elapsed: float) -> None:
    """Let all that is known count less by the factor e^(-elapsed/memory) (eq. 10)."""
    grow_older(row, WEIGHT, AGE, elapsed / cfg.memory)
    if row[WEIGHT] > LARGEST_WEIGHT:
        root = math.sqrt(row[WEIGHT])
        k = _triangle(cfg)
        for i in range(size(cfg)):  # what is never observed fades, but not to nothing: 0/0
            row[k] = max(row[k] / root, SMALLEST_PIVOT)
            for j in range(1, size(cfg) - i + 1):
                row[k + j] /= root
            k += size(cfg) - i + 1
        row[SQUARES] /= row[WEIGHT]
        row[DEGREES] /= row[WEIGHT]
        row[WEIGHT] = 1.0
        if row[DEGREES] < LEAST_DEGREES:  # too little is remembered to know the noise
            row[SQUARES] = row[DEGREES] = 0.0


@compiled_large
def _learn(
    cfg: ResponseSurfaceConfig, row: Array, seen: Observation, work: Array
) -> tuple[Foreseen, float]:
    """Rotate an observation into the triangle (eq. 2).

    How well it was foreseen, one step ahead; the variance before.
    """
    u, y, z = seen.u, seen.y, seen.z
    p = size(cfg)
    if cfg.memory > 0.0:
        _age(cfg, row, seen.elapsed)
    if row[KNOWN] == 0.0:
        row[REFERENCE] = z
    weight = row[WEIGHT]
    root = math.sqrt(weight)
    _features(cfg, u, y, root, work)
    work[p] = root * (z - row[REFERENCE])
    k, log_cosines, cosines = _triangle(cfg), 0.0, 1.0
    for i in range(p):
        length, entering = p - i, work[i]
        if entering != 0.0:
            pivot = math.sqrt(row[k] * row[k] + entering * entering)
            cosine, sine = row[k] / pivot, entering / pivot
            row[k] = pivot
            rotate(row[k + 1 : k + 1 + length], work[i + 1 : i + 1 + length], cosine, sine)
            cosines *= cosine
            if cosines < 1e-100:
                log_cosines += math.log(cosines)
                cosines = 1.0
        k += length + 1
    log_cosines += math.log(cosines)
    square = work[p] * work[p] / weight
    variance = row[SQUARES] / row[DEGREES] if row[SQUARES] > 0.0 else 0.0
    share = weight * math.exp(2.0 * log_cosines)  # eq. 3
    row[SQUARES] += share * square
    row[DEGREES] += share
    for j in range(cfg.dy):
        lowest, highest = TRIED + j, TRIED + cfg.dy + j
        row[lowest], row[highest] = min(row[lowest], y[j]), max(row[highest], y[j])
    row[SEEN] += 1.0
    row[KNOWN] += 1.0
    row[AGE] += 1.0
    row[WEIGHT] = weight / (1.0 - cfg.fade / (row[AGE] + cfg.grace))  # eq. 4
    return Foreseen(square, log_cosines), variance


@compiled
def tell(
    cfg: ResponseSurfaceConfig, row: Array, pool: Array, seen: Observation, work: Array
) -> Foreseen:
    foreseen, _ = _learn(cfg, row, seen, work)
    return foreseen


@compiled
def challenge(
    cfg: ResponseSurfaceConfig, row: Array, seen: Observation, bin_foresaw: Foreseen, work: Array
) -> float:
    """The logarithm of the two predictive densities' ratio, with one variance (eq. 7)."""
    mine, variance = _learn(cfg, row, seen, work)
    if variance == 0.0:
        return 0.0
    gap = mine.square - bin_foresaw.square
    return mine.spread - bin_foresaw.spread - 0.5 * gap / variance


@compiled_large
def _draw(cfg: ResponseSurfaceConfig, row: Array, sigma: float, xi: Array, theta: Array) -> None:
    """Solve Rθ = d + σξ for the coefficients that concern the decision (eq. 5)."""
    p, first = size(cfg), _baseline(cfg)
    k = _triangle(cfg) + p * (p + 3) // 2
    least = math.sqrt(cfg.ridge * row[WEIGHT]) if cfg.memory > 0.0 else 0.0  # the ridge fades, too
    for i in range(p - 1, first - 1, -1):
        length = p - i
        k -= length + 1
        total = row[k + length]
        if sigma > 0.0:
            total += sigma * xi[i - first]
        for j in range(1, length):
            total -= row[k + j] * theta[i + j]
        theta[i] = total / max(row[k], least)


@compiled_large
def _highest(
    cfg: ResponseSurfaceConfig, request: Request, whole: bool, work: Array, y: Array
) -> None:
    """The decision where the surface with coefficients `work[:p]` is highest (eq. 6).

    In the cube if `whole`, else in the region.
    """
    dy, first = cfg.dy, _baseline(cfg)
    k = first + cfg.terms
    for i in range(cfg.dx):
        for j in range(cfg.varying):
            work[first + j] += work[k] * request.u[i]
            k += 1
    slopes, bends = work[first : first + dy], work[first + dy : first + 2 * dy]
    low, high = work[k : k + dy], work[k + dy : k + 2 * dy]
    for j in range(dy):
        low[j] = -1.0 if whole else 2.0 * request.region.low[j] - 1.0
        high[j] = 1.0 if whole else 2.0 * request.region.high[j] - 1.0
    if cfg.terms > 2 * dy:
        twists, region = work[first + 2 * dy : first + cfg.terms], Region(low, high, False)
        climb(slopes, bends, twists, region, work[k + 2 * dy :], y)
    else:
        for j in range(dy):
            y[j] = peak(slopes[j], bends[j], low[j], high[j])
    for j in range(dy):
        y[j] = 0.5 + 0.5 * y[j]


@compiled
def _is_early(cfg: ResponseSurfaceConfig, row: Array) -> bool:
    return bool(row[KNOWN] < size(cfg) + 3)


@compiled
def decide(
    cfg: ResponseSurfaceConfig, row: Array, pool: Array, request: Request, work: Array, y: Array
) -> int:
    early = _is_early(cfg, row)
    if early or row[SQUARES] == 0.0:
        side = cfg.middle if early else 1.0
        low, high = request.region.low, request.region.high
        for j in range(cfg.dy):  # uniform
            half = side * (0.5 * (high[j] - low[j]))
            y[j] = 0.5 * (low[j] + high[j]) + half * math.erf(request.xi[j] / math.sqrt(2.0))
        clip_into(request.region, y)
    else:
        variance = row[SQUARES] / row[DEGREES]
        sigma = cfg.spread * math.sqrt(row[WEIGHT] * variance)
        _draw(cfg, row, sigma, request.xi, work)
        _highest(cfg, request, request.region.whole, work, y)
        clip_into(request.region, y)
    return ALONE


@compiled
def best(cfg: ResponseSurfaceConfig, row: Array, request: Request, work: Array, y: Array) -> None:
    if _is_early(cfg, row) or row[SQUARES] == 0.0:
        copy_into(y, request.start)
    else:
        _best_tried(cfg, row, request, True, work, y)
        if not request.region.whole and not is_inside(request.region, y):
            _best_tried(cfg, row, request, False, work, y)
    clip_into(request.region, y)


@compiled_large
def _best_tried(
    cfg: ResponseSurfaceConfig, row: Array, request: Request, whole: bool, work: Array, y: Array
) -> None:
    """Where the fitted surface is highest, and nothing beyond what was tried."""
    _draw(cfg, row, 0.0, work, work)
    _highest(cfg, request, whole, work, y)
    for j in range(cfg.dy):
        y[j] = min(max(y[j], row[TRIED + j]), row[TRIED + cfg.dy + j])


def rule(cfg: ResponseSurfaceConfig, row: Array) -> dict[str, Any] | None:
    """The coefficients of (1) that concern the decision, without and with the context."""
    if _is_early(cfg, row) or row[SQUARES] == 0.0:
        return None
    theta, first = np.empty(scratch(cfg)), _baseline(cfg)
    _draw(cfg, row, 0.0, theta, theta)
    if not np.isfinite(theta[first : size(cfg)]).all():
        return None
    varying = theta[first + cfg.terms : size(cfg)].reshape(cfg.dx, cfg.varying)
    return {
        "terms": theta[first : first + cfg.terms].tolist(),
        "by_context": varying.tolist(),
        "tried": row[TRIED : TRIED + 2 * cfg.dy].reshape(2, cfg.dy).tolist(),
    }


def explain(
    cfg: ResponseSurfaceConfig, row: Array, request: Request, centre: Array
) -> dict[str, Any]:
    """Slope and curvature of the fitted surface at its best decision, with standard errors."""
    found: dict[str, Any] = {"known": float(row[KNOWN])}
    if _is_early(cfg, row) or row[SQUARES] == 0.0:
        return found
    p, dy = int(size(cfg)), cfg.dy
    noise = math.sqrt(row[SQUARES] / row[DEGREES])
    triangle, entries, k = np.zeros((p, p)), row[_triangle(cfg) :], 0
    d = np.empty(p)
    for i in range(p):
        triangle[i, i:], d[i] = entries[k : k + p - i], entries[k + p - i]
        k += p - i + 1
    theta = np.linalg.solve(triangle, d)
    functionals = _slopes_and_bends(cfg, request.u, centre)
    spread = np.linalg.solve(triangle.T, functionals.T)  # R⁻ᵀ a, for each a
    errors = noise * math.sqrt(row[WEIGHT]) * np.sqrt((spread**2).sum(axis=0))
    values = functionals @ theta
    return found | {
        "slope": values[:dy].tolist(),
        "slope_error": errors[:dy].tolist(),
        "curvature": values[dy:].tolist(),
        "curvature_error": errors[dy:].tolist(),
        "noise": noise,
    }


def _slopes_and_bends(cfg: ResponseSurfaceConfig, u: Array, y: Array) -> Array:
    """The vectors a for which a·θ is the slope, then the second derivative, in each y_j."""
    p, dy, first = int(size(cfg)), cfg.dy, int(_baseline(cfg))
    at = np.zeros((2 * dy, p))
    v = 2.0 * y - 1.0
    for j in range(dy):
        at[j, first + j] = 2.0  # dv/dy = 2
        at[j, first + dy + j] = 2.0 * v[j]
        at[dy + j, first + dy + j] = 4.0
    k = first + 2 * dy
    if cfg.terms > 2 * dy:
        for j in range(dy):
            for other in range(j + 1, dy):
                at[j, k], at[other, k] = 2.0 * v[other], 2.0 * v[j]
                k += 1
    for i in range(cfg.dx):
        at[:, k : k + cfg.varying] = u[i] * at[:, first : first + cfg.varying]
        k += cfg.varying
    return at


@compiled
def inherit(
    cfg: ResponseSurfaceConfig, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    _inherit(cfg, parent, child, low, high, keep)


@compiled_large
def _inherit(
    cfg: ResponseSurfaceConfig, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    """The parent's surface in the child's u, its observations with weight `keep` (eq. 8)."""
    dx, p = cfg.dx, size(cfg)
    copy_into(child, parent)
    child[SEEN] = 0.0
    child[AGE] *= keep
    child[SQUARES] *= keep / parent[WEIGHT]
    child[DEGREES] *= keep / parent[WEIGHT]
    child[WEIGHT] = 1.0
    factor = math.sqrt(keep / parent[WEIGHT])
    first = _baseline(cfg)
    k = _triangle(cfg)
    for i in range(p):
        length, base = p - i, k - i  # child[base + j] is entry (i, j)
        for j in range(length + 1):
            child[k + j] *= factor
        column = 1 + dx
        for axis in range(dx):
            for other in range(axis, dx if cfg.pairs else axis + 1):
                if i <= column:
                    child[base + column] = _product(child, base, i, column, axis, other, low, high)
                column += 1
        for axis in range(dx):
            middle, half = 0.5 * (low[axis] + high[axis]), 0.5 * (high[axis] - low[axis])
            if i == 0:
                child[base + 1 + axis] -= middle * child[base]
            if i <= 1 + axis:
                child[base + 1 + axis] /= half
            for j in range(cfg.varying):
                column = first + cfg.terms + axis * cfg.varying + j
                if i <= first + j:
                    child[base + column] -= middle * child[base + first + j]
                if i <= column:
                    child[base + column] /= half
        child[k] = max(child[k], SMALLEST_PIVOT)
        k += length + 1


@compiled
def _product(
    child: Array, base: int, i: int, column: int, axis: int, other: int, low: Array, high: Array
) -> float:
    """Entry i of the column of `u_axis u_other` in the child's u."""
    middle, middle_other = 0.5 * (low[axis] + high[axis]), 0.5 * (low[other] + high[other])
    entry = child[base + column]
    if i <= 1 + axis:
        entry -= middle_other * child[base + 1 + axis]
    if i <= 1 + other:
        entry -= middle * child[base + 1 + other]
    if i == 0:
        entry += middle * middle_other * child[base]
    area = (high[axis] - low[axis]) * (high[other] - low[other])
    return 4.0 * entry / area  # type: ignore[no-any-return]


@compiled
def progress(cfg: ResponseSurfaceConfig, row: Array) -> int:
    return int(row[SEEN])


@compiled
def remembered(cfg: ResponseSurfaceConfig, row: Array) -> float:
    return float(min(row[SEEN], row[AGE]))


@compiled
def uses_context(cfg: ResponseSurfaceConfig) -> bool:
    return True


def draws(cfg: ResponseSurfaceConfig) -> int:
    return int(size(cfg) - _baseline(cfg))


def fits(cfg: ResponseSurfaceConfig, read: Read) -> bool:
    """Numbers so far from overflowing that what is computed from them is finite."""
    p, k, rows = int(size(cfg)), int(_triangle(cfg)), read.rows
    pivots = k + np.cumsum([0, *range(p + 1, 2, -1)])
    lowest, highest = rows[:, TRIED : TRIED + cfg.dy], rows[:, TRIED + cfg.dy : k]
    counts, known = rows[:, [SEEN, KNOWN, AGE]], rows[:, KNOWN] > 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(rows[:, SQUARES] > 0.0, rows[:, SQUARES] / rows[:, DEGREES], 0.0)
    return bool(
        (abs(rows[:, k:]) <= FAR).all()
        and (abs(rows[:, REFERENCE]) <= LARGEST_PAYOFF).all()
        and ((counts >= 0.0) & (counts < MOST)).all()
        and (rows[:, SEEN] <= rows[:, KNOWN]).all()
        and (rows[:, [SEEN, KNOWN]] % 1 == 0.0).all()
        and ((rows[:, WEIGHT] > 0.0) & (rows[:, WEIGHT] <= HEAVIEST)).all()
        and (
            (rows[:, [SQUARES, DEGREES]] >= 0.0) & (rows[:, [SQUARES, DEGREES]] <= FAR**1.5)
        ).all()
        and (variance <= FAR**1.5).all()
        and (rows[:, pivots] > 0.0).all()
        and ((lowest >= 0.0) & (lowest <= 1.0) & (highest >= 0.0) & (highest <= 1.0)).all()
        and ((lowest <= highest).all(axis=1) | ~known).all()
    )


register(
    ResponseSurfaceConfig,
    Learner.of(globals(), largest_payoff=LARGEST_PAYOFF),
)
