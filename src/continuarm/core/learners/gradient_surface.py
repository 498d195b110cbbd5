"""A fitted gradient in one bin; "eq. N" cites docs/robbins-monro.md.

Legend: u the context in [-1, 1]^dx of its bin, v = 2y - 1 the decision in [-1, 1]^dy,
φ = (1, u, v) the p features, g the gradient, H its slope by v, w the weight of the next gradient,
h the largest gradient so far, [R | D | P] the triangle of b dimensions of the decision:
RᵀR = Σ wφφᵀ + ridge, RᵀD = Σ wφgᵀ, and P what the ridge says of H, in units of h.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from continuarm import checks
from continuarm.core.compiling import Array, compiled, compiled_large, copy_into
from continuarm.core.guards import climb_in, limits, settle_unit
from continuarm.core.learners.gradient_fit import (
    AGE,
    DEGREES,
    LARGEST,
    LARGEST_GRADIENT,
    SEEN,
    SQUARES,
    START,
    WEIGHT,
    GradientSurfaceConfig,
    age,
    blocks,
    coefficients,
    enter,
    hand_down,
    init,
    largest_counted,
    row_length,
    size,
    surface,
    triangle,
)
from continuarm.core.learners.protocol import Learner, Read, register
from continuarm.core.learners.triangle import SMALLEST_PIVOT
from continuarm.core.request import (
    ALONE,
    Foreseen,
    Observation,
    Region,
    Request,
    clip_into,
    is_inside,
)
from continuarm.errors import SettingsError

__all__ = ["GradientSurface", "GradientSurfaceConfig"]

MOST_NUMBERS = 2_000_000  # of a bin, 16 MB
MOST_JOINT = 64  # dimensions of a decision with a full Hessian; with more, its diagonal is learned
# of a state that was read: any number, what is counted, the weight
FARTHEST, MOST_COUNTED, LIGHTEST, HEAVIEST = 1e120, 2.0**52, 1e-3, 1e13
MOST_PLACED = 20.0  # gradients that a log can stand for: it may be wrong


@dataclass(frozen=True, kw_only=True)
class GradientSurface:
    """Robbins–Monro with a step that is learned from the gradients (eq. 1 to 6).

    Parameters
    ----------
    memory : payoffs of the policy after which a gradient counts a third; None: only eq. 2 fades.
    fade : γ of eq. 2, how old gradients fade.
    caution : κ of eq. 4, the curvature before there is evidence, in units of the largest gradient.
    trust : λ of eq. 4, how many gradients, measured half a box away, that is worth.
    ridge, varying_ridge : of the mean gradient, and of what depends on the context.
    grace : gradients before old ones fade.
    """

    memory: int | None = None
    fade: float = 0.5
    caution: float = 2.0
    trust: float = 1.0
    ridge: float = 1e-4
    varying_ridge: float = 0.3
    grace: float = 20.0

    def __post_init__(self) -> None:
        checks.normalise(
            self,
            memory=checks.optional(checks.whole, "memory", self.memory, 1),
            fade=checks.number("fade", self.fade, most=1.0, zero=True),
            caution=checks.number("caution", self.caution, most=1e100, least=1e-100),
            trust=checks.number("trust", self.trust, most=1e100, least=1e-6),
            ridge=checks.number("ridge", self.ridge, most=1e100, least=1e-12),
            varying_ridge=checks.number(
                "varying_ridge", self.varying_ridge, most=1e100, least=1e-12
            ),
            grace=checks.number("grace", self.grace, least=2.0),
        )

    def configured(self, dx: int, dy: int) -> "GradientSurfaceConfig":
        """The numbers of these options."""
        surface = GradientSurfaceConfig(
            dx,
            dy,
            block=dy if dy <= MOST_JOINT else 1,
            fade=self.fade,
            caution=self.caution,
            trust=self.trust,
            ridge=self.ridge,
            varying_ridge=self.varying_ridge,
            grace=self.grace,
            memory=float(self.memory or 0),
        )
        if width(surface) > MOST_NUMBERS:
            raise SettingsError(
                f"a bin of a surface of gradients has at most {MOST_NUMBERS} numbers, but got "
                f"{width(surface)} with dx={dx}, dy={dy}: take `GradientAscent`, or "
                "`RobbinsMonro` with a step"
            )
        return surface


def width(cfg: GradientSurfaceConfig) -> int:
    return int(triangle(cfg, blocks(cfg)))


def scratch(cfg: GradientSurfaceConfig) -> int:
    """φ, g and P; or the surface, and room for its fit or for the search for its peak."""
    b, fit = cfg.block, cfg.block * (cfg.block + 2 + 2 * cfg.dx)
    return int(max(row_length(cfg, 0), coefficients(cfg) + max(fit, 2 * b + b * (2 * b + 1))))


@compiled_large
def _learn(
    cfg: GradientSurfaceConfig, row: Array, seen: Observation, work: Array
) -> tuple[Foreseen, float]:
    """Learn a gradient (eq. 3); how well it was foreseen, the variance before."""
    if cfg.memory > 0.0:
        age(cfg, row, seen.elapsed)
    variance = row[SQUARES] / row[DEGREES] if row[SQUARES] > 0.0 else 0.0
    square, spread = 0.0, 0.0
    for block in range(blocks(cfg)):
        part, log_cosines = enter(cfg, row, block, seen, work)
        share = row[WEIGHT] * math.exp(2.0 * log_cosines)
        row[SQUARES] += share * part
        row[DEGREES] += share * cfg.block
        square += part
        spread += cfg.block * log_cosines
    limit = largest_counted(row)
    for j in range(cfg.dy):
        row[LARGEST] = max(row[LARGEST], min(abs(seen.gradient[j]), limit))
    row[SEEN] += 1.0
    row[AGE] += 1.0
    row[WEIGHT] /= 1.0 - cfg.fade / (row[AGE] + cfg.grace)  # eq. 2
    calm = (0.0, False, False, 0.0, 0.0, False, False)
    silent = (0.0, 0.0, 0, False, 0.0, 0.0)
    return Foreseen(square, spread, *calm, variance, square, *silent), variance


@compiled
def tell(
    cfg: GradientSurfaceConfig, row: Array, pool: Array, seen: Observation, work: Array
) -> Foreseen:
    foreseen, _ = _learn(cfg, row, seen, work)
    return foreseen


@compiled
def challenge(
    cfg: GradientSurfaceConfig, row: Array, seen: Observation, bin_foresaw: Foreseen, work: Array
) -> float:
    """The logarithm of the two predictive densities' ratio, with one variance (eq. 7)."""
    mine, variance = _learn(cfg, row, seen, work)
    if variance == 0.0:
        return 0.0
    gap = mine.square - bin_foresaw.square
    return mine.spread - bin_foresaw.spread - 0.5 * gap / variance


