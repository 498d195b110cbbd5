"""The model alone: deciding changes nothing, limits are kept, bins are made when they must be."""

import itertools
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.learners import protocol as learner
from continuarm.core.learners.boxed_peak import climb, peak
from continuarm.core.model import Limits, Model, limits_of
from continuarm.core.partitions import protocol as partition
from continuarm.core.request import ALONE, NOTHING, Region
from continuarm.core.state import (
    CLOCK,
    HEAD,
    LEVEL,
    NODE,
    ROWS_USED,
    SERIAL,
    SERIALS,
    TOLD,
    State,
)

CONTEXT = ca.Box([-1.0, 10.0], [3.0, 20.0])
DECISION = ca.Box([0.0, -2.0], [5.0, 2.0])
KEY = np.array([3, 2**63 + 5], np.uint64)
START = np.array([0.4, 0.7])
WHOLE = limits_of(START)
GRID, TREE = ca.Grid(3), ca.Tree((3, 4))
EAGER = ca.EvidenceTree(first=8, noted=4, split_lead=0.2, fresh_lead=0.3, renew_lead=2.0)
LEARNERS: dict[str, Any] = {
    "forward": ca.KieferWolfowitz(step=0.2),
    "alternate": ca.KieferWolfowitz(step=0.2, probe="alternate", average=True, memory=50),
    "central": ca.KieferWolfowitz(step=0.2, probe="central", keep_count=True),
    "ascent": ca.GradientAscent(step=0.2),
    "averaged": ca.GradientAscent(step=0.2, average=True, keep_count=True, memory=50),
    "gradients": ca.SmoothGradient(),
    "faded": ca.SmoothGradient(memory=80),
    "ucb": ca.GridUCB(arms=3),
    "surface": ca.ResponseSurface(),
    "constant": ca.ResponseSurface(hessian="constant"),
    "diagonal": ca.ResponseSurface(hessian="diagonal", memory=80),
}
FORESEEING = ("surface", "constant", "diagonal")
GRADIENTS = ("gradients", "faded")
SURFACES = (*FORESEEING, *GRADIENTS)
PROBING = ("forward", "alternate", "central", "ucb")
ASCENTS = ("ascent", "averaged")
COUNTING = (*PROBING, *ASCENTS)
PAIRS = [
    *itertools.product((GRID, TREE), LEARNERS),
    *itertools.product((EAGER,), FORESEEING),
]
NAMES = [f"{type(options).__name__}-{name}" for options, name in PAIRS]
every_pair = pytest.mark.parametrize(("options", "name"), PAIRS, ids=NAMES)
every_learner = pytest.mark.parametrize("name", LEARNERS)


def make(options: Any, name: Any, context: ca.Box = CONTEXT, decision: ca.Box = DECISION) -> Model:
    chosen = LEARNERS[name] if isinstance(name, str) else name
    lcfg = chosen.configured(context.dim, decision.dim)
    edges = (np.array([box.low, box.high]) for box in (context, decision))
    return Model(options.configured(context.dim, lcfg), lcfg, *edges)


def content(model: Model) -> tuple[bytes, ...]:
    return tuple(array.tobytes() for array in model.state)


def contexts(rng: np.random.Generator, n: int) -> Array:
    return CONTEXT.from_unit(rng.random((n, 2)))


def decided(
    model: Model, x: Array, draw: int, limits: Limits = WHOLE
) -> tuple[tuple[int, bool, int, int], Array, Array]:
    value = np.empty(model.dy)
    found = model.decide(x, KEY, draw, limits, value)
    return found, value, model.recommend(x[None, :], limits)[0]


def payoff_of(x: Array, value: Array, noise: float) -> tuple[float, Array]:
    """A quadratic whose best decision jumps with the context, and its gradient in units."""
    u, y = CONTEXT.to_unit(x), DECISION.to_unit(value)
    gap = y - np.array([0.2 if u[0] < 0.4 else 0.7, 0.3 + 0.4 * u[1]])
    return 0.05 * noise - float(gap @ gap), -2 * gap / DECISION.span


