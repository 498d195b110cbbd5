"""Thompson sampling on one linear model, against dense formulas."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.learners import basis_surface as bs
from continuarm.core.learners.linear import triangle
from continuarm.core.request import ALONE, Foreseen, Observation, Region, Request
from continuarm.errors import PolicyError, SettingsError

NO_POOL = np.empty((0, 0))
OPTIONS = {
    "polynomials": ca.BasisSurface(ridge=0.3),
    "degree 3": ca.BasisSurface(order=3),
    "cosines": ca.BasisSurface(basis="cosines", order=4, spread=0.7),
}
SHAPES = [(0, 2), (1, 1), (2, 2), (4, 3)]
UNIT = ca.Box.unit(1)
PRICES = ca.Box([0.0], [2.0], names=["price"])


def dense(packed: Array, p: int) -> tuple[Array, Array]:
    """R and d of a triangle."""
    r, d = np.zeros((p, p)), np.empty(p)
    for i, k in enumerate(triangle.pivots(p)):
        r[i, i:], d[i] = packed[k : k + p - i], packed[k + p - i]
    return r, d


def request(u: Array, xi: Array, dy: int, low: float = 0.0, high: float = 1.0) -> Request:
    region = Region(np.full(dy, low), np.full(dy, high), (low, high) == (0.0, 1.0))
    return Request(u, region, np.full(dy, 0.4), np.zeros(dy), xi)


def polynomials(u: Array, degree: int) -> Array:
    """All products of Legendre polynomials up to a total degree, the lowest first."""
    found: list[tuple[int, tuple[int, ...], float]] = []
    for orders in itertools.product(range(degree + 1), repeat=len(u)):
        if sum(orders) <= degree:
            factors = [np.polynomial.Legendre.basis(k)(x) for k, x in zip(orders, u, strict=True)]
            found.append((sum(orders), tuple(-k for k in orders), float(np.prod(factors))))
    return np.array([value for _, _, value in sorted(found)])


def waves(u: Array, highest: int) -> tuple[Array, Array]:
    """The cosines, and how much more each is held back."""
    if len(u) <= 2:
        pairs = itertools.product(range(highest + 1), repeat=len(u))
        all_ = [orders for orders in pairs if sum(orders) <= highest]
        all_.sort(key=lambda orders: (sum(orders), tuple(-k for k in orders)))
    else:
        unit = np.eye(len(u), dtype=int)
        all_ = [(0,) * len(u)]
        all_ += [tuple(k * row) for k in range(1, highest + 1) for row in unit]
    values = [math.prod(math.cos(math.pi * k * (x + 1) / 2) for k, x in zip(o, u, strict=True))
              for o in all_]  # fmt: skip
    return np.array(values), np.array([1.0 + sum(k * k for k in o) for o in all_])


class Surface:
    """A row of a `BasisSurface`, and the same by dense formulas on all payoffs."""

    def __init__(self, options: ca.BasisSurface, dx: int, dy: int) -> None:
        self.options, self.cfg = options, options.configured(dx, dy)
        self.row = np.empty(bs.width(self.cfg))
        self.work = np.full(bs.scratch(self.cfg), np.nan)
        bs.init(self.cfg, self.row, np.full(dy, 0.5))
        self.rng = np.random.default_rng(0)
        self.observed: list[tuple[Array, Array, float]] = []

    def functions(self, u: Array) -> tuple[Array, Array]:
        """Of the context, and their ridges."""
        if self.options.basis == "cosines":
            values, growth = waves(u, self.options.order)
        else:
            values = polynomials(u, self.options.order)
            growth = np.ones(len(values))
        return values, self.options.ridge * growth

    def columns(self, u: Array, y: Array) -> Array:
        v, dy = 2 * y - 1, self.cfg.dy
        twists = [v[i] * v[j] for i in range(dy) for j in range(i + 1, dy)]
        return np.kron([1.0, *v, *(v * v / 2), *twists], self.functions(u)[0])

    def posterior(self, count: int | None = None) -> tuple[Array, Array]:
        """Λ + Σ φφᵀ and Σ φz, of z less the first payoff."""
        ridges = self.functions(np.zeros(self.cfg.dx))[1]
        a, b = np.diag(np.tile(ridges, self.cfg.features)), np.zeros(self.cfg.size)
        for u, y, z in self.observed[:count]:
            phi = self.columns(u, y)
            a += np.outer(phi, phi)
            b += phi * (z - self.observed[0][2])
        return a, b

    def tell(self, u: Array, y: Array, z: float) -> Foreseen:
        self.observed.append((u, y, z))
        seen = Observation(u, y, z, np.empty(0), 1.0, ALONE, True)
        return bs.tell(self.cfg, self.row, NO_POOL, seen, self.work)

    def play(self, n: int) -> list[Foreseen]:
        found = []
        for _ in range(n):
            u, y = self.rng.uniform(-1, 1, self.cfg.dx), self.rng.random(self.cfg.dy)
            peak = 0.5 + 0.3 * math.sin(2.0 * u.sum())
            z = -float(((y - peak) ** 2).sum()) + 0.3 * float(self.rng.standard_normal())
            found.append(self.tell(u, y, z))
        return found


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize(("dx", "dy"), SHAPES)
class TestSurface:
    def test_mean_and_draw_are_those_of_the_posterior(self, name: str, dx: int, dy: int) -> None:
        surface = Surface(OPTIONS[name], dx, dy)
        surface.play(200)
        p, f = surface.cfg.size, surface.cfg.functions
        packed = surface.row[bs.TRIANGLE :]
        (r, d), (a, b) = dense(packed, p), surface.posterior()
        np.testing.assert_allclose(r.T @ r, a, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(r.T @ d, b, rtol=1e-9, atol=1e-9)
        xi, theta = surface.rng.standard_normal(p - f), np.full(p, np.nan)
        for sigma in (0.0, 0.7):
            triangle.draw(packed, sigma, xi, theta)
            mean = np.linalg.solve(a, b)
            cholesky = np.linalg.cholesky(a).T  # upper, with a positive diagonal: it is R
            wanted = mean + sigma * np.linalg.solve(cholesky, np.concatenate([np.zeros(f), xi]))
            np.testing.assert_allclose(theta[f:], wanted[f:], rtol=1e-9, atol=1e-9)

    def test_the_noise_is_what_was_not_foreseen(self, name: str, dx: int, dy: int) -> None:
        surface = Surface(OPTIONS[name], dx, dy)
        foreseen = surface.play(60)
        squares = degrees = 0.0
        for t, ((u, y, z), said) in enumerate(zip(surface.observed, foreseen, strict=True)):
            a, b = surface.posterior(t)
            phi = surface.columns(u, y)
            h = float(phi @ np.linalg.solve(a, phi))
            error = z - surface.observed[0][2] - float(phi @ np.linalg.solve(a, b))
            square = error**2 / (1.0 + h)
            assert said.square == pytest.approx(square, rel=1e-7, abs=1e-12)
            assert said.spread == pytest.approx(-0.5 * math.log1p(h))
            squares, degrees = squares + square / (1.0 + h), degrees + 1.0 / (1.0 + h)
        assert bs.noise_of(surface.row) == pytest.approx(squares / degrees, rel=1e-7)

    def test_a_decision_is_the_peak_of_a_draw(self, name: str, dx: int, dy: int) -> None:
        surface = Surface(OPTIONS[name], dx, dy)
        surface.play(150)
        cfg, row, u = surface.cfg, surface.row, surface.rng.uniform(-1, 1, dx)
        xi, y = surface.rng.standard_normal(bs.draws(cfg)), np.empty(dy)
        sigma = cfg.spread * math.sqrt(bs.noise_of(row))
        theta = np.zeros(cfg.size)
        triangle.draw(row[bs.TRIANGLE :], sigma, xi[: cfg.size - cfg.functions], theta)
        for low, high in ((0.0, 1.0), (0.55, 0.7)):
            bs.decide(cfg, row, NO_POOL, request(u, xi, dy, low, high), surface.work, y)
            tried = surface.rng.uniform(low, high, (300, dy))
            near = np.clip(y + 0.01 * surface.rng.standard_normal((300, dy)), low, high)
            heights = [surface.columns(u, at) @ theta for at in (*tried, *near)]
            assert ((low <= y) & (y <= high)).all()
            assert surface.columns(u, y) @ theta >= max(heights) - 1e-9


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_units_of_payoffs_do_not_matter(unit: float) -> None:
    plain, scaled = (Surface(OPTIONS["polynomials"], 1, 2) for _ in range(2))
    plain.play(80)
    for u, y, z in plain.observed:
        scaled.tell(u, y, 1000.0 * unit + unit * z)
    decisions = []
    for surface in (plain, scaled):
        xi, y = np.random.default_rng(1).standard_normal(bs.draws(surface.cfg)), np.empty(2)
        asked = request(np.array([0.3]), xi, 2)
        bs.decide(surface.cfg, surface.row, NO_POOL, asked, surface.work, y)
        decisions.append(y)
    np.testing.assert_allclose(decisions[0], decisions[1], atol=1e-6)


def test_many_dimensions_have_no_products() -> None:
    assert ca.BasisSurface().configured(1, 10).features == 66
    assert ca.BasisSurface().configured(1, 11).features == 23
    assert ca.BasisSurface(basis="cosines", order=3).configured(2, 1).functions == 10
    assert ca.BasisSurface(basis="cosines", order=3).configured(3, 1).functions == 10


@pytest.mark.parametrize("payoff", [1e100, -1e100, 0.0, 1e-300])
def test_extreme_payoffs_leave_finite_states(payoff: float) -> None:
    surface = Surface(OPTIONS["polynomials"], 1, 2)
    surface.play(30)
    for _ in range(50):
        surface.tell(surface.rng.uniform(-1, 1, 1), surface.rng.random(2), payoff)
    xi, y = surface.rng.standard_normal(bs.draws(surface.cfg)), np.empty(2)
    asked = request(np.zeros(1), xi, 2)
    bs.decide(surface.cfg, surface.row, NO_POOL, asked, surface.work, y)
    assert np.isfinite(surface.row).all()
    assert ((y >= 0.0) & (y <= 1.0)).all()


@pytest.mark.parametrize("options", OPTIONS.values(), ids=[*OPTIONS])
def test_the_contract_of_learners(options: Any) -> None:
    ca.testing.check_learner(options, rounds=40)


@pytest.mark.parametrize("name", ["linear-thompson", "cosine-thompson"])
def test_the_contract_of_policies(name: str) -> None:
    ca.testing.check_policy(name)


@pytest.mark.parametrize(
    ("name", "option", "value", "rule"),
    [
        ("LinearThompson", "degree", 1, "`degree` must be a whole number >= 2, but got 1"),
        ("LinearThompson", "degree", 4, "`degree <= 3` must hold, but got 4"),
        ("LinearThompson", "ridge", 0.0, "<= ridge <= 1000000000.0` must hold, but got 0.0"),
        ("LinearThompson", "spread", -1.0, "`0 <= spread <= 1000000000.0` must hold, but got -1"),
        ("CosineThompson", "frequencies", 0, "`frequencies` must be a whole number >= 1"),
        ("CosineThompson", "frequencies", 101, "`frequencies <= 100` must hold, but got 101"),
        ("CosineThompson", "ridge", math.nan, "must hold, but got nan"),
    ],
)
def test_options_are_checked(name: str, option: str, value: Any, rule: str) -> None:
    with pytest.raises(SettingsError) as caught:
        getattr(ca, name)(UNIT, PRICES, **{option: value})
    assert rule in str(caught.value)


def test_options_of_learners_are_checked() -> None:
    with pytest.raises(SettingsError, match="`basis` must be one of"):
        ca.BasisSurface(basis="splines")
    with pytest.raises(SettingsError, match="at most 2000 columns, but got"):
        ca.BasisSurface(order=3).configured(20, 3)
    for options in (ca.BasisSurface(order=100), ca.BasisSurface(basis="cosines", order=100)):
        with pytest.raises(SettingsError, match="at most 2000 columns, but got"):
            options.configured(10**6, 10**6)


@pytest.mark.parametrize("name", ["LinearThompson", "CosineThompson"])
def test_before_there_are_payoffs_the_start_is_recommended(name: str) -> None:
    policy = getattr(ca, name)(UNIT, PRICES, start=[0.7], rng=0)
    assert policy.recommend([0.5]) == pytest.approx([0.7])
    policy.tell(policy.ask([0.5]), 0.0)
    with pytest.raises(PolicyError, match="a table is exported of what a reader can follow"):
        policy.export()
