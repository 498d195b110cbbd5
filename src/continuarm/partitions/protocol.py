"""The functions of a partition: which bin a context falls in, and when a bin splits.

A partition is a configuration class and a `Partition` registered for it. `rows` holds one row per
bin: five numbers of the partition, then the learner's row. Row 0 is the template of a bin that
nobody has visited. `nodes` is the partition's own index; row 0 of it is the header. Bins are made
on first visit, so memory grows with the bins visited.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from continuarm import jit
from continuarm.jit import Array, by_class, compiled

# the numbers before the learner's in a row; LAST is the clock at the bin's last payoff
NODE, LEVEL, ASKED, TOLD, LAST, HEAD = 0, 1, 2, 3, 4, 5
NODES_USED, ROWS_USED = 0, 1  # the header in nodes[0]
SCRATCH = 4  # compiled code does not allocate: numbers per context dimension that it may use


@compiled
def _always(cfg: Any, nodes: Array, rows: Array, row: int) -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Partition:
    """The code of a partition; each function is described by the one of the same name below."""

    empty: Callable[[Any], Array]
    locate: Callable[[Any, Array, Array, Array, bool], int]
    make: Callable[[Any, Any, Array, Array, Array, Array], int]
    observe: Callable[[Any, Any, Array, Array, int, Array, Array, Array, Array, float], None]
    grown: Callable[[Any, Array], Array]
    boxes: Callable[[Any, Array], list[tuple[int, Array, Array]]]
    split_boxes: Callable[[Any, Array], list[tuple[int, Array, Array]]] = lambda cfg, nodes: []
    is_bin: Callable[[Any, Array, Array, int], bool] = _always
    rows_at_once: Callable[[Any], int] = lambda cfg: 1
    by_evidence: bool = False


def register(config: type, partition: Partition) -> None:
    """Make `partition` the code of a configuration class."""
    jit.register(config, partition)


def empty(cfg: Any) -> Array:
    """The nodes of a partition that nobody has visited."""
    nodes: Array = jit.code_of(type(cfg)).empty(cfg)
    return nodes


@by_class
def locate(cfg: Any, nodes: Array, x: Array, u: Array, scaled: bool) -> int:
    """The row of a context's bin, and if `scaled` the context scaled to [-1, 1] in its bin in `u`.

    `u` has room for `SCRATCH` times dx numbers. Zero or less: the bin is not made yet, and the row
    of that number without its sign answers for it (its nearest ancestor, or the template).
    """
    return int(jit.code_of(type(cfg)).locate(cfg, nodes, x, u, scaled))


@by_class
def make(cfg: Any, lcfg: Any, nodes: Array, rows: Array, x: Array, u: Array) -> int:
    """Make the bin of a context that has none; its row, or FULL with nothing changed."""
    return int(jit.code_of(type(cfg)).make(cfg, lcfg, nodes, rows, x, u))


@by_class
def observe(
    cfg: Any,
    lcfg: Any,
    nodes: Array,
    rows: Array,
    row: int,
    x: Array,
    u: Array,
    work: Array,
    y: Array,
    z: float,
) -> None:
    """A bin has learned that `y` paid `z`: split it if its time has come."""
    jit.code_of(type(cfg)).observe(cfg, lcfg, nodes, rows, row, x, u, work, y, z)


@by_class
def is_bin(cfg: Any, nodes: Array, rows: Array, row: int) -> bool:
    """Whether a row that once was a bin still is, and has not split."""
    return bool(jit.code_of(type(cfg)).is_bin(cfg, nodes, rows, row))


def by_evidence(cfg: Any) -> bool:
    """Whether it splits by evidence, and so needs a learner with `challenge`."""
    return bool(jit.code_of(type(cfg)).by_evidence)


def rows_at_once(cfg: Any) -> int:
    """How many rows `make` may need."""
    return int(jit.code_of(type(cfg)).rows_at_once(cfg))


def grown(cfg: Any, nodes: Array) -> Array:
    """The nodes with twice the room."""
    larger: Array = jit.code_of(type(cfg)).grown(cfg, nodes)
    return larger


def boxes(cfg: Any, nodes: Array) -> list[tuple[int, Array, Array]]:
    """The row and the box, on the unit cube, of each bin that has been made and not split."""
    found: list[tuple[int, Array, Array]] = jit.code_of(type(cfg)).boxes(cfg, nodes)
    return found


def split_boxes(cfg: Any, nodes: Array) -> list[tuple[int, Array, Array]]:
    """The same of each bin that has split and answers for a part not made yet, parents first."""
    found: list[tuple[int, Array, Array]] = jit.code_of(type(cfg)).split_boxes(cfg, nodes)
    return found
