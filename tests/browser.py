"""A real Chromium, cut off from everything but one server, that forgives no error of a page."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

__all__ = ["DARK", "LIGHT", "PHONE", "Tab", "launched", "opened"]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
LIGHT: dict[str, Any] = {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}}
DARK: dict[str, Any] = LIGHT | {"color_scheme": "dark"}
PHONE: dict[str, Any] = {"color_scheme": "light", "viewport": {"width": 360, "height": 740}}
REFUSED = "Failed to load resource"  # what a browser says of every answer above 399
INSTALL = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium"]


def chromium() -> str:
    """Where Debian's Chromium is; installed if it is missing and we may."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-q"], check=True, capture_output=True)
        subprocess.run(INSTALL, check=True, capture_output=True)
        found = shutil.which("chromium")
    assert found, f"the page is tested in Chromium: run `sudo {' '.join(INSTALL)}`"
    return found


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser with a profile of its own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        browser.close()


class Tab:
    """A page of a server, and all that went wrong in it."""

    def __init__(self, page: Page, base: str) -> None:
        self.page, self.base = page, base
        self.errors: list[str] = []
        self.refusals = False
        page.set_default_timeout(15_000)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._requested)

    def _heard(self, message: ConsoleMessage) -> None:
        if self.refusals and message.text.startswith(REFUSED):
            return
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _requested(self, request: Request) -> None:
        if not request.url.startswith((self.base, "blob:", "data:", "about:")):
            self.errors.append(f"another host was asked: {request.url}")

    def go(self, path: str = "") -> Page:
        """Show a view, and wait until it is there."""
        self.page.goto("about:blank")  # a new # alone loads nothing
        self.page.goto(f"{self.base}/#/{path}")
        self.page.wait_for_selector(".view:not([aria-busy])")
        return self.page

    def forgive_refusals(self) -> None:
        """The server was meant to refuse something: that is no error, also if it is heard late."""
        self.refusals = True
        self.errors = [text for text in self.errors if not text.startswith(REFUSED)]

    def check_refused(self) -> None:
        """The same, where the server was meant to refuse something."""
        self.forgive_refusals()
        self.check()

    def check(self) -> None:
        """Nothing went wrong, nothing is wider than the screen, and axe finds no violation."""
        assert not self.errors, self.errors
        wider = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0, f"the page is {wider} px wider than the screen"
        found = Axe().run(self.page)
        assert found.violations_count == 0, found.generate_report()


@contextmanager
def opened(browser: Browser, base: str, **look: Any) -> Iterator[Tab]:
    """A tab of its own; at the end nothing must have gone wrong."""
    context = browser.new_context(**look)
    tab = Tab(context.new_page(), base)
    yield tab
    assert not tab.errors, tab.errors
    context.close()
