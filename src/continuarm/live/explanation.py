"""An explanation of a decision: a dictionary of plain values, and text for who runs the shop."""

import math
from collections.abc import Sequence
from typing import Any

from continuarm.box import Box
from continuarm.core.compiling import Array

__all__ = ["Explanation", "box_in_words", "explained", "values_in_words"]

Edges = Sequence[float] | Array

SURE = 2.0  # standard errors
SHOWN = 4  # digits of the width of a box
MOST_DECIMALS = 12


class Explanation(dict[str, Any]):
    """The numbers behind a decision; printed, their `text`.

    >>> print(Explanation({"payoffs": 3, "text": "Its bin has learned 3 payoffs."}))
    Its bin has learned 3 payoffs.
    """

    def __str__(self) -> str:
        return str(self["text"])


def explained(
    found: dict[str, Any], point: Array, start: Array, context: Box, decision: Box, *, paused: bool
) -> Explanation:
    """The same with what can be said in units and in words.

    found : what `explain` of the model gives, with boxes and decisions in units.
    """
    whole = dict(found) | {"start": start.tolist()}
    if "slope_error" in found:
        whole["per_unit"] = (found["slope"] / decision.span).tolist()
        whole["per_unit_error"] = (found["slope_error"] / decision.span).tolist()
        whole["centre_error"] = _centre_errors(found, decision)
    asked = f"For {values_in_words(point, context)} the" if context.dim else "The"
    best = f"{asked} best decision known is {values_in_words(found['centre'], decision)}."
    whole["text"] = "\n".join([best, *_lines(whole, context, decision, paused=paused)])
    return Explanation(whole)


def _centre_errors(found: dict[str, Any], decision: Box) -> list[float | None]:
    """How sure the best decision is, in units; None: the payoff is not surely concave there."""
    numbers = zip(
        found["slope_error"],
        found["curvature"],
        found["curvature_error"],
        decision.span.tolist(),
        strict=True,
    )
    return [
        slope / -bend * span if bend < -SURE * error else None
        for slope, bend, error, span in numbers
    ]


def _lines(found: dict[str, Any], context: Box, decision: Box, *, paused: bool) -> list[str]:
    lines = [f"What is done today is {values_in_words(found['start'], decision)}."]
    where = box_in_words(found["low"], found["high"], context)
    lines.append(f"Its bin, {where}, has learned {found['payoffs']:,} payoffs of its own.")
    for j, name in enumerate(decision.names if "per_unit" in found else ()):
        gain, error = found["per_unit"][j], found["per_unit_error"][j]
        lines.append(f"One more unit of {_named(name, decision)} is worth {_gain(gain, error)}.")
    for j, error in enumerate(found.get("centre_error", ())):
        if error is not None:
            label = _named(decision.names[j], decision)
            lines.append(f"The best {label} is known to about ± {error:.2g}.")
    if found.get("in_words"):
        lines.append(f"{found['in_words'][:1].upper()}{found['in_words'][1:]}.")
    if found.get("frozen"):
        lines.append("This bin is frozen: it answers with its best decision and learns nothing.")
    if paused:
        lines.append("The policy is paused: every decision is what is done today.")
    return lines


def _gain(gain: float, error: float) -> str:
    if abs(gain) < SURE * error:
        return f"no more than noise ({gain:+.3g} ± {error:.2g})"
    return f"{gain:+.3g} ± {error:.2g} in payoff"


def _named(name: str, box: Box) -> str:
    return name if box.named else f"dimension {name}"


def _number(value: float, span: float) -> str:
    """A number as people write it, as exact as matters in a box of this width.

    >>> _number(125000.0, 2.5e5), _number(3.25, 8.0), _number(0.00012, 1e-3)
    ('125,000', '3.25', '0.00012')
    >>> _number(1000.37, 1.0), _number(-0.0, 1.0), _number(1e300, 1e300)
    ('1,000.37', '0', '1e+300')
    """
    decimals = max(SHOWN - 1 - math.floor(math.log10(span)), 0)
    if decimals > MOST_DECIMALS or abs(value) >= 1e15:
        return f"{value:.6g}"
    text = f"{value:,.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def values_in_words(values: Edges, box: Box) -> str:
    """Values by name.

    >>> values_in_words([37.0, 52000.0], Box([18, 0], [90, 2.5e5], names=["age", "income"]))
    'age 37, income 52,000'
    """
    pairs = zip(values, box.span.tolist(), strict=True)
    numbers = [_number(float(value), span) for value, span in pairs]
    if not box.named:
        return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"
    named = zip(box.names, numbers, strict=True)
    return ", ".join(f"{name} {number}" for name, number in named)


def box_in_words(low: Edges, high: Edges, box: Box) -> str:
    """A part of a box, by the edges that are its own.

    >>> box = Box([18, 0], [90, 2.5e5], names=["age", "income"])
    >>> box_in_words([30, 0], [54, 1.25e5], box)
    'age 30 to 54, income under 125,000'
    >>> box_in_words([18, 1e5], [90, 2.5e5], box)
    'income from 100,000'
    >>> box_in_words([18, 0], [90, 2.5e5], box)
    'all contexts'
    """
    parts = []
    for i, name in enumerate(box.names):
        bottom, top = low[i] > box.low[i], high[i] < box.high[i]
        span = float(box.span[i])
        ends = _number(float(low[i]), span), _number(float(high[i]), span)
        label = name if box.named else f"dimension {name}:"
        if bottom and top:
            parts.append(f"{label} {ends[0]} to {ends[1]}")
        elif bottom:
            parts.append(f"{label} from {ends[0]}")
        elif top:
            parts.append(f"{label} under {ends[1]}")
    return ", ".join(parts) or "all contexts"
