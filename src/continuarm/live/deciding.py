"""Deciding: what a life answers now. It reads the state and changes nothing."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.core.draws import Key
from continuarm.core.entries import OUTSIDE
from continuarm.core.learners.protocol import LearnerOptions
from continuarm.core.model import NO_RULE, At, Limits, Model, ModelBin, NothingAllowed, Rule
from continuarm.core.partitions.protocol import PartitionOptions
from continuarm.core.request import ALONE, EMPTY, FREE, FROZEN, INCUMBENT, NOTHING
from continuarm.errors import InputError
from continuarm.live.allowing import narrowed, nothing_allowed
from continuarm.live.events import (
    BEST,
    EXPLORED,
    INCUMBENTS,
    LIMITED,
    SHARED,
    WHILE_FROZEN,
    WHILE_PAUSED,
    Asked,
)
from continuarm.live.incumbent import Affine, Incumbent
from continuarm.live.limits import Within
from continuarm.live.open_decisions import OpenDecisions, Waiting
from continuarm.live.segments import Edges, Segment
from continuarm.live.view import HOW, viewed

__all__ = ["Beginning", "Deciding", "Held", "Rules", "Seat", "inside"]

new = tuple.__new__  # of a NamedTuple: twice as fast


class Beginning(NamedTuple):
    """What a life starts from; `changing` says which options may become others."""

    context: Box
    decision: Box
    partition: PartitionOptions
    learner: LearnerOptions
    start: Incumbent | None  # None: nobody has said; the middle, until a log says more
    key: Key  # the seed of all draws
    waiting: Waiting
    share: float = 0.0  # of decisions that are the incumbent's
    max_move: Array | None = None  # from the reference, per coordinate, in units


Rules = tuple[Affine, list[Rule]]  # what the incumbent does, and what was learned
# Where a decision was made: the row that answered, whether its bin is made, the ticket.
Seat = tuple[int, bool, int]


class Held(NamedTuple):
    """A segment that is frozen, and what answers in it: nothing in that ever changes."""

    segment: Segment
    known: "Deciding"


class Deciding:
    """What decides: the model, the incumbent, and the limits of requests.

    segments : what is frozen, the one that answers first before others.
    edges : the same as numbers that a context is compared with; None: nothing is frozen.
    reference : what `max_move` is counted from; None: the incumbent.
    """

    beginning: Beginning
    model: Model
    open: OpenDecisions
    limits: Limits
    incumbent: Incumbent
    constant: Array | None  # what the incumbent does, if for every context the same
    paused: bool
    views: bool  # whether an event says what was known
    segments: tuple[Held, ...] = ()
    edges: Edges | None = None
    reference: "Deciding | None" = None

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
        return self.at_of(self.incumbent)

    def at_of(self, incumbent: Incumbent) -> At | None:
        """What an incumbent would do for a context of the unit cube, on the unit cube."""
        if incumbent.constant is not None:
            return None
        context, decision = self.beginning.context, self.beginning.decision
        return lambda x: decision.to_unit(incumbent.at(context.from_unit(x)))

    def held_at(self, context: Array) -> Held | None:
        """The frozen segment that answers for a context: of several the one frozen first."""
        if self.edges is None:
            return None
        found = self.edges.first_of(context)
        return None if found is None else self.segments[found]

    def answering(self, context: Array) -> "Deciding":
        """What answers for a context: this, or in a frozen segment what was known then."""
        held = self.held_at(context)
        return self if held is None else held.known

    def held_among(self, contexts: Array) -> Iterator[tuple["Deciding", NDArray[np.bool_]]]:
        """What answers in frozen segments, and for which of the contexts `(n, dx)`."""
        if self.edges is None:
            return
        rest = np.ones(len(contexts), bool)
        if len(contexts) == 1:  # as often as not: all segments at once are quicker
            held = self.held_at(contexts[0])
            if held is not None:
                yield held.known, rest
            return
        for (_, known), holds in zip(self.segments, self.edges.each_of(contexts), strict=True):
            mine = rest & holds
            rest &= ~mine
            if mine.any():
                yield known, mine

    def rules(self) -> list[Rules]:
        """What `recommend` follows, and then, if there is another, what it stays near to."""
        start = self.incumbent.numbers
        return [(start, self.model.rules(self.limits, self.start_at))]

    def bins(self) -> list[ModelBin]:
        """The bins, with the best decision known in the middle of each."""
        return self.model.bins(self.limits, self.start_at)

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
        low, high = (decision.point(edge) for edge in within)
        if self.is_guarded:
            found = narrowed(limits, Within(low, high))
            if found is None:
                raise nothing_allowed(decision, within)
            return found
        return limits._replace(low=decision.to_unit(low), high=decision.to_unit(high), whole=False)

    def near(self, context: Array, within: Within | None, start: Array | None) -> Within | None:
        """The limits of a request, and of what it has to stay near to."""
        return within

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
        value, does = np.empty(model.dy), self.constant if start is None else start
        if does is None:
            does = np.empty(model.dy)  # it follows a rule
        row, made, ticket, bin_ = model.decide(context, beginning.key, id_, limits, value, does)
        if ticket <= OUTSIDE:
            beginning.context.refuse(context, OUTSIDE - ticket)
        if ticket == EMPTY:
            raise self._nothing_allowed(within)
        role, frozen = BEST if ticket == NOTHING else EXPLORED, ticket == FROZEN
        held, known = self.held_at(context), self
        if held is not None:
            frozen, known = True, held.known
            limits = known.limits_within(within, start)
        if ticket == INCUMBENT:
            role, ticket = INCUMBENTS, self.ticket_of(INCUMBENTS)
            value = value if self.is_guarded else does.copy()
        elif frozen:
            [value], role = known._recommend(context[None, :], limits, within), BEST
            ticket = NOTHING
        if not self.is_guarded:
            value = inside(within, value)
        centre, why, view = None, None, None
        if explained:
            centre = known._recommend(context[None, :], limits, within)[0]
            why, view = self._view(known.model, context, limits, value, id_, role)
            why = WHILE_FROZEN if frozen and role == BEST and why is not None else why
        segment = None if held is None else held.segment.plain()
        asked = (id_, context, value, at, role, bin_, centre, does, allowed, why, view, segment)
        return new(Asked, asked), (row, made, ticket)

    def _view(
        self, model: Model, context: Array, limits: Limits, value: Array, draw: int, role: str
    ) -> tuple[str | None, Array | None]:
        """Why a decision is made, and what is known; of a large surface, nothing is said."""
        if not self.views:
            return None, None
        how, view = viewed(model, context, limits, value, self.beginning.key, draw)
        if role == INCUMBENTS:
            return WHILE_PAUSED if self.paused else SHARED, view
        return LIMITED if role == BEST else HOW[how], view

    def ticket_of(self, role: str) -> int:
        """What can be learned of a decision with this role, which no stencil asked for.

        Who counts what is asked has not asked for the incumbent's.
        """
        learns = self.model.stands_alone and not self.model.counts_asking
        return NOTHING if role == BEST or (role == INCUMBENTS and not learns) else ALONE

    def recommend(
        self, contexts: Array, within: Within | None = None, starts: Array | None = None
    ) -> Array:
        """The best decisions known for contexts `(n, dx)`; starts are given for a function."""
        units = None if starts is None else self.beginning.decision.to_unit(starts)
        values = self._recommend(contexts, self.limits_within(within), within, units)
        for known, mine in self.held_among(contexts):
            own = None if units is None else units[mine]
            limits = known.limits_within(within)
            values[mine] = known._recommend(contexts[mine], limits, within, own)
        return values

    def check_within(self, context: Array, within: Within | None, start: Array | None) -> None:
        """Refuse limits that leave nothing."""
        limits = self.limits_within(within, start)
        if within is not None and self.is_guarded:
            self._recommend(context[None, :], limits, within)

    def _recommend(
        self, contexts: Array, limits: Limits, within: Within | None, units: Array | None = None
    ) -> Array:
        try:
            values = self.model.recommend(contexts, limits, units)
        except NothingAllowed:
            raise self._nothing_allowed(within) from None
        return values if self.is_guarded else inside(within, values)

    def _nothing_allowed(self, within: Within | None) -> InputError:
        decision = self.beginning.decision
        return nothing_allowed(decision, within or Within(decision.low, decision.high))

    @property
    def is_guarded(self) -> bool:
        """Whether more than a box limits its decisions."""
        return self.limits.guard is not FREE

    def incumbents(self, context: Array, within: Within | None, start: Array) -> Array:
        """What is decided for a context where the incumbent would do `start`, in units."""
        if not self.is_guarded:
            return inside(within, start.copy())
        value = self.nearest_allowed(context, within, start)
        if value is None:
            raise self._nothing_allowed(within)
        return value

    def nearest_allowed(self, context: Array, within: Within | None, value: Array) -> Array | None:
        """With a guard: the allowed decision that is nearest, in units; None: there is none."""
        whole = self.limits_within(None, value)._replace(share=1.0)
        limits = whole if within is None else narrowed(whole, within)
        if limits is None:
            return None
        nearest = np.empty(self.model.dy)
        found = self.model.decide(context, self.beginning.key, 0, limits, nearest, value.copy())
        return None if found[2] == EMPTY else nearest

    def explain(
        self, context: Array, within: Within | None = None, start: Array | None = None
    ) -> dict[str, Any]:
        """The numbers behind a decision for a context."""
        held = self.held_at(context)
        if held is not None:
            then = held.known.explain_learned(context, within, start)
            return then | {"frozen": True, "segment": held.segment.plain()}
        return self.explain_learned(context, within, start)

    def explain_learned(
        self, context: Array, within: Within | None = None, start: Array | None = None
    ) -> dict[str, Any]:
        """The same of what was learned by now, whatever segments are frozen."""
        limits = self.limits_within(within, start)
        try:
            return self.model.explain(context, limits)
        except NothingAllowed:
            raise self._nothing_allowed(within) from None


def inside(within: Within | None, values: Array) -> Array:
    """Decisions inside limits to the last digit: products are rounded."""
    if within is not None:
        np.minimum(np.maximum(values, within.low, out=values), within.high, out=values)
    return values
