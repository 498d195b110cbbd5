"""[R | d]: least squares as a triangle, into which observations are rotated (eq. 2).

Legend: φ the p features, w the weight of the next observation, h = w φᵀ(RᵀR)⁻¹φ.
"""

import math
from typing import NamedTuple

from continuarm.core.compiling import Array, compiled, compiled_large
from continuarm.core.learners.surface.candidates import rescale_candidates
from continuarm.core.learners.surface.layout import (
    BEGUN,
    DEGREES,
    FOURTHS,
    LOUDEST,
    SQUARES,
    WEIGHT,
    ResponseSurfaceConfig,
    candidates,
    cross,
    first_of,
    size_of,
    triangle,
)
from continuarm.core.learners.triangle import LEAST_DEGREES, SMALLEST_PIVOT, rotate

__all__ = [
    "NOT_TURNED",
    "Turned",
    "begin_of",
    "draw",
    "fill_ridge",
    "forget_decision",
    "forget_level",
    "gate_of",
    "rescale",
    "rotate_in",
    "scale_cross",
    "solve",
    "solve_last",
    "spread_of",
    "take_out",
]

SMALL = 1e-100  # a product of cosines below it goes on as a logarithm


@compiled
def fill_ridge(cfg: ResponseSurfaceConfig, row: Array) -> None:
    """Λ, in a row of zeros."""
    k, p, constant = triangle(cfg), size_of(row), first_of(row) + cfg.terms
    for i in range(p):
        row[k] = math.sqrt(cfg.ridge if i < constant else cfg.varying_ridge)
        k += p - i + 1


@compiled
def begin_of(cfg: ResponseSurfaceConfig, row: Array, i: int) -> int:
    """Where in a row of the learner row i of the triangle begins."""
    return triangle(cfg) + i * (size_of(row) + 1) - i * (i - 1) // 2


class Turned(NamedTuple):
    """How far an observation has been turned: the product of its cosines, as log + ln(rest)."""

    logarithm: float
    rest: float


NOT_TURNED = Turned(0.0, 1.0)


@compiled
def spread_of(turned: Turned) -> float:
    """-½ ln(1+h), when it has been turned into all rows."""
    return turned.logarithm + math.log(turned.rest)


@compiled_large
def rotate_in(
    cfg: ResponseSurfaceConfig,
    row: Array,
    new: Array,
    taken: Array,
    others: Array,
    first: int,
    end: int,
    turned: Turned,
) -> Turned:
    """Rotate the observation `new`, √w [φ | z], into these rows of the triangle, in their order.

    After all rows what is left of its last number is √w e/√(1+h); after the first k, the same of
    the fit of the first k features alone. `taken` is what each row of the triangle has
    taken of that number, if it was 1. `others` are the candidates' features, or none: what is left
    of them is what the model cannot say of them (eq. 24).
    """
    p, c = size_of(row), others.shape[0]
    k, log_cosines, cosines = begin_of(cfg, row, first), turned.logarithm, turned.rest
    for i in range(first, end):
        length, entering = p - i, new[i]
        taken[i] = 0.0
        if entering != 0.0:
            pivot = math.sqrt(row[k] * row[k] + entering * entering)
            cosine, sine = row[k] / pivot, entering / pivot
            row[k] = pivot
            rotate(row[k + 1 : k + 1 + length], new[i + 1 : i + 1 + length], cosine, sine)
            if c > 0:
                begin = cross(cfg, i)
                rotate(row[begin : begin + c], others, cosine, sine)
            taken[i] = sine * cosines
            cosines *= cosine
            if cosines < SMALL:
                log_cosines += math.log(cosines)
                cosines = 1.0
        k += length + 1
    return Turned(log_cosines, cosines)


@compiled
def take_out(cfg: ResponseSurfaceConfig, row: Array, taken: Array, amount: float) -> None:
    """As if the last number of the observation just rotated in had been less by `amount`."""
    k, p = triangle(cfg), size_of(row)
    for i in range(p):
        row[k + p - i] -= taken[i] * amount
        k += p - i + 1


@compiled
def scale_cross(cfg: ResponseSurfaceConfig, row: Array, i: int, factor: float) -> None:
    """Multiply what row i of the triangle says of the candidates."""
    if row[BEGUN] > 0.0:
        begin = cross(cfg, i)
        for j in range(candidates(cfg)):
            row[begin + j] *= factor


@compiled_large
def forget_level(cfg: ResponseSurfaceConfig, row: Array, share: float) -> None:
    """Keep this share of what is known of the level given the rest, at least one payoff's worth.

    The constant is the first column: its row says nothing else (eq. 19).
    """
    k = triangle(cfg)
    factor = max(math.sqrt(share), min(math.sqrt(row[WEIGHT]) / row[k], 1.0))
    for j in range(size_of(row) + 1):
        row[k + j] *= factor
    scale_cross(cfg, row, 0, factor)


@compiled_large
def forget_decision(cfg: ResponseSurfaceConfig, row: Array, share: float) -> None:
    """Keep this share of what is known of the decision's coefficients.

    They are the last columns: their rows say what is known of them, whatever the level (eq. 17).
    """
    p, first, factor = size_of(row), first_of(row), math.sqrt(share)
    k = begin_of(cfg, row, first)
    for i in range(first, p):
        for j in range(p - i + 1):
            row[k + j] *= factor
        scale_cross(cfg, row, i, factor)
        row[k] = max(row[k], SMALLEST_PIVOT)
        k += p - i + 1


