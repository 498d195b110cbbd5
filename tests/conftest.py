"""Settings of the tools that the tests use, and registries that no test leaves changed."""

from collections import deque
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import settings
from playwright.sync_api import Browser

from continuarm.core.state import ROWS_USED, State
from continuarm.live import registry as kinds
from continuarm.live.gate import keep_through_forks
from continuarm.live.named import by_name
from continuarm.problems import registry as worlds
from tests import postgresql
from tests.browser import LIGHT, Tab, launched, opened

settings.register_profile("shared-machine", deadline=None, derandomize=True)
settings.load_profile("shared-machine")

REGISTRIES: tuple[dict[str, Any], ...] = (kinds._kinds, by_name._makers, worlds._entries)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for the tests of one file."""
    with launched() as running:
        yield running


@pytest.fixture
def tab(browser: Browser, service: httpx.Client) -> Iterator[Tab]:
    """A tab on the service of a file."""
    with opened(browser, str(service.base_url).rstrip("/"), **LIGHT) as found:
        yield found


@pytest.fixture(scope="session")
def server() -> Iterator[postgresql.Server]:
    """A PostgreSQL of these tests' own."""
    with postgresql.Server() as running:
        yield running


@pytest.fixture(autouse=True)
def _registries_as_they_were() -> Iterator[None]:
    before = [dict(entries) for entries in REGISTRIES]
    yield
    for entries, kept in zip(REGISTRIES, before, strict=True):
        entries.clear()
        entries.update(kept)


@pytest.fixture(autouse=True)
def _no_state_holds_a_nan(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After every test, walk the states of the policies that it has made, the last hundred."""
    lives: deque[Any] = deque(maxlen=100)

    def keep(policy: Any) -> None:
        lives.append(policy.life)
        keep_through_forks(policy)

    monkeypatch.setattr("continuarm.live.shell.keep_through_forks", keep)
    yield
    for life in lives:
        assert not has_nan(life.model.state), life.model.state


def has_nan(state: State) -> bool:
    """Whether a number of a state is none; nodes may be whole numbers in disguise."""
    counts, _, rows, pool, notes = state
    used = rows[: int(counts[ROWS_USED])], pool[: int(pool[0, 1])]
    found = any(bool(np.isnan(array).any()) for array in (counts, *used))
    return found or not np.isfinite(notes).all()
