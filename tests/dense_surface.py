"""A row of `SmoothSurface`, and the same by dense formulas on all payoffs it was told."""

import math
from collections.abc import Callable

import numpy as np

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.learners import smooth_surface as ss
from continuarm.core.learners.protocol import Read
from continuarm.core.learners.smooth import layout
from continuarm.core.learners.smooth.triangle import ridge_of
from continuarm.core.request import ALONE, Foreseen, Observation, Region, Request

NO_POOL = np.empty((0, 0))
Column = tuple[int, int]  # a function of the context, a feature of the decision
Payoff = Callable[[Array, Array], float]


def columns_of(row: Array) -> list[Column]:
    first = int(layout.column_at(0))
    listed = row[first : first + 2 * int(row[layout.ALIVE])].reshape(-1, 2)
    return [(int(function), int(feature)) for function, feature in listed]


def groups_of(cfg: ss.SmoothSurfaceConfig, row: Array) -> list[tuple[int, int, int]]:
    """Function, kind and first column of each group, the constants too."""
    found: list[tuple[int, int, int]] = []
    for k, (function, feature) in enumerate(columns_of(row)):
        kind = int(layout.kind_of(cfg, feature))
        if not found or found[-1][:2] != (function, kind):
            found.append((function, kind, k))
    return found


def ends_of(row: Array) -> list[int]:
    return [int(layout.end_of(row, rung)) for rung in range(layout.MOST_RUNGS)]


def rungs_of(row: Array) -> Array:
    """The numbers of each rung, which can be changed."""
    numbers = row[layout.RUNGS : int(layout.column_at(0))]
    return numbers.reshape(layout.MOST_RUNGS, layout.NUMBERS)


def worths_of(cfg: ss.SmoothSurfaceConfig, row: Array) -> Array:
    """The worth of each function and kind, which can be changed."""
    at = int(layout.worth_at(cfg, 0, 0))
    return row[at : at + layout.KINDS * cfg.functions].reshape(-1, layout.KINDS)


def fits(cfg: ss.SmoothSurfaceConfig, row: Array) -> bool:
    return ss.fits(cfg, Read(row[None], [1], {1}, NO_POOL, set(), []))


def functions_of(cfg: ss.SmoothSurfaceConfig, u: Array, which: set[int]) -> dict[int, float]:
    """What these functions of the context are."""
    table = cfg.table[: layout.FUNCTION * cfg.functions].reshape(-1, layout.FUNCTION)
    powers, values = np.polynomial.legendre.legvander(u, cfg.degree), {}
    for f in which:
        i, a, j, b = (int(number) for number in table[f, :4])
        if a == layout.STEP:
            values[f] = float(u[i] >= table[f, 3])
        else:
            values[f] = float((powers[i, a] if a else 1.0) * (powers[j, b] if b else 1.0))
    return values


