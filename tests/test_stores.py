"""Stores: one contract in memory, SQLite and a real PostgreSQL, and what each must survive."""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Thread

import psycopg
import pytest
from click.testing import CliRunner

import continuarm as ca
from continuarm.cli import cli
from continuarm.errors import (
    ExperimentConflictError,
    InputError,
    SettingsError,
    StoreError,
    UnavailableError,
)
from continuarm.store import (
    Entry,
    Kept,
    Snapshot,
    Store,
    open_store,
    schema,
    sqlite,
    sqlite_connections,
)
from continuarm.store import postgresql as postgresql_store
from continuarm.store.checksums import digest_of
from continuarm.store.moving import read_lines, written_lines
from continuarm.store.protocol import TurnTakenError
from continuarm.store.retention import superfluous
from continuarm.store.sql import NUMBER
from continuarm.testing import check_store
from tests import postgresql
from tests.worlds import ROOT

DURABLE = ["sqlite", "postgresql"]
Address = Callable[[str], str]


@pytest.fixture
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Address:
    """The address of a new store of a kind."""

    def make(kind: str) -> str:
        if kind == "sqlite":
            return str(tmp_path / "shop.db")
        found: postgresql.Server = request.getfixturevalue("server")
        return found.fresh(f"shop{len(os.listdir(tmp_path))}-{request.node.name}"[:60])

    return make


def test_the_contract_holds_in_memory() -> None:
    store = open_store(":memory:")
    check_store(lambda: store)


@pytest.mark.parametrize("kind", DURABLE)
def test_the_contract_holds(kind: str, address: Address) -> None:
    where = address(kind)
    check_store(lambda: open_store(where))


@pytest.mark.parametrize("bin_", [postgresql.from_path, postgresql.from_debian])
def test_the_server_of_these_tests_starts_from_every_source(
    bin_: Callable[[], Path | None],
) -> None:
    found = bin_()
    if found is not None:  # else the machine does not have it
        starts(found)


def test_the_server_of_these_tests_starts_from_a_wheel_in_a_home_of_root(tmp_path: Path) -> None:
    """PostgreSQL refuses root, and only root may enter such a home, as on a fresh Debian."""
    found = postgresql.from_wheel()
    assert found is not None, "the wheel is always there"
    home = postgresql.copy_of_install(found, tmp_path / "home")
    for path in (home, *home.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o700)  # as a umask of 077 leaves them
    starts(home / found.relative_to(found.parents[2]))


def starts(bin_: Path) -> None:
    with postgresql.Server(bin_) as running, closing(open_store(running.address)) as store:
        assert store.create("a", "").head == 0


WRITE = textwrap.dedent("""
    import sys
    from continuarm.store import Entry, open_store
    where, writer = sys.argv[1:]
    store, k = open_store(where), 0
    while True:
        group = [Entry("asked", writer, opens=f"{writer}-{k}-{j}") for j in range(3)]
        store.append("shop", group + [Entry("told", writer, closes=e.opens) for e in group])
        print(k, flush=True)
        k += 1
""")


def writer_of(where: str, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITE, where, name], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )


@pytest.mark.parametrize("kind", DURABLE)
def test_what_was_acknowledged_survives_a_kill_of_its_writers(kind: str, address: Address) -> None:
    where = address(kind)
    with closing(open_store(where)) as store:
        store.create("shop", "")
        acknowledged: dict[str, int] = {}
        for round_ in range(5):
            writers = {name: writer_of(where, name) for name in (f"{round_}a", f"{round_}b")}
            for name, process in writers.items():
                assert process.stdout is not None
                for _ in range(3 + 5 * round_):
                    acknowledged[name] = int(process.stdout.readline())
            for process in writers.values():
                process.send_signal(signal.SIGKILL)
            for name, process in writers.items():
                rest, _ = process.communicate()
                acknowledged[name] = max([acknowledged[name], *map(int, rest.split())])
        records = [r for after in range(0, 10**6, 1000) for r in store.read("shop", after)]
    assert [r.position for r in records] == list(range(1, len(records) + 1))
    opened = {r.opens for r in records} - {None}
    closed = {r.closes for r in records} - {None}
    assert opened == closed, "a group is there whole or not at all"
    for name, last in acknowledged.items():
        assert f"{name}-{last}-2" in opened, (name, last)


