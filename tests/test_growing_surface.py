"""Terms that earn their way into a bin's model, against dense linear algebra (eq. 24 to 26)."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.polynomial.legendre import legval

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.learners import response_surface as rs
from continuarm.core.learners.response_surface import ResponseSurface
from continuarm.core.learners.surface import layout
from continuarm.core.learners.surface.candidates import (
    LARGEST_SCORE,
    LEAST_LEAD,
    UNFORESEEABLE,
    is_candidate,
    weigh,
)
from continuarm.core.learners.surface.children import LONG
from continuarm.core.learners.surface.entering import enter, move_left
from continuarm.core.learners.surface.explaining import dense
from continuarm.core.learners.surface.features import fill_features, legendre
from continuarm.core.learners.surface.terms_of_children import DEGREES, next_legendre
from continuarm.core.request import ALONE, Foreseen, Observation

NEXT, NEXT_TWO, OF_BASELINE = layout.NEXT, layout.NEXT_TWO, layout.OF_BASELINE
NO_POOL = np.empty((0, 0))
SHAPES = [(1, 1), (1, 2), (2, 3), (4, 2)]


def p_of(k: int, u: Any) -> Any:
    """NumPy's Legendre polynomial of degree k."""
    return legval(u, [0.0] * k + [1.0])


class Growing:
    """A row of the learner, and the same by textbook formulas on all observations."""

    def __init__(self, dx: int, dy: int, **options: Any) -> None:
        self.cfg = ResponseSurface(degree=5, **options).configured(dx, dy)
        self.row = np.empty(rs.width(self.cfg))
        self.work = np.empty(rs.scratch(self.cfg))
        rs.init(self.cfg, self.row, np.full(dy, 0.5))
        self.rng = np.random.default_rng(dx + 10 * dy)
        self.observed: list[tuple[Array, Array, float, float]] = []

    def tell(self, u: Array, y: Array, z: float) -> Foreseen:
        self.observed.append((u, y, z, self.row[layout.WEIGHT]))
        seen = Observation(u, y, z, np.empty(0), 1.0, ALONE, True)
        found: Foreseen = rs.tell(self.cfg, self.row, NO_POOL, seen, self.work)
        return found

    def play(self, n: int, bend: float = 0.0, degree: int = 2) -> None:
        """Payoffs whose slope has a term of this degree in the first context."""
        for _ in range(n):
            u, y = self.rng.uniform(-1, 1, self.cfg.dx), self.rng.random(self.cfg.dy)
            off = 2.0 * y - 1.0 - bend * p_of(degree, u[0])
            self.tell(u, y, float(0.3 * self.rng.standard_normal() - off @ off))

    def features(self, u: Array, y: Array) -> Array:
        out = np.empty(int(self.row[layout.SIZE]))
        fill_features(self.cfg, self.row, u, y, 1.0, out)
        return out


def normal(phis: list[Array], payoffs: list[float], weights: list[float], ridge: Array) -> Any:
    """Σ wφφᵀ + ridge and Σ wφz."""
    a, b = np.diag(ridge), np.zeros(len(ridge))
    for phi, z, w in zip(phis, payoffs, weights, strict=True):
        a += w * np.outer(phi, phi)
        b += w * phi * z
    return a, b


def ridges(cfg: Any, more: int) -> Array:
    p = int(rs.size(cfg))
    constant = p - cfg.dx * cfg.varying
    ridge = np.where(np.arange(p + more) < constant, cfg.ridge, cfg.varying_ridge)
    return np.asarray(ridge)


@pytest.mark.parametrize("k", range(11))
def test_legendre(k: int) -> None:
    for u in np.linspace(-1.0, 1.0, 13):
        assert legendre(k, u) == pytest.approx(p_of(k, u), abs=1e-12)


