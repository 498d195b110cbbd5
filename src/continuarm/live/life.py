"""Life: a policy as a state machine over events.

Whoever applies the same events to the same beginning has the same state, bit for bit. Nothing here
reads a clock, makes a token or draws from a generator.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.core.draws import Key
from continuarm.core.entries import OUTSIDE
from continuarm.core.learners.protocol import LearnerOptions, reach
from continuarm.core.model import NO_RULE, At, Limits, Model, limits_of
from continuarm.core.partitions.protocol import PartitionOptions
from continuarm.core.request import ALONE, FULL, INCUMBENT, NOTHING
from continuarm.errors import InputError
from continuarm.live import log_rule, warm_start
from continuarm.live.closings import EXPIRED, FORGOTTEN, TOLD, Note
from continuarm.live.events import (
    BEST,
    EXPLORED,
    INCUMBENTS,
    Asked,
    Event,
    Forgotten,
    LearnedFromLog,
    OpenForgotten,
    Paused,
    Resumed,
    TimePassed,
    Told,
)
from continuarm.live.incumbent import Incumbent, always
from continuarm.live.limits import Within
from continuarm.live.open_decisions import OpenDecisions, Waiting
from continuarm.live.uplift import Tally
from continuarm.strokes import to_the_end

__all__ = ["Beginning", "Life", "Seat"]

NO_GRADIENT: Array = np.empty(0)
LEAST_OF_REACH = 0.2  # of the learner's: a log without spread leaves something to try
BIN_AND_ROLE = slice(4, 6)  # of an asked event
new = tuple.__new__  # of a NamedTuple: twice as fast


class Beginning(NamedTuple):
    """What a life starts from; it never changes."""

    context: Box
    decision: Box
    partition: PartitionOptions
    learner: LearnerOptions
    start: Incumbent | None  # None: nobody has said; the middle, until a log says more
    key: Key  # the seed of all draws
    waiting: Waiting
    share: float = 0.0  # of decisions that are the incumbent's


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
        self.asked_of: defaultdict[int, int] = defaultdict(int, {0: 0})
        self.unheard: list[Event] | None = (
            None  # what listeners were not told yet, if there are any
        )
        self.paused = False
        # What was compared with the incumbent; decisions that are to be counted in this order, and
        # whether each is the incumbent's; what those paid that are closed.
        self.tally, self.line, self.paid = self._begun()
        unlimited = limits_of(np.full(decision.dim, 0.5), reach(learner))
        self.limits = unlimited._replace(share=beginning.share)
        self.follow(beginning.start or always(context, decision, decision.centre))

    def copy(self, key: Key | None = None) -> "Life":
        """An independent life in the same state, with other draws if given."""
        other = object.__new__(Life)
        vars(other).update(vars(self))
        other.model, other.open = self.model.copy(), self.open.copy()
        other.asked_of, other.unheard = self.asked_of.copy(), None
        other.line, other.paid = self.line.copy(), self.paid.copy()
        if key is not None:
            other.beginning = self.beginning._replace(key=key)
        return other

    def follow(self, incumbent: Incumbent) -> None:
        """Let this be the incumbent from now on."""
        self.limits = self._limits_of(incumbent)
        self.incumbent, self.constant = incumbent, incumbent.constant

    def _limits_of(self, incumbent: Incumbent) -> Limits:
        """The limits of its requests."""
        rule = NO_RULE if incumbent.own is not None else incumbent.numbers.rule
        limits, constant = self.limits._replace(rule=rule), incumbent.constant
        if constant is None:
            return limits
        return limits._replace(start=self.beginning.decision.to_unit(constant))

    def start_for(self, context: Array) -> Array:
        """What the incumbent would do for a context, on the unit cube."""
        if self.constant is not None:
            return self.limits.start
        return self.beginning.decision.to_unit(self.incumbent.at(context))

    @property
    def start_at(self) -> At | None:
        """The same for a context of the unit cube; None: for every context the same."""
        if self.constant is not None:
            return None
        return lambda x: self.start_for(self.beginning.context.from_unit(x))

    @property
    def takes_values(self) -> bool:
        """Whether it can learn from another value than the one that was decided."""
        return self.model.stands_alone

    def limits_within(self, within: Within | None, start: Array | None = None) -> Limits:
        """The limits of a request on the unit cube, with a start of its own, in units, or not."""
        decision, limits = self.beginning.decision, self.limits
        if start is not None:
            limits = limits._replace(start=decision.to_unit(start), rule=NO_RULE)
        if within is None:
            return limits
        low, high = (decision.to_unit(decision.point(e)) for e in (within.low, within.high))
        return limits._replace(low=low, high=high, whole=False)

    def decide(
        self,
        context: Array,
        at: float,
        within: Within | None = None,
        *,
        start: Array | None = None,
        draw: int | None = None,
        explained: bool = True,
    ) -> tuple[Asked, Seat]:
        """Decide for a context, and change nothing: the event that hands the decision out.

        The `start` is given if the incumbent is a function. If nobody listens to the event, it
        need not be `explained` by its centre.
        """
        model, beginning = self.model, self.beginning
        id_ = self.open.next_id if draw is None else draw
        limits, allowed = self.limits, None
        if within is not None or start is not None:
            limits = self.limits_within(within, start)
        if within is not None:
            allowed = np.array([within.low, within.high])
        value, centre, does = np.empty(model.dy), None, self.constant if start is None else start
        if does is None:
            does = np.empty(model.dy)  # it follows a rule
        row, made, ticket, bin_ = model.decide(context, beginning.key, id_, limits, value, does)
        if ticket <= OUTSIDE:
            beginning.context.refuse(context, OUTSIDE - ticket)
        if explained:
            centre = _within(within, model.recommend(context[None, :], limits)[0])
        role = BEST if ticket == NOTHING else EXPLORED
        if ticket == INCUMBENT:
            value, role, ticket = does.copy(), INCUMBENTS, self._ticket_of(INCUMBENTS)
        value = _within(within, value)
        asked = (id_, context, value, at, role, bin_, centre, does, allowed)
        return new(Asked, asked), (row, made, ticket)

    def apply(self, event: Event) -> None:
        """Let an event happen, all of it or nothing, whatever a signal handler raises."""
        match event:
            case Asked():
                self.ask(event)
            case Told():
                self.tell(event)
            case Forgotten(id_):
                self.forget(id_, event)
                self.count_closed()
            case TimePassed() | OpenForgotten():
                to_the_end(lambda: self._close_many(event), self.progress)
                self.count_closed()
            case LearnedFromLog():
                self._learn_from(event)
            case Paused() | Resumed():
                self._pause(isinstance(event, Paused), event)
            case _:
                raise InputError(f"an event is needed, but got {event!r}")

    def progress(self) -> tuple[int, int]:
        """Changes with every decision that is closed or held."""
        return len(self.open.open), len(self.open.held)

    def ask(self, event: Asked, seat: Seat | None = None) -> None:
        """Apply a decision; `seat` is where it has just been made, with nothing due, if it has."""
        opened, model, row = self.open, self.model, 0
        if seat is None:
            if opened.is_due(max(self.now, event.at)):
                raise InputError(f"time must pass before decision {event.id}, but has not")
            seat = self._seat(event)
        id_, context, value, at, role, bin_, _, start, _ = event
        compared, theirs = self.beginning.share > 0.0 and not self.paused, role == INCUMBENTS
        number, ticket = opened.asked, seat[2]
        if model.counts_asking:
            while True:
                asking = model.asking(*seat)
                [(row, bin_)] = asking  # a stroke: nothing is called from here on
                if row != FULL:
                    break
                model.grow()
        opened.open[id_] = (row, ticket, context, value, start, at, number, bin_)
        opened.asked = number + 1
        if id_ >= opened.next_id:
            opened.next_id = id_ + 1
        if opened.expires:
            opened.queue += ((id_, number),)
        if at > self.now:
            self.now = at
        self.asked_of[bin_] += 1
        if compared:
            self.line[id_] = theirs
        if self.unheard is not None:
            self.unheard += (event,)

    @property
    def asked_per_bin(self) -> list[int]:
        """How often each bin was asked, by its number; 0: those that were not made yet."""
        return [self.asked_of.get(bin_, 0) for bin_ in range(max(self.asked_of) + 1)]

    @asked_per_bin.setter
    def asked_per_bin(self, counts: list[int]) -> None:
        self.asked_of = defaultdict(int, enumerate(counts))

    def bin_is_made(self, bin_: int) -> None:
        """A bin that was not made yet when it was asked has a number now."""
        self.asked_of[0] -= 1
        self.asked_of[bin_] += 1

    def _seat(self, event: Asked) -> Seat:
        """Where a decision belongs; one that changes the state is made again and must be equal."""
        if not self.model.counts_asking:
            return 0, True, self._ticket_of(event.role)
        within = None if event.limits is None else Within(*event.limits)
        again, seat = self.decide(
            event.context, event.at, within, start=event.start, draw=event.id, explained=False
        )
        same = again.value.tobytes() == event.value.tobytes()
        if not same or again[BIN_AND_ROLE] != event[BIN_AND_ROLE]:
            raise InputError(
                f"decision {event.id} must be {again.value.tolist()} in this state, {again.role} "
                f"in bin {again.bin}, but got {event.value.tolist()}, {event.role} in {event.bin}"
            )
        return seat

    def _ticket_of(self, role: str) -> int:
        """What can be learned of a decision with this role, which no stencil asked for.

        Who counts what is asked has not asked for the incumbent's.
        """
        learns = self.model.stands_alone and not self.model.counts_asking
        return NOTHING if role == BEST or (role == INCUMBENTS and not learns) else ALONE

    def _pause(self, paused: bool, event: Event) -> None:
        limits = self.limits._replace(share=1.0 if paused else self.beginning.share)
        self.paused, self.limits = paused, limits  # a stroke: nothing is called from here on
        if self.unheard is not None:
            self.unheard += (event,)

    @staticmethod
    def _begun() -> tuple[Tally, OrderedDict[int, bool], dict[int, float]]:
        return Tally(), OrderedDict(), {}

    def compare_anew(self) -> None:
        """Forget what was compared with the incumbent."""
        self.tally, self.line, self.paid = self._begun()

    def count_closed(self) -> None:
        """Count what the decisions paid whose turn it is, and forget those that were lost.

        The order is that of asking, whatever the order of payoffs: those that come late are not
        like the others.
        """
        line, paid, share = self.line, self.paid, self.beginning.share
        while line:
            id_ = next(iter(line))
            if id_ in self.open.open:
                return
            tally = self.tally
            if id_ in paid:
                tally = tally.with_payoff(paid[id_], theirs=line[id_], share=share)
            self.tally = tally  # a stroke: nothing is called from here on
            del line[id_]
            if id_ in paid:
                del paid[id_]

    def tell(self, event: Told) -> None:
        """Apply a payoff; with `missing`, hold it until its decision's time is up."""
        id_, payoff, gradient, value = event
        note = self.open.closed.noted(id_, TOLD, payoff)
        if self.beginning.waiting.missing is None:
            slope = NO_GRADIENT if gradient is None else gradient
            self._learn(id_, payoff, note, slope, value, event)
        else:  # payoffs that come before silence is known to be silence would be a biased sample
            self._hold(id_, payoff, note, value, event)
        if self.line:
            self.count_closed()

    def tell_open(self, told: list[Told]) -> None:
        """Apply those of several payoffs that were not told yet."""
        for event in told:
            if self.open.is_open(event.id):
                self.tell(event)

    def _giving_back(self, id_: int) -> Iterable[None]:
        """Something else was done: what was handed out is to be tried again."""
        row, ticket, context, decided, *_ = self.open.open[id_]
        return self.model.forgetting(row, ticket, context, decided)

    def _hold(self, id_: int, payoff: float, note: Note, done: Array | None, event: Event) -> None:
        opened, closed, (byte, bits, numbers) = self.open, self.open.closed, note
        giving_back: Iterable[None] = () if done is None else self._giving_back(id_)
        row, ticket, context, value, *others = opened.open[id_]
        kept: Any = (row, ticket, context, value if done is None else done, *others)
        [*_] = giving_back  # a stroke: nothing is called from here on
        opened.open[id_], opened.held[id_] = kept, payoff
        closed.fates[byte], closed.numbers = bits, numbers
        if self.unheard is not None:
            self.unheard += (event,)

    def _learn(
        self,
        id_: int,
        payoff: float,
        note: Note,
        slope: Array = NO_GRADIENT,
        done: Array | None = None,
        event: Event | None = None,
    ) -> None:
        opened, model, (byte, bits, numbers) = self.open, self.model, note
        closed = opened.closed
        row, ticket, context, value, start, _, _, asked_in = opened.open[id_]
        giving_back: Iterable[None] = () if done is None else self._giving_back(id_)
        value, start = value if done is None else done, self._unit(start)
        while True:
            telling = model.telling(row, ticket, context, value, payoff, slope, start)
            [bin_] = telling  # a stroke: nothing is called from here on
            if bin_ != FULL:
                break
            model.grow()
        if done is not None:
            [_] = giving_back
        del opened.open[id_]
        if id_ in opened.held:
            del opened.held[id_]
        closed.fates[byte], closed.numbers = bits, numbers
        if asked_in == 0 and bin_ > 0:
            self.asked_of[0] -= 1
            self.asked_of[bin_] += 1
        if id_ in self.line:
            self.paid[id_] = payoff
        if self.unheard is not None and event is not None:
            self.unheard += (event,)

    def _learn_from(self, event: LearnedFromLog) -> None:
        """Learn a log in a copy, which takes the place of the model in one stroke.

        Where there is a reach, the log's rule and its spread are the incumbent's.
        """
        model, (incumbent, spread) = self.model.copy(), self._read_from(event)
        warm_start.learn(model, *event)
        limits, constant = self._limits_of(incumbent)._replace(reach=spread), incumbent.constant
        anew = self.beginning.share > 0.0 and incumbent is not self.incumbent
        begun = self._begun()
        self.model, self.limits = model, limits  # a stroke: nothing is called from here on
        self.incumbent, self.constant = incumbent, constant
        if anew:
            self.tally, self.line, self.paid = begun
        if self.unheard is not None:
            self.unheard += (event,)

    def _read_from(self, event: LearnedFromLog) -> tuple[Incumbent, Array]:
        """The incumbent and the reach after a log."""
        own, (contexts, values, _) = reach(self.model.lcfg), event
        if own <= 0.0:
            return self.incumbent, self.limits.reach
        rule = log_rule.rule_of(self.beginning.context, self.beginning.decision, contexts, values)
        spread = log_rule.reach_of(rule, contexts, values, LEAST_OF_REACH * own)
        return self.beginning.start or rule, spread

    def _unit(self, start: Array) -> Array:
        if start is self.constant:
            return self.limits.start
        return self.beginning.decision.to_unit(start)

    def forget(self, id_: int, event: Event | None = None, fate: int = FORGOTTEN) -> None:
        """Apply that a payoff will never come."""
        opened, closed = self.open, self.open.closed
        row, ticket, context, value, *_ = opened.open[id_]
        byte, bits, numbers = closed.noted(id_, fate)
        forgetting = self.model.forgetting(row, ticket, context, value)
        [_] = forgetting  # a stroke: nothing is called from here on
        del opened.open[id_]
        closed.fates[byte], closed.numbers = bits, numbers
        if self.unheard is not None and event is not None:
            self.unheard += (event,)

    def _close_many(self, event: TimePassed | OpenForgotten) -> None:
        """Close one decision after the other; it can be taken up again where it was left."""
        match event:
            case TimePassed(at):
                self._pass_time(max(self.now, at))
            case OpenForgotten():
                self._forget_open()
        if self.unheard is not None and not (self.unheard and self.unheard[-1] is event):
            self.unheard += (event,)

    def _pass_time(self, at: float) -> None:
        """Give up what is over its time to live, the oldest first."""
        missing, opened = self.beginning.waiting.missing, self.open
        while opened.is_due(at):
            id_ = opened.oldest_due()
            if missing is None:
                self.forget(id_, fate=EXPIRED)
            elif id_ in opened.held:
                self._learn(id_, opened.held[id_], opened.closed.unchanged())
            else:
                self._learn(id_, missing, opened.closed.noted(id_, EXPIRED, missing))
        self.now = at

    def _forget_open(self) -> None:
        """Forget every open decision, the oldest first; learn what was held back."""
        for id_ in list(self.open.open):
            if id_ in self.open.held:
                self._learn(id_, self.open.held[id_], self.open.closed.unchanged())
            else:
                self.forget(id_)

    def recommend(
        self, contexts: Array, within: Within | None = None, starts: Array | None = None
    ) -> Array:
        """The best decisions known for contexts `(n, dx)`; starts are given for a function."""
        units = None if starts is None else self.beginning.decision.to_unit(starts)
        return _within(within, self.model.recommend(contexts, self.limits_within(within), units))

    def explain(
        self, context: Array, within: Within | None = None, start: Array | None = None
    ) -> dict[str, Any]:
        """The numbers behind a decision for a context."""
        return self.model.explain(context, self.limits_within(within, start))


def _within(within: Within | None, values: Array) -> Array:
    """Decisions inside limits to the last digit: products are rounded."""
    if within is not None:
        np.minimum(np.maximum(values, within.low, out=values), within.high, out=values)
    return values
