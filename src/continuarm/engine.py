"""Partition × learner as code over arrays: the one place where the two meet.

The live policy and the simulator call only `ask`, `tell` and `recommend` below. `Engine` holds the
arrays of one policy and the functions that Python calls, compiled once for each pair of
configuration classes.
"""

from copy import copy
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from continuarm.box import from_unit
from continuarm.errors import SettingsError
from continuarm.jit import Array, compile_entry, compiled, pack, stamp, unpack
from continuarm.learners import protocol as learner
from continuarm.learners.protocol import ALONE, CLOCK, FULL
from continuarm.partitions import protocol as partition
from continuarm.partitions.protocol import ASKED, HEAD, LAST, LEVEL, ROWS_USED, SCRATCH, TOLD

__all__ = ["STATE", "Engine", "EngineBin", "M", "V", "ask", "forget", "recommend", "tell"]


@compiled
def ask(
    pcfg: Any,
    lcfg: Any,
    nodes: Array,
    rows: Array,
    pool: Array,
    x: Array,
    u: Array,
    work: Array,
    xi: Array,
    y: Array,
) -> tuple[int, int]:
    """Decide for a context: fills `y`; the row of its bin and the learner's ticket, or FULL."""
    scaled = learner.uses_context(lcfg)
    row = partition.locate(pcfg, nodes, x, u, scaled)
    if row <= 0:
        row = partition.make(pcfg, lcfg, nodes, rows, x, u)
        if row == FULL:
            return row, FULL
        partition.locate(pcfg, nodes, x, u, scaled)
    ticket = learner.ask(lcfg, rows[row, HEAD:], pool, u, work, xi, y)
    if ticket != FULL:
        rows[row, ASKED] += 1.0
    return row, ticket


@compiled
def tell(
    pcfg: Any,
    lcfg: Any,
    nodes: Array,
    rows: Array,
    pool: Array,
    row: int,
    ticket: int,
    x: Array,
    u: Array,
    work: Array,
    y: Array,
    z: float,
    gradient: Array,
) -> int:
    """Learn a payoff; 0, or FULL with nothing changed.

    A payoff of a stencil belongs to the bin that asked, also when that has split since: it still
    moves the iterate that children nobody has visited will start from. An observation that stands
    alone goes to the bin that holds its context now.
    """
    if ticket == ALONE:
        scaled = learner.uses_context(lcfg)
        row = partition.locate(pcfg, nodes, x, u, scaled)
        if row <= 0:
            row = partition.make(pcfg, lcfg, nodes, rows, x, u)
            if row == FULL:
                return FULL
            partition.locate(pcfg, nodes, x, u, scaled)
    clock = pool[0, CLOCK] + 1.0
    elapsed = clock - rows[row, LAST] if rows[row, LAST] > 0.0 else 1.0
    asked = partition.is_bin(pcfg, nodes, rows, row)
    learner.tell(lcfg, rows[row, HEAD:], pool, ticket, u, work, y, z, gradient, elapsed, asked)
    pool[0, CLOCK] = clock
    rows[row, LAST] = clock
    rows[row, TOLD] += 1.0
    partition.observe(pcfg, lcfg, nodes, rows, row, x, u, work, y, z)
    if asked and not partition.is_bin(pcfg, nodes, rows, row):
        learner.retire(lcfg, rows[row, HEAD:], pool)
    return 0


@compiled
def forget(
    pcfg: Any,
    lcfg: Any,
    nodes: Array,
    rows: Array,
    pool: Array,
    row: int,
    ticket: int,
    x: Array,
    u: Array,
    y: Array,
) -> None:
    """A decision will never be told: its slot may be handed out again."""
    if ticket == ALONE:
        row = abs(partition.locate(pcfg, nodes, x, u, False))
    asked = partition.is_bin(pcfg, nodes, rows, row)
    learner.forget(lcfg, rows[row, HEAD:], pool, ticket, y, asked)


@compiled
def recommend(
    pcfg: Any, lcfg: Any, nodes: Array, rows: Array, x: Array, u: Array, work: Array, y: Array
) -> None:
    """The best decision known for a context; a bin not made yet answers with its parent's."""
    row = partition.locate(pcfg, nodes, x, u, learner.uses_context(lcfg))
    learner.best(lcfg, rows[abs(row), HEAD:], u, work, y)


V, M = "f8[::1]", "f8[:,::1]"
STATE = f"{V}, {V}, {M}, {M}, {M}"  # packed configurations, nodes, rows, pool


