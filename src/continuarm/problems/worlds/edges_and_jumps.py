"""Best decisions at the edge of the box, or that jump where the context passes a threshold."""

from functools import partial
from typing import Any

from continuarm.core.compiling import Array
from continuarm.problems.building import compiled_helper, tracking
from continuarm.problems.definition import Problem
from continuarm.problems.entry import SUITE, UNSEEN, Entries, Entry

__all__ = ["WORLDS", "edge", "jump", "stairs", "step_and_slope", "ten_with_edges"]


def edge(dy: int, inside: int) -> Problem:
    """The first dimensions want to leave the box, the last `inside` do not."""
    return tracking(
        1, dy, compiled_helper(lambda x, i: 1.3 if i < dy - inside else 0.3 + 0.4 * x[0])
    )


def ten_with_edges() -> Problem:
    """Ten dimensions, every other one at its edge for some contexts."""

    def target(x: Array, i: int) -> Any:
        return 0.6 + 0.7 * x[i % 2] - 0.02 * i if i % 2 == 0 else 0.5 - 0.03 * i + 0.2 * x[1]

    return tracking(2, 10, compiled_helper(target), steepness=1.0)


def jump() -> Problem:
    """The best decision jumps at x = 0.37."""

    def target(x: Array, i: int) -> Any:
        here = 0.25 if x[0] < 0.37 else 0.7
        return here if i == 0 else 1.0 - here

    return tracking(1, 2, compiled_helper(target), steepness=1.0)


def stairs() -> Problem:
    """Three jumps of different height."""

    def target(x: Array, i: int) -> Any:
        step = 0.0
        if x[0] > 0.15:
            step += 0.3
        if x[0] > 0.5:
            step -= 0.15
        if x[0] > 0.8:
            step += 0.4
        return 0.2 + step if i == 0 else 0.5 + 0.3 * x[0]

    return tracking(1, 2, compiled_helper(target))


def step_and_slope() -> Problem:
    """The best decision jumps in one context dimension and drifts in the other."""

    def target(x: Array, i: int) -> Any:
        high = x[0] >= 0.37
        return (0.7 if high else 0.25) - 0.1 * i + 0.15 * x[1]

    return tracking(2, 2, compiled_helper(target), steepness=2.0)


WORLDS: Entries = {
    "edge": Entry(partial(edge, 2, 1), SUITE),
    "corner": Entry(partial(edge, 3, 0), SUITE),
    "ten-with-edges": Entry(ten_with_edges, SUITE),
    "jump": Entry(jump, SUITE),
    "stairs": Entry(stairs, SUITE),
    "step-and-slope": Entry(step_and_slope, UNSEEN),
}
