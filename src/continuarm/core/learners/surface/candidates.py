"""Terms that might enter the model, and the evidence for each (eq. 24 and 25).

For each context dimension stands one candidate beside the slopes, P_k(u_i) v with the next degree,
and one beside the baseline, P_k(u_i). What is left of a candidate's features after the rotation
through the model's rows is what the model cannot say of them. Rotated into a small triangle of the
candidate's own, it gives the density of the payoff under "the model and this term", exactly.
"""

import math

from continuarm.core.compiling import Array, compiled, compiled_large, fill
from continuarm.core.learners.surface.layout import (
    BEGUN,
    DEGREES,
    ITS_DEGREES,
    ITS_LEAD,
    ITS_SQUARES,
    ITS_TRIANGLE,
    SQUARES,
    WEIGHT,
    ResponseSurfaceConfig,
    baseline_degree,
    cross,
    is_growing,
    size_of,
    slope_degree,
    slot,
)
from continuarm.core.learners.triangle import rotate

__all__ = [
    "UNFORESEEABLE",
    "begin_candidates",
    "columns",
    "is_candidate",
    "rescale_candidates",
    "restart_candidates",
    "weigh",
]

BASELINE_RIDGE = 0.01
LARGEST_SCORE, LEAST_LEAD = 3.0, -1.0
UNFORESEEABLE = -5.0  # -½ ln(1+h) of a payoff that says nothing about level, noise and terms


@compiled
def columns(cfg: ResponseSurfaceConfig, of_slopes: bool) -> int:
    """Features of a candidate."""
    return cfg.dy if of_slopes else 1


@compiled
def is_candidate(cfg: ResponseSurfaceConfig, row: Array, i: int, of_slopes: bool) -> bool:
    """Whether a term of context i might enter: the degrees are not used up, and there is room.

    The baseline follows the slopes: the payoff of the best decision has twice their degree.
    """
    if size_of(row) + columns(cfg, of_slopes) > cfg.most:
        return False
    slopes = row[slope_degree(cfg, i)]
    if of_slopes:
        return bool(slopes < cfg.degree)
    return bool(row[baseline_degree(cfg, i)] < 2.0 * slopes)


@compiled_large
def begin_candidates(cfg: ResponseSurfaceConfig, row: Array) -> None:
    """A bin begins to look for terms; nothing is known of how they go with the model's."""
    fill(row[cross(cfg, 0) : cross(cfg, size_of(row))], 0.0)
    restart_candidates(cfg, row)
    row[BEGUN] = 1.0


@compiled_large
def restart_candidates(cfg: ResponseSurfaceConfig, row: Array) -> None:
    """Begin to gather evidence for all of them."""
    for i in range(cfg.dx):
        for of_slopes in (True, False):
            k, n = slot(cfg, i, of_slopes), columns(cfg, of_slopes)
            row[k + ITS_LEAD] = 0.0
            row[k + ITS_SQUARES], row[k + ITS_DEGREES] = row[SQUARES], row[DEGREES]
            ridge = cfg.varying_ridge if of_slopes else BASELINE_RIDGE
            k += ITS_TRIANGLE
            for a in range(n):
                fill(row[k : k + n - a + 1], 0.0)
                row[k] = math.sqrt(ridge * row[WEIGHT])
                k += n - a + 1


@compiled_large
def rescale_candidates(cfg: ResponseSurfaceConfig, row: Array, root: float) -> None:
    """Scale their weights as those of the model."""
    if row[BEGUN] == 0.0:
        return
    for i in range(cfg.dx):
        for of_slopes in (True, False):
            k, n = slot(cfg, i, of_slopes), columns(cfg, of_slopes)
            row[k + ITS_SQUARES] /= root * root
            row[k + ITS_DEGREES] /= root * root
            for j in range(n * (n + 3) // 2):
                row[k + ITS_TRIANGLE + j] /= root


@compiled_large
def _learn(row: Array, k: int, new: Array, last: float) -> tuple[float, float]:
    """Rotate what is left of an observation into a candidate's triangle: what is left then, and
    the logarithm of the product of the cosines."""
    n, cosines = new.shape[0], 1.0
    for a in range(n):
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
def weigh(
    cfg: ResponseSurfaceConfig,
    row: Array,
    others: Array,
    left: float,
    square: float,
    spread: float,
    far: bool,
    caution: float,
) -> int:
    """Candidates learn what is left of a payoff; which of them has earned its way in, or -1.

    2i is the candidate of context i beside the slopes, 2i + 1 the one beside the baseline.
    """
    if not is_growing(cfg):
        return -1
    root, winner, most, begin = math.sqrt(row[WEIGHT]), -1, caution * cfg.enter_lead, 0
    for which in range(2 * cfg.dx):
        i, of_slopes = which // 2, which % 2 == 0
        n = columns(cfg, of_slopes)
        new = others[begin : begin + n]
        begin += n
        if not is_candidate(cfg, row, i, of_slopes):
            continue
        k, its_square, its_spread = slot(cfg, i, of_slopes), square, spread
        if not far:
            its_left, cosines = _learn(row, k + ITS_TRIANGLE, new, root * left)
            its_left /= root
            its_square, its_spread = its_left * its_left, spread + cosines
            squares, degrees = row[k + ITS_SQUARES], row[k + ITS_DEGREES]
            if squares > 0.0 and spread > UNFORESEEABLE:
                score = cosines - 0.5 * (its_square - square) * degrees / squares
                score = min(max(score, -LARGEST_SCORE), LARGEST_SCORE)
                row[k + ITS_LEAD] = max(row[k + ITS_LEAD] + score, LEAST_LEAD)
        share = row[WEIGHT] * math.exp(2.0 * its_spread)
        row[k + ITS_SQUARES] += share * its_square
        row[k + ITS_DEGREES] += share
        if row[k + ITS_LEAD] >= most:
            winner, most = which, row[k + ITS_LEAD]
    return winner
