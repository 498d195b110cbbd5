"""The log of a file of SQLite, deleted while it is used: nothing that was acknowledged is lost."""

import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from continuarm.errors import UnavailableError
from continuarm.store import Entry, Store, open_store

WRITER = textwrap.dedent("""
    import sys
    from continuarm.store import Entry, open_store
    store = open_store(sys.argv[1])
    for line in sys.stdin:
        try:
            store.append("prices", [Entry("asked", "x" * 2000, opens=line.strip())])
            print("done", flush=True)
        except Exception as error:
            print(error, flush=True)
    store.close()
""")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with closing(open_store(path)) as opened:
        opened.create("prices", "")
        yield opened


@pytest.fixture
def other(store: Store, path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the store open."""
    command = [sys.executable, "-c", WRITER, str(path)]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with running:
        assert said(running, "first") == "done"
        yield running


def said(running: subprocess.Popen[str], decision: str) -> str:
    assert running.stdin is not None
    assert running.stdout is not None
    print(decision, file=running.stdin, flush=True)
    return running.stdout.readline().strip()


def ended(running: subprocess.Popen[str]) -> None:
    running.communicate()
    assert running.returncode == 0


def append(store: Store, decision: str) -> None:
    [outcome] = store.append("prices", [Entry("asked", "x" * 2000, opens=decision)]).outcomes
    assert outcome.refused is None


def log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def index_of(path: Path) -> Path:
    return path.with_name(path.name + "-shm")


def kept(path: Path) -> set[str | None]:
    """What is in the file, which must be whole."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with closing(open_store(path)) as store:
        return {record.opens for record in store.read("prices", 0)}


def test_a_log_that_is_deleted_is_saved_and_all_go_on(
    store: Store, other: subprocess.Popen[str], path: Path
) -> None:
    expected = {"first"}
    for round_ in range(3):
        mine, its = f"mine {round_}", f"its {round_}"
        append(store, mine)
        assert said(other, its) == "done"
        log_of(path).unlink()
        for writer in ("a", "b") if round_ % 2 else ("b", "a"):
            if writer == "a":
                append(store, f"again {mine}")
            else:
                assert said(other, f"again {its}") == "done"
        expected |= {mine, its, f"again {mine}", f"again {its}"}
        assert {record.opens for record in store.read("prices", 0)} == expected
    store.close()
    assert said(other, "last") == "done"
    ended(other)
    assert kept(path) == expected | {"last"}


def test_a_log_that_is_deleted_while_one_appends_is_saved_before_that_is_acknowledged(
    store: Store, path: Path
) -> None:
    append(store, "before")
    with store.appending("prices", [Entry("asked", "", opens="meanwhile")]):
        log_of(path).unlink()
    fresh = subprocess.run([sys.executable, "-c", WRITER, str(path)], input="new", text=True,
                           capture_output=True)  # fmt: skip
    assert fresh.stdout == "done\n"
    append(store, "after")
    store.close()
    assert kept(path) == {"before", "meanwhile", "new", "after"}


def test_who_stops_saves_a_log_that_was_deleted(
    store: Store, other: subprocess.Popen[str], path: Path
) -> None:
    append(store, "mine")
    log_of(path).unlink()
    store.close()
    ended(other)
    assert kept(path) == {"first", "mine"}


def test_without_its_index_a_log_is_saved_by_the_last_one_to_stop(
    store: Store, other: subprocess.Popen[str], path: Path
) -> None:
    """Where the lock of writers is gone, too, nobody can be sure; nothing more is acknowledged."""
    append(store, "mine")
    log_of(path).unlink()
    index_of(path).unlink()
    for _ in range(2):
        with pytest.raises(UnavailableError, match="was deleted or replaced: stop all that use"):
            append(store, "lost")
        with pytest.raises(UnavailableError):
            store.read("prices", 0)
    assert "was deleted or replaced" in said(other, "lost")
    store.close()
    ended(other)
    assert kept(path) == {"first", "mine"}


def test_a_log_that_was_replaced_is_neither_used_nor_written_over(
    store: Store, path: Path
) -> None:
    append(store, "mine")
    log_of(path).unlink()
    log_of(path).write_bytes(b"somebody else's" * 1000)
    before = path.read_bytes()
    with pytest.raises(UnavailableError, match="was deleted or replaced"):
        append(store, "lost")
    store.close()
    assert path.read_bytes() == before
    assert log_of(path).read_bytes() == b"somebody else's" * 1000
