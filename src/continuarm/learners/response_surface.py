"""A sampled response surface in one bin; "eq. N" cites docs/recommended.md.

Legend: u the context in [-1, 1]^dx of its bin, v = 2y - 1 the decision in [-1, 1]^dy, φ the p
features, θ their coefficients, w the weight of the next observation, [R | d] the triangle with
RᵀR = Σ wφφᵀ + ridge and Rᵀd = Σ wφz, s² the variance of the noise.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from continuarm.jit import Array, compiled, compiled_large, copy_into
from continuarm.learners.boxed_peak import climb, peak
from continuarm.learners.protocol import ALONE, Learner, register

__all__ = ["ResponseSurface", "size"]

# a row: numbers, then the first answer, the lowest and the highest decision told, then the rows of
# the triangle [R | d], each without the zeros before its diagonal. SEEN counts the bin's own
# payoffs, KNOWN also the inherited ones, AGE those with the weight that they have kept.
SEEN, KNOWN, AGE, WEIGHT, SQUARES, DEGREES, REFERENCE, START = 0, 1, 2, 3, 4, 5, 6, 7
LARGEST_WEIGHT = 1e12  # beyond it all weights are scaled back
SMALLEST_PIVOT = 1e-6  # a parameter about which nothing is known stays undetermined, not infinite


class ResponseSurface(NamedTuple):
    """Configuration: a quadratic in the decision, with coefficients affine in the context (eq. 1).

    The features of the decision are its dy dimensions, their dy squares, their products.
    """

    dx: int
    dy: int
    terms: int  # q features of the decision: 2dy (a diagonal Hessian) or dy + dy(dy+1)/2
    varying: int  # for the first of them, from dy on, the coefficient depends on the context
    pairs: bool  # all products of two context dimensions in the baseline, or the squares
    fade: float = 0.5  # γ
    spread: float = 0.6  # κ
    ridge: float = 1e-4  # λ
    varying_ridge: float = 0.3  # λ' of what depends on the context
    middle: float = 0.5  # the first decisions keep to this part of each side of the box
    grace: float = 20.0  # observations before old ones fade
    memory: float = 0.0  # payoffs of the policy after which one counts a third; 0: only (4) fades


@compiled
def _baseline(cfg: ResponseSurface) -> int:
    return 1 + cfg.dx + (cfg.dx * (cfg.dx + 1) // 2 if cfg.pairs else cfg.dx)


@compiled
def size(cfg: ResponseSurface) -> int:
    """p, the number of coefficients."""
    return _baseline(cfg) + cfg.terms + cfg.dx * cfg.varying


@compiled
def _triangle(cfg: ResponseSurface) -> int:
    return START + 3 * cfg.dy


def width(cfg: ResponseSurface) -> int:
    p = size(cfg)
    return int(_triangle(cfg) + p * (p + 3) // 2)


def scratch(cfg: ResponseSurface) -> int:
    """θ, or φ and z; then what the bin leaves for its challengers, or the search for the peak."""
    return int(size(cfg) + 1 + max(3, cfg.dy * (2 * cfg.dy + 1)))


def init(cfg: ResponseSurface, row: Array, start: Array) -> None:
    row[:] = 0.0
    row[WEIGHT] = 1.0
    row[START : START + cfg.dy] = start
    row[START + cfg.dy : START + 2 * cfg.dy] = 1.0
    k = _triangle(cfg)
    p, constant = size(cfg), _baseline(cfg) + cfg.terms
    for i in range(p):
        row[k] = math.sqrt(cfg.ridge if i < constant else cfg.varying_ridge)
        k += p - i + 1


@compiled
def _features(cfg: ResponseSurface, u: Array, y: Array, scale: float, out: Array) -> None:
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


@compiled
def _rotate(row: Array, new: Array, cosine: float, sine: float) -> None:
    for j in range(row.shape[0]):
        old, fresh = row[j], new[j]
        row[j] = cosine * old + sine * fresh
        new[j] = cosine * fresh - sine * old


@compiled_large
def _age(cfg: ResponseSurface, row: Array, elapsed: float) -> None:
    """Let all that is known count less by the factor e^(-elapsed/memory) (eq. 10)."""
    growth = math.exp(min(elapsed / cfg.memory, 20.0))
    row[WEIGHT] *= growth
    row[AGE] /= growth
    if row[WEIGHT] > LARGEST_WEIGHT:
        root = math.sqrt(row[WEIGHT])
        for k in range(_triangle(cfg), row.shape[0]):
            row[k] /= root
        row[SQUARES] /= row[WEIGHT]
        row[DEGREES] /= row[WEIGHT]
        row[WEIGHT] = 1.0


@compiled_large
def _learn(
    cfg: ResponseSurface, row: Array, u: Array, work: Array, y: Array, z: float, elapsed: float
) -> tuple[float, float, float]:
    """Rotate an observation into the triangle (eq. 2).

    The squared residual r² = e²/(1+h), and -½ ln(1+h), both one step ahead; the variance before.
    """
    p = size(cfg)
    if cfg.memory > 0.0:
        _age(cfg, row, elapsed)
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
            _rotate(row[k + 1 : k + 1 + length], work[i + 1 : i + 1 + length], cosine, sine)
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
        lowest, highest = START + cfg.dy + j, START + 2 * cfg.dy + j
        row[lowest], row[highest] = min(row[lowest], y[j]), max(row[highest], y[j])
    row[SEEN] += 1.0
    row[KNOWN] += 1.0
    row[AGE] += 1.0
    row[WEIGHT] = weight / (1.0 - cfg.fade / (row[AGE] + cfg.grace))  # eq. 4
    return square, log_cosines, variance


@compiled
def tell(
    cfg: ResponseSurface,
    row: Array,
    pool: Array,
    ticket: int,
    u: Array,
    work: Array,
    y: Array,
    z: float,
    gradient: Array,
    elapsed: float,
    asked: bool,
) -> None:
    square, log_cosines, _ = _learn(cfg, row, u, work, y, z, elapsed)
    p = size(cfg)
    work[p + 1], work[p + 2], work[p + 3] = square, log_cosines, elapsed  # for the challengers


@compiled
def challenge(
    cfg: ResponseSurface, row: Array, u: Array, work: Array, y: Array, z: float
) -> float:
    """The logarithm of the two predictive densities' ratio, with one variance (eq. 7)."""
    p = size(cfg)
    square, log_cosines, variance = _learn(cfg, row, u, work, y, z, work[p + 3])
    if variance == 0.0:
        return 0.0
    gap = square - work[p + 1]
    return log_cosines - work[p + 2] - 0.5 * gap / variance  # type: ignore[no-any-return]


