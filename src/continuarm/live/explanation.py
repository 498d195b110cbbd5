"""An explanation of a decision: a dictionary of plain values, and text for who runs the shop."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.live.active_guards import Case, active_guards, allowed
from continuarm.live.events import (
    DRAWN,
    EARLY,
    LIMITED,
    OWN_RULE,
    SHARED,
    UNIFORM,
    WHILE_FROZEN,
    WHILE_PAUSED,
    Asked,
)
from continuarm.plots.explanation import plot_explanation
from continuarm.words import (
    box_in_words,
    label_of,
    listed,
    number_in_words,
    plus_minus,
    values_in_words,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Explanation", "Known", "explained"]

WIDTH = 96  # columns of the text
LIMITS = ("within", "max_move", "coupled limits")  # what can set the best decision known
SURE = 2.0  # standard errors
SAME = 1e-6  # of a side of the box
REASONS = {
    DRAWN: "It was the best decision of one payoff surface, drawn from all those that the payoffs "
    "leave possible: so it tries what may be better, and strays less the more is known",
    UNIFORM: "It was drawn evenly from all decisions within reach, as a few are, so that a change "
    "of the world is seen",
    EARLY: "Too few payoffs were known to say more: it was drawn evenly near what is done today",
    OWN_RULE: "It was what the policy's learner tries next around the best decision known",
    LIMITED: "It was the best decision known within the limits, which left nothing to learn",
    WHILE_FROZEN: "It was the best decision known: {whose} was frozen",
    SHARED: "It was what is done today, chosen by chance for the share that ours are compared to",
    WHILE_PAUSED: "It was what is done today, because the policy was paused",
}


class Explanation(dict[str, Any]):
    """The numbers behind a decision; printed, their `text`, a sentence to a line.

    >>> print(Explanation({"payoffs": 3, "text": "Its bin has learned 3 payoffs."}))
    Its bin has learned 3 payoffs.
    """

    def __str__(self) -> str:
        lines = str(self["text"]).splitlines()
        return "\n".join(textwrap.fill(line, WIDTH, subsequent_indent="  ") for line in lines)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw what was decided among what could have been; written to `path` if given."""
        return plot_explanation(self, path)


class Known(NamedTuple):
    """What an explanation is made of.

    start_given : whether somebody has said what is done today.
    allowed_start : the decision nearest to the start that is allowed.
    asked : the decision's event; None: what would be best for a context.
    then : whether `found` is as of when it was asked.
    found : what is known, in units but for slopes and curvatures, which are on the unit cube.
    """

    context: Box
    point: Array
    case: Case
    start: Array
    start_given: bool
    allowed_start: Array
    asked: Asked | None
    then: bool
    found: dict[str, Any]


def explained(known: Known) -> Explanation:
    """The numbers in units, and in words."""
    case, asked = known.case, known.asked
    decision = case.decision
    whole: dict[str, Any] = {
        "id": None if asked is None else asked.id,
        "context": known.point.tolist(),
        "value": case.value.tolist(),
        "role": None if asked is None else asked.role,
        "why": case.why,
        "as_of": "asked" if known.then else "now",
        **known.found,
        "centre": case.centre.tolist(),
        "away": (case.value - case.centre).tolist(),
        "start": known.start.tolist(),
        "allowed_start": known.allowed_start.tolist(),
        "names": list(decision.names),
        "box": [decision.low.tolist(), decision.high.tolist()],
        "allowed": allowed(case).tolist(),
        "limits": None if case.limits is None else case.limits.tolist(),
        "frozen": case.frozen,
        "guards": [guard._asdict() for guard in active_guards(case)],
    }
    if "slope_error" in whole:
        span = decision.span
        whole["per_unit"] = (whole["slope"] / span).tolist()
        whole["per_unit_error"] = (whole["slope_error"] / span).tolist()
    whole["text"] = "\n".join([*_headline(known), *_lines(whole, known)])
    return Explanation(whole)


def _headline(known: Known) -> list[str]:
    """What was decided, and why; or what is best."""
    case, context = known.case, known.context
    point, best = (
        values_in_words(known.point, context),
        values_in_words(case.centre, case.decision),
    )
    if known.asked is None:
        asked = f"For {point} the" if context.dim else "The"
        if case.segment:
            return [
                f"{asked} decision is {best}.",
                f"It was the best one known when its segment was frozen: {case.segment}.",
            ]
        return [f"{asked} best decision known is {best}."]
    of = f", for {point}," if context.dim else ""
    value = values_in_words(case.value, case.decision)
    lines = [f"Decision {known.asked.id}{of} was {value}."]
    if case.segment:
        lines.append(f"It was the best one known when its segment was frozen: {case.segment}.")
    elif case.why is not None:
        whose = "the policy" if case.one_bin else "its bin"
        lines.append(f"{REASONS[case.why].format(whose=whose)}.")
    if case.segment and np.array_equal(case.value, case.centre):
        return lines
    verb, when = ("was", "known then") if known.then else ("is", "known now")
    return [*lines, f"The best decision {when} {verb} {best}{_distance(case)}."]


