"""What the model of a bin is made of, and where in a row its numbers stand."""

from typing import NamedTuple

from continuarm.core.compiling import Array, compiled

__all__ = ["LARGEST_PAYOFF", "ResponseSurfaceConfig"]

LARGEST_PAYOFF = 1e100  # squares of payoffs must stay finite

# A row: numbers; the lowest and the highest decision told; for each context dimension the highest
# degree of it in the slopes and in the baseline; the rows of the triangle [R | d], each without
# the zeros before its diagonal; the terms that might enter the model (`candidates.py`).
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
# p, the coefficients that the model has by now; how many of them, the first, do not concern the
# decision; whether candidates have begun.
FOURTHS, LOUDEST, SIZE, FIRST, BEGUN, TRIED = range(16, 22)

TWO = 2  # degrees of the baseline enter at once
LINEAR, SQUARE = 1, 2  # degrees of a context in the slopes and in the baseline, from the start


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
    degree: int  # the highest degree of a context in the slopes
    most: int  # coefficients, whatever enters
    enter_lead: float


@compiled
def baseline(cfg: ResponseSurfaceConfig) -> int:
    """How many coefficients do not concern the decision at first; they come first."""
    return 1 + cfg.dx + (cfg.dx * (cfg.dx + 1) // 2 if cfg.pairs else cfg.dx)


@compiled
def size(cfg: ResponseSurfaceConfig) -> int:
    """The number of coefficients at first."""
    return baseline(cfg) + cfg.terms + cfg.dx * cfg.varying


@compiled
def size_of(row: Array) -> int:
    """p, the number of coefficients by now."""
    return int(row[SIZE])


@compiled
def first_of(row: Array) -> int:
    """How many of them do not concern the decision."""
    return int(row[FIRST])


@compiled
def slope_degree(cfg: ResponseSurfaceConfig, i: int) -> int:
    """Where in a row the degree of context i in the slopes stands."""
    return TRIED + 2 * cfg.dy + i


@compiled
def baseline_degree(cfg: ResponseSurfaceConfig, i: int) -> int:
    """Where in a row the degree of context i in the baseline stands."""
    return TRIED + 2 * cfg.dy + cfg.dx + i


@compiled
def triangle(cfg: ResponseSurfaceConfig) -> int:
    """Where in a row the triangle begins."""
    return TRIED + 2 * cfg.dy + 2 * cfg.dx


@compiled
def beside(cfg: ResponseSurfaceConfig) -> int:
    """Where in a row the candidates begin."""
    return triangle(cfg) + cfg.most * (cfg.most + 3) // 2


@compiled
def is_growing(cfg: ResponseSurfaceConfig) -> bool:
    """Whether terms may enter the model."""
    return cfg.degree > LINEAR


@compiled
def candidates(cfg: ResponseSurfaceConfig) -> int:
    """How many columns might enter: for each context the slopes', and the baseline's next."""
    return cfg.dx * beside_one(cfg) if is_growing(cfg) else 0


@compiled
def beside_one(cfg: ResponseSurfaceConfig) -> int:
    """How many columns of one context might enter, sooner or later."""
    return beside_slopes(cfg) + TWO


@compiled
def beside_slopes(cfg: ResponseSurfaceConfig) -> int:
    """How many of them belong to the slopes: dy for each degree above the first."""
    return (cfg.degree - LINEAR) * cfg.dy


# For each context dimension there are three candidates: the slopes' next degree, their next two,
# the baseline's next. Each has its lead and its noise. The first two share a triangle [T | d] of
# all degrees to come, whose first rows are those of the first; the third has its own.
NEXT, NEXT_TWO, OF_BASELINE, KINDS = range(4)
ITS_LEAD, ITS_SQUARES, ITS_DEGREES, ITS_NUMBERS = range(4)


@compiled
def slot(cfg: ResponseSurfaceConfig, i: int, kind: int) -> int:
    """Where in a row the numbers of a candidate of context i begin."""
    n = beside_slopes(cfg)
    both = KINDS * ITS_NUMBERS + n * (n + 3) // 2 + TWO * (TWO + 3) // 2
    return beside(cfg) + i * both + kind * ITS_NUMBERS


@compiled
def its_triangle(cfg: ResponseSurfaceConfig, i: int, kind: int) -> int:
    """Where in a row its triangle begins."""
    n = beside_slopes(cfg)
    return slot(cfg, i, KINDS) + (n * (n + 3) // 2 if kind == OF_BASELINE else 0)


@compiled
def cross(cfg: ResponseSurfaceConfig, k: int) -> int:
    """Where in a row what row k of the triangle says of the candidates begins."""
    return slot(cfg, cfg.dx, NEXT) + k * candidates(cfg)


def width(cfg: ResponseSurfaceConfig) -> int:
    """Numbers in a row."""
    return int(cross(cfg, cfg.most) if is_growing(cfg) else beside(cfg))


def scratch(cfg: ResponseSurfaceConfig) -> int:
    """Room for four vectors of coefficients, decisions, candidates, the search for the peak."""
    decisions = 6 * cfg.dy + cfg.dy * (2 * cfg.dy + 1)
    return int(4 * cfg.most + cfg.dx + 4 + decisions + candidates(cfg))
