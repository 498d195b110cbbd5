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
from continuarm.core.learners.protocol import (
    AS_INCUMBENT,
    DRAWN,
    EARLY,
    UNIFORM,
    Learner,
    Read,
    register,
)
from continuarm.core.learners.smooth import layout
from continuarm.core.learners.smooth.catalogue import catalogue
from continuarm.core.learners.smooth.chain import begin
from continuarm.core.learners.smooth.deciding import decide_by_draw, explores, fill_best, room
from continuarm.core.learners.smooth.features import fill_columns, fill_features, fill_functions
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
from continuarm.core.learners.smooth.sureness import fill_view
from continuarm.core.learners.smooth.table import surface_of
from continuarm.core.learners.triangle import SMALLEST_PIVOT
from continuarm.core.request import ALONE, Foreseen, Observation, Request, clip_into
from continuarm.errors import SettingsError

__all__ = [
    "MOST_AT_ALL",
    "SmoothSurface",
    "SmoothSurfaceConfig",
    "dense",
    "features_of",
    "scratch",
    "width",
]

MOST_COLUMNS, COLUMNS_EACH = 200, 10  # a payoff takes p² operations
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
        (eq. 11 and 12); None: anywhere.
    memory : payoffs of the policy after which one counts a third; None: only γ fades.
    fade : γ, how old payoffs fade.
    spread : κ, how much of the posterior's spread is sampled.
    recent : how fast the scores of the models fade.
    columns : of the largest model, at most; None: 200, or ten for each dimension of the decision.

    >>> import continuarm as ca
    >>> box = ca.Box([0.0], [1.0])
    >>> policy = ca.Policy(box, box, partition=ca.Grid(1), learner=ca.SmoothSurface(), rng=1)
    >>> result = ca.simulate(policy, "scalar", horizon=1000, rng=1)
    >>> int(result.regret[0, -1])
    5
    """

    reach: float | None = 0.1
    memory: int | None = None
    fade: float = 0.5
    spread: float = 0.5
    recent: float = 2.0
    columns: int | None = None

    def __post_init__(self) -> None:
        checks.normalise(
            self,
            reach=None if self.reach is None else checks.number("reach", self.reach, most=1.0),
            memory=checks.optional(checks.whole, "memory", self.memory, 1),
            fade=checks.number("fade", self.fade, most=1.0, zero=True),
            spread=checks.number("spread", self.spread, zero=True),
            recent=checks.number("recent", self.recent, most=20.0, zero=True),
            columns=checks.optional(checks.whole, "columns", self.columns, 1, MOST_AT_ALL),
        )

    def configured(self, dx: int, dy: int) -> "SmoothSurfaceConfig":
        """The ladder with at most so many columns."""
        features = features_of(dy)
        most = max(self.columns or max(MOST_COLUMNS, COLUMNS_EACH * dy), features)
        if most > MOST_AT_ALL:
            raise SettingsError(
                f"a smooth surface has at most {MOST_AT_ALL} columns, but got {most} with "
                f"dx={dx}, dy={dy}: take `StaticKWSA`"
            )
        found = catalogue(dx, dy, features, most)
        return SmoothSurfaceConfig(
            dx,
            dy,
            features=features,
            functions=len(found.functions),
            pairs=found.pairs,
            first=len(found.groups),
            size=most,
            degree=found.degree,
            early=features + 3,
            fade=self.fade,
            spread=self.spread,
            recent=self.recent,
            reach=2.0 * (self.reach or 0.0),  # v goes from -1 to 1
            memory=float(self.memory or 0),
            table=found.table,
        )


def features_of(dy: int) -> int:
    """Features of the decision: with all products, or with the squares alone."""
    full = 1 + dy + dy * (dy + 1) // 2
    return full if full <= MOST_FULL else 1 + 2 * dy


@compiled
def init(cfg: SmoothSurfaceConfig, row: Array, start: Array) -> None:
    fill(row, 0.0)
    row[WEIGHT] = 1.0
    begin(cfg, row)


@compiled
def tell(
    cfg: SmoothSurfaceConfig, row: Array, pool: Array, seen: Observation, work: Array
) -> Foreseen:
    return learn(cfg, row, seen, work)


@compiled
def is_early(cfg: SmoothSurfaceConfig, row: Array) -> bool:
    """Whether too little is known to fit anything: few payoffs, or all the same."""
    known = row[rung_at(lead_of(row)) + SQUARES] > 0.0
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
def view(
    cfg: SmoothSurfaceConfig, row: Array, request: Request, work: Array, y: Array, seen: Array
) -> int:
    if is_early(cfg, row):
        return EARLY
    fill_view(cfg, row, request, room(cfg, row, work), y, seen)
    return UNIFORM if explores(cfg, row, request.xi[0]) else DRAWN


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
    n = int(layout.alive_of(row))
    r, d = np.zeros((n, n)), np.empty(n)
    for i in range(n):
        k = int(layout.row_at(cfg, i))
        r[i, i:], d[i] = row[k : k + n - i], row[k + cfg.size - i]
    return r, d


def explain(
    cfg: SmoothSurfaceConfig, row: Array, request: Request, centre: Array
) -> dict[str, Any]:
    """Curvature of the fitted surface, with standard errors, the noise, and the rung that decides.

    In units of the unit cube: dv/dy = 2.
    """
    found: dict[str, Any] = {"known": float(row[AGE])}
    if is_early(cfg, row):
        return found
    lead = int(row[RUNG])
    end, noise = int(layout.end_of(row, lead)), math.sqrt(noise_of(row, lead))
    r, d = (part[..., :end][:end] for part in dense(cfg, row))
    bends = np.zeros((cfg.dy, end))
    functions, powers = np.empty(cfg.functions), np.empty(cfg.dx * (cfg.degree + 1))
    fill_functions(cfg, row, request.u, powers, functions)
    for j, bend in enumerate(bends):
        feature = np.zeros(cfg.features)
        feature[1 + cfg.dy + j] = 4.0
        fill_columns(row, functions, feature, 1.0, bend)
    spread = np.linalg.solve(r.T, bends.T)
    errors = noise * math.sqrt(row[WEIGHT]) * np.sqrt((spread**2).sum(axis=0))
    return found | {
        "curvature": (bends @ np.linalg.solve(r, d)).tolist(),
        "curvature_error": errors.tolist(),
        "noise": noise,
        "rung": lead,
        "columns": end,
    }


def rule(cfg: SmoothSurfaceConfig, row: Array) -> dict[str, Any] | None:
    """The surface of the rung that decides; with few payoffs, the incumbent."""
    if is_early(cfg, row):
        return AS_INCUMBENT
    found = surface_of(cfg, row, dense(cfg, row)[0])
    return None if found is None else {"surface": found}


def expected(cfg: SmoothSurfaceConfig, row: Array, u: Array, ys: Array) -> Array | None:
    """What decisions `(n, dy)` are expected to pay, and its standard error, `(n, 2)`."""
    if is_early(cfg, row):
        return None
    found = _fitted(cfg, row, _columns(cfg, row, u, ys))
    found[:, 0] += row[REFERENCE]
    return found


def gains(cfg: SmoothSurfaceConfig, row: Array, u: Array, ys: Array, start: Array) -> Array | None:
    """By how much more decisions pay than `start`: levels cancel, and so do their errors."""
    if is_early(cfg, row):
        return None
    return _fitted(cfg, row, _columns(cfg, row, u, ys) - _columns(cfg, row, u, start[None, :]))


def _columns(cfg: SmoothSurfaceConfig, row: Array, u: Array, ys: Array) -> Array:
    """The columns of the rung that decides, for decisions `(n, dy)` in a context."""
    functions, powers = np.empty(cfg.functions), np.empty(cfg.dx * (cfg.degree + 1))
    fill_functions(cfg, row, u, powers, functions)
    columns = np.empty((len(ys), int(layout.end_of(row, int(row[RUNG])))))
    features = np.empty(cfg.features)
    for y, out in zip(ys, columns, strict=True):
        fill_features(cfg, y, features)
        fill_columns(row, functions, features, 1.0, out)
    return columns


def _fitted(cfg: SmoothSurfaceConfig, row: Array, columns: Array) -> Array:
    """θ·c of each row c of the columns, and the standard errors s√w |R⁻ᵀc|, `(n, 2)`."""
    end, noise = columns.shape[1], noise_of(row, int(row[RUNG]))
    r, d = (part[..., :end][:end] for part in dense(cfg, row))
    spread = np.linalg.solve(r.T, columns.T)
    errors = np.sqrt(row[WEIGHT] * noise * (spread**2).sum(axis=0))
    return np.column_stack([columns @ np.linalg.solve(r, d), errors])


def fits(cfg: SmoothSurfaceConfig, read: Read) -> bool:
    """Numbers so far from overflowing that what is computed from them is finite."""
    rows = read.rows
    if not np.isfinite(rows).all():
        return False
    first, columns = int(layout.triangle(cfg)), int(layout.column_at(0))
    rungs = rows[:, layout.RUNGS : columns].reshape(len(rows), layout.MOST_RUNGS, layout.NUMBERS)
    squares, degrees = rungs[..., SQUARES], rungs[..., layout.DEGREES]
    counted = rows[:, [SEEN, AGE, layout.SINCE]]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        variance = np.where(squares > 0.0, squares / degrees, 0.0)
    return bool(
        (abs(rows[:, first:]) <= FAR).all()
        and (abs(rows[:, int(layout.sums_at(cfg, 0, 0)) : first]) <= FAR).all()
        and (abs(rows[:, REFERENCE]) <= LARGEST_PAYOFF).all()
        and ((counted >= 0.0) & (counted < MOST_COUNTED)).all()
        and ((rows[:, layout.LOOK] >= 0.0) & (rows[:, layout.LOOK] < MOST_COUNTED)).all()
        and (rows[:, SEEN] % 1 == 0.0).all()
        and ((rows[:, WEIGHT] >= LIGHTEST) & (rows[:, WEIGHT] <= HEAVIEST)).all()
        and np.isin(rows[:, RUNG], range(layout.MOST_RUNGS)).all()
        and (abs(rungs[..., layout.SCORE]) <= FAR).all()
        and ((squares >= 0.0) & (degrees >= 0.0)).all()
        and ((squares <= FAR**1.5) & (degrees <= FAR**1.5)).all()
        and (variance <= FAR**1.5).all()
        and all(_is_chain(cfg, row) for row in rows)
    )


def _is_chain(cfg: SmoothSurfaceConfig, row: Array) -> bool:
    """Whole groups, each once, the constants first; ends and worths that agree with them."""
    n = row[layout.ALIVE]
    if n % 1 != 0.0 or not cfg.features <= n <= cfg.size:
        return False
    n, first = int(n), int(layout.column_at(0))
    columns = row[first : first + 2 * n].reshape(n, 2)
    if (columns % 1 != 0.0).any() or (columns < 0.0).any():
        return False
    if (columns >= (cfg.functions, cfg.features)).any():
        return False
    groups, ends, column = set(), set(), 0
    while column < n:
        function, kind = int(columns[column, 0]), int(layout.kind_of(cfg, int(columns[column, 1])))
        wanted = np.arange(int(layout.first_of(cfg, kind)), int(layout.first_of(cfg, kind + 1)))
        group = columns[column : column + len(wanted)]
        whole = len(group) == len(wanted) and (group[:, 1] == wanted).all()
        if not whole or (group[:, 0] != function).any() or (function, kind) in groups:
            return False
        if (function == 0) != (column < cfg.features):
            return False
        groups.add((function, kind))
        column += len(wanted)
        ends.add(column)
    found = [row[int(layout.rung_at(rung)) + layout.END] for rung in range(layout.MOST_RUNGS)]
    at = int(layout.worth_at(cfg, 0, 0))
    worths = row[at : at + layout.KINDS * cfg.functions].reshape(-1, layout.KINDS)
    known = {(int(f), int(kind)) for f, kind in np.argwhere(worths != layout.ABSENT)}
    pivots = row[[int(layout.row_at(cfg, i)) for i in range(n)]]
    return bool(
        found[0] == cfg.features
        and found[-1] == n
        and set(found) <= ends
        and found == sorted(found)
        and known == groups
        and (worths >= layout.ABSENT).all()
        and (worths <= FAR).all()
        and (pivots >= 0.1 * SMALLEST_PIVOT).all()
    )


register(
    SmoothSurfaceConfig,
    Learner.of(
        globals(), begins_anew=True, guarded=lambda cfg: True, largest_payoff=LARGEST_PAYOFF
    ),
)
