"""Thompson sampling on one linear model, against dense formulas."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import continuarm as ca
from continuarm.core.compiling import Array, in_python
from continuarm.core.learners import basis_surface as bs
from continuarm.core.learners import logit_demand as ld
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


class Demand:
    """A row of a `LogitDemand`, and the same by dense formulas."""

    def __init__(self, dx: int, low: list[float], high: list[float], **more: Any) -> None:
        self.options = ca.LogitDemand(low=low, high=high, **more)
        self.cfg = self.options.configured(dx, len(low))
        self.row = np.empty(ld.width(self.cfg))
        self.work = np.full(ld.scratch(self.cfg), np.nan)
        ld.init(self.cfg, self.row, np.full(len(low), 0.5))
        self.rng = np.random.default_rng(0)

    def columns(self, u: Array, v: float) -> Array:
        return np.asarray(np.kron([1.0, v], polynomials(u, self.options.degree)), np.float64)

    def posterior(self, j: int) -> tuple[Array, Array]:
        """Precision and mean of a product's coefficients."""
        k = ld.triangle_at(self.cfg, j)
        r, d = dense(self.row[k:], self.cfg.size)
        return r.T @ r, np.asarray(np.linalg.solve(r, d), np.float64)

    def margins(self, y: Array) -> Array:
        low, high = np.array(self.options.low), np.array(self.options.high)
        return np.asarray(low + y * (high - low))

    def tell(self, u: Array, y: Array, payoff: float) -> None:
        seen = Observation(u, y, payoff, np.empty(0), 1.0, ALONE, True)
        ld.tell(self.cfg, self.row, NO_POOL, seen, self.work)


def newton(a: Array, mean: Array, phi: Array, outcome: float) -> tuple[Array, Array]:
    """Where prior times likelihood is highest, and minus the Hessian of its logarithm there."""
    theta = mean.copy()
    for _ in range(200):
        q = 1.0 / (1.0 + math.exp(-float(phi @ theta)))
        hessian = a + q * (1.0 - q) * np.outer(phi, phi)
        step = np.linalg.solve(hessian, phi * (outcome - q) - a @ (theta - mean))
        far = abs(float(phi @ step))  # of log-odds; no further than 2
        theta = theta + step * min(1.0, 2.0 / (1e-300 + far))
    return hessian, theta


