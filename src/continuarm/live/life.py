"""Life: a policy as a state machine over events.

Whoever applies the same events to the same beginning has the same state, bit for bit. Nothing here
reads a clock, makes a token or draws from a generator.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from continuarm.core.compiling import Array
from continuarm.core.draws import Key
from continuarm.core.learners.protocol import reach
from continuarm.core.model import Model, limits_of
from continuarm.core.numbered_bins import with_frozen
from continuarm.core.request import FULL
from continuarm.errors import InputError
from continuarm.live import log_rule, warm_start
from continuarm.live.allowing import guard_of, guarded, with_steps
from continuarm.live.as_it_was import as_it_is, shared
from continuarm.live.closings import EXPIRED, FORGOTTEN, TOLD, Note
from continuarm.live.deciding import Beginning, Deciding, Held, Seat
from continuarm.live.events import (
    INCUMBENTS,
    Asked,
    Event,
    Forgotten,
    Frozen,
    LearnedFromLog,
    OpenForgotten,
    OptionsChanged,
    Paused,
    Resumed,
    SegmentFrozen,
    SegmentUnfrozen,
    TimePassed,
    Told,
    Unfrozen,
)
from continuarm.live.history import LARGEST, History
from continuarm.live.incumbent import Incumbent, always
from continuarm.live.limits import Within
from continuarm.live.open_decisions import OpenDecisions, Waiting
from continuarm.live.segments import Segment, edges_of, where_of
from continuarm.live.uplift import Comparison
from continuarm.live.view import is_affordable
from continuarm.strokes import to_the_end

__all__ = ["Life"]

NO_GRADIENT: Array = np.empty(0)
LEAST_OF_REACH = 0.2  # of the learner's: a log without spread leaves something to try
BIN_AND_ROLE = slice(4, 6)  # of an asked event


class Life(Deciding):
    """The state of a policy: what it knows, and which decisions are open.

    prepared : what a log will teach when it is applied, if that was learned ahead.
    """

    prepared: warm_start.LearnedLog | None = None

    def __init__(self, beginning: Beginning) -> None:
        self.beginning = beginning
        context, decision = beginning.context, beginning.decision
        learner = beginning.learner.configured(context.dim, decision.dim)
        partition = beginning.partition.configured(context.dim, learner)
        edges = (np.array([box.low, box.high]) for box in (context, decision))
        guard = guard_of(decision)
        self.model = Model(partition, learner, *edges, guard=guard)
        self.open = OpenDecisions(beginning.waiting)
        self.timeless = beginning.waiting.ttl_seconds is None
        self.now = 0.0 if self.timeless else -np.inf  # the latest time of an event
        self.clock_offset = 0.0  # seconds that a ledger's times are ahead of the clock
        self.asked_of: defaultdict[int, int] = defaultdict(int, {0: 0})
        self.unheard: list[Event] | None = (
            None  # what listeners were not told yet, if there are any
        )
        self.views = is_affordable(self.model)
        self.learned_before = 0  # the first decision asked after what was learned last
        self.paused = False
        self.comparison = Comparison(beginning.share)
        self.history = History()
        self.keeps_history = True  # not in a simulation: compiled loops keep none
        unlimited = limits_of(np.full(decision.dim, 0.5), with_steps(decision, reach(learner)))
        self.limits = guarded(unlimited._replace(share=beginning.share), guard)
        self.follow(beginning.start or always(context, decision, decision.centre))

    def copy(self, key: Key | None = None) -> "Life":
        """An independent life in the same state, with other draws if given."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other.model, other.open = self.model.copy(), self.open.copy()
        other.asked_of, other.unheard, other.prepared = self.asked_of.copy(), None, None
        other.comparison, other.history = self.comparison.copy(), self.history.copy()
        other.segments, other.reference = shared(self.segments, self.reference, other.model.room)
        if key is not None:
            other.beginning = self.beginning._replace(key=key)
        return other

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
            case Frozen(bin_) | Unfrozen(bin_):
                self._freeze(bin_, isinstance(event, Frozen), event)
            case SegmentFrozen() | SegmentUnfrozen():
                self._freeze_segment(event)
            case OptionsChanged():
                self._change(event)
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
            seat = self.seat_of(event)
        id_, context, value, at, role, bin_, _, start, *_ = event
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
            self.comparison.line[id_] = theirs
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

    def seat_of(self, event: Asked) -> Seat:
        """Where a decision belongs; one that changes the state is made again and must be equal."""
        if not self.model.counts_asking:
            return 0, True, self.ticket_of(event.role)
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

    def _pause(self, paused: bool, event: Event) -> None:
        limits = self.limits._replace(share=1.0 if paused else self.beginning.share)
        self.paused, self.limits = paused, limits  # a stroke: nothing is called from here on
        self.history.pauses = True
        if self.unheard is not None:
            self.unheard += (event,)

    def _freeze(self, bin_: int, frozen: bool, event: Event) -> None:
        state = with_frozen(self.model.state, bin_, frozen)
        self.model.state = state  # a stroke: nothing is called from here on
        if self.unheard is not None:
            self.unheard += (event,)

    def _freeze_segment(self, event: SegmentFrozen | SegmentUnfrozen) -> None:
        """What it answers is what would be answered now; the one frozen first comes first."""
        where = where_of(event.where, self.beginning.context)
        segments = tuple(one for one in self.segments if one.segment.where != where)
        if isinstance(event, SegmentFrozen):
            segment = Segment(where, self.open.asked, event.at)
            segments = (*segments, Held(segment, as_it_is(self)))
        edges = edges_of([one.segment for one in segments], self.beginning.context)
        self.segments, self.edges = segments, edges  # a stroke: nothing is called from here on
        if self.unheard is not None:
            self.unheard += (event,)

    def _change(self, event: OptionsChanged) -> None:
        """Let other options hold; with another share the comparison begins anew."""
        ttl, seconds, share, move = event
        before, opened = self.beginning, self.open
        waiting = Waiting(ttl, seconds, before.waiting.missing)
        beginning = before._replace(waiting=waiting, share=share, max_move=move)
        closed, (expires, queue) = opened.closed_of(waiting), opened.queue_of(waiting)
        limits = self.limits._replace(share=1.0 if self.paused else share)
        comparison = self.comparison if share == before.share else Comparison(share)
        self.beginning, self.limits = beginning, limits  # a stroke: nothing is called from here on
        self.comparison = comparison
        opened.waiting, opened.closed = waiting, closed
        opened.expires, opened.queue = expires, queue
        if self.unheard is not None:
            self.unheard += (event,)

    def set_clock(self, now: float, offset: float) -> None:
        """Let it be another time, also an earlier one; what was asked later was asked now."""
        earlier = self.open.asked_by(now)
        self.open.open = earlier  # a stroke: nothing is called from here on
        self.now, self.clock_offset = now, offset

    def compare_anew(self) -> None:
        """Forget what was compared with the incumbent."""
        self.comparison = Comparison(self.beginning.share)

    def count_closed(self) -> None:
        """Count what the decisions paid whose turn it is."""
        self.comparison.count_closed(self.open.open)

    def tell(self, event: Told) -> None:
        """Apply a payoff; with `missing`, hold it until its decision's time is up."""
        id_, payoff, gradient, value = event
        note = self.open.closed.noted(id_, TOLD, payoff)
        if self.beginning.waiting.missing is None:
            slope = NO_GRADIENT if gradient is None else gradient
            self._learn(id_, payoff, note, slope, value, event)
        else:  # payoffs that come before silence is known to be silence would be a biased sample
            self._hold(id_, payoff, note, value, event)
        if self.comparison.line:
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
        row, ticket, context, value, start, at, number, asked_in = opened.open[id_]
        late = opened.asked - number - 1 if self.timeless else self.now - at
        giving_back: Iterable[None] = () if done is None else self._giving_back(id_)
        history = self.history.with_room()
        theirs = self.comparison.line.get(id_, False)
        if history.pauses and id_ not in self.comparison.line:
            theirs = value.tobytes() == start.tobytes()
        paid, counted = history.numbers, history.place(theirs)
        size = payoff if -LARGEST < payoff < LARGEST else math.copysign(LARGEST, payoff)
        value, start = value if done is None else done, self._unit(start)
        held, state = self.held_at(context) is not None, model.state
        while True:
            telling = model.telling(
                row, ticket, context, value, payoff, slope, start, number, late
            )
            if held:
                telling, state = model.counting(ticket, context, value, start, self.limits, number)
            [bin_] = telling  # a stroke: nothing is called from here on
            if bin_ != FULL:
                break
            model.grow()
        if held:
            model.state = state
        if done is not None:
            [_] = giving_back
        del opened.open[id_]
        if id_ in opened.held:
            del opened.held[id_]
        closed.fates[byte], closed.numbers = bits, numbers
        if asked_in == 0 and bin_ > 0:
            self.asked_of[0] -= 1
            self.asked_of[bin_] += 1
        if id_ in self.comparison.line:
            self.comparison.paid[id_] = payoff
        self.learned_before = opened.asked
        if self.keeps_history:
            self.history = history
            history.told += 1
            paid[counted] += 1.0
            paid[counted + 1] += size
            paid[counted + 2] += size * size
        if self.unheard is not None and event is not None:
            self.unheard += (event,)

    def _learn_from(self, event: LearnedFromLog) -> None:
        """Learn a log in a copy, which takes the place of the model in one stroke.

        Where there is a reach, the log's rule and its spread are the incumbent's.
        """
        found = self.prepared
        if found is None or found.event is not event:
            found = self.learned_from(event, self.model.copy())
        _, model, incumbent, spread = found
        limits, constant = self._limits_of(incumbent)._replace(reach=spread), incumbent.constant
        anew = self.beginning.share > 0.0 and incumbent is not self.incumbent
        begun = Comparison(self.beginning.share)
        self.model, self.limits = model, limits  # a stroke: nothing is called from here on
        self.incumbent, self.constant = incumbent, constant
        self.prepared = None
        self.learned_before = self.open.asked
        if anew:
            self.comparison = begun
        if self.unheard is not None:
            self.unheard += (event,)

    def learned_from(self, event: LearnedFromLog, model: Model) -> warm_start.LearnedLog:
        """What a log teaches a copy of the model; it changes nothing else."""
        incumbent, spread = self.read_log(event)
        held = np.zeros(len(event.contexts), bool)
        for _, mine in self.held_among(event.contexts):
            held |= mine
        warm_start.learn(model, *event, held=held, limits=self.limits)
        return warm_start.LearnedLog(event, model, incumbent, spread)

    def read_log(self, event: LearnedFromLog) -> tuple[Incumbent, Array]:
        """The incumbent and the reach after a log."""
        own, (contexts, values, _) = reach(self.model.lcfg), event
        if own <= 0.0:
            return self.incumbent, self.limits.reach
        rule = log_rule.rule_of(self.beginning.context, self.beginning.decision, contexts, values)
        spread = log_rule.reach_of(rule, contexts, values, LEAST_OF_REACH * own)
        return self.beginning.start or rule, with_steps(self.beginning.decision, spread)

    def _unit(self, start: Array) -> Array:
        if start is self.constant:
            return self.limits.start
        return self.beginning.decision.to_unit(start)

    def forget(self, id_: int, event: Event | None = None, fate: int = FORGOTTEN) -> None:
        """Apply that a payoff will never come."""
        opened, closed = self.open, self.open.closed
        row, ticket, context, value, _, _, number, _ = opened.open[id_]
        byte, bits, numbers = closed.noted(id_, fate)
        forgetting = self.model.forgetting(row, ticket, context, value, number)
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
        while self.open.is_due(at):
            id_ = self.open.oldest_due()
            if id_ in self.open.held:
                self.learn_held(id_)
            else:
                self.expire(id_)
        self.now = at

    def expire(self, id_: int) -> None:
        """Apply that a decision's time is over: it is forgotten, or silence has its payoff."""
        missing = self.beginning.waiting.missing
        if missing is None:
            self.forget(id_, fate=EXPIRED)
        else:
            self._learn(id_, missing, self.open.closed.noted(id_, EXPIRED, missing))

    def learn_held(self, id_: int) -> None:
        """Learn the payoff that was held until its decision's time is over."""
        self._learn(id_, self.open.held[id_], self.open.closed.unchanged())

    def _forget_open(self) -> None:
        """Forget every open decision, the oldest first; learn what was held back."""
        for id_ in list(self.open.open):
            if id_ in self.open.held:
                self.learn_held(id_)
            else:
                self.forget(id_)
