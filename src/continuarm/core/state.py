"""The arrays that a policy has learned, and the rows that bins and challengers take from them.

A bin is one row: a head of the engine's numbers, then the learner's. Row 0 is the template of a
bin that nobody has visited, once a log has said where those start. Rows are handed out by `take`
and given back by `give_back`; `begin` makes a row a bin, under a number that no bin had before.
"""

from typing import NamedTuple

import numpy as np

from continuarm.core.compiling import Array, compiled, fill

__all__ = ["HEAD", "LAST", "LEVEL", "NODE", "SERIAL", "TOLD", "Space", "State"]

# the head of a row; NODE is where the partition knows it, LAST the clock at the bin's last payoff
NODE, LEVEL, TOLD, LAST, SERIAL, HEAD = 0, 1, 2, 3, 4, 5
# the policy's own numbers: payoffs so far; rows handed out, the newest row given back (a
# chain by NODE) and how many there are; bins made so far; whether row 0 is a template; after them
# the numbers of bins that are frozen, rising
CLOCK, ROWS_USED, FREE_ROW, FREE_ROWS, SERIALS, TEMPLATE, COUNTS = 0, 1, 2, 3, 4, 5, 6

ROOM = 2**26  # numbers that a policy that splits by evidence holds at most, half a gigabyte
LARGE = 2**20  # numbers that are copied in a moment


class State(NamedTuple):
    """All that a policy has learned."""

    counts: Array  # the policy's own numbers
    nodes: Array  # the partition's index
    rows: Array  # one row per bin
    pool: Array  # what open decisions share: the learner's
    notes: Array  # sums for a diagnosis


class Space(NamedTuple):
    """Room to compute in, because compiled code does not allocate; nothing lasts in it."""

    x: Array  # a context on the unit cube
    u: Array  # the same in [-1, 1] of its bin
    low: Array  # the box of its bin
    high: Array
    outer_low: Array  # the box of the bin that was split where this one is not made yet
    outer_high: Array
    y: Array  # a decision on the unit cube
    best: Array  # another one
    start: Array  # what the incumbent would do for the context
    gradient: Array
    xi: Array  # the random numbers of a decision
    row: Array  # a learner's row, of a bin that is not made yet
    work: Array  # the learner's own


def room_for(dx: int, dy: int, draws: int, width: int, scratch: int) -> int:
    """Numbers that `space` needs."""
    return 6 * dx + 4 * dy + draws + width + scratch


@compiled
def space(room: Array, dx: int, dy: int, draws: int, width: int) -> Space:
    """Lay out the room."""
    d, k = 6 * dx, 6 * dx + 4 * dy
    r = k + draws
    return Space(
        room[:dx],
        room[dx : 2 * dx],
        room[2 * dx : 3 * dx],
        room[3 * dx : 4 * dx],
        room[4 * dx : 5 * dx],
        room[5 * dx : d],
        room[d : d + dy],
        room[d + dy : d + 2 * dy],
        room[d + 2 * dy : d + 3 * dy],
        room[d + 3 * dy : k],
        room[k:r],
        room[r : r + width],
        room[r + width :],
    )


def enlarged(array: Array, used: int) -> Array:
    """The rows in use, with more room after them.

    A large array is moved once, to where there is room for all that a policy may hold: memory that
    nobody has written to is only reserved. So no payoff waits until a large array is copied.
    """
    rows, width = array.shape
    most = ROOM // width if LARGE < 2 * array.size < 2 * ROOM else 2 * rows
    try:
        larger = np.zeros((max(most, rows + 1), width))
    except MemoryError:  # where reserved memory counts as used
        larger = np.zeros((2 * rows, width))
    larger[:used] = array[:used]
    return larger


def copied(array: Array, used: int) -> Array:
    """An independent array that has the same room."""
    other = np.zeros(array.shape)
    other[:used] = array[:used]
    return other


def empty_counts() -> Array:
    """The numbers of a policy that has seen nothing."""
    counts = np.zeros(COUNTS)
    counts[ROWS_USED] = 1.0  # the template
    return counts


@compiled
def room(state: State) -> int:
    """How many rows can be taken."""
    used, free = state.counts[ROWS_USED], state.counts[FREE_ROWS]
    return int(state.rows.shape[0] - used + free)


@compiled
def in_use(state: State) -> int:
    """How many rows are taken."""
    return int(state.counts[ROWS_USED] - state.counts[FREE_ROWS])


@compiled
def take(state: State) -> int:
    """A row; the caller has looked whether there is room."""
    counts = state.counts
    row = int(counts[FREE_ROW])
    if row > 0:
        counts[FREE_ROW] = state.rows[row, NODE]
        counts[FREE_ROWS] -= 1.0
        return row
    row = int(counts[ROWS_USED])
    counts[ROWS_USED] = row + 1
    return row


@compiled
def give_back(state: State, row: int) -> None:
    """Free a row."""
    counts = state.counts
    state.rows[row, NODE] = counts[FREE_ROW]
    counts[FREE_ROW] = row
    counts[FREE_ROWS] += 1.0


@compiled
def begin(state: State, row: int, node: int, parent: int) -> None:
    """Make a row a bin, one level below its parent (row 0: it has none)."""
    head = state.rows[row]
    level, last = 0.0, 0.0
    if parent > 0:
        level, last = state.rows[parent, LEVEL] + 1.0, state.rows[parent, LAST]
    state.counts[SERIALS] += 1.0
    fill(head[:HEAD], 0.0)
    head[NODE], head[LEVEL], head[LAST], head[SERIAL] = node, level, last, state.counts[SERIALS]


@compiled
def replace(state: State, row: int, successor: int) -> None:
    """Let another row be the bin that this one was."""
    for i in range(HEAD):
        state.rows[successor, i] = state.rows[row, i]


@compiled
def any_frozen(state: State) -> bool:
    """Whether a bin is frozen."""
    return bool(state.counts.shape[0] > COUNTS)


@compiled
def is_frozen(state: State, row: int) -> bool:
    """Whether a bin is frozen: it answers with its best decision, and learns nothing."""
    counts, first, last = state.counts, COUNTS, state.counts.shape[0]
    while first < last:
        middle, number = (first + last) // 2, state.rows[row, SERIAL]
        if counts[middle] == number:
            return True
        first, last = (middle + 1, last) if counts[middle] < number else (first, middle)
    return False
