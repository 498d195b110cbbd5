"""Desk: where requests to one experiment are answered from a replica, in one process.

It writes what is to be appended, and reads what became of it. Appending is its caller's, so that a
thread may wait for the disk, or an event loop go on.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from continuarm.core.compiling import Array
from continuarm.errors import (
    AlreadyToldError,
    ExpiredDecisionError,
    InputError,
    KeyConflictError,
    StoreError,
    UnknownDecisionError,
)
from continuarm.ledger.entries import EXPIRED, entry_of, event_of, number_of, read_body, text_of
from continuarm.ledger.replica import Replica
from continuarm.live import events
from continuarm.live.decision import Decision
from continuarm.live.inputs import Context, Inputs
from continuarm.live.life import Life
from continuarm.live.limits import Within
from continuarm.live.policy import Policy
from continuarm.live.tokens import Tokens
from continuarm.store.records import (
    CLOSED_BEFORE,
    KEY_TAKEN,
    MOVED_ON,
    NEVER_ASKED,
    Entry,
    Outcome,
    Record,
)

__all__ = ["MOST_DUE", "Desk", "Known", "Steered", "Written", "checked_key"]

# The number of a decision: random bits of this process (its timeline), then a counter. So none
# comes again where a store was restored, or failed over, to what it was before.
TIMELINE_BITS, COUNTER_BITS = 63, 64
LONGEST_KEY = 200
OPTIONS_CHANGED = events.NAMES[events.OptionsChanged]
MOST_DUE = 500  # decisions that are given up in one group
LOOK = 0.01  # seconds between two looks whether a log is learned
# Verbs that nothing refuses, and that change nothing where it is so already.
ALWAYS: dict[str, events.Event] = {"pause": events.Paused(), "resume": events.Resumed()}
NOBODYS = Tokens()  # decisions of a ledger are known by their numbers alone
Alone = Callable[..., Any]  # does some work with what is given, as `Gate.alone` does


class Written(NamedTuple):
    """What is to be appended, and the event that it says; None: the entry says it all."""

    entry: Entry
    event: events.Event | None = None


class Steered(NamedTuple):
    """What a verb that steers a policy would have appended, and what it answers."""

    written: list[Written]
    answer: Any


class Known(NamedTuple):
    """A state, and how far the ledger is folded in it."""

    life: Life
    position: int


def _at_once(work: Callable[..., Any], *given: Any) -> Any:
    """Who asks is alone already."""
    return work(*given)


class Desk:
    """Requests to one experiment."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self._begin_timeline()
        beginning = replica.life.beginning
        self.context, self.decision = beginning.context, beginning.decision

    def forked(self) -> None:
        """In a child process: its decisions have numbers of their own."""
        self._begin_timeline()

    def asked(
        self, point: Array, within: Within | None, key: str | None, known: Known | None = None
    ) -> Written:
        """Decide from what is known by now, or was known a moment ago."""
        if self.replica.differs is not None:
            raise StoreError(self.replica.differs)
        life, position = known or (self.replica.life, self.replica.position)
        event, _ = life.decide(point, 0.0, within, draw=self._draw())
        noted = {"folded": position, "within": _plain(within)}
        return Written(entry_of(event, key, **noted), event)

    def known(self) -> Known:
        """A copy of what is known now: who decides from it keeps nobody from the state."""
        return Known(self.replica.life.copy(), self.replica.position)

    @property
    def in_turn(self) -> bool:
        """Whether asking changes the state, so that decisions are made one after the other."""
        return self.replica.life.model.counts_asking

    def ask_in_turn(
        self, point: Array, within: Within | None, key: str | None, alone: Alone = _at_once
    ) -> tuple[Written, Outcome]:
        """Decide from the newest state, and append if it still is; else try again.

        alone : what keeps others from the state; nobody is kept while the store is waited for.
        """
        store, name = self.replica.store, self.replica.name
        while True:
            while self.replica.is_learning:  # a log, after which this is decided
                time.sleep(LOOK)
            due, asked, onto = alone(self._newest, point, within, key)
            self.replica.keep_snapshots()
            if asked is None:
                store.append(name, [entry for entry, _ in due])
                continue
            [outcome], _ = store.append(name, [asked.entry], onto=onto)
            if outcome.refused != MOVED_ON:
                return asked, outcome

    def _newest(
        self, point: Array, within: Within | None, key: str | None
    ) -> tuple[list[Written], Written | None, int]:
        """What is over its time, or else a decision from the newest state, and its position."""
        while self.replica.fold_some():
            pass
        due = self.due()
        asked = None if due else self.asked(point, within, key)
        return due, asked, self.replica.position

    def _begin_timeline(self) -> None:
        """Have numbers that nobody else has, in any process, experiment or copy of the store."""
        self._timeline, self._counter = secrets.randbits(TIMELINE_BITS), 0
        self._process = os.getpid()

    def _draw(self) -> int:
        """A number that no other decision ever had."""
        if self._process != os.getpid():  # forked by who tells nobody
            self._begin_timeline()
        self._counter += 1
        return self._timeline << COUNTER_BITS | self._counter

    def due(self) -> list[Written]:
        """That decisions are over their time, as the ledger's time has it, the oldest first.

        At most so many, because a store takes a group as a whole: call it again for the others.
        """
        life = self.replica.life
        silent = (id_ for id_ in life.open.all_due(life.now) if id_ not in life.open.held)
        return [
            Written(Entry(EXPIRED, "{}", closes=text_of(id_))) for id_ in islice(silent, MOST_DUE)
        ]

    def answer(
        self, asked: Written, outcome: Outcome, point: Array, within: Within | None
    ) -> Decision:
        """The decision that was appended, or the one that has its key already."""
        if outcome.refused is None:
            return self._decision(asked.event, None)
        if outcome.refused != KEY_TAKEN:
            raise StoreError(f"a decision must be new, but was {outcome.refused}")
        record = _record(outcome)
        decision = self._decision(event_of(record, 0.0), record.key)
        limits = read_body(record.body).get("within")
        if not np.array_equal(decision.context, point) or limits != _plain(within):
            raise KeyConflictError(
                f"a key is for one decision, and that is for {decision.context.tolist()} within "
                f"{limits}, but got {point.tolist()} within {_plain(within)}"
            )
        return decision

    def _decision(self, event: events.Event | None, key: str | None) -> Decision:
        if not isinstance(event, events.Asked):
            raise KeyConflictError(f"a key of a decision is needed, but {key!r} is another's")
        name, names = self.replica.name, self.decision.names
        return Decision(event.id, event.context, event.value, names, name, event.role, event)

    def told(self, decision: Any, payoff: Any, value: Context | None) -> Written:
        """That a payoff came."""
        inputs = Inputs(self.replica.life, NOBODYS, self.replica.name)
        numbers = inputs.payoff(payoff), None, inputs.done(value)
        return _written(events.Told(self._id_of(decision), *numbers))

    def _id_of(self, decision: Any) -> int:
        name, id_ = self.replica.name, decision
        if isinstance(decision, Decision):
            id_ = decision.id
            if decision.policy not in (None, name):
                raise UnknownDecisionError(
                    f"a decision of {name!r} is needed, but got {decision!r} of another"
                )
        return number_of(id_)

    def forgotten(self, decision: Any) -> Written:
        """That it never will."""
        return _written(events.Forgotten(self._id_of(decision)))

    def policy(self) -> Policy:
        """A copy of the policy as it is now, to look into."""
        return Policy.of_life(self.replica.life.copy(), name=self.replica.name)

    def steered(self, verb: str, *given: Any, **options: Any) -> Steered:
        """What a verb that steers a policy, such as `pause`, would do."""
        policy, happened = self.policy(), list[events.Event]()
        policy.listen(happened.append)
        answer = getattr(policy, verb)(*given, **options)
        return Steered([_written(event) for event in happened], answer)

    def steered_unseen(self, verb: str) -> Steered | None:
        """The same where the newest state is not known; None: one must know it."""
        return Steered([_written(ALWAYS[verb])], None) if verb in ALWAYS else None

    def is_as_before(self, steered: Steered) -> bool:
        """Whether nothing is to be changed, nor has anybody changed options after this state."""
        if steered.written:
            return False
        newest = self.replica.store.latest(self.replica.name, OPTIONS_CHANGED)
        return newest is None or newest.position <= self.replica.position

    @staticmethod
    def in_question(written: Sequence[Written], outcomes: Sequence[Outcome]) -> list[int]:
        """Where in the ledger that stands which what came before it may keep from happening."""
        return [
            outcome.record.position
            for one, outcome in zip(written, outcomes, strict=True)
            if outcome.refused is None
            and outcome.record
            and not isinstance(one.event, events.Paused | events.Resumed)
        ]

    def refuse_overtaken(self, positions: Iterable[int]) -> None:
        """Refuse what changed nothing, because others had steered meanwhile; it is folded."""
        for position in positions:
            refused = self.replica.refused(position)
            if refused is not None:
                raise refused

    def log(self, table: Any) -> list[Written]:
        """That a log is to be learned; nothing is learned yet."""
        life = self.replica.life
        event = Policy.of_life(life, name=self.replica.name).log_event(table)
        if not len(event.payoffs):
            return []
        life.read_log(event)  # it refuses what has no rule
        return [_written(event)]

    def closed(self, entry: Entry, outcome: Outcome) -> None:
        """Refuse what could not be closed; the same closing again is none."""
        if outcome.refused == NEVER_ASKED:
            raise UnknownDecisionError(
                f"the decision must have been handed out in {self.replica.name!r}, but "
                f"{entry.closes} was not"
            )
        if outcome.refused == CLOSED_BEFORE:
            before = _record(outcome)
            if before.kind == entry.kind and read_body(before.body) == read_body(entry.body):
                return
            kind = ExpiredDecisionError if before.kind == EXPIRED else AlreadyToldError
            raise kind(f"a decision is closed once, and {entry.closes} was {before.kind} before")


def _written(event: events.Event) -> Written:
    return Written(entry_of(event), event)


def _record(outcome: Outcome) -> Record:
    assert outcome.record is not None
    return outcome.record


def _plain(within: Within | None) -> list[list[float]] | None:
    return None if within is None else [within.low.tolist(), within.high.tolist()]


def checked_key(key: Any) -> str | None:
    """A client's key, or none."""
    if key is None or (isinstance(key, str) and 0 < len(key) <= LONGEST_KEY):
        return key
    raise InputError(f"a key must be a text of 1 to {LONGEST_KEY} characters, but got {key!r}")
