"""One smooth surface over the whole context, against dense formulas (docs/smooth-surface.md)."""

import math

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.learners import smooth_surface as ss
from continuarm.core.learners.smooth import layout
from continuarm.core.learners.smooth.ladder import CONSTANT, ladder
from continuarm.core.request import ALONE, Foreseen, Observation, Region, Request
from continuarm.errors import PolicyError, SettingsError

NO_POOL = np.empty((0, 0))
SHAPES = [(0, 2), (1, 1), (1, 2), (2, 2), (4, 2), (3, 12)]


class Surface:
    """A row of the learner, and the same by dense formulas on all payoffs."""

    def __init__(self, dx: int, dy: int, seed: int = 0, columns: int = 90) -> None:
        self.cfg = ca.SmoothSurface(columns=columns).configured(dx, dy)
        self.ladder = ladder(dx, dy, self.cfg.features, columns)
        self.row = np.empty(ss.width(self.cfg))
        self.work = np.full(ss.scratch(self.cfg), np.nan)
        ss.init(self.cfg, self.row, np.full(dy, 0.5))
        self.rng = np.random.default_rng(seed)
        self.observed: list[tuple[Array, Array, float]] = []
        self.weights: list[float] = []

    def tell(self, u: Array, y: Array, z: float) -> Foreseen:
        self.weights.append(self.row[layout.WEIGHT])
        self.observed.append((u, y, z))
        seen = Observation(u, y, z, np.empty(0), 1.0, ALONE, True)
        return ss.tell(self.cfg, self.row, NO_POOL, seen, self.work)

    def play(self, n: int) -> None:
        for _ in range(n):
            u, y = self.rng.uniform(-1, 1, self.cfg.dx), self.rng.random(self.cfg.dy)
            peak = 0.5 + 0.3 * math.sin(2.0 * u.sum())
            z = -float(((y - peak) ** 2).sum()) + 0.3 * float(self.rng.standard_normal())
            self.tell(u, y, z)

    def columns(self, u: Array, y: Array) -> Array:
        def legendre(k: int, x: float) -> float:
            return float(np.polynomial.Legendre.basis(k)(x))

        v, dy = 2 * y - 1, self.cfg.dy
        twists = [v[i] * v[j] for i in range(dy) for j in range(i + 1, dy)]
        features = np.array([1.0, *v, *(v * v / 2), *twists])
        functions = [
            (legendre(a, u[i]) if a else 1.0) * (legendre(b, u[j]) if b else 1.0)
            for i, a, j, b in self.ladder.functions
        ]
        return np.array([functions[f] * features[k] for f, k in self.ladder.columns])

    def normal(self, end: int, count: int | None = None) -> tuple[Array, Array]:
        """Λ + Σ wφφᵀ and Σ wφz of the first `end` columns, of z minus the first payoff."""
        a, b = np.diag(self.ladder.ridges[:end]), np.zeros(end)
        for (u, y, z), w in list(zip(self.observed, self.weights, strict=True))[:count]:
            phi = self.columns(u, y)[:end]
            a += w * np.outer(phi, phi)
            b += w * phi * (z - self.observed[0][2])
        return a, b

    def request(self, u: Array, xi: Array) -> Request:
        dy = self.cfg.dy
        whole = Region(np.zeros(dy), np.ones(dy), True)
        return Request(u, whole, np.full(dy, 0.4), np.full(dy, ss.reach(self.cfg)), xi)


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_each_rung_is_the_beginning_of_the_next(dx: int, dy: int) -> None:
    features = 1 + dy + dy * (dy + 1) // 2
    found = ladder(dx, dy, features, 150)
    assert len(set(found.columns)) == len(found.columns) == len(found.ridges) == found.ends[-1]
    assert found.ends == sorted(set(found.ends))
    first = {found.functions[f] for f, k in found.columns[: found.ends[0]] if k > 0}
    assert first == {CONSTANT}
    assert {k for _, k in found.columns[: found.ends[0]]} == set(range(features))
    assert len(found.ends) == 1 or found.ends[-1] <= 150
    smaller = ladder(dx, dy, features, 60)
    assert found.columns[: smaller.ends[-1]] == smaller.columns


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_one_triangle_is_least_squares_for_every_rung(dx: int, dy: int) -> None:
    surface = Surface(dx, dy)
    surface.play(150)
    r, d = ss.dense(surface.cfg, surface.row)
    for end in surface.ladder.ends:
        a, b = surface.normal(end)
        np.testing.assert_allclose(r[:end, :end].T @ r[:end, :end], a, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(r[:end, :end].T @ d[:end], b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_scores_are_densities_one_step_ahead(dx: int, dy: int) -> None:
    surface = Surface(dx, dy)
    surface.play(120)
    early, m = layout.first_payoffs(surface.cfg), surface.cfg.rungs
    scores, squares, degrees = np.zeros(m), np.zeros(m), np.zeros(m)
    for t, ((u, y, z), w) in enumerate(zip(surface.observed, surface.weights, strict=True)):
        for rung, end in enumerate(surface.ladder.ends):
            a, b = surface.normal(end, t)
            phi = surface.columns(u, y)[:end]
            h = w * phi @ np.linalg.solve(a, phi)
            error = z - surface.observed[0][2] - phi @ np.linalg.solve(a, b)
            square = error**2 / (1.0 + h)
            if t >= early:
                scores[rung] *= 1.0 - surface.cfg.recent / (t + 1.0 + 20.0)
                if squares[rung] > 0.0:
                    variance = squares[rung] / degrees[rung]
                    scores[rung] -= 0.5 * (math.log1p(h) + math.log(variance) + square / variance)
            squares[rung] += w / (1.0 + h) * square
            degrees[rung] += w / (1.0 + h)
    numbers = surface.row[layout.RUNGS : layout.triangle(surface.cfg)].reshape(m, layout.NUMBERS)
    np.testing.assert_allclose(numbers[:, layout.SCORE], scores, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(numbers[:, layout.SQUARES], squares, rtol=1e-8)
    np.testing.assert_allclose(numbers[:, layout.DEGREES], degrees, rtol=1e-8)
    assert scores[int(surface.row[layout.RUNG])] == pytest.approx(scores.max())


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_units_of_payoffs_do_not_matter(unit: float) -> None:
    plain, scaled = Surface(1, 2), Surface(1, 2)
    plain.play(80)
    for u, y, z in plain.observed:
        scaled.tell(u, y, 1000.0 * unit + unit * z)
    decisions = []
    for surface in (plain, scaled):
        xi, y = np.random.default_rng(1).standard_normal(ss.draws(surface.cfg)), np.empty(2)
        request = surface.request(np.array([0.3]), xi)
        ss.decide(surface.cfg, surface.row, NO_POOL, request, surface.work, y)
        decisions.append(y)
    np.testing.assert_allclose(decisions[0], decisions[1], atol=1e-6)


@pytest.mark.parametrize(("dx", "dy"), [(1, 1), (1, 2), (2, 2), (4, 2)])
def test_a_decision_is_the_peak_of_a_draw_within_reach_of_the_centre(dx: int, dy: int) -> None:
    surface = Surface(dx, dy)
    surface.play(200)
    cfg, row = surface.cfg, surface.row
    lead = int(row[layout.RUNG])
    end, u = surface.ladder.ends[lead], surface.rng.uniform(-1, 1, dx)
    xi = surface.rng.standard_normal(ss.draws(cfg))
    xi[0] = 0.1  # not uniform
    y, best = np.empty(dy), np.empty(dy)
    ss.decide(cfg, row, NO_POOL, surface.request(u, xi), surface.work, y)
    ss.best(cfg, row, surface.request(u, xi), surface.work, best)

    (a, b), w = surface.normal(end), row[layout.WEIGHT]
    mean, spread = _solved(a, b), np.linalg.inv(a)
    noise = layout.noise_of(cfg, row, lead)
    zero = surface.columns(u, np.full(dy, 0.4))[:end]

    def bound(at: Array) -> float:
        gain = surface.columns(u, at)[:end] - zero
        return float(gain @ mean - math.sqrt(w * noise * gain @ spread @ gain))

    fitted = _highest(surface, u, mean, np.zeros(dy), np.ones(dy))
    way = [0.4 + t / 64 * (fitted - 0.4) for t in range(65)]
    ahead = (surface.columns(u, fitted)[:end] - zero) @ mean
    sure = bound(fitted) > 0.5 * ahead  # the gain is more than two standard errors
    expected = fitted if sure else way[int(np.argmax([bound(at) for at in way]))]
    np.testing.assert_allclose(best, expected, atol=1e-6)

    r, d = (part[..., :end][:end] for part in ss.dense(cfg, row))
    drawn = _solved(r, d + cfg.spread * math.sqrt(w * noise) * xi[:end])
    low, high = np.maximum(best - 0.1, 0.0), np.minimum(best + 0.1, 1.0)
    peak = _highest(surface, u, drawn, low, high)
    value = [surface.columns(u, at)[:end] @ drawn for at in (y, peak)]
    assert value[0] >= value[1] - 1e-5 * abs(value[1])
    assert (y >= low - 1e-9).all()
    assert (y <= high + 1e-9).all()


def _solved(a: Array, b: Array) -> Array:
    return np.asarray(np.linalg.solve(a, b), np.float64)


def _highest(surface: Surface, u: Array, theta: Array, low: Array, high: Array) -> Array:
    """By a fine lattice, refined: no derivative and no library of our own."""
    dy, end = surface.cfg.dy, len(theta)
    for _ in range(14):
        axes = np.linspace(low, high, 9)
        lattice = np.stack(np.meshgrid(*axes.T, indexing="ij"), -1).reshape(-1, dy)
        values = [surface.columns(u, at)[:end] @ theta for at in lattice]
        best, step = lattice[int(np.argmax(values))], (high - low) / 4.0
        low, high = np.maximum(best - step / 2, low), np.minimum(best + step / 2, high)
    return np.asarray(best)


def test_expected_payoffs_are_those_of_the_rung_that_decides() -> None:
    surface = Surface(2, 2)
    surface.play(120)
    cfg, row, u = surface.cfg, surface.row, np.array([0.2, -0.7])
    ys = surface.rng.random((5, 2))
    found = ss.expected(cfg, row, u, ys)
    assert found is not None
    lead = int(row[layout.RUNG])
    end = surface.ladder.ends[lead]
    a, b = surface.normal(end)
    phi = np.array([surface.columns(u, y)[:end] for y in ys])
    noise = row[layout.WEIGHT] * layout.noise_of(cfg, row, lead)
    spread = np.einsum("ij,ji->i", phi, np.linalg.solve(a, phi.T))
    np.testing.assert_allclose(found[:, 0], surface.observed[0][2] + phi @ np.linalg.solve(a, b))
    np.testing.assert_allclose(found[:, 1], np.sqrt(noise * spread))


def test_weights_are_scaled_back_and_nothing_else_changes() -> None:
    surface = Surface(1, 2)
    surface.play(100)
    grown = surface.row.copy()
    u, xi = np.array([0.1]), np.random.default_rng(3).standard_normal(ss.draws(surface.cfg))
    before, after = np.empty(2), np.empty(2)
    request = surface.request(u, xi)
    ss.decide(surface.cfg, grown, NO_POOL, request, surface.work, before)
    layout_weight = 1e7
    root, first = math.sqrt(layout_weight), int(layout.triangle(surface.cfg))
    grown[first:] *= root  # as if all weights had grown
    for rung in range(surface.cfg.rungs):
        k = int(layout.rung_at(surface.cfg, rung))
        grown[[k + layout.SQUARES, k + layout.DEGREES]] *= layout_weight
    grown[layout.WEIGHT] *= layout_weight
    ss.decide(surface.cfg, grown, NO_POOL, request, surface.work, after)
    np.testing.assert_allclose(after, before, atol=1e-9)
    seen = Observation(u, before, 0.5, np.empty(0), 1.0, ALONE, True)
    ss.tell(surface.cfg, grown, NO_POOL, seen, surface.work)
    ss.tell(surface.cfg, surface.row, NO_POOL, seen, surface.work)
    assert grown[layout.WEIGHT] == pytest.approx(1.0, rel=0.1)
    for row, out in ((grown, after), (surface.row, before)):
        ss.decide(surface.cfg, row, NO_POOL, request, surface.work, out)
    np.testing.assert_allclose(after, before, atol=1e-6)


def test_smooth_and_rough_dependence_choose_their_rungs() -> None:
    box, columns = ca.Box.unit(1), []
    for waves in (0.0, 4.0):
        policy = ca.Policy(box, box, partition=ca.Grid(1), learner=ca.SmoothSurface(), rng=0)
        rng = np.random.default_rng(0)
        for _ in range(1500):
            x = rng.random(1)
            decision = policy.ask(x)
            peak = 0.5 + 0.3 * math.sin(waves * math.pi * x[0])
            payoff = -((decision.value[0] - peak) ** 2) + 0.02 * rng.standard_normal()
            policy.tell(decision, payoff)
        columns.append(policy.life.model.explain(x, policy.life.limits)["columns"])
        worst = max(
            abs(policy.recommend([x])[0] - 0.5 - 0.3 * math.sin(waves * math.pi * x))
            for x in np.linspace(0.05, 0.95, 19)
        )
        assert worst < 0.1
    assert columns[0] < columns[1]


def test_all_payoffs_the_same_decide_near_the_start() -> None:
    box = ca.Box.unit(1)
    learner = ca.SmoothSurface(reach=0.1)
    policy = ca.Policy(box, box, partition=ca.Grid(1), learner=learner, start=[0.3], rng=0)
    for _ in range(60):
        decision = policy.ask([0.5])
        assert 0.2 <= decision.value[0] <= 0.4
        policy.tell(decision, 1.0)
    assert policy.recommend([0.5]) == pytest.approx([0.3])


def test_the_contract_of_learners() -> None:
    ca.testing.check_learner(ca.SmoothSurface(), rounds=40)


def test_a_table_that_no_reader_follows_is_not_exported() -> None:
    box = ca.Box.unit(1)
    policy = ca.Policy(box, box, partition=ca.Grid(1), learner=ca.SmoothSurface(), rng=0)
    policy.tell(policy.ask([0.5]), 1.0)
    with pytest.raises(PolicyError, match="SmoothSurface"):
        policy.export()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"reach": 0.0}, "reach"),
        ({"reach": 1.5}, "reach"),
        ({"spread": -1.0}, "spread"),
        ({"fade": 2.0}, "fade"),
        ({"recent": math.nan}, "recent"),
        ({"columns": 0}, "columns"),
        ({"memory": 0}, "memory"),
    ],
)
def test_options_are_checked(options: dict[str, float], field: str) -> None:
    with pytest.raises(SettingsError, match=field):
        ca.SmoothSurface(**options)  # type: ignore[arg-type]
    assert ca.SmoothSurface(columns=1).configured(1, 1).rungs == 1


def test_too_many_columns_are_refused() -> None:
    with pytest.raises(SettingsError, match="at most 2000 columns"):
        ca.SmoothSurface().configured(1, 1000)