def tell(model: Model, row: int, ticket: int, x: Array, value: Array, noise: float = 0.0) -> int:
    """Tell what a decision paid; the number of the bin that learned it."""
    payoff, gradient = payoff_of(x, value, noise)
    if not model.uses_gradient:
        gradient = np.empty(0)
    return model.tell(row, ticket, x, value, payoff, gradient, START)


def ask(model: Model, x: Array, draw: int) -> tuple[int, int, Array]:
    """Decide and hand out; the row and the ticket to tell, and the decision."""
    (row, made, ticket, _), value, _ = decided(model, x, draw)
    if model.counts_asking:
        row, _ = model.asked(row, made, ticket)
    return row, ticket, value


def step(model: Model, x: Array, draw: int, noise: float = 0.0) -> Array:
    """Decide, hand out and tell; the decision."""
    row, ticket, value = ask(model, x, draw)
    tell(model, row, ticket, x, value, noise)
    return value


def learned(options: Any, name: Any, n: int, seed: int = 0) -> Model:
    model, rng = make(options, name), np.random.default_rng(seed)
    for draw, x in enumerate(contexts(rng, n)):
        step(model, x, draw, float(rng.standard_normal()))
    return model


def tighter(rng: np.random.Generator, dy: int = 2) -> Limits:
    """Limits inside the cube."""
    ends = np.sort(rng.random((2, dy)), axis=0)
    return WHOLE._replace(low=ends[0].copy(), high=ends[1].copy(), whole=False)


@every_pair
def test_deciding_changes_nothing(options: Any, name: str) -> None:
    """Nor does recommending or explaining, in bins made or not; and it can be repeated."""
    model, rng, kinds = make(options, name), np.random.default_rng(0), set()
    for draw in range(120):
        for x in contexts(rng, 3):
            before, limits = content(model), (WHOLE, tighter(rng))
            for allowed in limits:
                one, again = decided(model, x, draw, allowed), decided(model, x, draw, allowed)
                kinds.add(one[0][1])
                assert one[0] == again[0]
                np.testing.assert_array_equal(one[1:], again[1:])
                recommended = model.recommend(x[None, :], allowed)[0]
                np.testing.assert_array_equal(one[2], recommended)
                model.explain(x, allowed)
                model.bins(allowed)
                if name not in GRADIENTS:  # of which no table is made
                    model.rules(allowed)
            assert content(model) == before
        step(model, contexts(rng, 1)[0], draw, float(rng.standard_normal()))
    assert kinds == {True, False}


