"""ClockWatch: whether the clock of a store has jumped, and which ledgers are ahead of it."""

import time
from collections.abc import Iterable
from typing import NamedTuple

from continuarm.ledger.clock import FAR
from continuarm.live.diagnosis.findings import Finding
from continuarm.service.running import Running
from continuarm.store.protocol import Store

__all__ = ["ClockWatch"]

SHOWN = 3600.0  # seconds for which a jump is an alarm
MEASURE = "seconds that the ledger's time is ahead of the clock"


class _Seen(NamedTuple):
    """What the store's clock showed at a moment of this process."""

    clock: float
    at: float

    def now(self) -> float:
        """What it shows now, if it has not jumped since."""
        return self.clock + time.monotonic() - self.at


class ClockWatch:
    """Compares the store's clock with one that cannot jump, and with the times of ledgers.

    jump : seconds by which the clock has jumped last; 0: not within the last hour.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: _Seen | None = None
        self._jump = 0.0
        self._jumped_at = 0.0

    def look(self) -> None:
        """Read the store's clock."""
        seen = _Seen(self._store.clock(), time.monotonic())
        if self._seen is not None and abs(seen.clock - self._seen.now()) > FAR:
            self._jump = seen.clock - self._seen.now()
            self._jumped_at = seen.at
        self._seen = seen

    @property
    def jump(self) -> float:
        """See the class."""
        return self._jump if time.monotonic() - self._jumped_at < SHOWN else 0.0

    def ahead(self, running: Running) -> float:
        """By how many seconds the newest record is later than a record of now would be."""
        if self._seen is None:
            return 0.0
        replica = running.replica
        return max(replica.time - replica.life.clock_offset - self._seen.now(), 0.0)

    def finding(self, running: Running) -> Finding | None:
        """What a diagnosis says of it, if the ledger is far ahead."""
        ahead = self.ahead(running)
        if ahead <= FAR:
            return None
        advice = (
            "Nothing expires until the clock has caught up. If the clock is right now, run "
            f"`continuarm clock {running.name} --set`."
        )
        return Finding(
            level="serious",
            name="clock",
            where="overall",
            evidence=ahead,
            measure=MEASURE,
            advice=advice,
        )

    def alarms(self, running: Iterable[Running]) -> list[str]:
        """What somebody should look at, a line each."""
        found = [f"the store's clock has jumped by {self.jump:+,.0f} s"] if self.jump else []
        for one in running:
            ahead = self.ahead(one)
            if ahead > FAR:
                found.append(
                    f"{one.name!r}: its time is {ahead:,.0f} s ahead of the clock: "
                    f"`continuarm clock {one.name} --set` if the clock is right"
                )
        return found
