"""What the charts of the page draw and say: gaps, the ends of axes, and points of one time."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import Locator

from tests.browser import Tab
from tests.service import Server

PATH = "/v1/experiments/paused"
NEW = {
    "context": {"low": [0], "high": [1], "names": ["hour"]},
    "decision": {"low": [0], "high": [9], "names": ["price"]},
    "options": {"share": 0.2, "start": [4.0]},
}
RANGE = re.compile(r"payoffs ([\d,]+) to ([\d,]+)")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """An experiment that was paused for a while, and whose last payoffs are all ours."""
    rng = np.random.default_rng(0)
    with Server(tmp_path_factory.mktemp("charts") / "shop.db") as server:
        client = server.client
        client.put(PATH, json=NEW).raise_for_status()
        learn(client, 300, rng)
        client.post(f"{PATH}/pause").raise_for_status()
        learn(client, 300, rng)
        client.post(f"{PATH}/resume").raise_for_status()
        learn(client, 310, rng)
        while ends(client)["incumbent"] >= ends(client)["ours"]:
            learn(client, 1, rng)
        yield client


def learn(client: httpx.Client, n: int, rng: np.random.Generator) -> None:
    contexts = rng.random((n, 1)).tolist()
    asked = client.post(f"{PATH}/decisions", json={"contexts": contexts}).raise_for_status().json()
    told = [
        {"id": one["id"], "payoff": 5 - (one["decision"]["price"] - 6) ** 2 + float(rng.normal())}
        for one in asked["decisions"]
    ]
    client.post(f"{PATH}/payoffs", json={"payoffs": told}).raise_for_status()


def buckets_of(client: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"{PATH}/history").json()["buckets"]
    return found


def ends(client: httpx.Client) -> dict[str, int]:
    """The last payoff of ours and of the incumbent's, as far as buckets tell."""
    found = {"ours": 0, "incumbent": 0}
    for one in buckets_of(client):
        found[one["whose"]] = max(found[one["whose"]], one["last"])
    return found


class History:
    """The chart of what was paid: its drawing in payoffs instead of pixels."""

    def __init__(self, tab: Tab, told: int) -> None:
        self.page = tab.go("experiments/paused")
        self.chart = self.page.locator("figure .chart").first
        base = self.chart.locator("line.base")
        self.left, right = (float(str(base.get_attribute(name))) for name in ("x1", "x2"))
        self.scale = told / (right - self.left)

    def payoff(self, x: float) -> float:
        """Which payoff lies at an x of the drawing, if the axis goes from none to all."""
        return (x - self.left) * self.scale

    def dots(self, kind: str) -> list[float]:
        drawn = self.chart.locator(f"circle.{kind}").all()
        return [self.payoff(float(str(dot.get_attribute("cx")))) for dot in drawn]

    def spans(self, shape: str) -> list[tuple[float, float]]:
        """From which payoff to which each band or line goes."""
        return [self._span(one) for one in self.chart.locator(shape).all()]

    def _span(self, drawn: Locator) -> tuple[float, float]:
        points = str(drawn.get_attribute("points")).split(" ")
        xs = [self.payoff(float(point.partition(",")[0])) for point in points]
        return min(xs), max(xs)

    def read(self, payoff: float) -> list[tuple[str, float]]:
        """Whose means the readout has at a payoff, and the middles of their payoffs."""
        box = self.chart.locator("svg").bounding_box()
        assert box is not None
        self.page.mouse.move(box["x"] + self.left + payoff / self.scale, box["y"] + 60)
        said = self.chart.locator(".readout div").all_text_contents()
        found = []
        for whose, payoffs in zip(said[::2], said[1::2], strict=True):
            ends = RANGE.fullmatch(payoffs)
            assert ends is not None
            first, last = (int(text.replace(",", "")) for text in ends.groups())
            found.append((whose.partition(":")[0], (first + last) / 2))
        return found


@pytest.fixture
def history(tab: Tab, service: httpx.Client) -> History:
    return History(tab, max(ends(service).values()))


def test_nothing_is_drawn_across_a_gap_of_the_history(
    history: History, service: httpx.Client
) -> None:
    ours = [one for one in buckets_of(service) if one["whose"] == "ours"]
    stops = [(a["last"], b["first"]) for a, b in pairwise(ours)]
    begin, end = max(stops, key=lambda stop: stop[1] - stop[0])
    assert end - begin > 200, "while it was paused, no payoff was ours"
    for shape in ("polygon.band.ours", "polyline.line.ours"):
        before, after = history.spans(shape)
        assert before[1] <= begin + 1
        assert after[0] >= end - 1
    assert not [x for x in history.dots("ours") if begin < x < end]
    for shape in ("polygon.band.theirs", "polyline.line.theirs"):
        [(first, last)] = history.spans(shape)
        assert first < begin < end < last, "the incumbent's went on"


def test_no_band_is_drawn_across_a_point_that_has_none(tab: Tab) -> None:
    """What payoffs do not show lies between two bands, not inside one."""

    def without_middle(route: Any) -> None:
        answer = route.fetch()
        found = answer.json()
        found["decision"]["price"]["peak"] = [6.0] * len(found["x"])
        error = [0.5] * len(found["x"])
        for k in range(len(error) // 3, 2 * len(error) // 3):
            error[k] = None  # type: ignore[call-overload]
        found["decision"]["price"]["error"] = error
        route.fulfill(response=answer, json=found)

    tab.page.route("**/curve?*", without_middle)
    page = tab.go("experiments/paused/learned")
    bands = page.locator(".chart polygon.band.ours")
    bands.first.wait_for()
    assert bands.count() == 2


def test_the_axis_of_the_history_ends_at_the_last_payoff(
    history: History, service: httpx.Client
) -> None:
    found = ends(service)
    assert found["incumbent"] < found["ours"], "the last payoffs are ours"
    label = str(history.chart.locator("svg").get_attribute("aria-label"))
    assert label == f"Mean payoff over {found['ours']:,} payoffs"
    last = history.dots("ours")[-1]
    [(whose, middle), _] = history.read(last)
    assert whose == "our decisions"
    assert last == pytest.approx(middle, abs=0.5), "it lies where the axis says"


def test_the_readout_has_points_of_one_time(history: History) -> None:
    ours, theirs = history.dots("ours"), history.dots("theirs")
    assert ours[1:4] != theirs[1:4], "each is pooled by itself"
    for at in ours:
        (mine, here), (other, there) = history.read(at)
        assert (mine, other) == ("our decisions", "the incumbent's")
        assert here == pytest.approx(at, abs=0.5)
        nearest = min(theirs, key=lambda x: abs(x - at))
        assert abs(there - at) == pytest.approx(abs(nearest - at), abs=1.0)
