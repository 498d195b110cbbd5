"""What a smooth surface is made of, and where in a row its numbers stand."""

from typing import NamedTuple

from continuarm.core.compiling import Array, compiled

__all__ = ["LARGEST_PAYOFF", "SmoothSurfaceConfig"]

LARGEST_PAYOFF = 1e100  # squares of payoffs must stay finite

# A row: numbers; the numbers of each rung; the columns in their order; what each group is worth;
# the evidence for pairs of contexts; the rows of the triangle [R | d], each without the zeros
# before its diagonal, d always at the end.
#
# SEEN counts payoffs, AGE those with the weight that they have kept. WEIGHT is that of the next
# payoff, REFERENCE the first one, RUNG the one that decides. ALIVE is how many columns there are,
# LOOK how many payoffs there are when their order is looked at again, SINCE those heard for pairs.
# ALIKE says how much successive errors are alike, LAST is the last of them.
SEEN, AGE, WEIGHT, REFERENCE, RUNG, ALIVE, LOOK, SINCE, ALIKE, LAST, RUNGS = range(11)
# of a rung: its prequential score, its noise, its columns
SCORE, SQUARES, DEGREES, END, NUMBERS = range(5)
MOST_RUNGS = 20
# A function of the context: i, a, j, b of P_a(u_i) P_b(u_j), and the functions that it refines.
# With a = STEP, b is the place of a step of u_i.
FUNCTION, STEP = 6, -1
# Kinds of features of the decision; a group is a function times a kind.
LEVEL, SLOPES, CURVES, KINDS = range(4)
ABSENT = -1e18  # the worth of a group that has no columns


class SmoothSurfaceConfig(NamedTuple):
    """A smooth surface as numbers.

    The features of the decision are 1, its dy dimensions, their halved squares, their products.
    """

    dx: int
    dy: int
    features: int  # 1 + 2dy (a diagonal Hessian) or 1 + dy + dy(dy+1)/2
    functions: int  # of the context
    pairs: int  # the last of them, which enter by evidence of their own
    first: int  # groups at the beginning, after the constants
    size: int  # p, the columns, at most
    degree: int  # the highest of a context
    early: int  # payoffs of the first day
    fade: float  # γ
    spread: float  # κ
    recent: float  # how fast scores fade
    reach: float  # r, in v; 0: the whole box
    memory: float  # 0: only γ fades
    table: Array  # the functions; the function and kind of each group at the beginning


@compiled
def function_at(k: int) -> int:
    """Where in the table function k of the context stands."""
    return FUNCTION * k


@compiled
def group_at(cfg: SmoothSurfaceConfig, k: int) -> int:
    """Where in the table group k of the beginning stands."""
    return function_at(cfg.functions) + 2 * k


@compiled
def rung_at(rung: int) -> int:
    """Where in a row the numbers of a rung stand."""
    return RUNGS + NUMBERS * rung


@compiled
def column_at(k: int) -> int:
    """Where in a row column k stands: its function, and its feature."""
    return rung_at(MOST_RUNGS) + 2 * k


@compiled
def worth_at(cfg: SmoothSurfaceConfig, function: int, kind: int) -> int:
    """Where in a row stands what a group is worth; `ABSENT`: it has no columns."""
    return column_at(cfg.size) + KINDS * function + kind


@compiled
def sums_at(cfg: SmoothSurfaceConfig, pair: int, feature: int) -> int:
    """Where in a row the evidence for a pair stands: a sum, and the sum of its squares."""
    return worth_at(cfg, cfg.functions, 0) + 2 * (pair * (1 + cfg.dy) + feature)


@compiled
def triangle(cfg: SmoothSurfaceConfig) -> int:
    """Where in a row the triangle begins."""
    return sums_at(cfg, cfg.pairs, 0)


@compiled
def row_at(cfg: SmoothSurfaceConfig, i: int) -> int:
    """Where in a row of the learner row i of the triangle begins."""
    return triangle(cfg) + i * (cfg.size + 1) - i * (i - 1) // 2


@compiled
def alive_of(row: Array) -> int:
    """How many columns there are."""
    return int(row[ALIVE])


@compiled
def lead_of(row: Array) -> int:
    """The rung that decides."""
    return int(row[RUNG])


@compiled
def end_of(row: Array, rung: int) -> int:
    """How many columns a rung has."""
    return int(row[rung_at(rung) + END])


@compiled
def noise_of(row: Array, rung: int) -> float:
    """s² of a rung (eq. 4); 0: not known."""
    k = rung_at(rung)
    return row[k + SQUARES] / row[k + DEGREES] if row[k + SQUARES] > 0.0 else 0.0


@compiled
def first_payoffs(cfg: SmoothSurfaceConfig) -> int:
    """Payoffs before which no rung is judged."""
    return cfg.early


@compiled
def kind_of(cfg: SmoothSurfaceConfig, feature: int) -> int:
    """To which kind a feature belongs."""
    if feature == 0:
        return LEVEL
    return SLOPES if feature <= cfg.dy else CURVES


@compiled
def first_of(cfg: SmoothSurfaceConfig, kind: int) -> int:
    """The first feature of a kind; that of `KINDS` is the number of features."""
    if kind == LEVEL:
        return 0
    if kind == SLOPES:
        return 1
    return 1 + cfg.dy if kind == CURVES else cfg.features


@compiled
def size_of(cfg: SmoothSurfaceConfig, kind: int) -> int:
    """How many columns a group of a kind has."""
    return first_of(cfg, kind + 1) - first_of(cfg, kind)


def width(cfg: SmoothSurfaceConfig) -> int:
    """Numbers in a row."""
    return int(row_at(cfg, cfg.size))


def scratch(cfg: SmoothSurfaceConfig) -> int:
    """Room for four vectors of columns, two of rungs, functions, features, decisions, and
    polynomials or the search for a peak."""
    rest = max(cfg.dx * (cfg.degree + 1), cfg.dy * (2 * cfg.dy + 1), cfg.features)
    vectors = 4 * cfg.size + 2 * MOST_RUNGS + cfg.functions
    return int(vectors + 2 * cfg.features + 4 * cfg.dy + rest + 1)
