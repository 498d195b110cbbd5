"""Which guards were active when a decision was made, and whether one of them set it.

A guard is a function of the case that answers a `Guard`, or None where it is not set; the list at
the end has them all.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.live.events import SHARED, WHILE_FROZEN, WHILE_PAUSED
from continuarm.live.limits import Within, at_ends
from continuarm.sets import Polytope
from continuarm.words import box_in_words, label_of, listed, number_in_words

__all__ = ["Case", "Guard", "active_guards", "allowed", "coupled_in_words", "spacing_in_words"]

AT_AN_EDGE = 1e-9  # of a side of the box


class Case(NamedTuple):
    """A decision, and what limited it, in units."""

    decision: Box
    value: Array
    centre: Array  # the best decision known
    why: str | None
    limits: Array | None  # the lowest and the highest values, of the request and near a reference
    request: Array | None  # those of the request alone, as far as they are known
    reach: Array | None
    share: float
    paused: bool
    frozen: bool  # its bin, or a segment
    max_move: Array | None  # from the reference
    segment: str = ""  # that is frozen, and since when; empty: a bin
    one_bin: bool = False  # there is no other

    @property
    def is_ours(self) -> bool:
        """Whether it is not the incumbent's decision."""
        return not self.paused and self.why not in (SHARED, WHILE_PAUSED)


class Guard(NamedTuple):
    """A limit that somebody has set.

    held : whether the decision is what it is because of it.
    """

    guard: str
    says: str
    held: bool


def _reach(case: Case) -> Guard | None:
    if case.reach is None:
        return None
    parts = [
        f"{label_of(name, case.decision)} within {number_in_words(part, span)}"
        for name, part, span in zip(
            case.decision.names, case.reach.tolist(), case.decision.span.tolist(), strict=True
        )
    ]
    from_edge = abs(abs(case.value - case.centre) - case.reach)
    held = case.is_ours and bool((from_edge <= AT_AN_EDGE * case.decision.span).any())
    return Guard("reach", f"{listed(parts)} of the best known", held)


def _within(case: Case) -> Guard | None:
    if case.request is None:
        return None
    low, high = case.request
    says = box_in_words(low, high, case.decision, "the whole box")
    return Guard("within", says, bool(_at_ends(case, case.request).any()))


def _max_move(case: Case) -> Guard | None:
    """It holds what lies at one of its ends that is not one of the request, too."""
    moves = _moves(case)
    if case.limits is None or not moves or case.why in (SHARED, WHILE_PAUSED):
        return None
    ends = _at_ends(case, case.limits)
    if case.request is not None:
        ends = np.logical_and(ends, case.limits != case.request)
    low, high = case.limits
    says = f"{box_in_words(low, high, case.decision)}: {listed(moves)} from the reference"
    says += "" if case.why is None else ", and what the request allowed"
    return Guard("max_move", says, bool(ends.any()))


def _at_ends(case: Case, limits: Array) -> Array:
    return at_ends(case.decision, Within(*limits), case.value)


def _moves(case: Case) -> list[str]:
    """How far each coordinate may move, but for those that may go anywhere."""
    if case.max_move is None:
        return []
    return [
        f"{label_of(name, case.decision)} at most {number_in_words(move, span)}"
        for name, move, span in zip(
            case.decision.names, case.max_move.tolist(), case.decision.span.tolist(), strict=True
        )
        if move < span
    ]


def _share(case: Case) -> Guard | None:
    if case.share == 0.0 or case.paused:
        return None
    says = f"{100.0 * case.share:g} % of decisions are what is done today, to compare with"
    return Guard("share", says, case.why == SHARED)


def _frozen(case: Case) -> Guard | None:
    whose = "the policy" if case.one_bin else "its bin"
    says = f"{whose} answers with its best decision, and learns nothing"
    if case.segment:
        says = f"{case.segment}: it answers with the best decision known then, and learns nothing"
    return Guard("freeze", says, case.why in (WHILE_FROZEN, None)) if case.frozen else None


def _pause(case: Case) -> Guard | None:
    return Guard("pause", "every decision is what is done today", True) if case.paused else None


def _spacing(case: Case) -> Guard | None:
    says = spacing_in_words(case.decision)
    return Guard("spacing", says, False) if says else None


def spacing_in_words(box: Box) -> str:
    """Which values are allowed; empty: all."""
    parts = [
        f"{label_of(name, box)} in steps of {step:g}{f' that end in {end:g}' if end else ''}"
        for name, step, end in zip(box.names, box.spacing, box.ending, strict=True)
        if step
    ]
    return listed(parts) if parts else ""


def _coupled(case: Case) -> Guard | None:
    """An equality sets every decision; an inequality those that lie at its edge."""
    decision = case.decision
    if not isinstance(decision, Polytope):
        return None
    sides = np.abs(decision.A) @ decision.span
    held = decision.A @ case.value >= decision.b - AT_AN_EDGE * sides
    says = coupled_in_words(decision)
    return Guard("coupled limits", says, bool(held.any()) or len(decision.equal[1]) > 0)


def coupled_in_words(decision: Box) -> str:
    """Which coordinates limit one another; empty: none."""
    texts = decision.texts if isinstance(decision, Polytope) else ()
    return listed([f"`{text}`" for text in texts]) if texts else ""


GUARDS: tuple[Callable[[Case], Guard | None], ...] = (
    _reach,
    _within,
    _max_move,
    _spacing,
    _coupled,
    _frozen,
    _share,
    _pause,
)


def active_guards(case: Case) -> list[Guard]:
    """Those that are set."""
    return [found for guard in GUARDS if (found := guard(case)) is not None]


def allowed(case: Case) -> Array:
    """The lowest and the highest values that were to choose from."""
    low, high = case.limits if case.limits is not None else (case.decision.low, case.decision.high)
    if not case.is_ours or case.frozen:
        return np.array([case.value, case.value])
    if case.reach is None:
        return np.array([low, high])
    return np.array(
        [np.maximum(low, case.centre - case.reach), np.minimum(high, case.centre + case.reach)]
    )
