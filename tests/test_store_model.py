"""Stores against a model: whatever is done in whatever order, memory and SQLite do the same."""

import shutil
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from continuarm.errors import ExperimentConflictError, InputError
from continuarm.store import Entry, Record, Snapshot, Store, open_store
from continuarm.store.checksums import digest_of
from continuarm.store.moving import read_lines, written_lines
from continuarm.store.records import (
    ASKED_BEFORE,
    CLOSED_BEFORE,
    KEY_TAKEN,
    MOVED_ON,
    NEVER_ASKED,
)

NAME = "shop"
few = st.sampled_from(["a", "b", "c", "d"])
bodies = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3)
maybe = st.none() | few
none = st.none()
opening = st.builds(Entry, st.just("asked"), bodies, few, none, maybe)
closing_ = st.builds(Entry, st.just("told"), bodies, none, few, none)
steering = st.builds(Entry, st.sampled_from(["paused", "resumed"]), bodies, none, none, maybe)
groups = st.lists(opening | closing_ | steering, max_size=5)


class Model:
    """The rules of a ledger, in as few words as possible: a list, and nothing else."""

    def __init__(self) -> None:
        self.all: list[tuple[int, Entry]] = []  # with what is kept of what was erased
        self.head = self.begins = 0
        self.kept: set[tuple[int, str]] = set()  # positions and versions of snapshots
        self.archived = False

    def keep(self, position: int, version: str) -> None:
        """All are of one day, so that the newest three of each version stay, and the last one."""
        if (position, version) in self.kept:
            return
        self.kept.add((position, version))
        newest = {at for one in "12" for at in sorted(at for at in self.kept if at[1] == one)[-3:]}
        self.kept = {at for at in self.kept if at in newest or at[0] == position}

    def find(self, field: str, name: str | None) -> Entry | None:
        found = [e for _, e in self.all if name is not None and getattr(e, field) == name]
        return found[0] if found else None

    def refusal(self, entry: Entry) -> str | None:
        if self.find("key", entry.key):
            return KEY_TAKEN
        if self.find("opens", entry.opens):
            return ASKED_BEFORE
        if self.find("closes", entry.closes):
            return CLOSED_BEFORE
        if entry.closes is not None and not self.find("opens", entry.closes):
            return NEVER_ASKED
        return None

    def append(self, group: list[Entry], onto: int | None) -> list[str | None]:
        if onto is not None and onto != self.head:
            return [MOVED_ON] * len(group)
        refused = []
        for entry in group:
            refused.append(self.refusal(entry))
            if refused[-1] is None:
                self.head += 1
                self.all.append((self.head, entry))
        return refused

    def erase(self, until: int) -> None:
        self.all = [
            (position, entry)
            for position, entry in self.all
            if position > until or (entry.opens and not self.find("closes", entry.opens))
        ]
        self.begins = until
        self.kept = {at for at in self.kept if at[0] >= until}


class Stores(RuleBasedStateMachine):
    """Memory and SQLite, side by side with the model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.model = Model()
        self.stores: list[Store] = [open_store(":memory:"), open_store(self.folder / "shop.db")]
        self.moved = 0

    @initialize()
    def create(self) -> None:
        for store in self.stores:
            store.create(NAME, "{}")

    @rule(group=groups, onto=st.none() | st.integers(-1, 1))
    def append(self, group: list[Entry], onto: int | None) -> None:
        at = None if onto is None else self.model.head + onto
        if self.model.archived:
            for store in self.stores:
                with pytest.raises(ExperimentConflictError):
                    store.append(NAME, group, onto=at)
            return
        refused = self.model.append(group, at)
        for store in self.stores:
            outcomes, head = store.append(NAME, group, onto=at)
            assert head == self.model.head
            assert [outcome.refused for outcome in outcomes] == refused
            for outcome in outcomes:
                found = outcome.record
                assert (found is None) == (outcome.refused in (MOVED_ON, NEVER_ASKED))

    @rule(back=st.integers(0, 3), version=st.sampled_from(["1", "2"]), state=st.binary(max_size=4))
    def keep(self, back: int, version: str, state: bytes) -> None:
        position = max(self.model.head - back, self.model.begins)
        self.model.keep(position, version)
        snapshot = Snapshot(position, version, digest_of(state), state)
        kept = [store.keep(NAME, snapshot) for store in self.stores]
        assert kept[0] == kept[1]

    @rule(back=st.integers(0, 6))
    def erase(self, back: int) -> None:
        until = self.model.head - back
        if until < self.model.begins or until not in {at for at, _ in self.model.kept}:
            for store in self.stores:
                with pytest.raises(InputError):
                    store.erase(NAME, until)
            return
        self.model.erase(until)
        for store in self.stores:
            store.erase(NAME, until)

    @rule()
    def archive(self) -> None:
        self.model.archived = not self.model.archived
        for store in self.stores:
            store.archive(NAME, self.model.archived)

    @rule()
    def reopen(self) -> None:
        self.stores[1].close()
        self.stores[1] = open_store(self.folder / "shop.db", make=False)

    @rule()
    def move(self) -> None:
        """To each other's kind, where all goes on."""
        self.moved += 1
        memory, durable = open_store(":memory:"), open_store(self.folder / f"{self.moved}.db")
        read_lines(memory, written_lines(self.stores[1], NAME))
        read_lines(durable, written_lines(self.stores[0], NAME))
        self.stores[1].close()
        (self.folder / "shop.db").unlink()
        shutil.move(self._closed(durable), self.folder / "shop.db")
        self.stores = [memory, open_store(self.folder / "shop.db")]

    def _closed(self, store: Store) -> Path:
        store.close()
        return self.folder / f"{self.moved}.db"

    @invariant()
    def all_are_as_the_model(self) -> None:
        if not all(store.experiments() for store in self.stores):
            return
        for store in self.stores:
            experiment, records = store.experiment(NAME), store.read(NAME, 0)
            assert experiment[2:5] == (self.model.archived, self.model.begins, self.model.head)
            assert [r.position for r in records] == list(
                range(self.model.begins + 1, self.model.head + 1)
            )
            assert [_plain(r) for r in store.kept_open(NAME) + records] == self.model.all
            times = [r.time for r in records]
            assert times == sorted(times)
            for name in "abcd":
                self._is_found(store.opening(NAME, name), "opens", name)
                self._is_found(store.closing(NAME, name), "closes", name)
                self._is_found(store.keyed(NAME, name), "key", name)
            for kind in ("paused", "resumed"):
                newest = [_plain(r) for r in records if r.kind == kind][-1:]
                found = store.latest(NAME, kind)
                assert [_plain(r) for r in (found,) if r is not None] == newest
        assert self.stores[0].snapshots(NAME) == self.stores[1].snapshots(NAME)
        assert {s[:2] for s in self.stores[0].snapshots(NAME)} == self.model.kept

    def _is_found(self, record: Record | None, field: str, name: str) -> None:
        assert (None if record is None else _plain(record)[1]) == self.model.find(field, name)

    def teardown(self) -> None:
        for store in self.stores:
            with closing(store):
                pass
        shutil.rmtree(self.folder)


def _plain(record: Record) -> tuple[int, Entry]:
    return record.position, Entry(*record[2:])


TestStores = Stores.TestCase
TestStores.settings = settings(max_examples=10, stateful_step_count=12, deadline=None)
