"""The page in a real browser, on data that the service made."""

import json
import math
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, expect

import continuarm as ca
from continuarm.service.tokens import issue
from continuarm.store import open_store
from tests.browser import DARK, LIGHT, PHONE, Tab, opened
from tests.service import Server

MAP = {
    "context": {"low": [18, 0], "high": [90, 250000], "names": ["age", "income"]},
    "decision": {"low": [1], "high": [9], "names": ["price"], "spacing": 0.05},
    "options": {"ttl_seconds": 7200, "share": 0.2, "start": [4.0]},
}
STRIP = {
    "context": {"low": [0], "high": [24], "names": ["hour"]},
    "decision": {"low": [0, 0], "high": [10, 5], "names": ["bid", "limit_of_the_day_in_euros"]},
}
NEW = "an-experiment-with-a-rather-long-name-that-nobody-has-asked-anything-of"
VIEWS = [
    "",
    "new",
    *(f"experiments/prices{view}" for view in ("", "/bins", "/learned", "/ask")),
    "experiments/bids/bins",
    "experiments/odd/findings",
]
MARKS = {"good": "✓", "note": "●", "warning": "▲", "serious": "■"}
LOOKS = pytest.mark.parametrize("look", [LIGHT, DARK, PHONE], ids=["light", "dark", "phone"])


def begin_in_three_contexts(store: Path) -> None:
    """An experiment whose bins are cut along two of three contexts."""
    rng, context = np.random.default_rng(2), ca.Box([0, 0, 0], [1, 1, 1], names=["x", "y", "z"])
    policy = ca.SurfaceSampling(context, ca.Box([0], [1], names=["price"]), rng=0)
    for x in rng.random((2000, 3)):
        decision = policy.ask(x)
        best = 0.2 + 0.3 * (x[1] > 0.5) + 0.3 * (x[2] > 0.5)
        payoff = 1.0 - 4.0 * (decision.value[0] - best) ** 2 + 0.05 * rng.normal()
        policy.tell(decision, float(payoff))
    ca.share(policy, store, "three")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    store = tmp_path_factory.mktemp("page") / "shop.db"
    begin_in_three_contexts(store)
    with Server(store) as server:
        for name, new in {"prices": MAP, "bids": STRIP, "odd": STRIP, NEW: STRIP}.items():
            made = server.client.put(f"/v1/experiments/{name}", json=new)
            assert made.status_code == 201, made.text
        rng = np.random.default_rng(1)
        for _ in range(12):
            contexts = rng.uniform([18, 0], [90, 250000], (150, 2))
            learn(server.client, "prices", contexts, shop, rng)
        learn(server.client, "bids", rng.uniform(0, 24, (100, 1)), auction, rng)
        learn(server.client, "odd", rng.uniform(0, 24, (300, 1)), auction, rng)
        learn(server.client, "odd", rng.uniform(0, 24, (2, 1)), absurd, rng)
        yield server.client


def shop(context: Any, decision: dict[str, float]) -> float:
    best = 3.0 if context[1] < 125_000 else 7.0
    return 5.0 - min(0.5 * (decision["price"] - best) ** 2, 4.0)  # no payoff rules the others


def auction(context: Any, decision: dict[str, float]) -> float:
    return -((decision["bid"] - 4.0) ** 2)


def absurd(context: Any, decision: dict[str, float]) -> float:
    return 1e6


def learn(client: httpx.Client, name: str, contexts: Any, payoff: Any, rng: Any) -> None:
    """Ask for a decision in each context, and tell nearly all payoffs."""
    path = f"/v1/experiments/{name}"
    asked = client.post(f"{path}/decisions", json={"contexts": contexts.tolist()}).json()
    told = [
        {"id": one["id"], "payoff": payoff(context, one["decision"]) + 0.3 * rng.normal()}
        for context, one in zip(contexts, asked["decisions"], strict=True)
    ]
    lost = [one["id"] for one in told[::20]]
    told = [one for one in told if one["id"] not in lost]
    closed = client.post(f"{path}/payoffs", json={"payoffs": told})
    assert closed.status_code == 200, closed.text
    assert client.post(f"{path}/forget", json={"ids": lost}).status_code == 200


