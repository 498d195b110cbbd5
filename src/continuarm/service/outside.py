"""Contexts outside their box: where an experiment says so, they are clipped."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.errors import InputError

__all__ = ["clipped"]


def clipped(box: Box, contexts: Sequence[Any]) -> tuple[list[Any], list[list[str]]]:
    """The contexts inside the box, and for each the names of what was clipped.

    What is no context, or not finite, is left for the box to refuse.
    """
    points, names = list[Any](), list[list[str]]()
    for context in contexts:
        try:
            given = box.array(context)
        except InputError:
            given = np.array([np.nan])
        known = bool(np.isfinite(given).all())
        inside = np.clip(given, box.low, box.high) if known else given
        points.append(inside if known else context)
        moved = (inside != given) & known
        names.append([box.names[i] for i in np.flatnonzero(moved)])
    return points, names
