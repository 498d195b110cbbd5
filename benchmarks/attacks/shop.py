"""A shop that asks and tells over HTTP meanwhile, and notes each answer in a log of its own."""

import http.client
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Any, Self

from benchmarks.attacks.acknowledged import Asked, Log
from benchmarks.attacks.result import Defect, Tally

__all__ = ["Shop", "until"]

LANES, BATCH = 4, 3
REST = 0.01  # seconds between two requests of a lane, on average
AGAIN = 0.02  # seconds before what was not answered is tried again
TIMEOUT = 5.0  # seconds until a customer asks another server


def until(holds: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    """Wait for something, which must come."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise Defect(f"within {seconds:g} s {what} must be, but is not")
        time.sleep(0.01)


class Shop:
    """Customers of some servers of one store.

    A request that was cut off, or answered by a 503, is made again with the same keys, of any
    server. Some are made twice. What is answered otherwise is wrong, and a Defect at the end.

    tally : what is answered is added to it at the end.
    may_expire : whether a payoff may come too late.
    """

    def __init__(
        self,
        ports: list[int],
        log: Log,
        tally: Tally,
        *,
        name: str = "prices",
        token: str | None = None,
        lanes: int = LANES,
        timeout: float = TIMEOUT,
        may_expire: bool = False,
    ) -> None:
        self._tally, self._may_expire = tally, may_expire
        self.ports, self.log, self.name = ports, log, name
        self.statuses: Counter[int] = Counter()
        self.decisions, self.payoffs, self.pause, self.slowest = 0, 0, 0.0, 0.0
        self.wrong: list[str] = []
        self._headers = {"content-type": "application/json"}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        self._timeout, self._stop, self._lock = timeout, Event(), Lock()
        self._last = time.monotonic()
        lanes_ = range(lanes)
        self._threads = [Thread(target=self._lane, args=(k,), daemon=True) for k in lanes_]

    def __enter__(self) -> Self:
        self._last = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._answered(0, 0)  # the pause that it ends with
        self._stop.set()
        for thread in self._threads:
            thread.join(60.0 + self._timeout)
        tally = self._tally
        tally.decisions += self.decisions
        tally.payoffs += self.payoffs
        tally.statuses += self.statuses
        tally.failures += self.statuses[500]
        tally.wrong += len(self.wrong)
        tally.pause = max(tally.pause or 0.0, self.pause)
        if self.wrong and kind is None:
            raise Defect(f"{len(self.wrong)} answers are wrong: {self.wrong[0]}")

    def rest(self, seconds: float) -> None:
        """Let it go on for a while."""
        self._stop.wait(seconds)

    def until_more(self, count: int = 20, seconds: float = 120.0) -> None:
        """Wait until so many more decisions were answered."""
        wanted = self.decisions + count
        until(lambda: self.decisions >= wanted, f"{count} more decisions", seconds)

    def _lane(self, number: int) -> None:
        rng, open_ = random.Random(), dict[str, float]()
        lane = _Lane(self, rng)
        for k in range(10**9):
            if self._stop.is_set():
                break
            keys = [f"{rng.getrandbits(64):x}-{number}-{k}-{j}" for j in range(BATCH)]
            contexts = [[rng.uniform(18, 90), rng.uniform(0, 250_000)] for _ in keys]
            asked = {"contexts": contexts, "keys": keys}
            for _ in range(rng.choice((1, 1, 2))):
                found = lane.post("decisions", asked, self._stop)
                if found is not None:
                    self._note_decisions(keys, found["decisions"], open_)
            chosen = rng.sample(sorted(open_), min(len(open_), rng.randint(0, BATCH + 1)))
            told = {id_: open_[id_] for id_ in chosen}
            closings = [{"id": id_, "payoff": payoff} for id_, payoff in told.items()]
            found = lane.post("payoffs", {"payoffs": closings}, self._stop) if told else None
            if found is not None:
                self._note_payoffs(told, found["closed"], open_, rng)
            self._stop.wait(rng.uniform(0.0, 2 * REST))
        lane.leave()

    def _note_decisions(
        self, keys: list[str], answers: list[Any], open_: dict[str, float]
    ) -> None:
        if not all(answer.get("id") for answer in answers):
            self.wrong.append(f"{keys}: {answers}")
            return
        known = [
            Asked(answer["id"], key, list(answer["decision"].values()))
            for key, answer in zip(keys, answers, strict=True)
        ]
        self.log.asked(self.name, known)
        for one in known:
            open_.setdefault(one.id, random.random())
        self._answered(len(known), 0)

    def _note_payoffs(
        self, told: dict[str, float], closed: list[Any], open_: dict[str, float], rng: Any
    ) -> None:
        refused = [one for one in closed if not one["done"]]
        if self._may_expire:
            refused = [one for one in refused if one["refused"]["error"] != "expired"]
        if refused:
            self.wrong.append(str(refused[0]))
        done = {one["id"]: told[one["id"]] for one in closed if one["done"]}
        self.log.told(self.name, done)
        for one in closed:
            if rng.random() < 0.8 or not one["done"]:  # the others are told again
                del open_[one["id"]]
        self._answered(0, len(done))

    def _answered(self, decisions: int, payoffs: int) -> None:
        with self._lock:
            now = time.monotonic()
            self.pause, self._last = max(self.pause, now - self._last), now
            self.decisions += decisions
            self.payoffs += payoffs


class _Lane:
    """One customer's connection, to another server after each try that failed."""

    def __init__(self, shop: Shop, rng: random.Random) -> None:
        self._shop, self._rng = shop, rng
        self._connection: http.client.HTTPConnection | None = None

    def post(self, verb: str, body: object, stop: Event) -> Any:
        """The answer of any server; None when the shop closes before."""
        while not stop.is_set():
            began = time.monotonic()
            with suppress(OSError, http.client.HTTPException):
                status, content = self._tried(verb, body)
                self._shop.statuses[status] += 1
                self._shop.slowest = max(self._shop.slowest, time.monotonic() - began)
                if status == 200:
                    return json.loads(content)
                if status not in (500, 503):
                    self._shop.wrong.append(f"{verb}: {status}: {content[:300]!r}")
            self.leave()
            stop.wait(AGAIN)
        return None

    def _tried(self, verb: str, body: object) -> tuple[int, bytes]:
        shop = self._shop
        if self._connection is None:
            port = self._rng.choice(shop.ports)
            self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=shop._timeout)
        path = f"/v1/experiments/{shop.name}/{verb}"
        self._connection.request("POST", path, json.dumps(body), shop._headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def leave(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
