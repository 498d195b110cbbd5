"""One smooth surface over the whole context; "eq. N" cites docs/smooth-surface.md.

Legend: u the context in [-1, 1]^dx, v = 2y - 1 the decision in [-1, 1]^dy, φ the p columns, θ
their coefficients, w the weight of the next payoff, [R | d] the triangle with RᵀR = Σ wφφᵀ + ridge
and Rᵀd = Σ wφz, s² the variance of the noise. Its parts are in `smooth/`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from continuarm import checks
from continuarm.core.compiling import Array, compiled, copy_into, fill
from continuarm.core.learners.exploration import decide_evenly
from continuarm.core.learners.protocol import Learner, Read, register
from continuarm.core.learners.smooth import layout
from continuarm.core.learners.smooth.deciding import decide_by_draw, fill_best
from continuarm.core.learners.smooth.features import fill_columns, fill_features, fill_functions
from continuarm.core.learners.smooth.ladder import ladder
from continuarm.core.learners.smooth.layout import (
    AGE,
    LARGEST_PAYOFF,
    REFERENCE,
    RUNG,
    SEEN,
    SQUARES,
    WEIGHT,
    SmoothSurfaceConfig,
    first_payoffs,
    lead_of,
    noise_of,
    rung_at,
    scratch,
    width,
)
from continuarm.core.learners.smooth.learning import learn
from continuarm.core.learners.smooth.triangle import fill_ridges
from continuarm.core.learners.triangle import SMALLEST_PIVOT
from continuarm.core.request import ALONE, Foreseen, Observation, Request, clip_into
from continuarm.errors import PolicyError, SettingsError

__all__ = ["SmoothSurface", "SmoothSurfaceConfig", "dense", "scratch", "width"]

MOST_COLUMNS = 200  # a payoff takes p² operations
MOST_AT_ALL = 2000  # a row has p²/2 numbers
MOST_FULL = 66  # features of the decision; with more, only the diagonal of the Hessian is learned
MIDDLE = 0.5  # of each side of the box, where nobody says how far from the start to try
# of a state that was read: numbers in a triangle, what is counted, weights
FAR, MOST_COUNTED, LIGHTEST, HEAVIEST = 1e150, 2.0**52, 1e-3, 1e30


@dataclass(frozen=True, kw_only=True)
class SmoothSurface:
    """A quadratic in the decision whose coefficients are smooth in the whole context.

    One triangle holds a ladder of models, from one that is the same everywhere to polynomials of
    the context. All learn every payoff, and the one that has foreseen recent payoffs best decides.

    Parameters
    ----------
    reach : how far from what is known to be good it may decide, as a part of each side of the box
        (eq. 7 and 8); None: anywhere.
    memory : payoffs of the policy after which one counts a third; None: only γ fades.
    fade : γ, how old payoffs fade.
    spread : κ, how much of the posterior's spread is sampled.
    recent : how fast the scores of the models fade.
    columns : of the largest model, at most.

    >>> import continuarm as ca
    >>> box = ca.Box([0.0], [1.0])
    >>> policy = ca.Policy(box, box, partition=ca.Grid(1), learner=ca.SmoothSurface(), rng=0)
    >>> result = ca.simulate(policy, "scalar", horizon=1000, rng=0)
    >>> int(result.regret[0, -1])
    5
    """

    reach: float | None = 0.1
    memory: int | None = None
    fade: float = 0.5
    spread: float = 0.5
    recent: float = 2.0
    columns: int = MOST_COLUMNS

    def __post_init__(self) -> None:
        checks.normalise(
            self,
            reach=None if self.reach is None else checks.number("reach", self.reach, most=1.0),
            memory=checks.optional(checks.whole, "memory", self.memory, 1),
            fade=checks.number("fade", self.fade, most=1.0, zero=True),
            spread=checks.number("spread", self.spread, zero=True),
            recent=checks.number("recent", self.recent, most=20.0, zero=True),
            columns=checks.whole("columns", self.columns, 1, MOST_AT_ALL),
        )

    def configured(self, dx: int, dy: int) -> "SmoothSurfaceConfig":
        """The ladder with at most so many columns."""
        features = 1 + dy + dy * (dy + 1) // 2
        if features > MOST_FULL:
            features = 1 + 2 * dy
        found = ladder(dx, dy, features, self.columns)
        if len(found.columns) > MOST_AT_ALL:
            raise SettingsError(
                f"a smooth surface has at most {MOST_AT_ALL} columns, but got "
                f"{len(found.columns)} with dx={dx}, dy={dy}: take `StaticKWSA`"
            )
        table = [found.ends, *found.functions, *found.columns, found.ridges]
        return SmoothSurfaceConfig(
            dx,
            dy,
            features=features,
            functions=len(found.functions),
            size=len(found.columns),
            rungs=len(found.ends),
            degree=max(max(a, b) for _, a, _, b in found.functions),
            fade=self.fade,
            spread=self.spread,
            recent=self.recent,
            reach=2.0 * (self.reach or 0.0),  # v goes from -1 to 1
            memory=float(self.memory or 0),
            table=np.concatenate([np.asarray(numbers, np.float64) for numbers in table]),
        )


@compiled
def init(cfg: SmoothSurfaceConfig, row: Array, start: Array) -> None:
    fill(row, 0.0)
    row[WEIGHT] = 1.0
    fill_ridges(cfg, row)


@compiled
def tell(
    cfg: SmoothSurfaceConfig, row: Array, pool: Array, seen: Observation, work: Array
) -> Foreseen:
    return learn(cfg, row, seen, work)


@compiled
def is_early(cfg: SmoothSurfaceConfig, row: Array) -> bool:
    """Whether too little is known to fit anything: few payoffs, or all the same."""
    known = row[rung_at(cfg, lead_of(row)) + SQUARES] > 0.0
    return bool(row[SEEN] < first_payoffs(cfg) or not known)


@compiled
def decide(
    cfg: SmoothSurfaceConfig, row: Array, pool: Array, request: Request, work: Array, y: Array
) -> int:
    if is_early(cfg, row):
        decide_evenly(request, cfg.reach > 0.0, MIDDLE, work, y)
    else:
        decide_by_draw(cfg, row, request, work, y)
    clip_into(request.region, y)
    return ALONE


@compiled
def best(cfg: SmoothSurfaceConfig, row: Array, request: Request, work: Array, y: Array) -> None:
    if is_early(cfg, row):
        copy_into(y, request.start)
    else:
        fill_best(cfg, row, request, work, y)
    clip_into(request.region, y)


@compiled
def inherit(
    cfg: SmoothSurfaceConfig, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    """The surface is that of the whole context: a bin that splits begins anew."""
    init(cfg, child, low)


@compiled
def progress(cfg: SmoothSurfaceConfig, row: Array) -> int:
    return int(row[SEEN])


@compiled
def uses_context(cfg: SmoothSurfaceConfig) -> bool:
    return True


def reach(cfg: SmoothSurfaceConfig) -> float:
    return 0.5 * cfg.reach


def size(cfg: SmoothSurfaceConfig) -> int:
    return cfg.size


def draws(cfg: SmoothSurfaceConfig) -> int:
    return cfg.size


def dense(cfg: SmoothSurfaceConfig, row: Array) -> tuple[Array, Array]:
    """R and d of all columns; the first k rows and columns are those of the first k columns."""
    p, entries, k = cfg.size, row[int(layout.triangle(cfg)) :], 0
    r, d = np.zeros((p, p)), np.empty(p)
    for i in range(p):
        r[i, i:], d[i] = entries[k : k + p - i], entries[k + p - i]
        k += p - i + 1
    return r, d


def explain(
    cfg: SmoothSurfaceConfig, row: Array, request: Request, centre: Array
) -> dict[str, Any]:
    """The rung that decides, and its noise."""
    found: dict[str, Any] = {"known": float(row[AGE])}
    if is_early(cfg, row):
        return found
    lead = int(row[RUNG])
    columns = int(layout.end_of(cfg, lead))
    return found | {"noise": math.sqrt(noise_of(cfg, row, lead)), "rung": lead, "columns": columns}


def rule(cfg: SmoothSurfaceConfig, row: Array) -> dict[str, Any] | None:
    """No reader of exported tables can follow it yet."""
    raise PolicyError(
        "a table is exported of what a reader can follow, but got `SmoothSurface`: take "
        "`ResponseSurface`, or ask the policy itself"
    )


def expected(cfg: SmoothSurfaceConfig, row: Array, u: Array, ys: Array) -> Array | None:
    """What decisions `(n, dy)` are expected to pay, and its standard error, `(n, 2)`."""
    if is_early(cfg, row):
        return None
    lead = int(row[RUNG])
    end, noise = int(layout.end_of(cfg, lead)), noise_of(cfg, row, lead)
    r, d = (part[..., :end][:end] for part in dense(cfg, row))
    functions, powers = np.empty(cfg.functions), np.empty(cfg.dx * (cfg.degree + 1))
    fill_functions(cfg, u, powers, functions)
    columns, features = np.empty((len(ys), end)), np.empty(cfg.features)
    for y, out in zip(ys, columns, strict=True):
        fill_features(cfg, y, features)
        fill_columns(cfg, functions, features, 1.0, out)
    spread = np.linalg.solve(r.T, columns.T)
    errors = np.sqrt(row[WEIGHT] * noise * (spread**2).sum(axis=0))
    return np.column_stack([row[REFERENCE] + columns @ np.linalg.solve(r, d), errors])


def fits(cfg: SmoothSurfaceConfig, read: Read) -> bool:
    """Numbers so far from overflowing that what is computed from them is finite."""
    rows = read.rows
    begin, first = int(layout.rung_at(cfg, 0)), int(layout.triangle(cfg))
    rungs = rows[:, begin:first].reshape(len(rows), cfg.rungs, layout.NUMBERS)
    squares, degrees = rungs[..., SQUARES], rungs[..., layout.DEGREES]
    pivots = [int(layout.row_at(cfg, i)) for i in range(cfg.size)]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        variance = np.where(squares > 0.0, squares / degrees, 0.0)
    return bool(
        np.isfinite(rows).all()
        and (abs(rows[:, first:]) <= FAR).all()
        and (rows[:, pivots] >= 0.1 * SMALLEST_PIVOT).all()
        and (abs(rows[:, REFERENCE]) <= LARGEST_PAYOFF).all()
        and ((rows[:, [SEEN, AGE]] >= 0.0) & (rows[:, [SEEN, AGE]] < MOST_COUNTED)).all()
        and (rows[:, SEEN] % 1 == 0.0).all()
        and ((rows[:, WEIGHT] >= LIGHTEST) & (rows[:, WEIGHT] <= HEAVIEST)).all()
        and np.isin(rows[:, RUNG], range(cfg.rungs)).all()
        and (abs(rungs[..., layout.SCORE]) <= FAR).all()
        and ((squares >= 0.0) & (degrees >= 0.0)).all()
        and ((squares <= FAR**1.5) & (degrees <= FAR**1.5)).all()
        and (variance <= FAR**1.5).all()
    )


register(
    SmoothSurfaceConfig,
    Learner.of(globals(), guarded=lambda cfg: True, largest_payoff=LARGEST_PAYOFF),
)
