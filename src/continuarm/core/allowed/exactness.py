"""The last step: a decision in units that is allowed in floating-point numbers (eq. 7 to 9)."""

import math

from continuarm.core.allowed.bundles import (
    ANY,
    FIRST,
    LAST,
    PIVOT,
    STEP,
    TEN,
    Allowed,
    Numbers,
)

__all__ = ["EQUAL", "is_allowed", "lattice_value", "nearest_whole", "place", "sums_to_at_most"]

ROUNDING = 2.0**-53
SPLIT = 2.0**27 + 1.0
EQUAL = 1e-9  # of the side of the box: how well the coordinate that an equality is solved for fits


def lattice_value(allowed: Allowed, j: int, k: float) -> float:
    """The k-th allowed value of coordinate j, rounded once (eq. 7)."""
    c = allowed.coordinates[j]
    return (c[FIRST] + k * c[STEP]) / c[TEN]


def nearest_whole(allowed: Allowed, j: int, value: float) -> float:
    """The number k of the allowed value of coordinate j that is nearest."""
    c = allowed.coordinates[j]
    k = math.floor((value * c[TEN] - c[FIRST]) / c[STEP] + 0.5)
    return min(max(float(k), 0.0), c[LAST])


def between(allowed: Allowed, j: int, k: float, lowest: float, highest: float) -> float:
    """The number next to k whose value lies between these; as it is, where none does."""
    last = allowed.coordinates[j][LAST]
    if k > 0.0 and lattice_value(allowed, j, k) > highest:
        k = min(nearest_whole(allowed, j, highest), k)
        if k > 0.0 and lattice_value(allowed, j, k) > highest:
            k -= 1.0
    elif k < last and lattice_value(allowed, j, k) < lowest:
        k = max(nearest_whole(allowed, j, lowest), k)
        if k < last and lattice_value(allowed, j, k) < lowest:
            k += 1.0
    return k


def place(allowed: Allowed, v: Numbers, lowest: Numbers, highest: Numbers, value: Numbers) -> None:
    """A decision in units: allowed values, and coordinates that follow from equalities."""
    for j in range(len(lowest)):
        low, high = allowed.edges[0][j], allowed.edges[1][j]
        value[j] = low + (0.5 + 0.5 * v[j]) * (high - low)
        if allowed.coordinates[j][STEP] == ANY:
            value[j] = min(max(value[j], lowest[j]), highest[j])
        else:
            k = nearest_whole(allowed, j, value[j])
            value[j] = lattice_value(allowed, j, between(allowed, j, k, lowest[j], highest[j]))
    for j in range(len(lowest)):
        i = int(allowed.coordinates[j][PIVOT])
        if i >= 0:
            solved = solve_for(allowed, i, j, value)
            value[j] = min(max(solved, lowest[j]), highest[j])


def solve_for(allowed: Allowed, i: int, j: int, value: Numbers) -> float:
    """What equality i says of coordinate j, whose factor is 1."""
    total = allowed.units[i][len(value)]
    for k in range(len(value)):
        if k != j:
            total -= allowed.units[i][k] * value[k]
    return total


def is_allowed(allowed: Allowed, lowest: Numbers, highest: Numbers, value: Numbers) -> bool:
    """Whether a decision that was placed is allowed, however sums are rounded."""
    for j in range(len(value)):
        if not lowest[j] <= value[j] <= highest[j]:
            return False
        i = int(allowed.coordinates[j][PIVOT])
        if i >= 0:
            side = allowed.edges[1][j] - allowed.edges[0][j]
            if not abs(solve_for(allowed, i, j, value) - value[j]) <= EQUAL * side:
                return False
    for i in range(allowed.equal, len(allowed.bounds)):
        if not sums_to_at_most(allowed.units[i], value):
            return False
    return True


def sums_to_at_most(row: Numbers, value: Numbers) -> bool:
    """Whether row·value <= the row's last number in every order of summation (eq. 8 and 9)."""
    d, total, size = len(value), 0.0, 0.0
    for j in range(d):
        term = row[j] * value[j]
        total += term
        size += abs(term)
    if total + 2.0 * (d + 2) * ROUNDING * size <= row[d]:
        return True
    return total <= row[d] and is_same_in_any_order(row, value, size)


def is_same_in_any_order(row: Numbers, value: Numbers, size: float) -> bool:
    """Whether no product is rounded, and the sum is of two, or no partial sum is rounded."""
    if size == 0.0:
        return True
    terms, whole, grid = 0, True, math.ldexp(1.0, math.frexp(size)[1] - 53)
    if grid == 0.0:
        return False
    for j in range(len(value)):
        term = row[j] * value[j]
        if term != 0.0:
            terms += 1
            whole = whole and term / grid == math.floor(term / grid)
            if product_error(row[j], value[j], term) != 0.0:
                return False
    return whole or terms <= 2


def product_error(a: float, b: float, product: float) -> float:
    """What rounding took from a·b (Dekker); factors of a power of two are exact."""
    if abs(math.frexp(a)[0]) == 0.5 or abs(math.frexp(b)[0]) == 0.5:
        return 0.0
    a_high, b_high = SPLIT * a - (SPLIT * a - a), SPLIT * b - (SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    error = product - a_high * b_high - a_low * b_high - a_high * b_low
    return a_low * b_low - error
