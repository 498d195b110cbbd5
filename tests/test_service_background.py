"""What a server does by itself survives whatever it meets; a store that stands still is said."""

import logging
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from continuarm import background
from continuarm.background import Task, counted, heard
from continuarm.errors import UnavailableError
from continuarm.service import stopping
from continuarm.service.groups import LATE
from continuarm.service.running import Running
from continuarm.service.tokens import issue
from continuarm.store import Entry, open_store
from continuarm.store import postgresql_connections as connections
from continuarm.store.postgresql import PostgresqlDatabase
from tests.postgresql import Server as Postgres
from tests.service import CUSTOMER, HERE, PRICES, Server, served, until

ASK = {"context": CUSTOMER}


class Defect(Exception):
    """What nobody has foreseen."""


def fails_once(patch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """Let a method fail the next time, and only then."""
    whole, left = getattr(owner, name), [Defect("once")]

    def fails(*given: Any, **options: Any) -> Any:
        if left:
            raise left.pop()
        return whole(*given, **options)

    patch.setattr(owner, name, fails)


def test_a_task_says_its_first_error_and_then_ever_more_rarely(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [1000.0]
    monkeypatch.setattr("continuarm.background.time.monotonic", lambda: now[0])
    task, pauses, before = Task("trial"), list[float](), counted()["trial"]
    for _ in range(200):
        assert task.is_due
        with task.surviving():
            raise Defect("several\nlines")
        pauses.append(task.pause)
        now[0] += task.pause
    assert counted()["trial"] == before + 200
    assert pauses == sorted(pauses)
    assert pauses[-1] == background.LATE
    assert caplog.text.count("trial goes on after Defect: several lines") == len(caplog.records)
    assert 5 <= len(caplog.records) <= 10
    with task.surviving():
        pass
    assert task.pause == 0.0


@contextmanager
def goes_on(task: str) -> Iterator[None]:
    """A task fails in here, once, and is counted."""
    before = counted().get(task, 0)
    yield
    until(lambda: counted()[task] == before + 1)


def test_every_task_of_a_server_survives_what_nobody_has_foreseen(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = PRICES | {"options": {"ttl_seconds": 0.6, "start": [4.0]}}
    with closing(open_store(server.fresh("tasks"))) as store:
        stays, goes = (
            {"authorization": f"Bearer {issue(store, name, 'admin')}"}
            for name in ("stays", "goes")
        )
        with served(store, log=lambda text: None) as client:
            client.headers = stays
            assert client.put(HERE, json=new).status_code == 201
            with goes_on("follower"):
                fails_once(monkeypatch, store, "wait_for_any")
            with goes_on("tokens"):
                fails_once(monkeypatch, store, "tokens")
            with goes_on("expiry"):
                fails_once(monkeypatch, Running, "pass_time")
            with goes_on("clock"):
                fails_once(monkeypatch, store, "clock")
            with goes_on("listener"):
                fails_once(monkeypatch, PostgresqlDatabase, "_wake")
                store.append("prices", [Entry("time-passed", "{}")])
            with goes_on("snapshots"):
                fails_once(monkeypatch, store, "keep")
                for _ in range(5):
                    store.append("prices", [Entry("time-passed", "{}")] * 1000)
            until(lambda: [kept.position for kept in store.snapshots("prices")] == [1, 5000])
            asked = client.post(f"{HERE}/decisions", json=ASK)
            assert asked.status_code == 200, asked.text
            until(lambda: store.closing("prices", asked.json()["id"]) is not None)
            store.revoke_token("goes")
            until(lambda: client.get(HERE, headers=goes).status_code == 401)
            said = client.get("/metrics").text
    for task in ("clock", "expiry", "follower", "listener", "snapshots", "tokens"):
        assert f'continuarm_background_errors_total{{task="{task}"}}' in said


def test_who_watches_the_parent_survives_what_nobody_has_foreseen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parent, ended = [os.getppid()], list[tuple[int, int]]()
    monkeypatch.setattr(stopping, "LOOK", 0.01)
    monkeypatch.setattr(os, "getppid", lambda: parent[0])
    monkeypatch.setattr(os, "kill", lambda *given: ended.append(given))
    stopping.end_with(parent[0])
    with goes_on("parent"):
        fails_once(monkeypatch, os, "getppid")
    parent[0] += 1
    until(lambda: ended == [(os.getpid(), signal.SIGTERM)])


def test_tables_that_are_away_for_a_while_are_503_and_then_all_goes_on(server: Postgres) -> None:
    address = server.fresh("away")
    with closing(open_store(address)) as store, psycopg.connect(address, autocommit=True) as other:
        stays, goes = (
            {"authorization": f"Bearer {issue(store, name, 'admin')}"}
            for name in ("stays", "goes")
        )
        with served(store, max_lag=0.5, log=lambda text: None) as client:
            client.headers = stays
            assert client.put(HERE, json=PRICES).status_code == 201
            before = counted()
            for table in (b"experiments", b"tokens"):
                other.execute(b"ALTER TABLE %s RENAME TO %s_away" % (table, table))
            until(lambda: all(counted()[task] > before[task] for task in ("follower", "tokens")))
            for _ in range(3):
                asked = client.post(f"{HERE}/decisions", json=ASK)
                assert (asked.status_code, asked.json()["error"]) == (503, "unavailable")
            other.execute(b"DELETE FROM tokens_away WHERE name = 'goes'")
            for table in (b"experiments", b"tokens"):
                other.execute(b"ALTER TABLE %s_away RENAME TO %s" % (table, table))
            until(lambda: client.post(f"{HERE}/decisions", json=ASK).status_code == 200)
            until(lambda: client.get(HERE, headers=goes).status_code == 401)


def test_a_right_that_is_lost_for_a_while_is_unavailable(server: Postgres) -> None:
    address = server.fresh("rights")
    clerk = address.replace("shop@", "clerk@")
    with closing(open_store(address)) as store, psycopg.connect(address, autocommit=True) as other:
        store.create("prices", "{}")
        other.execute(b"CREATE ROLE clerk LOGIN")
        other.execute(
            b"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk"
        )
        with closing(open_store(clerk)) as theirs:
            other.execute(b"REVOKE ALL ON events FROM clerk")
            with pytest.raises(UnavailableError, match="permission denied"):
                theirs.append("prices", [Entry("asked", "{}", opens="1")])
            other.execute(b"GRANT SELECT, INSERT ON events TO clerk")
            assert theirs.append("prices", [Entry("asked", "{}", opens="1")]).head == 1


REQUESTS: list[tuple[str, str, Any]] = [
    ("POST", f"{HERE}/decisions", ASK),
    ("POST", f"{HERE}/payoffs", {"id": "0" * 32, "payoff": 1.0}),
    ("GET", f"{HERE}/events", None),
    ("GET", "/v1/experiments", None),
    ("GET", "/v1/experiments/unknown", None),
    ("POST", f"{HERE}/pause", None),
]


@contextmanager
def frozen(process: "subprocess.Popen[Any]") -> Iterator[None]:
    """A process and those that it has started stand still."""
    stopped = [process.pid]
    try:
        for pid in stopped:  # a parent first: it starts no more of them
            os.kill(pid, signal.SIGSTOP)
            stopped += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        yield
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


def test_a_database_that_stands_still_is_503_for_all_and_nothing_is_stuck_afterwards(
    server: Postgres,
) -> None:
    limit = connections.LIMITS["statement_timeout"] / 1000.0
    assert limit + connections.GRACE + connections.LOOK + LATE <= 2.0, "so long a request waits"
    assert server.process is not None
    with closing(open_store(server.fresh("frozen"))) as store:
        with served(store, log=lambda text: None) as client, ThreadPoolExecutor(32) as pool:
            assert client.put(HERE, json=PRICES).status_code == 201

            def request(method: str, path: str, body: Any) -> int:
                return client.request(method, path, json=body, timeout=60.0).status_code

            with frozen(server.process):
                asked = [pool.submit(request, *one) for one in REQUESTS * 5]
                assert client.get("/healthz", timeout=30.0).status_code == 200
                assert {one.result() for one in asked} == {503}
            until(lambda: request(*REQUESTS[0]) == 200)
            until(lambda: client.get("/readyz").status_code == 200)
            asked = [pool.submit(request, *REQUESTS[0]) for _ in range(32)]
            assert {one.result() for one in asked} == {200}
            writers = [t for t in threading.enumerate() if t.name.startswith("write")]
            assert len(writers) <= 8


HOLDS = textwrap.dedent("""
    import sys, time
    from continuarm.errors import UnavailableError
    from continuarm.store import Entry, open_store
    store = open_store(sys.argv[1])
    try:
        with store.database.writing() as session:
            session.run("SELECT head FROM experiments WHERE name = 'shop' FOR UPDATE")
            print("holds", flush=True)
            sys.stdin.readline()
            session.run("SELECT 1")
    except UnavailableError:
        pass
    while True:
        try:
            print(store.append("shop", [Entry("asked", "{}", opens="2")]).head, flush=True)
            break
        except UnavailableError:
            time.sleep(0.1)
""")


def test_a_server_that_stands_still_in_a_transaction_stops_others_for_a_moment(
    server: Postgres,
) -> None:
    address = server.fresh("holds")
    with closing(open_store(address)) as store:
        store.create("shop", "{}")
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDS, address],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holds\n"
        with frozen(holder):
            until(lambda: appended(store))
        assert holder.communicate("\n", timeout=60)[0] == "2\n", "it goes on by itself"


def appended(store: Any) -> bool:
    try:
        return bool(store.append("shop", [Entry("asked", "{}", opens="1")]).head == 1)
    except UnavailableError:
        return False


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {"lock_timeout": "1s", "statement_timeout": "1500ms"}),
        ("?options=-c%20lock_timeout%3D3s", {"lock_timeout": "3s", "statement_timeout": "1500ms"}),
    ],
)
def test_limits_are_those_of_the_address_where_it_has_some(
    server: Postgres, query: str, expected: dict[str, str]
) -> None:
    limited = connections.limited(f"{server.address}{query}")
    with psycopg.connect(limited) as connection:
        for name, value in expected.items():
            assert connection.execute(f"SHOW {name}".encode()).fetchone() == (value,)
    assert (
        connections.limited(f"{server.address}?connect_timeout=7").count("connect_timeout=7") == 1
    )


