"""Model: what a policy knows, as arrays, and what can be done with them.

It decides, learns, recommends and explains. It knows no number of a decision, no clock, no lock
and no generator: a decision is a function of the state, the context, the limits and the draw.
"""

import re
from collections.abc import Callable, Iterator
from copy import copy
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np
from numba.core.errors import NumbaError

from continuarm.core import entries, guarded, notes
from continuarm.core.compiling import Array, code_of, in_python, pack
from continuarm.core.draws import Key
from continuarm.core.entries import Limits, Setup
from continuarm.core.guarded import Guarded
from continuarm.core.learners import protocol as learner
from continuarm.core.notes import NOBODY
from continuarm.core.numbered_bins import with_frozen
from continuarm.core.partitions import protocol as partition
from continuarm.core.request import ALONE, EMPTY, FREE, FULL, NOTHING, Free, Region, Request
from continuarm.core.state import (
    CLOCK,
    COUNTS,
    FREE_ROW,
    FREE_ROWS,
    HEAD,
    LEVEL,
    ROWS_USED,
    SERIAL,
    SERIALS,
    TEMPLATE,
    TOLD,
    State,
    copied,
    empty_counts,
    enlarged,
    is_frozen,
    room_for,
    space,
)
from continuarm.errors import PolicyError, SettingsError

__all__ = ["Limits", "Model", "ModelBin", "NothingAllowed", "Rule", "limits_of"]

WORD = 2**64 - 1
NO_RULE: Array = np.empty(0)
NO_CONTEXTS = (np.empty((0, 0)),) * 3
NO_KEY: Key = np.zeros(2, np.uint64)
NOT_DRAWN = (NO_KEY, 0, 0, NO_RULE, NO_RULE, NO_RULE)
At = Callable[[Array], Array]  # what the incumbent would do for a context, on the unit cubes
COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # of a terminal


class NothingAllowed(Exception):
    """Limits and guard together leave nothing."""


class ModelBin(NamedTuple):
    """One bin; its box is on the unit cube, its best decision in units."""

    serial: int
    low: Array
    high: Array
    level: int
    told: int
    progress: int
    best: Array


class Rule(NamedTuple):
    """What `recommend` follows in a box of contexts on the unit cube."""

    low: Array
    high: Array
    told: int
    best: Array  # in the middle of the box, in units
    follows: dict[str, Any] | None  # of the learner; None: `best` everywhere
    frozen: bool


def limits_of(start: Array, reach: Array | float = 0.0) -> Limits:
    """No limit but the cube."""
    low, high = np.zeros(len(start)), np.ones(len(start))
    return Limits(low, high, start, reach * high, NO_RULE, True, 0.0)


