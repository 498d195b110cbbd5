"""Where in the nodes of a tree that splits by evidence its numbers stand."""

from typing import NamedTuple

import numpy as np

from continuarm.core.compiling import Array, compiled

__all__ = ["EvidenceTreeConfig"]

ROOT = 1
NARROW = 1e-9  # of a side of the unit cube, or of a bin
KINDS = 2  # halves that keep all, halves that keep little

# of the header, which is node 0: how many nodes are in use; the row of the newcomer (0: there is
# none), its lead, how many payoffs its time lasts, how many times there have been, and how many
# contexts since there is one
USED, NEWCOMER, NEWCOMER_LEAD, NEWCOMER_TIME, TIMES, MET = range(6)
# then dx numbers each: sums of these contexts and of their squares, and the same of its time
SUMS, SQUARES, OWN_SUMS, OWN_SQUARES, HEADER = range(5)
# a node: the dimension it cuts (-1: it is a bin), its children, its row (of one that cuts, the
# number of the bin that has split), how many contexts are noted, what its challengers do, when
# they start again, the one of the whole bin and its lead
DIMENSION, BELOW, ABOVE, ROW, NOTED, STATE, DUE, RENEWER, RENEWER_LEAD, FIELDS = range(10)
# STATE: no challengers yet, to be made, at work, being made (DUE counts the pairs of halves made)
WAITING, WANTED, RUNNING, MADE_IN_PART = 0.0, -1.0, 1.0, 2.0
# then dx numbers each: the box, the cuts, and for both kinds of halves rows and leads
LOW, HIGH, CUT, HALVES = 0, 1, 2, 3
ROW_BELOW, ROW_ABOVE, LEAD, PARTS = 0, 1, 2, 3  # of one kind
NOTES = HALVES + KINDS * PARTS  # then the contexts noted, sorted per dimension


class EvidenceTreeConfig(NamedTuple):
    """The options of a tree that splits by evidence, as numbers."""

    dx: int
    split_lead: float
    fresh_lead: float
    renew_lead: float
    anew_lead: float  # of the newcomer; 0: there is none
    first: int
    again: float
    keep: float
    little: float
    long: float  # payoffs
    largest: float
    noted: int
    median: bool
    drift: float  # where payoffs drift: a bin splits only if it remembers so many
    most: int  # rows: bins get no challengers beyond
    coefficients: int  # p, of the learner


@compiled
def part(cfg: EvidenceTreeConfig, which: int) -> int:
    """Where in a node one of its parts begins."""
    return FIELDS + which * cfg.dx


@compiled
def scaled(x: float, low: float, high: float) -> float:
    """A number of [low, high] in [-1, 1]."""
    return (2.0 * x - low - high) / (high - low)


@compiled
def is_cut(cfg: EvidenceTreeConfig, node: Array, axis: int) -> bool:
    """Whether a side has halves: not if they would lose their digits, or one have no contexts."""
    low, high = node[part(cfg, LOW) + axis], node[part(cfg, HIGH) + axis]
    return bool(high - low >= NARROW and node[part(cfg, CUT) + axis] > low)


def width(cfg: EvidenceTreeConfig) -> int:
    """Numbers of a node."""
    return FIELDS + (NOTES + cfg.noted) * cfg.dx


def empty(cfg: EvidenceTreeConfig) -> Array:
    """The nodes of a tree that nobody has visited."""
    nodes = np.zeros((8, width(cfg)))
    nodes[0, USED] = 2.0
    nodes[ROOT, DIMENSION] = -1.0
    nodes[ROOT, part(cfg, HIGH) : part(cfg, CUT)] = 1.0
    return nodes
