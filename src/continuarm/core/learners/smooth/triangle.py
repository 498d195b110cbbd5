"""[R | d]: all rungs as one triangle, into which payoffs are rotated (eq. 2 and 3).

Legend: φ the p columns, w the weight of the next payoff, h = w φᵀ(RᵀR)⁻¹φ of a rung, e the error
of its prediction made before, r = e/√(1+h).
"""

import math

from continuarm.core.compiling import Array, compiled, compiled_large
from continuarm.core.learners.smooth.layout import (
    DEGREES,
    SQUARES,
    WEIGHT,
    SmoothSurfaceConfig,
    end_of,
    ridge_of,
    row_at,
    rung_at,
    triangle,
)
from continuarm.core.learners.triangle import LEAST_DEGREES, SMALLEST_PIVOT, rotate

__all__ = ["draw", "fill_ridges", "rescale", "rotate_in", "spread"]


@compiled
def fill_ridges(cfg: SmoothSurfaceConfig, row: Array) -> None:
    """Λ, in a row of zeros."""
    for i in range(cfg.size):
        row[row_at(cfg, i)] = math.sqrt(ridge_of(cfg, i))


@compiled_large
def rotate_in(
    cfg: SmoothSurfaceConfig, row: Array, new: Array, lefts: Array, spreads: Array
) -> None:
    """Rotate `new`, √w [φ | z], into the triangle; for each rung √w r, and -½ ln(1+h).

    After the columns of a rung, what is left of the last number is what that rung had not
    foreseen, and the product of the cosines is 1/√(1+h): one rotation tells all rungs (eq. 3).
    """
    p, k, cosines, rung = cfg.size, triangle(cfg), 1.0, 0
    for i in range(p):
        length, entering = p - i, new[i]
        if entering != 0.0:
            pivot = math.sqrt(row[k] * row[k] + entering * entering)
            cosine, sine = row[k] / pivot, entering / pivot
            row[k] = pivot
            rotate(row[k + 1 : k + 1 + length], new[i + 1 : i + 1 + length], cosine, sine)
            cosines *= cosine
        k += length + 1
        if i + 1 == end_of(cfg, rung):
            lefts[rung], spreads[rung] = new[p], math.log(cosines)
            rung += 1


@compiled_large
def rescale(cfg: SmoothSurfaceConfig, row: Array) -> None:
    """Scale all weights so that the next payoff has weight 1."""
    root, k, p = math.sqrt(row[WEIGHT]), triangle(cfg), cfg.size
    for i in range(p):  # what is never observed fades, but not to nothing: 0/0
        row[k] = max(row[k] / root, SMALLEST_PIVOT)
        for j in range(1, p - i + 1):
            row[k + j] /= root
        k += p - i + 1
    for rung in range(cfg.rungs):
        at = rung_at(cfg, rung)
        row[at + SQUARES] /= row[WEIGHT]
        row[at + DEGREES] /= row[WEIGHT]
        if row[at + DEGREES] < LEAST_DEGREES:  # too little is remembered to know the noise
            row[at + SQUARES] = row[at + DEGREES] = 0.0
    row[WEIGHT] = 1.0


@compiled_large
def draw(
    cfg: SmoothSurfaceConfig, row: Array, sigma: float, xi: Array, drawn: Array, mean: Array
) -> None:
    """The coefficients of a rung, `mean`, and a draw of them: Rθ = d + σξ (eq. 5)."""
    p, end = cfg.size, mean.shape[0]
    for i in range(end - 1, -1, -1):
        k = row_at(cfg, i)
        one, two = row[k + p - i], sigma * xi[i]
        for j in range(1, end - i):  # each sum waits for itself, not for the other
            two -= row[k + j] * drawn[i + j]
            one -= row[k + j] * mean[i + j]
        mean[i], drawn[i] = one / row[k], two / row[k]
    for i in range(end):
        drawn[i] += mean[i]


@compiled_large
def spread(cfg: SmoothSurfaceConfig, row: Array, a: Array, b: Array) -> tuple[float, float, float]:
    """|x_a|², x_a·x_b and |x_b|² of x = R⁻ᵀa, for two vectors of a rung's columns.

    So the variance of (a + tb)·θ is s²w times the first plus 2t times the second plus t² times the
    third. Both vectors are used up.
    """
    aa = ab = bb = 0.0
    for i in range(a.shape[0]):
        k = row_at(cfg, i)
        x, y = a[i] / row[k], b[i] / row[k]
        if x != 0.0 or y != 0.0:
            for j in range(1, a.shape[0] - i):
                a[i + j] -= row[k + j] * x
                b[i + j] -= row[k + j] * y
        aa += x * x
        ab += x * y
        bb += y * y
    return aa, ab, bb
