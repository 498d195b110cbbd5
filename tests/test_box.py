import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import continuarm as ca
from continuarm.core.scaling import from_unit, to_unit
from continuarm.errors import InputError, SettingsError

FINITE = st.floats(-1e6, 1e6)


@st.composite
def boxes(draw: st.DrawFn) -> ca.Box:
    low = draw(st.lists(FINITE, min_size=1, max_size=4))
    sides = draw(st.lists(st.floats(1e-3, 1e6), min_size=len(low), max_size=len(low)))
    return ca.Box(low, np.add(low, sides))


@given(boxes(), st.data())
def test_scaling_there_and_back_stays_inside(box: ca.Box, data: st.DataObject) -> None:
    unit = np.array([data.draw(st.floats(0, 1)) for _ in range(box.dim)])
    point = box.from_unit(unit)
    assert ((box.low <= point) & (point <= box.high)).all()
    back = box.to_unit(point)
    assert ((back >= 0) & (back <= 1)).all()
    np.testing.assert_allclose(box.from_unit(back), point, rtol=1e-9, atol=1e-9)


@given(boxes(), st.data())
def test_compiled_scaling_has_the_same_bits(box: ca.Box, data: st.DataObject) -> None:
    unit = np.array([data.draw(st.floats(0, 1)) for _ in range(box.dim)])
    point, back = np.empty(box.dim), np.empty(box.dim)
    from_unit(box.low.copy(), box.high.copy(), unit, point)
    assert (point == box.from_unit(unit)).all()
    assert to_unit(box.low.copy(), box.high.copy(), point, back) == -1
    assert (back == box.to_unit(point)).all()


def test_values_may_come_as_sequence_array_or_by_name() -> None:
    box = ca.Box([0, 0], [1, 10], names=["a", "b"])
    for value in ([0.5, 2], (0.5, 2), np.array([0.5, 2]), {"b": 2, "a": 0.5}):
        assert box.point(value).tolist() == [0.5, 2.0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([0.5], "2 numbers are needed"),
        ([[0.5, 2]], "but got shape (1, 2)"),
        ([0.5, 11], "`0.0 <= b <= 10.0` must hold, but got 11.0"),
        ([float("nan"), 1], "`0.0 <= a <= 1.0` must hold, but got nan"),
        ([float("inf"), 1], "but got inf"),
        ({"a": 1}, "the names must be ['a', 'b'], but got ['a']"),
        ({"a": 1, "c": 2}, "the names must be ['a', 'b'], but got ['a', 'c']"),
        (["x", 1], "numbers are needed"),
        (None, "numbers are needed for ['a', 'b'], but got None"),
    ],
)
def test_a_bad_point_is_refused(value: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        ca.Box([0, 0], [1, 10], names=["a", "b"]).point(value)  # type: ignore[arg-type]
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("low", "high", "names", "message"),
    [
        ([0], [0], None, "`low < high` must hold in every dimension"),
        ([1], [0], None, "but got low=[1.0], high=[0.0]"),
        ([0], [float("inf")], None, "both finite"),
        ([-1.7e308], [1.7e308], None, "`high - low` must be finite"),
        ([0, 0], [1], None, "one length"),
        ([[0]], [[1]], None, "must be 1-D"),
        (["a"], [1], None, "must be numbers"),
        ([0], [1], ["a", "b"], "1 different names"),
        ([0, 0], [1, 1], ["a", "a"], "2 different names"),
        ([0], [1], "a", "sequence of strings"),
    ],
)
def test_an_illegal_box_cannot_exist(
    low: object, high: object, names: object, message: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        ca.Box(low, high, names)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_a_box_is_a_value() -> None:
    box = ca.Box([0, 1], [2, 3], names=["a", "b"])
    assert box == ca.Box([0, 1], [2, 3], names=["a", "b"])
    assert box != ca.Box([0, 1], [2, 3])
    assert len({box, copy.deepcopy(box), pickle.loads(pickle.dumps(box))}) == 1
    with pytest.raises(AttributeError):
        box.low = np.zeros(2)
    with pytest.raises(ValueError, match="read-only"):
        box.low[0] = 5
