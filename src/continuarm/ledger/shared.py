"""SharedPolicy: a policy whose life is a ledger, which any number of processes share.

Each process has a replica. It decides from what it has folded so far, appends the decision, and
answers when that is durable. Nobody leads, and one that dies leaves nothing stuck.
"""

import json
import os
import time
from typing import Any, Unpack, overload

import numpy as np

from continuarm.core.compiling import Array
from continuarm.errors import ExperimentConflictError, SettingsError
from continuarm.ledger.beginnings import begin
from continuarm.ledger.desk import Desk, Written, checked_key
from continuarm.ledger.entries import TIME_PASSED
from continuarm.ledger.groups import Groups
from continuarm.ledger.replica import SNAPSHOT_EVERY, Replica
from continuarm.ledger.settings import OF_POLICY
from continuarm.ledger.succession import succeeding
from continuarm.live import state
from continuarm.live.decision import Bin, Decision
from continuarm.live.gate import Gate, keep_through_forks
from continuarm.live.guarded import Changes
from continuarm.live.inputs import Context, Contexts
from continuarm.live.life import Life
from continuarm.live.limits import Given, Within, within_of
from continuarm.live.policy import Policy
from continuarm.live.segments import Segment, Where
from continuarm.store import Store, open_store
from continuarm.store.records import Entry, Outcome

__all__ = ["SharedPolicy", "begun", "share"]


def share(
    policy: Policy,
    store: Store | str | os.PathLike[str],
    name: str,
    *,
    after: str | None = None,
    every: int = SNAPSHOT_EVERY,
) -> "SharedPolicy":
    """Let a policy live in a store, where any number of processes share it.

    Each process makes the same policy and calls this. The first one's is the beginning; the others
    join it, if their boxes and parts are the same. Options that may change (`SharedPolicy.change`)
    are those of the ledger.

    Parameters
    ----------
    policy : with nothing open. One whose observations stand alone, as those of `SurfaceSampling`
        do, decides in any number of processes at once; others decide one after the other.
    store : an open store, or the address of one: a file, or `postgresql://…`.
    name : of the experiment.
    after : the name of an experiment of the store that this one succeeds, with other boxes or
        parts: it begins with what the payoffs of that one's ledger teach.
    every : events between two snapshots, from which a process starts.
    """
    ledgers = open_store(store) if isinstance(store, str | os.PathLike) else store
    begun(policy, ledgers, name, after=after)
    return SharedPolicy(ledgers, name, every=every)


def begun(
    policy: Policy, store: Store, name: str, *, after: str | None = None, **more: Any
) -> None:
    """Let an experiment begin with this policy; refused if it began with another.

    after : the experiment that it succeeds.
    more : settings beside those of the policy, which must be the same, too.
    """
    life = policy.life
    if life.model.uses_gradient:
        raise SettingsError(
            f"a shared policy must learn from payoffs alone, but {policy.name} needs gradients"
        )
    if life.open.open or life.incumbent.own is not None:
        raise SettingsError(
            "a shared policy must be one that can be saved, with nothing open, but got "
            f"{len(life.open.open)} open decisions and the start {life.incumbent.shown()!r}"
        )
    settings = _settings(life, more if after is None else more | {"after": after})
    known = {experiment.name for experiment in store.experiments()} if after is not None else ()
    heir = None  # made first: what is refused leaves none begun
    if after is not None and name not in known:
        heir = succeeding(policy, store, after)
    try:
        experiment = store.create(name, settings)
    except ExperimentConflictError as error:
        raise ExperimentConflictError(
            f"{error}. Take another name, with `after` {name!r}: a successor learns its "
            "predecessor's ledger"
        ) from None
    if experiment.head == 0 and after is None:
        begin(store, name, life)
    elif experiment.head == 0:
        heir = heir or succeeding(policy, store, str(after))
        begin(store, name, heir.life, learned=heir.learned, left_out=heir.left_out)


def _settings(life: Life, more: dict[str, Any]) -> str:
    """What must be the same for all who share it."""
    text, _, _ = state.to_bytes(life).partition(b"\n")
    header, start = json.loads(text), life.incumbent.numbers
    plain = {key: header[key] for key in OF_POLICY if key in header}
    plain |= {"start": start.first.tolist(), "slopes": start.slopes.tolist()}
    waiting = life.beginning.waiting  # what else it has may be changed later
    plain |= {"missing": waiting.missing, "has_clock": waiting.ttl_seconds is not None}
    plain["has_max_move"] = life.beginning.max_move is not None
    return json.dumps(plain | more)


