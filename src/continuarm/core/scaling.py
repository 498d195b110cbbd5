"""Between the boxes of a user and the unit cube on which everything is computed."""

from continuarm.core.compiling import Array, compiled

__all__ = ["from_unit", "to_unit"]


@compiled
def to_unit(low: Array, high: Array, point: Array, unit: Array) -> int:
    """Scale a point to the unit cube; -1, or the first dimension in which it is outside."""
    for i in range(low.shape[0]):
        if not low[i] <= point[i] <= high[i]:  # NaN is outside, too
            return i
        unit[i] = (point[i] - low[i]) / (high[i] - low[i])
    return -1


@compiled
def from_unit(low: Array, high: Array, unit: Array, point: Array) -> None:
    """Scale a point of the unit cube to the box, clipped again because products are rounded."""
    for i in range(low.shape[0]):
        point[i] = min(max(low[i] + unit[i] * (high[i] - low[i]), low[i]), high[i])
