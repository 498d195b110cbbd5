"""SharedPolicy: a policy whose life is a ledger, which any number of processes share.

Each process has a replica. It decides from what it has folded so far, appends the decision, and
answers when that is durable. Nobody leads, and one that dies leaves nothing stuck.
"""

import json
import os
import time
from typing import Any

import numpy as np

from continuarm.core.compiling import Array
from continuarm.errors import (
    AlreadyToldError,
    ExpiredDecisionError,
    InputError,
    SettingsError,
    StoreError,
    UnknownDecisionError,
)
from continuarm.ledger.entries import EXPIRED, TIME_PASSED, entry_of, event_of, text_of
from continuarm.ledger.groups import Groups
from continuarm.ledger.replica import SNAPSHOT_EVERY, Replica, begin
from continuarm.live import events, state
from continuarm.live.decision import Decision
from continuarm.live.gate import Gate, keep_through_forks
from continuarm.live.inputs import Context, Contexts, Inputs
from continuarm.live.life import Life
from continuarm.live.limits import Given, Within, within_of
from continuarm.live.policy import Policy
from continuarm.live.tokens import Tokens
from continuarm.store import Store, open_store
from continuarm.store.records import (
    CLOSED_BEFORE,
    KEY_TAKEN,
    NEVER_ASKED,
    Entry,
    Outcome,
    Record,
)

__all__ = ["SharedPolicy", "share"]

COUNTER_BITS = 64  # of the number of a decision; those above tell who decided
SETTINGS = ("context", "decision", "partition", "learner", "waiting", "start_given", "share")


def share(
    policy: Policy,
    store: Store | str | os.PathLike[str],
    name: str,
    *,
    every: int = SNAPSHOT_EVERY,
) -> "SharedPolicy":
    """Let a policy live in a store, where any number of processes share it.

    Each process makes the same policy and calls this. The first one's is the beginning; the others
    join it, if their boxes, parts and options are the same.

    Parameters
    ----------
    policy : whose observations stand alone, as those of `SurfaceSampling` do; nothing open.
    store : an open store, or the address of one: a file, or `postgresql://…`.
    name : of the experiment.
    every : events between two snapshots, from which a process starts.
    """
    life = policy.life
    if not life.model.stands_alone or life.model.counts_asking:
        raise SettingsError(
            f"the observations of a shared policy must stand alone, but those of {policy.name} "
            "do not: take `SurfaceSampling`"
        )
    if life.open.open or life.incumbent.own is not None:
        raise SettingsError(
            "a shared policy must be one that can be saved, with nothing open, but got "
            f"{len(life.open.open)} open decisions and the start {life.incumbent.shown()!r}"
        )
    ledgers = open_store(store) if isinstance(store, str | os.PathLike) else store
    if ledgers.create(name, _settings(life)).head == 0:
        begin(ledgers, name, life)
    return SharedPolicy(ledgers, name, every=every)


def _settings(life: Life) -> str:
    """What must be the same for all who share it."""
    text, _, _ = state.to_bytes(life).partition(b"\n")
    header, start = json.loads(text), life.incumbent.numbers
    plain = {key: header[key] for key in SETTINGS if key in header}
    return json.dumps(plain | {"start": start.first.tolist(), "slopes": start.slopes.tolist()})