def about(service: httpx.Client, name: str = "prices") -> Any:
    return service.get(f"/v1/experiments/{name}").json()


def number(text: str | None) -> float:
    assert text is not None
    return float(text.replace(",", "").replace("\N{MINUS SIGN}", "-"))


def numbers_in(text: str | None) -> list[float]:
    """All numbers of a text."""
    assert text is not None
    plain = text.replace(",", "").replace("\N{MINUS SIGN}", "-")
    return [float(found) for found in re.findall(r"[-+]?\d+\.?\d*", plain)]


def check_plus_minus(text: str | None, found: dict[str, float]) -> None:
    """A mean ± two standard errors, rounded to two digits of these."""
    mean, error = numbers_in(text)[:2]
    half = 0.5 * 10 ** (math.floor(math.log10(2.0 * found["error"])) - 1)
    assert mean == pytest.approx(found["mean"], abs=half + 1e-12)
    assert error == pytest.approx(2.0 * found["error"], abs=half + 1e-12)


def check_interval(text: str | None, found: dict[str, float]) -> None:
    """An estimate and its interval, rounded to two digits of its width."""
    estimate, low, high = numbers_in(text)
    half = 0.5 * 10 ** (math.floor(math.log10(found["high"] - found["low"])) - 1)
    shown = {"estimate": estimate, "low": low, "high": high}
    assert shown == {key: pytest.approx(found[key], abs=half + 1e-12) for key in shown}


def numbers_of(tab: Tab) -> dict[str, str]:
    cells = tab.page.locator(".view > .numbers > div").all()
    return {
        str(cell.locator("dt").text_content()): str(cell.locator("dd").first.text_content())
        for cell in cells
    }


@LOOKS
def test_every_view_is_whole(browser: Browser, service: httpx.Client, look: Any) -> None:
    with opened(browser, str(service.base_url).rstrip("/"), **look) as tab:
        for path in VIEWS:
            tab.go(path)
            tab.check()


def test_every_view_is_whole_where_nothing_is_known_yet(tab: Tab) -> None:
    for view in ("", "/bins", "/learned", "/ask", "/findings"):
        tab.go(f"experiments/{NEW}{view}")
        tab.check()


def test_the_list_has_the_numbers_of_the_api(tab: Tab, service: httpx.Client) -> None:
    for name in ("prices", "bids", NEW):
        about(service, name)  # health is kept for a while: let it be that of what was told last
    page = tab.go()
    for name in ("prices", "bids", NEW):
        found, row = about(service, name), page.locator("tbody tr").filter(has_text=name)
        cells = row.locator("td.number").all_inner_texts()
        keys = ("decisions", "payoffs", "open", "late", "lost")
        assert [number(cell) for cell in cells[:5]] == [found["counts"][key] for key in keys]
        health = f"{MARKS[found['health']]}{found['health']}"
        wanted = health if found["counts"]["payoffs"] else "○no payoffs yet"
        assert row.locator(".pill").text_content() == wanted
        lately, better = found["payoff"]["lately"], found["uplift"]
        if lately is not None:
            check_plus_minus(cells[5], lately)
            check_plus_minus(
                row.locator("td").nth(7).locator(".aside").text_content(),
                found["payoff"]["beginning"],
            )
        if better is not None and better["percent"] is not None:
            check_interval(cells[6], better["percent"])


@pytest.mark.parametrize("width", [320, 390, 480])
def test_on_a_phone_the_list_is_read_without_scrolling_sideways(
    browser: Browser, service: httpx.Client, width: int
) -> None:
    look = PHONE | {"viewport": {"width": width, "height": 800}}
    with opened(browser, str(service.base_url).rstrip("/"), **look) as tab:
        page = tab.go()
        region = page.get_by_role("region", name="Experiments")
        assert region.evaluate("own => own.scrollWidth - own.clientWidth") <= 0
        row = page.get_by_role("row").filter(has_text="prices")
        for cell in (
            "[data-name=Decisions]",
            "[data-name^=Mean]",
            "[data-name^=Against]",
            ".pill",
        ):
            box = row.locator(cell).bounding_box()
            assert box is not None
            assert box["x"] >= 0, cell
            assert box["x"] + box["width"] <= width, cell
        check_interval(row.locator("[data-name^=Against]").text_content(), better(service))
        expect(row.locator("[data-name=Late]")).to_be_hidden()
        tab.check()


