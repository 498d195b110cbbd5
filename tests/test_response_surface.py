"""The response surface of one bin against textbook formulas (docs/recommended.md)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from continuarm.core.compiling import Array
from continuarm.core.learners import response_surface as rs
from continuarm.core.learners.boxed_peak import climb, peak
from continuarm.core.learners.response_surface import ResponseSurface, ResponseSurfaceConfig
from continuarm.core.learners.surface import layout
from continuarm.core.request import ALONE, Foreseen, Observation, Region, Request

NO_POOL = np.empty((0, 0))


def unit(d: int) -> Region:
    """The unit cube."""
    return Region(np.zeros(d), np.ones(d), True)


class Surface:
    """A row of the learner, and the same by textbook formulas on all observations."""

    def __init__(self, dx: int, dy: int, terms: int = 0, varying: int = 0, seed: int = 0) -> None:
        terms = terms or dy + dy * (dy + 1) // 2
        options: ResponseSurfaceConfig = ResponseSurface().configured(dx, dy)
        self.cfg = options._replace(terms=terms, varying=varying or dy, pairs=dx < 3)
        self.p = rs.size(self.cfg)
        self.cfg = self.cfg._replace(most=self.p)
        self.row = np.empty(rs.width(self.cfg))
        self.work = np.empty(rs.scratch(self.cfg))
        rs.init(self.cfg, self.row, np.full(dy, 0.5))
        self.rng = np.random.default_rng(seed)
        self.observed: list[tuple[Array, Array, float]] = []
        self.weights: list[float] = []

    def tell(self, u: Array, y: Array, z: float) -> Foreseen:
        self.weights.append(self.row[layout.WEIGHT])
        self.observed.append((u, y, z))
        seen = Observation(u, y, z, np.empty(0), 1.0, ALONE, True)
        return rs.tell(self.cfg, self.row, NO_POOL, seen, self.work)

    def request(self, u: Array, xi: Array) -> Request:
        start, reach = np.full(self.cfg.dy, 0.5), np.full(self.cfg.dy, rs.reach(self.cfg))
        return Request(u, unit(self.cfg.dy), start, reach, xi)

    def play(self, n: int) -> None:
        for _ in range(n):
            u, y = self.rng.uniform(-1, 1, self.cfg.dx), self.rng.random(self.cfg.dy)
            self.tell(u, y, float(self.rng.standard_normal() + 3 * y[0]))

    def features(self, u: Array, y: Array) -> Array:
        v, dy = 2 * y - 1, self.cfg.dy
        dx = self.cfg.dx
        products = [
            u[i] * u[j] for i in range(dx) for j in range(i, dx if self.cfg.pairs else i + 1)
        ]
        twists = [v[i] * v[j] for i in range(dy) for j in range(i + 1, dy)]
        terms = np.array([*v, *(v * v / 2), *twists])[: self.cfg.terms]
        varying = np.outer(u, terms[: self.cfg.varying]).ravel()
        return np.array([1.0, *u, *products, *terms, *varying])

    def normal(self) -> tuple[Array, Array]:
        """Σ wφφᵀ + ridge and Σ wφz, of z minus the first payoff."""
        constant = self.p - self.cfg.dx * self.cfg.varying
        ridge = np.where(np.arange(self.p) < constant, self.cfg.ridge, self.cfg.varying_ridge)
        a, b = np.diag(ridge), np.zeros(self.p)
        for (u, y, z), w in zip(self.observed, self.weights, strict=True):
            phi = self.features(u, y)
            a += w * np.outer(phi, phi)
            b += w * phi * (z - self.observed[0][2])
        return a, b

    def triangle(self, row: Array | None = None) -> tuple[Array, Array]:
        row = self.row if row is None else row
        r, d, k = np.zeros((self.p, self.p)), np.zeros(self.p), layout.triangle(self.cfg)
        for i in range(self.p):
            r[i, i:] = row[k : k + self.p - i]
            d[i] = row[k + self.p - i]
            k += self.p - i + 1
        assert k == len(row)
        return r, d


SHAPES = [
    (0, 1, 2, 1),
    (1, 2, 5, 5),
    (2, 3, 9, 6),
    (2, 3, 9, 3),
    (3, 1, 2, 2),
    (2, 4, 8, 4),
]


@pytest.mark.parametrize(("dx", "dy", "terms", "varying"), SHAPES)
def test_the_triangle_is_weighted_least_squares(
    dx: int, dy: int, terms: int, varying: int
) -> None:
    surface = Surface(dx, dy, terms, varying)
    surface.play(3 * surface.p)
    a, b = surface.normal()
    r, d = surface.triangle()
    np.testing.assert_allclose(r.T @ r, a, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(r.T @ d, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("dx", "dy", "terms", "varying"), SHAPES)
def test_residual_and_score_are_one_step_ahead(dx: int, dy: int, terms: int, varying: int) -> None:
    surface = Surface(dx, dy, terms, varying)
    surface.play(2 * surface.p)
    squares, degrees = surface.row[layout.SQUARES], surface.row[layout.DEGREES]
    a, b = surface.normal()
    phi = surface.features(*surface.observed[-1][:2])
    w, z = surface.row[layout.WEIGHT], 0.7
    h = w * phi @ np.linalg.solve(a, phi)
    e = z - surface.observed[0][2] - phi @ np.linalg.solve(a, b)
    foreseen = surface.tell(*surface.observed[-1][:2], z)
    assert foreseen.square == pytest.approx(e**2 / (1 + h), rel=1e-8)
    assert foreseen.spread == pytest.approx(-0.5 * np.log(1 + h), rel=1e-8)
    gained = surface.row[layout.DEGREES] - degrees
    assert gained == pytest.approx(w / (1 + h), rel=1e-9)
    assert surface.row[layout.SQUARES] - squares == pytest.approx(
        gained * e**2 / (1 + h), rel=1e-8
    )


def test_old_observations_fade_like_a_power_of_their_age() -> None:
    surface = Surface(0, 1)
    surface.play(2000)
    n = np.arange(1, 2001)
    expected = ((n[-1] + 20) / (n + 19.5)) ** 0.5
    np.testing.assert_allclose(
        surface.weights[-1] / np.array(surface.weights), expected, rtol=0.02
    )


@pytest.mark.parametrize(("dx", "dy", "terms", "varying"), SHAPES)
def test_a_child_has_its_parents_surface_in_its_own_units(
    dx: int, dy: int, terms: int, varying: int
) -> None:
    surface = Surface(dx, dy, terms, varying)
    surface.play(4 * surface.p)
    low, high = np.linspace(-1, -0.2, dx), np.linspace(0.3, 1.0, dx)
    child = np.empty_like(surface.row)
    rs.inherit(surface.cfg, surface.row, child, low, high, 0.25)
    (r, d), (r_child, d_child) = surface.triangle(), surface.triangle(child)
    mean, mean_child = np.linalg.solve(r, d), np.linalg.solve(r_child, d_child)
    for _ in range(5):
        u, y = surface.rng.uniform(-1, 1, dx), surface.rng.random(dy)
        mine = surface.features((low + high) / 2 + (high - low) / 2 * u, y)
        its = surface.features(u, y)
        assert its @ mean_child == pytest.approx(mine @ mean, rel=1e-9)
        sds = [np.linalg.norm(np.linalg.solve(t.T, f)) for t, f in ((r, mine), (r_child, its))]
        # the child's observations weigh a quarter, and its next one weighs 1
        assert sds[1] == pytest.approx(2 * sds[0] * np.sqrt(surface.row[layout.WEIGHT]), rel=1e-9)
    assert child[layout.AGE] == surface.row[layout.AGE] / 4
    assert child[layout.SQUARES] / child[layout.DEGREES] == pytest.approx(
        surface.row[layout.SQUARES] / surface.row[layout.DEGREES]
    )


def test_decisions_are_the_peaks_of_surfaces_drawn_from_the_posterior() -> None:
    """With one dimension and a sharp curvature, the draws have the posterior's spread."""
    surface = Surface(0, 1)
    for _ in range(4000):
        y = surface.rng.random(1)
        z = -8.0 * (y[0] - 0.4) ** 2 + 0.1 * surface.rng.standard_normal()
        surface.tell(np.empty(0), y, float(z))
    a, b = surface.normal()
    mean = np.linalg.solve(a, b)
    variance = surface.row[layout.SQUARES] / surface.row[layout.DEGREES]
    assert variance == pytest.approx(0.01, rel=0.15)
    spread = surface.cfg.spread**2 * variance * surface.row[layout.WEIGHT]
    draws = surface.rng.multivariate_normal(mean, spread * np.linalg.inv(a), 20_000)
    expected = 0.5 - 0.5 * draws[:, 1] / draws[:, 2]
    y, peaks = np.empty(1), []
    for xi in surface.rng.standard_normal((20_000, 2)):
        request = surface.request(np.empty(0), xi)
        rs.decide(surface.cfg, surface.row, NO_POOL, request, surface.work, y)
        peaks.append(y[0])
    error = expected.std() / np.sqrt(20_000)
    assert np.mean(peaks) == pytest.approx(expected.mean(), abs=6 * error)
    assert np.std(peaks) == pytest.approx(expected.std(), rel=0.04)
    request = surface.request(np.empty(0), np.empty(0))
    rs.best(surface.cfg, surface.row, request, surface.work, y)
    assert y[0] == pytest.approx(0.5 - 0.5 * mean[1] / mean[2], rel=1e-9)


