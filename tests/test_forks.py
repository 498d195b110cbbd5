"""Forks: what is acknowledged after one, by whomever, is in the ledger, and replays."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event, Lock, Thread

import pytest

import continuarm as ca
from continuarm.errors import StoreError
from continuarm.ledger import SharedPolicy, share
from continuarm.ledger.replaying import replay
from continuarm.store import Entry, Store, open_store
from continuarm.store.sqlite_connections import Connection, Connections
from tests import postgresql

AGE, PRICE = ca.Box([18.0], [90.0]), ca.Box([1.0], [9.0])
PATIENCE = 60.0
CHILDREN = 25


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "shop.db")
    server: postgresql.Server = request.getfixturevalue("server")
    return server.fresh(f"forks-{request.node.name}"[:60])


@pytest.fixture
def shared(where: str) -> Iterator[SharedPolicy]:
    found = share(ca.SurfaceSampling(AGE, PRICE), where, "prices")
    yield found
    found.store.close()


def child(work: Callable[[], object]) -> int:
    """A child process that does some work, and says by its status whether it could."""
    process = os.fork()
    if process == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return process


def status(process: int) -> int:
    return os.waitpid(process, 0)[1]


def asked_to(file: Path, shared: SharedPolicy, count: int) -> None:
    """Ask, and note what was acknowledged."""
    with file.open("a") as noted:
        for _ in range(count):
            print(shared.ask([20.0]).id, file=noted, flush=True)


def lost(where: str, *files: Path) -> set[int]:
    """What was acknowledged and is not in the ledger, which must replay."""
    noted = {int(line) for file in files for line in file.read_text().split()}
    with closing(open_store(where)) as store:
        assert replay(store, "prices").difference is None
        return noted - set(opened(store))


def opened(store: Store) -> list[int]:
    head = store.experiment("prices").head
    records = [r for after in range(0, head, 1000) for r in store.read("prices", after)]
    return [int(record.opens, 16) for record in records if record.opens is not None]


def test_a_child_goes_on_when_its_parent_has_closed_the_store(
    where: str, shared: SharedPolicy, tmp_path: Path
) -> None:
    mine, its = tmp_path / "mine", tmp_path / "its"
    closed = tmp_path / "closed"
    asked_to(mine, shared, 1)

    def go_on() -> None:
        asked_to(its, shared, 5)
        until(lambda: closed.exists())
        asked_to(its, shared, 20)
        shared.store.close()

    process = child(go_on)
    asked_to(mine, shared, 5)
    until(lambda: its.exists() and len(its.read_text().split()) == 5)
    shared.store.close()
    closed.touch()
    assert status(process) == 0
    assert len(its.read_text().split()) == 25
    assert lost(where, mine, its) == set()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_every_child_can_write_although_a_thread_of_the_parent_writes(
    where: str, shared: SharedPolicy, tmp_path: Path
) -> None:
    mine, its, stop = tmp_path / "mine", tmp_path / "its", Event()

    def write() -> None:
        while not stop.is_set():
            asked_to(mine, shared, 1)

    threads = [Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    until(mine.exists)
    statuses = [status(child(lambda: asked_to(its, shared, 2))) for _ in range(CHILDREN)]
    stop.set()
    for thread in threads:
        thread.join()
    assert statuses == [0] * CHILDREN
    assert len(its.read_text().split()) == 2 * CHILDREN
    asked_to(mine, shared, 1)
    shared.store.close()
    assert lost(where, mine, its) == set()


def test_processes_of_multiprocessing_share_what_their_parent_had_open(
    where: str, shared: SharedPolicy, tmp_path: Path
) -> None:
    files = [tmp_path / f"{k}" for k in range(3)]
    forking = multiprocessing.get_context("fork")
    asked_to(files[0], shared, 1)
    workers = [forking.Process(target=asked_to, args=(file, shared, 10)) for file in files[1:]]
    for worker in workers:
        worker.start()
    asked_to(files[0], shared, 10)
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    shared.store.close()
    assert lost(where, *files) == set()


DAEMON = textwrap.dedent("""
    import os, sys, time
    import continuarm as ca
    where, noted, ended = sys.argv[1:]
    policy = ca.SurfaceSampling(ca.Box([18.0], [90.0]), ca.Box([1.0], [9.0]))
    shared = ca.share(policy, where, "prices")

    def ask(count):
        for _ in range(count):
            with open(noted, "a") as file:
                print(shared.ask([20.0]).id, file=file)

    def is_there(process):
        try:
            os.kill(process, 0)
            return True
        except ProcessLookupError:
            return False

    ask(1)
    first = os.getpid()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            ask(5)
            while is_there(first):
                time.sleep(0.01)
            ask(20)
            open(ended, "w").close()
    # all three end as interpreters do, and close nothing by themselves
