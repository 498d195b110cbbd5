"""Pictures of every view of the page, on data that the service made.

python -m benchmarks.screenshots [--output docs/figures]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page

from continuarm.demo.chain import LATE_AFTER, NAME, Chain
from tests.browser import DARK, LIGHT, PHONE, launched, opened
from tests.service import Server

COLOURS = 256  # of a picture
PRICES = {
    "context": {
        "low": [18, 0],
        "high": [90, 250000],
        "names": ["age", "income"],
        "units": ["years", "$"],
    },
    "decision": {"low": [1], "high": [9], "names": ["price"], "spacing": 0.05, "units": ["$"]},
    "payoff": {"name": "profit", "unit": "$"},
    "options": {"share": 0.1, "start": [4.0], "ttl": 400},
}
BIDS = {
    "context": {"low": [0], "high": [24], "names": ["hour"], "units": ["h"]},
    "decision": {
        "low": [0, 0],
        "high": [10, 5],
        "names": ["bid", "limit_of_the_day"],
        "units": ["$", "$"],
    },
    "payoff": {"name": "margin", "unit": "$"},
    "options": {"ttl": 400},
}
VIEWS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("experiments", "", LIGHT),
    ("new", "new", LIGHT),
    ("now", f"experiments/{NAME}", LIGHT),
    ("bins", "experiments/prices/bins", LIGHT),
    ("learned", "experiments/prices/learned", LIGHT),
    ("decide", f"experiments/{NAME}/ask", LIGHT),
    ("findings", "experiments/bids/findings", LIGHT),
    ("dark", "experiments/prices/bins", DARK),
    ("phone", f"experiments/{NAME}", PHONE),
)


def main() -> None:
    """Make the data, and a picture of each view."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/figures"))
    output = parser.parse_args().output
    with tempfile.TemporaryDirectory() as folder:
        with Server(Path(folder) / "shop.db") as server, launched() as browser:
            chain = fill(server.client)
            for name, path, look in VIEWS:
                picture = taken(browser, server.client, chain, path, look)
                target = output / f"page-{name}.png"
                picture.save(target, optimize=True)
                print(f"{target} {target.stat().st_size / 1000:.0f} kB")


def fill(client: httpx.Client) -> Chain:
    """Three experiments that have learned something, and one that has not."""
    rng, chain = np.random.default_rng(0), Chain(seed=0)
    made = {NAME: chain.experiment(), "prices": PRICES, "bids": BIDS, "parking-fees": BIDS}
    for name, new in made.items():
        client.put(f"/v1/experiments/{name}", json=new).raise_for_status()
    for round_ in range(18):
        if round_ == 17:
            time.sleep(LATE_AFTER)  # what the chain has not told by now is late
        sell(client, chain, 200)
        ages, incomes = rng.uniform(18, 90, 200), rng.uniform(0, 250_000, 200)
        learn(client, "prices", np.column_stack([ages, incomes]), shop(rng))
    for _ in range(3):
        learn(client, "bids", rng.uniform(0, 24, (200, 1)), auction(rng))
    learn(client, "bids", rng.uniform(0, 24, (1, 1)), lambda *_: 1e6)
    return chain


def sell(client: httpx.Client, chain: Chain, days: int) -> None:
    """So many days of the chain."""
    learn(client, NAME, chain.stores(days), lambda x, y: chain.day(x, y).paid)


def shop(rng: np.random.Generator) -> Callable[..., float]:
    def paid(context: Any, decision: Any) -> float:
        best = 2.5 + 2.0 * (context[0] > 50) + 3.0 * (context[1] > 125_000)
        return float(5.0 - 0.5 * (decision[0] - best) ** 2 + 0.5 * rng.normal())

    return paid


def auction(rng: np.random.Generator) -> Callable[..., float]:
    def paid(context: Any, decision: Any) -> float:
        best = 7.0 if 8 < context[0] < 18 else 3.0
        return float(3.0 - 0.2 * (decision[0] - best) ** 2 + 0.5 * rng.normal())

    return paid


def learn(client: httpx.Client, name: str, contexts: Any, paid: Callable[..., float]) -> None:
    """Ask for each context, and tell all payoffs but a few: some are lost, some do not come."""
    path = f"/v1/experiments/{name}"
    asked = client.post(f"{path}/decisions", json={"contexts": contexts.tolist()})
    answers = zip(contexts, asked.raise_for_status().json()["decisions"], strict=True)
    told = [
        {"id": one["id"], "payoff": paid(x, np.array(list(one["decision"].values())))}
        for x, one in answers
    ]
    lost = [one["id"] for one in told[7::50]]
    silent = [one["id"] for one in told[29::90]]
    rest = [one for one in told if one["id"] not in (*lost, *silent)]
    client.post(f"{path}/payoffs", json={"payoffs": rest}).raise_for_status()
    if lost:
        client.post(f"{path}/forget", json={"ids": lost}).raise_for_status()


def taken(
    browser: Browser, client: httpx.Client, chain: Chain, path: str, look: dict[str, Any]
) -> Image.Image:
    """A picture of a view, with what a visitor does there first."""
    with opened(browser, str(client.base_url).rstrip("/"), **look) as tab:
        tab.page.emulate_media(reduced_motion="reduce")  # what has just arrived does not stand out
        page = tab.go(path)
        if path == f"experiments/{NAME}":
            for days in (4, 3, 5):
                sell(client, chain, days)
            page.locator(".live tbody tr").nth(9).wait_for()
        if path.endswith("/learned"):
            page.get_by_label("Along", exact=True).select_option(label="income ($)")
        if path.endswith("/bins"):
            choose_a_bin(page, colour="best price ($)")
        page.mouse.move(0, 0)
        page.wait_for_timeout(500)
        whole = Image.open(BytesIO(page.screenshot(full_page=True))).convert("RGB")
    return whole.quantize(COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)


def choose_a_bin(page: Page, colour: str) -> None:
    page.get_by_label("Colour").select_option(label=colour)
    page.locator(".map canvas").last.click(position={"x": 300, "y": 80})
    page.get_by_role("button", name="Freeze this bin").wait_for()


if __name__ == "__main__":
    main()
