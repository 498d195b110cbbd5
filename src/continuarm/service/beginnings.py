"""What the first payoffs of an experiment were, from its ledger: they stay what they were.

The history of a policy holds ever more payoffs together, so it does not know them for long.
"""

import json
from statistics import fmean, stdev
from threading import Lock
from weakref import WeakKeyDictionary

from continuarm.live.events import NAMES, Told
from continuarm.service import shown
from continuarm.service.running import Running

__all__ = ["FIRST", "Beginnings"]

TOLD = NAMES[Told]
FIRST = 100  # payoffs
MOST = 20_000  # records that are looked through at once


class _Beginning:
    """The first payoffs, as far as the ledger was looked through."""

    def __init__(self) -> None:
        self.payoffs, self.position = list[float](), 0

    def look(self, running: Running) -> None:
        until = self.position + MOST
        while len(self.payoffs) < FIRST and self.position < until:
            records = running.store.read(running.name, self.position)
            told = (record for record in records if record.kind == TOLD)
            self.payoffs += [float(json.loads(record.body)["payoff"]) for record in told]
            if not records:
                break
            self.position = records[-1].position
        del self.payoffs[FIRST:]


class Beginnings:
    """Those of the experiments of this process."""

    def __init__(self) -> None:
        self._found: WeakKeyDictionary[Running, _Beginning] = WeakKeyDictionary()
        self._lock = Lock()

    def of(self, running: Running, erased: int) -> shown.Mean | None:
        """The mean of the first payoffs; None: the ledger does not have them, or there are none.

        erased : positions of the ledger that a purge has erased.
        """
        with self._lock:
            found = self._found.setdefault(running, _Beginning())
            if len(found.payoffs) < FIRST and (found.position > 0 or erased == 0):
                found.look(running)
            payoffs = found.payoffs
        if not payoffs:
            return None
        error = stdev(payoffs) / len(payoffs) ** 0.5 if len(payoffs) > 1 else None
        return shown.Mean(len(payoffs), fmean(payoffs), error)
