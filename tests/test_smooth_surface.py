"""One smooth surface over the whole context, against dense formulas (docs/smooth-surface.md)."""

import math
from itertools import pairwise

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.learners import smooth_surface as ss
from continuarm.core.learners.smooth import layout
from continuarm.core.learners.smooth.catalogue import CONSTANT, FEW, catalogue
from continuarm.core.learners.smooth.learning import LENIENT
from continuarm.core.learners.smooth.triangle import draw
from continuarm.core.request import ALONE, Observation
from continuarm.errors import SettingsError
from tests.dense_surface import NO_POOL, Surface, columns_of, ends_of, groups_of, rungs_of

SHAPES = [(0, 2), (1, 1), (1, 2), (2, 2), (4, 2), (3, 12)]


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_a_chain_begins_with_the_constants_and_groups_from_smooth_to_rough(
    dx: int, dy: int
) -> None:
    features = 1 + dy + dy * (dy + 1) // 2
    found = catalogue(dx, dy, features, 150)
    assert len(set(found.functions)) == len(found.functions) == len(found.parents)
    assert len(set(found.groups)) == len(found.groups)
    assert found.functions[0] == CONSTANT
    assert all(0 < function < len(found.functions) - found.pairs for function, _ in found.groups)
    sizes = [(1, dy, features - 1 - dy)[kind] for _, kind in found.groups]
    assert features + sum(sizes) <= max(150, features)
    degrees = [sum(found.functions[f][1::2]) for f, kind in found.groups if kind != layout.CURVES]
    assert all(later >= earlier - 1 for earlier, later in pairwise(degrees))
    assert found.pairs == (math.comb(dx, 2) if dx > FEW else 0)
    for (_, a, _, b), parents in zip(found.functions, found.parents, strict=True):
        for parent in parents:
            if a != layout.STEP:
                assert parent == -1 or 0 < sum(found.functions[parent][1::2]) < a + b
    smaller = catalogue(dx, dy, features, 60)
    assert smaller.functions == found.functions
    assert set(smaller.groups) <= set(found.groups)


@pytest.mark.parametrize("dx", [1, 2, 3])
def test_steps_come_nearer_to_a_jump_by_halves(dx: int) -> None:
    """Each is brought by its context, or by a step of the next coarser grid right beside it."""
    found = catalogue(dx, 1, 3, 90)
    steps = [k for k, function in enumerate(found.functions) if function[1] == layout.STEP]
    grid = 2 ** (9 if dx == 1 else 7)
    places = [2.0 * k / grid - 1.0 for k in range(1, grid)]
    assert sorted(found.functions[k] for k in steps) == sorted(
        (i, layout.STEP, 0, place) for i in range(dx) for place in places
    )
    assert not {k for k, _ in found.groups} & set(steps)

    def level(place: float) -> int:
        return next(k for k in range(10) if ((place + 1.0) / 2.0 * 2**k) % 1.0 == 0.0)

    for k in steps:
        i, _, _, place = found.functions[k]
        parents = [found.functions[parent] for parent in found.parents[k] if parent >= 0]
        if level(place) <= 3:
            assert parents == [(i, 1, 0, 0), (i, 2, 0, 0)]
        else:
            assert parents
            for of, kind, _, at in parents:
                assert (of, kind) == (i, layout.STEP)
                assert abs(at - place) == 2.0 / 2 ** level(place)
                assert level(at) == level(place) - 1 or level(place) == 4


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_a_row_begins_with_the_chain(dx: int, dy: int) -> None:
    surface = Surface(dx, dy)
    cfg, row = surface.cfg, surface.row
    columns, ends = columns_of(row), ends_of(row)
    constants = [(0, feature) for feature in range(cfg.features)]
    assert columns[: ends[0]] == constants
    groups = [(function, kind) for function, kind, _ in groups_of(cfg, row)[3:]]
    assert groups == catalogue(dx, dy, cfg.features, 90).groups
    assert len(set(columns)) == len(columns) == ends[-1] <= 90
    assert ends == sorted(ends)


