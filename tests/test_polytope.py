"""Coupled limits: what people write, what is refused and why, and that a Polytope is a value."""

import pickle
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import continuarm as ca
from continuarm.errors import InputError, SettingsError
from continuarm.sets import conflict
from continuarm.sets.inequalities import parse

NAMES = ["small", "large", "ads"]
BOX = ca.Box([0, 0, 0], [10, 10, 10], NAMES)
WHOLE = ca.Box([0, 0, 0], [10, 10, 10], NAMES, spacing=1)


@pytest.mark.parametrize(
    ("text", "factors", "bound"),
    [
        ("small <= large - 0.5", [1, -1, 0], -0.5),
        ("ads + large <= 100", [0, 1, 1], 100),
        ("ads+large>=100", [0, -1, -1], -100),
        ("2 * ads <= 3e1", [0, 0, 2], 30),
        ("ads * 2 / 4 <= .5", [0, 0, 0.5], 0.5),
        ("-(small - 2 * (large - 3)) <= +1.5E-1", [-1, 2, 0], 6.15),
        ("0.1 * ads + 0.2 * ads <= 1", [0, 0, 0.3], 1),
        ("small + small - small <= 0", [1, 0, 0], 0),
        ("1 - small <= 2 - large + 3", [-1, 1, 0], 4),
    ],
)
def test_inequalities_are_read_as_people_write_them(
    text: str, factors: list[float], bound: float
) -> None:
    assert parse(text, NAMES, 1) == (factors, bound, False)
    equality = re.sub("<=|>=", "==", text)
    assert parse(equality, NAMES, 1).is_equality
    assert parse(equality, NAMES, 1) == parse(equality.replace("==", "="), NAMES, 1)


def test_a_name_may_have_spaces_and_hold_another_name() -> None:
    names = ["price", "price of two", "fee_2"]
    assert parse("price of two <= 2*price", names, 1).factors == [-2, 1, 0]
    assert parse("fee_2 >= price", names, 1).factors == [1, 0, -1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 small <= 3", "`<=`, `>=` or `==` must stand between .* got 'small <= 3' at place 3"),
        ("small < 3", "must stand between the sides of an inequality, but got '< 3' at place 7"),
        ("small <= lage", "a number or one of .* must stand here, but got 'lage' at place 10"),
        ("smaller <= 3", "a number or one of .* must stand here, but got 'smaller <= 3'"),
        ("small * large <= 3", "must not be multiplied with one another, but got '\\* large"),
        ("small / large <= 3", "must be divided by a number that is not 0, but got '/ large"),
        ("small / 0 <= 3", "must be divided by a number that is not 0, but got '/ 0"),
        ("(small <= 3", "parentheses must be closed, but got '<= 3' at place 8"),
        ("small <= 3)", "must end after its second side, but got '\\)' at place 11"),
        ("1 <= small <= 3", "must end after its second side, but got '<= 3' at place 12"),
        ("small <=", "must stand here, but got its end"),
        ("", "must stand here, but got its end"),
        ("3 <= 4", "must hold a coordinate, but got '3 <= 4'"),
        ("small - small <= 4", "must hold a coordinate"),
        ("small <= 1e999", "must be finite floats"),
        ("1e-999 * small <= 1", "must be finite floats"),
        ("small <= 1e99999", "must stand here"),
        ("small <= 1_000", "must stand here, but got '1_000'"),
        ("small <= 0x10", "must stand here"),
        ("small <= __import__('os')", "must stand here"),
        ("small ** 2 <= 3", "must stand here, but got '\\* 2 <= 3'"),
        ("(" * 60 + "small" + ")" * 60 + " <= 1", "must not be deeper than 50"),
        ("small + " * 2000 + "small <= 1", "at most 10000 characters"),
    ],
)
def test_an_error_names_the_row_and_the_place(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message) as error:
        ca.Polytope(BOX, ["small <= large", text])
    assert "row 2" in str(error.value)
    assert "\n" not in str(error.value)


LINEAR = st.lists(
    st.tuples(
        st.sampled_from(["+", "-"]), st.decimals(0, 99, places=2), st.sampled_from([*NAMES, ""])
    ),
    min_size=1,
    max_size=6,
)


@given(left=LINEAR, right=LINEAR, relation=st.sampled_from(["<=", ">=", "=="]), star=st.booleans())
def test_whatever_is_linear_is_read_exactly(
    left: Any, right: Any, relation: str, star: bool
) -> None:
    text = f"{_write(left, star)} {relation} {_write(right, star)}"
    sign = -1 if relation == ">=" else 1
    factors = {name: Fraction(0) for name in [*NAMES, ""]}
    for side, way in ((left, sign), (right, -sign)):
        for mark, number, name in side:
            factors[name] += way * (1 if mark == "+" else -1) * Fraction(number)
    if not any(factors[name] for name in NAMES):
        with pytest.raises(SettingsError, match="must hold a coordinate"):
            parse(text, NAMES, 1)
        return
    row = parse(text, NAMES, 1)
    assert row.factors == [float(factors[name]) for name in NAMES]
    assert row.bound == float(-factors[""])


