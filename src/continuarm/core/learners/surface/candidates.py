"""Terms that might enter the model, and the evidence for each (eq. 24 and 25).

For each context dimension stand two candidates beside the slopes, P_k(u_i) v with the next degree
and with the next two, and one beside the baseline, P_k(u_i) with the next two. What is left of its
features, after the rotation through the model's rows, is what the model cannot say of them.
Rotated into a small triangle of the candidate's own, it gives the density of the payoff under "the
model and this term", exactly.
"""

import math

from continuarm.core.compiling import Array, compiled, compiled_large, fill
from continuarm.core.learners.surface.layout import (
    BEGUN,
    DEGREES,
    ITS_DEGREES,
    ITS_LEAD,
    ITS_SQUARES,
    KINDS,
    LINEAR,
    NEXT,
    NEXT_TWO,
    OF_BASELINE,
    SQUARES,
    TWO,
    WEIGHT,
    ResponseSurfaceConfig,
    baseline_degree,
    beside_one,
    beside_slopes,
    cross,
    is_growing,
    its_triangle,
    size_of,
    slope_degree,
    slot,
)
from continuarm.core.learners.triangle import rotate

__all__ = [
    "UNFORESEEABLE",
    "begin_candidates",
    "columns",
    "fill_unknown",
    "is_candidate",
    "rescale_candidates",
    "restart_candidates",
    "weigh",
]

BASELINE_RIDGE = 0.01
BASELINE_TIMES = 12.0  # the evidence, where a split is cheap: it may explain away a wrong rule
LARGEST_SCORE, LEAST_LEAD = 3.0, -1.0
UNFORESEEABLE = -5.0  # -½ ln(1+h) of a payoff that says nothing about level, noise and terms


@compiled
def columns(cfg: ResponseSurfaceConfig, kind: int) -> int:
    """Features of a candidate."""
    if kind == OF_BASELINE:
        return TWO
    return cfg.dy if kind == NEXT else 2 * cfg.dy


@compiled
def is_candidate(cfg: ResponseSurfaceConfig, row: Array, i: int, kind: int) -> bool:
    """Whether a term of context i might enter: the degrees are not used up, and there is room.

    The baseline follows the slopes: the payoff of the best decision has twice their degree.
    """
    if size_of(row) + columns(cfg, kind) > cfg.most:
        return False
    slopes = row[slope_degree(cfg, i)]
    if kind == OF_BASELINE:
        return bool(row[baseline_degree(cfg, i)] < 2.0 * slopes)
    return bool(slopes + (1.0 if kind == NEXT else 2.0) <= cfg.degree)


@compiled
def _times(cfg: ResponseSurfaceConfig, row: Array, i: int, kind: int) -> float:
    """How many times the lead of a second degree a candidate needs (eq. 25).

    The higher the degree, the likelier a split is the better answer; the less so, the more
    dimensions each of its halves has to learn again.
    """
    if kind == OF_BASELINE:
        return max(BASELINE_TIMES / (cfg.dx * cfg.dx), 1.0)
    return 1.0 + (row[slope_degree(cfg, i)] - LINEAR) / cfg.dx  # type: ignore[no-any-return]


@compiled_large
def begin_candidates(cfg: ResponseSurfaceConfig, row: Array) -> None:
    """A bin begins to look for terms; nothing is known of how they go with the model's."""
    fill(row[cross(cfg, 0) : cross(cfg, size_of(row))], 0.0)
    restart_candidates(cfg, row, -1)
    row[BEGUN] = 1.0


@compiled_large
def restart_candidates(cfg: ResponseSurfaceConfig, row: Array, but: int) -> None:
    """Begin to gather evidence for all of them; what the slopes of context `but` know is kept."""
    for i in range(cfg.dx):
        for kind in range(KINDS):
            k = slot(cfg, i, kind)
            row[k + ITS_LEAD] = 0.0
            row[k + ITS_SQUARES], row[k + ITS_DEGREES] = row[SQUARES], row[DEGREES]
        for kind in range(NEXT_TWO, KINDS):
            n = TWO if kind == OF_BASELINE else beside_slopes(cfg)
            if kind == OF_BASELINE or i != but:
                fill_unknown(cfg, row, i, kind, n, 0)


@compiled_large
def fill_unknown(
    cfg: ResponseSurfaceConfig, row: Array, i: int, kind: int, n: int, first: int
) -> None:
    """Let the rows from `first` on of a candidate's triangle of n columns say nothing."""
    k = its_triangle(cfg, i, kind) + first * (n + 1) - first * (first - 1) // 2
    ridge = BASELINE_RIDGE if kind == OF_BASELINE else cfg.varying_ridge
    for a in range(first, n):
        fill(row[k : k + n - a + 1], 0.0)
        row[k] = math.sqrt(ridge * row[WEIGHT])
        k += n - a + 1