@compiled_large
def rescale(cfg: ResponseSurfaceConfig, row: Array) -> None:
    """Scale all weights so that the next observation has weight 1."""
    root, k, p = math.sqrt(row[WEIGHT]), triangle(cfg), size_of(row)
    rescale_candidates(cfg, row, root)
    for i in range(p):  # what is never observed fades, but not to nothing: 0/0
        row[k] = max(row[k] / root, SMALLEST_PIVOT)
        for j in range(1, p - i + 1):
            row[k + j] /= root
        scale_cross(cfg, row, i, 1.0 / root)
        k += p - i + 1
    row[SQUARES] /= row[WEIGHT]
    row[DEGREES] /= row[WEIGHT]
    row[FOURTHS] /= row[WEIGHT] * row[WEIGHT]
    row[WEIGHT] = 1.0
    if row[DEGREES] < LEAST_DEGREES:  # too little is remembered to know the noise
        row[SQUARES] = row[DEGREES] = row[FOURTHS] = row[LOUDEST] = 0.0


@compiled
def gate_of(cfg: ResponseSurfaceConfig, gates: Array, i: int) -> float:
    """f of coefficient i of the decision (eq. 11): 1, or that of slopes or curvatures that vary.

    Terms that have entered are believed.
    """
    k = i - cfg.terms
    if k < 0 or k >= cfg.dx * cfg.varying:
        return 1.0
    return gates[k // cfg.varying if k % cfg.varying < cfg.dy else cfg.dx]  # type: ignore[no-any-return]


@compiled
def drawn_of(cfg: ResponseSurfaceConfig, gates: Array, i: int) -> float:
    """g of coefficient i (eq. 11): one context that matters lets the slopes of all vary."""
    k, gate = i - cfg.terms, gate_of(cfg, gates, i)
    if k < 0 or k >= cfg.dx * cfg.varying or k % cfg.varying >= cfg.dy:
        return gate
    return float(max(gate, gates[cfg.dx + 1]))


@compiled_large
def solve(cfg: ResponseSurfaceConfig, row: Array, gates: Array, theta: Array) -> None:
    """The coefficients that concern the decision, as far as they are believed (eq. 11)."""
    p, first = size_of(row), first_of(row)
    k, least = triangle(cfg) + p * (p + 3) // 2, _least_pivot(cfg, row)
    for i in range(p - 1, first - 1, -1):
        length = p - i
        k -= length + 1
        total = row[k + length]
        for j in range(1, length):
            total -= row[k + j] * theta[i + j]
        theta[i] = gate_of(cfg, gates, i - first) * total / max(row[k], least)


@compiled_large
def draw(
    cfg: ResponseSurfaceConfig,
    row: Array,
    gates: Array,
    sigma: float,
    xi: Array,
    drawn: Array,
    mean: Array,
) -> None:
    """The same, `mean`, and a draw of them: Rδ = σ√g ξ is added (eq. 5, 11)."""
    p, first = size_of(row), first_of(row)
    k, least = triangle(cfg) + p * (p + 3) // 2, _least_pivot(cfg, row)
    for i in range(p - 1, first - 1, -1):
        length = p - i
        k -= length + 1
        pivot, one = max(row[k], least), row[k + length]
        two = sigma * math.sqrt(drawn_of(cfg, gates, i - first)) * xi[i - first]
        for j in range(1, length):  # each sum waits for itself, not for the other
            two -= row[k + j] * drawn[i + j]
            one -= row[k + j] * mean[i + j]
        mean[i], drawn[i] = gate_of(cfg, gates, i - first) * one / pivot, two / pivot
    for i in range(first, p):
        drawn[i] += mean[i]


@compiled
def _least_pivot(cfg: ResponseSurfaceConfig, row: Array) -> float:
    """With a memory the ridge fades, too."""
    return math.sqrt(cfg.ridge * row[WEIGHT]) if cfg.memory > 0.0 else 0.0


@compiled_large
def solve_last(cfg: ResponseSurfaceConfig, row: Array, end: int, theta: Array) -> None:
    """The coefficients from `end` on, of the terms that have entered: Rθ = d."""
    p = size_of(row)
    for i in range(p - 1, end - 1, -1):
        k = begin_of(cfg, row, i)
        total = row[k + p - i]
        for j in range(1, p - i):
            total -= row[k + j] * theta[i + j]
        theta[i] = total / row[k]


@compiled_large
def spread(
    cfg: ResponseSurfaceConfig, row: Array, gates: Array, a: Array, b: Array
) -> tuple[float, float, float]:
    """|x_a|², x_a·x_b and |x_b|² of x = √f R⁻ᵀa, for two vectors of the decision's coefficients.

    So the variance of (a + tb)·θ is s²w times the first plus 2t times the second plus t² times the
    third. Both vectors are used up.
    """
    p, first = size_of(row), first_of(row)
    k = begin_of(cfg, row, first)
    aa = ab = bb = 0.0
    for i in range(first, p):
        x, y = a[i] / row[k], b[i] / row[k]
        for j in range(1, p - i):
            a[i + j] -= row[k + j] * x
            b[i + j] -= row[k + j] * y
        gate = gate_of(cfg, gates, i - first)
        aa += gate * x * x
        ab += gate * x * y
        bb += gate * y * y
        k += p - i + 1
    return aa, ab, bb
