"""How quickly the page is there with 1,000 bins, and how smoothly it moves with 10,000.

python -m benchmarks.page [--write docs/page.md]
"""

import argparse
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page

import continuarm as ca
from tests.browser import LIGHT, launched
from tests.service import Server

SIDES = {"1,000": 32, "10,000": 100}  # bins along each of two contexts
TRIES = 3
FRAMES = 120  # of a pointer that crosses the map
PLACE = re.compile(r"(?<=<!-- python -m benchmarks.page -->\n).*?(?=\n<!-- end -->)", re.S)
COUNT_FRAMES = """() => {
  window.frames_ = [];
  let last = performance.now();
  const next = (now) => {
    window.frames_.push(now - last);
    last = now;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}"""


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    write = parser.parse_args().write
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "many.db"
        for side in SIDES.values():
            ca.share(learned(side), store, f"bins-{side}").policy()
        with Server(store) as server, launched() as browser:
            text = table(browser, str(server.client.base_url).rstrip("/"))
    print(text)
    if write is not None:
        write.write_text(PLACE.sub(text, write.read_text()))


def learned(side: int) -> ca.Policy:
    """A policy with a payoff in each of side × side bins."""
    policy = ca.Policy(
        ca.Box([18, 0], [90, 2.5e5], names=["age", "income"]),
        ca.Box([1, 0], [9, 4], names=["price", "fee"]),
        partition=ca.Grid(bins=side),
        learner=ca.ResponseSurface(),
        rng=0,
    )
    rng = np.random.default_rng(0)
    parts = (np.indices((side, side)).reshape(2, -1).T + 0.5) / side
    for context in policy.context.from_unit(parts):
        policy.tell(policy.ask(context), float(rng.normal()))
    return policy


def table(browser: Browser, base: str) -> str:
    """A row per number of bins."""
    rows = [
        "| bins | first paint | all bins drawn | frame, median | frame, 99 % within |",
        "|---|---|---|---|---|",
    ]
    for name, side in SIDES.items():
        tries = [tried(browser, f"{base}/#/experiments/bins-{side}/bins") for _ in range(TRIES)]
        paint, drawn = (float(np.median([one[k] for one in tries])) for k in ("paint", "drawn"))
        frames = np.concatenate([one["frames"] for one in tries])
        middle, last = np.quantile(frames, [0.5, 0.99])
        rows.append(
            f"| {name} | {paint:.0f} ms | {drawn:,.0f} ms | {middle:.0f} ms | {last:.0f} ms |"
        )
    return "\n".join(rows)


def tried(browser: Browser, address: str) -> dict[str, Any]:
    """Open the map in a new profile, and let the pointer cross it while frames are counted."""
    context = browser.new_context(**LIGHT)
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(".view:not([aria-busy]) .map canvas", timeout=120_000)
    drawn = page.evaluate("performance.now()")
    [paint] = page.evaluate(
        "performance.getEntriesByName('first-contentful-paint').map((e) => e.startTime)"
    )
    found = {"paint": paint, "drawn": drawn, "frames": frames(page)}
    context.close()
    return found


def frames(page: Page) -> Any:
    """Milliseconds between two frames, while the pointer crosses the map."""
    box = page.locator(".map canvas").last.bounding_box()
    assert box is not None
    page.evaluate(COUNT_FRAMES)
    for k in range(FRAMES):
        part = k / FRAMES
        page.mouse.move(box["x"] + 70 + part * (box["width"] - 90), box["y"] + 20 + 300 * part)
    return np.array(page.evaluate("window.frames_")[2:])


if __name__ == "__main__":
    main()