class Model:
    """The arrays of one policy.

    Parameters
    ----------
    pcfg, lcfg : the configurations of partition and learner.
    context, decision : the edges of the boxes, `(2, dx)` and `(2, dy)`.
    guard : what else limits decisions.
    """

    state: State
    room: Array

    def __init__(
        self,
        pcfg: Any,
        lcfg: Any,
        context: Array,
        decision: Array,
        *,
        guard: Free | Guarded = FREE,
    ) -> None:
        _check_kind("partition", pcfg, partition.Partition)
        _check_kind("learner", lcfg, learner.Learner)
        if partition.by_evidence(pcfg) and not learner.scores(lcfg):
            raise SettingsError(
                f"{_kind(pcfg)} needs a learner that says how well it foresaw a payoff, "
                f"but got {_kind(lcfg)}"
            )
        if isinstance(guard, Guarded) and not learner.code(lcfg).guarded(lcfg):
            raise SettingsError(
                f"{_kind(lcfg)} decides for any value of a box, but got coupled limits or a "
                "spacing: take `SurfaceSampling`"
            )
        self.pcfg, self.lcfg = pcfg, lcfg
        self.dx, self.dy = context.shape[1], decision.shape[1]
        self.classes: tuple[Any, Any] = (type(pcfg), type(lcfg))
        width, draws = learner.width(lcfg), learner.draws(lcfg)
        shape = np.array([self.dx, self.dy, draws, width], np.int64)
        bounds = np.concatenate([context.ravel(), decision.ravel()])
        self.setup = Setup(pack(pcfg), pack(lcfg), shape, bounds)
        rows = np.zeros((2, HEAD + width))
        empty = empty_counts(), partition.empty(pcfg), rows, learner.empty_pool(lcfg)
        self.state = State(*empty, notes.empty(self.dx, self.dy))
        self.scratch = learner.scratch(lcfg)
        self.scratch += guarded.room(guard) if isinstance(guard, Guarded) else 0
        self.guard_class = type(guard)
        self.room = np.zeros(room_for(self.dx, self.dy, draws, width, self.scratch))
        self.counts_asking = learner.counts_asking(lcfg)
        self.stands_alone = learner.stands_alone(lcfg)
        self.uses_gradient = learner.code(lcfg).uses_gradient
        self.largest_payoff = learner.code(lcfg).largest_payoff

    def __getattr__(self, name: str) -> Any:
        """What is compiled for this pair of configurations, when it is first called."""
        if not name.endswith("_entry"):
            raise AttributeError(name)
        try:
            guarded = name in ("answer_entry", "middle_entry")
            classes = self.deciding_classes if guarded else self.classes
            entry = getattr(entries, name)(*classes)
        except NumbaError as error:
            raise PolicyError(
                f"{_kind(self.pcfg)} and {_kind(self.lcfg)} must be code that Numba compiles, "
                f"but got {_reason(error)}"
            ) from error
        setattr(self, name, entry)
        return entry

    @property
    def deciding_classes(self) -> tuple[Any, Any, Any]:
        """What selects the code that decides: partition, learner, guard."""
        return (*self.classes, self.guard_class)

    def copy(self) -> "Model":
        """An independent model in the same state."""
        other = self.reader()
        counts, nodes, rows, pool, noted = self.state
        rows, pool = copied(rows, int(counts[ROWS_USED])), copied(pool, int(pool[0, 1]))
        other.state = State(counts.copy(), nodes.copy(), rows, pool, noted.copy())
        return other

    def reader(self, room: Array | None = None) -> "Model":
        """A model of the same state with room of its own, or this one, to decide at the same time.

        Who decides one after the other may share a room: nothing lasts in it.
        """
        other = copy(self)
        other.room = self.room.copy() if room is None else room
        return other

    def as_it_is(self) -> "Model":
        """A model that recommends as this one does now, and has no more than that needs.

        The two share a room.
        """
        other, (counts, nodes, rows, *_) = self.reader(self.room), self.state
        nodes, rows = partition.bare(self.pcfg, nodes, rows[: int(counts[ROWS_USED])])
        counts = counts[:COUNTS].copy()
        counts[FREE_ROW] = counts[FREE_ROWS] = 0.0
        counts[ROWS_USED] = len(rows)
        empty = learner.empty_pool(self.lcfg), notes.empty(self.dx, self.dy)
        other.state = State(counts, nodes, rows, *empty)
        return other

    def holds(self, row: int, ticket: int) -> bool:
        """Whether an open decision could have this row and this ticket."""
        first = 0 if ticket in (ALONE, NOTHING) else 1
        if not first <= row < self.state.counts[ROWS_USED] <= len(self.state.rows):
            return False
        return first == 0 or learner.holds(self.lcfg, self.state.pool, ticket)

    def grow(self) -> None:
        """More room wherever it is short."""
        state = self.state
        if state.counts[ROWS_USED] + partition.rows_at_once(self.pcfg) > len(state.rows):
            used = int(state.counts[ROWS_USED])
            self.state = state._replace(rows=enlarged(state.rows, used))
        elif in_python(learner.is_full)(state.pool):
            self.state = state._replace(pool=enlarged(state.pool, len(state.pool)))
        else:
            self.state = state._replace(nodes=partition.grown(self.pcfg, state.nodes))

    def warm_up(self) -> None:
        """Compile what a partition needs to make room; entries are compiled when called."""
        partition.grown(self.pcfg, self.state.nodes)

    def decide(
        self,
        context: Array,
        key: Key,
        draw: int,
        limits: Limits,
        value: Array,
        start: Array = NO_RULE,
    ) -> tuple[int, bool, int, int]:
        """Fill a decision and, if limits have a rule, the incumbent's; changes nothing.

        The row that answers, whether its bin is made, the ticket, and the bin's number (0: not
        made); or as the ticket, below OUTSIDE, the dimension in which the context is outside.
        """
        given = (key, draw & WORD, draw >> 64, context, value, start)
        found: tuple[int, bool, int, int] = self.answer_entry(
            self.setup, self.state, self.room, limits, given, NO_CONTEXTS
        )
        return found

    def asking(self, row: int, made: bool, ticket: int) -> Iterator[tuple[int, int]]:
        """Hand out what has just been decided: the row of its bin, or FULL; the bin's number.

        It happens when the answer is unpacked, as with `telling` and `forgetting` (`strokes`).
        """
        given = (self.setup, self.state, self.room, row, made, ticket)
        return starmap(self.asked_entry, (given,))

    def telling(
        self,
        row: int,
        ticket: int,
        context: Array,
        value: Array,
        payoff: float,
        gradient: Array,
        start: Array,
        number: float = NOBODY,
        delay: float = 0.0,
    ) -> Iterator[int]:
        """Learn that the decision `value` for a context paid this: its bin's number, or FULL.

        It was asked for after so many others, and its payoff took so long (`Asking`).
        """
        seen = (context, value, gradient, number, delay)
        given = (self.setup, self.state, self.room, row, ticket, start, payoff, seen)
        return starmap(self.tell_entry, (given,))

    def counting(
        self,
        ticket: int,
        context: Array,
        value: Array,
        start: Array,
        limits: Limits,
        number: float = NOBODY,
    ) -> tuple[Iterator[int], State]:
        """Count a payoff that is not learned, as one of a frozen bin, whatever bin it is.

        Its bin's number, when it is unpacked, and the state that is to be this one's afterwards.
        """
        counts, unused = self.state.counts.copy(), np.empty((2, self.dy))
        *_, bin_ = self.decide(context, NO_KEY, 0, limits, *unused)
        state, ticket = (
            (self.state, NOTHING) if bin_ == 0 else (with_frozen(self.state, bin_, True), ticket)
        )
        if bin_ > 0:
            counts[CLOCK] += 1.0
        seen = (context, value, NO_RULE, number, 0.0)
        given = (self.setup, state, self.room, 0, ticket, start, 0.0, seen)
        return starmap(self.tell_entry, (given,)), self.state._replace(counts=counts)

    def forgetting(
        self, row: int, ticket: int, context: Array, value: Array, number: float = NOBODY
    ) -> Iterator[None]:
        """The decision `value` for a context will never be told; its payoff is lost, if a number
        says that it was asked for after so many others."""
        given = (self.setup, self.state, self.room, row, ticket, context, value, number)
        return starmap(self.forget_entry, (given,))

    def asked(self, row: int, made: bool, ticket: int) -> tuple[int, int]:
        """The same as `asking`, at once; the arrays grow where they must."""
        while True:
            [found] = self.asking(row, made, ticket)
            if found[0] != FULL:
                return found
            self.grow()

    def tell(self, *given: Any) -> int:
        """The same as `telling`, at once."""
        while True:
            [bin_] = self.telling(*given)
            if bin_ != FULL:
                return bin_
            self.grow()

    def count(self, *given: Any) -> None:
        """The same as `counting`, at once."""
        counting, state = self.counting(*given)
        [_] = counting
        self.state = state

    def forget(self, *given: Any) -> None:
        """The same as `forgetting`, at once."""
        [_] = self.forgetting(*given)

    def place(self, context: Array, value: Array, payoffs: float) -> int:
        """Start the bin of a context at a decision, if it has not begun; its row."""
        while True:
            row = self.place_entry(self.setup, self.state, self.room, context, value, payoffs)
            if row != FULL:
                return int(row)
            self.grow()

    def place_others(self, y: Array) -> None:
        """Start every bin that is not made yet at a decision on the unit cube."""
        template = self.state.rows[0, HEAD:]
        learner.init(self.lcfg, template, y)
        learner.place(self.lcfg, template, y, 0.0)
        self.state.counts[TEMPLATE] = 1.0

    def recommend(self, contexts: Array, limits: Limits, starts: Array | None = None) -> Array:
        """The best decisions known for contexts `(n, dx)`, with starts of their own or not."""
        values = np.empty((len(contexts), self.dy))
        starts = NO_CONTEXTS[1] if starts is None else starts
        if len(contexts) > 0:
            wanted = (contexts, starts, values)
            own = self.setup, self.state, self.room
            if self.answer_entry(*own, limits, NOT_DRAWN, wanted)[2] == EMPTY:
                raise NothingAllowed
        return values

    def view(
        self,
        context: Array,
        limits: Limits,
        value: Array,
        seen: Array,
        key: Key = NO_KEY,
        draw: int = 0,
    ) -> tuple[int, bool, int]:
        """What is known about a decision: the row that answers, whether its bin is made, and how
        the decision came about with this draw.

        `seen` is filled, in units: the edges of its bin, then as `view` of the learner; 2dx + 4dy
        numbers.
        """
        given = (key, draw & WORD, draw >> 64, context, value)
        free = limits if limits.guard is FREE else limits._replace(guard=FREE)  # it knows of none
        found: tuple[int, bool, int] = self.view_entry(
            self.setup, self.state, self.room, free, given, seen
        )
        return found

    def explain(self, context: Array, limits: Limits) -> dict[str, Any]:
        """The bin of a context, as a box on the unit cube, and the learner's numbers in it."""
        low, high = self.setup.bounds[2 * self.dx :].reshape(2, self.dy)
        centre = (self.recommend(context[None, :], limits)[0] - low) / (high - low)
        centre = np.minimum(np.maximum(centre, limits.low), limits.high)  # quotients are rounded
        limits = limits._replace(guard=FREE)
        seen = np.zeros(2 * self.dx + 4 * self.dy)
        row, made, _ = self.view(context, limits, low, seen)
        lay_out: Any = space
        here = lay_out.py_func(self.room, *self.setup.shape.tolist())
        region = Region(limits.low, limits.high, limits.whole)
        request = Request(here.u, region, here.start, limits.reach, here.xi)
        rows = self.state.rows
        known = rows[row, HEAD:] if made else here.row
        found = {
            "bin": int(rows[row, SERIAL]) if made else None,
            "low": here.low.tolist(),
            "high": here.high.tolist(),
            "payoffs": int(rows[row, TOLD]) if made else 0,
            "frozen": bool(made and in_python(is_frozen)(self.state, row)),
            **learner.explain(self.lcfg, known.copy(), request, centre),
        }
        best = low + np.array(found["centre"]) * (high - low)
        how = self.view(context, limits, np.minimum(np.maximum(best, low), high), seen)[2]
        found["early"] = how == learner.EARLY
        return found | (viewed(seen[2 * self.dx :], low, high) if how in learner.VIEWED else {})

    def expected(self, context: Array, limits: Limits, ys: Array) -> Array | None:
        """What decisions `(n, dy)` of the unit cube are expected to pay for a context, and the
        standard errors of that, `(n, 2)`; None: nobody knows."""
        return learner.expected(self.lcfg, *self._known_at(context, limits), ys)

    def gains(self, context: Array, limits: Limits, ys: Array, start: Array) -> Array | None:
        """The same of how much more they pay than `start`, with the errors of the difference."""
        return learner.gains(self.lcfg, *self._known_at(context, limits), ys, start)

    def _known_at(self, context: Array, limits: Limits) -> tuple[Array, Array]:
        """The row that answers a context, and the context scaled to its bin."""
        low = self.setup.bounds[2 * self.dx : 2 * self.dx + self.dy]
        seen = np.zeros(2 * self.dx + 4 * self.dy)
        row, made, _ = self.view(context, limits, low, seen)
        lay_out: Any = space
        here = lay_out.py_func(self.room, *self.setup.shape.tolist())
        known = self.state.rows[row, HEAD:] if made else here.row
        return known.copy(), here.u.copy()

    def _best(self, row: int, limits: Limits, start: Array) -> Array:
        """The best decision in the middle of a bin, in units."""
        known = self.state.rows[row, HEAD:]
        if row == 0 and self.state.counts[TEMPLATE] == 0.0:
            known = np.empty(int(self.setup.shape[3]))
            learner.init(self.lcfg, known, start)
        value = np.empty(self.dy)
        given = known.copy(), start, value
        self.middle_entry(self.setup, self.state, self.room, limits, given)
        return value

    def rules(self, limits: Limits, start_at: At | None = None) -> list[Rule]:
        """What `recommend` follows; of several boxes that hold a context the last one counts."""
        at = start_at or (lambda x: limits.start)
        follows_start = start_at is not None and self.state.counts[TEMPLATE] == 0.0
        unvisited = learner.unvisited(self.lcfg) if follows_start else None
        whole: partition.Boxes = [(0, np.zeros(self.dx), np.ones(self.dx))]
        nodes, rows = self.state.nodes, self.state.rows
        anew = learner.code(self.lcfg).begins_anew  # then what has split says nothing any more
        split = [] if anew else partition.split_boxes(self.pcfg, nodes)
        found = []
        for row, low, high in whole + split + partition.boxes(self.pcfg, nodes):
            follows = learner.rule(self.lcfg, rows[row, HEAD:]) if row > 0 else unvisited
            best = self._best(row, limits, at(0.5 * (low + high)))
            frozen = row > 0 and in_python(is_frozen)(self.state, row)
            found.append(Rule(low, high, int(rows[row, TOLD]), best, follows, frozen))
        return found

    @property
    def learned(self) -> tuple[int, int]:
        """How many payoffs it has learned, and how many bins it has made."""
        return int(self.state.counts[CLOCK]), int(self.state.counts[SERIALS])

    def payoffs_per_bin(self) -> list[int]:
        """How many payoffs each of `bins` has learned."""
        rows = self.state.rows
        found = [row for row, _, _ in partition.boxes(self.pcfg, self.state.nodes)]
        return [int(rows[row, TOLD]) for row in sorted(found, key=lambda r: rows[r, SERIAL])]

    def bins(self, limits: Limits, start_at: At | None = None) -> list[ModelBin]:
        """The bins that have been made and not split, in the order in which they were made."""
        at, found = start_at or (lambda x: limits.start), []
        for row, low, high in partition.boxes(self.pcfg, self.state.nodes):
            head, known = self.state.rows[row, :HEAD], self.state.rows[row, HEAD:]
            numbers = (int(head[LEVEL]), int(head[TOLD]), learner.progress(self.lcfg, known))
            best = self._best(row, limits, at(0.5 * (low + high)))
            found.append(ModelBin(int(head[SERIAL]), low, high, *numbers, best))
        return sorted(found, key=lambda bin_: bin_.serial)


