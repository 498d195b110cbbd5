"""Which functions of the context a smooth surface may use, and with which groups it begins.

A group is a function of the context times a kind of features of the decision: the level, the
slopes, or the curvatures. Groups begin in an order from smooth to rough; payoffs change it.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from continuarm.core.compiling import Array
from continuarm.core.learners.smooth.layout import CURVES, LEVEL, SLOPES, STEP

__all__ = ["Catalogue", "catalogue"]

# The product of the Legendre polynomials P_a(u_i) P_b(u_j); b = 0: of one context; a = b = 0: 1.
# With a = STEP it is 1 where u_i is at least the last number, else 0.
Function = tuple[int, int, int, float]  # i, a, j, b
CONSTANT: Function = (0, 0, 0, 0)
FEW, MANY, MOST_PAIRED = 3, 12, 32  # contexts: products from the start; degree 2; pairs at all
HIGHEST_ALONE, HIGHEST_OF_FEW, HIGHEST, HIGHEST_OF_MANY = 40, 20, 8, 4  # degrees
HIGHEST_PRODUCT = 10  # of both degrees together
BEGINS = {1: 8, 2: 4, 3: 3}  # the degree of the slopes at the beginning, by contexts
COARSE, FINE, FINEST = 3, 7, 9  # steps lie on grids of 2^k parts: any of these, then halves
MOST_CURVED = 60  # columns of curvatures at the beginning


class Catalogue(NamedTuple):
    """The functions of the context, and the groups of the beginning.

    functions : of the context, pairs that enter by evidence of their own last.
    parents : of each function the two that it refines; -1 is none.
    pairs : how many of the functions are such pairs.
    groups : function and kind of the groups of the beginning, the smoothest first.
    """

    functions: list[Function]
    parents: list[tuple[int, int]]
    pairs: int
    groups: list[tuple[int, int]]

    @property
    def degree(self) -> int:
        """The highest of a context."""
        return max(max(a, int(b)) for _, a, _, b in self.functions)

    @property
    def table(self) -> Array:
        """Functions and groups as a configuration has them."""
        functions = np.hstack([np.reshape(self.functions, (-1, 4)), self.parents])
        return np.array([*functions.ravel(), *np.ravel(self.groups)], np.float64)


def catalogue(dx: int, dy: int, features: int, most: int, *, levels: bool = True) -> Catalogue:
    """All functions, and groups for at most so many columns; the constants are not counted."""
    top = _highest(dx)
    functions = [CONSTANT, *((i, a, 0, 0) for i in range(dx) for a in range(1, top + 1))]
    pairs: list[Function] = []
    if dx <= FEW:
        functions += _products(dx)
        functions += _steps(dx, FINEST if dx == 1 else FINE)
    elif dx <= MOST_PAIRED:
        pairs = [(i, 1, j, 1) for i, j in combinations(range(dx), 2)]
    functions += pairs
    index = {function: k for k, function in enumerate(functions)}
    parents = [_parents(function, index, alone=dx > FEW) for function in functions]
    groups, free = [], most - features
    for function, kind in _begin(dx, dy, features, functions):
        if kind == LEVEL and not levels:
            continue
        size = {LEVEL: 1, SLOPES: dy, CURVES: features - 1 - dy}[kind]
        if size <= free:
            groups.append((index[function], kind))
            free -= size
    return Catalogue(functions, parents, len(pairs), groups)


def _highest(dx: int) -> int:
    if dx <= 1:
        return HIGHEST_ALONE if dx == 1 else 0
    return HIGHEST_OF_FEW if dx <= FEW else HIGHEST if dx <= MANY else HIGHEST_OF_MANY


def _products(dx: int) -> Iterator[Function]:
    for i, j in combinations(range(dx), 2):
        for a in range(1, HIGHEST_PRODUCT):
            for b in range(1, HIGHEST_PRODUCT + 1 - a):
                yield (i, a, j, b)


def _parents(function: Function, index: dict[Function, int], *, alone: bool) -> tuple[int, int]:
    """What it refines: one degree less of each context, or one and two less of the only one."""
    i, a, j, b = function
    if a == STEP:
        return _coarser(i, b, index)
    if b == 0:
        before: tuple[Function, Function] = (i, a - 1, 0, 0), (i, a - 2, 0, 0)
    elif alone or a + b == 2:
        return -1, -1
    else:
        before = (i, a - 1, j, b), (i, a, j, b - 1)
    one, two = (index.get(f, -1) if f[1] > 0 and (b == 0 or f[3] > 0) else -1 for f in before)
    return one, two


def _steps(dx: int, finest: int) -> Iterator[Function]:
    for i in range(dx):
        for level in range(1, finest + 1):
            for place in range(1, 2**level, 2):
                yield (i, STEP, 0, 2.0 * place / 2**level - 1.0)


def _coarser(i: int, place: float, index: dict[Function, int]) -> tuple[int, int]:
    """A coarse step refines its context's first two degrees, a finer one the steps beside it.

    Of these only those of the next coarser grid, so that steps come nearer to a jump by halves.
    """
    level = _level_of(place)
    if level <= COARSE:
        return index[i, 1, 0, 0], index.get((i, 2, 0, 0), -1)
    half, first = 2.0 / 2**level, level == COARSE + 1  # of which all steps beside it are coarse
    beside = (at for at in (place - half, place + half) if abs(at) < 1.0)
    one, *two = (index[i, STEP, 0, at] for at in beside if first or _level_of(at) == level - 1)
    return one, two[0] if two else -1


def _level_of(place: float) -> int:
    """The coarsest grid of 2^k parts of [-1, 1] on which a place lies."""
    level = 0
    while (place + 1.0) * 2**level % 2.0 != 0.0:
        level += 1
    return level


def _begin(
    dx: int, dy: int, features: int, functions: list[Function]
) -> list[tuple[Function, int]]:
    """The groups of the beginning: curvatures of half the degree, levels of one more."""
    slopes = BEGINS.get(dx, 2 if dx <= MANY else 1)
    if dx <= FEW:
        levels, curves = slopes + 1 + (dx == 1), (slopes + 1) // 2
    else:
        levels, curves = slopes + 1, 1 if dx * (features - 1 - dy) <= MOST_CURVED else 0
        functions = [function for function in functions if function[3] == 0]
    highest = {LEVEL: levels, SLOPES: slopes, CURVES: curves}
    found = [
        (function, kind)
        for function in functions[1:]
        for kind, degree in highest.items()
        if function[1] != STEP and function[1] + function[3] <= degree
    ]

    def roughness(group: tuple[Function, int]) -> tuple[float, int]:
        (_, a, _, b), kind = group
        return (a + b) * (2 if kind == CURVES else 1) - (kind == LEVEL), kind

    return sorted(found, key=roughness)
