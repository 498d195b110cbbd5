"""A surface that is steady and safe, against dense linear algebra (docs/recommended.md)."""

import math
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.learners import response_surface as rs
from continuarm.core.learners.response_surface import ResponseSurface, ResponseSurfaceConfig
from continuarm.core.learners.surface import layout, steady
from continuarm.core.learners.surface.centre import fill_gates, highest, least_trust
from continuarm.core.learners.surface.explaining import dense
from continuarm.core.learners.surface.features import at_context
from continuarm.core.learners.surface.triangle import forget_level, gate_of, solve
from continuarm.core.request import ALONE, UNFORESEEN, Foreseen, Observation, Region, Request
from tests.test_response_surface import Surface

STEADY: dict[str, Any] = {"bounded": True, "level": True, "calm": True}
SHAPES = [(0, 1), (1, 2), (2, 3), (3, 1)]


def surface_of(dx: int, dy: int, seed: int = 0, n: int = 0, **options: Any) -> Surface:
    """A surface that has learned `n` payoffs, with these options."""
    surface = Surface(dx, dy, seed=seed)
    configured: ResponseSurfaceConfig = ResponseSurface(**options).configured(dx, dy)
    surface.cfg = configured._replace(pairs=dx < 3)
    surface.p = rs.size(surface.cfg)
    surface.row = np.empty(rs.width(surface.cfg))
    surface.work = np.empty(rs.scratch(surface.cfg))
    rs.init(surface.cfg, surface.row, np.full(dy, 0.5))
    surface.play(n or surface.p + 60)
    return surface


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
@pytest.mark.parametrize("absurd", [1e6, -1e6])
def test_an_absurd_payoff_is_learned_as_one_at_its_bound(dx: int, dy: int, absurd: float) -> None:
    surface = surface_of(dx, dy, bounded=True)
    row = surface.row
    a, b = surface.normal()
    u, y = surface.rng.uniform(-1, 1, dx), surface.rng.random(dy)
    phi, w = surface.features(u, y), row[layout.WEIGHT]
    h = w * phi @ np.linalg.solve(a, phi)
    predicted = phi @ np.linalg.solve(a, b)
    s = math.sqrt(row[layout.SQUARES] / row[layout.DEGREES])
    most = max(steady.FAR, math.sqrt(row[layout.AGE] / steady.RARE)) * s
    foreseen = surface.tell(u, y, absurd)
    cut = predicted + math.copysign(most * math.sqrt(1 + h), absurd)
    r, d = surface.triangle()
    np.testing.assert_allclose(r.T @ r, a + w * np.outer(phi, phi), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(r.T @ d, b + w * phi * cut, rtol=1e-6, atol=1e-6)
    assert foreseen.square == pytest.approx(most**2, rel=1e-9)


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_forgetting_the_level_forgets_nothing_else(dx: int, dy: int) -> None:
    surface = surface_of(dx, dy)
    r, d = surface.triangle()
    forget_level(surface.cfg, surface.row, 0.25)
    after, d_after = surface.triangle()
    known, known_after = r.T @ r, after.T @ after
    rest, rest_after = (
        k[1:, 1:] - np.outer(k[1:, 0], k[0, 1:]) / k[0, 0] for k in (known, known_after)
    )
    np.testing.assert_allclose(rest_after, rest, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.linalg.solve(after, d_after), np.linalg.solve(r, d), rtol=1e-8)
    assert known_after[0, 0] == pytest.approx(0.25 * known[0, 0])
    forget_level(surface.cfg, surface.row, 0.0)
    assert surface.triangle()[0][0, 0] ** 2 == pytest.approx(surface.row[layout.WEIGHT])


def test_a_jump_of_the_level_is_known_after_three_payoffs() -> None:
    surface = surface_of(1, 1, n=200, **STEADY)
    before = surface.row[layout.REFERENCE]
    for k in range(3):
        assert surface.row[layout.REFERENCE] == before
        y = surface.rng.random(1)
        surface.tell(surface.rng.uniform(-1, 1, 1), y, 1000.0 + 3 * y[0])
        assert surface.row[layout.RUN] == (k + 1 if k < 2 else 0)
    assert surface.row[layout.REFERENCE] == pytest.approx(before + 1000.0, abs=10.0)
    y = surface.rng.random(1)
    assert surface.tell(surface.rng.uniform(-1, 1, 1), y, 1000.0 + 3 * y[0]).square < 25.0


def test_a_level_that_moves_is_followed_and_one_that_rests_is_not() -> None:
    surface = surface_of(1, 1, n=400, **STEADY)
    assert surface.row[layout.FOLLOWS] == 0.0
    began = []
    for k in range(300):
        y = surface.rng.random(1)
        noise = float(surface.rng.standard_normal())
        seen = surface.tell(surface.rng.uniform(-1, 1, 1), y, noise + 3 * y[0] + 0.1 * k)
        began.append(seen.began)
    assert surface.row[layout.FOLLOWS] == 1.0
    assert sum(began) == 1
    assert seen.follows
    assert seen.forgotten > 0.0
    for _ in range(3000):
        y = surface.rng.random(1)
        noise = float(surface.rng.standard_normal())
        surface.tell(surface.rng.uniform(-1, 1, 1), y, noise + 3 * y[0] + 30.0)
    assert surface.row[layout.FOLLOWS] == 0.0


def test_a_challenger_forgets_as_much_of_the_level_as_its_bin() -> None:
    surface = surface_of(1, 1, n=200, **STEADY)
    told, twin = surface.row.copy(), surface.row.copy()
    seen = Observation(np.zeros(1), np.full(1, 0.4), 1.0, np.empty(0), 1.0, ALONE, True)
    forgetful = Foreseen(1.0, -0.1, math.log(4.0), False, True)
    rs.challenge(surface.cfg, told, seen, forgetful, surface.work)
    forget_level(surface.cfg, twin, 0.25)
    rs.challenge(surface.cfg, twin, seen, UNFORESEEN, surface.work)
    twin[layout.FORGOTTEN] = math.log(4.0)
    np.testing.assert_allclose(told, twin, rtol=1e-12)


def test_what_was_learned_in_noisier_times_counts_less() -> None:
    surface = surface_of(1, 1, n=100, calm=True)
    heard = []
    for _ in range(4000):
        y = surface.rng.random(1)
        noise = 0.01 * float(surface.rng.standard_normal())
        surface.tell(surface.rng.uniform(-1, 1, 1), y, noise + 3 * y[0])
        heard.append(surface.row[layout.WEIGHT])
    rises = np.diff(np.log(heard))
    assert rises.max() > math.log(steady.CALM)
    assert surface.row[layout.LOUDEST] < 1.0 / steady.CALM


def dense_gates(surface: Surface) -> Array:
    """f of each coefficient of the decision (eq. 11)."""
    cfg, row = surface.cfg, surface.row
    gates = np.empty(2)
    fill_gates(cfg, row, gates)
    first = int(layout.baseline(cfg))
    return np.array([gate_of(cfg, gates, i) for i in range(first, surface.p)])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_the_centre_is_the_surest_point_on_the_way_to_the_peak(
    dx: int, dy: int, seed: int
) -> None:
    surface = surface_of(dx, dy, seed, reach=0.1)
    cfg, row, p = surface.cfg, surface.row, surface.p
    first, start = int(layout.baseline(cfg)), surface.rng.random(dy)
    u = surface.rng.uniform(-1, 1, dx)
    request = Request(u, Region(np.zeros(dy), np.ones(dy), True), start, np.zeros(p))
    c = np.empty(dy)
    rs.best(cfg, row, request, surface.work, c)

    r, d = dense(cfg, row)
    r, d, f = r[first:, first:], d[first:], dense_gates(surface)
    theta = np.linalg.solve(r, f * d)
    low = np.minimum(row[layout.TRIED : layout.TRIED + dy], start)
    high = np.maximum(row[layout.TRIED + dy : layout.TRIED + 2 * dy], start)
    grid = np.linspace(0, 1, 65)

    def features(y: Array) -> Array:
        return surface.features(u, y)[first:]

    best, mean, scratch = np.empty(dy), np.zeros(p), np.empty(rs.scratch(cfg))
    mean[first:] = theta
    at_context(cfg, u, mean)
    region = Region(2 * low - 1, 2 * high - 1, False)
    highest(cfg, mean, region, scratch, best)
    peak = 0.5 + 0.5 * best
    bounds = []
    for t in grid:
        way = features(start + t * (peak - start)) - features(start)
        error = math.sqrt((f * np.linalg.solve(r.T, way) ** 2).sum())
        bounds.append(theta @ way - least_trust(cfg, row) * error)
    at = grid[int(np.argmax(bounds))] if max(bounds) > 0 else 0.0
    np.testing.assert_allclose(c, start + at * (peak - start), atol=1e-6)


def test_contexts_that_do_not_matter_are_not_believed() -> None:
    closed = []
    for seed in range(20):
        surface = surface_of(4, 1, seed, n=400, reach=0.1)  # `play` has no effect of the context
        closed.append(dense_gates(surface)[surface.cfg.terms :].max(initial=0.0))
    assert np.mean(np.array(closed) < 0.5) > 0.7
    surface = surface_of(4, 1, n=0, reach=0.1)
    for _ in range(400):
        u, y = surface.rng.uniform(-1, 1, 4), surface.rng.random(1)
        surface.tell(u, y, float(surface.rng.standard_normal() + 9 * u[0] * y[0]))
    assert dense_gates(surface)[surface.cfg.terms] == 1.0


def test_without_gates_the_solution_is_that_of_the_triangle() -> None:
    surface = surface_of(2, 2, reach=0.1, gated=False)
    cfg, first = surface.cfg, int(layout.baseline(surface.cfg))
    gates, mean, drawn = np.empty(2), np.empty(surface.p), np.empty(surface.p)
    fill_gates(cfg, surface.row, gates)
    assert gates.tolist() == [1.0, 1.0]
    xi = surface.rng.standard_normal(surface.p - first)
    solve(cfg, surface.row, gates, 0.7, xi, drawn, mean, True)
    r, d = (part[first:] for part in dense(cfg, surface.row))
    np.testing.assert_allclose(r[:, first:] @ mean[first:], d, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(r[:, first:] @ drawn[first:], d + 0.7 * xi, rtol=1e-9, atol=1e-9)


def careful(context: ca.Box, decision: ca.Box, **options: Any) -> ca.Policy:
    """The recommended policy with everything of this file."""
    learner = ResponseSurface(reach=0.1, **STEADY)
    tree = ca.EvidenceTree()
    return ca.Policy(context, decision, partition=tree, learner=learner, **options)


@pytest.mark.parametrize("start", [None, [0.9, 0.05]])
def test_every_decision_lies_within_reach_of_what_is_recommended(
    start: list[float] | None,
) -> None:
    policy = careful(ca.Box.unit(2), ca.Box.unit(2), start=start, rng=0)
    rng = np.random.default_rng(1)
    for x in rng.random((400, 2)):
        centre = policy.recommend(x)
        decision = policy.ask(x)
        assert (abs(decision.value - centre) <= 0.1 + 1e-9).all()
        payoff = -((decision.value - 0.2 - 0.3 * x) ** 2).sum() + 0.1 * rng.standard_normal()
        policy.tell(decision, payoff)
    assert abs(policy.recommend([0.5, 0.5]) - 0.35).max() < 0.15


def test_the_first_decisions_keep_to_the_start() -> None:
    policy = careful(ca.Box.unit(1), ca.Box([0.0], [10.0]), start=[9.5], rng=0)
    values = [policy.ask([0.5]).value[0] for _ in range(200)]
    assert min(values) >= 8.5
    assert max(values) <= 10.0
    assert policy.recommend([0.5]).tolist() == [9.5]


@pytest.mark.parametrize("dx", [0, 1, 3])
def test_a_reader_recommends_the_centre(dx: int, tmp_path: Any) -> None:
    box = ca.Box([0.0, -1.0], [2.0, 4.0])
    policy = careful(ca.Box.unit(dx), box, start=[1.5, 0.5], rng=dx)
    rng = np.random.default_rng(dx)
    for x in rng.random((600, dx)):
        decision = policy.ask(x)
        gap = decision.value - [0.4 + 0.3 * x.sum(), 1.0]
        policy.tell(decision, -float(gap @ gap) + 0.3 * rng.standard_normal())
    policy.save(tmp_path / "policy")
    again = ca.load(tmp_path / "policy")
    reader = ca.Reader(policy.export())
    for x in rng.random((50, dx)):
        wanted = policy.recommend(x)
        np.testing.assert_allclose(reader.decide(list(x)), wanted, atol=1e-9)
        np.testing.assert_array_equal(again.recommend(x), wanted)


def steady_policy(context: ca.Box, decision: ca.Box, **options: Any) -> ca.Policy:
    """The recommended policy, steady and without a reach."""
    tree, learner = ca.EvidenceTree(), ResponseSurface(**STEADY)
    return ca.Policy(context, decision, partition=tree, learner=learner, **options)


# Regret per decision of the last 5,000 of 15,000, relative to the same world in which nothing
# happens; without `bounded` and `level` it is 28 times and more (docs/street.md).
@pytest.mark.parametrize("name", ["level-rise", "level-week", "level-sine", "absurd-payoffs"])
def test_a_steady_policy_keeps_its_feet(name: str) -> None:
    marks = [10_000, 15_000]
    late = {}
    for world in (name, "street-quiet"):
        run = ca.simulate(
            steady_policy, world, horizon=marks[-1], replications=6, rng=0, checkpoints=marks
        )
        late[world] = float(np.diff(run.mean)[0])
    assert late[name] < 6.0 * late["street-quiet"]


def test_options_of_a_steady_surface_are_checked() -> None:
    for bad in ({"reach": 0.0}, {"reach": 1.5}, {"level": True}, {"bounded": 1}, {"calm": "yes"}):
        with pytest.raises(ca.errors.SettingsError):
            ResponseSurface(**bad)