def better(service: httpx.Client) -> dict[str, float]:
    found: dict[str, float] = about(service)["uplift"]["percent"]
    return found


def test_an_experiment_has_the_numbers_of_the_api(tab: Tab, service: httpx.Client) -> None:
    tab.go("experiments/prices")
    found, shown = about(service), numbers_of(tab)
    for word in ("Decisions", "Payoffs", "Open", "Late", "Lost"):
        assert number(shown[word]) == found["counts"][word.lower()]
    assert number(shown["Bins"]) == found["bins"]
    check_plus_minus(shown["Mean payoff lately"], found["payoff"]["lately"])


def test_it_says_what_it_would_decide_and_why(tab: Tab, service: httpx.Client) -> None:
    page = tab.go("experiments/prices/ask")
    page.get_by_label("age", exact=True).fill("37")
    page.get_by_label("income", exact=True).fill("200000")
    page.get_by_role("button", name="Show the decision").click()
    expect(page.locator("p.why")).to_contain_text("For age 37, income 200,000")
    where = {"age": 37, "income": 200_000}
    best = service.get("/v1/experiments/prices/recommendation", params=where).json()["decision"]
    shown = page.locator(".decided dd").first.text_content()
    assert number(shown) == pytest.approx(best["price"], abs=1e-9)
    why = service.get("/v1/experiments/prices/explain", params=where).json()["text"]
    assert page.locator(".answer .why li").all_text_contents() == why.split("\n")[1:]
    page.get_by_label("age", exact=True).fill("7")
    page.get_by_role("button", name="Show the decision").click()
    wrong = page.locator(".field", has=page.get_by_label("age", exact=True)).locator(".error")
    expect(wrong).to_have_text("18 <= age <= 90 must hold, but got 7")
    expect(page.locator(".answer .decided")).to_have_count(0)
    expect(page.locator(".answer")).to_contain_text("No decision is shown.")
    page.get_by_label("income", exact=True).fill("much")
    page.get_by_role("button", name="Show the decision").click()
    second = page.locator(".field", has=page.get_by_label("income", exact=True)).locator(".error")
    expect(second).to_contain_text("A number with a point is needed")
    expect(wrong).to_contain_text("18 <= age <= 90")
    expect(page.get_by_label("age", exact=True)).to_be_focused()
    page.get_by_label("income", exact=True).fill("200000")
    page.get_by_role("button", name="Show the decision").click()
    expect(second).to_be_empty()
    tops = page.locator(".ask .field input").evaluate_all(
        "all => all.map(own => own.getBoundingClientRect().top)"
    )
    assert tops[0] == tops[1], "a message moves no neighbour"
    tab.check_refused()
    page.get_by_label("age", exact=True).fill("37")
    page.get_by_role("button", name="Show the decision").click()
    expect(page.locator(".answer .decided")).to_be_visible()


def test_a_bin_is_chosen_by_pointer_and_by_keys(tab: Tab, service: httpx.Client) -> None:
    bins = service.get("/v1/experiments/prices/bins").json()["bins"]
    assert len(bins) > 1, "the world has a step: there must be something to choose"
    page = tab.go("experiments/prices/bins")
    area = page.locator(".map canvas").last
    area.click(position={"x": 200, "y": 60})
    heading = page.locator("section.card h2").first
    expect(heading).to_contain_text("Bin ")
    first = next(b for b in bins if f"Bin {b['id']}" == heading.text_content())
    assert first["high"][1] == 250_000
    shown = page.locator("section.card .numbers dd:not(.aside)").all_text_contents()
    assert [number(text) for text in shown[:2]] == [first["visits"], first["payoffs"]]
    check_plus_minus(shown[2], {"mean": first["expected"], "error": first["expected_error"]})
    best, *_ = page.locator("section.card tbody td.number").all_text_contents()
    assert number(best) == pytest.approx(first["best"]["price"])
    area.press("ArrowDown")
    area.press("Enter")
    expect(heading).not_to_have_text(f"Bin {first['id']}")
    second = next(b for b in bins if f"Bin {b['id']}" == heading.text_content())
    assert second["high"][1] <= first["low"][1]
    tab.check()