def _distance(case: Case) -> str:
    """By how much a decision differs from the best one known."""
    parts = []
    for j, name in enumerate(case.decision.names):
        span, away = float(case.decision.span[j]), float(case.value[j] - case.centre[j])
        if abs(away) > SAME * span:
            more = "above" if away > 0.0 else "below"
            label = label_of(name, case.decision)
            parts.append(f"{number_in_words(abs(away), span)} {more} it in {label}")
    return f"; the decision lies {listed(parts)}" if parts else ", which is this decision"


def _lines(found: dict[str, Any], known: Known) -> list[str]:
    case, past = known.case, known.then
    then = past or bool(case.segment)
    today = values_in_words(known.start, case.decision)
    lines = [
        f"What is done today is {today}."
        if known.start_given
        else f"Nobody has said what is done today; the middle of the box, {today}, stands for it."
    ]
    if (known.start != known.allowed_start).any():
        nearest = values_in_words(known.allowed_start, case.decision)
        lines.append(f"That is not allowed here; the nearest decision that is: {nearest}.")
    where, has = box_in_words(found["low"], found["high"], known.context), "had" if then else "has"
    told, noun = found["payoffs"], "payoff" if found["payoffs"] == 1 else "payoffs"
    learned = "been told" if case.frozen and not case.segment else "learned"
    if case.one_bin:
        whole = f", from {where}" if known.context.dim else ""
        lines.append(f"The policy {has} {learned} {told:,} {noun}{whole}.")
    else:
        lines.append(f"Its bin, {where}, {has} {learned} {told:,} {noun} of its own.")
    if "peak" in found:
        lines += _sureness(found, case)
    elif found.get("early"):
        lines.append("Until it has learned more, what is done today counts as the best.")
    for j, name in enumerate(case.decision.names if "per_unit" in found else ()):
        gain, error = found["per_unit"][j], found["per_unit_error"][j]
        label, was = label_of(name, case.decision), "was" if then else "is"
        lines.append(f"One more unit of {label} {was} expected to bring {_gain(gain, error)}.")
    if any("±" in line for line in lines):
        lines.append("Each ± is two standard errors.")
    if found.get("in_words"):
        lines.append(f"{found['in_words'][:1].upper()}{found['in_words'][1:]}.")
    if known.asked is not None and not past:
        lines.append("What was known when it was asked was not kept: all this is as of now.")
    for guard in found["guards"]:
        lines.append(f"Guard {guard['guard']}: {guard['says']}{_held(guard, known)}.")
    return lines


def _held(guard: dict[str, Any], known: Known) -> str:
    """Whether a guard has set the decision, or sets the best one known."""
    if not guard["held"]:
        return ""
    if known.asked is not None:
        return " (it set this decision)"
    return " (it sets this decision)" if guard["guard"] in LIMITS else ""


def _sureness(found: dict[str, Any], case: Case) -> list[str]:
    """Where the payoffs put the best decision, and how sure that is."""
    known, unknown, further = [], [], False
    for j, name in enumerate(case.decision.names):
        span, label = float(case.decision.span[j]), label_of(name, case.decision)
        peak, error = found["peak"][j], found["peak_error"][j]
        if error is None:
            unknown.append(label)
        else:
            known.append(f"{label} at {plus_minus(peak, SURE * error)}")
            further |= abs(peak - case.centre[j]) > SAME * span
    lines = []
    if known:
        lines.append(f"Payoffs put the best {listed(known)}{_rest(found) if further else ''}.")
    if unknown:
        lie, they = "lies" if len(unknown) == 1 else "lie", "They" if known else "Payoffs"
        lines.append(f"{they} do not show yet where the best {listed(unknown)} {lie} in the box.")
    return lines


def _rest(found: dict[str, Any]) -> str:
    """Why the best decision known is not where payoffs put it."""
    held = [g["guard"] for g in found["guards"] if g["held"] and g["guard"] in LIMITS]
    if found["away"] == [0.0] * len(found["away"]) and held:
        return f"; {listed(held)} {'keeps' if len(held) == 1 else 'keep'} a decision from there"
    return "; a decision goes there as far as they make it sure"


def _gain(gain: float, error: float) -> str:
    both = plus_minus(gain, SURE * error, sign=True)
    if abs(gain) < SURE * error:
        return f"less than can be told from noise ({both})"
    return f"{both} in payoff"
