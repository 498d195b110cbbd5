"""A sampled response surface in one bin; "eq. N" cites docs/recommended.md.

Legend: u the context in [-1, 1]^dx of its bin, v = 2y - 1 the decision in [-1, 1]^dy, φ the p
features, θ their coefficients, w the weight of the next observation, [R | d] the triangle with
RᵀR = Σ wφφᵀ + ridge and Rᵀd = Σ wφz, s² the variance of the noise. Its parts are in `surface/`.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

from continuarm import checks
from continuarm.core.compiling import Array, compiled, compiled_large, copy_into, fill
from continuarm.core.learners.protocol import Learner, register
from continuarm.core.learners.surface import children, explaining
from continuarm.core.learners.surface.centre import centre, fill_gates, highest
from continuarm.core.learners.surface.features import at_context, fill_features
from continuarm.core.learners.surface.fitting import LARGEST_PAYOFF, fits
from continuarm.core.learners.surface.layout import (
    AGE,
    DEGREES,
    FOLLOWS,
    FORGOTTEN,
    KNOWN,
    REFERENCE,
    RUN,
    SEEN,
    SQUARES,
    TRIED,
    WEIGHT,
    ResponseSurfaceConfig,
    baseline,
    scratch,
    size,
    width,
)
from continuarm.core.learners.surface.steady import (
    LARGEST_WEIGHT,
    bounded,
    follow_level,
    is_settled,
    set_weight,
)
from continuarm.core.learners.surface.triangle import (
    fill_ridge,
    forget_level,
    rescale,
    rotate_in,
    solve,
)
from continuarm.core.learners.triangle import grow_older
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

__all__ = ["ResponseSurface", "ResponseSurfaceConfig", "fits", "scratch", "size", "width"]

Hessian = Literal["varying", "constant", "diagonal"]
HESSIANS = {"varying": 0, "constant": 1, "diagonal": 2}
MOST_COEFFICIENTS = 100  # with more, only the diagonal of the Hessian is learned
MOST_VARYING = 50  # with more, less of the Hessian depends on the context
MOST_IN_A_ROW = 1000  # with more, nothing depends on the context but the baseline
MOST_AT_ALL = 2000  # a row has p²/2 numbers
MOST_PAIRED = 3  # context dimensions whose products are in the baseline
UNFORESEEABLE = -5.0  # -½ ln(1+h) of a payoff that says nothing about level and noise


@dataclass(frozen=True, kw_only=True)
class ResponseSurface:
    """A quadratic in the decision, affine in the context, fitted and sampled (eq. 1 to 6).

    Parameters
    ----------
    memory : payoffs of the policy after which one counts a third; None: only eq. 4 fades.
    hessian : `"varying"`, the richest that can be paid for, `"constant"` in the context, or
        `"diagonal"` and constant.
    fade : γ of eq. 4, how old payoffs fade.
    spread : κ of eq. 5, how much of the posterior's spread is sampled.
    ridge, varying_ridge : λ, and that of what depends on the context.
    middle : the first decisions keep to this part of each side of the box.
    grace : observations before old ones fade.
    reach : how far from what is known to be good it may decide, as a part of each side of the box
        (eq. 11 to 13); None: anywhere.
    gated : with a reach, what contexts change is believed only as far as it is significant.
    bounded : no payoff moves an estimate far (eq. 14).
    level : follow a level of the payoffs that moves (eq. 15 and 16); needs `bounded`.
    calm : what was learned in noisier times counts less (eq. 17).
    """

    memory: int | None = None
    hessian: Hessian = "varying"
    fade: float = 0.5
    spread: float = 0.6
    ridge: float = 1e-4
    varying_ridge: float = 0.3
    middle: float = 0.5
    grace: float = 20.0
    reach: float | None = None
    gated: bool = True
    bounded: bool = False
    level: bool = False
    calm: bool = False

    def __post_init__(self) -> None:
        checks.choice("hessian", self.hessian, HESSIANS)
        checks.normalise(
            self,
            memory=checks.optional(checks.whole, "memory", self.memory, 1),
            fade=checks.number("fade", self.fade, most=1.0, zero=True),
            spread=checks.number("spread", self.spread, zero=True),
            ridge=checks.number("ridge", self.ridge),
            varying_ridge=checks.number("varying_ridge", self.varying_ridge),
            middle=checks.number("middle", self.middle, most=1.0),
            grace=checks.number("grace", self.grace, least=2.0),
            reach=None if self.reach is None else checks.number("reach", self.reach, most=1.0),
            gated=checks.flag("gated", self.gated),
            bounded=checks.flag("bounded", self.bounded),
            level=checks.flag("level", self.level),
            calm=checks.flag("calm", self.calm),
        )
        if self.level and not self.bounded:
            raise SettingsError("`level` needs `bounded`, but got level=True, bounded=False")

    def configured(self, dx: int, dy: int) -> "ResponseSurfaceConfig":
        """The model with the most coefficients that can be paid for."""
        full = dy + dy * (dy + 1) // 2
        surface = ResponseSurfaceConfig(
            dx,
            dy,
            terms=2 * dy if self.hessian == "diagonal" else full,
            varying=dy,
            pairs=dx <= MOST_PAIRED,
            fade=self.fade,
            spread=self.spread,
            ridge=self.ridge,
            varying_ridge=self.varying_ridge,
            middle=self.middle,
            grace=self.grace,
            memory=float(self.memory or 0),
            reach=2.0 * (self.reach or 0.0),  # v goes from -1 to 1
            gated=self.gated,
            bounded=self.bounded,
            level=self.level,
            calm=self.calm,
        )
        if size(surface) > MOST_COEFFICIENTS:
            diagonal = surface._replace(terms=2 * dy)
            if size(diagonal) <= MOST_IN_A_ROW:
                return diagonal
            return _affordable(diagonal._replace(varying=0))  # a tell takes p², a row as much room
        if self.hessian == "varying":
            for varying in (full, 2 * dy):
                richer = surface._replace(varying=varying)
                if size(richer) <= MOST_VARYING:
                    return richer
        return surface


def _affordable(surface: ResponseSurfaceConfig) -> ResponseSurfaceConfig:
    p = int(size(surface))
    if p > MOST_AT_ALL:
        raise SettingsError(
            f"a response surface has at most {MOST_AT_ALL} coefficients, "
            f"but got {p} with dx={surface.dx}, dy={surface.dy}: take `StaticKWSA`"
        )
    return surface


@compiled
def init(cfg: ResponseSurfaceConfig, row: Array, start: Array) -> None:
    fill(row, 0.0)
    row[WEIGHT] = 1.0
    fill(row[TRIED : TRIED + cfg.dy], 1.0)
    fill_ridge(cfg, row)


@compiled_large
def _learn(
    cfg: ResponseSurfaceConfig, row: Array, seen: Observation, is_bin: bool, work: Array
) -> tuple[Foreseen, float]:
    """Rotate an observation into the triangle (eq. 2).

    How well it was foreseen, one step ahead; the variance before.
    """
    p, follows, forgotten = size(cfg), row[FOLLOWS], row[FORGOTTEN]
    if cfg.memory > 0.0:
        grow_older(row, WEIGHT, AGE, seen.elapsed / cfg.memory)  # eq. 10
    if row[WEIGHT] > LARGEST_WEIGHT:
        rescale(cfg, row)
    if row[KNOWN] == 0.0:
        row[REFERENCE] = seen.z
    weight = row[WEIGHT]
    root, taken = math.sqrt(weight), work[p + 1 : 2 * p + 1]
    fill_features(cfg, seen.u, seen.y, root, work)
    work[p] = root * (seen.z - row[REFERENCE])
    spread = rotate_in(cfg, row, work, taken)
    square, left = work[p] * work[p] / weight, work[p] / root
    variance = row[SQUARES] / row[DEGREES] if row[SQUARES] > 0.0 else 0.0
    if cfg.bounded and spread > UNFORESEEABLE and is_settled(cfg, row):
        kept = bounded(cfg, row, left, spread, taken)
        if kept != left:
            square = kept * kept
        if cfg.level and is_bin:
            follow_level(cfg, row, kept, spread, seen.elapsed)
    share = weight * math.exp(2.0 * spread)  # eq. 3
    row[SQUARES] += share * square
    row[DEGREES] += share
    _count(cfg, row, seen.y)
    if cfg.calm and is_settled(cfg, row):
        set_weight(row)
    began = row[FOLLOWS] > follows
    return Foreseen(square, spread, forgotten, began, row[FOLLOWS] > 0.0), variance


@compiled
def _count(cfg: ResponseSurfaceConfig, row: Array, y: Array) -> None:
    for j in range(cfg.dy):
        lowest, highest = TRIED + j, TRIED + cfg.dy + j
        row[lowest], row[highest] = min(row[lowest], y[j]), max(row[highest], y[j])
    row[SEEN] += 1.0
    row[KNOWN] += 1.0
    row[AGE] += 1.0
    row[WEIGHT] /= 1.0 - cfg.fade / (row[AGE] + cfg.grace)  # eq. 4


@compiled
def tell(
    cfg: ResponseSurfaceConfig, row: Array, pool: Array, seen: Observation, work: Array
) -> Foreseen:
    foreseen, _ = _learn(cfg, row, seen, True, work)
    return foreseen


@compiled
def challenge(
    cfg: ResponseSurfaceConfig, row: Array, seen: Observation, bin_foresaw: Foreseen, work: Array
) -> float:
    """The logarithm of the two predictive densities' ratio, with one variance (eq. 7).

    It forgets as much of the level as the bin has. A payoff that is far off says nothing: the
    level may have jumped.
    """
    if bin_foresaw.forgotten != row[FORGOTTEN]:
        forget_level(cfg, row, math.exp(row[FORGOTTEN] - bin_foresaw.forgotten))
        row[FORGOTTEN] = bin_foresaw.forgotten
    before = row[REFERENCE]
    mine, variance = _learn(cfg, row, seen, False, work)
    if variance == 0.0 or row[RUN] != 0.0 or row[REFERENCE] != before:
        return 0.0
    gap = mine.square - bin_foresaw.square
    return mine.spread - bin_foresaw.spread - 0.5 * gap / variance


@compiled
def is_early(cfg: ResponseSurfaceConfig, row: Array) -> bool:
    """Whether too little is known to fit anything: few payoffs, or all the same."""
    return bool(row[KNOWN] < size(cfg) + 3 or row[SQUARES] == 0.0)


@compiled
def decide(
    cfg: ResponseSurfaceConfig, row: Array, pool: Array, request: Request, work: Array, y: Array
) -> int:
    if is_early(cfg, row):
        _decide_early(cfg, row, request, y)
    else:
        _decide(cfg, row, request, work, y)
    clip_into(request.region, y)
    return ALONE


@compiled
def _decide_early(cfg: ResponseSurfaceConfig, row: Array, request: Request, y: Array) -> None:
    """Uniform within reach of the start; without a reach in the middle of the box."""
    low, high = request.region.low, request.region.high
    side = cfg.middle if row[KNOWN] < size(cfg) + 3 else 1.0
    for j in range(cfg.dy):
        middle, half = 0.5 * (low[j] + high[j]), side * (0.5 * (high[j] - low[j]))
        if cfg.reach > 0.0:
            start = min(max(request.start[j], low[j]), high[j])
            bottom = max(low[j], start - 0.5 * cfg.reach)
            top = min(high[j], start + 0.5 * cfg.reach)
            middle, half = 0.5 * (bottom + top), 0.5 * (top - bottom)
        y[j] = middle + half * math.erf(request.xi[j] / math.sqrt(2.0))


@compiled_large
def _decide(
    cfg: ResponseSurfaceConfig, row: Array, request: Request, work: Array, y: Array
) -> None:
    """The peak of a surface that is drawn (eq. 5 and 6), within reach of the centre (eq. 13)."""
    p, dy = size(cfg), cfg.dy
    mean, drawn, gates = work[:p], work[p : 2 * p], work[2 * p : 2 * p + 2]
    rest = work[2 * p + 2 :]
    c, low, high, rest = rest[:dy], rest[dy : 2 * dy], rest[2 * dy : 3 * dy], rest[3 * dy :]
    region = request.region
    for j in range(dy):
        low[j], high[j] = 2.0 * region.low[j] - 1.0, 2.0 * region.high[j] - 1.0
    fill(gates, 1.0)
    if cfg.reach > 0.0:
        fill_gates(cfg, row, gates)
    sigma = cfg.spread * math.sqrt(row[WEIGHT] * row[SQUARES] / row[DEGREES])
    solve(cfg, row, gates, sigma, request.xi, drawn, mean, cfg.reach > 0.0)
    at_context(cfg, request.u, drawn)
    if cfg.reach > 0.0:
        at_context(cfg, request.u, mean)
        centre(cfg, row, request, gates, mean, rest, c)
        for j in range(dy):
            low[j], high[j] = max(low[j], c[j] - cfg.reach), min(high[j], c[j] + cfg.reach)
    highest(cfg, drawn, Region(low, high, False), rest, y)
    for j in range(dy):
        y[j] = 0.5 + 0.5 * y[j]


@compiled
def best(cfg: ResponseSurfaceConfig, row: Array, request: Request, work: Array, y: Array) -> None:
    if is_early(cfg, row):
        copy_into(y, request.start)
    else:
        _best(cfg, row, request, work, y)
    clip_into(request.region, y)


@compiled_large
def _best(cfg: ResponseSurfaceConfig, row: Array, request: Request, work: Array, y: Array) -> None:
    """The centre; without a reach, where the fitted surface is highest among what was tried."""
    p, dy = size(cfg), cfg.dy
    mean, gates, rest = work[:p], work[p : p + 2], work[p + 2 :]
    fill(gates, 1.0)
    if cfg.reach > 0.0:
        fill_gates(cfg, row, gates)
    solve(cfg, row, gates, 0.0, request.xi, mean, rest[:p], False)
    at_context(cfg, request.u, mean)
    if cfg.reach > 0.0:
        centre(cfg, row, request, gates, mean, rest, y)
        for j in range(dy):
            y[j] = 0.5 + 0.5 * y[j]
        return
    low, high, rest = rest[:dy], rest[dy : 2 * dy], rest[2 * dy :]
    fill(low, -1.0)
    fill(high, 1.0)
    _highest_tried(cfg, row, mean, Region(low, high, True), rest, y)
    if not is_inside(request.region, y):
        for j in range(dy):
            low[j] = 2.0 * request.region.low[j] - 1.0
            high[j] = 2.0 * request.region.high[j] - 1.0
        _highest_tried(cfg, row, mean, Region(low, high, False), rest, y)


@compiled
def _highest_tried(
    cfg: ResponseSurfaceConfig, row: Array, mean: Array, region: Region, work: Array, y: Array
) -> None:
    highest(cfg, mean, region, work, y)
    for j in range(cfg.dy):
        y[j] = min(max(0.5 + 0.5 * y[j], row[TRIED + j]), row[TRIED + cfg.dy + j])


def rule(cfg: ResponseSurfaceConfig, row: Array) -> dict[str, Any] | None:
    return None if is_early(cfg, row) else explaining.rule(cfg, row)


def explain(
    cfg: ResponseSurfaceConfig, row: Array, request: Request, centre: Array
) -> dict[str, Any]:
    found: dict[str, Any] = {"known": float(row[KNOWN])}
    return found if is_early(cfg, row) else found | explaining.explain(cfg, row, request, centre)


@compiled
def inherit(
    cfg: ResponseSurfaceConfig, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    children.hand_down(cfg, parent, child, low, high, keep)


@compiled
def progress(cfg: ResponseSurfaceConfig, row: Array) -> int:
    return int(row[SEEN])


@compiled
def remembered(cfg: ResponseSurfaceConfig, row: Array) -> float:
    return float(min(row[SEEN], row[AGE]))


@compiled
def uses_context(cfg: ResponseSurfaceConfig) -> bool:
    return True


def draws(cfg: ResponseSurfaceConfig) -> int:
    return int(size(cfg) - baseline(cfg))


register(
    ResponseSurfaceConfig,
    Learner.of(globals(), largest_payoff=LARGEST_PAYOFF),
)
