"""What a smooth surface is made of, and where in a row its numbers stand."""

from typing import NamedTuple

from continuarm.core.compiling import Array, compiled

__all__ = ["LARGEST_PAYOFF", "SmoothSurfaceConfig"]

LARGEST_PAYOFF = 1e100  # squares of payoffs must stay finite

# A row: numbers; the numbers of each rung; the rows of the triangle [R | d], each without the
# zeros before its diagonal.
#
# SEEN counts payoffs, AGE those with the weight that they have kept. WEIGHT is that of the next
# payoff, REFERENCE the first one, RUNG the one that decides.
SEEN, AGE, WEIGHT, REFERENCE, RUNG, RUNGS = range(6)
# of a rung: its prequential score, its noise
SCORE, SQUARES, DEGREES, NUMBERS = range(4)


class SmoothSurfaceConfig(NamedTuple):
    """A smooth surface as numbers.

    The features of the decision are 1, its dy dimensions, their halved squares, their products.
    """

    dx: int
    dy: int
    features: int  # 1 + 2dy (a diagonal Hessian) or 1 + dy + dy(dy+1)/2
    functions: int  # of the context
    size: int  # p, the columns
    rungs: int
    degree: int  # the highest of a context
    fade: float  # γ
    spread: float  # κ
    recent: float  # how fast scores fade
    reach: float  # r, in v; 0: the whole box
    memory: float  # 0: only γ fades
    table: Array  # of the ladder: the ends, the functions, the columns, the ridges


@compiled
def end_of(cfg: SmoothSurfaceConfig, rung: int) -> int:
    """How many columns a rung has."""
    return int(cfg.table[rung])


@compiled
def function_at(cfg: SmoothSurfaceConfig, k: int) -> int:
    """Where in the table function k of the context stands: i, a, j, b of P_a(u_i) P_b(u_j)."""
    return cfg.rungs + 4 * k


@compiled
def column_at(cfg: SmoothSurfaceConfig, k: int) -> int:
    """Where in the table column k stands: its function, and its feature."""
    return function_at(cfg, cfg.functions) + 2 * k


@compiled
def ridge_of(cfg: SmoothSurfaceConfig, k: int) -> float:
    """λ of column k."""
    return float(cfg.table[column_at(cfg, cfg.size) + k])


@compiled
def rung_at(cfg: SmoothSurfaceConfig, rung: int) -> int:
    """Where in a row the numbers of a rung stand."""
    return RUNGS + NUMBERS * rung


@compiled
def triangle(cfg: SmoothSurfaceConfig) -> int:
    """Where in a row the triangle begins."""
    return rung_at(cfg, cfg.rungs)


@compiled
def row_at(cfg: SmoothSurfaceConfig, i: int) -> int:
    """Where in a row of the learner row i of the triangle begins."""
    return triangle(cfg) + i * (cfg.size + 1) - i * (i - 1) // 2


@compiled
def lead_of(row: Array) -> int:
    """The rung that decides."""
    return int(row[RUNG])


@compiled
def noise_of(cfg: SmoothSurfaceConfig, row: Array, rung: int) -> float:
    """s² of a rung (eq. 4); 0: not known."""
    k = rung_at(cfg, rung)
    return row[k + SQUARES] / row[k + DEGREES] if row[k + SQUARES] > 0.0 else 0.0


@compiled
def first_payoffs(cfg: SmoothSurfaceConfig) -> int:
    """Payoffs of the first day: as many as what all contexts have in common has columns."""
    return cfg.features + 3


def width(cfg: SmoothSurfaceConfig) -> int:
    """Numbers in a row."""
    return int(row_at(cfg, cfg.size))


def scratch(cfg: SmoothSurfaceConfig) -> int:
    """Room for four vectors of columns, functions, features, decisions, and polynomials or the
    search for a peak."""
    rest = max(cfg.dx * (cfg.degree + 1), cfg.dy * (2 * cfg.dy + 1), cfg.features)
    return int(4 * cfg.size + cfg.functions + 2 * cfg.features + 4 * cfg.dy + rest)
