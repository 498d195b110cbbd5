"""max_move: decisions stay near a reference, which is what was known when it was last renewed.

It is soft: where it and the limits of a request leave nothing, the nearest of these limits is
taken. Where a reference is not allowed, and nothing near it is, moves are counted from the allowed
decision nearest to it. What is done today is not moved by it, neither while paused nor for the
incumbent's share. A life without `max_move` pays nothing for it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.checks import among
from continuarm.core.compiling import Array
from continuarm.core.model import ModelBin
from continuarm.errors import SettingsError
from continuarm.live.as_it_was import AsItWas
from continuarm.live.deciding import Beginning, Rules, Seat
from continuarm.live.events import INCUMBENTS, Asked, Event, ReferenceRenewed
from continuarm.live.life import Life
from continuarm.live.limits import Within
from continuarm.numbers import reals

__all__ = ["LifeNearReference", "Move", "life_of", "move_of"]

Move = float | Sequence[float] | Array | Mapping[str, float]


class LifeNearReference(Life):
    """A life whose decisions are at most `max_move` from the reference, in each coordinate."""

    def __init__(self, beginning: Beginning) -> None:
        super().__init__(beginning)
        if not self.model.stands_alone or self.model.counts_asking:
            kind = type(beginning.learner).__name__
            raise SettingsError(
                "`max_move` must have a learner that learns within limits, as ResponseSurface "
                f"does, but got {kind}"
            )

    def apply(self, event: Event) -> None:
        """Let an event happen, all of it or nothing, whatever a signal handler raises."""
        if not isinstance(event, ReferenceRenewed):
            super().apply(event)
            return
        reference = AsItWas(self.beginning, self.model.as_it_is(), self.limits, self.incumbent)
        self.reference = reference  # a stroke: nothing is called from here on
        if self.unheard is not None:
            self.unheard += (event,)

    def reference_at(self, context: Array, start: Array | None = None) -> Array:
        """What the reference would do, in units; `start` as for `decide`.

        In a frozen segment it is that of then, so that nothing moves there.
        """
        known = self.answering(context)
        reference = known.reference
        if reference is None:
            does = known.constant if start is None else start
            return known.incumbent.at(context) if does is None else does
        starts = None if start is None else self.beginning.decision.to_unit(start)[None, :]
        return np.asarray(reference.model.recommend(context[None, :], reference.limits, starts)[0])

    def near(self, context: Array, within: Within | None, start: Array | None) -> Within:
        """The limits of a request, as far as they are near; else their point that is nearest."""
        decision, move = self.beginning.decision, self.beginning.max_move
        low, high = (decision.low, decision.high) if within is None else within
        assert move is not None
        middle = self.reference_at(context, start)
        near = Within(*(np.clip(end, low, high) for end in (middle - move, middle + move)))
        if not self.is_guarded or self.nearest_allowed(context, near, middle) is not None:
            return near
        value = self.incumbents(context, within, middle)  # then moves are counted from here
        near = Within(*(np.clip(end, low, high) for end in (value - move, value + move)))
        holds = self.nearest_allowed(context, near, value) is not None
        return near if holds else Within(value, value)

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
        """Decide near the reference; the incumbent's decisions are where the incumbent's are."""
        self.beginning.context.point(context)
        near = self.near(context, within, start)
        event, seat = super().decide(
            context, at, near, start=start, draw=draw, explained=explained
        )
        if event.role == INCUMBENTS:
            limits = None if within is None else np.array([within.low, within.high])
            value = self.incumbents(context, within, event.start)
            event = event._replace(value=value, limits=limits)
        return event, seat

    def recommend(
        self, contexts: Array, within: Within | None = None, starts: Array | None = None
    ) -> Array:
        """The best decisions known near the reference for contexts `(n, dx)`."""
        values = np.empty((len(contexts), self.model.dy))
        for k, context in enumerate(contexts):
            own = None if starts is None else starts[k : k + 1]
            near = self.near(context, within, None if own is None else own[0])
            values[k] = super().recommend(contexts[k : k + 1], near, own)[0]
        return values

    def explain(
        self, context: Array, within: Within | None = None, start: Array | None = None
    ) -> dict[str, Any]:
        """The numbers behind a decision for a context."""
        found = super().explain(context, self.near(context, within, start), start)
        return found | {"reference": self.reference_at(context, start).tolist()}

    def bins(self) -> list[ModelBin]:
        """The bins, with the best decision known near the reference in the middle of each."""
        context, own, found = self.beginning.context, self.incumbent.own, super().bins()
        for k, one in enumerate(found):
            middle = context.from_unit(0.5 * (one.low + one.high))[None, :]
            start = None if own is None else own.at(middle[0])
            near = self.near(middle[0], None, start)
            limits = self.limits_within(near, start)
            found[k] = one._replace(best=self._recommend(middle, limits, near)[0])
        return found

    def rules(self) -> list[Rules]:
        """What `recommend` follows, and then, if there is another, what it stays near to."""
        if self.reference is None:
            return super().rules()
        return [*super().rules(), *self.reference.rules()]


def life_of(beginning: Beginning) -> Life:
    """The life that begins so."""
    return Life(beginning) if beginning.max_move is None else LifeNearReference(beginning)


def move_of(given: Any, decision: Box) -> Array | None:
    """The largest move of each coordinate, in units; those that are not named may move freely."""
    if given is None:
        return None
    move: Any = decision.span.copy()
    if isinstance(given, Mapping):
        named = decision.named and given and set(given) <= set(decision.names)
        parts = reals(list(given.values())) if named else None
        if parts is not None and parts.shape == (len(given),):
            move[[decision.names.index(name) for name in given]] = parts
        else:
            move = None
    else:
        parts = reals(given)
        move = None if parts is None or parts.shape not in ((), move.shape) else move * 0.0 + parts
    if move is None or not ((move >= 0.0) & np.isfinite(move)).all():
        raise SettingsError(
            "`max_move` must be a number of at least 0 in units of the decision, one for each of "
            f"{among(decision.names)}, or by name for some, but got {given!r}"
        )
    return np.asarray(move)
