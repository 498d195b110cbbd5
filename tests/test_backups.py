"""Backups that are made under load, restored, and go on."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import continuarm as ca
from continuarm.errors import UnknownDecisionError
from continuarm.ledger.replaying import replay
from continuarm.store import Store, open_store
from continuarm.store.moving import read_lines, written_lines
from tests import postgresql

NAME = "prices"


def policy() -> ca.Policy:
    return ca.SurfaceSampling(ca.Box([18.0], [90.0]), ca.Box([1.0], [9.0]), rng=0)


@contextmanager
def busy(shared: ca.SharedPolicy) -> Iterator[Callable[[], int]]:
    """A shop that asks and tells meanwhile; how many of its payoffs were acknowledged."""
    stop, told = threading.Event(), list[int]()

    def shop() -> None:
        while not stop.is_set():
            decision = shared.ask([20.0 + len(told) % 70])
            shared.tell(decision, 1.0)
            told.append(decision.id)

    def count() -> int:
        return len(told)

    thread = threading.Thread(target=shop)
    thread.start()
    try:
        while count() < 20:
            stop.wait(0.01)
        yield count
    finally:
        stop.set()
        thread.join()


def check_restored(store: Store, least: int, most: int) -> None:
    """All that was acknowledged before a backup is in it, and it goes on."""
    restored = ca.share(policy(), store, NAME)
    told = restored.policy().stats().told
    assert least <= told <= most
    restored.tell(restored.ask([37.0]), 2.0)
    assert restored.policy().stats().told == told + 1
    assert replay(store, NAME).difference is None


def test_a_backup_of_sqlite_under_load_is_restored_and_goes_on(tmp_path: Path) -> None:
    where, copy = tmp_path / "shop.db", tmp_path / "backup.db"
    with closing(open_store(where)) as store:
        with busy(ca.share(policy(), store, NAME)) as told:
            least = told()
            with closing(sqlite3.connect(where)) as source, closing(sqlite3.connect(copy)) as to:
                source.backup(to)
            most = told() + 1
    with closing(open_store(copy)) as restored:
        check_restored(restored, least, most)


def test_lines_of_postgresql_under_load_are_restored_elsewhere_and_go_on(
    server: postgresql.Server, tmp_path: Path
) -> None:
    with closing(open_store(server.fresh("backed-up"))) as store:
        with busy(ca.share(policy(), store, NAME)) as told:
            least = told()
            lines = list(written_lines(store, NAME))
            most = told() + 1
    with closing(open_store(tmp_path / "elsewhere.db")) as restored:
        read_lines(restored, lines)
        check_restored(restored, least, most)


def check_nothing_comes_again(stale: Store, lost: ca.Decision) -> None:
    """Where a decision was lost, its number is nobody's, and its payoff is unknown."""
    restored = ca.share(policy(), stale, NAME)
    again = restored.ask([37.0])
    assert again.id != lost.id
    with pytest.raises(UnknownDecisionError, match="must have been handed out"):
        restored.tell(lost.id, 9.0)
    restored.tell(again, 1.0)


def test_no_number_comes_again_after_a_restore(tmp_path: Path) -> None:
    where, copy = tmp_path / "shop.db", tmp_path / "backup.db"
    with closing(open_store(where)) as store:
        shared = ca.share(policy(), store, NAME)
        with closing(sqlite3.connect(where)) as source, closing(sqlite3.connect(copy)) as to:
            source.backup(to)
        lost = shared.ask([37.0])
    with closing(open_store(copy)) as restored:
        check_nothing_comes_again(restored, lost)
