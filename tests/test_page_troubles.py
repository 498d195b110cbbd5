"""The page in a real browser where something is wrong: crafted names, lost servers, archives."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser, expect

from continuarm.service.tokens import issue
from continuarm.store import open_store
from continuarm.store.memory import MemoryStore
from continuarm.store.records import Experiment
from tests.browser import LIGHT, PHONE, opened
from tests.service import HERE, PRICES, Server, served

EVIL = "<img src=x onerror=document.title='taken'>"
CRAFTED = 'it\'s "<b onclick=alert(1)>" &amp; ${1} `x` %2F ? # é 価格 ' + "w" * 40
VIEWS = ("", "/bins", "/learned", "/ask", "/findings")
HUGE = {
    "context": {"low": [-1e300, 0], "high": [1e300, 1e-300], "names": ["huge", "tiny"]},
    "decision": {"low": [1e15], "high": [2e15], "names": ["price"], "units": ["¥"]},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with Server(tmp_path_factory.mktemp("troubles") / "shop.db") as server:
        yield server.client


def base_of(client: httpx.Client) -> str:
    return str(client.base_url).rstrip("/")


def sell(client: httpx.Client, path: str, contexts: list[Any], payoffs: list[float]) -> None:
    asked = client.post(f"{path}/decisions", json={"contexts": contexts})
    ids = [one["id"] for one in asked.raise_for_status().json()["decisions"]]
    told = [{"id": id_, "payoff": z} for id_, z in zip(ids, payoffs, strict=True)]
    client.post(f"{path}/payoffs", json={"payoffs": told}).raise_for_status()


@pytest.mark.parametrize("look", [LIGHT, PHONE], ids=["wide", "phone"])
def test_crafted_names_are_shown_as_they_are(
    browser: Browser, service: httpx.Client, look: Any
) -> None:
    new = {
        "context": {"low": [0], "high": [1], "names": [EVIL], "units": [EVIL]},
        "decision": {"low": [0], "high": [1], "names": [CRAFTED], "units": [EVIL]},
        "payoff": {"name": EVIL, "unit": EVIL},
    }
    name = CRAFTED[:100].strip()
    path = f"/v1/experiments/{_quoted(name)}"
    service.put(path, json=new).raise_for_status()
    sell(service, path, [[0.1 * k % 1] for k in range(60)], [float(k % 7) for k in range(60)])
    with opened(browser, base_of(service), **look) as tab:
        page = tab.go()
        page.get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
        for view in VIEWS:
            page = tab.go(f"experiments/{_quoted(name)}{view}")
            expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
            assert page.locator("main img, main b").count() == 0
            assert "taken" not in page.title()
            tab.check()


def _quoted(name: str) -> str:
    return quote(name, safe="")


def test_huge_and_tiny_numbers_are_shown(browser: Browser, service: httpx.Client) -> None:
    path = "/v1/experiments/huge"
    service.put(path, json=HUGE).raise_for_status()
    contexts = [[(k - 20) * 4e298, k * 2e-302] for k in range(40)]
    sell(service, path, contexts, [(-1.0) ** k * 10.0 ** (2 * k) for k in range(40)])
    with opened(browser, base_of(service), **LIGHT) as tab:
        for view in VIEWS:
            page = tab.go(f"experiments/huge{view}")
            for wrong in ("NaN", "Infinity", "undefined", "null", "[object"):
                assert wrong not in page.locator("body").inner_text(), (view, wrong)
            tab.check()


@pytest.mark.parametrize("typed", ["NaN", "1e999", "Infinity", "0x10", "one", "1,5", "--1"])
def test_what_is_no_number_is_refused_at_its_field(
    browser: Browser, service: httpx.Client, typed: str
) -> None:
    service.put("/v1/experiments/forms", json=PRICES)
    with opened(browser, base_of(service), **LIGHT) as tab:
        page = tab.go("experiments/forms/ask")
        page.get_by_label("age", exact=True).fill(typed)
        page.get_by_role("button", name="Show the decision").click()
        field = page.locator(".field", has=page.get_by_label("age", exact=True))
        expect(field.locator(".error")).not_to_be_empty()
        page = tab.go("new")
        page.get_by_label("Name").first.fill("typed")
        for side in ("context", "decision"):
            for label, value in {"Name": side, "Lowest": "0", "Highest": "9"}.items():
                page.locator(f".side.{side}").get_by_label(label).fill(value)
        page.locator(".side.context").get_by_label("Lowest").fill(typed)
        page.get_by_role("button", name="Create the experiment").click()
        expect(page.locator(".side.context .field:nth-child(3) .error")).not_to_be_empty()
        assert service.get("/v1/experiments/typed").status_code == 404
        tab.check_refused()


def test_an_experiment_that_is_archived_meanwhile_says_so(
    browser: Browser, service: httpx.Client
) -> None:
    service.put("/v1/experiments/old", json=PRICES)
    with opened(browser, base_of(service), **LIGHT) as tab:
        page = tab.go("experiments/old")
        service.delete("/v1/experiments/old").raise_for_status()
        expect(page.locator(".heading .pill.archived")).to_be_visible(timeout=20_000)
        expect(page.get_by_role("button", name="Pause")).to_be_disabled()
        tab.check_refused()


def test_a_server_that_is_gone_is_said_and_what_was_missed_is_shown_when_it_is_back(
    browser: Browser, tmp_path: Path
) -> None:
    store, path = tmp_path / "shop.db", "/v1/experiments/prices"
    first = Server(store)
    with first:
        first.client.put(path, json=PRICES).raise_for_status()
        low = LIGHT | {"viewport": {"width": 1280, "height": 400}}
        with opened(browser, base_of(first.client), **low) as tab:
            page = tab.go("experiments/prices")
            lost = page.get_by_role("alert").filter(has_text="does not answer")
            expect(lost).to_have_count(0)
            first.stop()
            expect(lost).to_be_visible(timeout=10_000)
            page.evaluate("scrollTo(0, document.body.scrollHeight)")
            assert page.evaluate("scrollY") > 0
            expect(lost).to_be_in_viewport(ratio=1)
            tab.errors.clear()
            tab.check()
            second = Server(store, "--port", str(first.port))  # the last one counts
            second.client.base_url = httpx.URL(tab.base)
            with second:
                sell(second.client, path, [[37, 52_000]] * 5, [1.0] * 5)
                expect(lost).to_have_count(0, timeout=15_000)
                expect(page.locator(".view > .numbers dd").first).to_have_text("5")
                tab.errors.clear()
                tab.check()


def test_a_token_that_is_revoked_meanwhile_is_asked_for_again(
    browser: Browser, tmp_path: Path
) -> None:
    with closing(open_store(tmp_path / "guarded.db")) as store:
        looks, rules = issue(store, "looker", "read"), issue(store, "ruler", "admin")
        with Server(tmp_path / "guarded.db") as server:
            admin = {"authorization": f"Bearer {rules}"}
            server.client.put("/v1/experiments/prices", json=PRICES, headers=admin)
            with opened(browser, base_of(server.client), **LIGHT) as tab:
                page = tab.page
                page.goto(f"{tab.base}/#/experiments/prices")
                page.get_by_role("textbox", name="Token").fill(looks)
                page.get_by_role("button", name="Go on").click()
                expect(page.get_by_role("heading", name="prices")).to_be_visible()
                store.revoke_token("looker")
                expect(page.get_by_text("does not know that token")).to_be_visible(timeout=15_000)
                page.get_by_role("textbox", name="Token").fill(rules)
                page.get_by_role("button", name="Go on").click()
                expect(page.get_by_role("dialog")).to_have_count(0)
                tab.check_refused()


def test_of_many_experiments_one_is_found(browser: Browser, tmp_path: Path) -> None:
    with Server(tmp_path / "many.db") as server:
        for k in range(15):
            server.client.put(f"/v1/experiments/shop-{k:02}", json=PRICES).raise_for_status()
        with opened(browser, base_of(server.client), **LIGHT) as tab:
            page = tab.go()
            rows = page.locator("tbody tr")
            expect(rows).to_have_count(15)
            page.get_by_label("Find").fill("P-07")
            expect(rows).to_have_count(1)
            expect(page.get_by_text("1 of 15")).to_be_visible()
            tab.check()
            rows.get_by_role("link").click()
            expect(page.get_by_role("heading", name="shop-07")).to_be_visible()
            server.client.post("/v1/experiments/shop-03/pause").raise_for_status()
            page = tab.go()
            page.get_by_label("Find").fill("paused")
            expect(page.locator("tbody tr")).to_have_count(1)
            expect(page.get_by_role("link", name="shop-03")).to_be_visible()


def test_of_a_thousand_experiments_all_can_be_seen(
    browser: Browser, service: httpx.Client
) -> None:
    service.put("/v1/experiments/one", json=PRICES)
    found = service.get("/v1/experiments").json()
    one = next(each for each in found["experiments"] if each["name"] == "one")
    found["experiments"] = [one | {"name": f"shop-{k:04}"} for k in range(450)]
    with opened(browser, base_of(service), **LIGHT) as tab:
        tab.page.route("**/v1/experiments", lambda route: route.fulfill(json=found))
        page = tab.go()
        rows = page.locator("tbody tr")
        expect(rows).to_have_count(200)
        expect(page.get_by_text("the first 200 of 450 are shown")).to_be_visible()
        page.get_by_role("button", name="Show 200 more").click()
        expect(rows).to_have_count(400)
        page.get_by_role("button", name="Show 50 more").click()
        expect(rows).to_have_count(450)
        expect(page.get_by_role("button", name="more")).to_have_count(0)
        tab.check()
        page.get_by_label("Find").fill("shop-0")
        expect(page.get_by_text("the first 200 of 450 are shown")).to_be_visible()


def test_a_tab_that_nobody_sees_keeps_no_connection(
    browser: Browser, service: httpx.Client
) -> None:
    path = "/v1/experiments/seen"
    service.put(path, json=PRICES).raise_for_status()
    with opened(browser, base_of(service), **LIGHT) as tab:
        page = tab.go("experiments/seen")
        page.wait_for_timeout(200)  # until the stream is there
        see = """(hidden) => {
          Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }"""
        with page.expect_event("requestfailed", lambda one: "/stream" in one.url):
            page.evaluate(see, True)
        sell(service, path, [[37, 52_000]] * 3, [1.0] * 3)
        with page.expect_request(lambda one: "/stream?after=7" in one.url):
            page.evaluate(see, False)
        expect(page.locator(".view > .numbers dd").first).to_have_text("3")


class Compiling(MemoryStore):
    """A store that an experiment is made in as slowly as one that is compiled."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = Event()

    def create(self, name: str, settings: str) -> Experiment:
        assert self.goes_on.wait(60.0)
        return super().create(name, settings)


def test_an_experiment_that_is_being_made_is_said_to_be(browser: Browser) -> None:
    store = Compiling()
    with served(store) as client, ThreadPoolExecutor(1) as threads:
        making = threads.submit(client.put, HERE, json=PRICES)
        with opened(browser, str(client.base_url).rstrip("/"), **LIGHT) as tab:
            page = tab.go()
            row = page.locator("tbody tr").filter(has_text="prices")
            expect(row).to_contain_text("It is being prepared.")
            expect(page.get_by_text("There is no experiment yet.")).to_be_hidden()
            tab.check()
            store.goes_on.set()
            assert making.result().status_code == 201
            expect(row).to_contain_text("recommended")
