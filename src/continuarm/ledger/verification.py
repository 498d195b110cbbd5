"""Verification: whether a ledger and its snapshots are whole, and agree with each other.

Whatever is damaged is said, and stops nothing: each part is looked at by itself.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeVar

from continuarm.ledger.beginnings import began
from continuarm.ledger.entries import CLOCK_SET, offset_of
from continuarm.ledger.imports import RecordCheck
from continuarm.ledger.replaying import replay
from continuarm.ledger.settings import settings_of
from continuarm.ledger.snapshots import copy_of_beginning, is_whole, readable_life
from continuarm.ledger.version import is_newer, is_version, own_version
from continuarm.store.protocol import MOST_READ, Store
from continuarm.store.records import Experiment, Kept, Record
from continuarm.store.rules import Once

__all__ = ["Verified", "verify"]

Found = TypeVar("Found")
MOST_SAID = 100  # records in a row that are gone
Progress = Callable[[int], object]


class Verified(NamedTuple):
    """What was looked at.

    events, snapshots : how many there are.
    folded : events that were folded again; fewer where another version folds them.
    defects : what is wrong, each in one line, in the order of the ledger.
    """

    events: int
    snapshots: int
    folded: int
    defects: list[str]


def verify(
    store: Store, name: str, progress: Progress = lambda events: None, *, decide: bool = False
) -> Verified:
    """Look at every record and every snapshot of an experiment, and fold its ledger again.

    progress : is called with how many events were looked at; each is at most three times.
    decide : whether decisions are made again, too, as `replay` does.
    """
    return _Verification(store, name, progress).run(decide)


class _Verification:
    def __init__(self, store: Store, name: str, progress: Progress) -> None:
        self.store, self.name, self.progress = store, name, progress
        self.defects: list[str] = []
        self.events = self.folded = 0
        self.kept: list[Kept] = []
        self.unreadable: set[int] = set()  # positions

    def run(self, decide: bool) -> Verified:
        """Others may append meanwhile: what is there at the beginning is looked at."""
        self.kept = self._tried("the list of snapshots", lambda: self.store.kept(self.name)) or []
        experiment = self._tried("the experiment", lambda: self.store.experiment(self.name))
        if experiment is not None:
            self._run(experiment, decide)
        return Verified(self.events, len(self.kept), self.folded, self.defects)

    def _run(self, experiment: Experiment, decide: bool) -> None:
        settings = self._tried("its settings", lambda: settings_of(experiment))
        check = RecordCheck(experiment, settings)
        for kept in self.kept:
            look = partial(self._look, kept, experiment, check)
            self._tried(f"the snapshot at {kept.position}", look)
        if experiment.head > 0:
            self._tried("the beginning", partial(self._look_at_beginning, experiment, check))
            self._tried("the clock", partial(self._look_at_clock, experiment))
        self._look_at_records(experiment, check)
        if experiment.head > 0 and not self.defects:
            self._tried("the ledger", lambda: self._fold(decide))

    def _tried(self, what: str, look: Callable[[], Found]) -> Found | None:
        """What a look finds; whatever it meets is a defect."""
        try:
            return look()
        except Exception as error:
            self.defects.append(f"{what}: {_in_one_line(error)}")
            return None

    def _look(self, kept: Kept, experiment: Experiment, check: RecordCheck) -> None:
        snapshot = self.store.snapshot(self.name, kept.position, kept.version)
        if snapshot is None and kept not in self.store.kept(self.name):
            return  # it was let go meanwhile
        if snapshot is None or not is_whole(snapshot):
            raise ValueError("it must be as it was kept, but is damaged")
        if not is_version(kept.version):
            raise ValueError(
                "its version must be a number from 1 on, or a hash of 16 digits, but is "
                f"{kept.version!r}"
            )
        if is_newer(kept.version):
            raise ValueError(
                f"it is of version {kept.version}, which is newer than this one, {own_version()}: "
                "check the store with that version"
            )
        check.snapshot(snapshot)
        if kept.version == own_version() and readable_life(snapshot) is None:
            raise ValueError("this version must be able to read it, but is not")

    def _look_at_beginning(self, experiment: Experiment, check: RecordCheck) -> None:
        """Its snapshot is there, and there is one to begin with."""
        copy = copy_of_beginning(self.store, self.name)
        if check.life is None and copy is not None:
            check.snapshot(copy)
        if check.life is None:
            self.defects.append(
                "the snapshots: one of them must be readable, but none is: restore a backup of "
                "the store"
            )
        first = began(self.store, self.name)
        if first[:2] not in {kept[:2] for kept in self.kept}:
            has_copy = copy is not None and copy[:2] == first[:2]
            instead = "; servers take the copy that the ledger has" if has_copy else ""
            raise ValueError(f"the snapshot of the beginning is gone{instead}")

    def _look_at_clock(self, experiment: Experiment) -> None:
        """The times of records are ahead of the clock by what the ledger says."""
        record = self.store.latest(self.name, CLOCK_SET)
        if record is not None and record.position > experiment.head:
            return  # it was set meanwhile
        if record is None and experiment.begins > 0:
            return  # that event may be erased
        said = 0.0 if record is None else offset_of(record)
        if experiment.clock_offset != said:
            raise ValueError(
                f"clock_offset must be what the ledger says, {said}, but is "
                f"{experiment.clock_offset}"
            )

    def _look_at_records(self, experiment: Experiment, check: RecordCheck) -> None:
        once = Once(experiment.begins == 0)
        for record in self._early(experiment):
            self._look_at(record, once, check)
        position, time = experiment.begins, 0.0
        for record in self._records(experiment):
            self.events += 1
            self.progress(1)
            for missing in range(position + 1, min(record.position, position + 1 + MOST_SAID)):
                self._say_missing(missing, once)
            if not time <= record.time <= experiment.time:
                self.defects.append(
                    f"record {record.position}: its time must be from {time} to "
                    f"{experiment.time}, but is {record.time}"
                )
            self._look_at(record, once, check)
            position, time = record.position, max(time, record.time)
        self._tried(f"record {experiment.head + 1}", partial(self._look_behind, experiment))
        if self.events > 0 and time != experiment.time and not self.unreadable:
            self.defects.append(
                f"the experiment: its time must be that of its last record, {time}, but is "
                f"{experiment.time}"
            )
        if position != experiment.head and experiment.head not in self.unreadable:
            self.defects.append(
                f"record {experiment.head}: it must be the last one, but that is {position}"
            )

    def _look_behind(self, experiment: Experiment) -> None:
        """After the last record there is none, unless somebody has appended it meanwhile."""
        more = self.store.read(self.name, experiment.head, 1)
        if more and self.store.experiment(self.name).head == experiment.head:
            raise ValueError(f"there must be none after {experiment.head}, but there is")

    def _look_at(self, record: Record, once: Once, check: RecordCheck) -> None:
        what = f"record {record.position}"
        once.is_all = once.is_all and not self.unreadable
        self._tried(what, lambda: once.take(record))
        if check.life is not None:
            self._tried(what, lambda: check.record(record))

    def _say_missing(self, position: int, once: Once) -> None:
        once.is_all = False  # what closes a decision that it opened is not to blame
        if position not in self.unreadable:
            self.defects.append(f"record {position}: it must be there, but is gone")

    def _early(self, experiment: Experiment) -> list[Record]:
        look = self._tried("records that are open", lambda: self.store.kept_open(self.name)) or []
        for record in look:
            if record.opens is None:
                self.defects.append(
                    f"record {record.position}: only decisions that are open may be there before "
                    f"{experiment.begins}, but it opens none"
                )
        return look

    def _records(self, experiment: Experiment) -> Iterator[Record]:
        """Those that can be read; of others is said why not."""
        position = experiment.begins
        while True:
            try:
                records = self.store.read(self.name, position)
                position = records[-1].position if records else position
            except Exception:
                records = list(self._one_by_one(position, experiment.head))
                position += MOST_READ
            yield from (record for record in records if record.position <= experiment.head)
            if not records or position >= experiment.head:
                return

    def _one_by_one(self, position: int, head: int) -> Iterator[Record]:
        """Of the next positions the records that can be read."""
        for after in range(position, min(position + MOST_READ, head)):
            read = partial(self.store.read, self.name, after, 1)
            found = self._tried(f"record {after + 1}", read)
            if found is None:
                self.unreadable.add(after + 1)
            elif not found:
                return
            elif found[0].position == after + 1:
                yield found[0]

    def _fold(self, decide: bool) -> None:
        beginning = began(self.store, self.name)
        if beginning.version != own_version():
            return
        found = replay(self.store, self.name, self.progress, decide=decide)
        self.folded = found.events
        if found.difference is not None:
            self.defects.append(found.difference)


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