def test_the_table_of_bins_has_the_numbers_of_the_api(tab: Tab, service: httpx.Client) -> None:
    bins = service.get("/v1/experiments/prices/bins").json()["bins"]
    page = tab.go("experiments/prices/bins")
    page.get_by_text("As a table").click()
    rows = page.locator("figure tbody tr")
    expect(rows).to_have_count(len(bins))
    for one in bins:
        row = rows.filter(has=page.get_by_role("button", name=str(one["id"]), exact=True))
        told, *_, price = row.locator("td.number").all_text_contents()
        assert number(told) == one["payoffs"]
        assert number(price) == pytest.approx(one["best"]["price"])
    tab.check()


def test_of_three_contexts_two_are_chosen_and_the_third_is_held(
    tab: Tab, service: httpx.Client
) -> None:
    bins = service.get("/v1/experiments/three/bins?most=500").json()["bins"]
    page = tab.go("experiments/three/bins")
    across, upwards = page.get_by_label("Across"), page.get_by_label("Upwards")
    shown = {across.evaluate("own => own.value"), upwards.evaluate("own => own.value")}
    cuts = [len({one["low"][k] for one in bins}) for k in range(3)]
    least = sorted(range(3), key=lambda k: cuts[k], reverse=True)
    assert shown == {str(k) for k in least[:2]}, "those with most cuts are shown first"
    across.select_option(label="x")
    upwards.select_option(label="y")
    slide, caption = page.get_by_label("z:"), page.locator("figcaption span")
    for key, z in (("Home", 0.0), ("End", 1.0)):
        slide.press(key)
        held = [one for one in bins if one["low"][2] <= z <= one["high"][2]]
        assert 0 < len(held) < len(bins)
        expect(caption).to_contain_text(f"{len(held)} shown of {len(bins)}")
    tab.check()


def test_a_bin_is_frozen_and_unfrozen_after_a_confirmation(
    tab: Tab, service: httpx.Client
) -> None:
    page = tab.go("experiments/prices/bins")

    def frozen() -> int:
        return sum(b["frozen"] for b in service.get("/v1/experiments/prices/bins").json()["bins"])

    page.locator(".map canvas").last.click(position={"x": 200, "y": 60})
    page.get_by_role("button", name="Freeze this bin").click()
    page.get_by_role("button", name="Cancel").click()
    assert frozen() == 0
    page.get_by_role("button", name="Freeze this bin").click()
    expect(page.get_by_role("dialog")).to_contain_text("are counted and never learned")
    tab.check()
    page.get_by_role("dialog").get_by_role("button", name="Freeze").click()
    expect(page.get_by_role("button", name="Unfreeze this bin")).to_be_visible()
    assert frozen() == 1
    expect(page.locator("figure .note")).to_contain_text("counts payoffs and learns none of them")
    tab.check()
    page.get_by_role("button", name="Unfreeze this bin").click()
    page.get_by_role("dialog").get_by_role("button", name="Unfreeze").click()
    expect(page.get_by_role("button", name="Freeze this bin", exact=True)).to_be_visible()
    assert frozen() == 0


