"""Rows of a smooth surface as a file may hold them: refused, or a surface that works."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.learners import smooth_surface as ss
from continuarm.core.learners.smooth import layout
from continuarm.core.learners.triangle import SMALLEST_PIVOT
from continuarm.core.request import ALONE, Observation
from continuarm.core.state import HEAD
from tests.dense_surface import (
    NO_POOL,
    Surface,
    columns_of,
    ends_of,
    fits,
    groups_of,
    rungs_of,
    worths_of,
)
from tests.test_crafted_files import refused

Edit = Callable[[ss.SmoothSurfaceConfig, Array], None]
FIRST = int(layout.column_at(0))  # where the columns stand


@cache
def _learned(dx: int = 4, dy: int = 2, n: int = 200) -> Surface:
    surface = Surface(dx, dy, columns=80)
    surface.play(n)
    return surface


def listed(row: Array) -> Array:
    """Function and feature of each column, which can be changed."""
    return row[FIRST : FIRST + 2 * int(row[layout.ALIVE])].reshape(-1, 2)


def put(at: int, value: float) -> Edit:
    def edit(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
        row[at] = value

    return edit


def more_columns(by: float) -> Edit:
    def edit(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
        row[layout.ALIVE] += by

    return edit


def more_than_there_is_room(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    row[layout.ALIVE] = cfg.size + 1


def fewer_than_the_constants(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    row[layout.ALIVE] = cfg.features - 1


def a_group_less(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    """Whole groups, but the ends and the worths know of another one."""
    row[layout.ALIVE] = groups_of(cfg, row)[-1][2]


def column(which: int, part: int, value: float) -> Edit:
    def edit(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
        listed(row)[which, part] = value

    return edit


def unknown_function(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    level = [k for k, (_, feature) in enumerate(columns_of(row)) if feature == 0][-1]
    listed(row)[level, 0] = cfg.functions


def unknown_feature(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    listed(row)[-1, 1] = cfg.features


def cut_in_two(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    """A level between two slopes of one function."""
    groups = groups_of(cfg, row)
    for (_, one, start), (_, two, _) in pairwise(groups[3:]):
        if one == layout.SLOPES and two == layout.LEVEL:
            order = [start, start + 2, start + 1]
            listed(row)[start : start + 3] = listed(row)[order]
            return
    raise AssertionError


def turned_round(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    """Two slopes of one function in the wrong order."""
    start = next(k for _, kind, k in groups_of(cfg, row)[3:] if kind == layout.SLOPES)
    listed(row)[[start, start + 1]] = listed(row)[[start + 1, start]]


def of_two_functions(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    start = next(k for _, kind, k in groups_of(cfg, row)[3:] if kind == layout.SLOPES)
    listed(row)[start + 1, 0] = 3 + listed(row)[start, 0]


def twice(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    one, two, *_ = [k for _, kind, k in groups_of(cfg, row)[3:] if kind == layout.LEVEL]
    listed(row)[two] = listed(row)[one]


def constants_later(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    one = next(k for _, kind, k in groups_of(cfg, row)[3:] if kind == layout.LEVEL)
    listed(row)[[0, one]] = listed(row)[[one, 0]]


def another_function(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    """A group that has no worth instead of one that has."""
    start = next(k for _, kind, k in groups_of(cfg, row)[3:] if kind == layout.LEVEL)
    function = np.flatnonzero(worths_of(cfg, row)[:, layout.LEVEL] == layout.ABSENT)[0]
    listed(row)[start, 0] = function


def end(rung: int, by: float) -> Edit:
    def edit(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
        rungs_of(row)[rung, layout.END] += by

    return edit


def end_inside_a_group(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    ends = ends_of(row)
    inside = [k for k in range(ends[0], ends[-1]) if k not in {g[2] for g in groups_of(cfg, row)}]
    rung = next(rung for rung in range(1, 20) if ends[rung] > inside[0])
    rungs_of(row)[rung, layout.END] = inside[0]


def ends_unsorted(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    ends = rungs_of(row)[:, layout.END]
    ends[[2, 3]] = ends[[3, 2]]


def no_rung_has_all(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    ends = rungs_of(row)[:, layout.END]
    ends[ends == ends[-1]] = ends[2]


def worth(value: float) -> Edit:
    def edit(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
        function, kind, _ = groups_of(cfg, row)[5]
        worths_of(cfg, row)[function, kind] = value

    return edit


def worth_of_nothing(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    worths = worths_of(cfg, row)
    worths[tuple(np.argwhere(worths == layout.ABSENT)[0])] = 1.0


def pivot(value: float) -> Edit:
    def edit(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
        row[int(layout.row_at(cfg, 7))] = value

    return edit


def far_away(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    row[-1] = 1e200


def far_evidence(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
    row[int(layout.sums_at(cfg, 0, 0))] = np.inf


def number(part: int, value: float) -> Edit:
    def edit(cfg: ss.SmoothSurfaceConfig, row: Array) -> None:
        rungs_of(row)[3, part] = value

    return edit


CRAFTED: dict[str, Edit] = {
    "more than there is room": more_than_there_is_room,
    "fewer than the constants": fewer_than_the_constants,
    "no columns": put(layout.ALIVE, 0.0),
    "columns below zero": put(layout.ALIVE, -3.0),
    "half a column": more_columns(0.5),
    "a column more": more_columns(1.0),
    "a column less": more_columns(-1.0),
    "a group less": a_group_less,
    "endless columns": put(layout.ALIVE, 2.0**62),
    "unknown function": unknown_function,
    "function below zero": column(20, 0, -1.0),
    "half a function": column(20, 0, 1.5),
    "far function": column(20, 0, 1e18),
    "unknown feature": unknown_feature,
    "feature below zero": column(20, 1, -1.0),
    "half a feature": column(20, 1, 0.5),
    "cut in two": cut_in_two,
    "turned round": turned_round,
    "of two functions": of_two_functions,
    "twice": twice,
    "constants later": constants_later,
    "another function": another_function,
    "first end": end(0, -1.0),
    "first end later": end(0, 1.0),
    "last end": end(-1, 1.0),
    "last end earlier": end(-1, -1.0),
    "half an end": end(3, 0.5),
    "end inside a group": end_inside_a_group,
    "ends unsorted": ends_unsorted,
    "no rung has all": no_rung_has_all,
    "worth NaN": worth(np.nan),
    "worth endless": worth(np.inf),
    "worth less than nothing": worth(-np.inf),
    "worth far": worth(1e200),
    "worth absent": worth(layout.ABSENT),
    "worth of nothing": worth_of_nothing,
    "pivot zero": pivot(0.0),
    "pivot below zero": pivot(-1.0),
    "pivot tiny": pivot(1e-300),
    "pivot NaN": pivot(np.nan),
    "far away": far_away,
    "far evidence": far_evidence,
    "rung too large": put(layout.RUNG, layout.MOST_RUNGS),
    "rung below zero": put(layout.RUNG, -1.0),
    "half a rung": put(layout.RUNG, 0.5),
    "rung NaN": put(layout.RUNG, np.nan),
    "half a payoff": put(layout.SEEN, 3.5),
    "payoffs below zero": put(layout.SEEN, -1.0),
    "endless payoffs": put(layout.SEEN, 1e300),
    "age below zero": put(layout.AGE, -1.0),
    "heard below zero": put(layout.SINCE, -1.0),
    "look below zero": put(layout.LOOK, -1.0),
    "never looked": put(layout.LOOK, np.inf),
    "weightless": put(layout.WEIGHT, 0.0),
    "heavy": put(layout.WEIGHT, 1e300),
    "far reference": put(layout.REFERENCE, 1e200),
    "score NaN": number(layout.SCORE, np.nan),
    "score far": number(layout.SCORE, -1e200),
    "squares below zero": number(layout.SQUARES, -1.0),
    "noise of nothing": number(layout.DEGREES, 0.0),
    "degrees below zero": number(layout.DEGREES, -1.0),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_rows_are_refused(name: str) -> None:
    surface = _learned()
    row = surface.row.copy()
    assert fits(surface.cfg, row)
    CRAFTED[name](surface.cfg, row)
    assert not fits(surface.cfg, row)


@pytest.mark.parametrize(
    "name", ["cut in two", "end inside a group", "worth endless", "half a rung"]
)
def test_a_file_with_a_crafted_row_is_refused(name: str, tmp_path: Path) -> None:
    boxes = ca.Box.unit(4), ca.Box.unit(2)
    policy = ca.Policy(*boxes, partition=ca.Grid(1), learner=ca.SmoothSurface(columns=80), rng=0)
    for u, y, z in _learned().observed:
        policy.tell(policy.ask(0.5 + 0.5 * u), z - float(((y - 0.5) ** 2).sum()))

    def edit(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        CRAFTED[name](_learned().cfg, arrays["rows"][1, HEAD:])

    refused(policy, edit, tmp_path / "policy")


@pytest.mark.parametrize("dy", [1, 2, 12])
@pytest.mark.parametrize("dx", [0, 1, 2, 4, 7, 11])
def test_every_row_that_is_reached_is_accepted(dx: int, dy: int) -> None:
    surface, told = Surface(dx, dy, columns=None), 0
    for n in (0, 5, 50, 500, 2000):
        surface.play(n - told)
        told = n
        assert fits(surface.cfg, surface.row)


@pytest.mark.parametrize("unit", [1e-140, 1e-20, 1e20, 1e99])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_rows_of_any_unit_are_accepted(unit: float, noise: float) -> None:
    surface = Surface(2, 2)
    surface.play(400, lambda u, y: unit * float(u[0] + y[1]), noise * unit)
    assert fits(surface.cfg, surface.row)
    xi = surface.rng.standard_normal(ss.draws(surface.cfg))
    assert np.isfinite(surface.decide(np.zeros(2), xi)).all()


def test_a_row_after_the_largest_payoff_is_accepted() -> None:
    """Where all payoffs before were the same but for rounding."""
    surface = Surface(2, 2)
    surface.play(100, lambda u, y: 3.7, 1e-15)
    surface.play(1, lambda u, y: 0.9 * layout.LARGEST_PAYOFF)
    for _ in range(100):
        assert fits(surface.cfg, surface.row)
        surface.play(1, lambda u, y: 3.7, 1e-15)


NUMBERS = [0.0, 1.0, -1.0, 1e-3, 1e-7, 1e-300, 5e-324, 1e9, 1e30, 1e100, -1e100, 1e150, -1e150]


@given(st.data())
def test_what_is_accepted_works(data: st.DataObject) -> None:
    """Numbers as far out as they may be: decisions are allowed, and no state holds a NaN."""
    surface = _learned()
    cfg, row, rng = surface.cfg, surface.row.copy(), np.random.default_rng(0)
    sums = int(layout.sums_at(cfg, 0, 0))
    parts = [(0, layout.RUNGS), (layout.RUNGS, FIRST), (int(layout.worth_at(cfg, 0, 0)), sums)]
    parts += [(sums, int(layout.triangle(cfg))), (int(layout.triangle(cfg)), len(row))]
    for _ in range(data.draw(st.integers(1, 8))):
        low, high = data.draw(st.sampled_from(parts))
        step = data.draw(st.sampled_from([1, 1, 2, 3, high - low]))
        before = row.copy()
        row[data.draw(st.integers(low, high - 1)) : high : step] = data.draw(
            st.sampled_from(NUMBERS)
        )
        if not fits(cfg, row):
            row = before
    pivots = [int(layout.row_at(cfg, i)) for i in range(int(row[layout.ALIVE]))]
    if data.draw(st.booleans()):
        row[pivots] = data.draw(st.sampled_from([0.1 * SMALLEST_PIVOT, 1e150, 1.0]))
    assert fits(cfg, row)
    surface = Surface(4, 2, columns=80)
    surface.row[:] = row
    for _ in range(12):
        u, y = rng.uniform(-1, 1, 4), rng.random(2)
        for found in (surface.decide(u, rng.standard_normal(ss.draws(cfg))), surface.best(u)):
            assert ((found >= 0.0) & (found <= 1.0)).all()
        seen = Observation(u, y, float(rng.normal()), np.empty(0), 1.0, ALONE, True)
        foreseen = ss.tell(cfg, surface.row, NO_POOL, seen, surface.work)
        assert not np.isnan(np.array([float(number) for number in foreseen])).any()
        assert not np.isnan(surface.row).any()


@pytest.mark.parametrize(("dx", "dy"), [(0, 1), (1, 1), (3, 2), (7, 2), (11, 12), (2, 40)])
def test_nothing_is_written_beyond_the_row_and_the_room(dx: int, dy: int) -> None:
    """Compiled code would not notice."""
    surface, beyond = Surface(dx, dy, columns=None), 50
    rows = np.full(len(surface.row) + 2 * beyond, -7.5)
    rows[beyond:-beyond] = surface.row
    room = np.full(len(surface.work) + 2 * beyond, -7.5)
    surface.row, surface.work = rows[beyond:-beyond], room[beyond:-beyond]
    for _ in range(20):
        surface.play(30)
        u = surface.rng.uniform(-1, 1, dx)
        surface.decide(u, surface.rng.standard_normal(ss.draws(surface.cfg)))
        surface.best(u)
    for whole in (rows, room):
        assert (whole[:beyond] == -7.5).all()
        assert (whole[-beyond:] == -7.5).all()
