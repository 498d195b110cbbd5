"""The page of an experiment whose policy has one bin: segments of contexts that one chooses."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, expect

import continuarm as ca
from tests.browser import DARK, LIGHT, PHONE, Tab, opened
from tests.service import Server
from tests.test_page import LOOKS, about, number, numbers_in

NAMES = ["age", "hour", "income"]
CONTEXT = ca.Box([18, 0, 0], [90, 24, 240_000], names=NAMES)
HERE = "/v1/experiments/calls"


def begin(store: Path) -> None:
    """One experiment that has learned of hour and income, one with one context, one of nothing."""
    price = ca.Box([1.0, 0.5], [9.0, 4.0], names=["price", "fee"])
    parts: dict[str, Any] = {"partition": ca.Grid(1), "learner": ca.SmoothSurface(), "rng": 0}
    policy, rng = ca.Policy(CONTEXT, price, start=[4.0, 2.0], **parts), np.random.default_rng(0)
    for x in rng.uniform(CONTEXT.low, CONTEXT.high, (1200, 3)):
        decision = policy.ask(x)
        best = 3.0 + 3.0 * x[2] / 2.4e5 - 1.5 * x[1] / 24
        paid = 5.0 - (decision.value[0] - best) ** 2 - (decision.value[1] - 2.0) ** 2
        policy.tell(decision, paid + 0.3 * rng.normal())
    ca.share(policy, store, "calls")
    ca.share(ca.Policy(ca.Box([0], [24], names=["hour"]), price, **parts), store, "hours")
    ca.share(ca.Policy(ca.Box.unit(0), price, **parts), store, "plain")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    store = tmp_path_factory.mktemp("cells") / "shop.db"
    begin(store)
    with Server(store) as server:
        yield server.client


@LOOKS
def test_every_view_is_whole(browser: Browser, service: httpx.Client, look: Any) -> None:
    with opened(browser, str(service.base_url).rstrip("/"), **look) as tab:
        for view in ("calls", "calls/bins", "hours/bins", "plain", "plain/bins"):
            tab.go(f"experiments/{view}")
            tab.check()


def test_a_segment_is_chosen_by_pointer_and_by_keys(tab: Tab, service: httpx.Client) -> None:
    found = service.get(f"{HERE}/cells").json()
    assert found["along"] == ["hour", "income"]
    page = tab.go("experiments/calls/bins")
    expect(page.locator("nav.tabs [aria-current]")).to_have_text("Segments")
    assert page.get_by_label("Across").input_value() == "1"
    assert page.get_by_label("Upwards").input_value() == "2"
    area, heading = page.locator(".map canvas").last, page.locator("section.card h2").first
    box = area.bounding_box()
    assert box is not None
    area.click(position={"x": box["width"] - 12, "y": 10})
    expect(heading).to_have_text("hour from 21, income from 210,000")
    last = found["cells"][-1]
    shown = page.locator("section.card .numbers dd:not(.aside)").all_text_contents()
    for text, mean, error in zip(
        shown, ("expected", "gain"), ("expected_error", "gain_error"), strict=True
    ):
        written = numbers_in(text)
        assert written[0] == pytest.approx(last[mean], abs=0.1 * last[error])
        assert written[1] == pytest.approx(2.0 * last[error], rel=0.05)
    cells = page.locator("section.card tbody td.number").all_text_contents()
    assert number(cells[0]) == pytest.approx(last["best"]["price"], abs=1e-3)
    assert number(cells[2]) == 4.0
    area.press("ArrowDown")
    area.press("Enter")
    expect(heading).to_have_text("hour from 21, income 180,000 to 210,000")
    tab.check()


def test_the_contexts_and_the_parts_are_those_that_one_chooses(
    tab: Tab, service: httpx.Client
) -> None:
    page = tab.go("experiments/calls/bins")
    page.get_by_label("Across").select_option(label="age")
    page.get_by_label("Upwards").select_option(label="nothing")
    page.get_by_label("Parts").select_option(label="4")
    page.get_by_label("hour:").press("Home")
    wanted = service.get(f"{HERE}/cells?along=age&parts=4&hour=0").json()["cells"]
    page.get_by_text("As a table").click()
    rows = page.locator("figure tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text(f"{wanted[0]['best']['price']:.3f}".rstrip("0"))
    for k, one in enumerate(wanted):
        price, fee, *_ = rows.nth(k).locator("td.number").all_text_contents()
        assert number(price) == pytest.approx(one["best"]["price"], abs=1e-3)
        assert number(fee) == pytest.approx(one["best"]["fee"], abs=1e-3)
    page.get_by_label("Upwards").select_option(label="age")  # the two change places
    assert page.get_by_label("Across").input_value() != "0"
    expect(rows).to_have_count(16)
    tab.check()


@pytest.mark.parametrize("look", [LIGHT, DARK, PHONE], ids=["light", "dark", "phone"])
def test_a_segment_is_frozen_from_the_map(
    browser: Browser, service: httpx.Client, look: Any
) -> None:
    with opened(browser, str(service.base_url).rstrip("/"), **look) as tab:
        page = tab.go("experiments/calls/bins")
        page.get_by_label("Parts").select_option(label="4")
        page.get_by_text("As a table").click()
        rows = page.locator("figure tbody tr")
        expect(rows).to_have_count(16)
        rows.first.get_by_role("button").click()
        page.get_by_role("button", name="Freeze this segment").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_label("hour: highest")).to_have_value("6")
        expect(dialog.get_by_label("income: highest")).to_have_value("60000")
        expect(dialog.get_by_label("age: lowest")).to_have_value("")
        tab.check()
        dialog.get_by_role("button", name="Freeze", exact=True).click()
        expect(dialog).to_contain_text("hour 0 to 6 and income 0 to 60,000")
        [frozen] = about(service, "calls")["frozen"]["segments"]
        assert frozen["segment"] == {"hour": [0.0, 6.0], "income": [0.0, 60_000.0]}
        dialog.get_by_role("button", name="Close").click()
        expect(rows.first.locator("td").last).to_have_text("frozen")
        expect(page.locator("section.card").first).to_contain_text("It is frozen")
        tab.check()
        page.get_by_role("button", name="What is frozen").click()
        dialog.get_by_role("button", name="Unfreeze").click()
        page.get_by_role("dialog").last.get_by_role("button", name="Unfreeze", exact=True).click()
        expect(dialog).to_contain_text("Nothing is frozen")
        dialog.get_by_role("button", name="Close").click()
        expect(page.get_by_role("button", name="Freeze this segment")).to_be_visible()
        assert about(service, "calls")["frozen"]["segments"] == []


def test_before_payoffs_the_page_says_that_nothing_is_known(tab: Tab) -> None:
    page = tab.go("experiments/hours/bins")
    page.get_by_text("As a table").click()
    expect(page.locator("figure tbody tr")).to_have_count(8)
    page.locator("figure tbody button").first.click()
    expect(page.locator("section.card").first).to_contain_text("not shown yet")
    page.get_by_label("Colour").select_option(label="expected payoff")
    expect(page.locator("figure .note")).to_contain_text("not known of any segment yet")
    tab.check()