@compiled_large
def rescale_candidates(cfg: ResponseSurfaceConfig, row: Array, root: float) -> None:
    """Scale their weights as those of the model."""
    if row[BEGUN] == 0.0:
        return
    for i in range(cfg.dx):
        for kind in range(KINDS):
            k = slot(cfg, i, kind)
            row[k + ITS_SQUARES] /= root * root
            row[k + ITS_DEGREES] /= root * root
        for j in range(its_triangle(cfg, i, NEXT), slot(cfg, i + 1, NEXT)):
            row[j] /= root


@compiled_large
def _learn(
    row: Array, k: int, first: int, end: int, new: Array, last: float
) -> tuple[float, float]:
    """Rotate what is left of an observation into these rows of a triangle: what is left then, and
    the logarithm of the product of the cosines."""
    n, cosines = new.shape[0], 1.0
    k += first * (n + 1) - first * (first - 1) // 2
    for a in range(first, end):
        length, entering = n - a, new[a]
        if entering != 0.0:
            pivot = math.sqrt(row[k] * row[k] + entering * entering)
            cosine, sine = row[k] / pivot, entering / pivot
            row[k] = pivot
            rotate(row[k + 1 : k + length], new[a + 1 :], cosine, sine)
            old = row[k + length]
            row[k + length] = cosine * old + sine * last
            last = cosine * last - sine * old
            cosines *= cosine
        k += length + 1
    return last, math.log(max(cosines, 1e-300))


@compiled_large
def _judge(
    row: Array, k: int, its_square: float, cosines: float, square: float, spread: float, far: bool
) -> float:
    """The candidate's lead after a payoff of which the model leaves `square` (eq. 25).

    A payoff that is far off says nothing about it.
    """
    squares, degrees = row[k + ITS_SQUARES], row[k + ITS_DEGREES]
    if squares > 0.0 and spread > UNFORESEEABLE and not far:
        score = cosines - 0.5 * (its_square - square) * degrees / squares
        score = min(max(score, -LARGEST_SCORE), LARGEST_SCORE)
        row[k + ITS_LEAD] = max(row[k + ITS_LEAD] + score, LEAST_LEAD)
    share = row[WEIGHT] * math.exp(2.0 * (spread + cosines))
    row[k + ITS_SQUARES] += share * its_square
    row[k + ITS_DEGREES] += share
    return float(row[k + ITS_LEAD])


@compiled_large
def weigh(
    cfg: ResponseSurfaceConfig,
    row: Array,
    others: Array,
    left: float,
    square: float,
    spread: float,
    far: bool,
    caution: float,
) -> tuple[int, float, int]:
    """Candidates learn what is left of a payoff; which of them has earned its way in, or -1, the
    largest lead, and the context that it belongs to.

    KINDS · i + kind is a candidate of context i.
    """
    hoped, hoped_of = 0.0, 0
    if not is_growing(cfg):
        return -1, hoped, hoped_of
    root, winner, most = math.sqrt(row[WEIGHT]), -1, caution * cfg.enter_lead
    m, dy = beside_slopes(cfg), cfg.dy
    for i in range(cfg.dx):
        new = others[i * beside_one(cfg) : (i + 1) * beside_one(cfg)]
        last, cosines = root * left, 0.0
        for kind in range(KINDS):
            if kind == OF_BASELINE:
                if not far:  # the degrees that nobody judges yet
                    _learn(row, its_triangle(cfg, i, NEXT_TWO), 2 * dy, m, new[:m], last)
                last, cosines = root * left, 0.0
            if not is_candidate(cfg, row, i, kind):
                continue
            if not far:
                k = its_triangle(cfg, i, kind)
                if kind == OF_BASELINE:
                    last, cosines = _learn(row, k, 0, TWO, new[m:], last)
                else:
                    last, more = _learn(row, k, kind * dy, (kind + 1) * dy, new[:m], last)
                    cosines += more
            its_square = square if far else last * last / row[WEIGHT]
            lead = _judge(row, slot(cfg, i, kind), its_square, cosines, square, spread, far)
            lead /= _times(cfg, row, i, kind)
            if lead > hoped:
                hoped, hoped_of = lead, i
            if lead >= most:
                winner, most = KINDS * i + kind, lead
    return winner, hoped, hoped_of