def test_a_slow_writer_hides_nothing_from_a_fast_reader(server: postgresql.Server) -> None:
    """A position given early becomes visible before any later one, whoever ends first."""
    where = server.fresh("slow")
    with closing(open_store(where)) as store, psycopg.connect(where) as slow:
        store.create("shop", "")
        store.create("other", "")
        slow.execute("SELECT head FROM experiments WHERE name = 'shop' FOR UPDATE")
        fast = subprocess.Popen(
            [sys.executable, "-c", WRITE, where, "fast"], stdout=subprocess.PIPE, text=True
        )
        assert fast.stdout is not None
        store.append("other", [Entry("asked", "")])  # another experiment does not wait
        assert store.read("shop", 0) == []
        insert = "INSERT INTO events (experiment, position, time, kind, body) "
        slow.execute(insert + "SELECT number, 1, 5, 'asked', 'slow' FROM experiments "
                     "WHERE name = 'shop'")  # fmt: skip
        slow.execute("UPDATE experiments SET head = 1, time = 9e9 WHERE name = 'shop'")
        assert store.read("shop", 0) == []
        slow.commit()
        fast.stdout.readline()
        fast.kill()
        fast.communicate()
        records = store.read("shop", 0)
    assert records[0].body == "slow"
    assert [r.position for r in records] == list(range(1, len(records) + 1))
    assert {r.time for r in records[1:]} == {9e9}, "time does not go back, whatever clocks say"


def test_a_database_that_restarts_is_unavailable_and_comes_back(
    server: postgresql.Server,
) -> None:
    with closing(open_store(server.fresh("restarts"))) as store:
        store.create("shop", "")
        for how in (signal.SIGINT, signal.SIGQUIT):
            [before], _ = store.append("shop", [Entry("asked", "before")])
            server.stop(how)
            with pytest.raises(UnavailableError, match="a store must answer"):
                store.append("shop", [Entry("asked", "while it is away")])
            server.start()
            after = _until_it_answers(store)
            assert before.record is not None
            assert after == before.record.position + 1, "nothing was half done"
            assert not store.wait("shop", after, 0.1)
            store.append("shop", [Entry("asked", "heard")])
            assert store.wait("shop", after, 5.0)


def _until_it_answers(store: Store) -> int:
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        try:
            [outcome], _ = store.append("shop", [Entry("asked", "after")])
            assert outcome.record is not None
            return outcome.record.position
        except UnavailableError:
            time.sleep(0.05)
    raise AssertionError("the store must come back by itself")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "memory"])
def test_an_experiment_moves_to_another_store_as_it_is(kind: str, address: Address) -> None:
    here = open_store(":memory:")
    here.create("shop", '{"a": "☃"}')
    for k in range(5):
        entry = Entry("asked", f'{{"k": {k}}}', opens=str(k), key=f"key {k}")
        here.append("shop", [entry, Entry("told", "{}", closes=str(k))])
    here.keep("shop", Snapshot(4, "1", digest_of(b"\0\xff"), b"\0\xff"))
    here.erase("shop", 4)
    lines = list(written_lines(here, "shop"))
    with closing(open_store(":memory:" if kind == "memory" else address(kind))) as there:
        read_lines(there, lines)
        assert there.experiment("shop") == here.experiment("shop")
        assert list(written_lines(there, "shop")) == lines
        with pytest.raises(ExperimentConflictError, match="under a name that is free"):
            read_lines(there, lines)
        read_lines(there, lines, name="copy")
        assert there.read("copy", 0) == here.read("shop", 0)
        for wrong in _damaged(lines):
            with pytest.raises(InputError):
                read_lines(there, wrong, name="wrong")
        assert [e.name for e in there.experiments()] == ["copy", "shop"], "all of it or nothing"


