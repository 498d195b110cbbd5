"""Walking through the bins of an experiment, page by page, as they were when the walk began.

Making the list of all bins takes as long as showing some thousand of them, so the pages of a walk
share one. A walk begins with the first page: that one is always of now.
"""

import time
from threading import Lock
from typing import NamedTuple

from continuarm.live.decision import Bin
from continuarm.live.policy import Policy
from continuarm.service import seen, shown
from continuarm.service.reads import Read
from continuarm.service.running import Running

__all__ = ["Walks"]

MOST = 4  # walks at once, the last ones
PATIENCE = 10.0  # seconds after its last page


class _Walk(NamedTuple):
    policy: Policy
    bins: list[Bin]
    position: int
    until: float


class Walks:
    """The walks that go on."""

    def __init__(self) -> None:
        self._begun: dict[Running, _Walk] = {}
        self._lock = Lock()

    def page(self, read: Read, running: Running, after: int, most: int) -> shown.Bins:
        """So many bins after a number."""
        walk = self._walk(running, is_first=after == 0)
        later, page = [one for one in walk.bins if one.id > after], list[shown.BinSays]()
        for one in later[:most]:
            read.goes_on()
            page.append(seen.bin_seen(walk.policy, one))
        goes_on = len(later) > most
        self._keep(running, walk if goes_on else None)
        return shown.Bins(page, len(walk.bins), page[-1].id if goes_on else None)

    def _walk(self, running: Running, *, is_first: bool) -> _Walk:
        with self._lock:
            walk = self._begun.get(running)
        now, position = time.monotonic(), running.replica.position
        if walk is not None and now < walk.until and (walk.position == position or not is_first):
            return walk
        policy = running.policy()
        return _Walk(policy, policy.bins(), position, now)

    def _keep(self, running: Running, walk: _Walk | None) -> None:
        """Keep the walk for its next page; the last page ends it."""
        with self._lock:
            self._begun.pop(running, None)
            if walk is not None:
                self._begun[running] = walk._replace(until=time.monotonic() + PATIENCE)
                for old in list(self._begun)[:-MOST]:
                    del self._begun[old]
