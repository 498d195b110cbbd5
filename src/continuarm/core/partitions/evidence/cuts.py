"""Where a bin would be cut: in a gap in the middle of contexts that were noted."""

from continuarm.core.compiling import Array, compiled
from continuarm.core.partitions.evidence.nodes import (
    CUT,
    HIGH,
    LOW,
    NARROW,
    NOTED,
    NOTES,
    EvidenceTreeConfig,
    part,
)

__all__ = ["choose_cuts", "note"]


@compiled
def note(cfg: EvidenceTreeConfig, node: Array, x: Array) -> None:
    """Note a context of the bin."""
    count = int(node[NOTED])
    node[NOTED] = count + 1
    for axis in range(cfg.dx):
        first = part(cfg, NOTES) + axis * cfg.noted
        k = count
        while k > 0 and node[first + k - 1] > x[axis]:
            node[first + k] = node[first + k - 1]
            k -= 1
        node[first + k] = x[axis]


@compiled
def choose_cuts(cfg: EvidenceTreeConfig, node: Array) -> None:
    """Decide where the bin would be cut, along each side."""
    for axis in range(cfg.dx):
        low, high = node[part(cfg, LOW) + axis], node[part(cfg, HIGH) + axis]
        cut = 0.5 * (low + high)
        if cfg.median:
            first = part(cfg, NOTES) + axis * cfg.noted
            cut = _median(node[first : first + cfg.noted], low, high)
        node[part(cfg, CUT) + axis] = cut


@compiled
def _median(noted: Array, low: float, high: float) -> float:
    """The middle of the gap nearest to the median; the low end, where all contexts are equal."""
    count = noted.shape[0]
    for k in range(2 * count):  # gaps from the middle outwards
        gap = count // 2 - 1 + ((k + 1) // 2 if k % 2 == 1 else -(k // 2))
        if 0 <= gap < count - 1:
            cut = 0.5 * (noted[gap] + noted[gap + 1])
            margin = NARROW * (high - low)
            if noted[gap] < cut and low + margin < cut < high - margin:
                return cut  # type: ignore[no-any-return]
    return low
