"""Terms that have entered, in a child's own u: its P_k in terms of its parent's (eq. 8, 24)."""

from continuarm.core.compiling import Array, compiled, compiled_large, fill
from continuarm.core.learners.surface.layout import (
    LINEAR,
    SQUARE,
    ResponseSurfaceConfig,
    baseline,
    baseline_degree,
    beside,
    first_of,
    slope_degree,
)
from continuarm.core.learners.surface.triangle import begin_of

__all__ = ["hand_down_terms", "next_legendre"]

DEGREES = 12  # in a table: the baseline has at most twice five


@compiled_large
def hand_down_terms(
    cfg: ResponseSurfaceConfig,
    parent: Array,
    child: Array,
    low: Array,
    high: Array,
    factor: float,
) -> None:
    """Fill the child's columns of these terms with `factor` times what its parent knows."""
    first = first_of(parent)
    linear = first + cfg.terms
    of_baseline, of_slopes = baseline(cfg), linear + cfg.dx * cfg.varying
    table = child[beside(cfg) : beside(cfg) + 3 * DEGREES]  # the candidates' place, empty as yet
    square = 1 + cfg.dx
    for axis in range(cfg.dx):
        in_baseline = int(parent[baseline_degree(cfg, axis)])
        in_slopes = int(parent[slope_degree(cfg, axis)])
        middle, half = 0.5 * (low[axis] + high[axis]), 0.5 * (high[axis] - low[axis])
        fill(table, 0.0)
        table[0], table[DEGREES], table[DEGREES + 1] = 1.0, -middle / half, 1.0 / half
        for degree in range(2, max(in_baseline, in_slopes) + 1):
            next_legendre(degree, middle, half, table)
            now = table[degree % 3 * DEGREES : (degree % 3 + 1) * DEGREES]
            if SQUARE < degree <= in_baseline:
                _combine_baseline(
                    cfg, parent, child, 1 + axis, square, of_baseline, degree, now, factor
                )
            if LINEAR < degree <= in_slopes:
                for j in range(cfg.dy):
                    u_v = linear + axis * cfg.varying + j
                    _combine_slopes(
                        cfg, parent, child, first + j, u_v, of_slopes + j, degree, now, factor
                    )
        of_baseline += in_baseline - SQUARE
        of_slopes += cfg.dy * (in_slopes - LINEAR)
        square += cfg.dx - axis if cfg.pairs else 1
    fill(table, 0.0)


@compiled
def next_legendre(k: int, middle: float, half: float, table: Array) -> None:
    """P_k(u') in terms of P_0(u) to P_k(u), u' = (u - middle)/half, from the last two.

    The table has three rows, that of P_k is k % 3.
    """
    now, last = table[k % 3 * DEGREES :], table[(k + 2) % 3 * DEGREES :]
    before = table[(k + 1) % 3 * DEGREES :]
    for j in range(k + 1):
        shifted = -middle * last[j]
        if j > 0:
            shifted += last[j - 1] * j / (2 * j - 1)
        if j + 1 < k:
            shifted += last[j + 1] * (j + 1) / (2 * j + 3)
        earlier = before[j] if j < k - 1 else 0.0
        now[j] = ((2 * k - 1) * shifted / half - (k - 1) * earlier) / k


@compiled
def _entry(cfg: ResponseSurfaceConfig, row: Array, i: int, j: int) -> float:
    """Entry (i, j) of the triangle."""
    return float(row[begin_of(cfg, row, i) + j - i]) if i <= j else 0.0


@compiled_large
def _combine_slopes(
    cfg: ResponseSurfaceConfig,
    parent: Array,
    child: Array,
    v: int,
    u_v: int,
    entered: int,
    degree: int,
    now: Array,
    factor: float,
) -> None:
    """Fill the child's column of P_k(u') v_j from the parent's v_j, u v_j, P_2(u) v_j …"""
    target = entered + (degree - LINEAR - 1) * cfg.dy
    for i in range(target + 1):
        total = now[0] * _entry(cfg, parent, i, v) + now[1] * _entry(cfg, parent, i, u_v)
        for k in range(LINEAR + 1, degree + 1):
            column = entered + (k - LINEAR - 1) * cfg.dy
            total += now[k] * _entry(cfg, parent, i, column)
        child[begin_of(cfg, child, i) + target - i] = factor * total


@compiled_large
def _combine_baseline(
    cfg: ResponseSurfaceConfig,
    parent: Array,
    child: Array,
    u: int,
    square: int,
    entered: int,
    degree: int,
    now: Array,
    factor: float,
) -> None:
    """Fill the child's column of P_k(u') from the parent's 1, u, u² = (2P_2(u) + 1)/3, P_3(u) …"""
    target = entered + degree - SQUARE - 1
    for i in range(target + 1):
        total = (now[0] - 0.5 * now[2]) * _entry(cfg, parent, i, 0)
        total += now[1] * _entry(cfg, parent, i, u)
        total += 1.5 * now[2] * _entry(cfg, parent, i, square)
        for k in range(SQUARE + 1, degree + 1):
            total += now[k] * _entry(cfg, parent, i, entered + k - SQUARE - 1)
        child[begin_of(cfg, child, i) + target - i] = factor * total
