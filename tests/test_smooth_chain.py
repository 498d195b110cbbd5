"""The chain of a smooth surface: columns that are appended, weighed, sorted, and why."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.learners import smooth_surface as ss
from continuarm.core.learners.boxed_peak import climb
from continuarm.core.learners.smooth import chain, layout
from continuarm.core.learners.smooth.triangle import append, ridge_of, swap
from continuarm.core.request import Region
from tests.dense_surface import (
    Surface,
    columns_of,
    ends_of,
    fits,
    groups_of,
    rungs_of,
    worths_of,
)

SHAPES = [(1, 1), (1, 2), (2, 2), (4, 2), (3, 12)]
ENDS = [0, 1, 2, 3, 4, 6, 9, 13, 19, 28, 42, 63, 94, 141]  # groups of the rungs


def scrambled(dx: int, dy: int, seed: int, columns: int | None = 60) -> Surface:
    """A surface with any triangle, of a condition number that means something."""
    surface = Surface(dx, dy, seed, columns)
    cfg, row, n = surface.cfg, surface.row, len(columns_of(surface.row))
    for i in range(n):
        k = int(layout.row_at(cfg, i))
        row[k] = 10 ** surface.rng.uniform(-2, 2)
        row[k + 1 : k + n - i] = row[k] * surface.rng.normal(size=n - i - 1)
        row[k + cfg.size - i] = surface.rng.normal()
    return surface


def normal(surface: Surface, row: Array) -> tuple[Array, Array, float]:
    r, d = ss.dense(surface.cfg, row)
    return r.T @ r, r.T @ d, float(d @ d)


def assert_permuted(surface: Surface, row: Array, before: Array) -> None:
    """The triangle of `row` is that of `before` with its columns in another order."""
    old, new = columns_of(before), columns_of(row)
    order = [old.index(column) for column in new]
    assert sorted(order) == list(range(len(old)))
    (a, b, length), (c, d, same) = normal(surface, before), normal(surface, row)
    atol = 1e-9 * abs(a).max()
    np.testing.assert_allclose(c, a[np.ix_(order, order)], rtol=1e-9, atol=atol)
    np.testing.assert_allclose(d, b[order], rtol=1e-9, atol=1e-9 * abs(b).max())
    assert same == pytest.approx(length, rel=1e-9)
    r, _ = ss.dense(surface.cfg, row)
    assert (np.diag(r) > 0.0).all()


@given(st.sampled_from(SHAPES), st.integers(0, 10**6), st.floats(0, 1))
def test_two_columns_change_places(shape: tuple[int, int], seed: int, where: float) -> None:
    surface = scrambled(*shape, seed)
    before, row = surface.row.copy(), surface.row
    columns = columns_of(row)
    i = min(int(where * (len(columns) - 1)), len(columns) - 2)
    swap(surface.cfg, row, i)
    columns[i], columns[i + 1] = columns[i + 1], columns[i]
    assert columns_of(row) == columns
    assert_permuted(surface, row, before)
    r, d = ss.dense(surface.cfg, row)
    was, has = ss.dense(surface.cfg, before)
    np.testing.assert_array_equal(np.delete(d, [i, i + 1]), np.delete(has, [i, i + 1]))
    others = np.delete(np.arange(len(d)), [i, i + 1])
    np.testing.assert_array_equal(r[np.ix_(others, others)], was[np.ix_(others, others)])
    first = int(layout.triangle(surface.cfg))
    at = int(layout.column_at(0))
    changed = np.flatnonzero(row[:first] != before[:first])
    assert ((changed >= at + 2 * i) & (changed < at + 2 * i + 4)).all()


@given(st.sampled_from(SHAPES), st.integers(0, 10**6))
def test_many_swaps_are_a_permutation(shape: tuple[int, int], seed: int) -> None:
    surface = scrambled(*shape, seed)
    before, n = surface.row.copy(), len(columns_of(surface.row))
    for i in surface.rng.integers(0, n - 1, 30):
        swap(surface.cfg, surface.row, int(i))
    assert_permuted(surface, surface.row, before)


@pytest.mark.parametrize("kind", [layout.LEVEL, layout.SLOPES, layout.CURVES])
@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_a_group_is_appended_behind_all_others(dx: int, dy: int, kind: int) -> None:
    surface = Surface(dx, dy, columns=600)
    surface.play(60)
    cfg, row = surface.cfg, surface.row
    (function, *_), *_ = np.argwhere(worths_of(cfg, row)[:, kind] == layout.ABSENT)
    features = list(range(int(layout.first_of(cfg, kind)), int(layout.first_of(cfg, kind + 1))))
    before, (r, d) = columns_of(row), ss.dense(cfg, row)
    n, weight = len(before), row[layout.WEIGHT]
    row[int(layout.row_at(cfg, n)) :] = np.nan  # what stands behind is not read
    worths, rungs = worths_of(cfg, row).copy(), rungs_of(row).copy()
    assert append(cfg, row, int(function), kind)
    assert columns_of(row) == before + [(int(function), feature) for feature in features]
    found, ds = ss.dense(cfg, row)
    np.testing.assert_array_equal(found[:n, :n], r)
    np.testing.assert_array_equal(ds, [*d, *np.zeros(len(features))])
    root = math.sqrt(ridge_of(cfg, int(function), kind) * weight)
    np.testing.assert_allclose(found[n:, n:], root * np.eye(len(features)), rtol=1e-14)
    assert not found[:n, n:].any()
    worths[function, kind] = 0.0
    np.testing.assert_array_equal(worths_of(cfg, row), worths)
    np.testing.assert_array_equal(rungs_of(row), rungs)


def test_without_room_nothing_is_appended() -> None:
    surface = Surface(2, 2, columns=40)
    cfg, row = surface.cfg, surface.row
    while append(cfg, row, *absent(surface)):
        pass
    before, n = row.copy(), len(columns_of(row))
    assert n > 38
    function = int(np.argwhere(worths_of(cfg, row)[:, layout.CURVES] == layout.ABSENT)[0, 0])
    assert not append(cfg, row, function, layout.CURVES)
    np.testing.assert_array_equal(row, before)


def absent(surface: Surface) -> tuple[int, int]:
    function, kind = np.argwhere(worths_of(surface.cfg, surface.row) == layout.ABSENT)[0]
    return int(function), int(kind)


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_what_a_group_is_worth_is_a_chi_square_less_its_size(dx: int, dy: int) -> None:
    """How much less is left of the payoffs' squares, with it, than with those before it."""
    surface = Surface(dx, dy)
    surface.play(150)
    cfg, row = surface.cfg, surface.row
    before = worths_of(cfg, row).copy()
    chain._weigh(cfg, row)
    columns, groups = columns_of(row), groups_of(cfg, row)
    a, b = surface.normal(columns)

    def explained(end: int) -> float:
        return float(b[:end] @ np.linalg.solve(a[:end, :end], b[:end]))

    noise = float(layout.noise_of(row, int(row[layout.RUNG])))
    unit = (1.0 + cfg.fade) / (1.0 + 2.0 * cfg.fade) * row[layout.WEIGHT] * noise
    starts = [start for _, _, start in groups] + [len(columns)]
    for (function, kind, start), end in zip(groups[3:], starts[4:], strict=True):
        expected = (explained(end) - explained(start)) / unit - (end - start)
        found = worths_of(cfg, row)[function, kind]
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
        before[function, kind] = found
    np.testing.assert_array_equal(worths_of(cfg, row), before)  # of the others nothing is said


