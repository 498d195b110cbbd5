"""Imports: an experiment that was exported is taken over if it is what a ledger could hold."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from continuarm.errors import ContinuarmError, InputError, SavedFileError
from continuarm.ledger.beginnings import began_of
from continuarm.ledger.entries import (
    BEGAN,
    CLOCK_SET,
    EXPIRED,
    TIME_PASSED,
    event_of,
    id_of,
    offset_of,
    text_of,
)
from continuarm.ledger.refold import first_life
from continuarm.ledger.settings import check_fit, settings_of
from continuarm.ledger.snapshots import state_in
from continuarm.live import events
from continuarm.live.checked_events import check_numbers
from continuarm.live.life import Life
from continuarm.store.moving import read_lines
from continuarm.store.protocol import Store
from continuarm.store.records import Experiment, Record, Snapshot

__all__ = ["RecordCheck", "import_lines"]

OPENS = {events.NAMES[events.Asked]}
CLOSES = {events.NAMES[events.Told], events.NAMES[events.Forgotten], EXPIRED}


def import_lines(store: Store, lines: Iterable[str], name: str | None = None) -> Experiment:
    """Take over an experiment, all of it or nothing; what is wrong is said with its line."""
    return read_lines(store, lines, name, _check_of)


def _check_of(experiment: Experiment) -> "RecordCheck":
    try:
        return RecordCheck(experiment, settings_of(experiment))
    except InputError as error:
        raise InputError(f"its settings: {error}") from None


class RecordCheck:
    """Whether records are events that could have happened to the policy of an experiment.

    What has numbers is looked at as far as it does not depend on what happened before.

    settings : those of the experiment; None: they are damaged, and nothing is compared with them.
    life : one of that policy, from the first snapshot that can be read.
    """

    def __init__(self, experiment: Experiment, settings: dict[str, Any] | None) -> None:
        self.head, self.settings = experiment.head, settings
        self.life: Life | None = None

    def snapshot(self, snapshot: Snapshot) -> None:
        """Refuse one that is of no position of the ledger, or of another policy."""
        if not 0 < snapshot.position <= self.head:
            raise InputError(
                f"a snapshot must be of a position from 1 to {self.head}, but got "
                f"{snapshot.position}"
            )
        if self.settings is not None:
            with suppress(SavedFileError):  # another version may read it
                check_fit(self.settings, snapshot)
        self.life = self.life or first_life(snapshot)

    def record(self, record: Record) -> None:
        """Refuse one that no ledger could hold."""
        if self.life is None:
            raise InputError("a snapshot that can be read must come before events, but none did")
        self._check_names(record)
        try:
            self._check_body(self.life, record)
        except InputError:
            raise
        except (ContinuarmError, KeyError, TypeError, ValueError) as error:
            raise InputError(str(error)) from None

    @staticmethod
    def _check_names(record: Record) -> None:
        """Whether it opens and closes what its kind does."""
        for name, kinds in ((record.opens, OPENS), (record.closes, CLOSES)):
            if (name is not None) != (record.kind in kinds):
                raise InputError(
                    f"a record of kind {record.kind!r} must open or close what that kind does, "
                    f"but record {record.position} opens {record.opens!r} and closes "
                    f"{record.closes!r}"
                )
            if name is not None and not _is_id(name):
                raise InputError(f"a decision has 32 hexadecimal digits, but got {name!r}")

    @staticmethod
    def _check_body(life: Life, record: Record) -> None:
        if record.kind == BEGAN:
            began_of(record)
            if '"state"' in record.body and state_in(record) is None:
                raise InputError("a copy of the beginning must be whole, but is damaged")
        elif record.kind == CLOCK_SET:
            offset_of(record)
        elif record.kind not in (EXPIRED, TIME_PASSED):
            check_numbers(life, event_of(record, 0.0))


def _is_id(name: str) -> bool:
    try:
        return text_of(id_of(name)) == name
    except ValueError:
        return False
