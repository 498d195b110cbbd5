"""Nothing that was acknowledged is lost, whatever is killed, and whenever."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.crashing import NAME, Acknowledged, check, payoff_of
from continuarm.store import open_store
from tests import postgresql
from tests.service import HERE, PRICES, Server
from tests.worlds import ROOT

KILLS = 50
PATIENCE = 120.0  # seconds


def crashed(address: str, kills: int, workers: int = 1) -> Acknowledged:
    """What workers acknowledged that were killed; forked from a process without threads."""
    command = [sys.executable, "-m", "benchmarks.crashing", address, str(kills), str(workers)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    asked, told = json.loads(done.stdout)
    return Acknowledged(asked, set(told))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_kills_at_random_moments_lose_nothing_and_count_nothing_twice(
    kind: str, server: postgresql.Server, tmp_path: Path
) -> None:
    sqlite = str(tmp_path / "shop.db")
    address = sqlite if kind == "sqlite" else server.fresh("kills")
    acknowledged = crashed(address, KILLS)
    assert min(len(acknowledged.asked), len(acknowledged.told)) > KILLS
    with closing(open_store(address)) as store:
        check(store, acknowledged)


def test_three_processes_on_one_postgresql_killed_in_turn_hold_one_state(
    server: postgresql.Server,
) -> None:
    """Each decides from what it has folded by then; a replay makes every decision again."""
    address = server.fresh("three-killed")
    acknowledged = crashed(address, KILLS // 2, workers=3)
    with closing(open_store(address)) as store:
        check(store, acknowledged)
        numbers = {record.opens[:16] for record in store.read(NAME, 0, 10**6) if record.opens}
    assert len(numbers) > 3, "several processes have decided"


def url(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}"


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


class Shopping:
    """Asks and tells, one after the other, in a thread of its own, until it is told to stop."""

    def __init__(self, servers: list[Server], acknowledged: Acknowledged) -> None:
        self.servers, self.acknowledged = servers, acknowledged
        self.statuses: list[int] = []
        self._open: list[str] = []
        self._http = httpx.Client(timeout=60.0)
        self._stop, self._count = threading.Event(), 0
        self._thread = threading.Thread(target=self._shop)

    def _post(self, path: str, body: Any) -> Any:
        """The answer of the next server, or None: who was cut off, or refused, asks again."""
        self._count += 1
        server = self.servers[self._count % len(self.servers)]
        try:
            answer = self._http.post(f"{url(server)}{HERE}/{path}", json=body)
        except httpx.TransportError:
            return None
        self.statuses.append(answer.status_code)
        return answer.json() if answer.status_code == 200 else None

    def _shop(self) -> None:
        number = len(self.acknowledged.asked)
        while not self._stop.is_set():
            keys = [f"order-{number}-{k}" for k in range(3)]
            contexts = [[20.0 + number % 70, 1000.0 * k] for k in range(3)]
            found = self._post("decisions", {"contexts": contexts, "keys": keys})
            if found is None:
                continue  # with the same keys, perhaps to another server
            number += 1
            for key, answer in zip(keys, found["decisions"], strict=True):
                self.acknowledged.hear(f"asked {answer['id']} {key}")
                self._open.append(answer["id"])
            ids, self._open = self._open[:2], self._open[2:]
            told = [{"id": id_, "payoff": payoff_of(id_)} for id_ in ids]
            closed = self._post("payoffs", {"payoffs": told})
            if closed is None:
                self._open = ids + self._open
                continue
            assert all(one["done"] for one in closed["closed"]), closed
            self.acknowledged.told.update(ids)

    def __enter__(self) -> "Shopping":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._http.close()

    def until_more(self, count: int = 20) -> None:
        """Until so many more were asked."""
        wanted = len(self.acknowledged.asked) + count
        until(lambda: len(self.acknowledged.asked) >= wanted)


def states(servers: list[Server]) -> list[Any]:
    """How an experiment fares, by each server."""
    return [httpx.get(f"{url(server)}{HERE}", timeout=60.0).json() for server in servers]


def test_servers_killed_in_turn_and_a_database_that_restarts_lose_nothing(
    server: postgresql.Server,
) -> None:
    address, acknowledged = server.fresh("servers"), Acknowledged({}, set())
    servers = [Server(address).ready() for _ in range(3)]
    try:
        made = httpx.put(f"{url(servers[0])}{HERE}", json=PRICES, timeout=120.0)
        assert made.status_code == 201, made.text
        with Shopping(servers, acknowledged) as shopping:
            shopping.until_more()
            servers[0].stop(signal.SIGKILL)
            servers[0] = Server(address)  # it joins the others when it is ready
            shopping.until_more()
            servers[0].ready()
            server.restart(signal.SIGQUIT)  # as if it had crashed
            shopping.until_more()
        assert 503 in shopping.statuses, "a database that is away is said"
        assert set(shopping.statuses) <= {200, 503}
        until(lambda: len({json.dumps(state) for state in states(servers)}) == 1)
        with Shopping(servers, acknowledged) as shopping:
            for killed in servers[1:]:
                shopping.until_more()
                killed.stop(signal.SIGKILL)
            shopping.until_more()
    finally:
        for one in servers:
            if one.process.poll() is None:
                one.stop(signal.SIGKILL)
    with closing(open_store(address)) as store:
        check(store, acknowledged)
