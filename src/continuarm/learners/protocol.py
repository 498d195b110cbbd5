"""The functions of a learner: what runs inside one bin, as code over plain arrays.

A learner is a configuration class (a NamedTuple of numbers) and a `Learner` registered for it.
A bin is one `row` of float64; everything lives on the unit cube. `pool` holds what open decisions
share (the stencils of Kiefer–Wolfowitz); row 0 of the pool is its header. Compiled code is
deterministic: `ask` receives the standard normal numbers `xi` that it declared.

There are two kinds. A learner that needs a whole stencil before it moves hands out tickets >= 0,
and its payoffs belong to the bin that asked. A learner whose observations stand alone returns the
ticket ALONE, and its payoffs go to the bin that holds the context when they arrive.

A decision that will never be told is forgotten. A bin that has split is asked no more; what is
open in it can still be told or forgotten, and then the pool gets back what it held.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from continuarm import jit
from continuarm.jit import Array, by_class, compiled

ALONE = -1
FULL = -2  # the arrays are full: nothing was changed, make them larger and call again


@compiled
def _forget_nothing(cfg: Any, row: Array, pool: Array, ticket: int, y: Array, asked: bool) -> None:
    pass


@compiled
def _retire_nothing(cfg: Any, row: Array, pool: Array) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Learner:
    """The code of a learner; each function is described by the one of the same name below."""

    width: Callable[[Any], int]
    pool_width: Callable[[Any], int]
    draws: Callable[[Any], int]
    uses_context: Callable[[Any], bool]
    uses_gradient: Callable[[Any], bool]
    init: Callable[[Any, Array, Array], None]
    ask: Callable[[Any, Array, Array, Array, Array, Array, Array], int]
    tell: Callable[[Any, Array, Array, int, Array, Array, Array, float, Array, float, bool], None]
    best: Callable[[Any, Array, Array, Array, Array], None]
    inherit: Callable[[Any, Array, Array, Array, Array, float], None]
    progress: Callable[[Any, Array], int]
    place: Callable[[Any, Array, Array, float], None] | None = None
    rule: Callable[[Any, Array], dict[str, Any] | None] = lambda cfg, row: None
    remembered: Callable[[Any, Array], float] | None = None
    holds: Callable[[Any, Array, int], bool] = lambda cfg, pool, ticket: False
    forget: Callable[[Any, Array, Array, int, Array, bool], None] = _forget_nothing
    retire: Callable[[Any, Array, Array], None] = _retire_nothing
    scratch: Callable[[Any], int] = lambda cfg: 0
    challenge: Callable[[Any, Array, Array, Array, Array, float], float] | None = None


def register(config: type, learner: Learner) -> None:
    """Make `learner` the code of a configuration class."""
    jit.register(config, learner)


def width(cfg: Any) -> int:
    """Floats per row."""
    return int(jit.code_of(type(cfg)).width(cfg))


def pool_width(cfg: Any) -> int:
    """Floats per row of the pool, at least 3."""
    return int(jit.code_of(type(cfg)).pool_width(cfg))


def draws(cfg: Any) -> int:
    """Standard normal numbers per `ask`."""
    return int(jit.code_of(type(cfg)).draws(cfg))


def scratch(cfg: Any) -> int:
    """Numbers that `ask`, `tell` and `best` may use in `work`, because they do not allocate."""
    return int(jit.code_of(type(cfg)).scratch(cfg))


def scores(cfg: Any) -> bool:
    """Whether it has `challenge` and `remembered`, which a split by evidence needs."""
    code = jit.code_of(type(cfg))
    return code.challenge is not None and code.remembered is not None


@by_class
def uses_context(cfg: Any) -> bool:
    """Whether it wants `u`: the context scaled to [-1, 1] in its bin, in the first dx numbers."""
    return bool(jit.code_of(type(cfg)).uses_context(cfg))


def uses_gradient(cfg: Any) -> bool:
    """Whether `tell` needs the gradient."""
    return bool(jit.code_of(type(cfg)).uses_gradient(cfg))


def init(cfg: Any, row: Array, start: Array) -> None:
    """Fill the row of a bin that nobody has visited."""
    jit.code_of(type(cfg)).init(cfg, row, start)


@by_class
def ask(cfg: Any, row: Array, pool: Array, u: Array, work: Array, xi: Array, y: Array) -> int:
    """Fill the decision `y`; a ticket, ALONE, or FULL with nothing changed."""
    return int(jit.code_of(type(cfg)).ask(cfg, row, pool, u, work, xi, y))


@by_class
def tell(
    cfg: Any,
    row: Array,
    pool: Array,
    ticket: int,
    u: Array,
    work: Array,
    y: Array,
    z: float,
    gradient: Array,
    elapsed: float,
    asked: bool,
) -> None:
    """Learn that the decision `y` of this ticket paid `z`.

    `elapsed` is how many payoffs the policy has learned since the bin's last one, this included;
    `asked` says whether the bin is still asked, or has split.
    """
    code = jit.code_of(type(cfg))
    code.tell(cfg, row, pool, ticket, u, work, y, z, gradient, elapsed, asked)


@by_class
def forget(cfg: Any, row: Array, pool: Array, ticket: int, y: Array, asked: bool) -> None:
    """The decision `y` of this ticket will never be told."""
    jit.code_of(type(cfg)).forget(cfg, row, pool, ticket, y, asked)


@by_class
def retire(cfg: Any, row: Array, pool: Array) -> None:
    """The bin has split and will not be asked again."""
    jit.code_of(type(cfg)).retire(cfg, row, pool)


@by_class
def place(cfg: Any, row: Array, y: Array, payoffs: float) -> None:
    """Start a bin that has learned nothing yet at `y`, which this many payoffs speak for."""
    jit.code_of(type(cfg)).place(cfg, row, y, payoffs)


def rule(cfg: Any, row: Array) -> dict[str, Any] | None:
    """What `best` follows in the whole bin, for a reader in plain Python; None: it is constant."""
    found: dict[str, Any] | None = jit.code_of(type(cfg)).rule(cfg, row)
    return found


def holds(cfg: Any, pool: Array, ticket: int) -> bool:
    """Whether the pool has what this ticket, which is not ALONE, stands for."""
    return bool(jit.code_of(type(cfg)).holds(cfg, pool, ticket))


def stands_alone(cfg: Any) -> bool:
    """Whether a payoff teaches it without having been asked for; if not, it has `place`."""
    return jit.code_of(type(cfg)).place is None


@by_class
def challenge(cfg: Any, row: Array, u: Array, work: Array, y: Array, z: float) -> float:
    """A row that no context reaches yet learns what its bin has just been told.

    The logarithm of how much likelier it had found that payoff than the bin had; `work` is as the
    bin's `tell` left it, and stays so where other challengers need it.
    """
    return float(jit.code_of(type(cfg)).challenge(cfg, row, u, work, y, z))


@by_class
def best(cfg: Any, row: Array, u: Array, work: Array, y: Array) -> None:
    """Fill `y` with the best decision known; changes nothing else."""
    jit.code_of(type(cfg)).best(cfg, row, u, work, y)


@by_class
def inherit(cfg: Any, parent: Array, child: Array, low: Array, high: Array, keep: float) -> None:
    """Fill the row of a child, whose box is `[low, high]` in the parent's `u`.

    `keep` is the weight that the parent's observations keep, where the learner can say so.
    """
    jit.code_of(type(cfg)).inherit(cfg, parent, child, low, high, keep)


@by_class
def progress(cfg: Any, row: Array) -> int:
    """Completed stencils, or observations, of this bin itself."""
    return int(jit.code_of(type(cfg)).progress(cfg, row))


@by_class
def remembered(cfg: Any, row: Array) -> float:
    """How many observations of this bin count still; a split by evidence needs it."""
    return float(jit.code_of(type(cfg)).remembered(cfg, row))


# The pool: row 0 is the header: the newest free row, the rows used, the payoffs the policy has
# learned. A free row's first number is the next free row; 0 ends the list.
CLOCK = 2


def empty_pool(cfg: Any) -> Array:
    """A pool with nothing in it."""
    pool = np.zeros((8, max(3, pool_width(cfg))))
    pool[0, 1] = 1
    return pool


def is_full(pool: Array) -> bool:
    """Whether `take` would answer FULL."""
    return bool(pool[0, 0] == 0 and pool[0, 1] == len(pool))


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
