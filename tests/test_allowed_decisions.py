"""The best allowed decision of a surface: against a QP solver, brute force, and in floats."""

import itertools
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import daqp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import continuarm as ca
from benchmarks.allowed import Surface, decide, gap_to_brute_force, lattice_of, rotated
from continuarm.core.allowed import plain
from continuarm.core.allowed.bundles import Allowed
from continuarm.core.allowed.compiled import best, limits, nearest, room_for, the_code, to_units
from continuarm.core.compiling import Array, in_python
from continuarm.errors import SettingsError
from continuarm.sets import Decisions, allowed_of, box_of, plain_allowed
from continuarm.sets.bundle import Rows, bundle, solved


def peak(allowed: Allowed, surface: Surface, low: Array, high: Array) -> Array | None:
    """What `best` finds, compiled."""
    d, v = len(low), np.full(len(low), 0.123)
    work = np.full(in_python(room_for)(d, len(allowed.bounds)), np.nan)
    if best(allowed, *surface.coefficients, low, high, work, v):
        return v
    assert (v == 0.123).all()
    return None


def in_units(decision: Decisions, allowed: Allowed, v: Array) -> Array:
    """A decision as it is handed out."""
    box, value = box_of(decision), np.empty(len(v))
    work = np.full(in_python(room_for)(len(v), len(allowed.bounds)), np.nan)
    assert to_units(allowed, v, box.low.copy(), box.high.copy(), work, value)
    return value


class Instance(NamedTuple):
    """A set on [-1, 1]^d, a box of limits in it, and a surface."""

    allowed: Allowed
    rows: Rows
    equal: Rows
    low: Array
    high: Array
    surface: Surface


