"""Personalised prices of several products whose demand is linear in all prices.

A customer buys product i with probability `q_i(x, p) = (s_i(x) - Σ_j B_ij (p_j - 3)) / n` or
nothing; a higher price of one product sends customers to the others (substitution). The payoff is
the margin of what was bought, or 0. Prices lie in [1, 5]; the numbers below keep every probability
positive and their sum below 1 in the whole box, and every best price inside it.
"""

import numpy as np

from continuarm.box import Box
from continuarm.checks import whole
from continuarm.jit import Array, compiled
from continuarm.problems.definition import Problem

__all__ = ["linear_demand"]

COST, MIDDLE, OWN, CROSS = 0.5, 3.0, 0.18, 0.05


@compiled
def _demand(x: Array, p: Array, waves: Array, slopes: Array, q: Array) -> None:
    n = q.shape[0]
    for i in range(n):
        q[i] = _appeal(x, waves, i)
        for j in range(n):
            q[i] -= slopes[i, j] * (p[j] - MIDDLE)
        q[i] /= n


@compiled
def _appeal(x: Array, waves: Array, i: int) -> float:
    """`s_i(x)`, between 0.5 and 0.7."""
    dx = x.shape[0]
    angle = waves[i, dx]
    for j in range(dx):
        angle += waves[i, j] * x[j]
    return 0.6 + 0.1 * np.sin(angle)  # type: ignore[no-any-return]


def linear_demand(*, dx: int = 2, dy: int = 3, seed: int = 0) -> Problem:
    """Prices of `dy` products for customers of `dx` traits; the traits' effect is random."""
    dx, dy = whole("dx", dx, 0), whole("dy", dy, 1)
    rng = np.random.default_rng(whole("seed", seed, 0))
    waves = np.column_stack([rng.uniform(-4.0, 4.0, (dy, dx)), rng.uniform(0.0, 6.0, dy)])
    slopes = np.full((dy, dy), -CROSS / max(dy - 1, 1))  # B
    np.fill_diagonal(slopes, OWN if dy > 1 else OWN - CROSS)  # alone, nobody sends customers
    inverse = np.linalg.inv(2.0 * slopes)

    def mean_payoff(x: Array, p: Array) -> float:
        q = np.empty(dy)
        _demand(x, p, waves, slopes, q)
        total = 0.0
        for i in range(dy):
            total += (p[i] - COST) * q[i]
        return total

    def sample_payoff(x: Array, p: Array, rng: np.random.Generator) -> float:
        q = np.empty(dy)
        _demand(x, p, waves, slopes, q)
        left = rng.random()
        for i in range(dy):
            left -= q[i]
            if left < 0.0:
                return float(p[i] - COST)
        return 0.0

    def best_decision(x: Array) -> Array:
        """Where the gradient is zero: `2 B p = s + B (3 + cost) 1`."""
        out = np.zeros(dy)
        for j in range(dy):
            right = _appeal(x, waves, j)
            for k in range(dy):
                right += slopes[j, k] * (MIDDLE + COST)
            for i in range(dy):
                out[i] += inverse[i, j] * right
        return out

    def gradient(x: Array, p: Array) -> Array:
        out = np.empty(dy)
        _demand(x, p, waves, slopes, out)
        for i in range(dy):
            for j in range(dy):
                out[i] -= slopes[j, i] * (p[j] - COST) / dy
        return out

    low, high = np.ones(dy), np.full(dy, 5.0)
    eigenvalues = np.linalg.eigvalsh(2.0 * slopes / dy) * 16.0  # sides of length 4
    return Problem(
        context=Box.unit(dx),
        decision=Box(low, high),
        mean_payoff=mean_payoff,
        best_decision=best_decision,
        sample_payoff=sample_payoff,
        gradient=gradient,
        curvature=float(eigenvalues[0]),
        curvature_max=float(eigenvalues[-1]),
        name="linear-demand",
    )