@pytest.mark.parametrize(("dx", "products"), [(0, 1), (1, 1), (2, 2), (1, 3)])
def test_a_payoff_is_a_newton_step_to_the_mode(dx: int, products: int) -> None:
    """Laplace's approximation, for each product of a basket."""
    low, high = [-0.5 + 0.1 * j for j in range(products)], [2.0 + j for j in range(products)]
    demand = Demand(dx, low, high, degree=2, ridge=0.2)
    for _ in range(60):
        u, y = demand.rng.uniform(-1, 1, dx), demand.rng.random(products)
        outcomes = (demand.rng.random(products) < 0.4 - 0.3 * y).astype(float)
        before = [demand.posterior(j) for j in range(products)]
        demand.tell(u, y, float(outcomes @ demand.margins(y)))
        for j, (a, mean) in enumerate(before):
            phi = demand.columns(u, 2 * y[j] - 1)
            hessian, theta = newton(a, mean, phi, outcomes[j])
            found = demand.posterior(j)
            np.testing.assert_allclose(found[0], hessian, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(found[1], theta, rtol=1e-9, atol=1e-9)
    assert ld.progress(demand.cfg, demand.row) == 60


def test_prices_are_best_for_a_draw() -> None:
    demand = Demand(1, [-0.3, 0.5], [2.0, 4.0], spread=0.8)
    cfg, p = demand.cfg, demand.cfg.size
    for _ in range(80):
        u, y = demand.rng.uniform(-1, 1, 1), demand.rng.random(2)
        outcomes = demand.rng.random(2) < 0.8 - 0.7 * y
        demand.tell(u, y, float(outcomes @ demand.margins(y)))
    y = np.empty(2)
    for _ in range(20):
        u, xi = demand.rng.uniform(-1, 1, 1), demand.rng.standard_normal(ld.draws(cfg))
        for low, high in ((0.0, 1.0), (0.2, 0.35)):
            ld.decide(cfg, demand.row, NO_POOL, request(u, xi, 2, low, high), demand.work, y)
            for j in range(2):
                a, mean = demand.posterior(j)
                cholesky = np.linalg.cholesky(a).T
                drawn = mean + 0.8 * np.linalg.solve(cholesky, xi[j * p : (j + 1) * p])

                def loss(at: float, j: int = j, drawn: Array = drawn, u: Array = u) -> float:
                    margin = float(demand.margins(np.array([at, at]))[j])
                    odds = float(demand.columns(u, 2 * at - 1) @ drawn)
                    return -margin / (1.0 + math.exp(-odds))

                found = minimize_scalar(loss, bounds=(low, high), method="bounded")
                others = min(found.fun, loss(low), loss(high))
                assert low <= y[j] <= high
                assert loss(y[j]) <= others + 1e-9


def test_what_was_bought_is_read_from_the_payoff() -> None:
    margins = np.array([1.0, 2.5, -0.25])
    for basket in range(8):
        payoff = sum(m for j, m in enumerate(margins) if basket >> j & 1)
        assert ld.bought(margins, payoff) == basket
    assert ld.bought(margins, 0.8) == ld.NEITHER
    for same in ([1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, -1.0]):
        for payoff in (0.0, 1.0, 2.0):  # whatever was bought: else what is learned were biased
            assert ld.bought(np.array(same), payoff) == ld.NEITHER
    assert ld.bought(np.array([1.0, 2.0, 3.0]), 6.0) == ld.NEITHER


@pytest.mark.parametrize("payoff", [0.3, 1e300, -1.0])
def test_a_payoff_that_does_not_say_what_was_bought_teaches_nothing(payoff: float) -> None:
    demand = Demand(1, [0.0], [2.0])
    before = demand.row.copy()
    demand.tell(np.zeros(1), np.array([0.5]), payoff)
    np.testing.assert_array_equal(demand.row, before)
    demand.tell(np.zeros(1), np.array([0.0]), 0.0)  # it would have cost nothing
    np.testing.assert_array_equal(demand.row, before)


@pytest.mark.parametrize("ridge", [1e-9, 0.1, 1e9])
@pytest.mark.parametrize("pattern", ["always", "never", "against"])
def test_extreme_purchases_leave_finite_states(ridge: float, pattern: str) -> None:
    """Sure for long, and then the opposite, again and again."""
    demand = Demand(1, [1.0], [2.0], ridge=ridge)
    for t in range(3000):
        y = np.array([float(t % 2)])
        is_bought = pattern == "always" or (pattern == "against" and t // 500 % 2 == 0)
        demand.tell(np.array([1.0 - 2.0 * (t % 3)]), y, float(is_bought) * (1.0 + y[0]))
        assert np.isfinite(demand.row).all()
    xi, y = demand.rng.standard_normal(ld.draws(demand.cfg)), np.empty(1)
    ld.decide(demand.cfg, demand.row, NO_POOL, request(np.zeros(1), xi, 1), demand.work, y)
    assert 0.0 <= y[0] <= 1.0
    assert ld.fits(demand.cfg, _read(demand.row))


def _read(row: Array) -> Any:
    class Rows:
        rows = row[None, :]

    return Rows()


@pytest.mark.parametrize("level", [-800.0, -3.0, 0.0, 50.0, 1e6])
@pytest.mark.parametrize("slope", [-1e6, -2.0, -1e-9, 0.0, 3.0])
def test_a_price_is_in_its_range_whatever_the_demand(level: float, slope: float) -> None:
    price = in_python(ld.price)(level, slope, 1.0, -0.5, 0.5)
    assert -0.5 <= price <= 0.5


@pytest.mark.parametrize(
    "options",
    [*OPTIONS.values(), ca.LogitDemand(low=[0.0, -0.5], high=[1.0, 2.0])],
    ids=[*OPTIONS, "logit"],
)
def test_the_contract_of_learners(options: Any) -> None:
    ca.testing.check_learner(options, rounds=40)


@pytest.mark.parametrize("name", ["linear-thompson", "cosine-thompson", "logit-thompson"])
def test_the_contract_of_policies(name: str) -> None:
    ca.testing.check_policy(name)


@pytest.mark.parametrize("name", ["gentle-price", "two-communities", "logit-demand"])
def test_problems_without_purchases_are_refused(name: str) -> None:
    rule = f"sums of `price - cost` of what was bought, but {name} pays "
    for call in (
        lambda: ca.simulate("logit-thompson", name, horizon=10),
        lambda: ca.compare(["logit-thompson"], ["purchase", name], horizons=[10]),
    ):
        with pytest.raises(SettingsError, match=rule):
            call()


def test_what_is_added_to_payoffs_is_seen() -> None:
    def paid(x: Array, y: Array, rng: np.random.Generator) -> Any:
        return y[0] if rng.random() < 0.5 else 0.0

    def always(rng: np.random.Generator, i: Any, x: Array) -> Array:
        return np.full(len(i), 0.1)

    for added in (None, always):
        world = ca.Problem(
            context=UNIT,
            decision=PRICES,
            mean_payoff=lambda x, y: 0.5 * y[0],
            best_decision=lambda x: np.array([2.0]),
            sample_payoff=paid,
            disturbance=added,
        )
        if added is None:
            ca.simulate("logit-thompson", world, horizon=10)
        else:
            with pytest.raises(SettingsError, match="of what was bought, but problem pays"):
                ca.simulate("logit-thompson", world, horizon=10)


def test_a_product_that_costs_something() -> None:
    world = ca.problem("logit-demand", dx=1, dy=1)
    rng = np.random.default_rng(0)
    price = world.decision.centre
    paid = max(world.payoff([0.5], price, rng) for _ in range(50))
    cost = float(price[0] - paid)
    told = ca.simulate(("logit-thompson", {"cost": cost}), world, horizon=3000, rng=0)
    assert told.policies[0].bins()[0].progress == 3000
    with pytest.raises(SettingsError, match="LogitThompson needs payoffs"):
        ca.simulate(("logit-thompson", {"cost": 0.9 * cost}), world, horizon=10)


@pytest.mark.parametrize("name", ["purchase", "two-subscriptions"])
def test_who_is_told_the_form_of_demand_finds_the_prices(name: str) -> None:
    """What its prices lose, as a part of what the same prices for all contexts lose: over seeds
    0.06 ± 0.02 and 0.14 ± 0.04, so that 0.4 is more than five standard errors away."""
    world = ca.problem(name)
    contexts = world.draw_contexts(np.random.default_rng(0), 400)
    best, heights = world.best_many(contexts)

    def lost(prices: Array) -> float:
        pairs = zip(contexts, prices, strict=True)
        return float(np.mean(heights - [world.mean_payoff(x, y) for x, y in pairs]))

    run = ca.simulate("logit-thompson", world, horizon=20_000, replications=12, rng=0)
    found = [lost(policy.recommend_many(contexts)) for policy in run.policies]
    assert np.mean(found) < 0.4 * lost(np.tile(best.mean(axis=0), (len(contexts), 1)))


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
        ("LogitThompson", "cost", 2.0, "`cost < [2.0]`, the highest prices, must hold"),
        ("LogitThompson", "cost", [1.0, 1.0], "`cost` must be a number, or one for each of 1"),
        ("LogitThompson", "cost", "1", "`cost` must be a number, or one for each of 1 prices"),
        ("LogitThompson", "cost", -1.0, "`0 <= cost` must hold, but got -1.0"),
        ("LogitThompson", "degree", -1, "`degree` must be a whole number >= 0, but got -1"),
        ("LogitThompson", "degree", 1.5, "`degree` must be a whole number >= 0, but got 1.5"),
    ],
)
def test_options_are_checked(name: str, option: str, value: Any, rule: str) -> None:
    with pytest.raises(SettingsError) as caught:
        getattr(ca, name)(UNIT, PRICES, **{option: value})
    assert rule in str(caught.value)


