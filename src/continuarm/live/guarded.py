"""Guarded: the verbs that hold a policy back, or part of it, and say what it is worth."""

from collections.abc import Mapping
from typing import Any, TypedDict, Unpack, overload

import numpy as np

from continuarm import checks
from continuarm.core import numbered_bins
from continuarm.core.compiling import Array
from continuarm.core.partitions.protocol import boxes
from continuarm.core.state import SERIAL
from continuarm.errors import InputError, SettingsError
from continuarm.live import changing, checked_events, events
from continuarm.live.decision import Bin
from continuarm.live.near_reference import Move
from continuarm.live.open_decisions import AT, NUMBER
from continuarm.live.segments import Segment, Where, plain_where
from continuarm.live.shell import Shell
from continuarm.live.uplift import Awaited, Uplift

__all__ = ["Changes", "Guarded"]


class Changes(TypedDict, total=False):
    """Options that may be others from now on."""

    ttl: int | None
    ttl_seconds: float | None
    share: float
    max_move: Move | None


class Guarded(Shell):
    """A policy that can be held back."""

    def pause(self) -> None:
        """Let every decision be the incumbent's, until `resume`.

        Payoffs are still learned. `recommend` still says what is best.
        """
        self.gate.alone(self._pause, events.Paused())

    def resume(self) -> None:
        """Decide again."""
        self.gate.alone(self._pause, events.Resumed())

    def _pause(self, event: events.Paused | events.Resumed) -> None:
        if self._life.paused != isinstance(event, events.Paused):
            self._life.apply(event)

    @property
    def paused(self) -> bool:
        """Whether every decision is the incumbent's at present."""
        return self._life.paused

    def uplift(self, confidence: float = 0.95) -> Uplift:
        """How much better our decisions are than the incumbent's, of which `share` are tried.

        The intervals are right at every moment at once: one may look every day, and stop when one
        likes. Decisions count in the order in which they were asked, when all before them are told
        or given up; those made while paused do not. `awaited` is the one that others wait for.
        """
        if self._life.beginning.share == 0.0:
            raise SettingsError(
                "`share` must be above 0, so that there is something to compare with, but got 0.0"
            )
        trusted = checks.number("confidence", confidence, least=0.5, most=0.999999)
        return self.gate.alone(self._uplift, trusted)

    def _uplift(self, confidence: float) -> Uplift:
        life = self._life
        life.count_closed()
        return life.comparison.uplift(confidence, self._awaited())

    def _awaited(self) -> Awaited | None:
        """The open decision that the comparison waits for."""
        life, id_ = self._life, next(iter(self._life.comparison.line), None)
        if id_ is None:
            return None
        asked, at = life.open.open[id_][NUMBER], life.open.open[id_][AT]
        return Awaited(id_, life.open.asked - asked - 1, None if life.timeless else life.now - at)

    @overload
    def freeze(self, what: Bin | int, *, now: float | None = None) -> None: ...

    @overload
    def freeze(self, what: Where | Segment, *, now: float | None = None) -> Segment: ...

    def freeze(
        self, what: Bin | int | Where | Segment, *, now: float | None = None
    ) -> Segment | None:
        """Let a segment of contexts, or a bin, answer as now and learn nothing, until `unfreeze`.

        Its payoffs are counted, also those of decisions that were asked before. What it decides
        while frozen is never learned. A pause and the incumbent's share come first. A bin that is
        frozen does not split, and no newcomer takes the place of all bins. Of several segments
        that hold a context, the one that was frozen first answers.

        Parameters
        ----------
        what : a segment, from where to where for some contexts by name, both included, such as
            `{"hour": (18, 24)}`; or one of `bins()`, or its `id`. A bin that has split is refused
            with its successors.
        now : the caller's time in seconds; default `time.time()`. With `ttl_seconds` it is kept,
            to say since when a segment is frozen.
        """
        if isinstance(what, Mapping | Segment):
            return self.gate.alone(self._freeze_segment, what, now)
        self.gate.alone(self._freeze, what, True)
        return None

    def unfreeze(self, what: Bin | int | Where | Segment) -> None:
        """Let a segment, or a bin, decide and learn again."""
        if isinstance(what, Mapping | Segment):
            self.gate.alone(self._unfreeze_segment, what)
        else:
            self.gate.alone(self._freeze, what, False)

    def _freeze_segment(self, given: Where | Segment, now: float | None) -> Segment:
        where = checked_events.check_freezing(self._life, _where(given))
        self._life.apply(events.SegmentFrozen(plain_where(where), self._time(now)))
        return self._life.segments[-1].segment

    def _unfreeze_segment(self, given: Where | Segment) -> None:
        where = checked_events.check_unfreezing(self._life, _where(given))
        self._life.apply(events.SegmentUnfrozen(plain_where(where)))

    def _freeze(self, bin_: Any, frozen: bool) -> None:
        number = bin_.id if isinstance(bin_, Bin) else bin_
        checked_events.check_bin(self._life, number)
        if isinstance(bin_, Bin):
            self._check_box(bin_)
        if (number in numbered_bins.frozen(self._life.model.state)) != frozen:
            event = events.Frozen(number) if frozen else events.Unfrozen(number)
            self._life.apply(event)

    def renew_reference(self) -> None:
        """Let `max_move` be counted from what is known now, until this is called again."""
        self.gate.alone(self._renew_reference)

    def _renew_reference(self) -> None:
        checked_events.check_reference(self._life)
        self._life.apply(events.ReferenceRenewed())

    def change(self, **options: Unpack[Changes]) -> None:
        """Let options be others from now on: `ttl`, `ttl_seconds`, `share`, `max_move`.

        Those that are not given stay. Decisions that are open have the new time to live, too. With
        another share, `uplift` begins anew. A policy without `ttl_seconds` or `max_move` can have
        none later, and one that has them keeps some: what was decided without has no time, and no
        reference.

        >>> import continuarm as ca
        >>> policy = ca.SurfaceSampling(ca.Box([18], [90]), ca.Box([1.0], [9.0]), ttl=1000)
        >>> policy.change(ttl=500, share=0.1)
        >>> policy.ttl, policy.share
        (500, 0.1)
        """
        unknown = set(options) - set(Changes.__annotations__)
        if unknown or not options:
            raise SettingsError(
                f"some of {list(Changes.__annotations__)} must be given to change them, but got "
                f"{sorted(options)}"
            )
        self.gate.alone(self._change, dict(options))

    def _change(self, options: dict[str, Any]) -> None:
        event = changing.event_of(self._life, options)
        if not changing.is_so(self._life, event):
            self._life.apply(event)

    @property
    def max_move(self) -> Array | None:
        """How far decisions may be from the reference, in units; None: anywhere."""
        move = self._life.beginning.max_move
        return None if move is None else move.copy()

    def _check_box(self, bin_: Bin) -> None:
        """Refuse a bin of another policy."""
        model = self._life.model
        for row, *box in boxes(model.pcfg, model.state.nodes):
            if model.state.rows[row, SERIAL] == bin_.id:
                low, high = (self.context.edge_from_unit(edge) for edge in box)
                if not (np.array_equal(low, bin_.low) and np.array_equal(high, bin_.high)):
                    raise InputError(f"`bin` must be of this policy, but got {bin_!r}")


def _where(given: Where | Segment) -> Any:
    return given.where if isinstance(given, Segment) else given
