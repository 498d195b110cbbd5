import math

import pytest

from continuarm.errors import SettingsError
from continuarm.paper import schedules


def test_the_papers_example_has_the_papers_numbers() -> None:
    curvature = 6 - 4 * math.sqrt(2)
    low, high = schedules.step_interval(curvature)
    assert (round(low, 4), round(high, 4)) == (0.7286, 1.4571)
    assert schedules.bins("printed", 10**6, 1, 2) == round((10**6 / 4) ** (1 / 3))
    assert schedules.bins("consistent", 10**6, 1, 2) == round((4 * 10**6 / 8) ** (1 / 3))
    assert schedules.bins("lipschitz", 10**6, 1, 2) == 16  # 10^(6/5) = 15.8
    appendix = schedules.split_after("appendix", 3, 1.0, 6 + 4 * math.sqrt(2))
    assert appendix == [8697] * 3  # 26,091 decisions before the first split (reading 8)


@pytest.mark.parametrize("rule", ["printed", "consistent", "lipschitz"])
@pytest.mark.parametrize("horizon", [1, 2, 10, 1000, 10**7])
@pytest.mark.parametrize(("dx", "dy"), [(0, 1), (1, 1), (1, 50), (3, 2), (10, 3)])
def test_bins_are_held(rule: str, horizon: int, dx: int, dy: int) -> None:
    k = schedules.bins(rule, horizon, dx, dy)
    assert k >= 1
    assert k == 1 or (dy + 1) * k**dx <= horizon


@pytest.mark.parametrize("rule", ["printed", "consistent"])
@pytest.mark.parametrize("horizon", [1, 10, 1000, 10**7])
@pytest.mark.parametrize(("dx", "dy"), [(0, 1), (1, 1), (1, 50), (3, 2), (10, 3)])
def test_depth_is_held(rule: str, horizon: int, dx: int, dy: int) -> None:
    level = schedules.depth(rule, horizon, dx, dy)
    assert level >= 0
    assert level == 0 or (dy + 1) * 2 ** (level * dx) <= horizon


@pytest.mark.parametrize(
    ("dx", "dy", "holder", "ratio"), [(1, 2, 1.0, 1.0), (2, 3, 0.5, 2.0), (3, 1, 2.0, 1.0)]
)
def test_the_consistent_bins_minimise_the_bound(
    dx: int, dy: int, holder: float, ratio: float
) -> None:
    """`√T dy^(3/2) K^(dx/2) + ρ T (√dx/K)^α` is convex in log K: better than both neighbours."""
    horizon = 10**12

    def bound(k: float) -> float:
        noise = math.sqrt(horizon) * dy**1.5 * k ** (dx / 2)
        return float(noise + ratio * horizon * (math.sqrt(dx) / k) ** holder)

    k = schedules.bins("consistent", horizon, dx, dy, holder, ratio)
    assert k > 20
    assert bound(k) < min(bound(0.9 * k), bound(1.1 * k))
    assert schedules.depth("consistent", horizon, dx, dy, holder, ratio) == round(math.log2(k))


def test_split_after_by_name_and_by_number() -> None:
    assert schedules.split_after("text", 3, 0.5) == [1, 2, 4]
    assert schedules.split_after([7, 8, 9], 2) == [7, 8]
    for bad in ([1], [0, 3], [1.5, 2]):
        with pytest.raises(SettingsError, match="2 whole numbers of at least 1"):
            schedules.split_after(bad, 2)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="needs `curvature_max`"):
        schedules.split_after("appendix", 2)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SettingsError, match="but got 'best'"):
        schedules.bins("best", 10, 1, 1)
    with pytest.raises(SettingsError, match="but got 'best'"):
        schedules.depth("best", 10, 1, 1)
    with pytest.raises(SettingsError, match="but got 'best'"):
        schedules.split_after("best", 1)
