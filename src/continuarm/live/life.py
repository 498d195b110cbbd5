"""Life: a policy as a state machine over events.

Whoever applies the same events to the same beginning has the same state, bit for bit. Nothing here
reads a clock, makes a token or draws from a generator.
"""

from typing import Any, NamedTuple

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.core.draws import Key
from continuarm.core.entries import OUTSIDE
from continuarm.core.learners.protocol import LearnerOptions
from continuarm.core.model import Limits, Model, limits_of
from continuarm.core.partitions.protocol import PartitionOptions
from continuarm.core.request import ALONE, NOTHING
from continuarm.errors import InputError
from continuarm.live import warm_start
from continuarm.live.closings import EXPIRED, FORGOTTEN
from continuarm.live.events import (
    BEST,
    EXPLORED,
    Asked,
    Event,
    Forgotten,
    LearnedFromLog,
    OpenForgotten,
    TimePassed,
    Told,
)
from continuarm.live.open_decisions import OpenDecisions, Waiting

__all__ = ["Beginning", "Life", "Seat"]

NO_GRADIENT: Array = np.empty(0)
BIN_AND_ROLE = slice(4, 6)  # of an asked event
new = tuple.__new__  # of a NamedTuple: twice as fast


class Beginning(NamedTuple):
    """What a life starts from; it never changes."""

    context: Box
    decision: Box
    partition: PartitionOptions
    learner: LearnerOptions
    start: Array  # the incumbent's decision, in units
    key: Key  # the seed of all draws
    waiting: Waiting


# Where a decision was made: the row that answered, whether its bin is made, the ticket.
Seat = tuple[int, bool, int]


