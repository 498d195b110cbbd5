"""A surface that is steady and safe, against dense linear algebra (docs/recommended.md)."""

import math
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.learners import response_surface as rs
from continuarm.core.learners.exploration import SURE
from continuarm.core.learners.response_surface import ResponseSurface, ResponseSurfaceConfig
from continuarm.core.learners.surface import deciding, far_payoffs, layout, noise
from continuarm.core.learners.surface.centre import fill_gates, highest, least_trust
from continuarm.core.learners.surface.explaining import dense
from continuarm.core.learners.surface.features import at_context
from continuarm.core.learners.surface.triangle import draw, forget_level, gate_of
from continuarm.core.request import ALONE, UNFORESEEN, Observation, Region, Request
from tests.test_response_surface import Surface

STEADY: dict[str, Any] = {"bounded": True, "level": True, "calm": True}
SHAPES = [(0, 1), (1, 2), (2, 3), (3, 1)]


def surface_of(dx: int, dy: int, seed: int = 0, n: int = 0, **options: Any) -> Surface:
    """A surface that has learned `n` payoffs, with these options."""
    surface = Surface(dx, dy, seed=seed)
    configured: ResponseSurfaceConfig = ResponseSurface(**options).configured(dx, dy)
    surface.cfg = configured._replace(pairs=dx < 3)
    surface.p = rs.size(surface.cfg)
    surface.cfg = surface.cfg._replace(most=surface.p)
    surface.row = np.empty(rs.width(surface.cfg))
    surface.work = np.empty(rs.scratch(surface.cfg))
    rs.init(surface.cfg, surface.row, np.full(dy, 0.5))
    surface.play(n or surface.p + 60)
    return surface


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
@pytest.mark.parametrize("absurd", [1e6, -1e6])
def test_an_absurd_payoff_is_learned_as_one_at_its_bound(dx: int, dy: int, absurd: float) -> None:
    surface = surface_of(dx, dy, n=260, bounded=True)
    row = surface.row
    a, b = surface.normal()
    u, y = surface.rng.uniform(-1, 1, dx), surface.rng.random(dy)
    phi, w = surface.features(u, y), row[layout.WEIGHT]
    h = w * phi @ np.linalg.solve(a, phi)
    predicted = phi @ np.linalg.solve(a, b)
    squares = row[layout.SQUARES]
    usual = far_payoffs.FAR**2 * squares / row[layout.DEGREES]
    most = math.sqrt(max(usual, squares / w / far_payoffs.RARE))
    foreseen = surface.tell(u, y, absurd)
    cut = predicted + math.copysign(most * math.sqrt(1 + h), absurd)
    r, d = surface.triangle()
    np.testing.assert_allclose(r.T @ r, a + w * np.outer(phi, phi), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(r.T @ d, b + w * phi * cut, rtol=1e-6, atol=1e-6)
    square = max(usual, squares / w / far_payoffs.SEVERAL)
    assert foreseen.square == pytest.approx(square, rel=1e-9)
    share = w / (1 + h)
    assert row[layout.SQUARES] - squares == pytest.approx(share * square, rel=1e-9)


@pytest.mark.parametrize("absurd", [1e20, 1e90, -1e90])
@pytest.mark.parametrize("when", [30, 200, 700])
def test_no_payoff_is_so_absurd_that_it_drowns_the_others(absurd: float, when: int) -> None:
    policy = ca.SurfaceSampling(
        ca.Box.unit(1), ca.Box([0.0], [10.0]), start=[4.0], reach=0.1, rng=1
    )
    rng = np.random.default_rng(11)
    for k, x in enumerate(rng.random((2000, 1))):
        decision = policy.ask(x)
        payoff = -(((decision.value[0] - 6.0) / 5.0) ** 2) + 0.1 * rng.standard_normal()
        policy.tell(decision, absurd if k == when else payoff)
    for x in (0.05, 0.5, 0.95):
        assert policy.recommend([x])[0] == pytest.approx(6.0, abs=0.7)


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
    surface = surface_of(1, 1, n=2000, **STEADY)
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
        off = float(surface.rng.standard_normal())
        seen = surface.tell(surface.rng.uniform(-1, 1, 1), y, off + 3 * y[0] + 0.1 * k)
        began.append(seen.began)
    assert surface.row[layout.FOLLOWS] == 1.0
    assert sum(began) == 1
    assert seen.follows
    assert seen.forgotten > 0.0
    for _ in range(3000):
        y = surface.rng.random(1)
        off = float(surface.rng.standard_normal())
        surface.tell(surface.rng.uniform(-1, 1, 1), y, off + 3 * y[0] + 30.0)
    assert surface.row[layout.FOLLOWS] == 0.0


def test_a_challenger_forgets_as_much_of_the_level_as_its_bin() -> None:
    surface = surface_of(1, 1, n=200, **STEADY)
    told, twin = surface.row.copy(), surface.row.copy()
    seen = Observation(np.zeros(1), np.full(1, 0.4), 1.0, np.empty(0), 1.0, ALONE, True)
    forgetful = UNFORESEEN._replace(square=1.0, spread=-0.1, forgotten=math.log(4.0), follows=True)
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
        off = 0.01 * float(surface.rng.standard_normal())
        surface.tell(surface.rng.uniform(-1, 1, 1), y, off + 3 * y[0])
        heard.append(surface.row[layout.WEIGHT])
    rises = np.diff(np.log(heard))
    assert rises.max() > math.log(noise.CALM)
    assert surface.row[layout.LOUDEST] < 1.0 / noise.CALM


def dense_gates(surface: Surface) -> Array:
    """f of each coefficient of the decision (eq. 11)."""
    cfg, row = surface.cfg, surface.row
    gates = np.empty(cfg.dx + 2)
    fill_gates(cfg, row, np.empty(surface.p), gates)
    first = int(layout.baseline(cfg))
    return np.array([gate_of(cfg, gates, i) for i in range(surface.p - first)])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_the_centre_is_the_surest_point_on_the_way_to_the_peak(
    dx: int, dy: int, seed: int
) -> None:
    surface = surface_of(dx, dy, seed, reach=0.1)
    cfg, row, p = surface.cfg, surface.row, surface.p
    first, start = int(layout.baseline(cfg)), surface.rng.random(dy)
    u = surface.rng.uniform(-1, 1, dx)
    box, reach = Region(np.zeros(dy), np.ones(dy), True), np.full(dy, rs.reach(cfg))
    request = Request(u, box, start, reach, np.zeros(p))
    c = np.empty(dy)
    rs.best(cfg, row, request, surface.work, c)

    r, d = dense(cfg, row)
    r, d, f = r[first:, first:], d[first:], dense_gates(surface)
    theta = np.linalg.solve(np.diag(np.diag(r)) + f[:, None] * np.triu(r, 1), f * d)
    low = np.minimum(row[layout.TRIED : layout.TRIED + dy], start)
    high = np.maximum(row[layout.TRIED + dy : layout.TRIED + 2 * dy], start)
    grid = np.linspace(0, 1, 65)

    def features(y: Array) -> Array:
        return surface.features(u, y)[first:]

    best, mean, scratch = np.empty(dy), np.zeros(p), np.empty(rs.scratch(cfg))
    mean[first:] = theta
    at_context(cfg, row, u, mean)
    region = Region(2 * low - 1, 2 * high - 1, False)
    highest(cfg, mean[first:], region, scratch, best)
    peak = 0.5 + 0.5 * best
    bounds = []
    for t in grid:
        way = features(start + t * (peak - start)) - features(start)
        error = least_trust(cfg, row) * math.sqrt((f * np.linalg.solve(r.T, way) ** 2).sum())
        bounds.append(theta @ way - error)
    at = grid[int(np.argmax(bounds))] if max(bounds) > 0 else 0.0
    if theta @ way > SURE * error:
        at = 1.0
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


def test_a_context_that_stands_out_does_not_vouch_for_the_others() -> None:
    others = []
    for seed in range(20):
        surface = surface_of(6, 1, seed, n=0, reach=0.1)
        for _ in range(400):
            u, y = surface.rng.uniform(-1, 1, 6), surface.rng.random(1)
            surface.tell(u, y, float(surface.rng.standard_normal() + 9 * u[0] * y[0]))
        cfg, gates = surface.cfg, np.empty(8)
        fill_gates(cfg, surface.row, np.empty(surface.p), gates)
        assert gates[0] == 1.0
        assert gates[cfg.dx + 1] == 1.0  # all are tried
        others.append(gates[1 : cfg.dx].mean())
    assert np.mean(others) < 0.3


def test_without_gates_the_solution_is_that_of_the_triangle() -> None:
    surface = surface_of(2, 2, reach=0.1, gated=False)
    cfg, first = surface.cfg, int(layout.baseline(surface.cfg))
    gates, mean, drawn = np.empty(4), np.empty(surface.p), np.empty(surface.p)
    fill_gates(cfg, surface.row, mean, gates)
    assert gates.tolist() == [1.0, 1.0, 1.0, 1.0]
    xi = surface.rng.standard_normal(surface.p - first)
    draw(cfg, surface.row, gates, 0.7, xi, drawn, mean)
    r, d = (part[first:] for part in dense(cfg, surface.row))
    np.testing.assert_allclose(r[:, first:] @ mean[first:], d, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(r[:, first:] @ drawn[first:], d + 0.7 * xi, rtol=1e-9, atol=1e-9)


def careful(context: ca.Box, decision: ca.Box, **options: Any) -> ca.Policy:
    """The recommended policy with everything of this file."""
    learner = ResponseSurface(reach=0.1, degree=5, **STEADY)
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


def test_in_a_surge_a_payoff_far_off_teaches_the_baseline_alone() -> None:
    surface = surface_of(2, 2, n=600, **STEADY)
    row, first = surface.row, int(layout.baseline(surface.cfg))
    row[layout.SURGE] = far_payoffs.HIGHEST_SURGE
    r, d = surface.triangle()
    surface.tell(surface.rng.uniform(-1, 1, 2), surface.rng.random(2), 50.0)
    after, d_after = surface.triangle()
    np.testing.assert_array_equal(after[first:], r[first:])
    np.testing.assert_array_equal(d_after[first:], d[first:])
    assert (after[0] != r[0]).any()
    surface.tell(
        surface.rng.uniform(-1, 1, 2), surface.rng.random(2), float(row[layout.REFERENCE])
    )
    assert row[layout.SINCE] == 0.0


def test_a_surge_is_what_chance_does_not_do() -> None:
    surface = surface_of(1, 1, n=3000, **STEADY)
    surged = []
    for k in range(4000):
        y = surface.rng.random(1)
        off = float(surface.rng.standard_normal())
        absurd = 40.0 if k >= 3990 or k % 500 == 0 else 0.0  # one in 500, then all
        seen = surface.tell(surface.rng.uniform(-1, 1, 1), y, off + 3 * y[0] + absurd * (-1) ** k)
        surged.append(seen.surging)
    assert not any(surged[:3990])
    assert surged[3995:] == [True] * 5


def test_what_is_rare_but_usual_comes_to_be_believed() -> None:
    """A purchase of 1 in 50: after 100 of them its whole price is learned."""
    surface = surface_of(0, 1, bounded=True)
    kept = []
    for k in range(5000):
        y = surface.rng.random(1)
        seen = surface.tell(np.empty(0), y, 60.0 if k % 50 == 25 else 0.0)
        if k % 50 == 25:
            kept.append(1.0 - seen.cut / 60.0)
    assert kept[1] < 0.9
    assert min(kept[60:]) == 1.0
    theta = np.linalg.solve(*surface.triangle())
    assert theta[0] + surface.row[layout.REFERENCE] == pytest.approx(60.0 / 50, abs=0.3)


def test_a_challenger_learns_of_an_absurd_payoff_what_its_bin_has_learned() -> None:
    surface = surface_of(1, 1, n=300, bounded=True)
    twin = surface.row.copy()
    u, y = np.zeros(1), np.full(1, 0.4)
    seen = Observation(u, y, 1e6, np.empty(0), 1.0, ALONE, True)
    foreseen = rs.tell(surface.cfg, surface.row, np.empty((1, 2)), seen, surface.work)
    score = rs.challenge(surface.cfg, twin, seen, foreseen, surface.work)
    assert score == 0.0
    np.testing.assert_allclose(twin, surface.row, rtol=1e-9)


@pytest.mark.parametrize("since", [5.0, 60.0, 300.0])
def test_some_decisions_are_uniform_within_reach(since: float) -> None:
    surface = surface_of(1, 1, n=400, reach=0.1)
    cfg, row, p = surface.cfg, surface.row, surface.p
    row[layout.SINCE] = since
    start, y, share = np.full(1, 0.5), np.empty(1), []
    first = p - int(layout.baseline(cfg))
    region, reach = Region(np.zeros(1), np.ones(1), True), np.full(1, 0.1)
    draws = np.random.default_rng(0).standard_normal((20_000, first))
    for xi in draws:
        share.append(deciding.explores(row, xi[0]))
    wanted = min(deciding.EXPLORED / since, deciding.AT_MOST)
    assert np.mean(share) == pytest.approx(wanted, abs=5 * math.sqrt(wanted / 20_000))
    for xi in draws[np.array(share)][:50]:
        rs.decide(
            cfg,
            row,
            np.empty((1, 2)),
            Request(np.zeros(1), region, start, reach, xi),
            surface.work,
            y,
        )
        c = np.empty(1)
        rs.best(cfg, row, Request(np.zeros(1), region, start, reach, xi), surface.work, c)
        low, high = max(c[0] - 0.1, 0.0), min(c[0] + 0.1, 1.0)
        uniform = 0.5 * (low + high) + 0.5 * (high - low) * math.erf(xi[1] / math.sqrt(2.0))
        assert y[0] == pytest.approx(uniform, abs=1e-12)


# Regret per decision of the last 5,000 of 20,000, relative to the same world in which nothing
# happens; as it comes it is 18 times and more (docs/street.md). Measured: 1.0 to 2.1.
@pytest.mark.parametrize(
    "name", ["level-rise", "level-week", "level-sine", "level-segment", "absurd-payoffs"]
)
def test_a_careful_policy_keeps_its_feet(name: str) -> None:
    marks = [15_000, 20_000]
    late = {}
    for world in (name, "street-quiet"):
        run = ca.simulate(
            careful, world, horizon=marks[-1], replications=10, rng=0, checkpoints=marks
        )
        late[world] = float(np.diff(run.mean)[0])
    assert late[name] < 5.0 * late["street-quiet"]


# While rare purchases were taken for absurd, the first was 7 to 11 times the incumbent's cost.
# Measured over other seeds: 1.1 to 1.6, and 1.0 to 1.3.
@pytest.mark.parametrize(("name", "most"), [("purchase-in-100", 2.0), ("rare-purchase", 1.5)])
def test_rare_purchases_are_not_taken_for_absurd(name: str, most: float) -> None:
    runs = [
        ca.simulate(policy, name, horizon=30_000, replications=10, rng=0)
        for policy in (careful, "fixed")
    ]
    assert runs[0].mean[-1] < most * runs[1].mean[-1]


def test_contexts_that_are_all_alike_make_no_bins() -> None:
    run = ca.simulate(careful, "same-context", horizon=20_000, replications=4, rng=0)
    assert [len(run.bins(k)) for k in range(4)] == [1, 1, 1, 1]


def test_options_of_a_steady_surface_are_checked() -> None:
    for bad in ({"reach": 0.0}, {"reach": 1.5}, {"level": True}, {"bounded": 1}, {"calm": "yes"}):
        with pytest.raises(ca.errors.SettingsError):
            ResponseSurface(**bad)


@pytest.mark.parametrize("chance", [1 / 30, 1 / 100])
def test_the_first_purchases_do_not_make_it_bold(chance: float) -> None:
    """The start is the best: no day of 3,000 visitors may cost a tenth of the payoff."""
    boxes = ca.Box.unit(1), ca.Box([5.0], [45.0])
    for seed in range(8):
        policy = ca.SurfaceSampling(*boxes, start=[25.0], rng=seed)
        rng, earned = np.random.default_rng(seed + 9), 0.0
        for x in rng.random((3000, 1)):
            decision = policy.ask(x)
            mean = 1.0 - 0.8 * ((decision.value[0] - 25.0) / 20.0) ** 2
            policy.tell(decision, float(rng.random() < chance * mean) / chance)
            earned += mean
        assert earned / 3000 > 0.9
