"""Settings of the tools that the tests use, and registries that no test leaves changed."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from continuarm.live import registry as kinds
from continuarm.live.named import by_name
from continuarm.problems import registry as worlds

settings.register_profile("shared-machine", deadline=None, derandomize=True)
settings.load_profile("shared-machine")

REGISTRIES: tuple[dict[str, Any], ...] = (kinds._kinds, by_name._makers, worlds._entries)


@pytest.fixture(autouse=True)
def _registries_as_they_were() -> Iterator[None]:
    before = [dict(entries) for entries in REGISTRIES]
    yield
    for entries, kept in zip(REGISTRIES, before, strict=True):
        entries.clear()
        entries.update(kept)
