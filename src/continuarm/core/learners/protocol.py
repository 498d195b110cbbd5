"""The functions of a learner: what runs inside one bin, as code over plain arrays.

A learner is a class of options (what a user types: checked when made, with `configured(dx, dy)`),
a configuration class (the same as a NamedTuple of numbers) and a `Learner` registered for it. A
bin is one `row` of float64; everything lives on the unit cube. Compiled code is deterministic:
`decide` receives the standard normal numbers that it declared with its request.

Deciding changes nothing. A learner whose decisions must be counted (the slots of a stencil, arms
that were tried once) has `asked`, which is called when the decision is handed out.

An observation *stands alone* when it can be learned from context, decision and payoff, whoever
asked for it: the ticket is ALONE, and the payoff goes to the bin that holds the context when it
arrives. A learner that needs a whole stencil before it moves hands out tickets >= 0 instead, and
its payoffs belong to the bin that asked. `pool` holds its open stencils; row 0 is a header.

A decision that will never be told is forgotten. A bin that has split is asked no more; what is
open in it can still be told or forgotten, and then the pool gets back what it held.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from continuarm.core import compiling
from continuarm.core.compiling import Array, by_class, compiled
from continuarm.core.request import FULL, Foreseen, Observation, Request

__all__ = ["Learner", "LearnerOptions", "Read", "register"]


AS_INCUMBENT = {"start": True}  # a rule: as the incumbent does

# How a decision came about: as the learner's own rules have it; uniform near the start, because
# little is known; the peak of a surface that was drawn; uniform within reach.
PLAIN, EARLY, DRAWN, UNIFORM = range(4)
VIEWED = (DRAWN, UNIFORM)  # those of which more is known


class LearnerOptions(Protocol):
    """What a user types to choose a learner; every field can be written as JSON."""

    def configured(self, dx: int, dy: int, /) -> Any:
        """The configuration for these dimensions: a NamedTuple of numbers."""


@compiled
def _always(cfg: Any, row: Array, pool: Array, ticket: int, y: Array) -> bool:
    return True


@compiled
def _forget_nothing(
    cfg: Any, row: Array, pool: Array, ticket: int, y: Array, is_bin: bool
) -> None:
    pass


@compiled
def _retire_nothing(cfg: Any, row: Array, pool: Array) -> None:
    pass


@compiled
def _view_nothing(
    cfg: Any, row: Array, request: Request, work: Array, y: Array, seen: Array
) -> int:
    return PLAIN


def _explain_nothing(cfg: Any, row: Array, request: Request, centre: Array) -> dict[str, Any]:
    return {}


class Read(NamedTuple):
    """What of a state that was read concerns the learner; nothing of it is trusted yet."""

    rows: Array  # of bins, of challengers, of bins that have split; the template, if there is one
    numbers: list[int]  # theirs
    asked: set[int]  # the numbers of those that are still bins
    pool: Array
    free: set[int]  # the rows of the pool that hold nothing
    seats: list[tuple[int, int]]  # row and ticket of each open decision


def _has_no_nan(cfg: Any, read: Read) -> bool:
    return not np.isnan(read.rows).any()


@dataclass(frozen=True, kw_only=True)
class Learner:
    """The code of a learner; each function is described by the one of the same name below."""

    width: Callable[[Any], int]
    init: Callable[[Any, Array, Array], None]
    decide: Callable[[Any, Array, Array, Request, Array, Array], int]
    tell: Callable[[Any, Array, Array, Observation, Array], Foreseen]
    best: Callable[[Any, Array, Request, Array, Array], None]
    inherit: Callable[[Any, Array, Array, Array, Array, float], None]
    progress: Callable[[Any, Array], int]
    stands_alone: Callable[[Any], bool] = lambda cfg: True
    counts_asking: Callable[[Any], bool] = lambda cfg: False
    uses_context: Callable[[Any], bool] = lambda cfg: False
    guarded: Callable[[Any], bool] = lambda cfg: False
    begins_anew: bool = False
    uses_gradient: bool = False
    largest_payoff: float = np.inf
    size: Callable[[Any], int] = lambda cfg: 1
    reach: Callable[[Any], float] = lambda cfg: 0.0
    draws: Callable[[Any], int] = lambda cfg: 0
    scratch: Callable[[Any], int] = lambda cfg: 0
    pool_width: Callable[[Any], int] = lambda cfg: 2
    asked: Callable[[Any, Array, Array, int, Array], bool] = _always
    forget: Callable[[Any, Array, Array, int, Array, bool], None] = _forget_nothing
    retire: Callable[[Any, Array, Array], None] = _retire_nothing
    place: Callable[[Any, Array, Array, float], None] | None = None
    explain: Callable[[Any, Array, Request, Array], dict[str, Any]] = _explain_nothing
    view: Callable[[Any, Array, Request, Array, Array, Array], int] = _view_nothing
    expected: Callable[[Any, Array, Array, Array], Array | None] = lambda cfg, row, u, ys: None
    gains: Callable[[Any, Array, Array, Array, Array], Array | None] = (
        lambda cfg, row, u, ys, start: None
    )
    examine: Callable[[Any, Array, Request, Array], dict[str, Any]] = _explain_nothing
    rule: Callable[[Any, Array], dict[str, Any] | None] = lambda cfg, row: None
    unvisited: Callable[[Any], dict[str, Any]] = lambda cfg: AS_INCUMBENT
    holds: Callable[[Any, Array, int], bool] = lambda cfg, pool, ticket: False
    fits: Callable[[Any, Read], bool] = _has_no_nan
    challenge: Callable[[Any, Array, Observation, Foreseen, Array], float] | None = None
    remembered: Callable[[Any, Array], float] | None = None
    held: Callable[[Any, Array], float] | None = None

    @classmethod
    def of(cls, module: dict[str, Any], **more: Any) -> "Learner":
        """The functions of a module that have these names, and what else is said."""
        return cls(**compiling.functions_of(cls, module) | more)


def register(config: type, learner: Learner) -> None:
    """Make `learner` the code of a configuration class."""
    compiling.register(config, learner)


def code(cfg: Any) -> Learner:
    """The code of a configuration, with what it says of itself.

    begins_anew : whether a bin that splits passes nothing on.
    guarded : whether it decides through `core/guards.py`, which knows coupled limits and spacings.
    uses_gradient : whether `tell` needs the gradient.
    largest_payoff : payoffs beyond are refused.
    """
    found: Learner = compiling.code_of(type(cfg))
    return found


def width(cfg: Any) -> int:
    """Floats per row."""
    return int(code(cfg).width(cfg))


def size(cfg: Any) -> int:
    """How many coefficients it fits, by which a split by evidence judges its challengers."""
    return int(code(cfg).size(cfg))


def reach(cfg: Any) -> float:
    """How far from what is known to be good it may try, as a part of each side; 0: anywhere."""
    return float(code(cfg).reach(cfg))


def pool_width(cfg: Any) -> int:
    """Floats per row of the pool, at least 2."""
    return int(code(cfg).pool_width(cfg))


def draws(cfg: Any) -> int:
    """Standard normal numbers per decision."""
    return int(code(cfg).draws(cfg))


def scratch(cfg: Any) -> int:
    """Numbers that the functions may use in `work`, because they do not allocate."""
    return int(code(cfg).scratch(cfg))


def scores(cfg: Any) -> bool:
    """Whether it has `challenge`, `remembered` and `held`, which a split by evidence needs."""
    found = code(cfg)
    return None not in (found.challenge, found.remembered, found.held)


@by_class
def stands_alone(cfg: Any) -> bool:
    """Whether a payoff teaches it without having been asked for."""
    return bool(code(cfg).stands_alone(cfg))


@by_class
def counts_asking(cfg: Any) -> bool:
    """Whether handing out a decision changes it; then it has `asked`."""
    return bool(code(cfg).counts_asking(cfg))


@by_class
def uses_context(cfg: Any) -> bool:
    """Whether it wants `u`: the context scaled to [-1, 1] in its bin."""
    return bool(code(cfg).uses_context(cfg))


@by_class
def init(cfg: Any, row: Array, start: Array) -> None:
    """Fill the row of a bin that nobody has visited, where the incumbent decides `start`."""
    code(cfg).init(cfg, row, start)


@by_class
def decide(cfg: Any, row: Array, pool: Array, request: Request, work: Array, y: Array) -> int:
    """Fill the decision `y` and change nothing else; its ticket.

    Asked within tighter limits than the cube, a learner of stencils answers with its best
    decision inside them, and the ticket NOTHING.
    """
    return int(code(cfg).decide(cfg, row, pool, request, work, y))


@by_class
def asked(cfg: Any, row: Array, pool: Array, ticket: int, y: Array) -> bool:
    """The decision `y` of this ticket is handed out; False, with nothing changed: no room."""
    return bool(code(cfg).asked(cfg, row, pool, ticket, y))


@by_class
def tell(cfg: Any, row: Array, pool: Array, seen: Observation, work: Array) -> Foreseen:
    """Learn what a decision paid; how well that was foreseen."""
    return code(cfg).tell(cfg, row, pool, seen, work)


@by_class
def forget(cfg: Any, row: Array, pool: Array, ticket: int, y: Array, is_bin: bool) -> None:
    """The decision `y` of this ticket will never be told."""
    code(cfg).forget(cfg, row, pool, ticket, y, is_bin)


@by_class
def retire(cfg: Any, row: Array, pool: Array) -> None:
    """The bin has split and will not be asked again."""
    code(cfg).retire(cfg, row, pool)


@by_class
def place(cfg: Any, row: Array, y: Array, payoffs: float) -> None:
    """Start a bin that has learned nothing yet at `y`; `payoffs` logged payoffs support it."""
    function = code(cfg).place
    assert function is not None
    function(cfg, row, y, payoffs)


@by_class
def view(cfg: Any, row: Array, request: Request, work: Array, y: Array, seen: Array) -> int:
    """How the decision `y` came about, with what was known: PLAIN, EARLY, DRAWN or UNIFORM.

    For the last two `seen`, `(4 dy,)`, is filled: where the surface is highest, the standard error
    of that (below 0: not sure), the slopes at `y`, and their standard errors.
    """
    return int(code(cfg).view(cfg, row, request, work, y, seen))


def explain(cfg: Any, row: Array, request: Request, centre: Array) -> dict[str, Any]:
    """The numbers behind a decision, as plain numbers and lists, on the unit cube.

    `observations`, `centre` (the best decision known), and where the learner knows them `slope`
    and `curvature` at the centre with `slope_error` and `curvature_error`, and `noise`.
    """
    numbers: dict[str, Any] = {"observations": progress(cfg, row), "centre": centre.tolist()}
    return numbers | code(cfg).explain(cfg, row, request, centre)


def expected(cfg: Any, row: Array, u: Array, ys: Array) -> Array | None:
    """What decisions `(n, dy)` are expected to pay, and the standard errors of that, `(n, 2)`.

    None: too little is known, or the learner does not know it.
    """
    return code(cfg).expected(cfg, row, u, ys)


def gains(cfg: Any, row: Array, u: Array, ys: Array, start: Array) -> Array | None:
    """By how much more decisions `(n, dy)` are expected to pay than `start`, and the standard
    errors of that, `(n, 2)`; None as with `expected`.
    """
    return code(cfg).gains(cfg, row, u, ys, start)


def examine(cfg: Any, row: Array, request: Request, centre: Array) -> dict[str, Any]:
    """What `explain` says, and which of its assumptions payoffs contradict, as far as it can tell.

    `needs` and `has`: the payoffs that it needs to learn anything, and those that it has.
    `largest_bend`, `bend_error`, `bends`: the payoff's second derivative in the direction where it
    is largest, with its standard error, among so many numbers. `one_payoff`: the part of all
    squared errors that one payoff has made. `moves`, `moves_error`: for each context, how far the
    best decision moves from one end of the bin to the other, in each coordinate.
    """
    found = explain(cfg, row, request, centre)
    return found | code(cfg).examine(cfg, row, request, centre)


def rule(cfg: Any, row: Array) -> dict[str, Any] | None:
    """What `best` follows in the whole bin, for a reader in plain Python; None: it is constant."""
    return code(cfg).rule(cfg, row)


def unvisited(cfg: Any) -> dict[str, Any]:
    """The same in bins that nobody has visited: `best` answers with the start, or with `cells`,
    so many to a side, with the middle of the start's cell."""
    return code(cfg).unvisited(cfg)