@pytest.mark.parametrize("look", [LIGHT, DARK, PHONE], ids=["light", "dark", "phone"])
def test_contexts_are_frozen_by_a_form_and_unfrozen_from_a_list(
    browser: Browser, service: httpx.Client, look: Any
) -> None:
    def segments() -> Any:
        return [one["segment"] for one in about(service)["frozen"]["segments"]]

    with opened(browser, str(service.base_url).rstrip("/"), **look) as tab:
        page = tab.go("experiments/prices")
        page.get_by_role("button", name="Freeze…").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("Nothing is frozen.")
        expect(dialog).to_contain_text("are counted and never learned")
        freeze = dialog.get_by_role("button", name="Freeze", exact=True)
        freeze.click()
        expect(dialog.get_by_role("alert")).to_contain_text("segment must say from where to where")
        tab.check_refused()
        lowest, highest = (dialog.get_by_label(f"age: {word}") for word in ("lowest", "highest"))
        lowest.fill("sixty")
        freeze.click()
        expect(dialog.locator(".between").first).to_contain_text("A number with a point is needed")
        lowest.fill("60")
        highest.fill("50")
        freeze.click()
        expect(dialog.locator(".between .error").first).to_have_text(
            "low <= high must hold for age in segment, both finite, but got (60.0, 50.0)"
        )
        assert segments() == []
        highest.fill("")
        dialog.get_by_label("income: highest").fill("20000")
        tab.check_refused()
        freeze.click()
        listed = dialog.get_by_role("listitem")
        expect(listed).to_contain_text("age 60 to 90 and income 0 to 20,000, since 20")
        assert segments() == [{"age": [60.0, 90.0], "income": [0.0, 20_000.0]}]
        expect(lowest).to_have_value("")
        tab.check()
        dialog.get_by_role("button", name="Close").click()
        expect(page.locator(".pill.frozen")).to_have_text("■1 frozen")
        tab.check()
        page.get_by_role("button", name="Freeze…").click()
        dialog.get_by_role("button", name="Unfreeze age 60 to 90").click()
        page.get_by_role("dialog").last.get_by_role("button", name="Unfreeze").click()
        expect(dialog).to_contain_text("Nothing is frozen.")
        assert segments() == []
        dialog.get_by_role("button", name="Close").click()
        expect(page.locator(".pill.frozen")).to_have_count(0)


def test_a_frozen_bin_is_in_the_list_of_what_is_frozen(tab: Tab, service: httpx.Client) -> None:
    path = "/v1/experiments/prices/bins"
    first = service.get(path).json()["bins"][0]["id"]
    service.post(f"{path}/{first}/freeze").raise_for_status()
    page = tab.go("experiments/prices")
    page.get_by_role("button", name="Freeze…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name=f"Unfreeze Bin {first}").click()
    page.get_by_role("dialog").last.get_by_role("button", name="Unfreeze").click()
    expect(dialog).to_contain_text("Nothing is frozen.")
    assert about(service)["frozen"] == {"segments": [], "bins": []}


def test_what_is_said_of_a_frozen_bin_is_what_happens(
    browser: Browser, service: httpx.Client
) -> None:
    path = "/v1/experiments/prices/bins"
    first = service.get(path).json()["bins"][0]
    service.post(f"{path}/{first['id']}/freeze").raise_for_status()
    rng = np.random.default_rng(4)
    contexts = rng.uniform(first["low"], first["high"], (40, 2))
    with opened(browser, str(service.base_url).rstrip("/"), **LIGHT) as tab:
        learn(service, "prices", contexts, shop, rng)
        page = tab.go("experiments/prices/bins")
        expect(page.locator(".colours")).to_contain_text("payoffs of the bin")
        page.get_by_text("As a table").click()
        page.get_by_role("button", name=str(first["id"]), exact=True).click()
        expect(page.get_by_role("button", name="Unfreeze this bin")).to_be_visible()
        shown = page.locator("section.card .numbers dd:not(.aside)").all_text_contents()
        assert number(shown[1]) == first["payoffs"] + 38, "two of forty were lost"
        check_plus_minus(shown[2], {"mean": first["expected"], "error": first["expected_error"]})
        guards = page.locator("section.card ul.why li").all_text_contents()
        assert sum("its best decision" in line for line in guards) == 1, "each guard once"
        assert "payoffs learned" not in str(page.locator("main").text_content())
    service.post(f"{path}/{first['id']}/unfreeze").raise_for_status()


def test_an_experiment_is_paused_and_resumed(tab: Tab, service: httpx.Client) -> None:
    page = tab.go("experiments/bids")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator(".heading .pill.paused")).to_be_visible()
    assert about(service, "bids")["paused"]
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    assert not about(service, "bids")["paused"]