@compiled_large
def _highest(
    cfg: GradientSurfaceConfig, row: Array, request: Request, whole: bool, work: Array, y: Array
) -> None:
    """Where the fitted gradient vanishes, or points out of the cube or the region (eq. 6)."""
    b, k = cfg.block, coefficients(cfg)
    low, high = work[k : k + b], work[k + b : k + 2 * b]
    for block in range(blocks(cfg)):
        first = block * b
        surface(cfg, row, block, request.u, work)
        for j in range(b):
            low[j] = -1.0 if whole else 2.0 * request.region.low[first + j] - 1.0
            high[j] = 1.0 if whole else 2.0 * request.region.high[first + j] - 1.0
        slopes, bends, twists = work[:b], work[b : 2 * b], work[2 * b : k]
        v, guard = y[first : first + b], request.region.guard
        here = Region(low, high, False, guard)
        if not climb_in(guard, slopes, bends, twists, here, work[k + 2 * b :], v):
            for j in range(b):
                v[j] = 2.0 * request.start[first + j] - 1.0
        for j in range(b):
            v[j] = 0.5 + 0.5 * v[j]


@compiled
def best(cfg: GradientSurfaceConfig, row: Array, request: Request, work: Array, y: Array) -> None:
    if row[LARGEST] == 0.0:
        copy_into(y, row[START : START + cfg.dy])
        region = request.region
        settle_unit(region.guard, region, region.low, region.high, request.start, work, y)
    else:
        _highest(cfg, row, request, not limits(request.region.guard), work, y)
        if not request.region.whole and not is_inside(request.region, y):
            _highest(cfg, row, request, False, work, y)
    clip_into(request.region, y)


@compiled
def decide(
    cfg: GradientSurfaceConfig, row: Array, pool: Array, request: Request, work: Array, y: Array
) -> int:
    best(cfg, row, request, work, y)
    return ALONE