class Life:
    """The state of a policy: what it knows, and which decisions are open."""

    def __init__(self, beginning: Beginning) -> None:
        self.beginning = beginning
        context, decision = beginning.context, beginning.decision
        learner = beginning.learner.configured(context.dim, decision.dim)
        partition = beginning.partition.configured(context.dim, learner)
        edges = (np.array([box.low, box.high]) for box in (context, decision))
        self.model = Model(partition, learner, *edges)
        self.open = OpenDecisions(beginning.waiting)
        timeless = beginning.waiting.ttl_seconds is None
        self.now = 0.0 if timeless else -np.inf  # the latest time of an event
        self.asked_per_bin: list[int] = [0]  # by the bin's number; 0: it was not made yet
        self.limits = limits_of(decision.to_unit(beginning.start))

    def copy(self, key: Key | None = None) -> "Life":
        """An independent life in the same state, with other draws if given."""
        other = object.__new__(Life)
        vars(other).update(vars(self))
        other.model, other.open = self.model.copy(), self.open.copy()
        other.asked_per_bin = self.asked_per_bin.copy()
        if key is not None:
            other.beginning = self.beginning._replace(key=key)
        return other

    @property
    def takes_values(self) -> bool:
        """Whether it can learn from another value than the one that was decided."""
        return self.model.stands_alone

    def in_order(self, within: Any) -> Box:
        """Limits in the order of the decision's names, if they have some."""
        decision = self.beginning.decision
        if not isinstance(within, Box):
            raise InputError(f"`within` must be a Box, but got {within!r}")
        if not within.named or within.names == decision.names:
            return within
        if not decision.named or sorted(within.names) != sorted(decision.names):
            wanted, given = list(decision.names), list(within.names)
            raise InputError(f"the names of `within` must be {wanted}, but got {given}")
        order = [within.names.index(name) for name in decision.names]
        return Box(within.low[order], within.high[order], decision.names)

    def limits_within(self, within: Box | None) -> Limits:
        """The limits of a request on the unit cube."""
        if within is None:
            return self.limits
        decision = self.beginning.decision
        low, high = (decision.to_unit(decision.point(e)) for e in (within.low, within.high))
        return Limits(low, high, self.limits.start, False)

    def decide(
        self,
        context: Array,
        at: float,
        within: Box | None = None,
        *,
        draw: int | None = None,
        explained: bool = True,
    ) -> tuple[Asked, Seat]:
        """Decide for a context, and change nothing: the event that hands the decision out.

        If nobody listens to the event, it need not be `explained` by its centre.
        """
        model, beginning = self.model, self.beginning
        id_ = self.open.next_id if draw is None else draw
        limits, allowed = self.limits, None
        if within is not None:
            limits, allowed = self.limits_within(within), np.array([within.low, within.high])
        value, centre = np.empty(model.dy), None
        row, made, ticket, bin_ = model.decide(context, beginning.key, id_, limits, value)
        if ticket <= OUTSIDE:
            beginning.context.refuse(context, OUTSIDE - ticket)
        if explained:
            centre = self.recommend(context[None, :], within)[0]
        if within is not None:  # products are rounded
            np.minimum(np.maximum(value, within.low, out=value), within.high, out=value)
        role = BEST if ticket == NOTHING else EXPLORED
        asked = (id_, context, value, at, role, bin_, centre, beginning.start, allowed)
        return new(Asked, asked), (row, made, ticket)

    def apply(self, event: Event) -> None:
        """Let an event happen."""
        match event:
            case Asked():
                self.ask(event)
            case Told():
                self.tell(event)
            case Forgotten(id_):
                self.forget(id_)
            case TimePassed(at):
                self.pass_time(at)
            case OpenForgotten():
                self.forget_open()
            case LearnedFromLog(contexts, values, payoffs):
                warm_start.learn(self.model, self.limits, contexts, values, payoffs)
            case _:
                raise InputError(f"an event is needed, but got {event!r}")

    def ask(self, event: Asked, seat: Seat | None = None) -> None:
        """Apply a decision; `seat` is where it has just been made, with nothing due, if it has."""
        if seat is None:
            if self.open.is_due(max(self.now, event.at)):
                raise InputError(f"time must pass before decision {event.id}, but has not")
            seat = self._seat(event)
        if event.at > self.now:
            self.now = event.at
        row, bin_, number = 0, event.bin, self.open.asked
        if self.model.counts_asking:
            row, bin_ = self.model.asked(*seat)
        counts = self.asked_per_bin
        if bin_ < len(counts):
            counts[bin_] += 1
        else:
            self.count_asked(bin_)
        id_, context, value, at, _, _, _, start, _ = event
        self.open.add(id_, (row, seat[2], context, value, start, at, number, bin_))

    def count_asked(self, bin_: int) -> None:
        """A bin was asked."""
        counts = self.asked_per_bin
        if bin_ >= len(counts):
            counts.extend([0] * (bin_ + 1 - len(counts)))
        counts[bin_] += 1

    def bin_is_made(self, bin_: int) -> None:
        """A bin that was not made yet when it was asked has a number now."""
        self.asked_per_bin[0] -= 1
        self.count_asked(bin_)

    def _seat(self, event: Asked) -> Seat:
        """Where a decision belongs; one that changes the state is made again and must be equal."""
        if not self.model.counts_asking:
            return 0, True, ALONE if event.role == EXPLORED else NOTHING
        within = None if event.limits is None else Box(*event.limits)
        again, seat = self.decide(event.context, event.at, within, draw=event.id, explained=False)
        same = again.value.tobytes() == event.value.tobytes()
        if not same or again[BIN_AND_ROLE] != event[BIN_AND_ROLE]:
            raise InputError(
                f"decision {event.id} must be {again.value.tolist()} in this state, {again.role} "
                f"in bin {again.bin}, but got {event.value.tolist()}, {event.role} in {event.bin}"
            )
        return seat

    def tell(self, event: Told) -> None:
        """Apply a payoff; with `missing`, hold it until its decision's time is up."""
        id_, payoff, gradient, value = event
        if value is not None:
            self._change(id_, value)
        self.open.closed.told(id_, payoff)
        if self.beginning.waiting.missing is None:
            self._learn(id_, payoff, gradient)
        else:  # payoffs that come before silence is known to be silence would be a biased sample
            self.open.held[id_] = payoff

    def _change(self, id_: int, value: Array) -> None:
        """Something else was done: what was handed out is to be tried again."""
        row, ticket, context, decided, *_ = self.open.open[id_]
        self.model.forget(row, ticket, context, decided)
        self.open.change(id_, value)

    def _learn(self, id_: int, payoff: float, gradient: Array | None) -> None:
        row, ticket, context, value, start, _, _, asked_in = self.open.open.pop(id_)
        slope = NO_GRADIENT if gradient is None else gradient
        bin_ = self.model.tell(row, ticket, context, value, payoff, slope, self._unit(start))
        if asked_in == 0 and bin_ > 0:
            self.bin_is_made(bin_)

    def _unit(self, start: Array) -> Array:
        if start is self.beginning.start:
            return self.limits.start
        return self.beginning.decision.to_unit(start)

    def forget(self, id_: int, fate: int = FORGOTTEN) -> None:
        """Apply that a payoff will never come."""
        row, ticket, context, value, *_ = self.open.open.pop(id_)
        self.open.closed.note(id_, fate)
        self.model.forget(row, ticket, context, value)

    def pass_time(self, at: float) -> None:
        """Give up what is over its time to live, the oldest first."""
        self.now = max(self.now, at)
        missing = self.beginning.waiting.missing
        for id_ in self.open.due(self.now):
            if missing is None:
                self.forget(id_, EXPIRED)
                continue
            if id_ not in self.open.held:
                self.open.closed.note(id_, EXPIRED)
                self.open.closed.average(missing)
            self._learn(id_, self.open.held.pop(id_, missing), None)

    def forget_open(self) -> None:
        """Forget every open decision, the oldest first; learn what was held back."""
        for id_ in list(self.open.open):
            if id_ in self.open.held:
                self._learn(id_, self.open.held.pop(id_), None)
            else:
                self.forget(id_)

    def recommend(self, contexts: Array, within: Box | None = None) -> Array:
        """The best decisions known for contexts `(n, dx)`."""
        found = self.model.recommend(contexts, self.limits_within(within))
        if within is not None:
            np.minimum(np.maximum(found, within.low, out=found), within.high, out=found)
        return found

    def explain(self, context: Array, within: Box | None = None) -> dict[str, Any]:
        """The numbers behind a decision for a context."""
        return self.model.explain(context, self.limits_within(within))
