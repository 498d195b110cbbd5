"""What is allowed in plain Python, on lists: for those who decide from an exported table."""

from continuarm.core.allowed.bundles import VECTORS, Allowed, Room
from continuarm.core.allowed.choosing import fill_best, fill_limits, fill_nearest, fill_value

__all__ = ["Allowed", "fill_best", "fill_limits", "fill_nearest", "fill_value", "room_of_lists"]


def room_of_lists(d: int, m: int) -> Room:
    """Room for decisions of d coordinates and m rows."""
    one, two, three, four = ([[0.0] * d for _ in range(d)] for _ in range(4))
    vectors = [[0.0] * d for _ in range(VECTORS)]
    return Room(one, two, three, four, vectors, [0.0] * m, [0.0] * m, [0.0] * 4)