def test_a_decision_arrives_without_reload(tab: Tab, service: httpx.Client) -> None:
    page = tab.go("experiments/prices")
    before = about(service)["counts"]["decisions"]
    context = {"context": {"age": 41.5, "income": 61_234}}
    answer = service.post("/v1/experiments/prices/decisions", json=context).json()
    row = page.locator(".live tbody tr").filter(has_text="61,234")
    cells = row.locator("td[data-name]")
    expect(cells).to_have_text(["open", f"{answer['decision']['price']:.2f}", "41.50", "61,234"])
    service.post("/v1/experiments/prices/payoffs", json={"id": answer["id"], "payoff": 4.375})
    expect(cells.first).to_have_text("4.375")
    decisions = page.locator(".view > .numbers dd").first
    expect(decisions).to_have_text(f"{before + 1:,}")
    tab.check()
    page.get_by_role("button", name="Hold").click()
    row.get_by_role("button").click()
    why = service.get(f"/v1/experiments/prices/explain/{answer['id']}").json()["text"]
    expect(page.locator("dialog p.why")).to_have_text(why.split("\n")[0])
    tab.check()


@pytest.mark.parametrize("height", [900, 320], ids=["wide", "low"])
@pytest.mark.parametrize("width", [1280, 390])
def test_why_a_decision_was_made_is_read_from_its_top(
    browser: Browser, service: httpx.Client, width: int, height: int
) -> None:
    look = LIGHT | {"viewport": {"width": width, "height": height}}
    with opened(browser, str(service.base_url).rstrip("/"), **look) as tab:
        page = tab.go("experiments/prices")
        context = {"context": {"age": 43.25, "income": 51_432}}
        service.post("/v1/experiments/prices/decisions", json=context)
        row = page.locator(".live tbody tr").filter(has_text="43.25" if width > 480 else "open")
        row.first.get_by_role("button").click()
        heading = page.get_by_role("heading", name="Why this decision?")
        expect(heading).to_be_focused()
        assert heading.evaluate("own => own.closest('dialog').scrollTop") == 0
        expect(heading).to_be_in_viewport()
        tab.check()
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Close")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_payoff_is_shown_however_many_decisions_came_since(
    tab: Tab, service: httpx.Client
) -> None:
    page, path = tab.go("experiments/bids"), "/v1/experiments/bids"
    first = service.post(f"{path}/decisions", json={"context": {"hour": 1.25}}).json()
    service.post(f"{path}/decisions", json={"contexts": [[2.5]] * 30})
    expect(page.locator(".live tbody tr").filter(has_text="2.50")).to_have_count(12)
    service.post(f"{path}/payoffs", json={"id": first["id"], "payoff": -8.125})
    row = page.locator(".live tbody tr").last  # in the order of the ledger
    expect(row).to_contain_text("1.25")
    # as many digits as the mean payoff has, which the server's own draws decide
    expect(row.locator("td.paid")).to_have_text(re.compile("^−8.1250*$"))  # noqa: RUF001


def test_the_last_decisions_are_there_after_a_reload(tab: Tab, service: httpx.Client) -> None:
    path = "/v1/experiments/odd"
    asked = service.post(f"{path}/decisions", json={"contexts": [[3.75]] * 15}).json()["decisions"]
    last = {"id": asked[0]["id"], "payoff": -2.125}
    service.post(f"{path}/payoffs", json=last).raise_for_status()
    page = tab.go("experiments/odd")
    rows = page.locator(".live tbody tr")
    expect(rows).to_have_count(12)
    expect(rows.last.locator("td.paid")).to_contain_text("2")
    expect(page.get_by_text("0.0 a second")).to_be_visible()
    tab.check()
    service.post(f"{path}/decisions", json={"context": {"hour": 5.25}}).raise_for_status()
    expect(rows.first).to_contain_text("5.25")
    expect(rows).to_have_count(12)
    tab.forgive_refusals()


def test_an_address_that_is_none_shows_the_list_and_says_so(tab: Tab) -> None:
    page = tab.go("experiments/%")
    expect(page.locator("p.note")).to_contain_text("no experiment at the address")
    expect(page.locator("tbody tr").filter(has_text="prices")).to_be_visible()


def test_an_experiment_that_is_unknown_is_said_with_a_way_back(tab: Tab) -> None:
    page = tab.go("experiments/nothing")
    expect(page.locator(".trouble")).to_contain_text("An experiment must be created first")
    tab.check_refused()
    page.get_by_role("link", name="All experiments").click()
    expect(page.get_by_role("heading", name="Experiments")).to_be_visible()


