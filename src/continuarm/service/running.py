"""Running: one experiment in this process: a replica that follows its ledger, and its desk."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from continuarm.background import Task
from continuarm.core.compiling import Array
from continuarm.errors import ContinuarmError, StoreError, UnavailableError
from continuarm.ledger.desk import MOST_DUE, Desk, Steered, Written
from continuarm.ledger.entries import TIME_PASSED
from continuarm.ledger.log_learning import LogLearning
from continuarm.ledger.replica import Replica
from continuarm.live.decision import Decision
from continuarm.live.gate import Gate
from continuarm.live.limits import Within, within_of
from continuarm.live.policy import Policy
from continuarm.service.fields import about
from continuarm.service.groups import Together, Waiting
from continuarm.service.helpers import Helpers, in_thread
from continuarm.service.making import Making, Wish, is_late, late, tried
from continuarm.store.protocol import Store, TurnTakenError
from continuarm.store.records import Appended, Entry, Outcome, Record
from continuarm.store.rules import storable

__all__ = ["MAX_BEHIND", "Running"]

QUIET = 0.005  # seconds after an append in which nobody need look for what others appended
BUSY = 0.1  # the same while the next append is on its way: it may bring no news
MAX_BEHIND = 20_000  # events
QUICK = 0.002  # seconds that the event loop may wait for the disk
AT_ONCE = 50  # records that are folded before a request may come between
LOOK = 0.01  # seconds between two looks whether a log is learned
LEARNING = 30.0  # seconds that who steers waits for a log
NEWS = 20  # times as many of them that a request waits for


class Running:
    """An experiment that is decided in here.

    helpers : threads that it shares with others; by default they are its own.
    max_lag : seconds without news of the ledger after which nothing is decided.
    max_behind : events of the ledger that may be not folded yet when something is decided.
    clips : whether contexts outside their box are clipped.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        max_lag: float,
        max_behind: int = MAX_BEHIND,
        *,
        helpers: Helpers | None = None,
    ) -> None:
        self.store, self.name, self.max_lag, self.max_behind = store, name, max_lag, max_behind
        self.replica, self.gate = Replica(store, name), Gate()
        self.desk, self._together = Desk(self.replica), Together(self._settle)
        self.context, self.decision = self.desk.context, self.desk.decision
        self.clips = json.loads(store.experiment(name).settings).get("outside") == "clip"
        self.desk.policy().warm_up()  # no request waits for the compiler
        self.replica.catch_up()
        self._head = self.replica.position  # of the ledger, as far as is known
        self.current_at, self.is_closed = time.monotonic(), False
        self._appending, self._disk_is_quick = False, False
        self._unwritten: tuple[float, str] | None = None  # since when nothing is appended, and why
        self._passing_at = 0.0  # when it may be said again that time has passed
        self._keeping, self._logs = Task("snapshots", name), Task("logs", name)
        self._seen: object = None  # of the store, when nothing was left to be folded
        self._helpers, self._are_own = helpers or Helpers(store), helpers is None
        self._making = Making(self.desk, self.gate, self._helpers.deciders)
        self.replica.aside = self._learn_aside
        self._helpers.follower.add(self)

    @property
    def is_current(self) -> bool:
        """Whether this process appends now, or has just done so: who appends folds, too."""
        return self.lag < (BUSY if self._appending else QUIET)

    def follow(self, head: int, at: float) -> None:
        """Fold what was appended up to a head, which was known at a time."""
        self._head = max(self._head, head)
        before = self.replica.position
        if head < before:  # as of then, or a failover has cut the ledger back
            self._fold(self._read(AT_ONCE))
            if self.replica.position < before:
                self._head = self.replica.position
        while self.replica.position < head and self._fold(self._read(AT_ONCE)):
            pass
        self.current_at = max(self.current_at, at)
        self._keep_snapshots()

    def _read(self, most: int) -> list[Record]:
        """The next records; while the store is waited for, nobody is kept from the state."""
        return self.replica.read_next(most)

    def _fold(self, records: list[Record]) -> bool:
        """Fold records; whether any of them were new."""
        return self.gate.alone(self.replica.fold_read, records) > 0

    def _learn_aside(self, learning: LogLearning) -> None:
        """Have a log learned, while others decide from the state before it."""
        self._helpers.learner.submit(self._learn, learning)

    def _learn(self, learning: LogLearning) -> None:
        with self._logs.surviving():
            learning.learn()
        with self._logs.surviving():  # where it was not learned, it is now: that says why not
            self.gate.alone(self.replica.take_log, learning)
        self.current_at, self._seen = time.monotonic(), None  # what came meanwhile is folded now

    def close(self) -> None:
        """Follow no more."""
        self.is_closed = True
        self._helpers.follower.remove(self)
        if self._are_own:
            self._helpers.close()

    @property
    def lag(self) -> float:
        """Seconds since this replica was at the ledger's head, or learned a log on its way."""
        return 0.0 if self.replica.is_learning else time.monotonic() - self.current_at

    @property
    def behind(self) -> int:
        """Events that are known to be in the ledger and are not folded yet."""
        return max(self._head - self.replica.position, 0)

    @property
    def is_behind(self) -> bool:
        """Whether it may decide nothing until it has caught up."""
        return self.lag > self.max_lag or self.behind > self.max_behind

    @property
    def alarm(self) -> str | None:
        """That nothing can be appended, if the last try has failed."""
        if self._unwritten is None:
            return None
        since, words = self._unwritten
        seconds = time.monotonic() - since
        return f"{self.name!r}: nothing could be appended for {seconds:,.0f} s: {words}"

    def refuse_if_behind(self) -> None:
        """Decide nothing from a state that is too old, or not that of the others."""
        if self.replica.differs is not None:
            raise StoreError(self.replica.differs)
        if self.is_behind:
            raise UnavailableError(
                f"a server decides within {self.max_lag:g} s and {self.max_behind:,} events of "
                f"its ledger, but is {self.lag:.1f} s and {self.behind:,} events behind"
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
            "lag_events": self.behind,
        }

    def limits_of(self, within: Any) -> Within | None:
        """Limits of a request."""
        if within is None:
            return None
        with about("within"):
            return within_of(within, self.decision)

    async def ask(self, context: Any, within: Any, key: str | None) -> Decision:
        """A decision for a context."""
        self.refuse_if_behind()
        [found] = await self._together.do([self._wish(context, self.limits_of(within), key)])
        if isinstance(found, Exception):
            raise found
        decision: Decision = found
        return decision

    async def ask_all(
        self, contexts: Sequence[Any], within: Any, keys: Sequence[str | None]
    ) -> list[Decision | ContinuarmError]:
        """A decision for each context, or why there is none."""
        self.refuse_if_behind()
        limits = self.limits_of(within)
        wishes = [
            tried(self._wish, context, limits, key)
            for context, key in zip(contexts, keys, strict=True)
        ]
        found = iter(await self._together.do([w for w in wishes if isinstance(w, Wish)]))
        return _foreseen([next(found) if isinstance(wish, Wish) else wish for wish in wishes])

    def _wish(self, context: Any, limits: Within | None, key: str | None) -> Wish:
        """That a decision is wanted, if the store can take what comes with it."""
        if key is not None:
            with about("key"):
                storable(key)
        return Wish(self.context.array(context), limits, key)

    async def close_all(self, written: Sequence[Written]) -> list[ContinuarmError | None]:
        """Close decisions; for each, why it could not be, if so."""
        return _foreseen(await self._together.do(written))

    async def _settle(self, wishes: list[Wish | Written], waiting: list[Waiting]) -> list[Any]:
        """Decide what is asked, append all of it, and fold it; what became of each wish."""
        asked = any(isinstance(wish, Wish) for wish in wishes)
        if self.desk.in_turn and asked:
            return [
                await self._settle_in_turn(wish, one)
                for wish, one in zip(wishes, waiting, strict=True)
            ]
        self._appending = True
        try:
            await self._fold_news()
            made = await self._making.made(wishes, waiting) if asked else wishes
            due = self.gate.alone(self.desk.due) if asked else []
            written = [*due, *(one for one in made if isinstance(one, Written))]
            outcomes = await self._append(written)
        finally:
            self._appending = False
        found = iter(outcomes[len(due) :])
        return [
            self._answer(wish, one, next(found)) if isinstance(one, Written) else one
            for wish, one in zip(wishes, made, strict=True)
        ]

    async def _fold_news(self) -> None:
        """Fold what others have appended, where a look tells: what is decided now knows it."""
        with suppress(StoreError):  # who appends hears of it
            seen = self.store.glance()
            if seen == self._seen:
                return
            for _ in range(NEWS):
                if not self.gate.alone(self.replica.fold_some, AT_ONCE):
                    self._seen = seen
                    return
                await asyncio.sleep(0.0)

    async def _settle_in_turn(self, wish: Wish | Written, waiting: Waiting) -> Any:
        """The same for one wish, where a decision changes the state of the next."""
        if isinstance(wish, Written):
            return (await self._settle([wish], [waiting]))[0]
        if waiting.done.done():
            return None
        if is_late(waiting):
            return late()
        try:
            made, outcome = await in_thread(
                self._helpers.writers, self.desk.ask_in_turn, *wish, self.gate.alone
            )
        except UnavailableError:
            raise
        except Exception as error:  # others of its group go on
            return error
        return self._answer(wish, made, outcome)

    async def _append(self, written: list[Written]) -> list[Outcome]:
        began = time.monotonic()
        try:
            outcomes, head = await self._appended([entry for entry, _ in written])
        except UnavailableError as error:
            since = began if self._unwritten is None else self._unwritten[0]
            self._unwritten = since, str(error)
            raise
        self._unwritten = None
        self._head = max(self._head, head)
        with suppress(StoreError):  # it is durable: who follows folds it later
            await self._fold_before(outcomes, head)
            events = (event for _, event in written)
            self.gate.alone(self.replica.fold_own, zip(outcomes, events, strict=True))
            if self.replica.position >= head:  # also where all of it was refused
                self.current_at = began
        if self.replica.has_snapshots and self._keeping.is_due:
            self._helpers.writers.submit(self._keep_snapshots)  # nobody waits for them
        return outcomes

    async def _fold_before(self, outcomes: list[Outcome], head: int) -> None:
        """Fold what others appended before this process did; requests come between."""
        own = [record.position for refused, record in outcomes if refused is None and record]
        last = own[0] - 1 if own else head
        while (missing := last - self.replica.position) > 0:
            read = partial(self._read, min(AT_ONCE, missing))
            near = self.store.is_near
            if not self._fold(read() if near else await in_thread(self._helpers.writers, read)):
                return
            await asyncio.sleep(0.0)

    def _keep_snapshots(self) -> None:
        if self._keeping.is_due:
            with self._keeping.surviving():
                self.replica.keep_snapshots()

    async def _appended(self, group: list[Entry]) -> Appended:
        """Have a group appended; the event loop waits for nobody, nor long for the disk.

        Where a store is near, statements are run at once: to hand one to a thread takes longer
        than the statement. The end of a quick disk is waited for, too; that of one that was slow
        the last time goes to a thread. So does a group while somebody else appends.
        """
        if self.store.is_near:
            with suppress(TurnTakenError):
                return await self._appended_at_once(group)
        found: Appended = await in_thread(
            self._helpers.writers, self.store.append, self.name, group
        )
        return found

    async def _appended_at_once(self, group: list[Entry]) -> Appended:
        end = ExitStack()
        found = end.enter_context(self.store.appending(self.name, group))
        began = time.monotonic()
        if self._disk_is_quick:
            end.close()
        else:
            await in_thread(self._helpers.ender, end.close)
        self._disk_is_quick = time.monotonic() - began < QUICK
        return found

    def _answer(self, wish: Wish | Written, made: Written, outcome: Outcome) -> Any:
        if isinstance(wish, Wish):
            return tried(self.desk.answer, made, outcome, wish.point, wish.within)
        if made.entry.closes is None:
            return outcome
        return tried(self.desk.closed, made.entry, outcome)

    async def pass_time(self) -> None:
        """Give up on what is over its time to live, by the store's clock.

        What is decided at this moment brings that with it, and nobody waits for it here.
        """
        while not self._making.is_under_way and (written := self.gate.alone(self._over)):
            await self._together.do(written)
            if len(written) < MOST_DUE or self.replica.is_learning:
                return

    def _over(self) -> list[Written]:
        """What is over its time; or that time has passed, where by our clock something may be.

        Our clock may be ahead of the store's, so that is said twenty times in a time to live.
        """
        life, now = self.replica.life, time.monotonic()
        seconds = life.beginning.waiting.ttl_seconds
        due = self.desk.due()
        if seconds is None or due or not life.open.is_due(time.time()):
            return due
        if now < self._passing_at:
            return []
        self._passing_at = now + seconds / 20.0
        return [Written(Entry(TIME_PASSED, "{}"))]

    async def recommend(self, context: Any, within: Any = None) -> Array:
        """The best decision known now."""
        limits = None if within is None else within_of(within, self.decision)
        point = self.context.point(context)[None, :]
        if self._making.is_aside:
            found = await in_thread(self._helpers.deciders, self._recommended, point, limits)
        else:
            found = self.gate.alone(self.replica.life.recommend, point, limits)
        best: Array = found[0]
        return best

    def _recommended(self, points: Array, limits: Within | None) -> Array:
        return self._making.known().life.recommend(points, limits)

    def policy(self) -> Policy:
        """A copy of the policy, to look into for long."""
        return self.gate.alone(self.desk.policy)

    def view(self) -> Policy:
        """The policy itself behind its own gate, for a short look; nothing may be done to it."""
        policy: Policy = Policy.of_life(self.replica.life, name=self.name)
        policy.gate = self.gate
        return policy

    async def steer(self, verb: str, *given: Any, **options: Any) -> Any:
        """Let a verb that steers the policy happen, in all processes; what it answers.

        It is done to a copy of a state that holds all that was in the ledger when it came. What
        others append before its own record may still speak against it: the fold tells.
        """
        head, at = await self._newest_head()
        await self._fold_until(head, at)
        work = partial(self.gate.alone, partial(self.desk.steered, verb, *given, **options))
        steered = None
        if self.replica.position < head and self.replica.is_learning:
            steered = self.desk.steered_unseen(verb)
            if steered is None and verb == "change":
                steered = await in_thread(self._helpers.writers, self._unchanged, work)
        if steered is None:
            await self._reach(head, at)
            steered = await asyncio.to_thread(work)
        written, answer = steered
        if written:
            outcomes = await self._together.do(written)
            for position in (positions := self.desk.in_question(written, outcomes)):
                await self._reach(position, time.monotonic())
            self.desk.refuse_overtaken(positions)
        return answer

    def _unchanged(self, work: Callable[[], Steered]) -> Steered | None:
        """What a verb answers that changes nothing: nobody need wait for that."""
        steered = work()
        return steered if self.desk.is_as_before(steered) else None

    async def _newest_head(self) -> tuple[int, float]:
        """How far the ledger goes, and since when that is known; refused where that is too far."""
        self.refuse_if_behind()
        at = time.monotonic()
        found = await in_thread(self._helpers.writers, self.store.experiment, self.name)
        self._head = max(self._head, found.head)
        self.refuse_if_behind()
        return found.head, at

    async def _fold_until(self, head: int, at: float) -> None:
        """Fold up to a head, which was known at a time, or to a log on the way there."""
        while True:
            before = self.replica.position
            await in_thread(self._helpers.writers, self.follow, head, at)
            if self.replica.position >= head or self.replica.is_learning:
                return
            if self.replica.position == before:  # a failover has cut the ledger back
                return

    async def _reach(self, head: int, at: float) -> None:
        """The same, and a log is waited for."""
        end = time.monotonic() + LEARNING
        while self.replica.position < head:
            before = self.replica.position
            while self.replica.is_learning:
                if time.monotonic() > end:
                    raise UnavailableError(
                        f"who steers waits at most {LEARNING:g} s for a log that is learned, but "
                        f"this one takes longer: try again"
                    )
                await asyncio.sleep(LOOK)
            await self._fold_until(head, at)
            if self.replica.position == before and not self.replica.is_learning:
                return

    async def learn_from(self, table: Any) -> None:
        """Let all processes learn a log, and wait until this one has."""
        written = await asyncio.to_thread(self.desk.log, table)
        if written:
            await self._together.do(written)
        while self.replica.is_learning:
            await asyncio.sleep(LOOK)


def _foreseen(found: list[Any]) -> list[Any]:
    """What became of the wishes of one request; an error that nobody foresaw ends it."""
    for one in found:
        if isinstance(one, Exception) and not isinstance(one, ContinuarmError):
            raise one
    return found
