"""A sampled response surface in one bin; "eq. N" cites docs/recommended.md.

Legend: u the context in [-1, 1]^dx of its bin, v = 2y - 1 the decision in [-1, 1]^dy, φ the p
features, θ their coefficients, w the weight of the next observation, [R | d] the triangle with
RᵀR = Σ wφφᵀ + ridge and Rᵀd = Σ wφz, s² the variance of the noise. Its parts are in `surface/`.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

from continuarm import checks
from continuarm.core.compiling import Array, compiled, copy_into, fill
from continuarm.core.learners.protocol import (
    AS_INCUMBENT,
    DRAWN,
    EARLY,
    UNIFORM,
    Learner,
    register,
)
from continuarm.core.learners.surface import children, examining, explaining
from continuarm.core.learners.surface.deciding import (
    decide_by_draw,
    decide_early,
    explores,
    fill_best,
)
from continuarm.core.learners.surface.fitting import fits
from continuarm.core.learners.surface.layout import (
    AGE,
    FIRST,
    KNOWN,
    LARGEST_PAYOFF,
    LINEAR,
    SEEN,
    SIZE,
    SQUARE,
    SQUARES,
    TRIED,
    WEIGHT,
    ResponseSurfaceConfig,
    baseline,
    baseline_degree,
    candidates,
    scratch,
    size,
    slope_degree,
    width,
)
from continuarm.core.learners.surface.learning import learn, learn_beside
from continuarm.core.learners.surface.sureness import fill_view
from continuarm.core.learners.surface.triangle import fill_ridge
from continuarm.core.request import ALONE, Foreseen, Observation, Request, clip_into
from continuarm.errors import SettingsError

__all__ = ["ResponseSurface", "ResponseSurfaceConfig", "fits", "scratch", "size", "width"]

Hessian = Literal["varying", "constant", "diagonal"]
HESSIANS = {"varying": 0, "constant": 1, "diagonal": 2}
MOST_COEFFICIENTS = 100  # with more, only the diagonal of the Hessian is learned
MOST_VARYING = 50  # with more, less of the Hessian depends on the context
MOST_IN_A_ROW = 1000  # with more, nothing depends on the context but the baseline
MOST_AT_ALL = 2000  # a row has p²/2 numbers
MOST_BESIDE = 2**16  # numbers that a row may have for the terms that might enter
MOST_ALONE = 3  # degree of a context that is the only one: beyond, a split costs less
MOST_PAIRED = 3  # context dimensions whose products are in the baseline


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
        (eq. 11 to 14); None: anywhere.
    gated : with a reach, what contexts change is believed only as far as it is significant.
    bounded : no payoff moves an estimate far (eq. 15).
    level : follow a level of the payoffs that moves (eq. 16 to 20); needs `bounded`.
    calm : what was learned in noisier times counts less (eq. 21).
    degree : the highest degree of a context in the slopes; terms above the first enter a bin's
        model when payoffs speak for them (eq. 24 to 26); with a memory none does.
    enter_lead : the lead at which they do; default eq. 25.
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
    degree: int = 1
    enter_lead: float | None = None

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
            degree=checks.whole("degree", self.degree, 1, 5),
            enter_lead=checks.optional(checks.number, "enter_lead", self.enter_lead),
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
            degree=1,
            most=0,
            enter_lead=0.0,
        )
        return self._growing(self._affordable(surface, full))

    def _growing(self, surface: "ResponseSurfaceConfig") -> "ResponseSurfaceConfig":
        """With room for terms that may enter, if that can be paid for."""
        p, dx = int(size(surface)), surface.dx
        plain = surface._replace(most=p)
        if self.degree == LINEAR or self.memory is not None or surface.varying == 0 or dx == 0:
            return plain
        lead = max(5.0, 1.75 * math.log(2 * surface.dy)) + math.log(dx)  # eq. 25
        lead = lead if self.enter_lead is None else self.enter_lead
        degree = min(self.degree, MOST_ALONE) if dx == 1 else self.degree
        wanted = dx * ((degree - LINEAR) * surface.dy + 2 * degree - SQUARE)
        most = p + min(wanted, p // 2 + 10)
        growing = surface._replace(degree=degree, most=most, enter_lead=lead)
        return growing if most * candidates(growing) <= MOST_BESIDE else plain

    def _affordable(self, surface: "ResponseSurfaceConfig", full: int) -> "ResponseSurfaceConfig":
        dy = surface.dy
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
    row[WEIGHT], row[SIZE], row[FIRST] = 1.0, size(cfg), baseline(cfg)
    for i in range(cfg.dx):
        row[slope_degree(cfg, i)], row[baseline_degree(cfg, i)] = LINEAR, SQUARE
    fill(row[TRIED : TRIED + cfg.dy], 1.0)
    fill_ridge(cfg, row)


@compiled
def tell(
    cfg: ResponseSurfaceConfig, row: Array, pool: Array, seen: Observation, work: Array
) -> Foreseen:
    return learn(cfg, row, seen, work)


@compiled
def challenge(
    cfg: ResponseSurfaceConfig, row: Array, seen: Observation, bin_foresaw: Foreseen, work: Array
) -> float:
    return learn_beside(cfg, row, seen, bin_foresaw, work)


@compiled
def is_early(cfg: ResponseSurfaceConfig, row: Array) -> bool:
    """Whether too little is known to fit anything: few payoffs, or all the same."""
    return bool(row[KNOWN] < size(cfg) + 3 or row[SQUARES] == 0.0)


@compiled
def decide(
    cfg: ResponseSurfaceConfig, row: Array, pool: Array, request: Request, work: Array, y: Array
) -> int:
    if is_early(cfg, row):
        decide_early(cfg, row, request, work, y)
    else:
        decide_by_draw(cfg, row, request, work, y)
    clip_into(request.region, y)
    return ALONE


@compiled
def best(cfg: ResponseSurfaceConfig, row: Array, request: Request, work: Array, y: Array) -> None:
    if is_early(cfg, row):
        copy_into(y, request.start)
    else:
        fill_best(cfg, row, request, work, y)
    clip_into(request.region, y)


@compiled
def view(
    cfg: ResponseSurfaceConfig, row: Array, request: Request, work: Array, y: Array, seen: Array
) -> int:
    if is_early(cfg, row):
        return EARLY
    fill_view(cfg, row, request, work, y, seen)
    return UNIFORM if cfg.reach > 0.0 and explores(row, request.xi[0]) else DRAWN


def rule(cfg: ResponseSurfaceConfig, row: Array) -> dict[str, Any] | None:
    return AS_INCUMBENT if is_early(cfg, row) else explaining.rule(cfg, row)


def explain(
    cfg: ResponseSurfaceConfig, row: Array, request: Request, centre: Array
) -> dict[str, Any]:
    found: dict[str, Any] = {"known": float(row[KNOWN])}
    return found if is_early(cfg, row) else found | explaining.explain(cfg, row, request, centre)


def expected(cfg: ResponseSurfaceConfig, row: Array, u: Array, ys: Array) -> Array | None:
    return None if is_early(cfg, row) else explaining.expected(cfg, row, u, ys)


def examine(
    cfg: ResponseSurfaceConfig, row: Array, request: Request, centre: Array
) -> dict[str, Any]:
    found: dict[str, Any] = {"needs": int(row[SIZE]) + 3, "has": float(row[KNOWN])}
    return found if is_early(cfg, row) else found | examining.examine(cfg, row)


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
def held(cfg: ResponseSurfaceConfig, row: Array) -> float:
    return float(row[AGE])


@compiled
def uses_context(cfg: ResponseSurfaceConfig) -> bool:
    return True


def reach(cfg: ResponseSurfaceConfig) -> float:
    return 0.5 * cfg.reach


def draws(cfg: ResponseSurfaceConfig) -> int:
    return int(cfg.most - baseline(cfg))


register(
    ResponseSurfaceConfig,
    Learner.of(globals(), guarded=lambda cfg: True, largest_payoff=LARGEST_PAYOFF),
)