def test_the_export_is_downloaded_as_the_api_has_it(
    tab: Tab, service: httpx.Client, tmp_path: Path
) -> None:
    page = tab.go("experiments/bids")
    with page.expect_download() as begun:
        page.get_by_role("button", name="Download the export").click()
    assert begun.value.suggested_filename == "bids.json"
    begun.value.save_as(tmp_path / "bids.json")
    wanted = service.get("/v1/experiments/bids/export").json()
    assert json.loads((tmp_path / "bids.json").read_text()) == wanted


def test_what_was_paid_over_time_is_in_the_table_behind_the_chart(
    tab: Tab, service: httpx.Client
) -> None:
    page = tab.go("experiments/prices")
    page.get_by_text("As a table").click()
    rows = page.locator("figure tbody tr")
    buckets = service.get("/v1/experiments/prices/history").json()["buckets"]
    assert {one["whose"] for one in buckets} == {"ours", "incumbent"}
    expect(rows).to_have_count(len(buckets))
    for row, one in list(zip(rows.all(), buckets, strict=True))[::7]:
        whose, first, last, payoffs, mean, _ = row.locator("td").all_text_contents()
        assert whose == one["whose"]
        counts = (one["first"], one["last"], one["payoffs"])
        assert (number(first), number(last), number(payoffs)) == counts
        assert number(mean) == pytest.approx(one["mean"], rel=1e-3)
    tab.check()


def test_what_was_learned_is_shown_along_a_context_that_one_chooses(
    tab: Tab, service: httpx.Client
) -> None:
    page = tab.go("experiments/prices/learned")
    page.get_by_label("Along", exact=True).select_option(label="income")
    page.get_by_label("age:").press("Home")
    page.get_by_text("As a table").click()
    found = service.get("/v1/experiments/prices/curve", params={"along": "income", "age": 18})
    prices = found.json()["decision"]["price"]["learned"]
    rows = page.locator("figure tbody tr")
    for k in (0, len(prices) - 1):
        expect(rows.nth(k).locator("td").nth(1)).to_have_text(f"{prices[k]:.2f}")
    assert rows.count() == len(prices)
    assert prices[-1] > prices[0] + 2.0, "the world has a step that must be seen"
    tab.check()


def test_the_findings_of_the_diagnosis_have_their_advice(tab: Tab, service: httpx.Client) -> None:
    found = service.get("/v1/experiments/odd/diagnosis").json()["findings"]
    assert found, "an absurd payoff must be found"
    page = tab.go("experiments/odd/findings")
    shown = page.locator(".finding").all()
    assert len(shown) == len(found)
    for card, one in zip(shown, found, strict=True):
        assert one["advice"] in str(card.text_content())
        assert one["level"] in str(card.locator(".pill").text_content())
    tab.check()


