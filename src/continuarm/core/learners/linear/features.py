"""What a linear model is linear in: functions of the context times features of the decision.

The column of function f and feature q is number qF + f, where F is the number of functions.
"""

import math
from typing import Protocol

from continuarm.core.compiling import Array, compiled, compiled_large

__all__ = ["Functions", "at_context", "fill_columns", "fill_functions"]


class Functions(Protocol):
    """What a configuration says of its functions of the context."""

    @property
    def dx(self) -> int: ...

    @property
    def functions(self) -> int: ...  # F

    @property
    def highest(self) -> int: ...  # order

    @property
    def waves(self) -> bool: ...  # cosines; else polynomials

    @property
    def table(self) -> Array: ...  # begins with what `tabulated` returns


@compiled_large
def fill_functions(cfg: Functions, u: Array, powers: Array, out: Array) -> None:
    """The functions at u; `powers` has room for those of each context alone, dx (highest + 1)."""
    n = cfg.highest + 1
    for i in range(cfg.dx):
        for k in range(n):
            if cfg.waves:
                powers[i * n + k] = math.cos(0.5 * math.pi * k * (u[i] + 1.0))
            elif k < 2:
                powers[i * n + k] = u[i] if k == 1 else 1.0
            else:
                before, now = powers[i * n + k - 2], powers[i * n + k - 1]
                powers[i * n + k] = ((2 * k - 1) * u[i] * now - (k - 1) * before) / k
    out[0] = 1.0
    for f in range(1, cfg.functions):
        k = 3 * (f - 1)
        before, context = int(cfg.table[k]), int(cfg.table[k + 1])
        out[f] = out[before] * powers[context * n + int(cfg.table[k + 2])]


@compiled
def fill_columns(functions: Array, features: Array, scale: float, out: Array) -> None:
    """The columns times `scale`."""
    k = 0
    for q in range(features.shape[0]):
        for f in range(functions.shape[0]):
            out[k] = scale * features[q] * functions[f]
            k += 1


@compiled
def at_context(functions: Array, theta: Array, out: Array) -> None:
    """The coefficients of the decision's features for one context."""
    k = 0
    for q in range(out.shape[0]):
        out[q] = 0.0
        for f in range(functions.shape[0]):
            out[q] += theta[k] * functions[f]
            k += 1
