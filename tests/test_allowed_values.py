"""Allowed values of a box: exact decimals, and one line for what cannot be."""

import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import continuarm as ca
from continuarm.errors import InputError, SettingsError

DECIMALS = st.decimals(min_value="0.0001", max_value=50, places=4).filter(lambda x: x > 0)
EDGES = st.decimals(min_value=-100, max_value=100, places=3)


@given(low=EDGES, high=EDGES, spacing=DECIMALS, at=st.floats(0, 1), ends=st.floats(0, 0.999))
def test_an_allowed_value_is_the_decimal_itself(
    low: Decimal, high: Decimal, spacing: Decimal, at: float, ends: float
) -> None:
    """Every value is what Python reads from the decimal in text, in the box, and the nearest."""
    ending = (spacing * Decimal(str(round(ends, 2)))).quantize(Decimal("0.0001"))
    assume(low < high and ending < spacing)
    try:
        box = ca.Box(
            [low_ := float(low)], [float(high)], spacing=float(spacing), ending=[float(ending)]
        )
    except SettingsError:
        first = -((ending - low) // spacing) * spacing + ending
        assert not any(low <= first + k * spacing <= high for k in (-2, -1, 0, 1, 2))
        return
    wanted = low_ + at * (float(high) - low_)
    value = float(box.nearest([wanted])[0])
    k = round((Fraction(repr(value)) - Fraction(ending)) / Fraction(spacing))
    assert value == float(ending + k * spacing)
    assert low_ <= value <= float(high)
    assert box.allows([value])
    for aside in (k - 1, k + 1):
        other = float(ending + aside * spacing)
        if float(low) <= other <= float(high):
            assert abs(wanted - value) <= abs(wanted - other) * (1 + 1e-9) + 1e-12
            assert not box.allows([(value + other) / 2]) or value == other


def test_no_value_shows_the_rounding_of_a_sum() -> None:
    box = ca.Box([0.0], [10.0], spacing=0.05)
    found = [float(box.nearest([k * 0.05])[0]) for k in range(201)]
    assert found == [float(f"{k // 20}.{k % 20 * 5:02d}") for k in range(201)]
    assert 63 * 0.05 == 3.1500000000000004
    assert found[63] == 3.15


@pytest.mark.parametrize("step", [1 / 3, 2.0**-20, 1e20, 1e-12, 0.1 + 0.2])
def test_a_spacing_that_is_no_short_decimal_is_counted_from_the_first_value(step: float) -> None:
    box = ca.Box([0.0], [1000 * step], spacing=step)
    for k in (0, 1, 7, 999):
        assert box.nearest([k * step])[0] == k * step
        assert box.allows([k * step])
    assert box.high[0] >= box.nearest(box.high)[0] >= 999 * step


def test_prices_end_as_they_should() -> None:
    box = ca.Box([0.5, 0], [10, 9], ["price", "fee"], ending={"price": 0.99})
    assert box.spacing == (1.0, 0.0)
    assert box.ending == (0.99, 0.0)
    assert box.nearest({"price": 3.2, "fee": 3.14159}).tolist() == [2.99, 3.14159]
    assert box.nearest([100, -1]).tolist() == [9.99, 0.0]
    assert not box.allows([3.0, 1.0])
    tens = ca.Box([0], [100], spacing=10, ending=9)
    assert tens.nearest([46.0]).tolist() == [49.0]


def test_what_was_done_may_be_any_value_of_the_box() -> None:
    box = ca.Box([0], [10], spacing=1)
    assert box.point([3.7]).tolist() == [3.7]
    assert not box.allows([3.7])
    with pytest.raises(InputError, match="numbers are needed"):
        box.nearest([np.nan])


@pytest.mark.parametrize(
    "box",
    [
        ca.Box([0], [10], spacing=0.05),
        ca.Box([0, 1], [10, 2], ["a", "b"], spacing=[None, 0.1]),
        ca.Box([0, 1], [10, 2], ["a", "b"], {"b": 0.5}, {"a": 0.99}),
        ca.Box([0, 1], [10, 2], spacing=2, ending=[0.5, None]),
    ],
)
def test_boxes_with_a_spacing_are_values(box: ca.Box) -> None:
    names = {"Box": ca.Box}
    for again in (
        pickle.loads(pickle.dumps(box)),
        eval(repr(box), names),
        ca.Box(*box.__getstate__()),
    ):
        assert again == box
        assert hash(again) == hash(box)
        assert again.values() == box.values()
    low, high, names_ = box.low.tolist(), box.high.tolist(), list(box.names)
    assert box != ca.Box(low, high, names_ if box.named else None)
    assert box.same_edges(ca.Box(low, high))


def test_a_box_without_a_spacing_is_as_before() -> None:
    ways: tuple[Any, ...] = (None, 0, [0.0, None], {})
    for spacing in ways:
        box = ca.Box([0, 1], [10, 2], ["a", "b"], spacing)
        assert box == ca.Box([0, 1], [10, 2], ["a", "b"])
        assert box.__getstate__() == ([0.0, 1.0], [10.0, 2.0], ["a", "b"])
        assert repr(box) == "Box([0.0, 1.0], [10.0, 2.0], names=['a', 'b'])"
        assert not box.spaced
        assert box.allows([3.7, 1.1])
        assert not box.allows([3.7, 2.1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spacing": -0.1}, "`0 <= spacing` must hold, a finite number, but got -0.1"),
        ({"spacing": np.nan}, "`0 <= spacing` must hold, a finite number, but got nan"),
        ({"spacing": np.inf}, "`0 <= spacing` must hold, a finite number, but got inf"),
        ({"spacing": "0.05"}, "`0 <= spacing` must hold, a finite number, but got '0.05'"),
        ({"spacing": True}, "`0 <= spacing` must hold, a finite number, but got True"),
        ({"spacing": [1, 2, 3]}, "`spacing` must be one number, or 2, but got 3"),
        ({"spacing": {"fees": 1}}, r"the names of `spacing` must be among \['price', 'fee'\]"),
        ({"spacing": 1e-300}, r"at most 2\*\*53 values of a coordinate can be counted, but got"),
        ({"spacing": 40, "ending": 35}, "an allowed value must lie between 1.5 and 9.0, but got"),
        ({"ending": 1.5}, "`ending < spacing` must hold, but got ending=1.5, spacing=1.0"),
        ({"ending": -0.01}, "`0 <= ending` must hold, a finite number, but got -0.01"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as error:
        ca.Box([1.5, 1.5], [9, 4], ["price", "fee"], **options)
    assert "\n" not in str(error.value)