""")


def test_a_daemon_goes_on_when_those_who_started_it_have_ended(where: str, tmp_path: Path) -> None:
    noted, ended, said = (tmp_path / name for name in ("noted", "ended", "said"))
    command = [sys.executable, "-c", DAEMON, where, str(noted), str(ended)]
    with said.open("wb") as file:  # no pipe: its end would be that of the daemon
        assert subprocess.run(command, stdout=file, stderr=file).returncode == 0
    until(ended.exists)
    assert (len(noted.read_text().split()), said.read_text()) == (26, "")
    assert lost(where, noted) == set()


APP = textwrap.dedent("""
    import json, os
    import continuarm as ca
    policy = ca.SurfaceSampling(ca.Box([18.0], [90.0]), ca.Box([1.0], [9.0]))
    shared = ca.share(policy, os.environ["STORE"], "prices")
    first = shared.ask([20.0]).id

    def app(environ, start_response):
        body = json.dumps([os.getpid(), first, shared.ask([20.0]).id]).encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
""")


def test_gunicorn_shares_what_it_has_loaded_before_it_forks(where: str, tmp_path: Path) -> None:
    (tmp_path / "shop_app.py").write_text(APP)
    port, noted = postgresql.free_port(), tmp_path / "noted"
    command = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "3", "--chdir",
               str(tmp_path), "--bind", f"127.0.0.1:{port}", "shop_app:app"]  # fmt: skip
    with (tmp_path / "log").open("wb") as log:
        running = subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, "STORE": where}
        )
    try:
        until(lambda: answer(port) is not None)
        answers = list[list[int]]()
        with ThreadPoolExecutor(6) as pool:
            while len({process for process, _, _ in answers}) < 3:  # all workers have answered
                found = list(pool.map(answer, [port] * 30))
                assert None not in found, (tmp_path / "log").read_text()
                answers += [one for one in found if one is not None]
    finally:
        running.terminate()
        running.wait(PATIENCE)
    noted.write_text("\n".join(str(id_) for one in answers for id_ in one[1:]))
    assert lost(where, noted) == set()


def answer(port: int) -> list[int] | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE) as found:
            plain: list[int] = json.load(found)
            return plain
    except OSError:
        return None


def test_a_fork_in_the_middle_of_a_transaction_is_refused_in_the_child(tmp_path: Path) -> None:
    """A signal handler may fork; nothing of the parent's transaction is done twice or undone."""
    with closing(open_store(tmp_path / "shop.db")) as store:
        store.create("prices", "")

        refused = tmp_path / "refused"

        def fork(*_: object) -> None:
            def use() -> None:
                with pytest.raises(StoreError, match="in the middle of a transaction"):
                    store.experiments()
                refused.touch()

            assert status(child(use)) == 0

        before = signal.signal(signal.SIGUSR1, fork)
        try:
            database = store.database  # type: ignore[attr-defined]
            with database.writing() as session:
                session.run("UPDATE experiments SET numbers = 7")
                signal.raise_signal(signal.SIGUSR1)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert refused.exists()
        assert store.experiment("prices").numbers == 7
        store.append("prices", [Entry("asked", "")])
    with closing(open_store(tmp_path / "shop.db")) as again:
        assert again.experiment("prices").head == 1


@pytest.mark.parametrize("begun", ["reading", "writing"])
def test_a_child_that_was_forked_in_a_transaction_cannot_open_that_file_again(
    begun: str, tmp_path: Path
) -> None:
    """SQLite would believe to hold the parent's locks, and lose what the child writes."""
    where, refused = tmp_path / "shop.db", tmp_path / "refused"
    pointed = tmp_path / "pointed.db"

    def use() -> None:
        for path in (where, pointed):
            with pytest.raises(StoreError, match="start another process") as caught:
                open_store(path)
            assert "\n" not in str(caught.value)
        with pytest.raises(StoreError, match="cannot use"):
            share(ca.SurfaceSampling(AGE, PRICE), str(where), "prices")
        with closing(open_store(tmp_path / "another.db")) as another:
            another.create("prices", "")
        refused.touch()

    with closing(open_store(where)) as store:
        os.symlink(where, pointed)
        with getattr(store.database, begun)() as session:  # type: ignore[attr-defined]
            session.run("SELECT 1 FROM experiments")
            assert status(child(use)) == 0
    assert refused.exists()


