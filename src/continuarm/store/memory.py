"""MemoryStore: ledgers that live as long as the process, for tests and rehearsals."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition

from continuarm.store.protocol import MOST_READ
from continuarm.store.records import Appended, Entry, Experiment, Kept, Record, Snapshot, Token
from continuarm.store.retention import BEGAN, STAYS, beginnings, superfluous
from continuarm.store.rules import (
    adoptable,
    appendable,
    erasable,
    named,
    same_settings,
    storable,
    storable_group,
    there_already,
    token_taken,
    token_unknown,
    unknown,
)
from continuarm.store.settling import Known, settle

__all__ = ["MemoryStore"]


@dataclass
class _Ledger:
    experiment: Experiment
    records: list[Record] = field(default_factory=list)  # those after `begins`
    kept: list[Record] = field(default_factory=list)  # those before that are not erased
    known: Known = field(default_factory=lambda: Known({}, {}, {}))
    snapshots: dict[tuple[int, str], Snapshot] = field(default_factory=dict)
    times: dict[tuple[int, str], float] = field(default_factory=dict)  # of snapshots


class MemoryStore:
    """Ledgers in this process.

    >>> store = MemoryStore()
    >>> store.create("prices", "{}").head
    0
    >>> store.append("prices", [Entry("asked", "{}", opens="1")]).head
    1
    """

    is_near = True

    def __init__(self) -> None:
        self._ledgers: dict[str, _Ledger] = {}
        self._tokens: dict[str, Token] = {}
        self._tokens_needed = False
        self._changed = Condition()

    def _ledger(self, name: str) -> _Ledger:
        if name not in self._ledgers:
            raise unknown(name)
        return self._ledgers[name]

    def create(self, name: str, settings: str) -> Experiment:
        """See `Store`."""
        storable(settings)
        with self._changed:
            if named(name) not in self._ledgers:
                self._ledgers[name] = _Ledger(Experiment(name, settings))
            return same_settings(self._ledgers[name].experiment, settings)

    def experiment(self, name: str) -> Experiment:
        """See `Store`."""
        return self._ledger(name).experiment

    def experiments(self) -> list[Experiment]:
        """See `Store`."""
        with self._changed:
            return [self._ledgers[name].experiment for name in sorted(self._ledgers)]

    def archive(self, name: str, archived: bool = True) -> None:
        """See `Store`."""
        with self._changed:
            ledger = self._ledger(name)
            ledger.experiment = ledger.experiment._replace(archived=archived)

    def append(self, name: str, group: Sequence[Entry], onto: int | None = None) -> Appended:
        """See `Store`."""
        storable_group(group)
        with self._changed:
            ledger = self._ledger(name)
            experiment = appendable(ledger.experiment)
            now = max(experiment.time, time.time() + experiment.clock_offset)
            outcomes = settle(group, experiment.head, now, ledger.known, onto)
            added = [o.record for o in outcomes if o.refused is None and o.record is not None]
            if added:
                ledger.records += added
                ledger.experiment = experiment._replace(head=added[-1].position, time=now)
                self._changed.notify_all()
            return Appended(outcomes, ledger.experiment.head)

    def clock(self) -> float:
        """See `Store`."""
        return time.time()

    def set_clock(self, name: str, entry: Entry, offset: float) -> Appended:
        """See `Store`."""
        with self._changed:
            ledger = self._ledger(name)
            appendable(ledger.experiment)
            ledger.experiment = ledger.experiment._replace(clock_offset=offset)
            return self.append(name, [entry])

    def glance(self) -> object:
        """See `Store`."""
        with self._changed:
            return sum(ledger.experiment.head for ledger in self._ledgers.values())

    @contextmanager
    def appending(self, name: str, group: Sequence[Entry]) -> Iterator[Appended]:
        """See `Store`."""
        yield self.append(name, group)

    def read(self, name: str, after: int, most: int = MOST_READ) -> list[Record]:
        """See `Store`."""
        with self._changed:
            ledger = self._ledger(name)
            first = max(after - ledger.experiment.begins, 0)
            return ledger.records[first : first + most]

    def opening(self, name: str, decision: str) -> Record | None:
        """See `Store`."""
        return self._ledger(name).known.opened.get(decision)

    def closing(self, name: str, decision: str) -> Record | None:
        """See `Store`."""
        return self._ledger(name).known.closed.get(decision)

    def keyed(self, name: str, key: str) -> Record | None:
        """See `Store`."""
        return self._ledger(name).known.keyed.get(key)

    def latest(self, name: str, kind: str) -> Record | None:
        """See `Store`."""
        with self._changed:
            found = reversed(self._ledger(name).records)
            return next((record for record in found if record.kind == kind), None)

    def wait(self, name: str, after: int, seconds: float) -> bool:
        """See `Store`."""
        with self._changed:
            return self._changed.wait_for(lambda: self.experiment(name).head > after, seconds)

    def wait_for_any(self, heads: dict[str, int], seconds: float) -> dict[str, int]:
        """See `Store`."""
        with self._changed:
            self._changed.wait_for(lambda: self._heads() != heads, seconds)
            return self._heads()

    def _heads(self) -> dict[str, int]:
        return {name: ledger.experiment.head for name, ledger in self._ledgers.items()}

    def keep(self, name: str, snapshot: Snapshot, stays: bool = False) -> Snapshot:
        """See `Store`."""
        with self._changed:
            ledger, place = self._ledger(name), (snapshot.position, snapshot.version)
            is_new = place not in ledger.snapshots
            found = ledger.snapshots.setdefault(place, snapshot)
            if stays or is_new:
                ledger.times[place] = STAYS if stays else time.time()
            if is_new:
                began = ((r.position, r.body) for r in ledger.records if r.kind == BEGAN)
                staying = beginnings(began) | {snapshot.position}
                for old in superfluous(self.kept(name), staying):
                    del ledger.snapshots[old[:2]]
            return found

    def kept(self, name: str) -> list[Kept]:
        """See `Store`."""
        with self._changed:
            ledger = self._ledger(name)
            times = {r.position: r.time for r in (*ledger.kept, *ledger.records)}
            return [
                Kept(*one[:3], ledger.times.get(at) or times.get(at[0], 0.0))
                for at, one in sorted(ledger.snapshots.items())
            ]

    def snapshot(self, name: str, position: int, version: str) -> Snapshot | None:
        """See `Store`."""
        return self._ledger(name).snapshots.get((position, version))

    def newest(self, name: str, version: str) -> Snapshot | None:
        """See `Store`."""
        with self._changed:
            found = [s for s in self._ledger(name).snapshots.values() if s.version == version]
            return max(found, key=lambda s: s.position, default=None)

    def snapshots(self, name: str) -> list[Snapshot]:
        """See `Store`."""
        with self._changed:
            return sorted(self._ledger(name).snapshots.values())

    def adopt(
        self, experiment: Experiment, records: Iterable[Record], snapshots: Iterable[Snapshot]
    ) -> None:
        """See `Store`."""
        adopted = list(adoptable(experiment, records))
        kept = {(snapshot.position, snapshot.version): snapshot for snapshot in snapshots}
        with self._changed:
            if named(experiment.name) in self._ledgers:
                raise there_already(experiment)
            known = Known.of(adopted)
            early = [r for r in adopted if r.position <= experiment.begins]
            ledger = _Ledger(experiment, adopted[len(early) :], early, known, kept)
            self._ledgers[experiment.name] = ledger

    def erase(self, name: str, until: int) -> None:
        """See `Store`."""
        with self._changed:
            ledger = self._ledger(name)
            kept = {at: s for at, s in ledger.snapshots.items() if at[0] >= until}
            erasable(ledger.experiment, until, any(at[0] == until for at in kept))
            gone = until - ledger.experiment.begins
            before, after = ledger.records[:gone], ledger.records[gone:]
            ledger.kept = [
                record
                for record in (*ledger.kept, *before)
                if record.opens is not None and record.opens not in ledger.known.closed
            ]
            ledger.records, ledger.known = after, Known.of((*ledger.kept, *after))
            ledger.experiment = ledger.experiment._replace(begins=until)
            ledger.snapshots = kept

    def kept_open(self, name: str) -> list[Record]:
        """See `Store`."""
        with self._changed:
            return list(self._ledger(name).kept)

    def add_token(self, token: Token) -> None:
        """See `Store`."""
        with self._changed:
            if named(token.name, "a token") in self._tokens:
                raise token_taken(token.name)
            self._tokens[token.name] = token
            self._tokens_needed = True

    def tokens(self) -> list[Token]:
        """See `Store`."""
        with self._changed:
            return sorted(self._tokens.values())

    def revoke_token(self, name: str) -> None:
        """See `Store`."""
        with self._changed:
            if self._tokens.pop(name, None) is None:
                raise token_unknown(name)

    def tokens_needed(self) -> bool:
        """See `Store`."""
        return self._tokens_needed

    def disable_tokens(self) -> None:
        """See `Store`."""
        with self._changed:
            self._tokens_needed = False
            self._tokens.clear()

    def close(self) -> None:
        """See `Store`."""
