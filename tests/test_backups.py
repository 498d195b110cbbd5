"""Backups that are made under load, restored, and go on."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

import continuarm as ca
from continuarm.errors import UnknownDecisionError
from continuarm.ledger.replaying import replay
from continuarm.store import Store, open_store
from continuarm.store.moving import read_lines, written_lines
from tests import postgresql
from tests.service import until
from tests.serving import served

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


def failed_over(server: postgresql.Server, before: str, after: str) -> None:
    """Let a database be what a copy of it is, as when a standby that lagged is promoted."""
    statements = f"""
        ALTER DATABASE "{before}" ALLOW_CONNECTIONS false;
        SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{before}';
        ALTER DATABASE "{before}" RENAME TO "{before}-lost";
        ALTER DATABASE "{after}" RENAME TO "{before}";
    """
    with psycopg.connect(server.address, autocommit=True) as connection:
        for statement in statements.strip().splitlines():
            connection.execute(statement.encode())


def test_servers_go_on_after_a_failover_to_a_standby_that_lagged(
    server: postgresql.Server,
) -> None:
    address = server.fresh("primary")
    with closing(open_store(address)) as store:
        ca.share(policy(), store, NAME)
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute('CREATE DATABASE standby TEMPLATE "primary"')
    path, context = f"/v1/experiments/{NAME}", {"context": [37.0]}
    with served(open_store(address)) as client:
        lost = [client.post(f"{path}/decisions", json=context).json()["id"] for _ in range(5)]
        failed_over(server, "primary", "standby")
        end = time.monotonic() + 60.0
        while (answer := client.post(f"{path}/decisions", json=context)).status_code != 200:
            assert time.monotonic() < end, answer.text
        ids = {answer.json()["id"]}
        for _ in range(4):
            ids.add(client.post(f"{path}/decisions", json=context).json()["id"])
        assert ids.isdisjoint(lost)
        told = client.post(f"{path}/payoffs", json={"id": lost[0], "payoff": 9.0})
        assert (told.status_code, told.json()["error"]) == (404, "unknown-decision")
        told = client.post(f"{path}/payoffs", json={"id": ids.pop(), "payoff": 1.0})
        assert told.status_code == 200, told.text
        with closing(open_store(address)) as store:
            state = ca.share(policy(), store, NAME).policy().stats()
            assert replay(store, NAME).difference is None
        until(lambda: client.get(path).json()["counts"]["decisions"] == state.asked)