@every_pair
def test_readers_in_threads_decide_as_one_alone(options: Any, name: str) -> None:
    model, rng = learned(options, name, 150), np.random.default_rng(1)
    queries = [
        (x, draw, WHOLE if draw % 3 else tighter(rng))
        for draw, x in enumerate(contexts(rng, 1500))
    ]
    before = content(model)

    def answers(reader: Model, order: list[int]) -> dict[int, Any]:
        found = {}
        for k in order:
            seat, value, best = decided(reader, *queries[k])
            found[k] = (*seat, value.tobytes(), best.tobytes())
        return found

    forward = list(range(len(queries)))
    alone = answers(model, forward)
    together: dict[int, Any] = {}
    barrier = threading.Barrier(2)

    def work(which: int, reader: Model, order: list[int]) -> None:
        barrier.wait()
        together[which] = answers(reader, order)

    threads = [
        threading.Thread(target=work, args=(0, model.reader(), forward)),
        threading.Thread(target=work, args=(1, model.reader(), forward[::-1])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together[0] == together[1] == alone
    assert content(model) == before


def test_a_reader_sees_what_is_learned_and_has_room_of_its_own() -> None:
    model = learned(GRID, "ascent", 100)
    reader, x = model.reader(), np.array([0.5, 12.0])
    assert not np.shares_memory(reader.room, model.room)
    for ours, theirs in zip(model.state, reader.state, strict=True):
        assert ours is theirs
    before = decided(reader, x, 0)[1]
    step(model, x, 0)
    np.testing.assert_array_equal(decided(reader, x, 0)[1], decided(model, x, 0)[1])
    assert (decided(reader, x, 0)[1] != before).any()


def test_a_copy_sees_nothing_of_what_is_learned_later() -> None:
    model = learned(GRID, "ascent", 100)
    twin, before = model.copy(), content(model)
    for ours, theirs in zip(model.state, twin.state, strict=True):
        assert not np.shares_memory(ours, theirs)
    step(model, np.array([0.5, 12.0]), 0)
    assert content(twin) == before != content(model)


@every_pair
def test_within_tighter_limits_every_decision_lies_inside(options: Any, name: str) -> None:
    rng, inner = np.random.default_rng(2), 0
    for n in (0, 5, 40, 200):
        model = learned(options, name, n, seed=n)
        points = contexts(rng, 60)
        for draw, x in enumerate(points):
            limits = tighter(rng)
            low, high = DECISION.from_unit(limits.low), DECISION.from_unit(limits.high)
            (_, _, ticket, _), value, best = decided(model, x, draw, limits)
            for found in (value, best):
                assert ((low <= found) & (found <= high)).all()
            centre = model.explain(x, limits)["centre"]
            assert ((limits.low <= centre) & (centre <= limits.high)).all()
            inner += int(((low < value) & (value < high)).all())
            if name in COUNTING:
                assert ticket >= 0 if name in ASCENTS else ticket == NOTHING
                np.testing.assert_array_equal(value, best)
            else:
                assert ticket == ALONE
        limits = tighter(rng)
        low, high = DECISION.from_unit(limits.low), DECISION.from_unit(limits.high)
        many = model.recommend(points, limits)
        assert ((low <= many) & (many <= high)).all()
        for bin_ in model.bins(limits):
            assert ((low <= bin_.best) & (bin_.best <= high)).all()
    assert inner > 0


@every_pair
def test_limits_that_do_not_bind_change_nothing_of_what_is_recommended(
    options: Any, name: str
) -> None:
    """Also where the surface is not concave, or cut off where nothing was tried."""
    model, rng = learned(options, name, 300), np.random.default_rng(3)
    for x in contexts(rng, 100):
        y = DECISION.to_unit(model.recommend(x[None, :], WHOLE)[0])
        low, high = np.maximum(y - 0.01, 0), np.minimum(y + 0.01, 1)
        around = WHOLE._replace(low=low, high=high, whole=False)
        found = model.recommend(x[None, :], around)
        np.testing.assert_array_equal(found, model.recommend(x[None, :], WHOLE))


@pytest.mark.parametrize("name", PROBING)
@pytest.mark.parametrize("options", [GRID, TREE], ids=["Grid", "Tree"])
def test_what_teaches_nothing_changes_nothing(options: Any, name: str) -> None:
    """Within tighter limits a learner that probes hands out tickets of NOTHING."""
    rng, kinds = np.random.default_rng(4), set()
    for n in (0, 3, 50, 150):
        model = learned(options, name, n)
        before = content(model)
        for draw, x in enumerate(contexts(rng, 40)):
            (row, made, ticket, serial), value, _ = decided(model, x, draw, tighter(rng))
            assert ticket == NOTHING
            kinds.add(made)
            assert serial == (model.state.rows[row, SERIAL] if made else 0)
            assert model.asked(row, made, ticket)[0] == row
            assert model.holds(row, ticket)
            assert tell(model, row, ticket, x, value) == 0
            model.forget(row, ticket, x, value)
        assert content(model) == before
    assert kinds == {True, False}


@pytest.mark.parametrize("name", [*ASCENTS, *SURFACES])
def test_what_is_no_probe_learns_within_limits_too(name: str) -> None:
    model, rng = make(GRID, name), np.random.default_rng(5)
    for draw, x in enumerate(contexts(rng, 100)):
        (row, made, ticket, _), value, _ = decided(model, x, draw, tighter(rng))
        row, _ = model.asked(row, made, ticket)
        tell(model, row, ticket, x, value)
    assert model.state.counts[CLOCK] == model.state.rows[:, TOLD].sum() == 100


def test_within_limits_a_surface_explores_on_all_of_their_middle() -> None:
    """Uniform on the middle half of the limits before it knows enough."""
    model = make(GRID, "surface")
    limits = WHOLE._replace(low=np.array([0.6, 0.1]), whole=False)
    values = np.array(
        [decided(model, np.array([0.0, 11.0]), draw, limits)[1] for draw in range(4000)]
    )
    shares = (DECISION.to_unit(values) - limits.low) / (limits.high - limits.low)
    assert shares.min() >= 0.25 - 1e-12
    assert shares.max() <= 0.75 + 1e-12
    counts = np.array([np.histogram(s, 8, (0.25, 0.75))[0] for s in shares.T])
    assert (np.abs(counts - 500) < 5 * np.sqrt(500 * 7 / 8)).all()


@every_learner
def test_an_unvisited_bin_recommends_the_start_of_each_context(name: str) -> None:
    model = make(GRID, name)
    rng = np.random.default_rng(6)
    points, starts = contexts(rng, 20), rng.random((20, 2))
    expected = DECISION.from_unit(starts)
    if name == "ucb":  # the cell of the start
        expected = DECISION.from_unit((np.floor(starts * 3) + 0.5) / 3)
    np.testing.assert_array_equal(model.recommend(points, WHOLE, starts), expected)


@pytest.mark.parametrize("name", COUNTING)
def test_where_asking_counts_bins_are_made_when_a_decision_is_handed_out(name: str) -> None:
    model, rng = make(GRID, name), np.random.default_rng(7)
    for draw, x in enumerate(contexts(rng, 60)):
        serials = model.state.counts[SERIALS]
        (row, made, ticket, serial), value, _ = decided(model, x, draw)
        assert (serial > 0) == made
        assert model.state.counts[SERIALS] == serials
        asked = model.asked(row, made, ticket)
        assert model.state.counts[SERIALS] == serials + (not made)
        assert asked[1] == (serial if made else serials + 1) == model.state.rows[asked[0], SERIAL]
        assert decided(model, x, draw)[0][:2] == (asked[0], True)
        assert tell(model, asked[0], ticket, x, value) == asked[1]
        assert model.state.counts[SERIALS] == serials + (not made)
    assert len(model.bins(WHOLE)) == model.state.counts[SERIALS] == 9


@pytest.mark.parametrize("name", [*PROBING, *ASCENTS, *GRADIENTS])
def test_a_split_by_evidence_needs_a_learner_that_foresees(name: str) -> None:
    with pytest.raises(ca.errors.SettingsError, match="needs a learner that says how well"):
        make(EAGER, name)


@pytest.mark.parametrize(
    ("options", "name"),
    [*itertools.product((GRID, TREE), SURFACES), *itertools.product((EAGER,), FORESEEING)],
)
def test_where_observations_stand_alone_bins_are_made_when_a_payoff_is_told(
    options: Any, name: str
) -> None:
    model, rng, made_by_tell = make(options, name), np.random.default_rng(8), 0
    assert not model.counts_asking
    for draw, x in enumerate(contexts(rng, 100)):
        before, rows = content(model), model.state.counts[ROWS_USED]
        (row, made, ticket, serial), value, _ = decided(model, x, draw)
        assert model.asked(row, made, ticket)[0] == row
        model.forget(row, ticket, x, value)  # there is nothing to ask again
        assert content(model) == before
        told = tell(model, row, ticket, x, value, float(rng.standard_normal()))
        if made:
            assert told == serial
        else:
            made_by_tell += 1
            assert model.state.counts[ROWS_USED] == rows + 1
            assert told == model.state.counts[SERIALS]
    assert made_by_tell == {"Grid": 9, "EvidenceTree": 1}.get(type(options).__name__, made_by_tell)
    assert made_by_tell > 0


def test_a_split_makes_no_children_before_they_are_needed() -> None:
    """Of a tree: asked or told, and each only where it must be."""
    for name in ("forward", "ucb", "ascent"):
        model, x = make(ca.Tree((1,)), name), np.array([2.9, 19.0])
        late = ask(model, x, 0)
        while model.bins(WHOLE) or not model.state.counts[SERIALS]:
            step(model, x, 1)
        assert model.state.counts[SERIALS] == 1
        row, made, ticket, serial = decided(model, x, 2)[0]
        assert (row, made, serial) == (1, False, 0)
        if model.stands_alone:  # the late payoff goes to the child, and makes it
            assert tell(model, late[0], late[1], x, late[2]) == 2
        else:
            assert model.asked(row, made, ticket) == (2, 2)
        (child,) = model.bins(WHOLE)
        assert (child.serial, child.level) == (2, 1)
        assert decided(model, x, 2)[0][:2] == (2, True)
        np.testing.assert_array_equal([child.low, child.high], [[0.5, 0.5], [1.0, 1.0]])


@every_pair
def test_numbers_of_bins_are_never_used_twice(options: Any, name: str) -> None:
    """A number belongs to one box for ever; a bin that has split does not come back."""
    model, rng = make(options, name), np.random.default_rng(9)
    boxes: dict[int, Any] = {}
    rows: dict[int, set[int]] = {}
    gone: set[int] = set()
    for draw, x in enumerate(contexts(rng, 400)):
        serial = decided(model, x, draw)[0][3]
        now = {b.serial: (b.low.tolist(), b.high.tolist()) for b in model.bins(WHOLE)}
        if serial > 0:
            u, (low, high) = CONTEXT.to_unit(x), now[serial]
            assert ((np.array(low) <= u) & (u <= np.array(high))).all()
        for number, box in now.items():
            assert boxes.setdefault(number, box) == box
            assert number not in gone
        gone |= boxes.keys() - now.keys()
        for row, _, _ in partition.boxes(model.pcfg, model.state.nodes):
            rows.setdefault(row, set()).add(int(model.state.rows[row, SERIAL]))
        step(model, x, draw, float(rng.standard_normal()))
    assert sorted(boxes) == list(range(1, len(boxes) + 1))
    assert model.state.counts[SERIALS] >= len(boxes)
    if options is EAGER:
        assert len(boxes) > 10
        assert max(map(len, rows.values())) > 1  # rows are used again, numbers are not


@every_pair
def test_it_does_not_matter_how_much_room_the_arrays_had(options: Any, name: str) -> None:
    """Growing happens in the middle of asking and telling, and all or nothing is done."""
    small, large = make(options, name), make(options, name)
    counts, nodes, rows, pool, noted = large.state
    for _ in range(8):
        nodes = partition.grown(large.pcfg, nodes)
        rows, pool = (np.concatenate([a, np.zeros_like(a)]) for a in (rows, pool))
    large.state = State(counts, nodes, rows, pool, noted)
    rng = np.random.default_rng(10)
    waiting: list[Any] = []
    for draw, x in enumerate(contexts(rng, 300)):
        one, two = ask(small, x, draw), ask(large, x, draw)
        assert one[:2] == two[:2]
        np.testing.assert_array_equal(one[2], two[2])
        waiting.append((x, one))
        while len(waiting) > 20:  # payoffs come late: many stencils are open
            at, (row, ticket, value) = waiting.pop(int(rng.integers(20)))
            noise, lost = float(rng.standard_normal()), rng.random() < 0.2
            for model in (small, large):
                if lost:
                    model.forget(row, ticket, at, value)
                else:
                    tell(model, row, ticket, at, value, noise)
    np.testing.assert_array_equal(small.state.counts, large.state.counts)
    used = int(small.state.counts[ROWS_USED])
    first = LEVEL if options is GRID else NODE  # a node of a grid is a place in a table of hashes
    np.testing.assert_array_equal(small.state.rows[:used, first:], large.state.rows[:used, first:])
    taken = int(small.state.pool[0, 1])
    np.testing.assert_array_equal(small.state.pool[:taken], large.state.pool[:taken])
    assert len(small.state.rows) < len(large.state.rows)


def highest(slope: Array, h: Array, low: Array, high: Array) -> Array:
    """Where a concave quadratic is highest in a box: the best of all ways to be at edges."""
    d, found, best = len(slope), low, float("-inf")
    for sides in itertools.product((-1, 0, 1), repeat=d):
        free = np.array(sides) == 0
        v = np.where(np.array(sides) < 0, low, high)
        if free.any():
            push = slope[free] + h[np.ix_(free, ~free)] @ v[~free]
            v[free] = np.linalg.solve(h[np.ix_(free, free)], -push)
            if ((v < low) | (v > high)).any():
                continue
        value = float(slope @ v + 0.5 * v @ h @ v)
        if value > best:
            found, best = v, value
    return found


def climbed(slope: Array, h: Array, low: Array, high: Array) -> Array:
    d, v = len(slope), np.empty(len(slope))
    bends, twists = np.diag(h).copy(), h[np.triu_indices(d, 1)]
    region = Region(low.copy(), high.copy(), False)
    climb(slope.copy(), bends, twists, region, np.empty(2 * d * d + d), v)
    assert ((low <= v) & (v <= high)).all()
    return v


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_climb_finds_the_highest_point_of_a_concave_quadratic_in_a_region(
    d: int, narrow: bool
) -> None:
    """At condition numbers up to 1000, wherever the region lies."""
    rng = np.random.default_rng(d)
    for _ in range(1200):
        axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
        h = -(axes * 10 ** rng.uniform(0, rng.uniform(0, 3), d)) @ axes.T
        slope = -h @ rng.uniform(-1.5, 1.5, d)
        low, high = np.sort(rng.uniform(-1, 1, (2, d)), axis=0)
        if narrow:
            high = low + (high - low) * 10 ** rng.uniform(-6, 0, d)
        expected = highest(slope, h, low, high)
        np.testing.assert_allclose(climbed(slope, h, low, high), expected, rtol=0, atol=1e-6)


@settings(max_examples=200)
@given(st.integers(1, 4), st.integers(0, 10**9))
def test_where_it_is_not_concave_no_single_dimension_climbs_further(d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(d, d))
    h, slope = half + half.T, rng.normal(size=d)
    low, high = np.sort(rng.uniform(-1, 1, (2, d)), axis=0)
    v = climbed(slope, h, low, high)
    height = slope @ v + 0.5 * v @ h @ v
    for j in range(d):
        for side in np.linspace(low[j], high[j], 101):
            moved = v.copy()
            moved[j] = side
            assert slope @ moved + 0.5 * moved @ h @ moved <= height + 1e-6


@settings(max_examples=300)
@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(-1, 1), st.floats(-1, 1))
def test_peak_finds_the_highest_point_of_an_interval(
    slope: float, bend: float, one: float, other: float
) -> None:
    low, high = min(one, other), max(one, other)
    found = peak(slope, bend, low, high)
    assert low <= found <= high
    points = np.linspace(low, high, 2001)
    heights = slope * points + 0.5 * bend * points**2
    assert slope * found + 0.5 * bend * found**2 >= heights.max() - 1e-12
    if bend < -1e-3:
        expected = highest(
            np.array([slope]), np.array([[bend]]), np.array([low]), np.array([high])
        )
        assert found == pytest.approx(expected[0], abs=1e-6)


class Dense:
    """Weighted ridge regression on the features of eq. 1, with NumPy alone."""

    def __init__(self, dx: int, dy: int, options: ca.ResponseSurface) -> None:
        self.dx, self.dy, self.cfg = dx, dy, options.configured(dx, dy)
        self.p = len(self.features(np.zeros(dx), np.zeros(dy)))
        varying = dx * self.cfg.varying
        ridge = [options.ridge] * (self.p - varying) + [options.varying_ridge] * varying
        self.gram, self.moment = np.diag(ridge), np.zeros(self.p)
        self.first, self.squares, self.degrees = 0.0, 0.0, 0.0
        self.told, self.weight = 0, 1.0  # of the next observation

    def features(self, u: Array, y: Array) -> Array:
        v = 2 * y - 1
        pairs = [u[i] * u[j] for i in range(self.dx) for j in range(i, self.dx)]
        twists = [v[i] * v[j] for i in range(self.dy) for j in range(i + 1, self.dy)]
        terms = np.array([*v, *(v * v / 2), *twists])[: self.cfg.terms]
        varying = np.outer(u, terms[: self.cfg.varying]).ravel()
        return np.array([1.0, *u, *pairs, *terms, *varying])

    def tell(self, u: Array, y: Array, z: float) -> None:
        if self.told == 0:
            self.first = z
        phi = self.features(u, y)
        error = z - self.first - phi @ self.theta
        h = self.weight * phi @ np.linalg.solve(self.gram, phi)
        share = float(self.weight / (1 + h))  # eq. 3
        self.squares += share * float(error**2 / (1 + h))
        self.degrees += share
        self.gram = self.gram + self.weight * np.outer(phi, phi)
        self.moment = self.moment + self.weight * phi * (z - self.first)
        self.told += 1
        self.weight /= 1 - self.cfg.fade / (self.told + self.cfg.grace)  # eq. 4

    @property
    def theta(self) -> Array:
        return np.asarray(np.linalg.solve(self.gram, self.moment), np.float64)

    @property
    def noise(self) -> float:
        return float(np.sqrt(self.squares / self.degrees))

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array]:
        """Slopes, then second derivatives at y: their values and standard errors."""
        rows, side = [], 0.25  # differences of a quadratic are exact
        for order in (1, 2):
            for j in range(self.dy):
                up, down = y.copy(), y.copy()
                up[j] += side
                down[j] -= side
                above, below = self.features(u, up), self.features(u, down)
                if order == 1:
                    rows.append((above - below) / (2 * side))
                else:
                    rows.append((above - 2 * self.features(u, y) + below) / side**2)
        at = np.array(rows)
        spread = np.einsum("ij,ji->i", at, np.linalg.solve(self.gram, at.T))
        return at @ self.theta, self.noise * np.sqrt(self.weight * spread)


