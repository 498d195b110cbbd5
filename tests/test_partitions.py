"""Every context lies in exactly one bin, edges included, and bins are made on first visit."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from continuarm.engine import Engine
from continuarm.jit import Array
from continuarm.learners.gradient_ascent import GradientAscent
from continuarm.learners.kiefer_wolfowitz import KieferWolfowitz
from continuarm.partitions import protocol as partition
from continuarm.partitions.grid import Grid
from continuarm.partitions.tree import Tree

START = np.array([0.5])


def tree(dx: int, *split_after: int) -> Tree:
    return Tree(dx, np.array(split_after, np.float64))


def visit(engine: Engine, x: Array) -> int:
    """One decision for this context; the row of its bin."""
    y, value = np.empty(1), np.empty(1)
    row, ticket = engine.ask(x, np.empty(0), y, np.zeros(1), np.ones(1), value)
    engine.tell(row, ticket, x, y, 0.0, np.zeros(1))
    return row


def holding(engine: Engine, x: Array) -> list[int]:
    """The rows of the bins whose box holds a context, half-open, closed at 1."""
    found = []
    for row, low, high in partition.boxes(engine.pcfg, engine.nodes):
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
    engine = Engine(Grid(1, bins), GradientAscent(1, 0.1), START)
    for x in edges(bins):
        row = visit(engine, np.array([x]))
        assert holding(engine, np.array([x])) == [row]
    assert len(engine.bins()) == bins


def test_the_famous_rounding() -> None:
    assert int(0.29 * 100) == 28
    engine = Engine(Grid(1, 100), GradientAscent(1, 0.1), START)
    visit(engine, np.array([0.29]))
    assert engine.bins()[0].low[0] == 0.29


@settings(max_examples=50)
@given(
    st.sampled_from([Grid(1, 7), Grid(2, 3), Grid(3, 10), tree(1, 1, 1, 2), tree(3, 1, 2)]),
    st.data(),
)
def test_every_context_is_in_one_bin(cfg: Any, data: st.DataObject) -> None:
    special = st.sampled_from(edges(8) + edges(7))
    points = st.lists(special | st.floats(0, 1), min_size=cfg.dx, max_size=cfg.dx)
    engine = Engine(cfg, GradientAscent(1, 0.1), START)
    for point in data.draw(st.lists(points, min_size=1, max_size=60)):
        x = np.array(point)
        row = visit(engine, x)
        now = partition.locate(cfg, engine.nodes, x, engine.u, False)
        assert holding(engine, x) in ([row], [now], [])  # [] if the visit split the bin
        assert now == row or now < 0


def test_a_grid_of_any_size_holds_only_visited_bins() -> None:
    engine = Engine(Grid(30, 1000), GradientAscent(1, 0.1), START)  # 10^90 bins
    rng = np.random.default_rng(0)
    points = rng.random((500, 30))
    first = [visit(engine, x) for x in points]
    assert first == list(range(1, 501))
    assert [visit(engine, x) for x in points] == first
    assert engine.nodes.nbytes + engine.rows.nbytes < 1_000_000


def test_a_split_of_forty_dimensions_makes_only_the_nodes_on_the_way() -> None:
    engine = Engine(tree(40, 1), GradientAscent(1, 0.1), START)  # 2^40 children
    rng = np.random.default_rng(0)
    for x in rng.random((100, 40)):
        visit(engine, x)
    assert engine.nodes[0, 0] < 2 + 99 * 40 + 1
    assert sum(b.asked for b in engine.bins()) == 99  # and one in the root, which split


@pytest.mark.parametrize("dx", [1, 2, 3])
def test_a_full_tree_tiles_the_cube(dx: int) -> None:
    engine = Engine(tree(dx, 1, 1), GradientAscent(1, 0.1), START)
    centres = (np.arange(4) + 0.5) / 4
    for _ in range(3):
        for x in itertools.product(centres, repeat=dx):
            visit(engine, np.array(x))
    bins = engine.bins()
    assert len(bins) == 4**dx
    assert {b.level for b in bins} == {2}
    assert sum(np.prod(b.high - b.low) for b in bins) == pytest.approx(1.0, abs=1e-15)


def test_a_bin_splits_after_its_last_stencil_and_the_child_serves_the_next() -> None:
    engine = Engine(tree(1, 2), KieferWolfowitz(1, 0.1, 0.2), START)
    rows = [visit(engine, np.array([0.7])) for _ in range(4)]  # two stencils of two decisions
    assert rows == [1, 1, 1, 1]
    assert partition.locate(engine.pcfg, engine.nodes, np.array([0.7]), engine.u, False) == -1
    parent = engine.rows[1].copy()
    assert visit(engine, np.array([0.7])) == 2
    assert visit(engine, np.array([0.2])) == 3
    np.testing.assert_array_equal(engine.rows[1], parent)
    assert engine.bins()[0].low[0] == 0.5


@pytest.mark.parametrize("dx", [1, 2, 3])
def test_a_child_nobody_visited_answers_with_its_parents_iterate(dx: int) -> None:
    engine = Engine(tree(dx, 1), GradientAscent(1, 0.1), START)
    x = np.full(dx, 0.9)
    y, value = np.empty(1), np.empty(1)
    row, ticket = engine.ask(x, np.empty(0), y, np.zeros(1), np.ones(1), value)
    engine.tell(row, ticket, x, y, 0.0, np.array([2.0]))
    corners = np.array(list(itertools.product([0.1, 0.9], repeat=dx)))
    np.testing.assert_allclose(engine.recommend(corners), 0.7)


@pytest.mark.parametrize("cfg", [Grid(2, 5), tree(2, 1, 2, 3)])
@given(st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=30)
def test_u_is_the_context_scaled_to_its_bin(cfg: Any, a: float, b: float) -> None:
    engine = Engine(cfg, GradientAscent(1, 0.1), START)
    x = np.array([a, b])
    for _ in range(8):
        visit(engine, x)
    row = partition.locate(cfg, engine.nodes, x, engine.u, True)
    boxes = {r: (low, high) for r, low, high in partition.boxes(cfg, engine.nodes)}
    low, high = boxes[row]
    np.testing.assert_allclose(engine.u[:2], 2 * (x - low) / (high - low) - 1, atol=1e-12)


@given(st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=30)
def test_u_of_an_unmade_child_is_that_of_its_parent(a: float, b: float) -> None:
    engine = Engine(tree(2, 1, 1), GradientAscent(1, 0.1), START)
    visit(engine, np.array([0.1, 0.1]))  # splits the root
    visit(engine, np.array([0.1, 0.9]))  # makes and splits one child, and half the way to another
    x = np.array([a, b])
    row = partition.locate(engine.pcfg, engine.nodes, x, engine.u, True)
    low, high = np.zeros(2), np.ones(2)
    if row == -2:
        low, high = np.array([0.0, 0.5]), np.array([0.5, 1.0])
    assert row in (-1, -2)
    np.testing.assert_allclose(engine.u[:2], 2 * (x - low) / (high - low) - 1, atol=1e-12)