@compiled_large
def _draw(cfg: ResponseSurface, row: Array, sigma: float, xi: Array, theta: Array) -> None:
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
def _highest(cfg: ResponseSurface, u: Array, work: Array, y: Array) -> None:
    """The decision where the surface with coefficients `work[:p]` is highest (eq. 6)."""
    dy, first = cfg.dy, _baseline(cfg)
    k = first + cfg.terms
    for i in range(cfg.dx):
        for j in range(cfg.varying):
            work[first + j] += work[k] * u[i]
            k += 1
    slopes, bends = work[first : first + dy], work[first + dy : first + 2 * dy]
    if cfg.terms > 2 * dy:
        climb(slopes, bends, work[first + 2 * dy : first + cfg.terms], work[k:], y)
    else:
        for j in range(dy):
            y[j] = peak(slopes[j], bends[j])
    for j in range(dy):
        y[j] = 0.5 + 0.5 * y[j]


@compiled
def _is_early(cfg: ResponseSurface, row: Array) -> bool:
    return bool(row[KNOWN] < size(cfg) + 3)


@compiled
def ask(
    cfg: ResponseSurface, row: Array, pool: Array, u: Array, work: Array, xi: Array, y: Array
) -> int:
    early = _is_early(cfg, row)
    if early or row[SQUARES] == 0.0:
        side = cfg.middle if early else 1.0
        for j in range(cfg.dy):  # uniform
            y[j] = 0.5 + side * 0.5 * math.erf(xi[j] / math.sqrt(2.0))
    else:
        variance = row[SQUARES] / row[DEGREES]
        _draw(cfg, row, cfg.spread * math.sqrt(row[WEIGHT] * variance), xi, work)
        _highest(cfg, u, work, y)
    return ALONE


@compiled
def best(cfg: ResponseSurface, row: Array, u: Array, work: Array, y: Array) -> None:
    if _is_early(cfg, row) or row[SQUARES] == 0.0:
        copy_into(y, row[START : START + cfg.dy])
    else:
        _draw(cfg, row, 0.0, work, work)
        _highest(cfg, u, work, y)
        for j in range(cfg.dy):  # nothing beyond what was tried
            lowest, highest = row[START + cfg.dy + j], row[START + 2 * cfg.dy + j]
            y[j] = min(max(y[j], lowest), highest)


def rule(cfg: ResponseSurface, row: Array) -> dict[str, Any] | None:
    """The coefficients of (1) that concern the decision, without and with the context."""
    if _is_early(cfg, row) or row[SQUARES] == 0.0:
        return None
    theta, first = np.empty(scratch(cfg)), _baseline(cfg)
    _draw(cfg, row, 0.0, theta, theta)
    varying = theta[first + cfg.terms : size(cfg)].reshape(cfg.dx, cfg.varying)
    return {
        "terms": theta[first : first + cfg.terms].tolist(),
        "by_context": varying.tolist(),
        "tried": row[START + cfg.dy : START + 3 * cfg.dy].reshape(2, cfg.dy).tolist(),
    }


@compiled
def inherit(
    cfg: ResponseSurface, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    _inherit(cfg, parent, child, low, high, keep)


@compiled_large
def _inherit(
    cfg: ResponseSurface, parent: Array, child: Array, low: Array, high: Array, keep: float
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
def progress(cfg: ResponseSurface, row: Array) -> int:
    return int(row[SEEN])


@compiled
def remembered(cfg: ResponseSurface, row: Array) -> float:
    return float(min(row[SEEN], row[AGE]))


register(
    ResponseSurface,
    Learner(
        width=width,
        pool_width=lambda cfg: 3,
        draws=lambda cfg: int(size(cfg) - _baseline(cfg)),
        uses_context=lambda cfg: True,
        uses_gradient=lambda cfg: False,
        init=init,
        ask=ask,
        tell=tell,
        challenge=challenge,
        best=best,
        inherit=inherit,
        progress=progress,
        remembered=remembered,
        rule=rule,
        scratch=scratch,
    ),
)