def reference_order(groups: list[tuple[int, int]], worths: Array) -> list[tuple[int, int]]:
    """Each group goes before those right before it that are worth so much less."""
    done: list[tuple[int, int]] = []
    for group in groups:
        to = len(done)
        while to > 0 and worths[done[to - 1]] < worths[group] - chain.MARGIN:
            to -= 1
        done.insert(to, group)
    return done


@given(st.sampled_from(SHAPES), st.integers(0, 10**6), st.floats(0.1, 100))
def test_groups_are_sorted_by_worth_with_a_margin(
    shape: tuple[int, int], seed: int, spread: float
) -> None:
    surface = scrambled(*shape, seed)
    cfg, row = surface.cfg, surface.row
    worths = worths_of(cfg, row)
    known = worths != layout.ABSENT
    worths[known] = surface.rng.normal(scale=spread, size=int(known.sum()))
    worths[0] = -1e6  # the constants stay, whatever they are worth
    before = row.copy()
    old = [group[:2] for group in groups_of(cfg, row)]
    chain._sort(cfg, row)
    new = [group[:2] for group in groups_of(cfg, row)]
    assert new == old[:3] + reference_order(old[3:], worths)
    assert_permuted(surface, row, before)
    assert len(new) == len(set(new))  # groups stay whole,
    features = dict[tuple[int, int], list[int]]()
    for function, feature in columns_of(row):
        features.setdefault((function, int(layout.kind_of(cfg, feature))), []).append(feature)
    for (_, kind), listed in features.items():  # and in their order
        assert listed == list(range(layout.first_of(cfg, kind), layout.first_of(cfg, kind + 1)))
    for k, one in enumerate(new):
        for other in new[k + 1 :]:
            if old.index(one) > old.index(other):  # it went before: it is worth much more
                assert worths[one] > worths[other] + chain.MARGIN
    for one, other in pairwise(new[3:]):
        assert worths[other] <= worths[one] + chain.MARGIN
    np.testing.assert_array_equal(worths_of(cfg, before), worths)


