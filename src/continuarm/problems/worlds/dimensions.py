"""Many decisions at once, or many contexts of which few matter."""

import math
from functools import partial
from typing import Any

from continuarm.core.compiling import Array
from continuarm.problems.building import compiled_helper, tracking
from continuarm.problems.definition import Problem
from continuarm.problems.entry import SUITE, UNSEEN, Entries, Entry

__all__ = [
    "WORLDS",
    "cubic",
    "forty_dims",
    "one_matters",
    "product_of_two",
    "sine",
    "three_of_nine",
]


def sine(dy: int) -> Problem:
    """A full period of a sine, each dimension with its own phase."""
    return tracking(
        1, dy, compiled_helper(lambda x, i: 0.5 + 0.3 * math.sin(2 * math.pi * (x[0] + i / dy)))
    )


def cubic() -> Problem:
    """Thirty dimensions that follow a cubic of the context."""

    def target(x: Array, i: int) -> Any:
        s = 2.0 * x[0] - 1.0
        return 0.5 + 0.3 * s * s * s - 0.01 * i * s

    return tracking(1, 30, compiled_helper(target), noise=0.3, steepness=0.1)


def forty_dims() -> Problem:
    """Forty decisions of unequal curvature, a tenth of them best at an edge."""

    def target(x: Array, i: int) -> Any:
        if i % 10 == 0:
            return 1.2
        return 0.3 + 0.01 * i + 0.2 * x[0]

    return tracking(1, 40, compiled_helper(target), steepness=0.2)


def one_matters(dx: int) -> Problem:
    """Only the first context dimension matters."""
    return tracking(
        dx,
        2,
        compiled_helper(lambda x, i: 0.5 + 0.35 * math.sin(2 * math.pi * x[0] + i)),
        steepness=2.0,
    )


def product_of_two() -> Problem:
    """Eight context dimensions; two matter, and only together."""

    def target(x: Array, i: int) -> Any:
        return 0.5 + 0.4 * (2.0 * x[2] - 1.0) * (2.0 * x[5] - 1.0) * (1.0 if i == 0 else -1.0)

    return tracking(8, 2, compiled_helper(target), steepness=2.0)


def three_of_nine() -> Problem:
    """Each of three decisions depends on a context dimension of its own; six matter to none."""

    def target(x: Array, i: int) -> Any:
        return 0.2 + 0.6 * x[3 * i] ** 2

    return tracking(9, 3, compiled_helper(target), steepness=1.0)


WORLDS: Entries = {
    "sine-5": Entry(partial(sine, 5), SUITE),
    "sine-20": Entry(partial(sine, 20), SUITE),
    "sine-50": Entry(partial(sine, 50), SUITE),
    "cubic-30-dims": Entry(cubic, SUITE),
    "forty-dims": Entry(forty_dims, UNSEEN),
    "one-of-5": Entry(partial(one_matters, 5), SUITE),
    "one-of-10": Entry(partial(one_matters, 10), SUITE),
    "product-of-two": Entry(product_of_two, SUITE),
    "three-of-9": Entry(three_of_nine, UNSEEN),
}