def _damaged(lines: list[str]) -> Iterator[list[str]]:
    first, *rest = lines
    yield []
    yield rest
    yield lines[:-1]
    yield [first, rest[0], *rest[2:]]
    yield [first.replace('"continuarm": 1', '"continuarm": 2'), *rest]
    yield [first.replace('"head": 10', '"head": true'), *rest]
    yield [first.replace('"begins": 4', '"begins": 1e999'), *rest]
    yield [first, rest[0].replace('"state": "AP8="', '"state": "AP8"'), *rest[1:]]
    for text in ('"time": NaN', '"time": 1e999', '"time": -5'):
        yield [first, rest[0], re.sub(r'"time": [0-9.]+', text, rest[1]), *rest[2:]]
    yield [first, rest[0], rest[1].replace("asked", "a\\u0000"), *rest[2:]]
    yield [*lines, "null"]


def test_one_appends_at_a_time_and_any_thread_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with closing(open_store(str(path))) as one, closing(open_store(str(path))) as other:
        one.create("prices", "")
        end = ExitStack()
        asked = one.appending("prices", [Entry("asked", "A", opens="a")])
        [outcome], _ = end.enter_context(asked)
        assert outcome.record is not None
        assert other.read("prices", 0) == [], "what is not durable is not seen"
        for store in (one, other):
            with pytest.raises(TurnTakenError, match="one writes at a time"):
                store.appending("prices", [Entry("asked", "B", opens="b")]).__enter__()
        thread = Thread(target=end.close)
        thread.start()
        thread.join()
        assert other.read("prices", 0) == [outcome.record]
        with other.appending("prices", [Entry("told", "T", closes="a")]) as ([told], _):
            assert told.refused is None
        with pytest.raises(ZeroDivisionError), one.appending("prices", [Entry("asked", "C")]):
            raise ZeroDivisionError
        assert one.experiment("prices").head == 2


def test_a_full_disk_is_said_changes_nothing_and_passes(tmp_path: Path) -> None:
    """In a file system of a megabyte, of a namespace of its own."""
    code = """
        import os, sys
        from continuarm.errors import UnavailableError
        from continuarm.store import Entry, open_store
        store = open_store(sys.argv[1] + "/shop.db")
        store.create("shop", "")
        appended = 0
        try:
            while True:
                store.append("shop", [Entry("asked", "x" * 10_000, opens=str(appended))])
                appended += 1
        except UnavailableError as error:
            assert "full" in str(error), error
        assert appended > 10
        assert store.experiment("shop").head == len(store.read("shop", 0)) == appended
        os.remove(sys.argv[1] + "/ballast")
        assert store.append("shop", [Entry("asked", "", opens="more")]).outcomes[0].refused is None
        print(appended)
    """
    script = tmp_path / "fill.py"
    script.write_text(textwrap.dedent(code))
    disk = tmp_path / "disk"
    disk.mkdir()
    assert shutil.which("unshare"), "util-linux must be there"
    command = (
        f"mount -t tmpfs -o size=1m tmpfs {disk} && head -c 100000 /dev/zero > {disk}/ballast "
        f"&& {sys.executable} {script} {disk}"
    )
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", command], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


