"""Numbers, values and parts of a box as people write them."""

import math
from collections.abc import Sequence

from continuarm.box import Box
from continuarm.core.compiling import Array

__all__ = ["box_in_words", "cut_ends", "label_of", "listed", "number_in_words", "plus_minus"]
__all__ += ["values_in_words"]

Edges = Sequence[float] | Array

SHOWN = 4  # digits of the width of a box
MOST_DECIMALS = 12
FEW_DECIMALS = 6  # of a number with its error


def number_in_words(value: float, span: float) -> str:
    """A number as people write it, as exact as matters in a box of this width.

    >>> number_in_words(125000.0, 2.5e5), number_in_words(3.25, 8.0)
    ('125,000', '3.25')
    >>> number_in_words(0.00012, 1e-3), number_in_words(1000.37, 1.0)
    ('0.00012', '1,000.37')
    >>> number_in_words(-0.0, 1.0), number_in_words(1e300, 1e300)
    ('0', '1e+300')
    """
    decimals = max(SHOWN - 1 - math.floor(math.log10(span)), 0)
    if decimals > MOST_DECIMALS or abs(value) >= 1e15:
        return f"{value:.6g}"
    text = f"{value:,.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def plus_minus(value: float, error: float, *, sign: bool = False) -> str:
    """A number with its standard error, as exact as that is.

    >>> plus_minus(4.9576, 0.1093), plus_minus(-1.8e-15, 0.27, sign=True)
    ('4.96 ± 0.11', '+0.00 ± 0.27')
    >>> plus_minus(123456.0, 1234.0), plus_minus(2.5e-9, 1.3e-10), plus_minus(3.0, 0.0)
    ('123,456 ± 1,234', '2.5e-09 ± 1.3e-10', '3 ± 0')
    >>> plus_minus(3.0, math.inf)
    '0 ± inf'
    """
    plus = "+" if sign else ""
    decimals = 1 - math.floor(math.log10(error)) if 0.0 < error < math.inf else MOST_DECIMALS
    if decimals > FEW_DECIMALS or max(abs(value), error) >= 1e15:
        seen = value if abs(value) > 0.005 * error else 0.0
        return f"{seen:{plus}.3g} ± {error:.2g}"
    shown = round(value, max(decimals, 0)) + 0.0  # never -0
    return f"{shown:{plus},.{max(decimals, 0)}f} ± {error:,.{max(decimals, 0)}f}"


def label_of(name: str, box: Box) -> str:
    """What a dimension is called.

    >>> label_of("price", Box([0], [1], names=["price"])), label_of("0", Box([0], [1]))
    ('price', 'dimension 0')
    """
    return name if box.named else f"dimension {name}"


def listed(names: Sequence[str]) -> str:
    """Several things in one sentence.

    >>> listed(["age", "income", "hour"])
    'age, income and hour'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def values_in_words(values: Edges, box: Box) -> str:
    """Values by name.

    >>> values_in_words([37.0, 52000.0], Box([18, 0], [90, 2.5e5], names=["age", "income"]))
    'age 37, income 52,000'
    """
    pairs = zip(values, box.span.tolist(), strict=True)
    numbers = [number_in_words(float(value), span) for value, span in pairs]
    if not box.named:
        return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"
    named = zip(box.names, numbers, strict=True)
    return ", ".join(f"{name} {number}" for name, number in named)


def cut_ends(low: float, high: float, box: Box, i: int) -> tuple[bool, bool]:
    """Whether edges are inside the box's, below and above; they were scaled, and so rounded.

    >>> cut_ends(0.0, 0.7 * 3, Box([0.0], [2.1]), 0)
    (False, False)
    """
    near = 1e-12 * float(box.span[i]) + 2.0 * math.ulp(box.high[i])
    return bool(low > box.low[i] + near), bool(high < box.high[i] - near)


def box_in_words(low: Edges, high: Edges, box: Box, whole: str = "all contexts") -> str:
    """A part of a box, by the edges that are its own.

    >>> box = Box([18, 0], [90, 2.5e5], names=["age", "income"])
    >>> box_in_words([30, 0], [54, 1.25e5], box)
    'age 30–54, income under 125,000'
    >>> box_in_words([18, 1e5], [90, 2.5e5], box)
    'income from 100,000'
    >>> box_in_words([18, 0], [90, 2.5e5], box)
    'all contexts'
    """
    parts = []
    for i, name in enumerate(box.names):
        bottom, top = cut_ends(low[i], high[i], box, i)
        span = float(box.span[i])
        ends = number_in_words(float(low[i]), span), number_in_words(float(high[i]), span)
        label = f"{label_of(name, box)}{'' if box.named else ':'}"
        if bottom and top:
            between = "–" if low[i] >= 0.0 else " to "
            parts.append(f"{label} {ends[0]}{between}{ends[1]}")
        elif bottom:
            parts.append(f"{label} from {ends[0]}")
        elif top:
            parts.append(f"{label} under {ends[1]}")
    return ", ".join(parts) or whole