@pytest.mark.parametrize("fade", [0.0, 0.5])
@pytest.mark.parametrize("hessian", ["varying", "constant", "diagonal"])
@pytest.mark.parametrize(("dx", "dy"), [(0, 1), (0, 3), (1, 1), (1, 2), (2, 2), (3, 1)])
def test_explain_agrees_with_ridge_regression(dx: int, dy: int, hessian: Any, fade: float) -> None:
    """Slope, curvature, their errors and the noise, fading or not; also in a child to be made."""
    options = ca.ResponseSurface(fade=fade, hessian=hessian)
    boxes = ca.Box(np.full(dx, -3.0), np.full(dx, 5.0)), ca.Box(np.full(dy, 2.0), np.full(dy, 4.0))
    rng, dense = np.random.default_rng(dx + 10 * dy), Dense(dx, dy, options)
    n, limits = 3 * dense.p, limits_of(np.full(dy, 0.5))
    model = make(ca.Tree((n,)), options, *boxes)
    for k in range(n + 1):
        unit, y = rng.random(dx), rng.random(dy)
        x, value = boxes[0].from_unit(unit), boxes[1].from_unit(y)
        if k >= dense.p + 3:
            found, split = model.explain(x, limits), dx > 0 and k == n
            compare(dense, found, 2 * unit - 1)
            assert found["payoffs"] == found["observations"] == (0 if split else k)
            assert found["bin"] == (None if split else 1)
            sides = np.subtract(found["high"], found["low"])
            np.testing.assert_array_equal(sides, np.full(dx, 0.5 if split else 1.0))
        if k < n:
            z = float(10 - 3 * ((y - 0.4 - 0.2 * unit.sum() / (dx + 1)) ** 2).sum())
            z += 0.3 * rng.standard_normal() + unit.sum() * y[0]
            dense.tell(2 * unit - 1, y, z)
            model.tell(0, ALONE, x, value, z, np.empty(0), limits.start)