@pytest.mark.parametrize(("dx", "dy", "columns"), [(0, 2, 90), *((*s, 90) for s in SHAPES)])
def test_rungs_end_after_more_and_more_groups(dx: int, dy: int, columns: int) -> None:
    surface = Surface(dx, dy, columns=columns)
    cfg, row = surface.cfg, surface.row
    while True:
        rungs = rungs_of(row)
        rungs[:, :3] = surface.rng.normal(size=(layout.MOST_RUNGS, 3))
        kept = rungs.copy()
        chain._set_ends(cfg, row)
        starts = [start for _, _, start in groups_of(cfg, row)] + [len(columns_of(row))]
        boundaries = starts[3:]
        wanted = [boundaries[groups] for groups in ENDS if groups < len(boundaries)]
        wanted = sorted({*wanted, boundaries[-1]})
        last = len(wanted) - 1
        assert ends_of(row) == wanted + [wanted[-1]] * (layout.MOST_RUNGS - len(wanted))
        np.testing.assert_array_equal(rungs[: last + 1, :3], kept[: last + 1, :3])
        np.testing.assert_array_equal(rungs[last:], rungs[[last] * (layout.MOST_RUNGS - last)])
        if dx == 0 or not append(cfg, row, *absent(surface)):
            break


def test_more_groups_than_rungs_can_tell_apart_are_all_in_the_last() -> None:
    surface = Surface(32, 1, columns=2000)
    cfg, row = surface.cfg, surface.row
    while (worths_of(cfg, row) == layout.ABSENT).any() and append(cfg, row, *absent(surface)):
        pass
    chain._set_ends(cfg, row)
    ends = ends_of(row)
    assert len(set(ends)) > 18
    assert ends == sorted(ends)
    assert ends[-1] == len(columns_of(row)) > 1700


def pairs_of(surface: Surface) -> set[tuple[int, int, int]]:
    """The two contexts, and the kind, of the pairs that have entered."""
    cfg = surface.cfg
    table = cfg.table[: layout.FUNCTION * cfg.functions].reshape(-1, layout.FUNCTION)
    found = [(table[f], kind) for f, kind, _ in groups_of(cfg, surface.row)]
    return {(int(f[0]), int(f[2]), kind) for f, kind in found if f[3] > 0.0}