class SharedPolicy:
    """A policy that lives in a store; `share` makes one.

    Its verbs are those of a `Policy`. What `ask` and `tell` have returned is durable.
    """

    def __init__(self, store: Store, name: str, *, every: int = SNAPSHOT_EVERY) -> None:
        self.store, self.name, self.gate = store, name, Gate()
        self._replica = Replica(store, name, every=every)
        self._desk, self._groups = Desk(self._replica), Groups(store, name)
        self.context, self.decision = self._desk.context, self._desk.decision
        keep_through_forks(self)
        self._catch_up()

    def forked(self) -> None:
        """In a child process: its decisions have numbers of their own."""
        self._desk.forked()
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
        asked = (point, limits, checked_key(key))
        if self._desk.in_turn:
            one, outcome = self.gate.alone(self._desk.ask_in_turn, *asked)
            return self._desk.answer(one, outcome, point, limits)
        written = self.gate.alone(self._asked, *asked)
        *_, outcome = self._append(written)
        return self._desk.answer(written[-1], outcome, point, limits)

    def _append(self, written: list[Written]) -> list[Outcome]:
        return self._groups.append([entry for entry, _ in written])

    def _asked(self, point: Array, within: Within | None, key: str | None) -> list[Written]:
        """A decision, and before it what is over its time."""
        self._replica.catch_up()
        return [*self._desk.due(), self._desk.asked(point, within, key)]

    def tell(
        self, decision: Decision | int | str, payoff: float, *, value: Context | None = None
    ) -> None:
        """Learn the payoff of a decision of any process, once; the same again changes nothing.

        decision : or its number, or its id as the service says it, 32 hexadecimal digits.
        value : what was really done, if it was something else.
        """
        self._close(self._desk.told(decision, payoff, value))

    def forget(self, decision: Decision | int | str) -> None:
        """A payoff will never come."""
        self._close(self._desk.forgotten(decision))

    def _close(self, written: Written) -> None:
        [outcome] = self._append([written])
        self._desk.closed(written.entry, outcome)

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
        count = 0
        while due := self.gate.alone(self._desk.due):
            count += sum(outcome.refused is None for outcome in self._append(due))
            self._catch_up()
        return count

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
        self._steer("pause")

    def resume(self) -> None:
        """Decide again."""
        self._steer("resume")

    @overload
    def freeze(self, what: Bin | int) -> None: ...

    @overload
    def freeze(self, what: Where | Segment) -> Segment: ...

    def freeze(self, what: Bin | int | Where | Segment) -> Segment | None:
        """Let a segment, or a bin, answer as now and learn nothing, in all processes."""
        frozen: Segment | None = self._steer("freeze", what)
        return frozen

    def unfreeze(self, what: Bin | int | Where | Segment) -> None:
        """Let a segment, or a bin, decide and learn again."""
        self._steer("unfreeze", what)

    @property
    def frozen(self) -> list[Segment | Bin]:
        """What is frozen: segments, the one that answers first before others, and then bins."""
        return self.policy().frozen

    def renew_reference(self) -> None:
        """Let what is learned by now be what `max_move` is counted from."""
        self._steer("renew_reference")

    def change(self, **options: Unpack[Changes]) -> None:
        """Let options be others from now on, in all processes, as `Policy.change` does."""
        self._steer("change", **options)

    def learn_from(self, table: Any) -> None:
        """Start from the log of an older rule, as `Policy.learn_from` does."""
        self._steer("learn_from", table)

    def _steer(self, verb: str, *given: Any, **options: Any) -> Any:
        """Do it to a copy, and append what happened; what the copy answered.

        Others may have been quicker. What happens after their records is what counts.
        """
        self._catch_up()
        steered = self.gate.alone(lambda: self._desk.steered(verb, *given, **options))
        outcomes = self._append(steered.written)
        if positions := self._desk.in_question(steered.written, outcomes):
            self._catch_up()
            self._desk.refuse_overtaken(positions)
        return steered.answer

    def policy(self) -> Policy:
        """A copy of the policy as it is now, to look into: `explain`, `bins`, `stats`, `save`."""
        self._catch_up()
        return self.gate.alone(self._desk.policy)

    def _catch_up(self) -> None:
        self.gate.alone(self._replica.catch_up)
