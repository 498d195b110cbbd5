"""Explaining: what an explanation of a context or of a decision is made of.

A context is explained as of now. A decision is explained as of when it was asked, from its event;
where nobody listened, as of now, unless nothing was learned since.
"""

from typing import Any

import numpy as np

from continuarm.core.compiling import Array
from continuarm.core.model import viewed
from continuarm.errors import UnknownDecisionError
from continuarm.live.active_guards import Case
from continuarm.live.decision import Decision
from continuarm.live.events import INCUMBENTS, WHILE_FROZEN, WHILE_PAUSED, Asked
from continuarm.live.explanation import Explanation, Known, explained
from continuarm.live.in_words import contexts_in_words
from continuarm.live.limits import Within
from continuarm.live.segments import segment_of
from continuarm.live.shell import Shell
from continuarm.live.view import View, sizes
from continuarm.words import cut_ends

__all__ = ["of_context", "of_decision", "start_given"]


def of_context(policy: Shell, point: Array, within: Within | None) -> Explanation:
    """What is best for a context."""
    own = policy.life.incumbent.own
    start = None if own is None else own.at(point)
    found = policy.gate.alone(_now, policy, point, within, start)
    centre = np.array(found["centre"])
    near = policy.gate.alone(policy.life.near, point, within, start)
    limits = None if near is None else np.array(near)
    today = policy.life.incumbent.at(point)
    request = None if within is None else np.array(within)
    case = _case(policy, centre, centre, None, (limits, request), found)
    moved = policy.gate.alone(policy.life.incumbents, point, within, today)
    given = start_given(policy)
    return explained(Known(policy.context, point, case, today, given, moved, None, False, found))


def of_decision(policy: Shell, what: Decision | Asked) -> Explanation:
    """Why a decision was made."""
    event = what if isinstance(what, Asked) else what.event or _of_open(policy, what)
    for box, value in ((policy.context, event.context), (policy.decision, event.value)):
        box.point(value)
    centre, then = event.centre, event.view is not None
    within = None if event.limits is None else Within(*event.limits)
    if centre is None or event.view is None:
        found = policy.gate.alone(_now, policy, event.context, within, event.start, event.value)
        centre = np.array(found["centre"])
        found |= {} if event.segment is None else {"segment": event.segment}
    else:
        found = _then(policy, event, event.view)
    alone = policy.life.beginning.max_move is None or event.role == INCUMBENTS
    limits = event.limits, event.limits if alone else None
    case = _case(policy, event.value, centre, event.why, limits, found)
    point, today = event.context, event.start
    moved = policy.gate.alone(policy.life.incumbents, point, within, today)
    given = start_given(policy)
    return explained(Known(policy.context, point, case, today, given, moved, event, then, found))


def start_given(policy: Shell) -> bool:
    """Whether somebody, or a log, has said what is done today."""
    life = policy.life
    if life.beginning.start is not None or life.constant is None:
        return True
    return bool((life.constant != policy.decision.centre).any())


def _of_open(policy: Shell, decision: Decision) -> Asked:
    """The event of an open decision; with what was known, if nothing has been learned since."""
    try:
        return policy.gate.alone(_asked_again, policy, decision)
    except UnknownDecisionError as error:
        if str(error) != str(policy.life.open.refusal(decision.id)):  # it is another policy's
            raise
        raise type(error)(
            "a decision that is not open is explained by its event, which is kept if somebody "
            f"listens (`policy.listen`), but got decision {decision.id} without it"
        ) from None


def _asked_again(policy: Shell, decision: Decision) -> Asked:
    life, id_ = policy.life, policy.number_of(decision)
    _, _, context, value, start, at, number, bin_ = life.open.open[id_]
    if number >= life.learned_before:
        own = None if life.incumbent.own is None else start
        again, _ = life.decide(context, at, start=own, draw=id_)
        if again.value.tobytes() == value.tobytes() and again.role == decision.role:
            return again
    return Asked(id_, context, value, at, decision.role, bin_, None, start, None)


def _case(
    policy: Shell,
    value: Array,
    centre: Array,
    why: str | None,
    limits: tuple[Array | None, Array | None],
    found: dict[str, Any],
) -> Case:
    paused = policy.life.paused if why is None else why == WHILE_PAUSED
    frozen = found.get("frozen", False) if why is None else why == WHILE_FROZEN
    near, request = limits
    words = ""
    if frozen and found.get("segment") is not None:
        held = segment_of(found["segment"], policy.context)
        words = f"{held.in_words(policy.context)}, {held.since()}"
    set_by_all = policy.reach, policy.share, paused, frozen, policy.life.beginning.max_move, words
    one = policy.has_one_bin
    return Case(policy.decision, value, centre, why, near, request, *set_by_all, one)


def _then(policy: Shell, event: Asked, numbers: Array) -> dict[str, Any]:
    """What an event has kept."""
    decision = policy.decision
    view = View.of(numbers, policy.context.dim, decision.dim)
    found = {
        "bin": event.bin or None if event.segment is None else None,
        "low": view.low.tolist(),
        "high": view.high.tolist(),
        "payoffs": view.payoffs,
    }
    if event.segment is not None:
        found["segment"] = event.segment
    if view.surface is None:
        return found
    return found | viewed(view.surface, decision.low, decision.high)


def _now(
    policy: Shell,
    point: Array,
    within: Within | None,
    start: Array | None,
    value: Array | None = None,
) -> dict[str, Any]:
    """What is known now, in units; with slopes at a decision, if one is given."""
    life, context, decision = policy.life, policy.context, policy.decision
    found = life.explain(point, within, start)
    for edge in ("low", "high"):
        found[edge] = context.edge_from_unit(found[edge]).tolist()
    centre = decision.from_unit(found["centre"])
    low, high = life.near(point, within, start) or (decision.low, decision.high)
    found["centre"] = np.clip(centre, low, high).tolist()
    if life.is_guarded:
        starts = None if start is None else start[None, :]
        found["centre"] = life.recommend(point[None, :], within, starts)[0].tolist()
    if value is not None and "peak" in found:
        seen = np.zeros(sizes(context.dim, decision.dim)[1] - 1)
        known = life.answering(point)
        known.model.view(point, known.limits_within(within, start), value, seen)
        found |= viewed(seen[2 * context.dim :], decision.low, decision.high)
    if "tried" in found:
        found["tried"] = decision.from_unit(found["tried"]).tolist()
    if "chances" in found:
        ends = zip(found["low"], found["high"], strict=True)
        cut = [any(cut_ends(*both, context, i)) for i, both in enumerate(ends)]
        names = (context.names, decision.names)
        found["in_words"] = contexts_in_words(found["chances"], cut, *names)
    return found
