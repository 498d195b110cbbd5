"""Running: one experiment in this process: a replica that follows its ledger, and its desk."""

import asyncio
import time
from collections.abc import Sequence
from threading import Event, Thread
from typing import Any

from continuarm.core.compiling import Array
from continuarm.errors import ContinuarmError, UnavailableError
from continuarm.ledger.desk import Desk
from continuarm.ledger.entries import TIME_PASSED
from continuarm.ledger.replica import Replica
from continuarm.live.decision import Decision
from continuarm.live.gate import Gate
from continuarm.live.limits import within_of
from continuarm.live.policy import Policy
from continuarm.service.groups import AsyncGroups
from continuarm.store.protocol import Store
from continuarm.store.records import Entry

__all__ = ["Running"]

LOOK = 0.5  # seconds after which the follower looks, whatever it was told
AGAIN = 0.2  # seconds before a store that does not answer is asked again
AT_ONCE = 50  # records that are folded before a request may come between


class Running:
    """An experiment that is decided in here.

    max_lag : seconds without news of the ledger after which nothing is decided.
    """

    def __init__(self, store: Store, name: str, max_lag: float) -> None:
        self.store, self.name, self.max_lag = store, name, max_lag
        self.replica, self.gate = Replica(store, name), Gate()
        self.desk, self.groups = Desk(self.replica), AsyncGroups(store, name)
        self.context, self.decision = self.desk.context, self.desk.decision
        self.desk.take_number()  # no request waits for the store's lock, nor for the compiler
        self.desk.policy().warm_up()
        self.replica.catch_up()
        self.current_at, self._stop = time.monotonic(), Event()
        self._follower = Thread(target=self._follow, name=f"follow {name}", daemon=True)
        self._follower.start()

    def _follow(self) -> None:
        """Fold what is appended, until the end."""
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self.store.wait(self.name, self.replica.position, LOOK)
                while self.gate.alone(self.replica.fold_some, AT_ONCE):
                    pass
                self.current_at = began
            except UnavailableError:
                self._stop.wait(AGAIN)

    @property
    def is_closed(self) -> bool:
        """Whether it follows no more."""
        return self._stop.is_set()

    def close(self) -> None:
        """Follow no more."""
        self._stop.set()
        self._follower.join()

    @property
    def lag(self) -> float:
        """Seconds since this replica was known to be at the ledger's head."""
        return time.monotonic() - self.current_at

    def refuse_if_behind(self) -> None:
        """Decide nothing from a state that is too old."""
        if self.lag > self.max_lag:
            raise UnavailableError(
                f"a server decides within {self.max_lag:g} s of its ledger, but is "
                f"{self.lag:.1f} s behind"
            )

    def stats(self) -> dict[str, float]:
        """How it fares, in numbers."""
        opened, (payoffs, bins) = self.replica.life.open, self.replica.life.model.learned
        told, forgotten, expired = opened.closed.counts[1:]
        return {
            "asked": opened.asked,
            "told": told,
            "forgotten": forgotten,
            "expired": expired,
            "open": len(opened.open) - len(opened.held),
            "payoffs_learned": payoffs,
            "bins_made": bins,
            "events_folded": self.replica.position,
            "lag_seconds": self.lag,
        }

    async def ask(
        self, contexts: Sequence[Any], within: Any, keys: Sequence[str | None]
    ) -> list[Decision | ContinuarmError]:
        """A decision for each context, or why there is none."""
        self.refuse_if_behind()
        limits = None if within is None else within_of(within, self.decision)
        answers: list[Any] = [_tried(self.context.point, context) for context in contexts]
        wanted = [k for k, point in enumerate(answers) if not isinstance(point, ContinuarmError)]
        asked = [(answers[k], limits, keys[k]) for k in wanted]
        due, entries = self.gate.alone(self._entries, asked)
        found = (await self.groups.append([*due, *entries]))[len(due) :]
        for k, outcome in zip(wanted, found, strict=True):
            answers[k] = _tried(self.desk.answer, outcome, answers[k], limits)
        return answers

    def _entries(self, asked: list[Any]) -> tuple[list[Entry], list[Entry]]:
        """What is over its time, and the decisions."""
        return self.desk.due(), [self.desk.asked(*request) for request in asked]

    async def close_all(self, entries: Sequence[Entry]) -> list[ContinuarmError | None]:
        """Close decisions; for each, why it could not be, if so."""
        outcomes = await self.groups.append(entries)
        return [
            _tried(self.desk.closed, entry, outcome)
            for entry, outcome in zip(entries, outcomes, strict=True)
        ]

    async def pass_time(self) -> None:
        """Give up on what is over its time to live, by the store's clock."""
        entries = self.gate.alone(self._over)
        if entries:
            await self.groups.append(entries)

    def _over(self) -> list[Entry]:
        """What is over its time; or that time has passed, where by our clock something may be."""
        life = self.replica.life
        timed = life.beginning.waiting.ttl_seconds is not None
        entries = self.desk.due()
        if timed and not entries and life.open.is_due(time.time()):
            return [Entry(TIME_PASSED, "{}")]
        return entries

    def recommend(self, context: Any, within: Any = None) -> Array:
        """The best decision known now."""
        limits = None if within is None else within_of(within, self.decision)
        point = self.context.point(context)[None, :]
        found: Array = self.gate.alone(self.replica.life.recommend, point, limits)[0]
        return found

    def policy(self) -> Policy:
        """A copy of the policy, to look into."""
        return self.gate.alone(self.desk.policy)

    async def steer(self, verb: str, *given: Any) -> None:
        """Let a verb that steers the policy happen, in all processes."""
        entries = await asyncio.to_thread(self.gate.alone, self.desk.steered, verb, *given)
        if entries:
            await self.groups.append(entries)


def _tried(work: Any, *given: Any) -> Any:
    """What some work answers, or the error."""
    try:
        return work(*given)
    except ContinuarmError as error:
        return error
