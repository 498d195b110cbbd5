"""Days of the chain, one after the other: prices out, profits back, some late, some lost."""

import heapq
import time
from collections import deque
from typing import Any

import numpy as np

from continuarm.demo.chain import NAME, Chain, Day
from continuarm.demo.ending import Ending
from continuarm.demo.serving import served

__all__ = ["demonstrate"]

PACE = 25.0  # decisions a second
TICK = 0.2  # seconds
MOST_AT_ONCE = 1000
LATELY = 1000  # days
SAY_EVERY = 1.0  # seconds


def demonstrate(
    say: Any, ending: Ending, *, port: int, speed: float, decisions: int | None, seed: int
) -> None:
    """Let the chain learn its prices until so many decisions are made, or for ever.

    say : called with (text, lasting): what is not lasting may be written over.
    ending : looked at on the way.
    speed : times the pace of 25 decisions a second.
    """
    say("compiling, half a minute the first time …", False)
    chain = Chain(seed)
    with served(port, ending) as client:
        made = client.put(f"/v1/experiments/{NAME}", json=chain.experiment())
        made.raise_for_status()
        say(f"{client.base_url} shows what it learns; Ctrl-C ends it and leaves nothing", True)
        say("pace · profit per visitor, against the incumbent [95 %]; of the best possible", True)
        run = Run(chain, client)
        try:
            run.go(say, ending, PACE * speed, decisions)
        except KeyboardInterrupt:
            pass
        say(run.summary(), True)


class Run:
    """What was asked and told so far."""

    def __init__(self, chain: Chain, client: Any) -> None:
        self._chain, self._client = chain, client
        self._due: list[tuple[float, str, float]] = []  # when a payoff comes, of which decision
        self._ours: deque[Day] = deque(maxlen=LATELY)
        self._asked, self._began = 0, time.monotonic()

    def go(self, say: Any, ending: Ending, pace: float, decisions: int | None) -> None:
        """Ask and tell at this pace."""
        said = -SAY_EVERY
        while decisions is None or self._asked < decisions:
            ending.look()
            passed = time.monotonic() - self._began
            wanted = int(pace * passed) + 1 - self._asked
            left = wanted if decisions is None else min(wanted, decisions - self._asked)
            if left > 0:
                self._ask(min(left, MOST_AT_ONCE))
            self._tell(time.monotonic())
            if passed - said >= SAY_EVERY:
                say(self.line(), False)
                said = passed
            time.sleep(max(TICK - (time.monotonic() - self._began - passed), 0.0))
        self._tell(float("inf"))

    def _post(self, verb: str, body: dict[str, Any]) -> Any:
        answer = self._client.post(f"/v1/experiments/{NAME}/{verb}", json=body)
        answer.raise_for_status()
        return answer.json()

    def _ask(self, count: int) -> None:
        stores = self._chain.stores(count)
        answers = self._post("decisions", {"contexts": stores.tolist()})["decisions"]
        lost = []
        for store, answer in zip(stores, answers, strict=True):
            day = self._chain.day(store, np.array(list(answer["decision"].values())))
            seconds = self._chain.delay()
            if seconds is None:
                lost.append(answer["id"])
            else:
                due = time.monotonic() + seconds
                heapq.heappush(self._due, (due, answer["id"], day.paid))
            if answer["role"] != "incumbent":
                self._ours.append(day)
        if lost:
            self._post("forget", {"ids": lost})
        self._asked += count

    def _tell(self, now: float) -> None:
        """Tell what has come by now."""
        while self._due and self._due[0][0] <= now:
            told: list[dict[str, Any]] = []
            while self._due and self._due[0][0] <= now and len(told) < MOST_AT_ONCE:
                _, id_, payoff = heapq.heappop(self._due)
                told.append({"id": id_, "payoff": payoff})
            self._post("payoffs", {"payoffs": told})

    def line(self) -> str:
        """How it fares now, in less than 80 letters."""
        rate = self._asked / max(time.monotonic() - self._began, 1e-9)
        text = f"{self._asked:,} decision{'s' * (self._asked != 1)}, {rate:,.0f}/s"
        if not self._ours:
            return text
        paid, mean, best, _ = np.mean(self._ours, axis=0)
        uplift = self._uplift() or "too few to compare"
        return f"{text} · {paid:.2f} ¢/visitor, {uplift}; {mean / best:.1%} of the best"

    def _uplift(self) -> str | None:
        """How much better it is than the incumbent, by the service's own measurement."""
        found = self._client.get(f"/v1/experiments/{NAME}/uplift").json()["percent"]
        if found is None:
            return None
        return f"{found['estimate']:+.1f} % [{found['low']:+.1f}, {found['high']:+.1f}]"

    def _compared(self) -> str:
        uplift = self._uplift()
        if uplift is None:
            return "not known yet; it waits for more payoffs, ours and the incumbent's"
        return f"{uplift} over all decisions, 95 % at every look"

    def summary(self) -> str:
        """How it has fared."""
        counts = self._client.get(f"/v1/experiments/{NAME}").json()["counts"]
        lines = [
            f"{counts['decisions']:,} decisions: {counts['payoffs']:,} payoffs, "
            f"{counts['open']:,} open, {counts['late']:,} late, {counts['lost']:,} lost"
        ]
        if self._ours:
            paid, mean, best, today = np.mean(self._ours, axis=0)
            lines += [
                f"profit per visitor: {paid:.2f} cents lately",
                f"against the incumbent: {self._compared()}",
                f"against the best possible: {mean / best:.1%} of it lately, "
                f"the incumbent {today / best:.1%}",
            ]
        return "\n".join(lines)
