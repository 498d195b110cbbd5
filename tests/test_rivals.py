"""The comparison with rivals: who enters, and how ratios are put together."""

import math

import pytest

import continuarm as ca
from benchmarks import rivals
from continuarm.lab.comparison import Choices
from continuarm.lab.measures import Interval


def test_a_rival_enters_where_it_applies() -> None:
    priced, planar = (rivals.entrants(ca.problem(name)) for name in ("purchase", "plane"))
    assert set(priced) - set(planar) == {"logit-thompson", "logit-thompson, best"}
    best = planar["linear-thompson, best"]
    assert isinstance(best, Choices)
    assert len(best.settings) == len(rivals.settings_of("linear-thompson")) == 12
    assert rivals.runs({"one": "fixed", "two": best}) == 13
    many = rivals.entrants(ca.problem("one-of-10"))["linear-thompson, best"]
    assert {settings["degree"] for settings in many.settings} == {2}  # 3 has 1,716 columns


def test_a_mean_of_ratios_is_geometric_with_errors_that_add_up() -> None:
    found = rivals.geometric_mean([Interval(0.5, 0.4, 0.6), Interval(2.0, 1.6, 2.4)])
    reach = 0.2 * math.sqrt(2.0) / 2.0
    assert found.value == pytest.approx(1.0)
    assert found.low == pytest.approx(math.exp(-reach))
    assert found.high == pytest.approx(math.exp(reach))


def test_the_page_says_where_a_rival_does_not_apply() -> None:
    results = {"plane": {"linear-thompson": Interval(0.5, 0.4, 0.6)}}
    text = rivals.page(results, 8, 10_000)
    assert "| plane | 0.50 [0.40, 0.60] |  |" in text
    assert "- `cosine-thompson`: frequencies 3, 5, 10; ridge 0.01, 0.1; spread" in text