def holds(cfg: Any, pool: Array, ticket: int) -> bool:
    """Whether the pool has what this ticket, which is not ALONE, stands for."""
    return bool(code(cfg).holds(cfg, pool, ticket))


def fits(cfg: Any, read: Read) -> bool:
    """Whether what was read could be what it learned: no index, link or number breaks it."""
    return bool(code(cfg).fits(cfg, read))


@by_class
def challenge(
    cfg: Any, row: Array, seen: Observation, bin_foresaw: Foreseen, work: Array
) -> float:
    """A row that no context reaches yet learns what its bin has just been told.

    The logarithm of how much likelier it had found that payoff than the bin had.
    """
    function = code(cfg).challenge
    assert function is not None
    return float(function(cfg, row, seen, bin_foresaw, work))


@by_class
def best(cfg: Any, row: Array, request: Request, work: Array, y: Array) -> None:
    """Fill `y` with the best decision known in the request's region; changes nothing else."""
    code(cfg).best(cfg, row, request, work, y)


@by_class
def inherit(cfg: Any, parent: Array, child: Array, low: Array, high: Array, keep: float) -> None:
    """Fill the row of a child, whose box is `[low, high]` in the parent's `u`.

    `keep` is the weight that the parent's observations keep, where the learner can say so.
    """
    code(cfg).inherit(cfg, parent, child, low, high, keep)