def test_a_childs_polynomials_in_terms_of_its_parents() -> None:
    middle, half, table = 0.3, 0.4, np.zeros(3 * DEGREES)
    table[0], table[DEGREES], table[DEGREES + 1] = 1.0, -middle / half, 1.0 / half
    u = np.linspace(-0.1, 0.7, 9)
    for k in range(2, 11):
        next_legendre(k, middle, half, table)
        row = table[k % 3 * DEGREES :][: k + 1]
        np.testing.assert_allclose(legval(u, row), p_of(k, (u - middle) / half), atol=1e-9)


@pytest.mark.parametrize("kind", [NEXT, NEXT_TWO])
@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_evidence_is_that_of_the_model_with_this_term(dx: int, dy: int, kind: int) -> None:
    surface = Growing(dx, dy, enter_lead=1e6)
    surface.play(3 * rs.size(surface.cfg) + 40, bend=0.4)
    p, i = int(rs.size(surface.cfg)), dx - 1
    lead = squares = degrees = 0.0
    first = surface.observed[0][2]
    phis: list[list[Array]] = [[], []]
    done: list[Any] = []
    for u, y, z, w in surface.observed:
        phi = surface.features(u, y)
        more = [p_of(2 + k, u[i]) * (2.0 * y - 1.0) for k in range(kind + 1)]
        both = (phi, np.concatenate([phi, *more]))
        found = []
        for k, x in enumerate(both):
            ridge = ridges(surface.cfg, k * (kind + 1) * dy)
            a, b = normal(phis[k], [v for v, _ in done], [v for _, v in done], ridge)
            h = float(w * x @ np.linalg.solve(a, x))
            e = float(z - first - x @ np.linalg.solve(a, b))
            found.append((e * e / (1 + h), -0.5 * math.log(1 + h)))
            phis[k].append(x)
        if squares > 0.0 and found[0][1] > UNFORESEEABLE:
            score = found[1][1] - found[0][1]
            score -= 0.5 * (found[1][0] - found[0][0]) * degrees / squares
            lead = max(lead + min(max(score, -LARGEST_SCORE), LARGEST_SCORE), LEAST_LEAD)
        share = w * math.exp(2.0 * found[1][1])
        squares, degrees = squares + share * found[1][0], degrees + share
        done.append((z - first, w))
    k = layout.slot(surface.cfg, i, kind)
    assert surface.row[layout.SIZE] == p
    assert surface.row[k + layout.ITS_SQUARES] == pytest.approx(squares, rel=1e-6)
    assert surface.row[k + layout.ITS_LEAD] == pytest.approx(lead, abs=1e-6)
    assert lead > 4.0 if dx == 1 else lead != 0.0