@pytest.mark.parametrize("seed", range(3))
def test_a_pair_that_matters_enters_and_no_other(seed: int) -> None:
    level, slope = Surface(6, 1, seed, None), Surface(6, 1, seed, None)
    level.play(1500, lambda u, y: 0.5 * u[0] * u[3] - float(((y - 0.5) ** 2).sum()), 0.1)
    assert pairs_of(level) == {(0, 3, layout.LEVEL)}
    assert any(level.cfg.table[layout.FUNCTION * f + 3] > 0.0 for f, _ in level.lead())
    slope.play(1500, lambda u, y: -float(((y - 0.5 - 0.4 * u[0] * u[3]) ** 2).sum()), 0.1)
    assert pairs_of(slope) == {(0, 3, layout.LEVEL), (0, 3, layout.SLOPES)}
    for sign in (1.0, -1.0):  # and is used
        u = np.array([0.8, 0.1, -0.3, 0.8 * sign, 0.5, 0.2])
        assert slope.best(u)[0] == pytest.approx(0.5 + 0.4 * 0.64 * sign, abs=0.05)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("level", [0.0, 1.0])
def test_noise_brings_no_pair(level: float, seed: int) -> None:
    surface = Surface(6, 1, seed, None)
    surface.play(1500, lambda u, y: level * (u.sum() - float(((y - 0.3) ** 2).sum())), 1.0)
    assert not pairs_of(surface)


def flat(u: Array, y: Array) -> float:
    return -float(((y - 0.3) ** 2).sum())


def of_the_first(u: Array, y: Array) -> float:
    return -float(((y - 0.5 - 0.3 * math.sin(6.0 * u[0])) ** 2).sum())


def refined(surface: Surface) -> set[int]:
    """The contexts with functions in the rung that decides that were not there at first."""
    begun = {f for f, *_ in groups_of(surface.cfg, Surface(surface.cfg.dx, 2, 1, None).row)}
    added = {function for function, _ in surface.lead()} - begun
    return {int(surface.cfg.table[layout.FUNCTION * function]) for function in added}


@pytest.mark.parametrize(("dx", "dy"), [(2, 2), (4, 2), (7, 2)])
def test_what_a_context_does_brings_its_higher_degrees(dx: int, dy: int) -> None:
    rough, smooth = (Surface(dx, dy, 1, None) for _ in range(2))
    rough.play(1500, of_the_first, 0.1)
    smooth.play(1500, flat, 0.1)
    assert refined(rough) == {0}
    assert not refined(smooth)
    assert len(smooth.lead()) < len(rough.lead())


@pytest.mark.parametrize("dy", [1, 2])
def test_a_jump_brings_steps_nearer_and_nearer(dy: int) -> None:
    surface, jump = Surface(1, dy, 2, None), 0.26

    def payoff(u: Array, y: Array) -> float:
        return -float(((y - 0.3 - 0.4 * (u[0] >= jump)) ** 2).sum())

    surface.play(3000, payoff, 0.1)
    table = surface.cfg.table[: layout.FUNCTION * surface.cfg.functions].reshape(-1, 6)
    steps = [table[f, 3] for f, _ in surface.lead() if table[f, 1] == layout.STEP]
    assert min(abs(place - jump) for place in steps) < 0.02
    for u, best in ((jump - 0.08, 0.3), (jump + 0.08, 0.7)):
        assert surface.best(np.array([u]))[0] == pytest.approx(best, abs=0.05)


@pytest.mark.parametrize(("dx", "dy"), [(1, 1), (2, 2), (4, 2), (7, 2)])
def test_in_a_flat_world_few_columns_decide(dx: int, dy: int) -> None:
    for seed in range(3):
        surface = Surface(dx, dy, seed, None)
        surface.play(2000, flat)
        assert len(surface.lead()) <= max(24, surface.cfg.features)


@pytest.mark.parametrize(("dx", "dy"), [(2, 2), (4, 2), (7, 2)])
def test_a_flat_world_brings_few_columns(dx: int, dy: int) -> None:
    surface = Surface(dx, dy, 0, None)
    begun = len(columns_of(surface.row))
    surface.play(2000, flat)
    assert len(columns_of(surface.row)) <= 1.5 * begun


