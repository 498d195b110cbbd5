"""What a learner is asked, what it is told, and what it says of that: bundles with names."""

from typing import Any, NamedTuple

from continuarm.core.compiling import Array, compiled

__all__ = [
    "ALONE",
    "EMPTY",
    "FREE",
    "FROZEN",
    "FULL",
    "INCUMBENT",
    "MOST_SURPRISED",
    "NOTHING",
    "UNFORESEEN",
    "Foreseen",
    "Free",
    "Learned",
    "Observation",
    "Region",
    "Request",
]

# Tickets below 0. ALONE: the payoff can be learned by itself, whoever asked. NOTHING: the payoff
# teaches nothing. FULL is no ticket: the arrays are full, nothing was changed, enlarge them.
# INCUMBENT: the decision is what the incumbent would do. EMPTY is none, either: limits and guards
# together leave nothing. FROZEN: the decision is the best one known.
ALONE, FULL, NOTHING, INCUMBENT, EMPTY, FROZEN = -1, -2, -3, -4, -5, -6


class Free(NamedTuple):
    """No guard but a box."""


FREE = Free()


class Region(NamedTuple):
    """Where a decision may lie, on the unit cube."""

    low: Array
    high: Array
    whole: bool  # no limit but the cube
    guard: Any = FREE  # what else limits it; its class selects the code


class Request(NamedTuple):
    """What a decision is asked for."""

    u: Array  # the context scaled to [-1, 1] in its bin, where the learner uses it
    region: Region
    start: Array  # what the incumbent would do for this context
    reach: Array  # how far from what is known to be good it may try; 0: there is no reach
    xi: Array  # the standard normal numbers that the learner declared


class Observation(NamedTuple):
    """A decision that was made and what it paid."""

    u: Array  # as above
    y: Array  # the decision on the unit cube
    z: float  # its payoff
    gradient: Array  # of the payoff, where the learner uses it
    elapsed: float  # payoffs the policy has learned since the bin's last one, this included
    ticket: int
    is_bin: bool  # whether the bin is still asked, or has split


class Foreseen(NamedTuple):
    """How well a payoff was foreseen, by the prediction made before it was learned."""

    square: float  # r² = e²/(1+h), e the error and h the prediction's share of the variance
    spread: float  # -½ ln(1+h)
    forgotten: float  # how much of the payoffs' level was forgotten on purpose, before it
    began: bool  # to follow the level just now: what challengers led by says nothing any more
    follows: bool  # the level: a level that moves looks like evidence
    cut: float  # what of the payoff was too absurd to be learned, by the bin or its challengers
    excess: float  # what that adds to r² where the noise is concerned
    jumped: bool  # the level
    surging: bool  # payoffs far off came much more often than usual, before it
    variance: float  # s², before it; 0: not known
    uncut: float  # r², whatever was cut
    gained: float  # how much better it would have been foreseen by terms that have just entered
    hoped: float  # the largest lead of a term that might enter
    hoped_of: int  # the context that it belongs to
    judged: bool  # the learner had an idea of its noise, so that it can say how surprised it is:
    surprise: float  # r/s, cut to ±MOST_SURPRISED
    decided: float  # how much better it was foreseen than without the decision, in logarithm


MOST_SURPRISED = 30.0
UNFORESEEN = Foreseen(
    *(0.0, 0.0, 0.0, False, False, 0.0, 0.0, False, False, 0.0, 0.0, 0.0, 0.0, 0),
    *(False, 0.0, 0.0),
)


class Learned(NamedTuple):
    """What a bin has just learned."""

    row: int
    seen: Observation
    foreseen: Foreseen


@compiled
def clip_into(region: Region, y: Array) -> None:
    """Move a decision to the nearest one of the region; what is no number, to its low edge."""
    for i in range(y.shape[0]):
        y[i] = min(y[i], region.high[i]) if y[i] >= region.low[i] else region.low[i]


@compiled
def is_inside(region: Region, y: Array) -> bool:
    """Whether a decision lies in the region."""
    for i in range(y.shape[0]):
        if y[i] < region.low[i] or y[i] > region.high[i]:
            return False
    return True
