"""What one row of the attack has tried, and what came of it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from benchmarks.attacks.place import Place

__all__ = ["COLUMNS", "Case", "Defect", "Tally"]

COLUMNS = (
    "part",
    "what was tried",
    "times",
    "decisions",
    "payoffs",
    "lost",
    "wrong",
    "500s",
    "longest pause, s",
    "what came of it",
)


class Defect(Exception):
    """What a store or a server must not do."""


@dataclass
class Tally:
    """Counts of one row.

    decisions, payoffs : those acknowledged.
    pause : the longest time without an acknowledged answer, in seconds; None: not measured.
    """

    times: int = 0
    decisions: int = 0
    payoffs: int = 0
    lost: int = 0
    wrong: int = 0
    failures: int = 0
    pause: float | None = None
    came: str = ""
    statuses: Counter[int] = field(default_factory=Counter)

    def row(self, part: str, what: str) -> list[Any]:
        """The row of the table."""
        pause = None if self.pause is None else round(self.pause, 2)
        counts = [self.times, self.decisions or None, self.payoffs or None]
        return [part, what, *counts, self.lost, self.wrong, self.failures, pause, self.came]


class Case(NamedTuple):
    """A row to be: `run` raises a Defect where something does not hold.

    quick : whether a quick attack has it, too.
    """

    part: str
    what: str
    run: Callable[["Place", Tally], None]
    quick: bool = True
