"""The fit of a gradient in one bin: a triangle that gradients are rotated into, and what it says.

Legend and equations as in `gradient_surface`.
"""

import math
from typing import NamedTuple

from continuarm.core.compiling import Array, compiled, compiled_large, copy_into, fill
from continuarm.core.learners.triangle import LEAST_DEGREES, SMALLEST_PIVOT, grow_older, rotate
from continuarm.core.request import Observation

__all__ = ["GradientSurfaceConfig"]

LARGEST_GRADIENT = 1e100  # squares must stay finite
LARGEST_WEIGHT = 1e12  # beyond it all weights are scaled back
GROWTH = 3.0  # a gradient counts at most so many times the largest before it

# a row: numbers, then the decision before any gradient, then for each block the rows of its
# triangle, each without the zeros before its diagonal. SEEN counts the bin's own gradients, AGE
# also the inherited ones, with the weight that they have kept.
SEEN, AGE, WEIGHT, SQUARES, DEGREES, LARGEST, START = 0, 1, 2, 3, 4, 5, 6


class GradientSurfaceConfig(NamedTuple):
    """The same as numbers."""

    dx: int
    dy: int
    block: int  # b: dy (one block, a full Hessian) or 1 (dy blocks, its diagonal)
    fade: float  # γ
    caution: float  # κ
    trust: float  # λ
    ridge: float
    varying_ridge: float
    grace: float
    memory: float  # 0: only eq. 2 fades


@compiled
def size(cfg: GradientSurfaceConfig) -> int:
    """p, the features of a block."""
    return 1 + cfg.dx + cfg.block


@compiled
def blocks(cfg: GradientSurfaceConfig) -> int:
    return cfg.dy // cfg.block


@compiled
def row_length(cfg: GradientSurfaceConfig, i: int) -> int:
    """Numbers of row i of a triangle: of R from the diagonal on, of D and of P."""
    return size(cfg) - i + 2 * cfg.block


