"""A tree that answers as another does and can learn nothing: its bins without challengers."""

import numpy as np

from continuarm.core.compiling import Array
from continuarm.core.partitions.evidence.nodes import (
    ABOVE,
    BELOW,
    CUT,
    DIMENSION,
    LOW,
    ROOT,
    ROW,
    USED,
    EvidenceTreeConfig,
    part,
)
from continuarm.core.state import NODE

__all__ = ["bare"]


def bare(cfg: EvidenceTreeConfig, nodes: Array, rows: Array) -> tuple[Array, Array]:
    """Nodes and rows are numbered anew, in the same order."""
    made = nodes[: int(nodes[0, USED])]
    splits = 1 + np.flatnonzero(made[1:, DIMENSION] >= 0.0)
    links = made[splits][:, [BELOW, ABOVE]].astype(np.int64)
    kept = np.append([0, ROOT], np.sort(links.ravel()))
    found = made[kept]
    fewer = np.zeros_like(found)
    fewer[0, USED] = len(kept)
    box = slice(part(cfg, LOW), part(cfg, CUT))
    fewer[1:, [DIMENSION, ROW]], fewer[1:, box] = found[1:, [DIMENSION, ROW]], found[1:, box]
    cuts = np.flatnonzero(np.isin(kept, splits))
    fewer[cuts] = found[cuts]
    fewer[cuts, BELOW], fewer[cuts, ABOVE] = np.searchsorted(kept, links).T
    bins = 1 + np.flatnonzero((fewer[1:, DIMENSION] < 0.0) & (fewer[1:, ROW] > 0.0))
    alone = rows[np.append(0, fewer[bins, ROW].astype(np.int64))]
    fewer[bins, ROW], alone[1:, NODE] = np.arange(1, len(alone)), bins
    return fewer, alone
