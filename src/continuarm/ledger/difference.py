"""How far two states are apart: by rounding, as those of two processors are, or by more.

Numbers that were computed may differ in their last digits. What is counted or names something may
not: shapes, texts, whole numbers, bits that are no number.
"""

import json
import math
import re
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from continuarm.core.compiling import Array
from continuarm.live import state

__all__ = ["NONE", "ROUNDING", "Difference", "between_numbers", "between_states"]

ROUNDING: Final = 1e-6  # up to here a difference is one of rounding
# of the largest number of a row and of a column: what is smaller may be all rounding, as what is
# left of a sum that passes zero
OF_ROW, OF_COLUMN = 1e-7, 1e-3
WHOLE = 2.0**40  # up to here a number without a fraction counts something
COMPUTED_NODES = ("EvidenceTree",)  # other partitions keep whole numbers in the bits of floats
THEN = re.compile(r"^(reference|then\d+)_")  # of arrays of what was known at some time
EXACT = ("counts", "key", "seats", "numbers", "bins", "asked_per_bin", "theirs", "at")


class Difference(NamedTuple):
    """The largest difference.

    relative : to the size of the numbers; infinite where something differs that is never rounded.
    where : the field, or the array with row and column; empty where nothing differs.
    """

    relative: float
    where: str

    @property
    def is_rounding(self) -> bool:
        """Whether it is no more than rounding."""
        return self.relative <= ROUNDING

    def __str__(self) -> str:
        if not self.where:
            return "0"
        size = "more than rounding" if math.isinf(self.relative) else f"{self.relative:.2g}"
        return f"{size} at {self.where}"


NONE: Final = Difference(0.0, "")


def between_states(one: bytes, other: bytes) -> Difference:
    """The largest difference between the states of two snapshots."""
    if one == other:
        return NONE
    (closed, own, arrays), (others_closed, others, others_arrays) = map(_read, (one, other))
    partition = own["partition"]["kind"]
    found = [between_plain(closed, others_closed, "closed"), between_plain(own, others, "header")]
    if alone := arrays.keys() ^ others_arrays.keys():
        found.append(Difference(math.inf, f"arrays {sorted(alone)}"))
    for name in arrays.keys() & others_arrays.keys():
        nodes = name.endswith("nodes") and partition not in COMPUTED_NODES
        exact = nodes or THEN.sub("", name) in EXACT
        found.append(between_arrays(arrays[name], others_arrays[name], name, exact=exact))
    return max(found)


def _read(content: bytes) -> tuple[Any, dict[str, Any], state.Arrays]:
    """What became of decisions, the header without the list of arrays, and the arrays."""
    closed, _, rest = content.partition(b"\n")
    header, arrays = state.parts_of(rest)
    del header["arrays"]
    return json.loads(closed), header, arrays


def between_plain(one: Any, other: Any, where: str) -> Difference:
    """The largest difference between two values of JSON; floats may be rounded."""
    if one == other:
        return NONE
    if isinstance(one, float) and isinstance(other, float):
        return between_numbers(np.array([one]), np.array([other]), where)
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return max((between_plain(one[k], other[k], f"{where}.{k}") for k in one), default=NONE)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return max((between_plain(a, b, f"{where}[{k}]") for k, (a, b) in pairs), default=NONE)
    return Difference(math.inf, where)


def between_arrays(
    one: NDArray[Any], other: NDArray[Any], where: str, *, exact: bool
) -> Difference:
    """The largest difference between two arrays; `exact`: of bits."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return Difference(math.inf, f"{where}, whose shapes are {one.shape} and {other.shape}")
    if exact or one.dtype != np.float64:
        differ = np.argwhere(one.view(np.int64) != other.view(np.int64))
        return Difference(math.inf, _place(where, differ[0])) if len(differ) else NONE
    return between_numbers(one, other, where)


def between_numbers(one: Array, other: Array, where: str, scale: Any = None) -> Difference:
    """The largest relative difference between numbers, and its place.

    A number counts as at least a small part of the largest of its row and of its column.

    scale : how large numbers are, if that is known.
    """
    if one.size == 0 or one.tobytes() == other.tobytes():
        return NONE
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.maximum(np.abs(one), np.abs(other))
        apart = np.abs(one - other)
        relative = apart / (_at_least(sizes) if scale is None else scale)
    counted = (sizes < WHOLE) & (one == np.floor(one)) & (other == np.floor(other))
    same = one.view(np.int64) == other.view(np.int64)
    relative = np.where(same | (apart == 0.0), 0.0, np.where(counted, np.inf, relative))
    relative = np.where(np.isnan(relative), np.inf, relative)
    place = np.unravel_index(int(relative.argmax()), relative.shape)
    size = float(relative[place])
    return Difference(size, _place(where, place)) if size > 0.0 else NONE


def _at_least(sizes: Array) -> Array:
    """How large numbers count as."""
    found: Array = np.maximum(sizes, OF_ROW * sizes.max(axis=-1, keepdims=True))
    if sizes.ndim > 1:
        found = np.maximum(found, OF_COLUMN * sizes.max(axis=0))
    return found


def _place(where: str, place: Any) -> str:
    return f"{where}[{', '.join(str(int(k)) for k in place)}]"