FORKED_BY_C = textwrap.dedent("""
    import ctypes, os, sys
    import continuarm as ca
    from continuarm.errors import StoreError
    where, open_before, noted = sys.argv[1:]
    policy = ca.SurfaceSampling(ca.Box([18.0], [90.0]), ca.Box([1.0], [9.0]))
    shared = ca.share(policy, where, "prices")

    def ask(shared):
        with open(noted, "a") as file:
            print(shared.ask([20.0]).id, file=file)

    ask(shared)
    if open_before == "closed":
        shared.store.close()
    process = ctypes.PyDLL(None).fork()  # Python hears nothing of it
    if process == 0:
        try:
            if open_before == "used":
                try:
                    ask(shared)
                except StoreError as error:
                    print(error)
            for _ in range(2):
                try:
                    again = ca.share(policy, where, "prices")
                    ask(again)
                    again.store.close()
                except StoreError as error:
                    print(error)
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.waitpid(process, 0)
    if open_before != "closed":
        ask(shared)
    shared.store.close()
""")


@pytest.mark.parametrize(
    ("open_before", "refusals", "asked"), [("closed", 0, 3), ("open", 2, 2), ("used", 3, 2)]
)
def test_a_child_that_c_has_forked_cannot_open_a_file_that_was_open(
    open_before: str, refusals: int, asked: int, tmp_path: Path
) -> None:
    where, noted = str(tmp_path / "shop.db"), tmp_path / "noted"
    command = [sys.executable, "-c", FORKED_BY_C, where, open_before, str(noted)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.splitlines()
    assert len(said) == refusals
    assert all("nor by C while a store is open" in line for line in said), said
    assert len(noted.read_text().split()) == asked
    assert lost(where, noted) == set()


SCRUBBED_BY_C = textwrap.dedent("""
    import ctypes, os, sys
    from continuarm.errors import StoreError
    from continuarm.store import Entry, open_store
    where = sys.argv[1]
    store = open_store(where)
    store.create("prices", "")
    store.append("prices", [Entry("mine", "")])
    process = ctypes.PyDLL(None).fork()
    if process == 0:
        os.unlink(f"{where}-wal")
        try:
            store.database.scrub()
        except StoreError as error:
            print("cannot use" in str(error), os.path.exists(f"{where}-wal"), flush=True)
        os._exit(0)
    os.waitpid(process, 0)
    print(store.experiment("prices").head)
    store.close()
""")


def test_a_child_that_c_has_forked_saves_no_log_of_its_parent(tmp_path: Path) -> None:
    where = str(tmp_path / "shop.db")
    command = [sys.executable, "-c", SCRUBBED_BY_C, where]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["True", "False", "1"], "")
    with closing(open_store(where)) as again:
        assert again.experiment("prices").head == 1


class Awaited:
    """A lock that says when a fork waits for it, and lets it wait until the end."""

    def __init__(self) -> None:
        self.lock, self.is_awaited = Lock(), Event()

    def acquire(self, *_: object) -> bool:
        self.is_awaited.set()
        return self.lock.acquire(timeout=PATIENCE)

    def release(self) -> None:
        self.lock.release()

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def test_a_child_can_write_although_a_thread_of_the_parent_opened_a_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    awaited, opens = Awaited(), Event()
    connect = Connections._connect

    def once_a_fork_waits(connections: Connections, patience: float) -> Connection:
        opens.set()
        assert awaited.is_awaited.wait(PATIENCE)
        return connect(connections, patience)

    with closing(open_store(tmp_path / "shop.db")) as store:
        store.create("prices", "")
        assert status(child(lambda: None)) == 0  # all connections are closed now
        store.database._connections.opening = awaited  # type: ignore[attr-defined]
        monkeypatch.setattr(Connections, "_connect", once_a_fork_waits)
        thread = Thread(target=store.append, args=("prices", [Entry("mine", "")]))
        thread.start()
        assert opens.wait(PATIENCE)
        process = child(lambda: store.append("prices", [Entry("its", "")]))
        thread.join()
        assert status(process) == 0
        assert store.experiment("prices").head == 2


EARLY = textwrap.dedent("""
    import os, sys
    early = []
    os.register_at_fork(after_in_child=lambda: [one() for one in early])
    import continuarm as ca
    where, noted = sys.argv[1:]
    policy = ca.SurfaceSampling(ca.Box([18.0], [90.0]), ca.Box([1.0], [9.0]))
    shared = ca.share(policy, where, "prices")

    def ask():
        with open(noted, "a") as file:
            print(shared.ask([20.0]).id, file=file)

    def fork():
        process = os.fork()
        ask()
        if process:
            sys.exit(os.waitpid(process, 0)[1] != 0)

    ask()
    early.append(shared.store.experiments)
    fork()
    fork()
""")


def test_a_child_may_use_a_store_before_all_are_told_of_the_fork(tmp_path: Path) -> None:
    where, noted = str(tmp_path / "shop.db"), tmp_path / "noted"
    command = [sys.executable, "-c", EARLY, where, str(noted)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(noted.read_text().split()) == 5
    assert lost(where, noted) == set()
