"""Worlds that are drawn at random: nobody has chosen them, so nobody can have tuned to them.

The seed decides all: how many dimensions, which contexts matter and how, the curvature and its
axes, the noise, and where contexts lie.
"""

import math
from typing import Any

import numpy as np

from continuarm.checks import whole
from continuarm.core.compiling import Array
from continuarm.problems.building import compiled_helper, unit_problem
from continuarm.problems.definition import Problem
from continuarm.problems.entry import DRAWN, Entries, Entry

__all__ = ["WORLDS", "drawn"]

MOST_CONTEXTS, MOST_DECISIONS = 12, 6
LEAST, MOST = 0.1, 0.9  # between which the best decisions lie
# how a context may matter: along a line, in a wave, bent, by a steep step, with the next one
LINE, WAVE, BENT, STEP, PRODUCT, KINDS = range(6)


@compiled_helper
def _effect(kind: int, x: float, beside: float, shape: float) -> float:
    """What a context does, between -1 and 1."""
    if kind == LINE:
        return 2.0 * x - 1.0
    if kind == WAVE:
        return math.sin(shape * math.pi * x + shape)
    if kind == BENT:
        return 1.0 - 2.0 * (2.0 * x - 1.0) ** 2
    if kind == STEP:
        return math.tanh(30.0 * (x - 0.2 - 0.2 * shape))
    return (2.0 * x - 1.0) * (2.0 * beside - 1.0)


def _contexts(rng: np.random.Generator, dx: int) -> Any:
    """Where contexts lie: anywhere, skewed, or in a few crowds."""
    way = rng.integers(3)
    if way == 0:
        return "uniform"
    if way == 1:
        a, b = rng.uniform(0.5, 3.0, (2, dx))
        return lambda rng, n: rng.beta(a, b, (n, dx))
    crowds = rng.uniform(0.15, 0.85, (4, dx))

    def crowded(rng: np.random.Generator, n: int) -> Array:
        spread = 0.08 * rng.standard_normal((n, dx))
        return np.clip(crowds[rng.integers(len(crowds), size=n)] + spread, 0.0, 1.0)

    return crowded


def drawn(seed: int = 0) -> Problem:
    """The world of this seed."""
    rng = np.random.default_rng(whole("seed", seed, 0))
    dx, dy = int(rng.integers(1, MOST_CONTEXTS + 1)), int(rng.integers(1, MOST_DECISIONS + 1))
    count = int(rng.integers(1, min(dx, 4) + 1))
    matter = rng.permutation(dx)[:count].astype(np.int64)
    kinds = rng.integers(KINDS, size=(dy, count))
    shapes = rng.uniform(0.5, 3.0, (dy, count))
    weights = rng.dirichlet(np.ones(count), size=dy) * rng.choice([-1.0, 1.0], (dy, count))
    eigenvalues = 10.0 ** rng.uniform(-0.5, 0.5) * 10.0 ** np.sort(rng.uniform(0.0, 1.5, dy))
    axes = np.linalg.qr(rng.normal(size=(dy, dy)))[0] if rng.random() < 0.5 else np.eye(dy)
    hessian = np.ascontiguousarray((axes * eigenvalues) @ axes.T)
    levels = rng.normal(0.0, 0.3, dx)
    noise = float(10.0 ** rng.uniform(-1.5, 0.5) * 0.05 * eigenvalues.sum() / dy)

    def fill_best(x: Array, out: Array) -> None:
        for j in range(dy):
            total = 0.0
            for k in range(count):
                beside = x[matter[(k + 1) % count]]
                total += weights[j, k] * _effect(kinds[j, k], x[matter[k]], beside, shapes[j, k])
            out[j] = 0.5 * (LEAST + MOST) + 0.5 * (MOST - LEAST) * total

    fill_best = compiled_helper(fill_best)

    def mean_payoff(x: Array, y: Array) -> Any:
        gap, total = np.empty(dy), 0.0
        fill_best(x, gap)
        for j in range(dy):
            gap[j] = y[j] - gap[j]
        for i in range(dx):
            total += levels[i] * math.sin(3.0 * x[i])
        for j in range(dy):
            for other in range(dy):
                total -= 0.5 * gap[j] * hessian[j, other] * gap[other]
        return total

    def best_decision(x: Array) -> Any:
        out = np.empty(dy)
        fill_best(x, out)
        return out

    return unit_problem(
        dx,
        dy,
        mean_payoff,
        best_decision,
        contexts=_contexts(rng, dx),
        curvature=float(eigenvalues[0]),
        curvature_max=float(eigenvalues[-1]),
        noise=noise,
    )


WORLDS: Entries = {"drawn": Entry(drawn, DRAWN)}
