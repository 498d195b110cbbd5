"""Database: what differs between relational databases, and one transaction of them."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

__all__ = ["Database", "Row", "Rows", "Session"]

Row = tuple[Any, ...]
Rows = Callable[[], list[Row]]


class Session(Protocol):
    """One transaction: what it did is durable when it ends, or has not happened."""

    def run(self, statement: str, *given: Any) -> list[Row]:
        """The rows that a statement answers; a `?` stands for each thing given."""

    def send(self, statement: str, *given: Any) -> Rows:
        """The same, whose rows are waited for when they are called for.

        What is sent before one waits takes one round trip to a database that is far.
        """

    def run_many(self, statement: str, given: Iterable[Row]) -> None:
        """Run a statement once for each row of things."""


class Database(Protocol):
    """What differs between databases."""

    #: SQL for some columns of the events of an experiment, by its number, that have one of the
    #: strings, given by `listed`, in another column; it looks each of them up in its index
    among: str
    #: SQL that keeps others from writing to the rows that were just read
    locking: str
    #: whether `writing_now` waits for the disk alone, and at its end
    is_near: bool

    def listed(self, strings: list[str]) -> Any:
        """Strings as one parameter."""

    def clock(self, session: Session) -> Callable[[], float]:
        """The present time in seconds since 1970, the same for all who write, when called for."""

    def reading(self, patience: float | None = None) -> AbstractContextManager[Session]:
        """A transaction that reads; seconds that it may take, if it is a long one."""

    def writing(self, patience: float | None = None) -> AbstractContextManager[Session]:
        """A transaction that writes."""

    def writing_now(self) -> AbstractContextManager[Session]:
        """The same, or a TurnTakenError while another one writes; any thread may end it."""

    def appended(self, session: Session) -> None:
        """Tell those who wait, when this transaction ends."""

    def glance(self) -> object:
        """See `Store`."""

    def mark(self) -> int:
        """A number that changes when something is appended."""

    def sleep(self, mark: int, seconds: float) -> None:
        """Wait until the mark is another one, so long at most, or a while."""

    def scrub(self) -> None:
        """Let what was deleted be gone from the disk."""

    def close(self) -> None:
        """Let go of files and connections."""
