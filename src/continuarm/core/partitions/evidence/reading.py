"""Whether nodes that were read could be a tree: no link leads nowhere, no row is used twice."""

import numpy as np

from continuarm.core.compiling import Array
from continuarm.core.partitions.evidence.nodes import (
    ABOVE,
    BELOW,
    CUT,
    DIMENSION,
    DUE,
    FIELDS,
    HALVES,
    HEADER,
    HIGH,
    KINDS,
    LOW,
    MADE_IN_PART,
    MET,
    NARROW,
    NEWCOMER,
    NEWCOMER_TIME,
    NOTED,
    PARTS,
    RENEWER,
    ROOT,
    ROW,
    ROW_ABOVE,
    ROW_BELOW,
    RUNNING,
    STATE,
    SUMS,
    TIMES,
    USED,
    WAITING,
    WANTED,
    EvidenceTreeConfig,
    empty,
    part,
    width,
)
from continuarm.core.state import NODE

__all__ = ["fits", "unmade"]

LATEST = 2.0**53  # beyond, not every whole number is a float


def fits(cfg: EvidenceTreeConfig, nodes: Array, heads: Array, busy: list[int]) -> bool:
    """Children come after their parents, and each row is a bin, a challenger, or free."""
    if nodes.shape[1] != width(cfg) or not 2 <= nodes[0, USED] <= len(nodes):
        return False
    if not _header_fits(cfg, nodes[0]):
        return False
    used = int(nodes[0, USED])
    made = nodes[1:used]
    finite = np.isfinite(np.delete(made, DUE, axis=1)).all() and not np.isnan(made[:, DUE]).any()
    whole = made[:, [DIMENSION, BELOW, ABOVE, ROW, NOTED, STATE, RENEWER]]
    if used != nodes[0, USED] or nodes[used:].any() or not finite or (whole % 1 != 0.0).any():
        return False
    states = np.isin(made[:, STATE], (WAITING, WANTED, RUNNING, MADE_IN_PART))
    if not states.all() or (whole[:, [1, 2, 3, 4, 6]] < 0.0).any():
        return False
    return _links_fit(cfg, nodes, used) and _rows_fit(cfg, nodes, heads, busy)


def unmade(cfg: EvidenceTreeConfig, nodes: Array) -> list[int]:
    """The halves that have not been given what their bin knows."""
    found = []
    for node in nodes[1 : int(nodes[0, USED])]:
        if node[STATE] == MADE_IN_PART and node[DIMENSION] < 0.0:
            for pair in range(int(node[DUE]), KINDS * cfg.dx):
                half = part(cfg, HALVES + pair % KINDS * PARTS) + pair // KINDS
                found += [int(node[half + side * cfg.dx]) for side in (ROW_BELOW, ROW_ABOVE)]
    return found


def _links_fit(cfg: EvidenceTreeConfig, nodes: Array, used: int) -> bool:
    """Every node but the root is the child of one that has split or has room for its children."""
    made = nodes[1:used]
    split = (made[:, DIMENSION] >= 0) & (made[:, DIMENSION] < cfg.dx)
    if not (split | (made[:, DIMENSION] == -1.0)).all():
        return False
    begun = split | (made[:, RENEWER] > 0.0)
    numbers, below, above = np.arange(1, used)[begun], made[begun, BELOW], made[begun, ABOVE]
    if not ((below > numbers).all() and (above == below + 1).all()):
        return False
    if sorted([*below.tolist(), *above.tolist()]) != list(range(2, used)):
        return False
    whole = empty(cfg)[ROOT, part(cfg, LOW) : part(cfg, CUT)]
    if (nodes[ROOT, part(cfg, LOW) : part(cfg, CUT)] != whole).any():
        return False
    return all(_node_fits(cfg, nodes, number) for number in range(1, used))


def _node_fits(cfg: EvidenceTreeConfig, nodes: Array, number: int) -> bool:
    """Its cuts lie inside its box, and its children have the halves, or nothing yet."""
    node = nodes[number]
    low, high, cuts, end = (part(cfg, which) for which in (LOW, HIGH, CUT, HALVES))
    challenged = node[RENEWER] > 0.0
    if node[NOTED] > cfg.noted or (node[STATE] >= RUNNING and not challenged):
        return False
    if node[STATE] == MADE_IN_PART and not (
        0 <= node[DUE] < KINDS * cfg.dx and node[DUE] % 1 == 0
    ):
        return False
    if node[STATE] == WANTED and not challenged and node[NOTED] < cfg.noted:
        return False
    axis = int(node[DIMENSION])
    if axis < 0 and not challenged:
        return True
    inside = (node[low:high] < node[cuts:end]) & (node[cuts:end] < node[high:cuts])
    uncut = (node[high:cuts] - node[low:high] < NARROW) | (node[cuts:end] == node[low:high])
    if not (inside | uncut).all() or (axis >= 0 and not inside[axis]):
        return False
    for child in nodes[int(node[BELOW])], nodes[int(node[ABOVE])]:
        if axis < 0 and (child[DIMENSION] != -1.0 or np.delete(child, DIMENSION).any()):
            return False
    if axis < 0:
        return True
    halves = nodes[int(node[BELOW]) : int(node[ABOVE]) + 1, low:cuts].copy()
    expected = np.array([node[low:cuts], node[low:cuts]])
    expected[0, cfg.dx + axis] = expected[1, axis] = node[cuts + axis]
    return bool((halves == expected).all())


def _header_fits(cfg: EvidenceTreeConfig, header: Array) -> bool:
    """The newcomer's row is one, its lead a number, and its time a whole one that has begun."""
    numbers = header[[NEWCOMER, NEWCOMER_TIME, TIMES, MET]]
    sums = header[part(cfg, SUMS) : part(cfg, HEADER)]
    return bool(
        (header[part(cfg, HEADER) :] == 0.0).all()
        and (header[MET + 1 : FIELDS] == 0.0).all()
        and np.isfinite(header).all()
        and (abs(sums) <= LATEST).all()
        and ((numbers >= 0.0) & (numbers <= LATEST) & (numbers % 1 == 0.0)).all()
        and (header[NEWCOMER] == 0.0 or header[NEWCOMER_TIME] > 0.0)
        and (header[NEWCOMER] == 0.0 or cfg.anew_lead > 0.0)
    )


def _rows_fit(cfg: EvidenceTreeConfig, nodes: Array, heads: Array, busy: list[int]) -> bool:
    """Every row of a leaf is another one; a bin's row knows its node."""
    made, first = nodes[1 : int(nodes[0, USED])], part(cfg, HALVES)
    taken = [row for row in [float(nodes[0, NEWCOMER])] if row > 0.0]
    reserved = {float(k) for node in made if node[DIMENSION] < 0.0 for k in node[[BELOW, ABOVE]]}
    for number, node in enumerate(made, 1):
        if node[DIMENSION] >= 0.0 or number in reserved:
            continue
        if node[ROW] > 0.0:
            taken.append(node[ROW])
            if not node[ROW] < len(heads) or heads[int(node[ROW]), NODE] != number:
                return False
        elif number != ROOT or node[STATE] != WAITING or node[RENEWER] > 0.0:
            return False
        if node[RENEWER] > 0.0:
            taken.append(node[RENEWER])
            for kind in range(KINDS):
                begin = first + kind * PARTS * cfg.dx
                taken += node[begin : begin + 2 * cfg.dx].tolist()
    return sorted(taken) == busy