@pytest.mark.parametrize("dy", [12, 40])
def test_many_decisions_are_learned(dy: int) -> None:
    """From eleven on only the diagonal of the Hessian is."""
    rng, contexts = np.random.default_rng(0), ca.Box.unit(1)
    policy = ca.Policy(
        contexts, ca.Box.unit(dy), partition=ca.Grid(1), learner=ca.SmoothSurface(), rng=0
    )
    peak = np.linspace(0.3, 0.7, dy)
    for _ in range(600):
        x = rng.random(1)
        decision = policy.ask(x)
        z = -float(((decision.value - peak - 0.1 * (x[0] - 0.5)) ** 2).sum())
        policy.tell(decision, z + 0.05 * float(rng.standard_normal()))
    for x0 in (0.2, 0.5, 0.8):
        off = policy.recommend([x0]) - peak - 0.1 * (x0 - 0.5)
        assert math.sqrt((off**2).mean()) < 0.05


@pytest.mark.parametrize("d", [1, 2, 11, 12, 40])
def test_a_diagonal_hessian_is_climbed_dimension_by_dimension(d: int) -> None:
    rng = np.random.default_rng(d)
    for _ in range(50):
        slope, bends = rng.normal(size=d), rng.normal(size=d)
        low, high = np.sort(rng.uniform(-1, 1, (2, d)), axis=0)
        v, work = np.empty(d), np.full(2 * d * d + d, np.nan)
        climb(slope, bends, np.empty(0), Region(low, high, False), work, v)
        assert ((low <= v) & (v <= high)).all()
        grid = np.linspace(low, high, 2001)
        values = slope * grid + 0.5 * bends * grid**2
        best = values.max(axis=0)
        assert (slope * v + 0.5 * bends * v**2 >= best - 1e-12).all()
        concave = bends < 0.0
        off = abs(v - grid[values.argmax(axis=0), np.arange(d)])[concave]
        assert (off <= (high - low)[concave] / 2000.0 + 1e-12).all()


Told = tuple[Array, Array, float]


def a_constant_payoff(u: Array, y: Array, k: int) -> Told:
    return u, y, 3.7


def nearly_constant(u: Array, y: Array, k: int) -> Told:
    return u, y, 3.7 + 1e-16 * float(y[0])


def equal_contexts(u: Array, y: Array, k: int) -> Told:
    return np.full(len(u), u[0]), y, flat(u, y)


def one_context(u: Array, y: Array, k: int) -> Told:
    return np.full(len(u), 0.25), y, flat(u, y)


def one_decision(u: Array, y: Array, k: int) -> Told:
    return u, np.full(len(y), 0.5), float(u[0])


def an_absurd_payoff(u: Array, y: Array, k: int) -> Told:
    return u, y, 1e12 if k == 700 else flat(u, y)


@pytest.mark.parametrize(
    "world",
    [
        *(a_constant_payoff, nearly_constant, equal_contexts),
        *(one_context, one_decision, an_absurd_payoff),
    ],
)
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize(("dx", "dy"), [(1, 1), (2, 2), (5, 2), (2, 12)])
def test_degenerate_payoffs_leave_no_nan(world: Any, noise: float, dx: int, dy: int) -> None:
    surface = Surface(dx, dy, columns=120)
    kept = int(layout.triangle(surface.cfg))
    for k in range(2000):
        u, y = surface.rng.uniform(-1, 1, dx), surface.rng.random(dy)
        u, y, z = world(u, y, k)
        surface.tell(u, y, z + noise * float(surface.rng.standard_normal()))
        assert np.isfinite(surface.row[:kept]).all()
        if k % 100 == 0:
            assert np.isfinite(surface.row).all()
            xi = surface.rng.standard_normal(ss.draws(surface.cfg))
            for found in (surface.decide(u, xi), surface.best(u)):
                assert ((found >= 0.0) & (found <= 1.0)).all()
    assert fits(surface.cfg, surface.row)
    payoffs = ss.expected(surface.cfg, surface.row, u, np.array([y, 1.0 - y]))
    assert payoffs is None or np.isfinite(payoffs).all()