@cache
def ask_entry(partition_class: type, learner_class: type) -> Any:
    """`ask` as Python calls it, compiled for a pair of configuration classes."""
    source = stamp()

    def entry(p, q, nodes, rows, pool, x, u, work, xi, y, low, high, value):  # type: ignore[no-untyped-def]
        source  # noqa: B018 (closed over, and so part of the cache's key)
        pcfg, lcfg = unpack(partition_class, p), unpack(learner_class, q)
        row, ticket = ask(pcfg, lcfg, nodes, rows, pool, x, u, work, xi, y)
        from_unit(low, high, y, value)
        return row, ticket

    signature = f"UniTuple(i8, 2)({STATE}, {V}, {V}, {V}, {V}, {V}, {V}, {V}, {V})"
    return compile_entry(entry, signature, classes=(partition_class, learner_class))


@cache
def tell_entry(partition_class: type, learner_class: type) -> Any:
    """`tell` as Python calls it."""
    source = stamp()

    def entry(p, q, nodes, rows, pool, row, ticket, x, u, work, y, z, gradient):  # type: ignore[no-untyped-def]
        source  # noqa: B018
        pcfg, lcfg = unpack(partition_class, p), unpack(learner_class, q)
        return tell(pcfg, lcfg, nodes, rows, pool, row, ticket, x, u, work, y, z, gradient)

    signature = f"i8({STATE}, i8, i8, {V}, {V}, {V}, {V}, f8, {V})"
    return compile_entry(entry, signature, classes=(partition_class, learner_class))


@cache
def forget_entry(partition_class: type, learner_class: type) -> Any:
    """`forget` as Python calls it."""
    source = stamp()

    def entry(p, q, nodes, rows, pool, row, ticket, x, u, y):  # type: ignore[no-untyped-def]
        source  # noqa: B018
        pcfg, lcfg = unpack(partition_class, p), unpack(learner_class, q)
        forget(pcfg, lcfg, nodes, rows, pool, row, ticket, x, u, y)

    signature = f"void({STATE}, i8, i8, {V}, {V}, {V})"
    return compile_entry(entry, signature, classes=(partition_class, learner_class))


@cache
def place_entry(partition_class: type, learner_class: type) -> Any:
    """Make the bin of a context, and start it at a decision if nobody has asked it yet."""
    source = stamp()

    def entry(p, q, nodes, rows, x, u, y, payoffs):  # type: ignore[no-untyped-def]
        source  # noqa: B018
        pcfg, lcfg = unpack(partition_class, p), unpack(learner_class, q)
        row = partition.locate(pcfg, nodes, x, u, False)
        if row <= 0:
            row = partition.make(pcfg, lcfg, nodes, rows, x, u)
            if row == FULL:
                return FULL
        if rows[row, ASKED] == 0.0:
            learner.place(lcfg, rows[row, HEAD:], y, payoffs)
        return row

    signature = f"i8({V}, {V}, {M}, {M}, {V}, {V}, {V}, f8)"
    return compile_entry(entry, signature, classes=(partition_class, learner_class))


@cache
def recommend_entry(partition_class: type, learner_class: type) -> Any:
    """`recommend` for many contexts as Python calls it."""
    source = stamp()

    def entry(p, q, nodes, rows, contexts, u, work, decisions):  # type: ignore[no-untyped-def]
        source  # noqa: B018
        pcfg, lcfg = unpack(partition_class, p), unpack(learner_class, q)
        for t in range(contexts.shape[0]):
            recommend(pcfg, lcfg, nodes, rows, contexts[t], u, work, decisions[t])

    signature = f"void({V}, {V}, {M}, {M}, {M}, {V}, {V}, {M})"
    return compile_entry(entry, signature, classes=(partition_class, learner_class))


class EngineBin(NamedTuple):
    """One bin on the unit cube."""

    low: Array
    high: Array
    level: int
    asked: int
    told: int
    progress: int
    best: Array


