"""A smooth surface whose gradients are told, against dense least squares on all of them."""

import math
from collections.abc import Callable

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.learners import smooth_gradient as sg
from continuarm.core.learners import smooth_surface as ss
from continuarm.core.learners.protocol import Read
from continuarm.core.learners.smooth import layout
from continuarm.core.learners.smooth.triangle import ridge_of
from continuarm.core.request import ALONE, Foreseen, Observation, Region, Request
from continuarm.errors import SavedFileError, SettingsError
from continuarm.live import registry
from continuarm.live.reader import Reader
from continuarm.testing.tables import check_table
from tests.dense_surface import (
    NO_POOL,
    Column,
    columns_of,
    ends_of,
    functions_of,
    groups_of,
    rungs_of,
    worths_of,
)

SHAPES = [(0, 1), (1, 1), (1, 2), (2, 3), (4, 2), (1, 12)]
Edit = Callable[[ss.SmoothSurfaceConfig, Array], None]


class Told:
    """A row, and all gradients that it was told, with the weight they had."""

    def __init__(self, dx: int, dy: int, seed: int = 0, memory: int | None = None) -> None:
        self.cfg = ca.SmoothGradient(columns=70, memory=memory).configured(dx, dy)
        self.row = np.empty(sg.width(self.cfg))
        self.work = np.full(sg.scratch(self.cfg), np.nan)
        sg.init(self.cfg, self.row, np.full(dy, 0.5))
        self.rng = np.random.default_rng(seed)
        self.told: list[tuple[Array, Array, Array, float]] = []  # u, y, what counts of g, weight
        self.largest = self.recent = 0.0
        self.born: dict[Column, tuple[int, float]] = {}
        self.note_columns(1.0)

    def note_columns(self, weight: float) -> None:
        for column in columns_of(self.row):
            self.born.setdefault(column, (len(self.told), weight))

    def tell(self, u: Array, y: Array, gradient: Array) -> Foreseen:
        weight = float(self.row[layout.WEIGHT])
        limit = 3.0 * self.largest if self.largest > 0.0 else math.inf
        counted = np.clip(gradient, -limit, limit)
        self.recent = max(self.recent, float(abs(counted).max()))
        self.largest = max(self.largest, self.recent)
        if len(self.told) >= sg.EARLY and self.row[layout.SEEN] >= self.row[layout.LOOK]:
            self.largest = max(self.recent, self.largest / math.sqrt(1.2))
            self.recent = 0.0
        self.told.append((u, y, counted, weight))
        seen = Observation(u, y, 0.0, gradient, 1.0, ALONE, True)
        foreseen = sg.tell(self.cfg, self.row, NO_POOL, seen, self.work)
        self.note_columns(weight)
        return foreseen

    def world(self, u: Array, y: Array) -> Array:
        """Curvatures and products that depend on the context."""
        gap = y - 0.5 - 0.2 * np.sin(2.0 * u.sum() + np.arange(self.cfg.dy))
        return np.asarray(-(3.0 + u.sum()) * gap - 0.5 * gap.sum())

    def play(self, n: int, noise: float = 0.3) -> None:
        for _ in range(n):
            u, y = self.rng.uniform(-1, 1, self.cfg.dx), self.rng.random(self.cfg.dy)
            self.tell(u, y, self.world(u, y) + noise * self.rng.standard_normal(self.cfg.dy))

    def phi(self, u: Array, y: Array, columns: list[Column]) -> Array:
        """The columns of all dimensions of the gradient, `(dy, n)`."""
        dy, v = self.cfg.dy, 2 * y - 1
        features = np.zeros((dy, self.cfg.features))
        features[:, 1 : 1 + dy], features[:, 1 + dy : 1 + 2 * dy] = np.eye(dy), np.diag(v)
        pairs = [(i, j) for i in range(dy) for j in range(i + 1, dy)]
        if self.cfg.features > 1 + 2 * dy:
            for k, (i, j) in enumerate(pairs, 1 + 2 * dy):
                features[i, k], features[j, k] = v[j], v[i]
        values = functions_of(self.cfg, u, {f for f, _ in columns})
        return features[:, [k for _, k in columns]] * [values[f] for f, _ in columns]

    def normal(self, columns: list[Column], count: int, h: float) -> tuple[Array, Array]:
        """Λ + Σ wφφᵀ, and Σ wφg less what the ridge expects of the curvatures."""
        bends = range(1 + self.cfg.dy, 1 + 2 * self.cfg.dy)
        a, b = np.zeros((len(columns), len(columns))), np.zeros(len(columns))
        for k, (f, feature) in enumerate(columns):
            ridge = float(ridge_of(self.cfg, f, int(layout.kind_of(self.cfg, feature))))
            a[k, k] = ridge * self.born[f, feature][1]
            if f == 0 and feature >= bends.start:
                a[k, k] = sg.TRUST
                b[k] = -sg.CAUTION * h * sg.TRUST * (feature in bends)
        begins = np.array([self.born[column][0] for column in columns])
        for t, (u, y, gradient, weight) in enumerate(self.told[:count]):
            phi = np.where(begins <= t, self.phi(u, y, columns), 0.0)
            a += weight * phi.T @ phi
            b += weight * phi.T @ gradient
        return a, b

    def best(self, u: Array, low: float = 0.0, high: float = 1.0) -> Array:
        dy = self.cfg.dy
        region = Region(np.full(dy, low), np.full(dy, high), low == 0.0 and high == 1.0)
        request = Request(u, region, np.full(dy, 0.4), np.zeros(dy), np.empty(0))
        y = np.empty(dy)
        sg.best(self.cfg, self.row, request, self.work, y)
        return y


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_the_triangle_is_that_of_least_squares(dx: int, dy: int) -> None:
    gradients, done = Told(dx, dy), 0
    for n in (1, 2, 10, 60, 150):
        gradients.play(n - done)
        done = n
        columns = columns_of(gradients.row)
        a, b = gradients.normal(columns, n, gradients.largest)
        r, d = ss.dense(gradients.cfg, gradients.row)
        np.testing.assert_allclose(r.T @ r, a, rtol=1e-9, atol=1e-9 * abs(a).max())
        np.testing.assert_allclose(r.T @ d, b, rtol=1e-9, atol=1e-9 * abs(b).max())
        assert gradients.row[sg.LARGEST] == gradients.largest
        assert gradients.row[-1] == gradients.recent


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_no_column_but_the_empty_one_is_of_a_level(dx: int, dy: int) -> None:
    gradients = Told(dx, dy)
    gradients.play(300)
    assert [f for f, feature in columns_of(gradients.row) if feature == 0] == [0]
    r, d = ss.dense(gradients.cfg, gradients.row)
    assert not r[0, 1:].any()
    assert d[0] == 0.0
    assert len(columns_of(gradients.row)) > gradients.cfg.features or dx == 0 or dy == 12


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_scores_are_predictive_densities_of_all_numbers_of_a_gradient(dx: int, dy: int) -> None:
    """Each number is foreseen with those of the gradient before it."""
    gradients = Told(dx, dy)
    for n in range(70):
        row, h = gradients.row, gradients.largest
        before, looks = rungs_of(row).copy(), row[layout.SEEN] >= row[layout.LOOK]
        columns, ends, age = columns_of(row), ends_of(row), row[layout.AGE]
        gradients.play(1)
        if looks:  # the order changes at once
            continue
        u, y, gradient, weight = gradients.told[-1]
        phi, (a, b) = gradients.phi(u, y, columns), gradients.normal(columns, n, h)
        for rung in (0, 1, 4, layout.MOST_RUNGS - 1):
            score, squares, degrees, _ = before[rung]
            end, spread = ends[rung], 0.0
            m, c = a[:end, :end].copy(), b[:end].copy()
            for j in range(dy):
                at = phi[j, :end]
                share = 1.0 + weight * at @ np.linalg.solve(m, at)
                square = (gradient[j] - at @ np.linalg.solve(m, c)) ** 2 / share
                if n >= sg.EARLY:
                    variance = squares / degrees
                    score *= 1.0 - 2.0 / dy / (age + 1.0 + 20.0)
                    score -= 0.5 * (math.log(share * variance) + square / variance)
                squares += weight * square / share
                degrees += weight / share
                m, c = m + weight * np.outer(at, at), c + weight * at * gradient[j]
                spread -= 0.5 * math.log(share)
            expected = [score, squares, degrees]
            np.testing.assert_allclose(rungs_of(row)[rung, :3], expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_the_rung_with_the_best_score_decides(dx: int, dy: int) -> None:
    gradients = Told(dx, dy)
    for _ in range(100):
        gradients.play(1)
        scores = rungs_of(gradients.row)[:, layout.SCORE]
        judged = len(gradients.told) > sg.EARLY
        assert gradients.row[layout.RUNG] == (int(np.argmax(scores)) if judged else 0)


@pytest.mark.parametrize("n", [1, 2, 5, 40, 200])
@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_it_decides_where_the_gradient_of_least_squares_vanishes(dx: int, dy: int, n: int) -> None:
    """Or points out of the box: the conditions of the highest point."""
    gradients = Told(dx, dy)
    gradients.play(n)
    columns = columns_of(gradients.row)[: ends_of(gradients.row)[int(gradients.row[layout.RUNG])]]
    a, b = gradients.normal(columns, n, gradients.largest)
    theta = np.linalg.solve(a, b)
    for u in gradients.rng.uniform(-1, 1, (10, dx)):
        y = gradients.best(u)
        slope = gradients.phi(u, y, columns) @ theta
        scale = 1e-6 * gradients.largest
        assert (slope[y < 1.0] <= scale).all()
        assert (slope[y > 0.0] >= -scale).all()
        inside = gradients.best(u, 0.45, 0.55)
        assert ((inside >= 0.45) & (inside <= 0.55)).all()


def test_a_peak_is_where_dense_numpy_has_it() -> None:
    gradients = Told(2, 3)
    gradients.play(400, noise=0.05)
    columns = columns_of(gradients.row)[: ends_of(gradients.row)[int(gradients.row[layout.RUNG])]]
    theta = np.linalg.solve(*gradients.normal(columns, 400, gradients.largest))
    for u in gradients.rng.uniform(-0.6, 0.6, (20, 2)):
        at_zero = gradients.phi(u, np.full(3, 0.5), columns) @ theta
        hessian = np.array(
            [gradients.phi(u, 0.5 + 0.5 * e, columns) @ theta - at_zero for e in np.eye(3)]
        ).T
        peak = 0.5 - 0.5 * np.linalg.solve(hessian, at_zero)
        assert ((peak > 0.0) & (peak < 1.0)).all()
        np.testing.assert_allclose(gradients.best(u), peak, atol=1e-9)


def test_a_pair_of_contexts_that_matters_enters() -> None:
    gradients = Told(6, 1, seed=1)
    for _ in range(800):
        u, y = gradients.rng.uniform(-1, 1, 6), gradients.rng.random(1)
        noise = 0.1 * gradients.rng.standard_normal(1)
        gradients.tell(u, y, 2.0 * (0.5 + 0.4 * u[0] * u[3] - y) + noise)
    table = gradients.cfg.table[: layout.FUNCTION * gradients.cfg.functions].reshape(-1, 6)
    pairs = [table[f] for f, _, _ in groups_of(gradients.cfg, gradients.row) if table[f][3] > 0.0]
    assert {(int(f[0]), int(f[2])) for f in pairs} == {(0, 3)}
    u = np.array([0.8, 0.1, -0.3, -0.8, 0.5, 0.2])
    assert gradients.best(u)[0] == pytest.approx(0.5 - 0.4 * 0.64, abs=0.05)


def test_the_curvature_that_is_expected_fades_as_gradients_do() -> None:
    """h falls like 1/√t, but not below what is told now."""
    gradients, none = Told(0, 1), np.empty(0)
    gradients.tell(none, np.array([0.5]), np.array([100.0]))
    for _ in range(1000):
        gradients.tell(none, gradients.rng.random(1), np.array([0.5]))
    before = float(gradients.row[sg.LARGEST])
    for _ in range(9000):
        gradients.tell(none, gradients.rng.random(1), np.array([0.5]))
    assert gradients.row[sg.LARGEST] == pytest.approx(before / math.sqrt(10.0), rel=0.2)
    gradients.tell(none, gradients.rng.random(1), np.array([8.0]))
    assert gradients.row[sg.LARGEST] == 8.0
    for _ in range(5000):
        gradients.tell(none, gradients.rng.random(1), np.array([7.9]))
    assert gradients.row[sg.LARGEST] == 7.9


def test_units_of_gradients_do_not_matter() -> None:
    plain, scaled = Told(2, 2), Told(2, 2)
    plain.play(150)
    for u, y, gradient, _ in plain.told:
        scaled.tell(u, y, 1e6 * gradient)
    assert columns_of(scaled.row) == columns_of(plain.row)
    for u in plain.rng.uniform(-1, 1, (20, 2)):
        np.testing.assert_allclose(scaled.best(u), plain.best(u), atol=1e-7)


def test_weights_are_scaled_back_and_nothing_else_changes() -> None:
    plain, grown = Told(1, 2), Told(1, 2)
    plain.play(100)
    grown.play(100)
    first, end = int(layout.triangle(plain.cfg)), int(sg._placed_at(plain.cfg))
    grown.row[first:end] *= math.sqrt(1e7)  # as if all weights had grown
    rungs_of(grown.row)[:, [layout.SQUARES, layout.DEGREES]] *= 1e7
    grown.row[layout.WEIGHT] *= 1e7
    grown.row[sg.KEPT] *= 1e7
    for one in (plain, grown):
        one.tell(np.array([0.1]), np.array([0.3, 0.8]), np.array([2.0, -1.0]) * one.largest)
    assert grown.row[layout.WEIGHT] == pytest.approx(1.0, rel=0.1)
    assert plain.row[layout.WEIGHT] > 1.5
    for u in plain.rng.uniform(-1, 1, (20, 1)):
        np.testing.assert_allclose(grown.best(u), plain.best(u), atol=1e-9)


def test_where_nothing_is_remembered_any_more_it_is_cautious_again() -> None:
    """The ridge of the curvature does not fade with the gradients: steps stay small."""
    gradients = Told(0, 1, memory=5)
    none = np.empty(0)
    gradients.tell(none, np.array([0.5]), np.array([1.0]))
    for _ in range(300):
        gradients.tell(none, np.array([0.5]), np.array([0.0]))
    gradients.tell(none, np.array([0.5]), np.array([0.1]))
    assert 0.5 < gradients.best(none)[0] < 0.53


def put(at: int, value: float) -> Edit:
    def edit(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
        row[at] = value

    return edit


def a_level(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    worths_of(cfg, row)[3, layout.LEVEL] = layout.ABSENT


def no_slope(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    worths_of(cfg, row)[1, layout.SLOPES] = layout.ABSENT


def no_pivot(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    row[int(layout.row_at(cfg, 4))] = 0.0


CRAFTED: dict[str, Edit] = {
    "largest below zero": put(sg.LARGEST, -1.0),
    "largest endless": put(sg.LARGEST, np.inf),
    "more kept than there was": put(sg.KEPT, 1.5),
    "less kept than nothing": put(sg.KEPT, -1.0),
    "half placed": put(sg.PLACED, 0.5),
    "placed outside": put(-2, 1.5),
    "placed nowhere": put(-2, np.nan),
    "recent below zero": put(-1, -1.0),
    "recent endless": put(-1, np.inf),
    "a level": a_level,
    "a slope less": no_slope,
    "no pivot": no_pivot,
    "no rung": put(layout.RUNG, 99.0),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_rows_are_refused(name: str) -> None:
    gradients = Told(4, 2)
    gradients.play(100)
    cfg, row = gradients.cfg, gradients.row.copy()

    def fits() -> bool:
        return sg.fits(cfg, Read(row[None], [1], {1}, NO_POOL, set(), []))

    assert fits()
    before = row.copy()
    CRAFTED[name](cfg, row)
    crafted = row.copy()
    assert not fits()
    np.testing.assert_array_equal(row, crafted)  # what is read is not changed
    assert (before != crafted).any()


@pytest.mark.parametrize(("dx", "dy"), [*SHAPES, (11, 3), (2, 70)])
def test_nothing_is_written_beyond_the_row_and_the_room(dx: int, dy: int) -> None:
    """Compiled code would not notice; and every row that is reached is accepted."""
    gradients, beyond = Told(dx, dy), 50
    rows = np.full(len(gradients.row) + 2 * beyond, -7.5)
    rows[beyond:-beyond] = gradients.row
    room = np.full(len(gradients.work) + 2 * beyond, -7.5)
    gradients.row, gradients.work = rows[beyond:-beyond], room[beyond:-beyond]
    for _ in range(5):
        gradients.play(20)
        gradients.best(gradients.rng.uniform(-1, 1, dx))
        read = Read(gradients.row[None], [1], {1}, NO_POOL, set(), [])
        assert sg.fits(gradients.cfg, read)
    for whole in (rows, room):
        assert (whole[:beyond] == -7.5).all()
        assert (whole[-beyond:] == -7.5).all()


def test_a_place_from_a_log_is_gradients_of_nothing_there() -> None:
    """Of what all contexts have in common: 12 payoffs of three dimensions are three gradients."""
    placed, cfg = Told(0, 3), Told(0, 3).cfg
    y = np.array([0.2, 0.6, 0.9])
    sg.place(cfg, placed.row, y, 12.0)
    np.testing.assert_array_equal(placed.best(np.empty(0)), y)
    assert sg.fits(cfg, Read(placed.row[None], [1], {1}, NO_POOL, set(), []))
    columns = columns_of(placed.row)
    phi, expected = placed.phi(np.empty(0), y, columns), placed.normal(columns, 0, 0.0)[0]
    expected += 3.0 * phi.T @ phi
    r, _ = ss.dense(cfg, placed.row)
    np.testing.assert_allclose((r.T @ r)[:4, :], expected[:4, :], rtol=1e-12, atol=1e-12)
    placed.tell(np.empty(0), y, np.full(3, 1.0))
    moved = placed.best(np.empty(0)) - y
    assert (abs(moved - 0.5 / 2.0 / 4.0) < 0.05).all()  # a quarter of a first step, in v


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"fade": 2.0}, "fade"),
        ({"recent": math.nan}, "recent"),
        ({"columns": 0}, "columns"),
        ({"memory": 0}, "memory"),
    ],
)
def test_options_are_checked(options: dict[str, float], field: str) -> None:
    with pytest.raises(SettingsError, match=field):
        ca.SmoothGradient(**options)  # type: ignore[arg-type]


def test_the_contract_of_learners() -> None:
    ca.testing.check_learner(ca.SmoothGradient(), rounds=40)
    ca.testing.check_learner(ca.SmoothGradient(memory=20), rounds=40)


@pytest.mark.parametrize("dy", [1, 3, 20])
def test_a_reader_follows_the_same_rule(dy: int) -> None:
    policy, rng = ca.RobbinsMonro(ca.Box.unit(1), ca.Box.unit(dy)), np.random.default_rng(1)
    for told in range(120):
        if told in (0, 1, 20):
            check_table(policy)
        x = rng.random(1)
        decision = policy.ask(x)
        peak = 0.3 + 0.4 * (x[0] > 0.26) * np.linspace(0.5, 1.0, dy)
        policy.tell(decision, 0.0, gradient=peak - decision.value + 0.1 * rng.normal(size=dy))
    check_table(policy)


def test_a_reader_of_a_table_of_gradients_starts_where_a_log_says() -> None:
    policy, rng = ca.RobbinsMonro(ca.Box.unit(0), ca.Box.unit(1)), np.random.default_rng(3)
    prices = rng.random(200)
    policy.learn_from({"0": prices, "payoff": -((prices - 0.8) ** 2)})
    assert Reader(policy.export()).decide()[0] == pytest.approx(policy.recommend()[0], abs=1e-9)


def test_a_gradient_surface_of_before_is_refused_in_one_line() -> None:
    plain = {"kind": "GradientSurface", "options": {"memory": None, "fade": 0.5}}
    with pytest.raises(SavedFileError, match="`RobbinsMonro`") as caught:
        registry.from_plain(plain)
    assert "'GradientSurface'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_bins_split_by_evidence_any_more() -> None:
    with pytest.raises(SettingsError, match='bins="evidence": leave `bins` out') as caught:
        ca.RobbinsMonro(ca.Box.unit(1), ca.Box.unit(1), bins="evidence")
    assert "\n" not in str(caught.value)
