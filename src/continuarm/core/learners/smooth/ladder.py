"""The ladder: which columns a smooth surface has, in which order, and where its rungs end.

A column is a function of the context times a feature of the decision. Rungs are nested: one is all
columns up to its end, so that one triangle is the model of each of them (eq. 3).
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

__all__ = ["Ladder", "ladder"]

# The product of the Legendre polynomials P_a(u_i) P_b(u_j); b = 0: of one context; a = b = 0: 1.
Function = tuple[int, int, int, int]  # i, a, j, b
CONSTANT: Function = (0, 0, 0, 0)
LEVEL = 0  # the feature that does not concern the decision
MOST_PAIRED = 3  # contexts whose products come with each degree; those of more come last
HIGHEST = 20  # degree
PRIOR_OF_LEVEL, PRIOR_OF_DECISION, PRIOR_OF_CONTEXT, BASELINE = 1e-6, 1e-3, 0.1, 0.1
BEND = 0.3  # of the prior: degrees from 1/BEND on are expected to matter less


class Ladder(NamedTuple):
    """The columns of a smooth surface.

    functions : of the context.
    columns : which function times which feature of the decision.
    ridges : what is known of each column before there are payoffs, in payoffs.
    ends : of the rungs, as numbers of columns.
    """

    functions: list[Function]
    columns: list[tuple[int, int]]
    ridges: list[float]
    ends: list[int]


def ladder(dx: int, dy: int, features: int, most: int) -> Ladder:
    """The rungs that have at most so many columns; the first one is always there."""
    found = Ladder([], [], [], [])
    for rung in _rungs(dx, dy, features):
        new = [column for column in dict.fromkeys(rung) if column not in set(_of(found))]
        if found.ends and len(found.columns) + len(new) > most:
            break
        for function, feature in new:
            if function not in found.functions:
                found.functions.append(function)
            found.columns.append((found.functions.index(function), feature))
            found.ridges.append(_ridge(function, feature))
        if new:
            found.ends.append(len(found.columns))
    return found


def _of(found: Ladder) -> Iterator[tuple[Function, int]]:
    for function, feature in found.columns:
        yield found.functions[function], feature


def _rungs(dx: int, dy: int, features: int) -> Iterator[list[tuple[Function, int]]]:
    """The columns of one rung after the other; those of lower rungs are in them, too."""
    slopes, bends = range(1, 1 + dy), range(1 + dy, features)
    pairs, degree = dx <= MOST_PAIRED, 0
    while degree <= HIGHEST:
        rung = [(f, LEVEL) for f in _functions(dx, degree + 2, pairs)]
        rung += [(f, slope) for f in _functions(dx, degree, pairs) for slope in slopes]
        curved = _functions(dx, (degree + 1) // 2 if pairs else min(degree, 1), pairs)
        if degree == 1:
            yield [*rung, *((CONSTANT, bend) for bend in bends)]
        yield rung + [(f, bend) for f in curved for bend in bends]
        degree += max(1, degree // 2)
    rung = [(f, feature) for f in _functions(dx, 2, True) for feature in (LEVEL, *slopes)]
    yield rung


def _functions(dx: int, degree: int, pairs: bool) -> list[Function]:
    """Polynomials of one context, or with `pairs` of two, up to a degree; the lowest first."""
    found = [(1, (i, 1, 0, 0)) for i in range(dx) if degree > 0]
    found += [(a, (i, a, 0, 0)) for a in range(2, degree + 1) for i in range(dx)]
    if pairs:
        found += [
            (a + b, (i, a, j, b))
            for i, j in combinations(range(dx), 2)
            for a in range(1, degree)
            for b in range(1, degree + 1 - a)
        ]
    return [CONSTANT, *(function for _, function in sorted(found, key=lambda one: one[0]))]


def _ridge(function: Function, feature: int) -> float:
    """Smooth until payoffs say otherwise (eq. 2)."""
    if function == CONSTANT:
        return PRIOR_OF_LEVEL if feature == LEVEL else PRIOR_OF_DECISION
    _, a, _, b = function
    ridge = float(PRIOR_OF_CONTEXT * (1.0 + BEND**2 * (a * a + b * b)) ** 1.5)
    return ridge * BASELINE if feature == LEVEL else ridge