def _write(side: Any, star: bool) -> str:
    parts = []
    for mark, number, name in side:
        product = f"({number} * {name})" if star else f"{name}*{number}"
        parts.append(f"{mark} {product if name else number}")
    return " ".join(parts)


@given(st.text(alphabet="small+-*/()<>=.0123456789e \n'\"_[]", max_size=30))
def test_any_other_text_is_refused_and_never_run(text: str) -> None:
    try:
        row = parse(text, NAMES, 1)
    except SettingsError:
        return
    assert any(row.factors)
    assert np.isfinite([*row.factors, row.bound]).all()


def test_texts_and_matrices_make_the_same_polytope() -> None:
    words = ca.Polytope(BOX, ["small <= large - 0.5", "small + ads == 8", "large >= 2 * ads"])
    matrix = ca.Polytope(BOX, [[1, -1, 0], [0, -1, 2]], [-0.5, 0], equal=([[1, 0, 1]], [8]))
    turned = ca.Polytope(
        BOX, [[0, -1, 1], [2, -1, 0]], [-0.5, 0], ["ads", "large", "small"], ([[1, 0, 1]], [8])
    )
    assert words == matrix == turned
    assert hash(words) == hash(matrix)
    assert matrix.texts == (
        "small + ads == 8.0",
        "small - large <= -0.5",
        "-large + 2.0 * ads <= 0.0",
    )
    bare = ca.Polytope(ca.Box(BOX.low, BOX.high), [[1, -1, 0]], [-0.5], names=NAMES)
    assert bare == ca.Polytope(BOX, ["small <= large - 0.5"])
    assert words != ca.Polytope(WHOLE, ["small <= large - 0.5"])


@pytest.mark.parametrize(
    "polytope",
    [
        ca.Polytope(BOX, ["small <= large - 0.5", "small + ads == 8"]),
        ca.Polytope(WHOLE, ["small <= large - 0.5", "2 * ads + small <= 7"]),
        ca.Polytope(ca.Box.unit(2), [[1, 1]], [0.75]),
        ca.Polytope(ca.Box.unit(2), [[1, 1]], [0.75], equal=([[1, -1]], [0.1])),
    ],
)
def test_a_polytope_is_a_frozen_value(polytope: ca.Polytope) -> None:
    again = [pickle.loads(pickle.dumps(polytope)), ca.Polytope.from_state(polytope.__getstate__())]
    again.append(eval(repr(polytope), {"Polytope": ca.Polytope, "Box": ca.Box}))
    for other in again:
        assert other == polytope
        assert hash(other) == hash(polytope)
        assert list(other.allowed.anchor) == list(polytope.allowed.anchor)
    assert polytope.dim == polytope.box.dim == len(polytope.names)
    assert polytope.allows(list(polytope.allowed.anchor))
    with pytest.raises(AttributeError, match="a Polytope cannot be changed, but `b` was assigned"):
        polytope.b = np.zeros(1)
    with pytest.raises(ValueError, match="read-only"):
        polytope.b[0] = 3.0