OTHERWISE = {
    "synchronous_commit": ("off", "on"),
    "default_transaction_isolation": ("serializable", "read committed"),
    "extra_float_digits": ("-10", "1"),
    "bytea_output": ("escape", "hex"),
    "client_encoding": ("LATIN1", "UTF8"),
}


def test_what_an_answer_relies_on_is_no_setting_of_a_database(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute("CREATE DATABASE otherwise")
        for name, (value, _) in OTHERWISE.items():
            connection.execute(f"ALTER DATABASE otherwise SET {name} = '{value}'".encode())
    address = psycopg.conninfo.make_conninfo(
        server.address, dbname="otherwise", options="-c synchronous_commit=off"
    )
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with psycopg.connect(connections.limited(address)) as connection:
        for name, (_, value) in OTHERWISE.items():
            assert connection.execute(f"SHOW {name}".encode()).fetchone() == (value,)


def test_a_worker_that_is_killed_is_started_again_and_connections_are_shared_out(
    tmp_path: Path,
) -> None:
    with Server(tmp_path / "shop.db", "--workers", "2") as server:
        assert server.client.put(HERE, json=PRICES).status_code == 201
        first = workers_of(server.process.pid)
        until(lambda: all(is_listening(pid) for pid in first))
        os.kill(min(first), signal.SIGKILL)
        until(lambda: len(now := workers_of(server.process.pid)) == 2 and now != first)
        until(lambda: all(is_listening(pid) for pid in workers_of(server.process.pid)))
        with ExitStack() as opened:
            for _ in range(64):
                there = socket.create_connection(("127.0.0.1", server.port))
                opened.enter_context(closing(there))
            until(lambda: all(len(sockets(pid)) > 8 for pid in workers_of(server.process.pid)))
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        assert "worker" in server.stop()


def workers_of(pid: int) -> set[int]:
    """The processes that serve: the one that looks after leftovers of others has no socket."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(child) for child in found if b"spawn_main" in _command(int(child))}


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def sockets(pid: int) -> list[str]:
    with suppress(OSError):
        there = Path(f"/proc/{pid}/fd").iterdir()
        return [name for file in there if (name := os.readlink(file)).startswith("socket:")]
    return []


def is_listening(pid: int) -> bool:
    listening = {f"socket:[{line.split()[9]}]" for line in _tcp() if line.split()[3] == "0A"}
    return bool(listening & {*sockets(pid)})


def _tcp() -> list[str]:
    return Path("/proc/net/tcp").read_text().splitlines()[1:]


def test_a_warning_is_said_once_where_somebody_else_hears_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, said, others = logging.getLogger("continuarm"), list[str](), list[str]()
    monkeypatch.setattr(log, "handlers", [])  # other tests may have set some

    class Other(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.name != background.LOG.name:
                others.append(record.getMessage())

    def warn() -> None:
        log.warning("quarantined")
        background.LOG.warning("goes on")

    with heard(said.append):
        warn()
    log.addHandler(other := Other())
    try:
        with heard(said.append):
            warn()
    finally:
        log.removeHandler(other)
    assert (said, others) == (["quarantined", "goes on", "goes on"], ["quarantined"])