class Surface:
    """Payoffs are kept with the weight they had, columns with when and how they were appended."""

    def __init__(self, dx: int, dy: int, seed: int = 0, columns: int | None = 90) -> None:
        self.cfg = ca.SmoothSurface(columns=columns).configured(dx, dy)
        self.row = np.empty(ss.width(self.cfg))
        self.work = np.full(ss.scratch(self.cfg), np.nan)
        ss.init(self.cfg, self.row, np.full(dy, 0.5))
        self.rng = np.random.default_rng(seed)
        self.observed: list[tuple[Array, Array, float]] = []
        self.weights: list[float] = []
        self.cuts: list[float] = []  # of each payoff
        self.kept: list[float] = []  # of the level, after each payoff
        self.alike = self.last = 0.0
        self.born: dict[Column, tuple[int, float]] = {}  # payoffs before, weight of the ridge
        self.note_columns(1.0)

    def note_columns(self, weight: float) -> None:
        for column in columns_of(self.row):
            self.born.setdefault(column, (len(self.observed), weight))

    def tell(self, u: Array, y: Array, z: float) -> Foreseen:
        weight = float(self.row[layout.WEIGHT])
        self.weights.append(weight)
        self.observed.append((u, y, z))
        seen = Observation(u, y, z, np.empty(0), 1.0, ALONE, True)
        foreseen = ss.tell(self.cfg, self.row, NO_POOL, seen, self.work)
        self.note_columns(weight)
        self.cuts.append(foreseen.cut)
        self.kept.append(self.kept_of_level(foreseen) if foreseen.judged else 1.0)
        return foreseen

    def kept_of_level(self, foreseen: Foreseen) -> float:
        """What is kept of the level after a payoff (eq. 9)."""
        error = min(max(foreseen.surprise, -4.0), 4.0)
        self.alike, self.last = 0.95 * self.alike + error * self.last, error
        return min(1.0, max(1e-3, 1.0 - (self.alike - 3.0 * math.sqrt(10.0)) / 20.0))

    def play(self, n: int, payoff: Payoff | None = None, noise: float = 0.3) -> None:
        def wave(u: Array, y: Array) -> float:
            return -float(((y - 0.5 - 0.3 * math.sin(2.0 * u.sum())) ** 2).sum())

        for _ in range(n):
            u, y = self.rng.uniform(-1, 1, self.cfg.dx), self.rng.random(self.cfg.dy)
            z = (payoff or wave)(u, y) + noise * float(self.rng.standard_normal())
            self.tell(u, y, z)

    def phi(self, u: Array, y: Array, columns: list[Column]) -> Array:
        v, dy = 2 * y - 1, self.cfg.dy
        twists = [v[i] * v[j] for i in range(dy) for j in range(i + 1, dy)]
        features = np.array([1.0, *v, *(v * v / 2), *twists])
        values = functions_of(self.cfg, u, {f for f, _ in columns})
        return np.array([values[f] * features[k] for f, k in columns])

    def normal(self, columns: list[Column], count: int | None = None) -> tuple[Array, Array]:
        """Λ + Σ wφφᵀ and Σ wφz of these columns, of z minus the first payoff."""
        cfg, births = self.cfg, [self.born[column] for column in columns]
        kinds = [int(layout.kind_of(cfg, feature)) for _, feature in columns]
        ridges = [float(ridge_of(cfg, f, k)) for (f, _), k in zip(columns, kinds, strict=True)]
        a = np.diag([ridge * weight for ridge, (_, weight) in zip(ridges, births, strict=True)])
        b, begins = np.zeros(len(columns)), np.array([born for born, _ in births])
        told = list(zip(self.observed, self.weights, self.cuts, self.kept, strict=True))[:count]
        for t, ((u, y, z), w, cut, kept) in enumerate(told):
            phi = np.where(begins <= t, self.phi(u, y, columns), 0.0)
            a += w * np.outer(phi, phi)
            b += w * phi * (z - cut - self.observed[0][2])
            if kept < 1.0:  # the first row of the triangle is what is known of the level
                forgotten = (1.0 - kept) * a[0] / a[0, 0]
                a, b = a - np.outer(forgotten, a[0]), b - forgotten * b[0]
        return a, b

    def lead(self) -> list[Column]:
        """The columns of the rung that decides."""
        return columns_of(self.row)[: ends_of(self.row)[int(self.row[layout.RUNG])]]

    def request(self, u: Array, xi: Array) -> Request:
        dy = self.cfg.dy
        whole = Region(np.zeros(dy), np.ones(dy), True)
        return Request(u, whole, np.full(dy, 0.4), np.full(dy, ss.reach(self.cfg)), xi)

    def decide(self, u: Array, xi: Array) -> Array:
        y = np.empty(self.cfg.dy)
        ss.decide(self.cfg, self.row, NO_POOL, self.request(u, xi), self.work, y)
        return y

    def best(self, u: Array) -> Array:
        y = np.empty(self.cfg.dy)
        ss.best(self.cfg, self.row, self.request(u, np.empty(0)), self.work, y)
        return y
