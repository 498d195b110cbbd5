"""What the learners that fit by least squares share: the rotation of their triangles."""

import math

from continuarm.core.compiling import Array, compiled

__all__ = ["LEAST_DEGREES", "SMALLEST_PIVOT", "grow_older", "rotate"]

SMALLEST_PIVOT = 1e-6  # a parameter about which nothing is known stays undetermined, not infinite
LEAST_DEGREES = 1e-6  # observations from which the noise can be known


@compiled
def rotate(row: Array, new: Array, cosine: float, sine: float) -> None:
    """Rotate what is left of a row and of an observation, in their plane."""
    for j in range(row.shape[0]):
        old, fresh = row[j], new[j]
        row[j] = cosine * old + sine * fresh
        new[j] = cosine * fresh - sine * old


@compiled
def grow_older(row: Array, weight: int, age: int, elapsed: float) -> None:
    """Let all that is known count less by the factor e^(-elapsed)."""
    growth = math.exp(min(elapsed, 20.0))
    row[weight] *= growth
    row[age] /= growth
