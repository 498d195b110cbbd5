"""One smooth surface over the whole context, whose gradients are told.

"eq. N" cites docs/robbins-monro.md; the legend is that of `smooth_surface`. Further g is the
gradient, h its largest entry, which fades, and -κh the curvature before there is evidence, worth λ
gradients. Nobody tells the level: its only column, the first one, stays empty.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from continuarm import checks
from continuarm.core.compiling import Array, compiled, compiled_large, copy_into, fill
from continuarm.core.guards import climb_in, limits, settle_unit
from continuarm.core.learners import smooth_surface
from continuarm.core.learners.protocol import AS_INCUMBENT, Learner, Read, register
from continuarm.core.learners.smooth import layout
from continuarm.core.learners.smooth.catalogue import catalogue
from continuarm.core.learners.smooth.chain import OFTEN, begin, hear, look
from continuarm.core.learners.smooth.deciding import Room, room
from continuarm.core.learners.smooth.features import at_context, fill_columns, fill_functions
from continuarm.core.learners.smooth.layout import (
    ABSENT,
    AGE,
    ALIKE,
    KINDS,
    LAST,
    LEVEL,
    LOOK,
    MOST_RUNGS,
    REFERENCE,
    RUNG,
    SCORE,
    SEEN,
    SQUARES,
    WEIGHT,
    SmoothSurfaceConfig,
    alive_of,
    column_at,
    first_payoffs,
    kind_of,
    lead_of,
    noise_of,
    row_at,
    rung_at,
    worth_at,
)
from continuarm.core.learners.smooth.learning import GRACE, LARGEST_WEIGHT, score
from continuarm.core.learners.smooth.table import groups_of
from continuarm.core.learners.smooth.triangle import (
    Rotation,
    rescale,
    ridge_of,
    rotate_in,
    take_in,
)
from continuarm.core.learners.smooth_surface import MOST_AT_ALL, features_of, scratch
from continuarm.core.learners.triangle import grow_older
from continuarm.core.request import (
    ALONE,
    MOST_SURPRISED,
    Foreseen,
    Observation,
    Region,
    Request,
    clip_into,
    is_inside,
)
from continuarm.errors import SettingsError

__all__ = ["SmoothGradient", "SmoothGradientConfig", "scratch"]

CAUTION, TRUST = 2.0, 1.0  # κ and λ (eq. 4)
GROWTH = 3.0  # a gradient counts at most so many times the largest before it (eq. 6)
LARGEST_GRADIENT = 1e100  # squares must stay finite
EARLY = 3  # gradients before rungs are judged
MOST_COLUMNS, COLUMNS_EACH = 200, 5  # a gradient takes p² operations for each dimension
MOST_NUMBERS = 1_000_000  # of the row, 8 MB
MOST_PLACED = 20.0  # gradients that a log can stand for: it may be wrong
NEVER = 0.0  # the worth of a level: it is not absent, so that it is not appended

# A row is that of a smooth surface, and the decision that a log recommends, where PLACED is 1.
# What is for payoffs alone has another meaning: h, and how much of the ridge has not faded.
LARGEST, KEPT, PLACED = REFERENCE, ALIKE, LAST


class SmoothGradientConfig(SmoothSurfaceConfig):
    """A smooth surface as numbers; its class says that gradients are told."""


@dataclass(frozen=True, kw_only=True)
class SmoothGradient:
    """A quadratic in the decision, smooth in the whole context, whose gradients are told.

    It is the chain of models of `SmoothSurface`, and decides for the peak of the best of them.

    Parameters
    ----------
    memory : payoffs of the policy after which a gradient counts a third; None: only γ fades.
    fade : γ, how old gradients fade.
    recent : how fast the scores of the models fade.
    columns : of the largest model, at most; None: 200, or five for each dimension of the decision.
    """

    memory: int | None = None
    fade: float = 0.5
    recent: float = 2.0
    columns: int | None = None

    def __post_init__(self) -> None:
        checks.normalise(
            self,
            memory=checks.optional(checks.whole, "memory", self.memory, 1),
            fade=checks.number("fade", self.fade, most=1.0, zero=True),
            recent=checks.number("recent", self.recent, most=20.0, zero=True),
            columns=checks.optional(checks.whole, "columns", self.columns, 1, MOST_AT_ALL),
        )

    def configured(self, dx: int, dy: int) -> "SmoothGradientConfig":
        """The chain with at most so many columns."""
        features = features_of(dy)
        most = max(self.columns or max(MOST_COLUMNS, COLUMNS_EACH * dy), features)
        found = catalogue(dx, dy, features, most, levels=False)
        surface = SmoothGradientConfig(
            dx,
            dy,
            features=features,
            functions=len(found.functions),
            pairs=found.pairs,
            first=len(found.groups),
            size=most,
            degree=found.degree,
            early=EARLY,
            fade=self.fade,
            spread=0.0,
            recent=self.recent / dy,  # a score fades with each of dy numbers
            reach=0.0,
            memory=float(self.memory or 0),
            table=found.table,
        )
        if width(surface) > MOST_NUMBERS:
            raise SettingsError(
                f"a surface of gradients has at most {MOST_NUMBERS} numbers, but got "
                f"{width(surface)} with dx={dx}, dy={dy}: take `RobbinsMonro` with a step"
            )
        return surface


def width(cfg: SmoothSurfaceConfig) -> int:
    return layout.width(cfg) + cfg.dy + 1


@compiled
def _placed_at(cfg: SmoothSurfaceConfig) -> int:
    """Where in a row the decision stands that a log recommends."""
    return row_at(cfg, cfg.size)


@compiled
def _recent_at(cfg: SmoothSurfaceConfig) -> int:
    """Where in a row the largest gradient stands since the order was looked at."""
    return _placed_at(cfg) + cfg.dy


@compiled
def _bends(cfg: SmoothSurfaceConfig) -> int:
    """The column of the first curvature that all contexts have in common."""
    return 1 + cfg.dy


@compiled
def init(cfg: SmoothSurfaceConfig, row: Array, start: Array) -> None:
    fill(row, 0.0)
    row[WEIGHT] = 1.0
    row[KEPT] = 1.0
    begin(cfg, row)
    for function in range(cfg.functions):
        row[worth_at(cfg, function, LEVEL)] = NEVER
    for i in range(_bends(cfg), cfg.features):
        row[row_at(cfg, i)] = math.sqrt(_ridge_at(cfg, row, i))


@compiled_large
def _expect_bends(cfg: SmoothSurfaceConfig, row: Array, grown: float, work: Array) -> None:
    """h has grown by so much, and with it what the ridge expects (eq. 3 and 4)."""
    p, n = cfg.size, alive_of(row)
    left = work[:n]
    fill(left, 0.0)
    for i in range(_bends(cfg), _bends(cfg) + cfg.dy):
        left[i] = -CAUTION * grown * TRUST * row[KEPT]
    for i in range(n):
        k = row_at(cfg, i)
        entry = left[i] / row[k]
        if entry != 0.0:
            for j in range(1, n - i):
                left[i + j] -= row[k + j] * entry
            row[k + p - i] += entry


@compiled
def _fill_slopes(cfg: SmoothSurfaceConfig, y: Array, j: int, out: Array) -> None:
    """The derivatives of the features of the decision by v_j (eq. 2)."""
    dy = cfg.dy
    fill(out[: cfg.features], 0.0)
    out[1 + j], out[1 + dy + j] = 1.0, 2.0 * y[j] - 1.0
    k = 1 + 2 * dy
    if cfg.features > k:
        for one in range(dy):
            for other in range(one + 1, dy):
                if one == j:
                    out[k] = 2.0 * y[other] - 1.0
                elif other == j:
                    out[k] = 2.0 * y[one] - 1.0
                k += 1


@compiled
def _best_rung(row: Array) -> int:
    """The rung with the best score: without exploration, to see less costs nothing more."""
    best = 0
    for rung in range(1, MOST_RUNGS):
        if row[rung_at(rung) + SCORE] > row[rung_at(best) + SCORE]:
            best = rung
    return best


@compiled_large
def tell(
    cfg: SmoothSurfaceConfig, row: Array, pool: Array, seen: Observation, work: Array
) -> Foreseen:
    p, m, n, h = cfg.size, MOST_RUNGS, alive_of(row), row[LARGEST]
    if cfg.memory > 0.0:
        grow_older(row, WEIGHT, AGE, seen.elapsed / cfg.memory)
    if row[WEIGHT] > LARGEST_WEIGHT:
        row[KEPT] /= row[WEIGHT]
        rescale(cfg, row)
    root, new, k = math.sqrt(row[WEIGHT]), work[:n], 3 * p + 2 * m
    lefts, spreads = work[3 * p : 3 * p + m], work[3 * p + m : k]
    rotation = Rotation(work[p : p + n], work[2 * p : 2 * p + n], lefts, spreads)
    functions, rest = work[k : k + cfg.functions], work[k + cfg.functions :]
    fill_functions(cfg, row, seen.u, rest, functions)
    lead, variance = lead_of(row), noise_of(row, lead_of(row))
    judged = variance > 0.0 and row[SEEN] >= first_payoffs(cfg)
    limit = min(GROWTH * h, LARGEST_GRADIENT) if h > 0.0 else LARGEST_GRADIENT
    now, square, spread = 0.0, 0.0, 0.0
    for j in range(cfg.dy):
        slope = min(max(seen.gradient[j], -limit), limit)  # (eq. 6)
        now = max(now, abs(slope))
        _fill_slopes(cfg, seen.y, j, rest)
        fill_columns(row, functions, rest, root, new)
        rotate_in(cfg, row, new, root * slope, rotation)
        take_in(cfg, row, root * slope, rotation)
        for rung in range(m):
            score(cfg, row, rung, lefts[rung] / root, spreads[rung], 0.0)
        left = lefts[lead] / root
        square += left * left
        spread += spreads[lead]
        if judged:
            surprise = min(max(left / math.sqrt(variance), -MOST_SURPRISED), MOST_SURPRISED)
            hear(cfg, row, seen.u, rest, surprise * math.exp(spreads[lead]))
    recent = _recent_at(cfg)
    row[recent] = max(row[recent], now)
    largest = max(h, now)
    if judged and row[SEEN] >= row[LOOK]:
        largest = max(row[recent], largest / math.sqrt(OFTEN))  # (eq. 5)
        row[recent] = 0.0
    if largest != h:
        _expect_bends(cfg, row, largest - h, work)
        row[LARGEST] = largest
    if judged:
        look(cfg, row)
        row[RUNG] = _best_rung(row)
    row[SEEN] += 1.0
    row[AGE] += 1.0
    row[WEIGHT] /= 1.0 - cfg.fade / (row[AGE] + GRACE)
    calm = (0.0, False, False, 0.0, 0.0, False, False)
    silent = (0.0, 0.0, 0, False, 0.0, 0.0)
    return Foreseen(square, spread, *calm, variance, square, *silent)


@compiled
def _ridge_at(cfg: SmoothSurfaceConfig, row: Array, i: int) -> float:
    """λ of a column."""
    if _bends(cfg) <= i < cfg.features:
        return TRUST
    k = column_at(i)
    return ridge_of(cfg, int(row[k]), kind_of(cfg, int(row[k + 1])))


@compiled_large
def _solve(cfg: SmoothSurfaceConfig, row: Array, mean: Array) -> None:
    """The coefficients of a rung: Rθ = d. Where there is a memory, no ridge fades."""
    p, end = cfg.size, mean.shape[0]
    for i in range(end - 1, -1, -1):
        k = row_at(cfg, i)
        total, pivot = row[k + p - i], row[k]
        for j in range(1, end - i):
            total -= row[k + j] * mean[i + j]
        if cfg.memory > 0.0:
            lack = max(math.sqrt(_ridge_at(cfg, row, i) * row[WEIGHT]) - pivot, 0.0)
            pivot += lack
            if _bends(cfg) <= i < _bends(cfg) + cfg.dy:
                total -= lack * CAUTION * row[LARGEST]
        mean[i] = total / pivot


@compiled_large
def _fill_peak(
    cfg: SmoothSurfaceConfig, request: Request, whole: bool, here: Room, y: Array
) -> None:
    """Where the surface in the room is highest, in the cube or in the region (eq. 7)."""
    dy, region = cfg.dy, request.region
    for j in range(dy):
        here.low[j] = -1.0 if whole else 2.0 * region.low[j] - 1.0
        here.high[j] = 1.0 if whole else 2.0 * region.high[j] - 1.0
    box = Region(here.low, here.high, False, region.guard)
    slopes, bends = here.one[1 : 1 + dy], here.one[1 + dy : 1 + 2 * dy]
    if not climb_in(box.guard, slopes, bends, here.one[1 + 2 * dy :], box, here.rest, y):
        for j in range(dy):
            y[j] = 2.0 * request.start[j] - 1.0
    for j in range(dy):
        y[j] = 0.5 + 0.5 * y[j]


@compiled
def best(cfg: SmoothSurfaceConfig, row: Array, request: Request, work: Array, y: Array) -> None:
    if row[LARGEST] == 0.0:
        copy_into(y, request.start)
        if row[PLACED] > 0.0:
            copy_into(y, row[_placed_at(cfg) : _placed_at(cfg) + cfg.dy])
        region = request.region
        settle_unit(region.guard, region, region.low, region.high, request.start, work, y)
    else:
        here = room(cfg, row, work)
        fill_functions(cfg, row, request.u, here.rest, here.functions)
        _solve(cfg, row, here.mean)
        at_context(row, here.functions, here.mean, here.one)
        _fill_peak(cfg, request, not limits(request.region.guard), here, y)
        if not request.region.whole and not is_inside(request.region, y):
            _fill_peak(cfg, request, False, here, y)
    clip_into(request.region, y)


@compiled
def decide(
    cfg: SmoothSurfaceConfig, row: Array, pool: Array, request: Request, work: Array, y: Array
) -> int:
    best(cfg, row, request, work, y)
    return ALONE


@compiled
def inherit(
    cfg: SmoothSurfaceConfig, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    """The surface is that of the whole context: a bin that splits begins anew."""
    init(cfg, child, low)


@compiled
def place(cfg: SmoothSurfaceConfig, row: Array, y: Array, payoffs: float) -> None:
    """As if gradients of 0 had been told at `y`, of what all contexts have in common."""
    if row[SEEN] > 0.0:
        return
    init(cfg, row, y)
    count, dy, k = min(payoffs / (1 + cfg.dy), MOST_PLACED), cfg.dy, 1 + 2 * cfg.dy
    row[AGE], row[PLACED] = count, 1.0
    copy_into(row[_placed_at(cfg) : _placed_at(cfg) + dy], y)
    pivot = math.sqrt(_ridge_at(cfg, row, 1) + count)
    for j in range(dy):
        slopes = row_at(cfg, 1 + j)
        row[slopes] = pivot
        row[slopes + dy] = (2.0 * y[j] - 1.0) * count / pivot
    if cfg.features > k:
        for j in range(dy):
            for other in range(j + 1, dy):
                one, two = row_at(cfg, 1 + j) - 1 - j, row_at(cfg, 1 + other) - 1 - other
                row[one + k] = (2.0 * y[other] - 1.0) * count / pivot
                row[two + k] = (2.0 * y[j] - 1.0) * count / pivot
                k += 1


@compiled
def progress(cfg: SmoothSurfaceConfig, row: Array) -> int:
    return int(row[SEEN])


@compiled
def uses_context(cfg: SmoothSurfaceConfig) -> bool:
    return True


def explain(
    cfg: SmoothSurfaceConfig, row: Array, request: Request, centre: Array
) -> dict[str, Any]:
    """Slope and curvature of the fitted surface at its best decision, per unit of the cube."""
    found: dict[str, Any] = {"known": float(row[AGE])}
    if row[LARGEST] == 0.0:
        return found
    lead, dy = int(row[RUNG]), cfg.dy
    mean, surface = np.empty(int(layout.end_of(row, lead))), np.empty(cfg.features)
    functions, powers = np.empty(cfg.functions), np.empty(cfg.dx * (cfg.degree + 1))
    fill_functions(cfg, row, request.u, powers, functions)
    _solve(cfg, row, mean)
    at_context(row, functions, mean, surface)
    slopes, slope = np.empty(cfg.features), []
    for j in range(dy):
        _fill_slopes(cfg, centre, j, slopes)
        slope.append(float(surface @ slopes))
    found |= {"slope": slope, "curvature": (2.0 * surface[1 + dy : 1 + 2 * dy]).tolist()}
    if row[SEEN] >= cfg.early:
        squares, degrees = row[layout.RUNGS + layout.NUMBERS * lead + SQUARES :][:2]
        found["noise"] = math.sqrt(squares / degrees) if squares > 0.0 else 0.0
    return found | {"rung": lead, "columns": len(mean)}


def rule(cfg: SmoothSurfaceConfig, row: Array) -> dict[str, Any] | None:
    """The surface of the rung that decides; before gradients, the incumbent or what a log says."""
    if row[LARGEST] == 0.0:
        return None if row[PLACED] > 0.0 else AS_INCUMBENT
    mean = np.empty(int(layout.end_of(row, int(row[RUNG]))))
    _solve(cfg, row, mean)
    return {"surface": {"groups": groups_of(cfg, row, mean)}}


def fits(cfg: SmoothSurfaceConfig, read: Read) -> bool:
    """What could be a smooth surface, without levels; and what only gradients need."""
    rows, at, end = read.rows.copy(), int(worth_at(cfg, 0, LEVEL)), int(_placed_at(cfg))
    levels = rows[:, at : at + KINDS * cfg.functions : KINDS]
    empty = bool((levels == NEVER).all())
    levels[:, 1:] = ABSENT
    placed, recent = rows[:, end:-1], rows[:, -1]
    return bool(
        empty
        and smooth_surface.fits(cfg, read._replace(rows=rows))
        and (rows[:, LARGEST] >= 0.0).all()
        and ((rows[:, KEPT] >= 0.0) & (rows[:, KEPT] <= 1.0)).all()
        and np.isin(rows[:, PLACED], (0.0, 1.0)).all()
        and ((placed >= 0.0) & (placed <= 1.0)).all()
        and ((recent >= 0.0) & (recent <= LARGEST_GRADIENT)).all()
    )


register(
    SmoothGradientConfig,
    Learner.of(globals(), uses_gradient=True, guarded=lambda cfg: True),
)