def test_a_store_of_a_newer_version_or_of_another_program_is_refused(
    tmp_path: Path, server: postgresql.Server
) -> None:
    newer, other = tmp_path / "newer.db", tmp_path / "other.db"
    open_store(newer).close()
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    where = server.fresh("newer")
    open_store(where).close()
    with psycopg.connect(where) as theirs:
        theirs.execute("UPDATE continuarm SET version = version + 1")
    for address in (newer, where):
        with pytest.raises(StoreError, match=f"up to version {schema.VERSION}, but"):
            open_store(address)
    for version in range(schema.VERSION + 1):  # theirs may be any number
        with closing(sqlite3.connect(other)) as connection:
            connection.execute(f"PRAGMA user_version = {version}")
        with pytest.raises(StoreError, match=r"a file of its own, but .* the table 'theirs'"):
            open_store(other)
    with closing(sqlite3.connect(other)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    (tmp_path / "text").write_text("no database, and longer than a header would be" * 100)
    with pytest.raises(StoreError, match="not a database"):
        open_store(tmp_path / "text")


@pytest.mark.parametrize("taken", ["continuarm", "events", "tokens"])
def test_a_table_of_others_is_named_and_left_as_it_is(
    taken: str, tmp_path: Path, server: postgresql.Server
) -> None:
    where, path = server.fresh(f"others-{taken[::-1]}"), tmp_path / "shop.db"
    with psycopg.connect(where) as theirs:
        theirs.execute(f"CREATE TABLE {taken} (a TEXT)".encode())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE {taken} (a TEXT)")
    for address in (where, path):
        with pytest.raises(StoreError, match=f"of its own, but .*['\"]{taken}['\"]") as refusal:
            open_store(address)
        assert not isinstance(refusal.value, UnavailableError)
        assert "\n" not in str(refusal.value)
    with psycopg.connect(where) as theirs:
        tables = theirs.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        assert tables.fetchall() == [(taken,)]


def test_a_store_of_an_older_version_is_migrated(
    tmp_path: Path, server: postgresql.Server
) -> None:
    """Tables of the first version, with an experiment in them."""
    older, where = tmp_path / "older.db", server.fresh("older")
    begun = "INSERT INTO experiments (name, settings, head) VALUES ('old', '{}', 0)"
    with closing(sqlite3.connect(older)) as connection:
        for statement in schema.MIGRATIONS[0]:
            connection.execute(statement.format(**sqlite.WORDS))
        connection.execute("PRAGMA user_version = 1")
        connection.execute(begun)
        connection.commit()
    with psycopg.connect(where) as theirs:
        for statement in schema.MIGRATIONS[0]:
            theirs.execute(statement.format(**postgresql_store.WORDS).encode())
        theirs.execute("CREATE TABLE continuarm (version BIGINT NOT NULL)")
        theirs.execute("INSERT INTO continuarm VALUES (1)")
        theirs.execute(begun.encode())
    for address in (older, where):
        for _ in range(2):
            with closing(open_store(address)) as store:
                assert [experiment.name for experiment in store.experiments()] == ["old"]
                assert store.tokens() == []


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("", "the path of a file or postgresql"),
        ("mysql://localhost/shop", "the path of a file or postgresql"),
        (7, "the path of a file or postgresql"),
        ("/nowhere/at/all/shop.db", "the folder of a store must be there"),
    ],
)
def test_an_address_that_is_none_is_refused(address: str, rule: str) -> None:
    with pytest.raises((SettingsError, StoreError), match=rule):
        open_store(address)


def test_a_server_that_is_not_there_is_said_without_the_password() -> None:
    with pytest.raises(UnavailableError, match="a store must answer") as refusal:
        open_store("postgresql://shop:secret@127.0.0.1:1/shop")
    assert "secret" not in str(refusal.value)


def test_a_store_goes_on_in_a_child_process(tmp_path: Path) -> None:
    """A connection of SQLite must not be carried through a fork."""
    with closing(open_store(tmp_path / "shop.db")) as store:
        store.create("shop", "")
        child = os.fork()
        if child == 0:
            store.append("shop", [Entry("asked", "child")])
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        store.append("shop", [Entry("asked", "parent")])
        assert [record.body for record in store.read("shop", 0)] == ["child", "parent"]
    with pytest.raises(StoreError, match="a store must be open"):
        store.experiments()


def test_a_file_that_is_deleted_takes_nothing_along(tmp_path: Path) -> None:
    """What is written to it would be acknowledged, and lost."""
    with closing(open_store(tmp_path / "shop.db")) as store:
        store.create("shop", "")
        for file in tmp_path.iterdir():
            file.unlink()
        with pytest.raises(UnavailableError, match=r"must stay, but .* is gone"):
            store.append("shop", [Entry("asked", "")])
        open_store(tmp_path / "shop.db").close()
        with pytest.raises(UnavailableError, match="is gone"):
            store.append("shop", [Entry("asked", "")])


@pytest.mark.parametrize("column", ["opens", "closes", "client_key"])
def test_an_append_looks_up_what_it_may_meet_however_long_a_ledger_is(
    column: str, tmp_path: Path
) -> None:
    """SQLite may read all events of an experiment instead, if its planner is let to."""
    database = sqlite.SqliteDatabase(tmp_path / "shop.db")
    look = database.among
    statement = look.format(column=column, columns="position, body", number=NUMBER)
    with closing(database), database.reading() as session:
        plan = session.run(f"EXPLAIN QUERY PLAN {statement}", '["1"]', "prices")
    steps = [step for *_, step in plan]
    assert any(f"(experiment=? AND {column}=?)" in step for step in steps), plan


