"""The functions of a partition: which bin a context falls in, and when a bin splits.

A partition is a class of options (what a user types: checked when made, with
`configured(dx, learner)`), a configuration class (the same as a NamedTuple of numbers) and a
`Partition` registered for it. `nodes` is its own index of bins; what else row 0 of it holds is
its own affair. The rows of bins belong to the engine: a partition takes them, makes them bins and
gives them back with the functions of `core/state.py`. Bins are made when first needed, so memory
grows with the bins visited.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from continuarm.core import compiling
from continuarm.core.compiling import Array, by_class, compiled, in_python
from continuarm.core.request import Learned
from continuarm.core.state import SERIAL, Space, State

__all__ = ["Partition", "PartitionOptions", "register"]

Boxes = list[tuple[int, Array, Array]]  # rows with their boxes


class PartitionOptions(Protocol):
    """What a user types to choose a partition; every field can be written as JSON."""

    def configured(self, dx: int, learner: Any, /) -> Any:
        """The configuration for `dx` context dimensions and a learner of this configuration."""


@compiled
def _always(cfg: Any, nodes: Array, rows: Array, row: int) -> bool:
    return True


@compiled
def _nothing_to_make(cfg: Any, lcfg: Any, state: State, row: int, space: Space) -> bool:
    return True


@compiled
def _never_splits(cfg: Any, lcfg: Any, state: State, learned: Learned, space: Space) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Partition:
    """The code of a partition; each function is described by the one of the same name below."""

    empty: Callable[[Any], Array]
    locate: Callable[[Any, Array, Array, Space, bool], tuple[int, bool]]
    add: Callable[[Any, Array, Array, int, Space], int]
    grown: Callable[[Any, Array], Array]
    boxes: Callable[[Any, Array], Boxes]
    split_boxes: Callable[[Any, Array], Boxes] = lambda cfg, nodes: []
    former: Callable[[Any, Array, Array], Boxes] | None = None
    bare: Callable[[Any, Array, Array], tuple[Array, Array]] = lambda cfg, nodes, rows: (
        nodes.copy(),
        rows.copy(),
    )
    is_bin: Callable[[Any, Array, Array, int], bool] = _always
    prepare: Callable[[Any, Any, State, int, Space], bool] = _nothing_to_make
    observe: Callable[[Any, Any, State, Learned, Space], None] = _never_splits
    rows_at_once: Callable[[Any], int] = lambda cfg: 1
    fits: Callable[[Any, Array, Array, list[int]], bool] = lambda cfg, nodes, heads, busy: True
    unmade: Callable[[Any, Array], list[int]] = lambda cfg, nodes: []
    single: Callable[[Any], bool] = lambda cfg: False
    by_evidence: bool = False

    @classmethod
    def of(cls, module: dict[str, Any], **more: Any) -> "Partition":
        """The functions of a module that have these names, and what else is said."""
        return cls(**compiling.functions_of(cls, module) | more)


def register(config: type, partition: Partition) -> None:
    """Make `partition` the code of a configuration class."""
    compiling.register(config, partition)


def code(cfg: Any) -> Partition:
    """The code of a configuration."""
    found: Partition = compiling.code_of(type(cfg))
    return found


def empty(cfg: Any) -> Array:
    """The nodes of a partition that nobody has visited."""
    return code(cfg).empty(cfg)


@by_class
def locate(cfg: Any, nodes: Array, x: Array, space: Space, boxed: bool) -> tuple[int, bool]:
    """The row of a context's bin, and whether that is made.

    A bin that is not made yet has the row of the bin it was split from, or 0. If `boxed`, the box
    of the bin is in `space.low` and `space.high`; if it is not made, that of the bin it was split
    from in `space.outer_low` and `space.outer_high`.
    """
    return code(cfg).locate(cfg, nodes, x, space, boxed)


@by_class
def add(cfg: Any, nodes: Array, x: Array, row: int, space: Space) -> int:
    """Let `row` be the bin of a context that has none; its node, or FULL with nothing changed."""
    return code(cfg).add(cfg, nodes, x, row, space)


@by_class
def prepare(cfg: Any, lcfg: Any, state: State, row: int, space: Space) -> bool:
    """Before a bin learns, make what stands beside it; False, with nothing changed: no room."""
    return code(cfg).prepare(cfg, lcfg, state, row, space)


@by_class
def observe(cfg: Any, lcfg: Any, state: State, learned: Learned, space: Space) -> None:
    """A bin has learned something, for the context `space.x`: split it if it is time."""
    code(cfg).observe(cfg, lcfg, state, learned, space)


@by_class
def is_bin(cfg: Any, nodes: Array, rows: Array, row: int) -> bool:
    """Whether a row that once was a bin still is, and has not split."""
    return bool(code(cfg).is_bin(cfg, nodes, rows, row))


def by_evidence(cfg: Any) -> bool:
    """Whether it splits by evidence, and so needs a learner with `challenge`."""
    return code(cfg).by_evidence


def single(cfg: Any) -> bool:
    """Whether it can never have more than one bin."""
    return code(cfg).single(cfg)


def fits(cfg: Any, nodes: Array, heads: Array, busy: list[int]) -> bool:
    """Whether nodes that were read could be an index of rows with these heads.

    No link leads nowhere or twice to one place. The `busy` rows, those not free, are all known.
    """
    return bool(code(cfg).fits(cfg, nodes, heads, busy))


def unmade(cfg: Any, nodes: Array) -> list[int]:
    """The rows that were taken, and will be filled before they are used."""
    return code(cfg).unmade(cfg, nodes)


def rows_at_once(cfg: Any) -> int:
    """How many rows `prepare` may need."""
    return int(in_python(code(cfg).rows_at_once)(cfg))


def grown(cfg: Any, nodes: Array) -> Array:
    """The nodes with twice the room."""
    return code(cfg).grown(cfg, nodes)


def boxes(cfg: Any, nodes: Array) -> Boxes:
    """The row and the box, on the unit cube, of each bin that has been made and not split."""
    return code(cfg).boxes(cfg, nodes)


def split_boxes(cfg: Any, nodes: Array) -> Boxes:
    """The same of each bin that has split and answers for a part not made yet, parents first."""
    return code(cfg).split_boxes(cfg, nodes)


def former(cfg: Any, nodes: Array, rows: Array) -> Boxes:
    """The number and the box of each bin that has split; by default those of `split_boxes`."""
    function = code(cfg).former
    if function is not None:
        return function(cfg, nodes, rows)
    found = split_boxes(cfg, nodes)
    return [(int(rows[row, SERIAL]), low, high) for row, low, high in found]


def bare(cfg: Any, nodes: Array, rows: Array) -> tuple[Array, Array]:
    """A copy of the nodes and of the rows in use with nothing beside the bins and the template."""
    return code(cfg).bare(cfg, nodes, rows)