def test_options_of_learners_are_checked() -> None:
    with pytest.raises(SettingsError, match="`basis` must be one of"):
        ca.BasisSurface(basis="splines")
    for low, high in (([1.0], [1.0]), ([-2.0], [-1.0])):
        with pytest.raises(SettingsError, match="must hold for margins, but got"):
            ca.LogitDemand(low=low, high=high)
    for low in ([], [0.0, 0.0]):
        with pytest.raises(SettingsError, match="must have a margin for each product"):
            ca.LogitDemand(low=low, high=[1.0])
    for bad in ([math.nan], [True], "0", 0.0):
        with pytest.raises(SettingsError, match="`low` must be numbers within"):
            ca.LogitDemand(low=bad, high=[1.0])  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="a margin is needed for each of 2 prices"):
        ca.LogitDemand(low=[0.0], high=[1.0]).configured(1, 2)
    with pytest.raises(SettingsError, match="purchases of at most 6 products"):
        ca.LogitDemand(low=[0.0] * 7, high=[1.0] * 7).configured(1, 7)
    with pytest.raises(SettingsError, match="at most 2000 columns, but got"):
        ca.BasisSurface(order=3).configured(20, 3)
    for options in (ca.BasisSurface(order=100), ca.BasisSurface(basis="cosines", order=100)):
        with pytest.raises(SettingsError, match="at most 2000 columns, but got"):
            options.configured(10**6, 10**6)


@pytest.mark.parametrize("name", ["LinearThompson", "CosineThompson", "LogitThompson"])
def test_before_there_are_payoffs_the_start_is_recommended(name: str) -> None:
    policy = getattr(ca, name)(UNIT, PRICES, start=[0.7], rng=0)
    assert policy.recommend([0.5]) == pytest.approx([0.7])
    policy.tell(policy.ask([0.5]), 0.0)
    with pytest.raises(PolicyError, match="a table is exported of what a reader can follow"):
        policy.export()


def test_prices_of_coupled_products_are_refused() -> None:
    pair = ca.Polytope(ca.Box([0.0, 0.0], [2.0, 2.0], names=["a", "b"]), ["a + b <= 3"])
    ca.LinearThompson(UNIT, pair)
    with pytest.raises(SettingsError, match="LogitDemand decides for any value of a box"):
        ca.LogitThompson(UNIT, pair)