def test_an_experiment_is_made_in_a_form_that_checks_as_the_api_does(
    tab: Tab, service: httpx.Client
) -> None:
    page = tab.go("new")
    page.get_by_role("button", name="Create the experiment").click()
    expect(page.get_by_text("An experiment needs a name")).to_be_visible()
    page.get_by_label("Name").first.fill("parking")
    context, decision = page.locator(".side.context"), page.locator(".side.decision")
    fill(context, {"Name": "hour", "Unit": "h", "Lowest": "0", "Highest": "24"})
    fill(decision, {"Name": "fee", "Lowest": "5", "Highest": "1", "Steps of": "0.5"})
    page.get_by_role("button", name="Create the experiment").click()
    body = {
        "context": {"low": [0], "high": [24], "names": ["hour"]},
        "decision": {"low": [5], "high": [1], "names": ["fee"], "spacing": [0.5]},
    }
    refused = service.put("/v1/experiments/parking", json=body).json()["message"]
    expect(decision.locator(".error", has_text="low < high")).to_have_text(
        refused.replace("`", "")
    )
    tab.check_refused()
    fill(decision, {"Lowest": "", "Highest": "9"})
    page.get_by_role("button", name="Create the experiment").click()
    lowest = decision.locator(".field", has=page.get_by_label("Lowest")).locator(".error")
    expect(lowest).to_have_text("A number is needed")
    fill(decision, {"Lowest": "1"})
    page.get_by_label("Share of the incumbent").fill("2")
    page.get_by_role("button", name="Create the experiment").click()
    wrong = page.locator(".field", has=page.get_by_label("Share")).locator(".error")
    expect(wrong).to_contain_text("share must be 0, or from 0.001 to 0.999")
    expect(wrong.locator("code")).to_have_text("share")
    expect(page.get_by_text("0, or 0.001 to 0.999", exact=False).first).to_be_visible()
    page.get_by_label("Share of the incumbent").fill("0,1")
    page.get_by_role("button", name="Create the experiment").click()
    expect(wrong).to_have_text("A number with a point is needed, such as 0.1, but got '0,1'")
    page.get_by_label("Share of the incumbent").fill("0.2")
    page.get_by_label("Reach").fill("7")
    page.get_by_role("button", name="Create the experiment").click()
    wrong = page.locator(".field", has=page.get_by_label("Reach")).locator(".error")
    expect(wrong).to_contain_text("0 < reach <= 1.0 must hold")
    page.get_by_label("Reach").fill("")
    page.get_by_role("button", name="Add a coordinate").click()
    fill(decision.nth(1), {"Name": "fine", "Lowest": "5", "Highest": "1"})
    page.get_by_role("button", name="Create the experiment").click()
    expect(page.locator("form > .error")).to_contain_text("low < high")
    expect(decision.locator("[aria-invalid]")).to_have_count(0)
    decision.nth(1).get_by_role("button").click()
    page.get_by_role("button", name="Create the experiment").click()
    expect(page.get_by_role("heading", name="parking")).to_be_visible()
    tab.forgive_refusals()
    made = about(service, "parking")
    assert made["decision"]["spacing"] == [0.5]
    assert made["context"]["units"] == ["h"]
    assert made["options"]["share"] == 0.2


def fill(room: Locator, values: dict[str, str]) -> None:
    for label, value in values.items():
        room.get_by_label(label).fill(value)


def test_a_token_is_asked_for_and_kept_for_the_tab_only(browser: Browser, tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "guarded.db")) as store:
        looks, rules = issue(store, "looker", "read"), issue(store, "ruler", "admin")
    with Server(tmp_path / "guarded.db") as server:
        admin = {"authorization": f"Bearer {rules}"}
        server.client.put("/v1/experiments/prices", json=MAP, headers=admin)
        base = str(server.client.base_url).rstrip("/")
        with opened(browser, base, **LIGHT) as tab:
            page = tab.page
            page.goto(f"{base}/#/experiments/prices")
            command = "continuarm token create NAME --scope read --store STORE"
            expect(page.get_by_role("dialog").locator("code")).to_have_text(command)
            page.get_by_role("textbox", name="Token").fill("wrong")
            tab.check_refused()
            page.get_by_role("button", name="Go on").click()
            expect(page.get_by_text("does not know that token")).to_be_visible()
            page.get_by_role("textbox", name="Token").fill(looks)
            page.get_by_role("button", name="Go on").click()
            expect(page.get_by_role("heading", name="prices")).to_be_visible()
            page.get_by_role("button", name="Pause").click()
            page.get_by_role("dialog").get_by_role("button", name="Pause").click()
            expect(page.locator(".actions .error")).to_contain_text("The scope 'admin' is needed")
            page.reload()
            expect(page.get_by_role("heading", name="prices")).to_be_visible()
            other = page.context.new_page()
            other.goto(base)
            expect(other.get_by_role("textbox", name="Token")).to_be_visible()
            page.get_by_role("button", name="Forget the token").click()
            expect(page.get_by_role("textbox", name="Token")).to_be_visible()
            tab.forgive_refusals()


def test_the_page_may_load_nothing_from_elsewhere(service: httpx.Client) -> None:
    for path in ("/", "/page/main.js", "/page/style.css", "/page/icon.svg"):
        found = service.get(path)
        assert found.status_code == 200
        rules = found.headers["content-security-policy"].split("; ")
        assert "default-src 'none'" in rules
        assert not any("unsafe" in rule or "http" in rule or "*" in rule for rule in rules)
        assert not re.search(r"https?://(?!www\.w3\.org/)", found.text)
        same = {"if-none-match": found.headers["etag"]}
        assert service.get(path, headers=same).status_code == 304
    assert service.get("/page/../app.py").status_code == 404
    assert service.get("/page/nothing.js").status_code == 404
