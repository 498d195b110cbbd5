"""Which functions of the context a linear model has, and what is known of them beforehand.

A function is a product over contexts of Legendre's polynomials P_a(u_i), or of cos(πa(u_i+1)/2).
It is written as the contexts, each as often as its order a says: (0, 0, 2) is P_2(u_0) P_1(u_2).
"""

import math
from itertools import combinations_with_replacement

import numpy as np

from continuarm.core.compiling import Array
from continuarm.errors import SettingsError

__all__ = ["additive", "orders", "products", "tabulated"]

MOST_COLUMNS = 2000  # a row has p²/2 numbers, and a payoff takes p² operations
Function = tuple[int, ...]


def products(dx: int, total: int, features: int) -> list[Function]:
    """All whose orders add up to no more than `total`; the lowest first."""
    _check(math.comb(dx + total, total) * features)
    counts = range(total + 1)
    return [f for count in counts for f in combinations_with_replacement(range(dx), count)]


def additive(dx: int, highest: int, features: int) -> list[Function]:
    """Those of one context each."""
    _check((1 + dx * highest) * features)
    return [(), *((i,) * order for order in range(1, highest + 1) for i in range(dx))]


def orders(function: Function) -> list[int]:
    """The orders of its factors."""
    return [function.count(i) for i in sorted(set(function))]


def _check(columns: int) -> None:
    if columns > MOST_COLUMNS:
        raise SettingsError(
            f"a linear model has at most {MOST_COLUMNS} columns, but got {columns}: take a lower "
            "degree, fewer frequencies, or `SurfaceSampling`"
        )


def tabulated(functions: list[Function]) -> Array:
    """Three numbers of each function after the first, which is 1: an earlier one, of which it is
    the product with that of a further context, the context, the order."""
    known = {function: k for k, function in enumerate(functions)}
    table = []
    for function in functions[1:]:
        last = function[-1]
        before = tuple(i for i in function if i != last)
        table += [known[before], last, function.count(last)]
    return np.array(table, np.float64)
