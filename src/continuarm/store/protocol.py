"""Store: ledgers of experiments, durable, each in one order.

Every entry of a ledger has a position. Positions have no gaps and become visible in order, so that
"everything after position n" never misses an entry that comes late. The store gives positions and
times; time never goes back, whatever the clocks of its writers say. What a call has returned is
durable.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from continuarm.errors import UnavailableError
from continuarm.store.records import Appended, Entry, Experiment, Kept, Record, Snapshot, Token

__all__ = ["MOST_READ", "Store", "TurnTakenError"]

MOST_READ = 1000  # records at once


class TurnTakenError(UnavailableError):
    """Somebody else appends at this moment."""


class Store(Protocol):
    """What every store does; any number of threads and processes may use one.

    An experiment that is not there is an UnknownExperimentError. What cannot be done now, because
    the database does not answer or the disk is full, is an UnavailableError, and changes nothing.

    is_near : whether `appending` waits for the disk alone, and at its end.
    """

    is_near: bool

    def create(self, name: str, settings: str) -> Experiment:
        """Begin an experiment, or find it as it was begun; with other settings it is refused."""

    def experiment(self, name: str) -> Experiment:
        """An experiment as it is now."""

    def experiments(self) -> list[Experiment]:
        """All of them, by name."""

    def archive(self, name: str, archived: bool = True) -> None:
        """Let nobody append to an experiment any more, or again."""

    def append(self, name: str, group: Sequence[Entry], onto: int | None = None) -> Appended:
        """Append a group in one stroke; one entry that is refused does not keep back the others.

        onto : append only if the ledger's head is at this position.
        """

    def appending(self, name: str, group: Sequence[Entry]) -> AbstractContextManager[Appended]:
        """Append a group by a `with` statement; it is durable when that has ended.

        Another thread may end it. If the end raises, nothing was appended. While somebody else
        appends it is a TurnTakenError, and nobody is waited for.
        """

    def clock(self) -> float:
        """The present time by the store's clock, in seconds since 1970."""

    def set_clock(self, name: str, entry: Entry, offset: float) -> Appended:
        """Append an entry; from then on times are the clock's plus an offset, in seconds.

        They still never go back.
        """

    def read(self, name: str, after: int, most: int = MOST_READ) -> list[Record]:
        """The records after a position, in order, at most so many."""

    def glance(self) -> object:
        """What is another one when others have appended since; None where to look takes long.

        It may be another one although nobody has. Others are who have not appended by `appending`
        of this very store.
        """

    def opening(self, name: str, decision: str) -> Record | None:
        """The record that handed out a decision."""

    def closing(self, name: str, decision: str) -> Record | None:
        """The record that told, forgot or expired it."""

    def keyed(self, name: str, key: str) -> Record | None:
        """The record with a client's key."""

    def latest(self, name: str, kind: str) -> Record | None:
        """The newest record of a kind whose entries neither open nor close a decision."""

    def wait(self, name: str, after: int, seconds: float) -> bool:
        """Wait until there is a record after a position, so long at most; whether there is."""

    def wait_for_any(self, heads: dict[str, int], seconds: float) -> dict[str, int]:
        """Wait until ledgers have other heads than these, so long at most; the heads by name."""

    def keep(self, name: str, snapshot: Snapshot, stays: bool = False) -> Snapshot:
        """Keep a snapshot; if there is one of its position and version, that one is returned.

        Older ones are let go, except those that stay, those that a ledger begins with, the newest
        three of each version, and the newest of each day (in UTC).

        stays : never let it go, because a ledger will begin with it.
        """

    def newest(self, name: str, version: str) -> Snapshot | None:
        """The newest snapshot of a version."""

    def kept(self, name: str) -> list[Kept]:
        """What is known of all snapshots without their states, by position and version."""

    def snapshot(self, name: str, position: int, version: str) -> Snapshot | None:
        """One snapshot; None: it is not kept, or no more."""

    def snapshots(self, name: str) -> list[Snapshot]:
        """All snapshots, by position and version."""

    def adopt(
        self, experiment: Experiment, records: Iterable[Record], snapshots: Iterable[Snapshot]
    ) -> None:
        """Take over an experiment of another store, as it is, all of it or nothing.

        All records are read before the first snapshot is.
        """

    def erase(self, name: str, until: int) -> None:
        """Erase the records up to a position, and snapshots before it, for good.

        A snapshot of that position must be kept, because nothing else says what was before. The
        records of decisions that are still open stay, so that they can be closed (`kept_open`).
        """

    def kept_open(self, name: str) -> list[Record]:
        """What was not erased with the records around it, because its decision was open."""

    def add_token(self, token: Token) -> None:
        """Let somebody in, and nobody without a token; a name that is taken is refused."""

    def tokens(self) -> list[Token]:
        """Who is let in, by name."""

    def revoke_token(self, name: str) -> None:
        """Let somebody in no more; a name that is unknown is refused."""

    def tokens_needed(self) -> bool:
        """Whether a token was ever added, and `disable_tokens` was not called since."""

    def disable_tokens(self) -> None:
        """Revoke all tokens, and need none any more."""

    def close(self) -> None:
        """Let go of files and connections."""