def test_a_connection_that_cannot_be_used_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = list[bool]()

    class Away(sqlite_connections.Connection):
        def execute(self, *_: object) -> sqlite3.Cursor:
            raise sqlite3.OperationalError("unable to open database file")

        def close(self) -> None:
            closed.append(True)
            super().close()

    with closing(open_store(tmp_path / "shop.db")) as store:
        store.create("prices", "{}")
        with monkeypatch.context() as patch:
            patch.setattr(sqlite_connections, "Connection", Away)
            for _ in range(3):
                with (
                    pytest.raises(UnavailableError),
                    store.appending("prices", [Entry("a", "{}")]),
                ):
                    pass
        assert len(closed) == 3
        with store.appending("prices", [Entry("a", "{}")]) as ([outcome], _):
            assert outcome.refused is None


def test_a_store_is_closed_while_others_read_and_nothing_breaks(tmp_path: Path) -> None:
    script = f"""
        import time
        from threading import Thread
        from continuarm.errors import StoreError
        from continuarm.store import Entry, open_store

        def read(store):
            try:
                while True:
                    store.read("prices", 0)
            except StoreError:
                pass

        for number in range(20):
            store = open_store(f"{tmp_path}/{{number}}.db")
            store.create("prices", "")
            store.append("prices", [Entry("asked", "x" * 300)] * 1000)
            threads = [Thread(target=read, args=(store,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(0.05)
            store.close()
            for thread in threads:
                thread.join()
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_new_files_are_their_owners_alone_and_others_keep_their_modes(tmp_path: Path) -> None:
    where, moved, saved = (tmp_path / name for name in ("shop.db", "shop.jsonl", "prices.policy"))
    policy = ca.SurfaceSampling(ca.Box([18.0], [90.0]), ca.Box([1.0], [9.0]))
    before = os.umask(0)
    try:
        with closing(open_store(where)) as store:
            ca.share(policy, store, "prices")
            command = ["export", "prices", "--to", str(moved), "--store", str(where)]
            assert CliRunner().invoke(cli, command).exit_code == 0
            policy.save(saved)
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        names = ["prices.policy", "shop.db", "shop.db-shm", "shop.db-wal", "shop.jsonl"]
        assert modes == dict.fromkeys(names, 0o600)
        for path in (where, saved):
            path.chmod(0o640)
        with closing(open_store(where)):
            policy.save(saved)
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        assert modes == {**dict.fromkeys(names, 0o640), "shop.jsonl": 0o600}
    finally:
        os.umask(before)


EDITS = (
    "body = body || ' '",
    "time = time + 1",
    "kind = 'told'",
    "opens = NULL",
    "opens = NULL, closes = opens",
    "client_key = 'other'",
    "checksum = checksum + 1",
)


@pytest.mark.parametrize("kind", DURABLE)
def test_a_record_that_was_changed_is_named(kind: str, address: Address) -> None:
    where = address(kind)
    with closing(open_store(where)) as store:
        group = [Entry("asked", str(k), opens=f"{k}", key=f"key {k}") for k in range(9)]
        for number, edit in enumerate(EDITS, 1):
            store.create(str(number), edit)
            store.append(str(number), group)
            one = f"experiment = (SELECT number FROM experiments WHERE name = '{number}')"
            changed(where, f"UPDATE events SET {edit} WHERE position = 5 AND {one}")
        for number in range(1, len(EDITS) + 1):
            with pytest.raises(StoreError, match=f"record 5 of '{number}'.* is damaged"):
                store.read(str(number), 0)
            assert [record.position for record in store.read(str(number), 5)] == [6, 7, 8, 9]
        changed(where, "UPDATE events SET checksum = NULL")  # as earlier versions wrote them
        assert len(store.read("1", 0)) == 9


@pytest.mark.parametrize("kind", DURABLE)
def test_only_the_records_of_an_earlier_version_may_lack_a_checksum(
    kind: str, address: Address
) -> None:
    where = address(kind)
    with closing(open_store(where)) as store:
        store.create("prices", "")
        store.append("prices", [Entry("asked", "", opens=f"{k}") for k in range(4)])
        changed(where, "UPDATE events SET checksum = NULL")  # as an earlier version wrote them
        store.append("prices", [Entry("asked", "", opens=f"{k}") for k in range(4, 9)])
        assert len(store.read("prices", 0)) == 9
        assert store.opening("prices", "3") == store.read("prices", 3, 1)[0]
        changed(where, "UPDATE events SET checksum = NULL WHERE position IN (7, 8)")
        for read in (
            lambda: store.read("prices", 0),
            lambda: store.read("prices", 6, 1),
            lambda: store.opening("prices", "6"),
        ):
            with pytest.raises(StoreError, match="record 7 of 'prices' has none: it is damaged"):
                read()
        changed(where, "UPDATE events SET checksum = 0 WHERE position = 1")
        with pytest.raises(StoreError, match="record 8 of 'prices' has none"):
            store.read("prices", 7)


def changed(where: str, statement: str) -> None:
    """Change tables behind a store's back."""
    if where.startswith("postgresql"):
        with psycopg.connect(where) as connection:
            connection.execute(statement.encode())
        return
    with closing(sqlite3.connect(where)) as connection:
        connection.execute(statement)
        connection.commit()


