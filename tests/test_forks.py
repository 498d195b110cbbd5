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
from threading import Event, Thread

import pytest

import continuarm as ca
from continuarm.errors import StoreError
from continuarm.ledger import SharedPolicy, share
from continuarm.ledger.replaying import replay
from continuarm.store import Entry, Store, open_store
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
