"""Every context lies in exactly one bin, edges included, and bins are made on first visit."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.learners import protocol as learner
from continuarm.core.model import Model, limits_of
from continuarm.core.partitions import protocol as partition
from continuarm.core.partitions.grid import GridConfig
from continuarm.core.partitions.tree import TreeConfig
from continuarm.core.state import CLOCK, HEAD, LAST, TOLD, Space, room_for, space

ASCENT = ca.GradientAscent(step=0.1)
LIMITS = limits_of(np.array([0.5]))
KEY = np.zeros(2, np.uint64)
lay_out: Any = space


def tree(dx: int, *split_after: int) -> TreeConfig:
    return TreeConfig(dx, np.array(split_after, np.float64))


def model_of(pcfg: Any, options: Any = ASCENT) -> Model:
    """A model on unit cubes, with one decision dimension."""
    dx = pcfg.dx
    edges = np.array([np.zeros(dx), np.ones(dx)]), np.array([[0.0], [1.0]])
    return Model(pcfg, options.configured(dx, 1), *edges)


def visit(model: Model, x: Array, gradient: float = 0.0) -> int:
    """One decision for this context; the row of the bin that learned its payoff."""
    value = np.empty(1)
    row, made, ticket, _ = model.decide(x, KEY, 0, LIMITS, value)
    if model.counts_asking:
        row, _ = model.asked(row, made, ticket)
    model.tell(row, ticket, x, value, 0.0, np.array([gradient]), LIMITS.start)
    counts, rows = model.state.counts, model.state.rows
    (learned,) = np.flatnonzero(rows[:, LAST] == counts[CLOCK])
    assert row == learned or not model.counts_asking
    return int(learned)


def located(model: Model, x: Array) -> tuple[int, bool]:
    """The row that answers for a context, and whether its bin is made."""
    dx, width = model.dx, learner.width(model.lcfg)
    here: Space = lay_out.py_func(np.zeros(room_for(dx, 1, 0, width, 0)), dx, 1, 0, width)
    row, made = partition.locate(model.pcfg, model.state.nodes, x, here, False)
    assert (row, made) == partition.locate(model.pcfg, model.state.nodes, x, here, True)
    return row, made


def seated(model: Model, x: Array) -> tuple[int, bool, Space]:
    """The same, with u, the boxes and the imagined row in the space."""
    low, seen = model.setup.bounds[2 * model.dx : 2 * model.dx + model.dy], np.zeros(100)
    row, made, _ = model.view(x, LIMITS, low, seen)
    return row, made, lay_out.py_func(model.room, *model.setup.shape.tolist())


def holding(model: Model, x: Array) -> list[int]:
    """The rows of the bins whose box holds a context, half-open, closed at 1."""
    found = []
    for row, low, high in partition.boxes(model.pcfg, model.state.nodes):
        if ((low <= x) & ((x < high) | ((x == 1.0) & (high == 1.0)))).all():
            found.append(row)
    return found


def edges(bins: int) -> list[float]:
    """Edges, and the numbers next to them."""
    exact = np.arange(bins + 1) / bins
    near = [np.nextafter(exact, -1), exact, np.nextafter(exact, 2)]
    return [float(v) for v in np.concatenate(near) if 0 <= v <= 1]


@pytest.mark.parametrize("bins", [1, 2, 3, 7, 10, 49, 100])
def test_every_edge_of_a_grid_is_in_one_bin(bins: int) -> None:
    model = model_of(GridConfig(1, bins))
    for x in edges(bins):
        row = visit(model, np.array([x]))
        assert holding(model, np.array([x])) == [row]
    assert len(model.bins(LIMITS)) == bins


def test_the_famous_rounding() -> None:
    assert int(0.29 * 100) == 28
    model = model_of(GridConfig(1, 100))
    visit(model, np.array([0.29]))
    assert model.bins(LIMITS)[0].low[0] == 0.29


@settings(max_examples=50)
@given(
    st.sampled_from(
        [GridConfig(1, 7), GridConfig(2, 3), GridConfig(3, 10), tree(1, 1, 1, 2), tree(3, 1, 2)]
    ),
    st.data(),
)
def test_every_context_is_in_one_bin(cfg: Any, data: st.DataObject) -> None:
    special = st.sampled_from(edges(8) + edges(7))
    points = st.lists(special | st.floats(0, 1), min_size=cfg.dx, max_size=cfg.dx)
    model = model_of(cfg)
    for point in data.draw(st.lists(points, min_size=1, max_size=60)):
        x = np.array(point)
        before = located(model, x)
        row = visit(model, x)
        assert (before[0] == row) == before[1]
        now, made = located(model, x)
        assert now == row
        assert holding(model, x) == ([row] if made else [])  # [] if the visit split the bin


def test_a_grid_of_any_size_holds_only_visited_bins() -> None:
    model = model_of(GridConfig(30, 1000))  # 10^90 bins
    rng = np.random.default_rng(0)
    points = rng.random((500, 30))
    first = [visit(model, x) for x in points]
    assert first == list(range(1, 501))
    assert [visit(model, x) for x in points] == first
    assert sum(array.nbytes for array in model.state) < 1_000_000


def test_a_split_of_forty_dimensions_makes_only_the_nodes_on_the_way() -> None:
    model = model_of(tree(40, 1))  # 2^40 children
    rng = np.random.default_rng(0)
    for x in rng.random((100, 40)):
        visit(model, x)
    assert model.state.nodes[0, 0] < 2 + 99 * 40 + 1
    assert sum(b.told for b in model.bins(LIMITS)) == 99  # and one in the root, which split
    assert model.state.rows[:, TOLD].sum() == 100


@pytest.mark.parametrize("dx", [1, 2, 3])
def test_a_full_tree_tiles_the_cube(dx: int) -> None:
    model = model_of(tree(dx, 1, 1))
    centres = (np.arange(4) + 0.5) / 4
    for _ in range(3):
        for x in itertools.product(centres, repeat=dx):
            visit(model, np.array(x))
    bins = model.bins(LIMITS)
    assert len(bins) == 4**dx
    assert {b.level for b in bins} == {2}
    assert sum(np.prod(b.high - b.low) for b in bins) == pytest.approx(1.0, abs=1e-15)


def test_a_bin_splits_after_its_last_stencil_and_the_child_serves_the_next() -> None:
    model = model_of(tree(1, 2), ca.KieferWolfowitz(step=0.1, width=0.2))
    assert located(model, np.array([0.7])) == (0, False)
    rows = [visit(model, np.array([0.7])) for _ in range(4)]  # two stencils of two decisions
    assert rows == [1, 1, 1, 1]
    assert located(model, np.array([0.7])) == (1, False)
    parent = model.state.rows[1].copy()
    assert visit(model, np.array([0.7])) == 2
    assert visit(model, np.array([0.2])) == 3
    np.testing.assert_array_equal(model.state.rows[1], parent)
    assert model.bins(LIMITS)[0].low[0] == 0.5


@pytest.mark.parametrize("dx", [1, 2, 3])
def test_a_child_nobody_visited_answers_with_its_parents_iterate(dx: int) -> None:
    model = model_of(tree(dx, 1))
    visit(model, np.full(dx, 0.9), gradient=2.0)
    corners = np.array(list(itertools.product([0.1, 0.9], repeat=dx)))
    np.testing.assert_allclose(model.recommend(corners, LIMITS), 0.7)


@pytest.mark.parametrize("cfg", [GridConfig(2, 5), tree(2, 1, 2, 3)])
@given(st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=30)
def test_u_is_the_context_scaled_to_its_bin(cfg: Any, a: float, b: float) -> None:
    model = model_of(cfg, ca.ResponseSurface())
    x = np.array([a, b])
    for _ in range(8):
        visit(model, x)
    row, made, here = seated(model, x)
    assert made
    boxes = {r: (low, high) for r, low, high in partition.boxes(cfg, model.state.nodes)}
    low, high = boxes[row]
    np.testing.assert_allclose(here.u, 2 * (x - low) / (high - low) - 1, atol=1e-12)
    np.testing.assert_array_equal([here.low, here.high], [low, high])


@given(st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=30)
def test_an_unmade_child_has_its_own_box_and_u_and_the_row_it_would_inherit(
    a: float, b: float
) -> None:
    model = model_of(tree(2, 1, 1), ca.ResponseSurface())
    visit(model, np.array([0.1, 0.1]))  # splits the root
    visit(model, np.array([0.1, 0.9]))  # makes and splits one child, and half the way to another
    x = np.array([a, b])
    row, made, here = seated(model, x)
    assert not made
    outer_low, outer_high = np.zeros(2), np.ones(2)
    if row == 2:
        outer_low, outer_high = np.array([0.0, 0.5]), np.array([0.5, 1.0])
    assert row == (2 if a < 0.5 <= b else 1)
    cut = (outer_low + outer_high) / 2
    low, high = np.where(x >= cut, cut, outer_low), np.where(x >= cut, outer_high, cut)
    np.testing.assert_array_equal([here.low, here.high], [low, high])
    np.testing.assert_array_equal([here.outer_low, here.outer_high], [outer_low, outer_high])
    np.testing.assert_allclose(here.u, 2 * (x - low) / (high - low) - 1, atol=1e-12)
    part, inherited = (low - outer_low) / (outer_high - outer_low), here.row.copy()
    imagined = np.empty_like(inherited)  # halves: from -1 to 0 or from 0 to 1 in the parent's u
    learner.inherit(
        model.lcfg, model.state.rows[row, HEAD:], imagined, 2 * part - 1, 2 * part, 1.0
    )
    np.testing.assert_allclose(inherited, imagined, rtol=1e-12)
