"""[R | d]: all rungs as one triangle, into which payoffs are rotated (eq. 2 and 3).

Legend: φ the columns, w the weight of the next payoff, h = w φᵀ(RᵀR)⁻¹φ of a rung, e the error of
its prediction made before, r = e/√(1+h).
"""

import math
from typing import NamedTuple

from continuarm.core.compiling import Array, compiled, compiled_large
from continuarm.core.learners.smooth.layout import (
    ALIVE,
    DEGREES,
    LEVEL,
    MOST_RUNGS,
    SQUARES,
    STEP,
    WEIGHT,
    SmoothSurfaceConfig,
    alive_of,
    column_at,
    end_of,
    first_of,
    function_at,
    row_at,
    rung_at,
    size_of,
    triangle,
    worth_at,
)
from continuarm.core.learners.triangle import LEAST_DEGREES, SMALLEST_PIVOT, rotate

__all__ = [
    "Rotation",
    "append",
    "draw",
    "forget_level",
    "rescale",
    "ridge_of",
    "rotate_in",
    "spread",
    "swap",
    "take_in",
]

PRIOR_OF_LEVEL, PRIOR_OF_DECISION, PRIOR_OF_CONTEXT, BASELINE = 1e-6, 1e-3, 0.1, 0.1
BEND = 0.3  # of the prior: degrees from 1/BEND on are expected to matter less


@compiled
def ridge_of(cfg: SmoothSurfaceConfig, function: int, kind: int) -> float:
    """λ of a group's columns: smooth until payoffs say otherwise (eq. 2)."""
    if function == 0:
        return PRIOR_OF_LEVEL if kind == LEVEL else PRIOR_OF_DECISION
    k = function_at(function)
    a, b = cfg.table[k + 1], cfg.table[k + 3]
    if a == STEP:
        a = b = 0.0
    ridge = PRIOR_OF_CONTEXT * (1.0 + BEND * BEND * (a * a + b * b)) ** 1.5
    return float(BASELINE * ridge if kind == LEVEL else ridge)


@compiled_large
def append(cfg: SmoothSurfaceConfig, row: Array, function: int, kind: int) -> bool:
    """A group of columns behind all others, of which nothing is known; False: no room."""
    p, n, size = cfg.size, alive_of(row), size_of(cfg, kind)
    if n + size > p:
        return False
    for feature in range(first_of(cfg, kind), first_of(cfg, kind + 1)):
        for i in range(n):
            row[row_at(cfg, i) + n - i] = 0.0
        k = row_at(cfg, n)
        for j in range(p - n + 1):
            row[k + j] = 0.0
        row[k] = math.sqrt(ridge_of(cfg, function, kind) * row[WEIGHT])
        k = column_at(n)
        row[k], row[k + 1] = function, feature
        n += 1
    row[ALIVE] = n
    row[worth_at(cfg, function, kind)] = 0.0
    return True


class Rotation(NamedTuple):
    """How a payoff's columns were rotated in, and what that tells of each rung."""

    cosines: Array
    sines: Array
    lefts: Array  # √w r
    spreads: Array  # -½ ln(1+h)


@compiled_large
def rotate_in(cfg: SmoothSurfaceConfig, row: Array, new: Array, z: float, out: Rotation) -> None:
    """Rotate `new`, √w φ, into R; d waits for `take_in`. `z` is √w times the payoff.

    After the columns of a rung, what is left of z is what that rung had not foreseen, and the
    product of the cosines is 1/√(1+h): one rotation tells all rungs (eq. 3).
    """
    p, n, k, product, rung = cfg.size, alive_of(row), triangle(cfg), 1.0, 0
    for i in range(n):
        last, entering, cosine, sine = k + p - i, new[i], 1.0, 0.0
        if entering != 0.0:
            pivot = math.sqrt(row[k] * row[k] + entering * entering)
            cosine, sine = row[k] / pivot, entering / pivot
            row[k] = pivot
            rotate(row[k + 1 : k + n - i], new[i + 1 : n], cosine, sine)
        z = cosine * z - sine * row[last]
        product *= cosine
        out.cosines[i], out.sines[i] = cosine, sine
        k = last + 1
        while rung < MOST_RUNGS and i + 1 == end_of(row, rung):
            out.lefts[rung], out.spreads[rung] = z, math.log(product)
            rung += 1


@compiled
def take_in(cfg: SmoothSurfaceConfig, row: Array, z: float, rotation: Rotation) -> None:
    """Rotate `z`, √w times what is learned of the payoff, into d."""
    p, k = cfg.size, triangle(cfg)
    for i in range(alive_of(row)):
        last, cosine, sine = k + p - i, rotation.cosines[i], rotation.sines[i]
        d = row[last]
        row[last] = cosine * d + sine * z
        z = cosine * z - sine * d
        k = last + 1


@compiled
def forget_level(cfg: SmoothSurfaceConfig, row: Array, kept: float) -> None:
    """Keep this share of what is known of the level given the rest, and all of the rest (eq. 9).

    The level's column is the first one, so its row is what is known of it given the rest.
    """
    root, k = math.sqrt(kept), triangle(cfg)
    for i in range(k, k + cfg.size + 1):
        row[i] *= root
    row[k] = max(row[k], SMALLEST_PIVOT)


@compiled_large
def swap(cfg: SmoothSurfaceConfig, row: Array, i: int) -> None:
    """Let columns i and i + 1 change places: one rotation makes it a triangle again."""
    p, n = cfg.size, alive_of(row)
    for r in range(i):
        k = row_at(cfg, r) + i - r
        row[k], row[k + 1] = row[k + 1], row[k]
    k, below = row_at(cfg, i), row_at(cfg, i + 1)
    one, beside, two = row[k], row[k + 1], row[below]
    pivot = math.sqrt(beside * beside + two * two)
    cosine, sine = beside / pivot, two / pivot
    row[k], row[k + 1], row[below] = pivot, cosine * one, sine * one
    for column in range(i + 2, n + 1):
        j = column if column < n else p  # d stands at the end
        x, y = row[k + j - i], row[below + j - i - 1]
        row[k + j - i], row[below + j - i - 1] = cosine * x + sine * y, sine * x - cosine * y
    k = column_at(i)
    row[k], row[k + 2] = row[k + 2], row[k]
    row[k + 1], row[k + 3] = row[k + 3], row[k + 1]


@compiled_large
def rescale(cfg: SmoothSurfaceConfig, row: Array) -> None:
    """Scale all weights so that the next payoff has weight 1."""
    root, k, p, n = math.sqrt(row[WEIGHT]), triangle(cfg), cfg.size, alive_of(row)
    for i in range(n):  # what is never observed fades, but not to nothing: 0/0
        row[k] = max(row[k] / root, SMALLEST_PIVOT)
        for j in range(1, p - i + 1):
            row[k + j] /= root
        k += p - i + 1
    for rung in range(MOST_RUNGS):
        at = rung_at(rung)
        row[at + SQUARES] /= row[WEIGHT]
        row[at + DEGREES] /= row[WEIGHT]
        if row[at + DEGREES] < LEAST_DEGREES:  # too little is remembered to know the noise
            row[at + SQUARES] = row[at + DEGREES] = 0.0
    row[WEIGHT] = 1.0


@compiled_large
def draw(
    cfg: SmoothSurfaceConfig, row: Array, sigma: float, xi: Array, drawn: Array, mean: Array
) -> None:
    """The coefficients of a rung, `mean`, and a draw of them: Rθ = d + σξ (eq. 10)."""
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