@pytest.mark.parametrize("kind", [NEXT, NEXT_TWO])
@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_a_term_that_enters_is_as_if_it_had_been_there(dx: int, dy: int, kind: int) -> None:
    surface = Growing(dx, dy, enter_lead=1e6)
    surface.play(3 * rs.size(surface.cfg), bend=0.4)
    cfg, row, p = surface.cfg, surface.row, int(rs.size(surface.cfg))
    enter(cfg, row, 0, kind)
    assert row[layout.SIZE] == p + (kind + 1) * dy
    assert row[layout.slope_degree(cfg, 0)] == 2.0 + kind
    phis = [surface.features(u, y) for u, y, _, _ in surface.observed]
    first = surface.observed[0][2]
    a, b = normal(
        phis,
        [z - first for _, _, z, _ in surface.observed],
        [w for _, _, _, w in surface.observed],
        ridges(cfg, (kind + 1) * dy),
    )
    r, d = dense(cfg, row)
    np.testing.assert_allclose(r.T @ r, a, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(r.T @ d, b, rtol=1e-8, atol=1e-8)
    assert (np.diag(r) > 0.0).all()


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_when_one_degree_enters_what_is_known_of_the_next_is_kept(dx: int, dy: int) -> None:
    surface = Growing(dx, dy, enter_lead=1e6)
    surface.play(3 * rs.size(surface.cfg), bend=0.4)
    for _ in range(2):  # P_2 and, as nothing is told between, P_3 by what is known of it already
        enter(surface.cfg, surface.row, 0, NEXT)
    p = int(surface.row[layout.SIZE])
    phis = [surface.features(u, y) for u, y, *_ in surface.observed]
    weights = [w for *_, w in surface.observed]
    a, _ = normal(phis, weights, weights, np.zeros(p))
    r = dense(surface.cfg, surface.row)[0]
    begin = int(layout.first_of(surface.row) + surface.cfg.terms + dx * surface.cfg.varying)
    third = np.arange(begin + dy, begin + 2 * dy)
    rest = np.delete(np.arange(p), third)
    found = (r.T @ r)[np.ix_(rest, third)]
    np.testing.assert_allclose(found, a[np.ix_(rest, third)], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_moving_a_column_changes_nothing_else(dx: int, dy: int) -> None:
    surface = Growing(dx, dy, enter_lead=1e6)
    surface.play(2 * rs.size(surface.cfg))
    cfg, row, p = surface.cfg, surface.row, int(rs.size(surface.cfg))
    c = int(layout.candidates(cfg))
    crossed = [int(layout.cross(cfg, i)) for i in range(p)]
    r, d = dense(cfg, row)
    before = np.array([row[k : k + c] for k in crossed])
    move_left(cfg, row, p - 1, 2)
    order = [0, 1, p - 1, *range(2, p - 1)]
    after, d_after = dense(cfg, row)
    np.testing.assert_allclose(after.T @ after, (r.T @ r)[np.ix_(order, order)], atol=1e-9)
    np.testing.assert_allclose(after.T @ d_after, (r.T @ d)[order], atol=1e-9)
    beside = np.array([row[k : k + c] for k in crossed])
    np.testing.assert_allclose(after.T @ beside, (r.T @ before)[order], atol=1e-9)
    assert (np.diag(after) > 0.0).all()


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_a_child_foresees_what_its_parent_does(dx: int, dy: int) -> None:
    surface = Growing(dx, dy, enter_lead=1e6)
    surface.play(4 * rs.size(surface.cfg), bend=0.4)
    cfg, row = surface.cfg, surface.row
    for i, kind in ((0, NEXT), (dx - 1, NEXT), (0, NEXT), (0, OF_BASELINE), (0, OF_BASELINE)):
        if is_candidate(cfg, row, i, kind):
            enter(cfg, row, i, kind)
            surface.play(30, bend=0.4)
    assert row[layout.SIZE] >= rs.size(cfg) + 2 * dy + 2
    low, high = np.full(dx, -1.0), np.full(dx, 1.0)
    low[0], high[dx - 1] = -0.2, 0.9
    child = np.empty_like(row)
    rs.inherit(cfg, row, child, low, high, 0.5)
    assert child[layout.BEGUN] == 0.0
    (r, d), (s, e) = dense(cfg, row), dense(cfg, child)
    kept = math.sqrt(min(LONG * row[layout.SIZE] / row[layout.AGE], 1.0))  # of a long past
    share = 0.5 * kept / row[layout.WEIGHT]
    for _ in range(20):
        u, y = surface.rng.uniform(low, high), surface.rng.random(dy)
        phi, own = surface.features(u, y), surface.features((2 * u - low - high) / (high - low), y)
        foreseen = own @ np.linalg.solve(s, e)
        assert foreseen == pytest.approx(phi @ np.linalg.solve(r, d), rel=1e-6, abs=1e-6)
        spread, its = np.linalg.solve(r.T, phi), np.linalg.solve(s.T, own)
        assert share * its @ its == pytest.approx(spread @ spread, rel=1e-6)


def test_an_odd_dependence_enters_with_the_even_degree_before_it() -> None:
    surface = Growing(1, 1)
    surface.play(600, bend=0.5, degree=3)
    assert surface.row[layout.slope_degree(surface.cfg, 0)] == 3.0


def test_high_degrees_and_the_baseline_need_more_evidence() -> None:
    surface = Growing(2, 1, enter_lead=6.0)
    cfg, row = surface.cfg, surface.row
    surface.play(40)
    others, nothing_new = np.zeros(int(layout.candidates(cfg))), (1.0, 1.0, -0.1, False, 1.0)
    row[layout.slope_degree(cfg, 1)] = 3.0  # twice the lead for what comes next: 1 + (3-1)/2
    places = {kind: int(layout.slot(cfg, 1, kind)) for kind in (NEXT, NEXT_TWO, OF_BASELINE)}
    for kind, times in ((NEXT, 2.0), (NEXT_TWO, 2.0), (OF_BASELINE, 3.0)):
        for lead, wins in ((6.0 * times - 1.0, False), (6.0 * times + 1.0, True)):
            for k in places.values():
                row[k + layout.ITS_LEAD] = 0.0
            row[places[kind] + layout.ITS_LEAD] = lead
            winner, hoped, of = weigh(cfg, row.copy(), others, *nothing_new)
            assert (winner == layout.KINDS + kind) is wins
            assert hoped == pytest.approx(lead / times)
            assert of == 1


def test_the_baseline_follows_the_slopes() -> None:
    surface = Growing(1, 1)
    surface.play(3000, bend=0.9)
    slopes, squares = (
        surface.row[where(surface.cfg, 0)]
        for where in (layout.slope_degree, layout.baseline_degree)
    )
    assert slopes >= 2.0
    assert squares <= 2 * slopes
    surface = Growing(1, 1)
    surface.play(3000)
    assert surface.row[layout.SIZE] == rs.size(surface.cfg)


def grown(context: ca.Box, decision: ca.Box, *, degree: int, rng: Any = None) -> ca.Policy:
    """The recommended policy with another degree."""
    learner = ca.ResponseSurface(reach=0.1, bounded=True, level=True, calm=True, degree=degree)
    return ca.Policy(context, decision, partition=ca.EvidenceTree(), learner=learner, rng=rng)


def test_a_smooth_world_costs_terms_instead_of_bins() -> None:
    run = ca.compare(
        {"terms": lambda c, d, rng=None: grown(c, d, degree=5, rng=rng),
         "bins": lambda c, d, rng=None: grown(c, d, degree=1, rng=rng)},
        ["sine-5", "one-of-5"], horizons=[10_000], replications=3, seed=5, baseline="bins",
    )  # fmt: skip
    ratios = [score["ratio"] for score in run.report()["scores"] if score["policy"] == "terms"]
    assert max(ratios) < 0.75


def test_it_says_which_contexts_matter() -> None:
    policy = ca.Policy(
        ca.Box([18.0, 0.0], [90.0, 2.5e5], names=["age", "income"]),
        ca.Box([1.0, 1.0], [9.0, 4.0], names=["price", "fee"]),
        partition=ca.EvidenceTree(),
        learner=ca.ResponseSurface(reach=0.1, bounded=True, level=True, calm=True, degree=3),
        rng=1,
    )
    assert "in_words" not in policy.explain([37, 5e4])
    rng = np.random.default_rng(2)
    for _ in range(1500):
        x = rng.uniform([18.0, 0.0], [90.0, 2.5e5])
        decision = policy.ask(x)
        off = (decision.value - [2.0 + 5.0 * x[1] / 2.5e5, 2.0]) / [8.0, 3.0]
        policy.tell(decision, float(0.03 * rng.standard_normal() - off @ off))
    found = policy.explain([37, 5e4])
    assert found["in_words"] == "income matters for price; nothing shows that age does"
    chances = np.array(found["chances"])
    assert chances.shape == (2, 2)
    assert chances[1, 0] < 1e-4
    assert chances[0].min() > 0.0025
    assert len(found["degrees"]) == 2


def test_terms_that_cannot_be_paid_for_are_not_offered() -> None:
    plain, growing = (ResponseSurface(degree=k).configured(30, 29) for k in (1, 5))
    assert growing == plain
    assert ResponseSurface(degree=5).configured(10, 2).degree == 5
