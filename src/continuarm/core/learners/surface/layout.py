"""What the model of a bin is made of, and where in a row its numbers stand."""

from typing import NamedTuple

from continuarm.core.compiling import compiled

__all__ = ["LARGEST_PAYOFF", "ResponseSurfaceConfig"]

LARGEST_PAYOFF = 1e100  # squares of payoffs must stay finite

# A row: numbers, then the lowest and the highest decision told, then the rows of the triangle
# [R | d], each without the zeros before its diagonal.
#
# SEEN counts the bin's own payoffs, KNOWN also the inherited ones, AGE those with the weight that
# they have kept. WEIGHT is that of the next observation; SQUARES / DEGREES the noise (eq. 3).
SEEN, KNOWN, AGE, WEIGHT, SQUARES, DEGREES, REFERENCE = range(7)
# Of a steady surface (eq. 15 to 21): how many payoffs in a row were far off, on which side, how
# often they usually are, the evidence for a surge of them, the payoffs since the last one, those
# that what is known of the decision counts for; how much of the level was forgotten on purpose;
# whether the level is followed; how far from here, and with which lead, the other choice sees it;
# Σ (cr²)², the largest variance since weights were set.
RUN, USUAL, SURGE, SINCE, BELIEVED, FORGOTTEN, FOLLOWS, OFFSET, LEAD = range(7, 16)
FOURTHS, LOUDEST, TRIED = range(16, 19)


class ResponseSurfaceConfig(NamedTuple):
    """A response surface as numbers.

    The features of the decision are its dy dimensions, their dy squares, their products.
    """

    dx: int
    dy: int
    terms: int  # q features of the decision: 2dy (a diagonal Hessian) or dy + dy(dy+1)/2
    varying: int  # for the first of them, from dy on (or none), it depends on the context
    pairs: bool  # all products of two context dimensions in the baseline, or the squares
    fade: float  # γ
    spread: float  # κ
    ridge: float  # λ
    varying_ridge: float  # λ' of what depends on the context
    middle: float
    grace: float
    memory: float  # 0: only eq. 4 fades
    reach: float  # r, in v; 0: the whole box
    gated: bool
    bounded: bool
    level: bool
    calm: bool


@compiled
def baseline(cfg: ResponseSurfaceConfig) -> int:
    """How many coefficients do not concern the decision; they come first."""
    return 1 + cfg.dx + (cfg.dx * (cfg.dx + 1) // 2 if cfg.pairs else cfg.dx)


@compiled
def size(cfg: ResponseSurfaceConfig) -> int:
    """p, the number of coefficients."""
    return baseline(cfg) + cfg.terms + cfg.dx * cfg.varying


@compiled
def triangle(cfg: ResponseSurfaceConfig) -> int:
    """Where in a row the triangle begins."""
    return TRIED + 2 * cfg.dy


def width(cfg: ResponseSurfaceConfig) -> int:
    """Numbers in a row."""
    p = size(cfg)
    return int(triangle(cfg) + p * (p + 3) // 2)


def scratch(cfg: ResponseSurfaceConfig) -> int:
    """Room for four vectors of coefficients, decisions, and the search for the peak."""
    return int(4 * size(cfg) + 2 + 6 * cfg.dy + cfg.dy * (2 * cfg.dy + 1))