def instances(n: int, seed: int) -> Iterator[Instance]:
    """Sets with a point in them: degenerate vertices, parallel and redundant rows, fixed
    coordinates, equalities; surfaces that are concave, flat in some directions, or flat."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        d, m = int(rng.integers(1, 7)), int(rng.integers(0, 12))
        whole = rng.random() < 0.4
        rows: Array = rng.normal(size=(m, d))
        rows = np.round(rows) if whole else rows
        rows[~rows.any(axis=1)] = 1.0
        inside = rng.integers(-1, 2, d) * 0.5 if whole else rng.uniform(-1, 1, d)
        bounds = rows @ inside + rng.uniform(0, 0.5, m) * (rng.random(m) < 0.6)
        if m > 2 and rng.random() < 0.4:
            rows[-1], bounds[-1] = 2.0 * rows[-2], 2.0 * bounds[-2]
        low, high = -np.ones(d), np.ones(d)
        if rng.random() < 0.3:
            j = rng.integers(d)
            low[j] = high[j] = inside[j]
        many = int(rng.integers(0, 3)) if d > 2 and rng.random() < 0.3 else 0
        factors = rng.normal(size=(many, d))
        equal = Rows(factors, factors @ inside)
        box, limited = ca.Box(-np.ones(d), np.ones(d)), Rows(rows, bounds)
        allowed = bundle(box, limited, *solved(box, equal, ["e"] * many), np.zeros(d))
        allowed = allowed._replace(code=the_code(), margins=np.zeros(m + many))
        yield Instance(allowed, limited, equal, low, high, _concave(rng, d))


def _concave(rng: np.random.Generator, d: int) -> Surface:
    rank = int(rng.integers(1, d + 1)) if rng.random() < 0.3 else d
    root = rng.normal(size=(d, rank))
    hessian, kind = -root @ root.T, rng.random()
    if kind < 0.05:
        hessian[:] = 0.0
    elif kind < 0.3:
        hessian -= 10.0 ** rng.uniform(-7, 1) * np.eye(d)
    return Surface(rng.normal(size=d) * 10.0 ** rng.uniform(-2, 2), 0.5 * (hessian + hessian.T))


def solve_elsewhere(one: Instance) -> tuple[Array, int]:
    """The same by DAQP, a dual active-set solver, and its flag."""
    d, m, many = len(one.low), len(one.rows.bounds), len(one.equal.bounds)
    sense = np.array([0] * (d + m) + [5] * many, np.int32)
    definite = np.linalg.eigvalsh(-one.surface.hessian)[0] > 1e-8
    x, _, flag, _ = daqp.solve(
        -one.surface.hessian,
        -one.surface.slope,
        np.concatenate([one.rows.factors, one.equal.factors]),
        np.concatenate([one.high, one.rows.bounds, one.equal.bounds]),
        np.concatenate([one.low, np.full(m, -1e30), one.equal.bounds]),
        sense,
        primal_tol=1e-11,
        dual_tol=1e-11,
        eps_prox=0.0 if definite else -1.0,
    )
    return np.array(x), int(flag)


def test_where_concave_the_peak_is_that_of_a_qp_solver() -> None:
    """To 1e-9: the height everywhere, and the point where there is only one."""
    compared = 0
    for one in instances(3000, seed=1):
        v = peak(one.allowed, one.surface, one.low, one.high)
        assert v is not None
        lengths = np.linalg.norm(one.rows.factors, axis=1)
        assert (one.rows.factors @ v <= one.rows.bounds + 2e-13 * (1 + lengths)).all()
        assert np.allclose(one.equal.factors @ v, one.equal.bounds, rtol=0, atol=1e-12)
        assert (one.low <= v).all()
        assert (v <= one.high).all()
        x, flag = solve_elsewhere(one)
        if flag != 1:
            continue
        compared += 1
        scale = max(1.0, np.abs(one.surface.slope).max(), np.abs(one.surface.hessian).max())
        assert one.surface(v) >= one.surface(x) - 1e-9 * scale
        curvatures = np.linalg.eigvalsh(-one.surface.hessian)
        if curvatures[0] > 1e-5 * curvatures[-1]:
            np.testing.assert_allclose(v, x, rtol=0, atol=1e-9)
    assert compared >= 2900


def test_the_same_lines_in_plain_python_give_the_same_bits() -> None:
    for k, one in enumerate(instances(300, seed=2)):
        surface = one.surface
        if k % 2:
            surface = Surface(surface.slope, surface.hessian + np.diag(np.arange(len(one.low))))
        v = peak(one.allowed, surface, one.low, one.high)
        lists = _of_lists(one.allowed)
        found, room = [0.123] * len(one.low), plain.room_of_lists(len(one.low), len(lists.bounds))
        slope, bends, twists = (part.tolist() for part in surface.coefficients)
        low, high = one.low.tolist(), one.high.tolist()
        done = plain.fill_best(lists, slope, bends, twists, low, high, room, found)
        assert done == (v is not None)
        assert v is None or found == v.tolist()


@pytest.mark.parametrize(("d", "m"), [(1, 2), (2, 3), (3, 0), (4, 3)])
def test_so_do_they_with_allowed_values(d: int, m: int) -> None:
    rng = np.random.default_rng(13)
    room, ends = plain.room_of_lists(d, m), ([0.0] * d, [8.0] * d)
    for k in range(10):
        decision, surface = lattice_of(d, 9, m, rng), rotated(rng, d, 2.0 * (k % 2))
        value, _ = decide(allowed_of(decision), surface)
        lists, v, found = Allowed(**plain_allowed(decision), code=0), [0.0] * d, [0.0] * d
        slope, bends, twists = (part.tolist() for part in surface.coefficients)
        edges = [-1.0] * d, [1.0] * d
        assert plain.fill_best(lists, slope, bends, twists, *edges, room, v)
        assert plain.fill_value(lists, v, *ends, room, found)
        assert found == value.tolist()


def _of_lists(allowed: Allowed) -> Allowed:
    parts: dict[str, Any] = {
        name: part.tolist() if isinstance(part, np.ndarray) else part
        for name, part in allowed._asdict().items()
    }
    return Allowed(**parts)


def test_the_nearest_point_is_that_of_a_qp_solver() -> None:
    rng = np.random.default_rng(3)
    for one in instances(500, seed=4):
        d = len(one.low)
        target, v = rng.uniform(-2, 2, d), np.zeros(d)
        work = np.full(in_python(room_for)(d, len(one.allowed.bounds)), np.nan)
        assert nearest(one.allowed, target, one.low, one.high, work, v)
        x, flag = solve_elsewhere(one._replace(surface=Surface(target, -np.eye(d))))
        assert flag != 1 or np.abs(v - x).max() < 1e-9


def test_where_nothing_is_left_it_says_so() -> None:
    box = ca.Box([-1, -1], [1, 1], ["a", "b"])
    allowed = allowed_of(ca.Polytope(box, ["a + b <= 0"]))
    surface = Surface(np.ones(2), -np.eye(2))
    assert peak(allowed, surface, np.array([0.5, -0.4]), np.ones(2)) is None
    assert peak(allowed, surface, np.array([0.5, 0.2]), np.array([0.4, 0.3])) is None
    corner = peak(allowed, surface, np.array([0.5, -0.5]), np.ones(2))
    assert corner is not None
    np.testing.assert_allclose(corner, [0.5, -0.5], atol=1e-11)


def test_where_it_bends_up_the_peak_is_a_local_one_and_no_worse_than_the_start() -> None:
    """At least what the nearest point to the middle has, and no short step is better."""
    rng = np.random.default_rng(5)
    for one in instances(600, seed=6):
        d = len(one.low)
        bent = rng.normal(size=(d, d)) * 2.0
        surface = Surface(one.surface.slope, bent + bent.T)
        v, start = peak(one.allowed, surface, one.low, one.high), np.zeros(d)
        work = np.full(in_python(room_for)(d, len(one.allowed.bounds)), np.nan)
        assert nearest(one.allowed, np.zeros(d), one.low, one.high, work, start)
        assert v is not None
        assert (one.rows.factors @ v <= one.rows.bounds + 1e-11).all()
        scale = np.abs(surface.slope).sum() + np.abs(surface.hessian).sum()
        assert surface(v) >= surface(start) - 1e-12 * scale
        for _ in range(20):
            aside = np.zeros(d)
            around = v + rng.normal(size=d) * 1e-3
            assert nearest(one.allowed, around, one.low, one.high, work, aside)
            way = aside - v
            assert surface.slope @ way + surface.hessian @ v @ way <= 1e-6 * scale * 1e-3


def test_on_a_box_the_best_edge_of_a_saddle_is_found() -> None:
    """One dimension bends up: the better end wins, as without guards."""
    box = ca.Box([-1], [1], ["a"])
    allowed = allowed_of(ca.Polytope(box, ["a <= 0.9"]))
    low, high = -np.ones(1), np.ones(1)
    right = peak(allowed, Surface(np.array([0.3]), np.eye(1)), low, high)
    left = peak(allowed, Surface(np.array([-0.3]), np.eye(1)), low, high)
    np.testing.assert_allclose(np.array([right, left]).ravel(), [0.9, -1.0], atol=1e-11)


@pytest.mark.parametrize("bent", [0.0, 2.0])
@pytest.mark.parametrize(("d", "n", "m"), [(1, 30, 0), (1, 30, 2), (2, 30, 0), (2, 30, 4)])
def test_up_to_two_dimensions_the_best_allowed_value_is_exact(
    d: int, n: int, m: int, bent: float
) -> None:
    rng = np.random.default_rng(7)
    for _ in range(100):
        assert gap_to_brute_force(lattice_of(d, n, m, rng), rotated(rng, d, bent)) <= 1e-12


@pytest.mark.parametrize("bent", [0.0, 2.0])
def test_with_a_diagonal_hessian_and_no_rows_the_best_allowed_value_is_exact(bent: float) -> None:
    rng = np.random.default_rng(8)
    for _ in range(50):
        surface = rotated(rng, 5, bent)
        surface = Surface(surface.slope, np.diag(np.diag(surface.hessian)))
        assert gap_to_brute_force(lattice_of(5, 6, 0, rng), surface) <= 1e-12


@pytest.mark.parametrize(("d", "n"), [(3, 13), (4, 9), (5, 6)])
@pytest.mark.parametrize("m", [0, 3])
def test_in_more_dimensions_the_gap_to_the_best_allowed_value_is_small(
    d: int, n: int, m: int
) -> None:
    """Exact in at least 95 of 100, and lost on average at most 2 in 1,000 of what is at stake."""
    rng = np.random.default_rng(9 + m)
    gaps = [gap_to_brute_force(lattice_of(d, n, m, rng), rotated(rng, d)) for _ in range(100)]
    assert sum(gap <= 1e-12 for gap in gaps) >= 95
    assert np.mean(gaps) <= 2e-3
    assert max(gaps) <= 0.1


def test_coordinates_without_a_spacing_are_at_their_peak() -> None:
    """Two dimensions, one with a spacing: as good as the best of all its values, by a QP each."""
    rng = np.random.default_rng(10)
    box = ca.Box([0, 0], [10, 10], ["a", "b"], {"a": 0.5})
    polytope = ca.Polytope(box, ["a + 2 * b <= 14", "b - a <= 3", "a - b <= 6"])
    allowed, bare = allowed_of(polytope), allowed_of(ca.Polytope(box, list(polytope.texts)))
    for _ in range(100):
        surface = rotated(rng, 2)
        v = peak(allowed, surface, -np.ones(2), np.ones(2))
        assert v is not None
        heights = []
        for k in range(21):
            low, high = np.array([k / 10 - 1.0, -1.0]), np.array([k / 10 - 1.0, 1.0])
            there = peak(bare._replace(spaced=False), surface, low, high)
            heights.append(-math.inf if there is None else float(surface(there)))
        assert surface(v) >= max(heights) - 1e-9


DECIMAL = st.decimals(-5, 5, places=2).map(float)


@st.composite
def guarded(draw: st.DrawFn) -> tuple[ca.Polytope, Surface, Array, Array]:
    """A polytope around a point, in decimals, a surface and limits of a request around it."""
    d = draw(st.integers(1, 4))
    step = st.sampled_from([0.0, 0.0, 0.05, 0.25, 1.0, 1 / 3, 1e-9])
    steps = draw(st.lists(step, min_size=d, max_size=d))
    low = np.array(draw(st.lists(DECIMAL, min_size=d, max_size=d)))
    box = ca.Box(low, low + draw(st.sampled_from([2.0, 7.3, 100.0])), spacing=steps)
    inside = box.nearest(box.from_unit(draw(_vector(d, 0, 1))))
    m = draw(st.integers(1, 5))
    rows = np.array([draw(st.lists(DECIMAL, min_size=d, max_size=d)) for _ in range(m)])
    rows[~rows.any(axis=1)] = 1.0
    exact = [sum(map(_fraction, row, inside)) for row in rows]
    spare = draw(st.lists(st.sampled_from([0.01, 0.5, 5.0]), min_size=m, max_size=m))
    bounds = np.array([float(f) for f in exact]) + spare
    try:
        polytope = ca.Polytope(box, rows, bounds, equal=draw(_budget(steps, inside)))
    except SettingsError as error:
        assume(not re.search("leave no room between|must be left out", str(error)))
        raise
    root = np.array([draw(_vector(d, -1, 1)) for _ in range(d)])
    surface = Surface(draw(_vector(d, -3, 3)), -root @ root.T + draw(st.sampled_from([0, 0.5])))
    width = draw(st.sampled_from([0.0, 0.3, 2.0, 1000.0]))
    return polytope, surface, np.maximum(inside - width, low), np.minimum(inside + width, box.high)


@st.composite
def _budget(draw: st.DrawFn, steps: list[float], inside: Array) -> Any:
    """An equality through the point, where it can be solved and leaves something; or none."""
    free = [j for j, step in enumerate(steps) if not step]
    if len(steps) < 2 or not free or draw(st.booleans()):
        return None
    row = np.array(
        draw(
            st.lists(
                st.sampled_from([0.0, 1.0, -2.0, 0.3]), min_size=len(steps), max_size=len(steps)
            )
        )
    )
    row[free[0]] = 1.0
    return [row], [float(sum(map(_fraction, row, inside)))]


def _fraction(a: float, b: float) -> Any:
    return Fraction(float(a)) * Fraction(float(b))


def _vector(d: int, low: float, high: float) -> Any:
    numbers = st.lists(st.floats(low, high, width=16), min_size=d, max_size=d)
    return numbers.map(lambda found: np.array(found))


@settings(max_examples=300)
@given(guarded())
def test_what_is_handed_out_is_allowed_in_floats_whatever_the_order(
    one: tuple[ca.Polytope, Surface, Array, Array],
) -> None:
    polytope, surface, lowest, highest = one
    allowed, d = allowed_of(polytope), polytope.dim
    low, high, v, value = (np.full(d, np.nan) for _ in range(4))
    work = np.full(in_python(room_for)(d, len(allowed.bounds)), np.nan)
    assert limits(allowed, lowest, highest, low, high)
    assert best(allowed, *surface.coefficients, low, high, work, v)
    assert to_units(allowed, v, lowest, highest, work, value)
    assert polytope.allows(value)
    assert (lowest <= value).all()
    assert (value <= highest).all()
    for row, bound in zip(polytope.A, polytope.b, strict=True):
        terms = [a * x for a, x in zip(row.tolist(), value.tolist(), strict=True)]
        for order in itertools.permutations(terms):
            total = 0.0
            for term in order:
                total += term
            assert total <= bound


def test_values_far_from_0_are_found_where_limits_fix_them() -> None:
    box = ca.Box([1370.0], [1370.001], spacing=5e-5)
    allowed, value = allowed_of(box), box.nearest([1370.00025])
    low, high, v, found = (np.full(1, np.nan) for _ in range(4))
    work = np.full(in_python(room_for)(1, 0), np.nan)
    assert limits(allowed, value, value, low, high)
    assert best(allowed, *Surface(np.ones(1), -np.eye(1)).coefficients, low, high, work, v)
    assert to_units(allowed, v, value, value, work, found)
    assert found == value


def test_whole_numbers_may_use_up_a_budget() -> None:
    """Sums of whole numbers are exact, so a value on the bound is allowed."""
    names = ["ads", "stock", "staff"]
    whole = ca.Polytope(ca.Box([0] * 3, [100] * 3, names, 5), ["ads + stock + staff <= 100"])
    assert whole.nearest([50, 50, 50]).sum() == 100
    two = ca.Polytope(ca.Box([0] * 2, [100] * 2, names[:2], 0.05), ["ads + stock <= 100"])
    for ads in np.arange(0, 100, 0.35):
        value = two.nearest([ads, 100 - ads])
        assert value.sum() <= 100
        assert value.sum() >= 99.9
    assert two.nearest([40.0, 60.0]).tolist() == [40.0, 60.0]


def test_equalities_hold_to_their_tolerance() -> None:
    rng = np.random.default_rng(11)
    box = ca.Box([0, 0, 0, 0], [100, 80, 60, 10], ["a", "b", "c", "d"], {"d": 0.5})
    polytope = ca.Polytope(box, ["a + b + c == 100", "c - 2 * d == 5", "a <= 3 * b"])
    allowed = allowed_of(polytope)
    for k in range(300):
        surface = rotated(rng, 4, 2.0 * (k % 2))
        v = peak(allowed, surface, -np.ones(4), np.ones(4))
        assert v is not None
        value = in_units(polytope, allowed, v)
        assert polytope.allows(value)
        factors, bounds = polytope.equal
        np.testing.assert_allclose(factors @ value, bounds, rtol=0, atol=1e-11)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308])
def test_a_surface_of_no_numbers_still_gives_an_allowed_decision(bad: float) -> None:
    box = ca.Box([0, 0, 0], [10, 10, 10], ["a", "b", "c"])
    for spacing in (None, 0.5):
        space = ca.Box(box.low, box.high, box.names, spacing)
        polytope = ca.Polytope(space, ["a + b <= 12", "c <= a"])
        allowed = allowed_of(polytope)
        for where in range(3):
            slope, hessian = np.ones(3), -np.eye(3) + 0.1
            if where:
                hessian[where, where - 1] = hessian[where - 1, where] = bad
            else:
                slope[1] = bad
            v = peak(allowed, Surface(slope, hessian), -np.ones(3), np.ones(3))
            v = np.zeros(3) if v is None else v
            assert polytope.allows(in_units(polytope, allowed, v))


def test_the_bundle_of_an_export_is_the_same_set() -> None:
    box = ca.Box([0, 0], [10, 10], ["a", "b"], {"a": 0.5})
    polytope = ca.Polytope(box, ["a + b <= 12"])
    lists = Allowed(**plain_allowed(polytope), code=0)
    value, room = [0.0, 0.0], plain.room_of_lists(2, 1)
    assert plain.fill_value(lists, [0.9, 0.8], [0.0, 0.0], [10.0, 10.0], room, value)
    assert value == polytope.nearest([9.5, 9.0]).tolist()


def test_a_decision_of_five_coordinates_with_ten_rows_takes_well_under_100_microseconds() -> None:
    """In compiled code, from the surface to units."""
    rng = np.random.default_rng(12)
    rows = rng.normal(size=(10, 5))
    polytope = ca.Polytope(ca.Box(-np.ones(5), np.ones(5)), rows, np.full(10, 0.4))
    times = [decide(allowed_of(polytope), rotated(rng, 5), 20)[1] for _ in range(50)]
    assert np.median(times) < 50e-6
