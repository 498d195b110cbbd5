"""How large a signal must be against its noise to be seen."""

from scipy import special

__all__ = ["LEVEL", "POWER", "signal_needed"]

LEVEL = 0.05  # how often an improvement is seen where there is none
POWER = 0.8  # how often it is seen where it is


def signal_needed(dimensions: int) -> float:
    """λ, the squared signal-to-noise ratio that a test of `dimensions` slopes needs (eq. F9 of
    docs/first-day.md).

    >>> round(signal_needed(1), 2)  # (1.96 + 0.84)²
    7.85
    """
    critical = special.chdtri(dimensions, LEVEL)
    return float(special.chndtrinc(critical, dimensions, 1.0 - POWER))