@by_class
def progress(cfg: Any, row: Array) -> int:
    """Completed stencils, or observations, of this bin itself."""
    return int(code(cfg).progress(cfg, row))


@by_class
def remembered(cfg: Any, row: Array) -> float:
    """How many observations of this bin count still; a split by evidence needs it."""
    function = code(cfg).remembered
    assert function is not None
    return float(function(cfg, row))


@by_class
def held(cfg: Any, row: Array) -> float:
    """The same with those that were inherited, which count as far as they were kept."""
    function = code(cfg).held
    assert function is not None
    return float(function(cfg, row))


# The pool: row 0 is the header: the newest free row, and the rows used. A free row's first number
# is the next free row; 0 ends the list.


def empty_pool(cfg: Any) -> Array:
    """A pool with nothing in it."""
    pool = np.zeros((8, pool_width(cfg)))
    pool[0, 1] = 1
    return pool


@compiled
def is_full(pool: Array) -> bool:
    """Whether `take` would answer FULL."""
    return bool(pool[0, 0] == 0 and pool[0, 1] == pool.shape[0])


@compiled
def next_free(pool: Array) -> int:
    """The row of the pool that `take` would take, whether there is room or not."""
    return int(pool[0, 0]) if pool[0, 0] > 0 else int(pool[0, 1])


@compiled
def take(pool: Array) -> int:
    """A row of the pool, or FULL."""
    free = int(pool[0, 0])
    if free > 0:
        pool[0, 0] = pool[free, 0]
        return free
    used = int(pool[0, 1])
    if used == pool.shape[0]:
        return FULL
    pool[0, 1] = used + 1
    return used


@compiled
def give_back(pool: Array, index: int) -> None:
    """Free a row of the pool."""
    pool[index, 0] = pool[0, 0]
    pool[0, 0] = index