def climbed(slope: Array, h: Array) -> Array:
    d, v = len(slope), np.empty(len(slope))
    twists = h[np.triu_indices(d, 1)]
    region = Region(np.full(d, -1.0), np.ones(d), False)
    climb(slope.copy(), np.diag(h).copy(), twists, region, np.empty(2 * d * d + d), v)
    return v


@settings(max_examples=150)
@given(st.integers(1, 6), st.integers(0, 10**6), st.floats(0, 3), st.booleans())
def test_the_peak_of_a_concave_quadratic_in_the_box(
    d: int, seed: int, exponent: float, inside: bool
) -> None:
    """No point is higher, at any condition number up to 1000, in the box or on its edges."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    h = -(axes * 10 ** rng.uniform(0, exponent, d)) @ axes.T
    top = rng.uniform(-0.9, 0.9, d) if inside else rng.uniform(-3, 3, d)
    slope = -h @ top
    v = climbed(slope, h)
    if inside:
        np.testing.assert_allclose(v, top, atol=1e-7)
    found: Any = minimize(  # type: ignore[call-overload]
        lambda x: -(slope @ x + 0.5 * x @ h @ x),
        v,
        jac=lambda x: -(slope + h @ x),
        bounds=[(-1, 1)] * d,
        method="L-BFGS-B",
        options={"ftol": 1e-14, "gtol": 1e-10},
    )
    height = slope @ v + 0.5 * v @ h @ v
    assert -found.fun <= height + 1e-6 * (1 + abs(height))
    assert (np.abs(v) <= 1).all()


def test_where_the_surface_is_not_concave_the_better_end_is_taken() -> None:
    assert peak(0.3, 2.0, -1.0, 1.0) == peak(0.3, 0.0, -1.0, 1.0) == 1.0
    assert peak(-0.3, 2.0, -1.0, 1.0) == -1.0
    assert peak(-0.3, 2.0, -0.5, 1.0) == 1.0  # the bend outweighs the slope: 0.7 to 0.4
    np.testing.assert_allclose(climbed(np.array([0.1, 0.5]), np.diag([2.0, -1.0])), [1.0, 0.5])