@compiled
def triangle(cfg: GradientSurfaceConfig, block: int) -> int:
    p = size(cfg)
    return START + cfg.dy + block * (p * (p + 1) // 2 + 2 * p * cfg.block)


@compiled
def _ridge(cfg: GradientSurfaceConfig, i: int) -> float:
    if i == 0:
        return cfg.ridge
    return cfg.varying_ridge if i <= cfg.dx else cfg.trust


@compiled
def coefficients(cfg: GradientSurfaceConfig) -> int:
    """Slopes, bends and twists of a block, as `climb` wants them."""
    return 2 * cfg.block + cfg.block * (cfg.block - 1) // 2


@compiled
def init(cfg: GradientSurfaceConfig, row: Array, start: Array) -> None:
    fill(row, 0.0)
    row[WEIGHT] = 1.0
    copy_into(row[START : START + cfg.dy], start)
    for block in range(blocks(cfg)):
        k = triangle(cfg, block)
        for i in range(size(cfg)):
            row[k] = math.sqrt(_ridge(cfg, i))
            if i > cfg.dx:  # H = -κh on the diagonal (eq. 4)
                own = size(cfg) - i + cfg.block + i - 1 - cfg.dx
                row[k + own] = -cfg.caution * row[k]
            k += row_length(cfg, i)


@compiled_large
def age(cfg: GradientSurfaceConfig, row: Array, elapsed: float) -> None:
    """Let all that is known count less by the factor e^(-elapsed/memory)."""
    grow_older(row, WEIGHT, AGE, elapsed / cfg.memory)
    if row[WEIGHT] > LARGEST_WEIGHT:
        _shrink(cfg, row, 1.0 / row[WEIGHT])


@compiled
def _shrink(cfg: GradientSurfaceConfig, row: Array, factor: float) -> None:
    """Scale all weights, that of the next gradient to 1."""
    root = math.sqrt(factor)
    for block in range(blocks(cfg)):
        k = triangle(cfg, block)
        for i in range(size(cfg)):
            length = row_length(cfg, i)
            for j in range(length):
                row[k + j] *= root
            row[k] = max(row[k], SMALLEST_PIVOT)  # not to nothing: 0/0
            k += length
    row[SQUARES] *= factor
    row[DEGREES] *= factor
    row[WEIGHT] = 1.0
    if row[DEGREES] < LEAST_DEGREES:  # too little is remembered to know the noise
        row[SQUARES] = row[DEGREES] = 0.0


@compiled
def largest_counted(row: Array) -> float:
    """The largest entry of a gradient that counts (eq. 5)."""
    h = row[LARGEST]
    return min(GROWTH * h, LARGEST_GRADIENT) if h > 0.0 else LARGEST_GRADIENT


@compiled
def enter(
    cfg: GradientSurfaceConfig, row: Array, block: int, seen: Observation, work: Array
) -> tuple[float, float]:
    """Rotate a gradient into a triangle; its squared error one step ahead, ln of the cosines."""
    p, b, first, limit = size(cfg), cfg.block, block * cfg.block, largest_counted(row)
    root = math.sqrt(row[WEIGHT])
    work[0] = root
    for i in range(cfg.dx):
        work[1 + i] = root * seen.u[i]
    for j in range(b):
        work[1 + cfg.dx + j] = root * (2.0 * seen.y[first + j] - 1.0)
        work[p + j] = root * min(max(seen.gradient[first + j], -limit), limit)
        work[p + b + j] = 0.0
    k, log_cosines = triangle(cfg, block), 0.0
    for i in range(p):
        length, entering = row_length(cfg, i), work[i]
        if entering != 0.0:
            pivot = math.sqrt(row[k] * row[k] + entering * entering)
            cosine, sine = row[k] / pivot, entering / pivot
            row[k] = pivot
            rotate(row[k + 1 : k + length], work[i + 1 : i + length], cosine, sine)
            log_cosines += math.log(cosine)
        k += length
    square = 0.0
    for j in range(b):
        error = (work[p + j] + row[LARGEST] * work[p + b + j]) / root
        square += error * error
    return square, log_cosines


@compiled_large
def _hessian(cfg: GradientSurfaceConfig, row: Array, block: int, hessian: Array) -> None:
    """Solve RH = D + hP for the rows of v, and take the symmetric part (eq. 4)."""
    p, b, k = size(cfg), cfg.block, triangle(cfg, block + 1)
    least = math.sqrt(cfg.trust * row[WEIGHT]) if cfg.memory > 0.0 else 0.0
    for n in range(b - 1, -1, -1):
        k -= row_length(cfg, p - b + n)
        for j in range(b):
            entry = k + b - n + j
            hessian[n, j] = row[entry] + row[LARGEST] * row[entry + b]
        for other in range(n + 1, b):
            for j in range(b):
                hessian[n, j] -= row[k + other - n] * hessian[other, j]
        lack = max(least - row[k], 0.0)  # where there is a memory, the ridge does not fade
        hessian[n, n] -= lack * cfg.caution * row[LARGEST]
        for j in range(b):
            hessian[n, j] /= row[k] + lack
    for n in range(b):
        for j in range(n):
            hessian[n, j] = hessian[j, n] = 0.5 * (hessian[n, j] + hessian[j, n])


@compiled
def _means(cfg: GradientSurfaceConfig, row: Array, block: int, u: Array, means: Array) -> None:
    """Fill row 0 of `means` with the mean v and the mean g at u, the fits by (1, u) (eq. 3)."""
    dx, outs = cfg.dx, 2 * cfg.block
    k = triangle(cfg, block)
    for i in range(dx):
        k += row_length(cfg, i)
    for i in range(dx, -1, -1):
        least = math.sqrt(_ridge(cfg, i) * row[WEIGHT]) if cfg.memory > 0.0 else 0.0
        for out in range(outs):
            total = row[k + 1 + dx - i + out]
            for j in range(1, 1 + dx - i):
                total -= row[k + j] * means[i + j, out]
            means[i, out] = total / max(row[k], least)
        k -= row_length(cfg, i - 1)
    for i in range(dx):
        for out in range(outs):
            means[0, out] += u[i] * means[1 + i, out]


@compiled
def surface(cfg: GradientSurfaceConfig, row: Array, block: int, u: Array, work: Array) -> None:
    """Fill slopes, bends and twists of the quadratic whose gradient is fitted, at u."""
    b, k = cfg.block, coefficients(cfg)
    hessian = work[k : k + b * b].reshape(b, b)
    means = work[k + b * b : k + b * (b + 2 + 2 * cfg.dx)].reshape(1 + cfg.dx, 2 * b)
    _hessian(cfg, row, block, hessian)
    _means(cfg, row, block, u, means)
    n = 2 * b
    for j in range(b):
        work[j] = means[0, b + j]
        for other in range(b):
            work[j] -= hessian[j, other] * means[0, other]
        work[b + j] = hessian[j, j]
        for other in range(j + 1, b):
            work[n] = hessian[j, other]
            n += 1


@compiled_large
def hand_down(
    cfg: GradientSurfaceConfig, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    """The parent's fit in the child's u = (u - m)/s, its gradients with weight `keep`."""
    copy_into(child, parent)
    child[SEEN] = 0.0
    child[AGE] *= keep
    _shrink(cfg, child, keep / parent[WEIGHT])
    for block in range(blocks(cfg)):
        k = triangle(cfg, block)
        for i in range(1 + cfg.dx):
            for axis in range(max(i - 1, 0), cfg.dx):
                middle, half = 0.5 * (low[axis] + high[axis]), 0.5 * (high[axis] - low[axis])
                column = k - i + 1 + axis
                if i == 0:
                    child[column] -= middle * child[k]
                child[column] /= half
            k += row_length(cfg, i)