@pytest.mark.parametrize("n", [1, 150])
@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_one_triangle_is_least_squares_for_every_rung(dx: int, dy: int, n: int) -> None:
    """After columns were appended, and sorted, too."""
    surface = Surface(dx, dy)
    begun = columns_of(surface.row)
    surface.play(n)
    r, d = ss.dense(surface.cfg, surface.row)
    columns = columns_of(surface.row)
    assert (columns[: len(begun)] != begun) == (dx > 0 and n > 1)
    assert (len(columns) > len(begun)) == (0 < dx < 3 or dx == 4) * (n > 1)
    for end in ends_of(surface.row):
        a, b = surface.normal(columns[:end])
        np.testing.assert_allclose(r[:end, :end].T @ r[:end, :end], a, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(r[:end, :end].T @ d[:end], b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_scores_are_densities_one_step_ahead(dx: int, dy: int) -> None:
    """Where a look moves the end of a rung, what it has scored stays with the rung."""
    surface = Surface(dx, dy)
    early, m = layout.first_payoffs(surface.cfg), layout.MOST_RUNGS
    scores, squares, degrees, looks = np.zeros(m), np.zeros(m), np.zeros(m), 0
    for t in range(120):
        columns, ends, look = (
            columns_of(surface.row),
            ends_of(surface.row),
            surface.row[layout.LOOK],
        )
        a, b = surface.normal(columns)
        surface.play(1)
        (u, y, z), w = surface.observed[t], surface.weights[t]
        for rung, end in enumerate(ends):
            phi = surface.phi(u, y, columns[:end])
            h = w * phi @ np.linalg.solve(a[:end, :end], phi)
            error = z - surface.observed[0][2] - phi @ np.linalg.solve(a[:end, :end], b[:end])
            square = error**2 / (1.0 + h)
            if t >= early:
                scores[rung] *= 1.0 - surface.cfg.recent / (t + 1.0 + 20.0)
                if squares[rung] > 0.0:
                    variance = squares[rung] / degrees[rung]
                    scores[rung] -= 0.5 * (math.log1p(h) + math.log(variance) + square / variance)
            squares[rung] += w / (1.0 + h) * square
            degrees[rung] += w / (1.0 + h)
        if surface.row[layout.LOOK] != look:
            looks += 1
            last = len(set(ends_of(surface.row))) - 1
            for numbers in (scores, squares, degrees):
                numbers[last + 1 :] = numbers[last]
    assert looks > 5
    numbers = rungs_of(surface.row)
    np.testing.assert_allclose(numbers[:, layout.SCORE], scores, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(numbers[:, layout.SQUARES], squares, rtol=1e-8)
    np.testing.assert_allclose(numbers[:, layout.DEGREES], degrees, rtol=1e-8)
    ends = ends_of(surface.row)
    nearly = [scores[ends.index(end)] >= scores.max() - LENIENT for end in ends]
    largest = max(end for end, near in zip(ends, nearly, strict=True) if near)
    assert int(surface.row[layout.RUNG]) == ends.index(largest)


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_a_draw_has_the_mean_and_the_spread_of_least_squares(dx: int, dy: int) -> None:
    surface = Surface(dx, dy)
    surface.play(120)
    end = ends_of(surface.row)[3]
    a, b = surface.normal(columns_of(surface.row)[:end])
    r, _ = (part[..., :end][:end] for part in ss.dense(surface.cfg, surface.row))
    mean, drawn, xi = np.empty(end), np.empty(end), surface.rng.standard_normal(end)
    draw(surface.cfg, surface.row, 0.7, xi, drawn, mean)
    np.testing.assert_allclose(mean, _solved(a, b), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(r @ (drawn - mean), 0.7 * xi, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("shift", [0.0, 1000.0])
@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize(("dx", "n"), [(1, 80), (1, 400), (4, 400)])
def test_units_of_payoffs_do_not_matter(dx: int, n: int, unit: float, shift: float) -> None:
    plain, scaled = Surface(dx, 2), Surface(dx, 2)
    plain.play(n)
    for u, y, z in plain.observed:
        scaled.tell(u, y, unit * (shift + z))
    assert columns_of(scaled.row) == columns_of(plain.row)
    assert ends_of(scaled.row) == ends_of(plain.row)
    assert scaled.row[layout.RUNG] == plain.row[layout.RUNG]
    xi, u = np.random.default_rng(1).standard_normal(ss.draws(plain.cfg)), np.full(dx, 0.3)
    np.testing.assert_allclose(plain.decide(u, xi), scaled.decide(u, xi), atol=1e-6)
    np.testing.assert_allclose(plain.best(u), scaled.best(u), atol=1e-6)


@pytest.mark.parametrize(("dx", "dy"), [(1, 1), (1, 2), (2, 2), (4, 2)])
def test_a_decision_is_the_peak_of_a_draw_within_reach_of_the_centre(dx: int, dy: int) -> None:
    surface = Surface(dx, dy)
    surface.play(200)
    cfg, row = surface.cfg, surface.row
    lead, columns = int(row[layout.RUNG]), surface.lead()
    end, u = len(columns), surface.rng.uniform(-1, 1, dx)
    xi = surface.rng.standard_normal(ss.draws(cfg))
    xi[0] = 0.1  # not uniform
    y, best = surface.decide(u, xi), surface.best(u)

    (a, b), w = surface.normal(columns), row[layout.WEIGHT]
    mean, spread = _solved(a, b), np.linalg.inv(a)
    noise = layout.noise_of(row, lead)
    zero = surface.phi(u, np.full(dy, 0.4), columns)

    def bound(at: Array) -> float:
        gain = surface.phi(u, at, columns) - zero
        trust = (1.0 + 2.0 * end / row[layout.SEEN]) * math.sqrt(w * noise)
        return float(gain @ mean - trust * math.sqrt(gain @ spread @ gain))

    fitted = _highest(surface, u, mean, np.zeros(dy), np.ones(dy))
    way = [0.4 + t / 64 * (fitted - 0.4) for t in range(65)]
    ahead = (surface.phi(u, fitted, columns) - zero) @ mean
    sure = bound(fitted) > 0.5 * ahead  # the gain is more than two standard errors
    expected = fitted if sure else way[int(np.argmax([bound(at) for at in way]))]
    np.testing.assert_allclose(best, expected, atol=1e-6)

    r, d = (part[..., :end][:end] for part in ss.dense(cfg, row))
    drawn = _solved(r, d + cfg.spread * math.sqrt(w * noise) * xi[:end])
    low, high = np.maximum(best - 0.1, 0.0), np.minimum(best + 0.1, 1.0)
    peak = _highest(surface, u, drawn, low, high)
    value = [surface.phi(u, at, columns) @ drawn for at in (y, peak)]
    assert value[0] >= value[1] - 1e-5 * abs(value[1])
    assert (y >= low - 1e-9).all()
    assert (y <= high + 1e-9).all()


def _solved(a: Array, b: Array) -> Array:
    return np.asarray(np.linalg.solve(a, b), np.float64)


def _highest(surface: Surface, u: Array, theta: Array, low: Array, high: Array) -> Array:
    """By a fine lattice, refined: no derivative and no library of our own."""
    dy, columns = surface.cfg.dy, surface.lead()
    for _ in range(14):
        axes = np.linspace(low, high, 9)
        lattice = np.stack(np.meshgrid(*axes.T, indexing="ij"), -1).reshape(-1, dy)
        values = [surface.phi(u, at, columns) @ theta for at in lattice]
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
    lead, columns = int(row[layout.RUNG]), surface.lead()
    a, b = surface.normal(columns)
    phi = np.array([surface.phi(u, y, columns) for y in ys])
    noise = row[layout.WEIGHT] * layout.noise_of(row, lead)
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
    rungs_of(grown)[:, [layout.SQUARES, layout.DEGREES]] *= layout_weight
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
    fewest = Surface(1, 1, columns=1)
    assert ends_of(fewest.row) == [3] * layout.MOST_RUNGS


def test_too_many_columns_are_refused() -> None:
    with pytest.raises(SettingsError, match="at most 2000 columns"):
        ca.SmoothSurface().configured(1, 1000)