def viewed(numbers: Array, low: Array, high: Array) -> dict[str, Any]:
    """What a learner's `view` says by name: the peak in units, the slopes on the unit cube.

    peak_error : None where it is not known how sure the peak is.
    """
    peak, peak_error, slope, slope_error = numbers.reshape(4, len(low))
    return {
        "peak": peak.tolist(),
        "peak_error": [error if error >= 0.0 else None for error in peak_error.tolist()],
        "slope": (slope * (high - low)).tolist(),
        "slope_error": (slope_error * (high - low)).tolist(),
    }


def _check_kind(role: str, config: Any, kind: type) -> None:
    code = code_of(type(config))
    if code is None:
        raise SettingsError(
            f"the code of a {role} must be registered, as in `register({type(config).__name__}, "
            f"{kind.__name__}.of(globals()))`, but that of {_kind(config)} is not"
        )
    if not isinstance(code, kind):
        raise SettingsError(f"`{role}` must be a {role}, but got {_kind(config)}, which is none")


def _reason(error: Exception) -> str:
    """What Numba says of the innermost function, and where that stands."""
    innermost = COLOURS.sub("", str(error)).split("Failed in nopython mode pipeline")[-1]
    why, *whereabouts = re.sub(r"^ \(step: .*\)", "", innermost).split("During:")
    told = " ".join(why.split())[:300]
    if "NRT required" in told:
        told = "a function that makes an array or a list"
    return " at ".join([told, *re.findall(r" at (\S+ \(\d+\))", "".join(whereabouts))[:1]])


def _kind(config: Any) -> str:
    """What the user called it."""
    return type(config).__name__.removesuffix("Config")