@pytest.mark.parametrize(
    ("box", "rows", "conflicting"),
    [
        (BOX, ["small >= large + 1", "large >= small"], ["small >= large + 1", "large >= small"]),
        (
            BOX,
            ["ads <= 3", "small + large + ads >= 29", "large <= 9"],
            ["ads <= 3", "small + large + ads >= 29", "large <= 9", "small <= 10.0"],
        ),
        (BOX, ["ads >= 11"], ["ads >= 11", "ads <= 10.0"]),
        (BOX, ["small + ads == 8", "small + ads >= 9"], ["small + ads == 8", "small + ads >= 9"]),
        (
            WHOLE,
            ["2 * small + 2 * ads <= 7.5", "large <= 3", "2 * small + 2 * ads >= 6.5"],
            ["2 * small + 2 * ads <= 7.5", "2 * small + 2 * ads >= 6.5"],
        ),
    ],
)
def test_limits_that_leave_nothing_are_refused_with_those_that_conflict(
    box: ca.Box, rows: list[str], conflicting: list[str]
) -> None:
    with pytest.raises(SettingsError, match="limits must leave") as error:
        ca.Polytope(box, rows)
    assert re.findall("`([^`]*)`", str(error.value)) == conflicting


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((BOX, ["small <= large", "large <= small"]), "written as one equality, `==`, but got"),
        (
            (BOX, ["small + large == 5", "small + large = 6"]),
            "must not follow from, or contradict",
        ),
        ((BOX, ["small == 5", "large == 6", "ads == 7"]), "fewer equalities than the 3 coord"),
        ((BOX, ["small + ads == 8", "2 * small + 2 * ads <= 16"]), "must be left out, but got `2"),
        ((WHOLE, ["small + large == 5"]), "an equality must have a coordinate without a spacing"),
        (
            (BOX, [[1, 1, 0], [0, 0, 0]], [3, 4]),
            "row 2 of `A` must have finite numbers, not all 0",
        ),
        ((BOX, [[1, np.nan, 0]], [3]), "row 1 of `A` must have finite numbers, not all 0"),
        ((BOX, [[1, 1, 0]], [np.inf]), "row 1 of `A` must have finite numbers, not all 0"),
        ((BOX, [[1, 1]], [3]), "a matrix of 3 columns with a bound for each row"),
        ((BOX, [[1, 1, 1]], [3, 4]), "each row of `A` must have a bound"),
        ((BOX, [[1, 1, 1]]), "a matrix of 3 columns with a bound for each row"),
        ((BOX, [[1, 1, 1]], [3], ["small", "large", "add"]), "`names` must be those of the box"),
        ((BOX, [[1, 1, 1]], [3], None, [[1, 1, 1]]), "`equal` must be a matrix and its bounds"),
        ((BOX, "small <= large"), "inequalities must be a list of texts"),
        ((BOX, ["small <= large"], [3]), "go with a matrix, but got text"),
        ((BOX, ["small <= large", 3]), "row 2 must be text, but got 3"),
        ((ca.Box.unit(2), ["a <= b"]), "inequalities in words need a Box with names"),
        ((ca.Box([0], [1], ["1st"]), ["1st <= 0.5"]), "must begin with a letter, but got '1st'"),
        (([0, 1], ["a <= b"]), "`box` must be a Box"),
        (
            (ca.Polytope(BOX, ["ads <= 9"]), ["small <= 3"]),
            "`box` must be a Box, but got Polytope",
        ),
        (
            (ca.Box([2000, 0], [2000.001, 1]), [[0, 1]], [1], None, ([[1, 1e-3]], [2000])),
            "rounded",
        ),
        ((BOX, [[1e300, 1e300, 0]], [1]), "a row must change by 1e-150 to 1e\\+150 between"),
        ((BOX, [[1e-200, 0, 0]], [1]), "a row must change by 1e-150 to 1e\\+150 between"),
    ],
)
def test_nonsense_is_refused_in_one_line(arguments: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message) as error:
        ca.Polytope(*arguments)
    assert "\n" not in str(error.value)


def test_a_decision_is_allowed_where_all_limits_hold() -> None:
    polytope = ca.Polytope(BOX, ["small <= large - 0.5", "small + ads == 8"])
    assert polytope.allows({"small": 3.0, "large": 3.5, "ads": 5.0})
    assert not polytope.allows([3.0, 3.4, 5.0])
    assert not polytope.allows([3.0, 3.5, 5.1])
    assert not polytope.allows([-1.0, 3.5, 9.0])
    assert polytope.allows([3.0, 3.5, 5.0 + 9e-9])
    assert not polytope.allows([3.0, 3.5, 5.0 + 2e-8])
    whole = ca.Polytope(WHOLE, ["small <= large - 0.5"])
    assert whole.allows([3, 4, 5])
    assert not whole.allows([3, 3.5, 5])
    with pytest.raises(InputError, match="finite numbers are needed"):
        whole.nearest([np.inf, 3, 4])


def test_an_equality_may_fix_a_coordinate_at_its_edge() -> None:
    polytope = ca.Polytope(BOX, ["small == 0", "large + ads <= 3", "small + 1 >= 0.5"])
    assert polytope.nearest([5, 5, 5]).round(9).tolist() == [0.0, 1.5, 1.5]


def test_limits_of_a_request_that_leave_nothing_are_named() -> None:
    polytope = ca.Polytope(BOX, ["small <= large - 0.5", "ads <= 9"])
    low, high = np.array([5.0, 0.0, 0.0]), np.array([6.0, 5.0, 10.0])
    assert (
        conflict(polytope, low, high)
        == "`small <= large - 0.5`, `small >= 5.0` and `large <= 5.0`"
    )
    low, high = np.array([5.2, 0.0, 0.0]), np.array([5.8, 5.0, 10.0])
    assert conflict(WHOLE, low, high) == "`small >= 5.2` and `small <= 5.8` with spacing=1.0"
    whole = ca.Polytope(WHOLE, ["2 * small - 2 * large <= -0.5"])
    low, high = np.array([3.5, 0.0, 0.0]), np.array([5.0, 4.5, 10.0])
    assert "spacing=[1.0, 1.0, 1.0]" in conflict(whole, low, high)


def test_a_damaged_state_is_refused() -> None:
    state = ca.Polytope(BOX, ["small <= large - 0.5"]).__getstate__()
    for name, value in (
        ("anchor", [9.0, 1.0, 1.0]),
        ("anchor", ["x"]),
        ("texts", []),
        ("A", [[np.nan, 1, 2]]),
        ("b", []),
        ("equal", [[[1, 1]], [3]]),
    ):
        with pytest.raises(SettingsError):
            ca.Polytope.from_state(state | {name: value})
