"""Servers are replaced one after another by those of another build, under load."""

import shutil
import threading
import time
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

import continuarm as ca
from continuarm.ledger import share
from continuarm.ledger.replaying import replay
from continuarm.store import open_store
from tests.service import HERE, Server, until

SERVERS, PATIENCE = 3, 120.0
OFTEN = ("ledger/replica.py", "SNAPSHOT_EVERY = 5000", "SNAPSHOT_EVERY = 40")
# the learner is handed payoffs that differ in the last bit
LAST_BIT = (
    "live/life.py",
    "row, ticket, context, value, payoff, slope, start, number, late",
    "row, ticket, context, value, payoff * (1.0 + 2.0**-52), slope, start, number, late",
)


def build(folder: Path, *edits: tuple[str, str, str]) -> Path:
    """Another source of the package; what is compiled is shared."""
    package, target = Path(ca.__file__).parent, folder / "continuarm"
    shutil.copytree(package, target, ignore=shutil.ignore_patterns("core", "__pycache__"))
    (target / "core").symlink_to(package / "core")
    for file, before, after in edits:
        text = (target / file).read_text()
        assert text.count(before) == 1, file
        (target / file).write_text(text.replace(before, after))
    return folder


class Load:
    """A shop behind a proxy: what one server does not take, the next one is asked."""

    def __init__(self, servers: list[Server]) -> None:
        self.servers, self.told, self.refused = servers, dict[str, float](), list[str]()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        for k in count():
            if self._stop.is_set():
                return
            asked = {"context": [20.0 + k % 70], "key": f"order {k}"}
            id_, payoff = self._send(k, "decisions", asked)["id"], 1.0 + 0.1 * (k % 7)
            self._send(k + 1, "payoffs", {"id": id_, "payoff": payoff})
            self.told[id_] = payoff

    def _send(self, k: int, path: str, body: dict[str, Any]) -> dict[str, str]:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            k += 1
            try:
                servers = self.servers
                answer = servers[k % len(servers)].client.post(f"{HERE}/{path}", json=body)
            except (httpx.TransportError, RuntimeError):  # it ends, or has ended
                continue
            if answer.status_code == 200:
                found: dict[str, str] = answer.json()
                return found
            if answer.status_code != 503:
                self.refused.append(f"{path}: {answer.status_code} {answer.text}")
        raise AssertionError(f"{path} must be answered: {self.refused}")

    def until(self, told: int) -> None:
        end = time.monotonic() + PATIENCE
        while len(self.told) < told:
            assert self._thread.is_alive(), self.refused
            assert time.monotonic() < end
            time.sleep(0.02)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def rounded(server: Server) -> bool:
    lines = server.client.get("/metrics").text.splitlines()
    [line] = [line for line in lines if line.startswith("continuarm_states_rounded_total{")]
    return float(line.split()[-1]) > 0.0


def test_servers_of_another_build_take_over_one_by_one_under_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / "shop.db"
    policy = ca.SurfaceSampling(ca.Box([18.0], [90.0]), ca.Box([1.0], [9.0]), rng=1)
    with closing(open_store(where)) as store:
        share(policy, store, "prices")
    builds = build(tmp_path / "old", OFTEN), build(tmp_path / "new", OFTEN, LAST_BIT)
    with ExitStack() as running:
        monkeypatch.setenv("PYTHONPATH", str(builds[0]))
        old = [Server(where) for _ in range(SERVERS)]
        for server in old:
            running.enter_context(server)
        monkeypatch.setenv("PYTHONPATH", str(builds[1]))
        with Load(list(old)) as load:
            for k, leaving in enumerate(old):
                coming = running.enter_context(Server(where))
                load.servers = [*load.servers, coming]
                load.until(len(load.told) + 40)
                until(lambda: any(rounded(server) for server in load.servers))
                leaving.stop()  # requests still come
                load.servers = [*old[k + 1 :], *load.servers[SERVERS - k :]]
            load.until(len(load.told) + 40)
        assert load.refused == []
        ready = [server.client.get("/readyz").json() for server in load.servers]
        assert [one["differ"] for one in ready] == [[]] * SERVERS
    with closing(open_store(where)) as store:
        closings = {id_: store.closing("prices", id_) for id_ in load.told}
        assert all(record is not None for record in closings.values()), "nothing is lost"
        stats = share(policy, store, "prices").policy().stats()
        assert stats.asked >= stats.told >= len(load.told)
        found = replay(store, "prices")
    assert found.difference is None
    assert 0.0 < found.rounding.relative < 1e-6
    assert found.rounding.where.startswith("position ")