def compare(dense: Dense, found: dict[str, Any], u: Array) -> None:
    centre, dy = np.array(found["centre"]), dense.dy
    values, errors = dense.derivatives(u, centre)
    exactly: Any = {"rtol": 1e-6, "atol": 1e-6}
    np.testing.assert_allclose(found["slope"], values[:dy], **exactly)
    np.testing.assert_allclose(found["curvature"], values[dy:], **exactly)
    np.testing.assert_allclose(found["slope_error"], errors[:dy], **exactly)
    np.testing.assert_allclose(found["curvature_error"], errors[dy:], **exactly)
    assert found["noise"] == pytest.approx(dense.noise, rel=1e-6)
    assert found["known"] == dense.told


def test_explain_says_little_before_enough_is_known() -> None:
    model = make(GRID, "surface")
    x = np.array([1.0, 15.0])
    for draw in range(learner.size(model.lcfg) + 3):
        found = model.explain(x, WHOLE)
        assert found["centre"] == START.tolist()
        assert "slope" not in found
        assert found["observations"] == found["payoffs"] == draw
        step(model, x, draw, float(draw % 3))
    assert "slope" in model.explain(x, WHOLE)


@settings(max_examples=100)
@given(st.integers(0, 10**6))
def test_within_limits_a_surface_recommends_its_highest_point_there(seed: int) -> None:
    """Of the fitted surface, where all of the box was tried."""
    rng, options = np.random.default_rng(seed), ca.ResponseSurface(fade=0.0)
    unit, dense = ca.Box.unit(1), Dense(1, 2, options)
    model = make(ca.Grid(1), options, unit, ca.Box.unit(2))
    top = rng.uniform(0.2, 0.8, 2)
    corners = [np.array(corner) for corner in itertools.product((0.0, 1.0), repeat=2)]
    for y in corners + list(rng.random((60, 2))):
        x = rng.random(1)
        gap = y - top - 0.2 * x
        z = -float(gap @ gap) - 0.5 * gap[0] * gap[1] + 0.01 * rng.standard_normal()
        dense.tell(2 * x - 1, y, z)
        model.tell(0, ALONE, x, y, z, np.empty(0), WHOLE.start)
    for x in rng.random((5, 1)):
        middle = np.full(2, 0.5)
        found = dense.derivatives(2 * x - 1, middle)[0]
        h = np.diag(found[2:])
        up, down = np.array([0.5, 0.75]), np.array([0.5, 0.25])
        h[0, 1] = h[1, 0] = 2 * (
            dense.derivatives(2 * x - 1, up)[0][0] - dense.derivatives(2 * x - 1, down)[0][0]
        )
        assert (np.linalg.eigvalsh(h) < 0).all()
        limits = tighter(rng)
        expected = 0.5 + highest(found[:2], h, limits.low - 0.5, limits.high - 0.5)
        given_limits = model.recommend(x[None, :], limits)[0]
        np.testing.assert_allclose(given_limits, expected, atol=1e-6)
        fitted = model.state.rows[1, HEAD:]
        assert fitted[0] == dense.told