def test_snapshots_of_earlier_days_stay_one_for_each() -> None:
    day = 86_400.0
    kept = [Kept(k, "1", "", 10 * day + k * day / 4) for k in range(20)]
    gone = {one.position for one in superfluous(kept, {5})}
    assert gone == {0, 1, 2, 4, 6, 8, 9, 10, 12, 13, 14, 16}
    assert superfluous([one for one in kept if one.position not in gone], {5}) == []


@pytest.mark.parametrize("kind", DURABLE)
def test_snapshots_of_an_earlier_version_are_as_old_as_their_records(
    kind: str, address: Address
) -> None:
    where = address(kind)
    with closing(open_store(where)) as store:
        store.create("prices", "")
        store.append("prices", [Entry("asked", "")] * 9)
        for position in range(1, 7):
            store.keep("prices", Snapshot(position, "1", "", b""), stays=True)
        changed(where, "UPDATE snapshots SET time = 0")
        changed(where, "UPDATE events SET time = 86400 * position, checksum = NULL")
        assert [one.time for one in store.kept("prices")] == [86400.0 * k for k in range(1, 7)]
        changed(where, "UPDATE events SET time = 86400 * (position / 3), checksum = NULL")
        store.keep("prices", Snapshot(7, "1", "", b""))
        assert [one.position for one in store.kept("prices")] == [2, 5, 6, 7]


@pytest.mark.parametrize("settings", ["[1]", "7", '"x"', "null", "{"])
def test_settings_that_are_no_settings_are_a_conflict_in_words(settings: str) -> None:
    store = open_store(":memory:")
    store.create("prices", settings)
    with pytest.raises(ExperimentConflictError, match="keeps its settings"):
        store.create("prices", '{"a": 1}')


def test_a_link_may_name_a_store_which_is_private(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "shop.db")
    with closing(open_store(tmp_path / "link.db")) as store:
        store.create("prices", "{}")
        store.append("prices", [Entry("asked", "", opens="1")])
    assert (tmp_path / "shop.db").stat().st_mode & 0o777 == 0o600
    with closing(open_store(tmp_path / "shop.db")) as store:
        assert store.experiment("prices").head == 1


def test_a_snapshot_that_is_damaged_is_not_exported() -> None:
    store = open_store(":memory:")
    store.create("prices", "{}")
    store.append("prices", [Entry("asked", "", opens="1")])
    store.keep("prices", Snapshot(1, "1", "no digest of this", b"state"))
    assert not any("snapshot" in line for line in written_lines(store, "prices"))


def test_what_libpq_says_in_several_lines_is_one(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"Connection refused; Is the server running") as it:
        open_store("postgresql://nobody@127.0.0.1:1/none")
    assert "\n" not in str(it.value)
