"""[R | d]: the posterior of a linear model, into which observations are rotated.

Legend: A = RᵀR the precision, the mean θ with Rθ = d, φ the p columns of an observation.
The rows of the triangle stand one after the other, each without the zeros before its diagonal.
"""

import math

from continuarm.core.compiling import Array, compiled, compiled_large, in_python
from continuarm.core.learners.triangle import rotate

__all__ = ["draw", "fill_ridges", "length", "numbers", "pivots", "rotate_in", "solve"]


@compiled
def numbers(p: int) -> int:
    """How many numbers a triangle of p columns has."""
    return p * (p + 3) // 2


@compiled
def row_at(p: int, i: int) -> int:
    """Where row i begins."""
    return i * (p + 1) - i * (i - 1) // 2


@compiled
def fill_ridges(triangle: Array, ridges: Array) -> None:
    """The prior, in zeros: A is diagonal, θ = 0."""
    p = ridges.shape[0]
    for i in range(p):
        triangle[row_at(p, i)] = math.sqrt(ridges[i])


@compiled_large
def rotate_in(triangle: Array, new: Array) -> float:
    """Rotate `new`, √w [φ | z], into the triangle; 1/√(1+h) with h = w φᵀA⁻¹φ.

    What is left of its last number is √w e/√(1+h), e the error of the prediction made before.
    """
    p, k, cosines = new.shape[0] - 1, 0, 1.0
    for i in range(p):
        left, entering = p - i, new[i]
        if entering != 0.0:
            pivot = math.sqrt(triangle[k] * triangle[k] + entering * entering)
            cosine, sine = triangle[k] / pivot, entering / pivot
            triangle[k] = pivot
            rotate(triangle[k + 1 : k + 1 + left], new[i + 1 :], cosine, sine)
            cosines *= cosine
        k += left + 1
    return cosines


@compiled_large
def draw(triangle: Array, sigma: float, xi: Array, theta: Array) -> None:
    """The last coefficients, as many as ξ has numbers, of a draw: Rθ = d + σξ; σ = 0: the mean."""
    p = theta.shape[0]
    first = p - xi.shape[0]
    for i in range(p - 1, first - 1, -1):
        k = row_at(p, i)
        total = triangle[k + p - i] + sigma * xi[i - first]
        for j in range(1, p - i):
            total -= triangle[k + j] * theta[i + j]
        theta[i] = total / triangle[k]


@compiled_large
def solve(triangle: Array, phi: Array) -> tuple[float, float]:
    """φᵀA⁻¹φ and φᵀθ, by x = R⁻ᵀφ: |x|² and x·d. φ is used up."""
    p, k, square, mean = phi.shape[0], 0, 0.0, 0.0
    for i in range(p):
        x = phi[i] / triangle[k]
        for j in range(1, p - i):
            phi[i + j] -= triangle[k + j] * x
        square += x * x
        mean += x * triangle[k + p - i]
        k += p - i + 1
    return square, mean


def pivots(p: int) -> list[int]:
    """Where the diagonal of R stands."""
    return [in_python(row_at)(p, i) for i in range(p)]


def length(p: int) -> int:
    """The same as `numbers`, uncompiled."""
    return in_python(numbers)(p)
