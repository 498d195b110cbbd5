"""Measures of regret that several tables share."""

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from continuarm.core.compiling import Array

__all__ = ["Interval", "ratio"]


class Interval(NamedTuple):
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if not np.isfinite(self.high):  # two points have a slope and no interval
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def ratio(mine: Array, base: Array) -> Interval:
    """The ratio of two mean regrets paired by seed, and its 95 % interval (delta method)."""
    n, mean = len(mine), float(base.mean())
    if mean == 0.0:
        return Interval(np.nan, np.nan, np.nan)
    value = float(mine.mean()) / mean
    if n < 2:
        return Interval(value, np.nan, np.nan)
    error = float((mine - value * base).std(ddof=1)) / (abs(mean) * np.sqrt(n))
    reach = float(student.ppf(0.975, n - 1)) * error
    return Interval(value, value - reach, value + reach)