class SharedPolicy:
    """A policy that lives in a store; `share` makes one.

    Its verbs are those of a `Policy`. What `ask` and `tell` have returned is durable.
    """

    def __init__(self, store: Store, name: str, *, every: int = SNAPSHOT_EVERY) -> None:
        self.store, self.name = store, name
        self.gate = Gate()
        self._replica = Replica(store, name, every=every)
        self._groups = Groups(store, name)
        self._number, self._counter, self._process = 0, 0, 0
        beginning = self._replica.life.beginning
        self.context, self.decision = beginning.context, beginning.decision
        keep_through_forks(self)
        self._catch_up()

    def forked(self) -> None:
        """In a child process: its decisions have numbers of their own."""
        self._process = 0
        self._groups = Groups(self.store, self.name)

    def ask(
        self, context: Context = (), *, within: Given | None = None, key: str | None = None
    ) -> Decision:
        """A decision for this context, when it is durable.

        Parameters
        ----------
        within : limits for this decision only.
        key : of the caller's, so that a second try gets the same decision, in whatever process.
        """
        point = self.context.point(context)
        limits = None if within is None else within_of(within, self.decision)
        entries = self.gate.alone(self._decided, point, limits, key)
        *_, outcome = self._groups.append(entries)
        if outcome.refused is not None:
            return self._asked_before(outcome, point)
        return self._decision(_record(outcome))

    def _decided(self, point: Array, within: Within | None, key: str | None) -> list[Entry]:
        """Decide from what is known by now; before it, what is over its time."""
        replica = self._replica
        self._refuse_if_it_differs()
        replica.catch_up()
        event, _ = replica.life.decide(point, 0.0, within, draw=self._draw())
        return [*self._due(), entry_of(event, key, folded=replica.position)]

    def _draw(self) -> int:
        """A number that no other decision has, in any process."""
        if self._process != os.getpid():
            self._number, self._counter = self.store.number(self.name), 0
            self._process = os.getpid()
        self._counter += 1
        return self._number << COUNTER_BITS | self._counter

    def _due(self) -> list[Entry]:
        """That decisions are over their time, as the ledger's time has it."""
        life = self._replica.life
        due = [id_ for id_ in life.open.all_due(life.now) if id_ not in life.open.held]
        return [Entry(EXPIRED, "{}", closes=text_of(id_)) for id_ in due]

    def _decision(self, record: Record) -> Decision:
        event = event_of(record, 0.0)
        assert isinstance(event, events.Asked)
        names = self.decision.names
        return Decision(event.id, event.context, event.value, names, self.name, event.role)

    def _asked_before(self, outcome: Outcome, point: Array) -> Decision:
        """The decision that has the caller's key already."""
        if outcome.refused != KEY_TAKEN:
            raise StoreError(f"a decision must be new, but was {outcome.refused}")
        before = self._decision(_record(outcome))
        if before.context.tobytes() != point.tobytes():
            raise InputError(
                f"a key is for one decision, and that is for {before.context.tolist()}, but got "
                f"{point.tolist()}"
            )
        return before

    def tell(
        self, decision: Decision | int, payoff: float, *, value: Context | None = None
    ) -> None:
        """Learn the payoff of a decision of any process, once; the same again changes nothing.

        value : what was really done, if it was something else.
        """
        inputs = Inputs(self._replica.life, Tokens(), self.name)
        told = inputs.payoff(payoff), None, inputs.done(value)
        self._close(entry_of(events.Told(_id_of(decision), *told)), "told")

    def forget(self, decision: Decision | int) -> None:
        """A payoff will never come."""
        self._close(entry_of(events.Forgotten(_id_of(decision))), "forgotten")

    def _close(self, entry: Entry, what: str) -> None:
        [outcome] = self._groups.append([entry])
        if outcome.refused == NEVER_ASKED:
            raise UnknownDecisionError(
                f"the decision must have been handed out in {self.name!r}, but {entry.closes} "
                "was not"
            )
        if outcome.refused == CLOSED_BEFORE:
            before = _record(outcome)
            if (before.kind, before.body) == (entry.kind, entry.body):
                return
            kind = ExpiredDecisionError if before.kind == EXPIRED else AlreadyToldError
            raise kind(f"a decision is closed once, and {entry.closes} was {before.kind} before")

    def expire(self) -> int:
        """Give up on the decisions whose time to live is over, by the store's clock.

        Return how many there were. `ask` does so, too; call this where nobody asks for long.
        """
        self._catch_up()
        life = self._replica.life
        timed = life.beginning.waiting.ttl_seconds is not None
        if timed and life.open.is_due(time.time()):  # perhaps: the store's clock decides
            self._groups.append([Entry(TIME_PASSED, "{}")])
            self._catch_up()
        due = self.gate.alone(self._due)
        gone = [outcome for outcome in self._groups.append(due) if outcome.refused is None]
        return len(gone)

    def recommend(self, context: Context = (), *, within: Given | None = None) -> Array:
        """The best decision known now; explores nothing and changes nothing."""
        limits = None if within is None else within_of(within, self.decision)
        point = self.context.point(context)[None, :]
        return np.asarray(self.gate.alone(self._recommended, point, limits)[0])

    def recommend_many(self, contexts: Contexts) -> Array:
        """The best decisions known now for contexts of shape `(n, dx)`."""
        return self.gate.alone(self._recommended, self.context.points(contexts), None)

    def _recommended(self, points: Array, within: Within | None) -> Array:
        self._replica.catch_up()
        return self._replica.life.recommend(points, within)

    def pause(self) -> None:
        """Let every decision be the incumbent's, in all processes, until `resume`."""
        self._groups.append([entry_of(events.Paused())])

    def resume(self) -> None:
        """Decide again."""
        self._groups.append([entry_of(events.Resumed())])

    def policy(self) -> Policy:
        """A copy of the policy as it is now, to look into: `explain`, `bins`, `stats`, `save`."""
        self._catch_up()
        return Policy.of_life(self.gate.alone(self._replica.life.copy), name=self.name)

    def _catch_up(self) -> None:
        self.gate.alone(self._replica.catch_up)

    def _refuse_if_it_differs(self) -> None:
        if self._replica.differs is not None:
            raise StoreError(self._replica.differs)


def _record(outcome: Outcome) -> Record:
    assert outcome.record is not None
    return outcome.record


def _id_of(decision: Any) -> int:
    id_ = decision.id if isinstance(decision, Decision) else decision
    if isinstance(id_, bool) or not isinstance(id_, int):
        raise UnknownDecisionError(f"a Decision or its number is needed, but got {decision!r}")
    return id_