@compiled
def inherit(
    cfg: GradientSurfaceConfig, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    hand_down(cfg, parent, child, low, high, keep)


@compiled
def place(cfg: GradientSurfaceConfig, row: Array, y: Array, payoffs: float) -> None:
    """As if the gradient had been 0 at `y`, in the middle of the bin."""
    if row[SEEN] > 0.0:
        return
    init(cfg, row, y)
    count = min(payoffs / (1 + cfg.dy), MOST_PLACED)
    row[AGE] = count
    for block in range(blocks(cfg)):
        k = triangle(cfg, block)
        row[k] = math.sqrt(cfg.ridge + count)
        for j in range(cfg.block):
            v = 2.0 * y[block * cfg.block + j] - 1.0
            row[k + 1 + cfg.dx + j] = v * count / row[k]


@compiled
def progress(cfg: GradientSurfaceConfig, row: Array) -> int:
    return int(row[SEEN])


@compiled
def remembered(cfg: GradientSurfaceConfig, row: Array) -> float:
    return float(min(row[SEEN], row[AGE]))


@compiled
def held(cfg: GradientSurfaceConfig, row: Array) -> float:
    return float(row[AGE])


@compiled
def uses_context(cfg: GradientSurfaceConfig) -> bool:
    return True


def _slopes_and_bends(cfg: GradientSurfaceConfig, row: Array, u: Array) -> tuple[Array, Array]:
    """The fitted gradient at v = 0, and the Hessian, at u."""
    slopes, bends, b = np.zeros(cfg.dy), np.zeros((cfg.dy, cfg.dy)), cfg.block
    work = np.empty(scratch(cfg))
    for block in range(blocks(cfg)):
        surface(cfg, row, block, u, work)
        here = slice(block * b, block * b + b)
        slopes[here] = work[:b]
        full = np.diag(work[b : 2 * b])
        full[np.triu_indices(b, 1)] = work[2 * b : coefficients(cfg)]
        bends[here, here] = np.triu(full) + np.triu(full, 1).T
    return slopes, bends


def explain(
    cfg: GradientSurfaceConfig, row: Array, request: Request, centre: Array
) -> dict[str, Any]:
    """Slope and curvature of the fit at its best decision."""
    found: dict[str, Any] = {"known": float(row[AGE])}
    if row[LARGEST] == 0.0:
        return found
    slopes, bends = _slopes_and_bends(cfg, row, request.u)
    found["slope"] = (slopes + bends @ (2.0 * centre - 1.0)).tolist()
    found["curvature"] = (2.0 * np.diag(bends)).tolist()  # dv/dy = 2
    if row[DEGREES] > 0.0:
        found["noise"] = math.sqrt(row[SQUARES] / row[DEGREES])
    return found


def rule(cfg: GradientSurfaceConfig, row: Array) -> dict[str, Any] | None:
    """The quadratic whose gradient is fitted: its coefficients, and those of u in its slope."""
    if row[LARGEST] == 0.0:
        return None
    slopes, bends = _slopes_and_bends(cfg, row, np.zeros(cfg.dx))
    by_context = [_slopes_and_bends(cfg, row, u)[0] - slopes for u in np.eye(cfg.dx)]
    twists = bends[np.triu_indices(cfg.dy, 1)] if cfg.block > 1 else np.empty(0)
    return {
        "terms": [*slopes.tolist(), *np.diag(bends).tolist(), *twists.tolist()],
        "by_context": [slope.tolist() for slope in by_context],
        "by_degree": [[] for _ in range(cfg.dx)],
        "tried": [[0.0] * cfg.dy, [1.0] * cfg.dy],
    }


def fits(cfg: GradientSurfaceConfig, read: Read) -> bool:
    """Numbers so far from overflowing that what is computed from them is finite."""
    rows = read.rows
    lengths = [int(row_length(cfg, i)) for i in range(int(size(cfg)))]
    pivots = [
        int(triangle(cfg, block)) + sum(lengths[:i])
        for block in range(blocks(cfg))
        for i in range(len(lengths))
    ]
    start = rows[:, START : START + cfg.dy]
    return bool(
        (abs(np.delete(rows, [SQUARES, DEGREES], axis=1)) <= FARTHEST).all()
        and (rows[:, [SQUARES, DEGREES]] <= FARTHEST**1.8).all()
        and (rows[:, [SEEN, AGE, SQUARES, DEGREES, LARGEST]] >= 0.0).all()
        and (rows[:, [SEEN, AGE]] < MOST_COUNTED).all()
        and (rows[:, SEEN] % 1 == 0.0).all()
        and (rows[:, LARGEST] <= LARGEST_GRADIENT).all()
        and ((rows[:, WEIGHT] >= LIGHTEST) & (rows[:, WEIGHT] <= HEAVIEST)).all()
        and (rows[:, pivots] >= 0.1 * SMALLEST_PIVOT).all()
        and ((start >= 0.0) & (start <= 1.0)).all()
        and ((rows[:, DEGREES] > 0.0) | (rows[:, SQUARES] == 0.0)).all()
    )


def guarded(cfg: GradientSurfaceConfig) -> bool:
    return cfg.block == cfg.dy  # or coordinates are not looked at together


register(GradientSurfaceConfig, Learner.of(globals(), uses_gradient=True))