class Engine:
    """The arrays of one policy on the unit cube, and what can be done with them."""

    def __init__(self, pcfg: Any, lcfg: Any, start: Array) -> None:
        if partition.by_evidence(pcfg) and not learner.scores(lcfg):
            raise SettingsError(
                f"{type(pcfg).__name__} needs a learner that says how well it foresaw a payoff, "
                f"but got {type(lcfg).__name__}"
            )
        self.pcfg, self.lcfg = pcfg, lcfg
        self.dx, self.dy = int(pcfg.dx), int(lcfg.dy)
        self.packed = pack(pcfg), pack(lcfg)
        self.classes: tuple[Any, Any] = (type(pcfg), type(lcfg))
        self.draws = learner.draws(lcfg)
        self.uses_gradient = learner.uses_gradient(lcfg)
        self.nodes = partition.empty(pcfg)
        self.rows = np.zeros((2, HEAD + learner.width(lcfg)))
        learner.init(lcfg, self.rows[0, HEAD:], start)
        self.pool = learner.empty_pool(lcfg)
        self.u = np.empty(SCRATCH * self.dx)
        self.work = np.empty(learner.scratch(lcfg))

    def copy(self) -> "Engine":
        """An independent engine in the same state."""
        other = copy(self)
        for name in ("nodes", "rows", "pool", "u", "work"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def holds(self, row: int, ticket: int) -> bool:
        """Whether an open decision could have this row and this ticket."""
        return 0 < row < self.nodes[0, ROWS_USED] <= len(self.rows) and (
            ticket == ALONE or learner.holds(self.lcfg, self.pool, ticket)
        )

    def grow(self) -> None:
        """Twice the room wherever it is short."""
        if self.nodes[0, ROWS_USED] + partition.rows_at_once(self.pcfg) > len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        elif learner.is_full(self.pool):
            self.pool = np.concatenate([self.pool, np.zeros_like(self.pool)])
        else:
            self.nodes = partition.grown(self.pcfg, self.nodes)

    def ask(
        self, x: Array, xi: Array, y: Array, low: Array, high: Array, value: Array
    ) -> tuple[int, int]:
        """Decide for the context `x`: fills `y` and `value`, its scaled form."""
        while True:
            row, ticket = ask_entry(*self.classes)(
                *self.packed,
                self.nodes,
                self.rows,
                self.pool,
                x,
                self.u,
                self.work,
                xi,
                y,
                low,
                high,
                value,
            )
            if ticket != FULL:
                return row, ticket
            self.grow()

    def tell(self, row: int, ticket: int, x: Array, y: Array, z: float, gradient: Array) -> None:
        """Learn that the decision `y` for the context `x` paid `z`."""
        while (
            tell_entry(*self.classes)(
                *self.packed,
                self.nodes,
                self.rows,
                self.pool,
                row,
                ticket,
                x,
                self.u,
                self.work,
                y,
                z,
                gradient,
            )
            == FULL
        ):
            self.grow()

    def forget(self, row: int, ticket: int, x: Array, y: Array) -> None:
        """The decision `y` for the context `x` will never be told."""
        forget_entry(*self.classes)(
            *self.packed, self.nodes, self.rows, self.pool, row, ticket, x, self.u, y
        )

    def place(self, x: Array, y: Array, payoffs: float) -> int:
        """Start the bin of the context `x` at the decision `y`, unless it has been asked."""
        place = place_entry(*self.classes)
        while True:
            row = place(*self.packed, self.nodes, self.rows, x, self.u, y, payoffs)
            if row != FULL:
                return int(row)
            self.grow()

    def place_others(self, y: Array) -> None:
        """Start every bin that is not made yet at the decision `y`."""
        learner.place(self.lcfg, self.rows[0, HEAD:], y, 0.0)

    def recommend(self, contexts: Array) -> Array:
        """The best decisions known for contexts of shape (n, dx)."""
        decisions = np.empty((len(contexts), self.dy))
        recommend_entry(*self.classes)(
            *self.packed, self.nodes, self.rows, contexts, self.u, self.work, decisions
        )
        return decisions

    def rules(self) -> list[tuple[Array, Array, int, Array, dict[str, Any] | None]]:
        """What `recommend` follows: boxes, payoffs, the best decision in the middle, the rule.

        Of several boxes that hold a context the last one counts; the first holds all.
        """
        whole = [(0, np.zeros(self.dx), np.ones(self.dx))]
        split = partition.split_boxes(self.pcfg, self.nodes)
        found = []
        for row, low, high in whole + split + partition.boxes(self.pcfg, self.nodes):
            state, best = self.rows[row, HEAD:], np.empty(self.dy)
            learner.best(self.lcfg, state, np.zeros(self.dx), self.work.copy(), best)
            told = int(self.rows[row, TOLD])
            found.append((low, high, told, best, learner.rule(self.lcfg, state)))
        return found

    def bins(self) -> list[EngineBin]:
        """The bins that have been visited and not split, in the order in which they were made."""
        found = []
        for row, low, high in partition.boxes(self.pcfg, self.nodes):
            head, state = self.rows[row, :HEAD], self.rows[row, HEAD:]
            best, u = np.empty(self.dy), np.zeros(self.dx)
            learner.best(self.lcfg, state, u, np.empty(learner.scratch(self.lcfg)), best)
            numbers = (int(head[LEVEL]), int(head[ASKED]), int(head[TOLD]))
            progress = learner.progress(self.lcfg, state)
            found.append(EngineBin(low, high, *numbers, progress, best))
        return found
