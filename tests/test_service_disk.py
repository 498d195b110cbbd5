"""A slow disk, or others who write to the file, hold up who waits for it and nobody else."""

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import numpy as np
import pytest

from continuarm.ledger.desk import Desk
from continuarm.ledger.replica import Replica
from continuarm.service.experiments import Experiments
from continuarm.service.helpers import WRITERS, Helpers
from continuarm.service.messages import Edges, NewExperiment
from continuarm.service.running import AT_ONCE, Running
from continuarm.store import Entry, Store, open_store, sqlite_connections
from tests.service import CUSTOMER, HERE, PRICES, served, until

ASK = {"context": CUSTOMER}


@contextmanager
def slow(store: Any, disk: Event, waiting: Event) -> Iterator[None]:
    """Let what is appended become durable only when the disk says so."""
    appending = store.appending

    @contextmanager
    def slowly(name: str, group: Any) -> Iterator[Any]:
        with appending(name, group) as outcomes:
            yield outcomes
            waiting.set()
            assert disk.wait(60.0)

    store.appending = slowly
    yield
    del store.appending


def opened(path: Path) -> Any:
    return closing(open_store(str(path)))


def decided(client: httpx.Client) -> int:
    return int(client.get(HERE).json()["counts"]["decisions"])


def test_a_slow_disk_holds_up_nobody_who_only_looks(tmp_path: Path) -> None:
    disk, waiting = Event(), Event()
    with (
        opened(tmp_path / "shop.db") as store,
        slow(store, disk, waiting),
        served(store) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        assert client.put(HERE, json=PRICES).status_code == 201
        asked = pool.submit(client.post, f"{HERE}/decisions", json=ASK)
        assert waiting.wait(60.0)
        assert client.get("/healthz").status_code == 200
        assert decided(client) == 0, "what is not durable has not happened"
        assert not asked.done(), "an answer leaves when it is durable"
        disk.set()
        assert asked.result().status_code == 200
        until(lambda: decided(client) == 1)


def test_an_alarm_says_that_nothing_can_be_appended_until_something_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shop.db"

    def alarms(client: httpx.Client) -> list[str]:
        return list(client.get("/readyz").json()["alarms"])

    with opened(path) as store, served(store) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        assert client.post(f"{HERE}/decisions", json=ASK).status_code == 200
        assert alarms(client) == []
        monkeypatch.setattr(sqlite_connections, "PATIENCE", 0.2)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert client.post(f"{HERE}/decisions", json=ASK).status_code == 503
            [alarm] = alarms(client)
            assert alarm.startswith("'prices': nothing could be appended for ")
            assert "\n" not in alarm
            other.execute("ROLLBACK")
        assert client.post(f"{HERE}/decisions", json=ASK).status_code == 200
        assert alarms(client) == []


def test_who_appends_elsewhere_holds_up_nobody_who_only_looks(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with (
        opened(path) as store,
        opened(path) as other,
        served(store) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        assert client.put(HERE, json=PRICES).status_code == 201
        with elsewhere(other):
            asked = pool.submit(client.post, f"{HERE}/decisions", json=ASK)
            assert client.get("/healthz").status_code == 200
            assert not asked.done()
        assert asked.result().status_code == 200


@contextmanager
def elsewhere(store: Store) -> Iterator[None]:
    """Another process is in the middle of appending."""
    with store.appending("prices", [Entry("time-passed", "{}")]):
        yield


def test_what_was_begun_ends_although_all_writers_wait_for_it(tmp_path: Path) -> None:
    new = NewExperiment(Edges([0.0], [1.0]), Edges([0.0], [1.0]))
    with opened(tmp_path / "shop.db") as store:
        Experiments(store).create("prices", new)
        helpers, ended = Helpers(store), Event()
        running = Running(store, "prices", 5.0, helpers=helpers)
        waiting = [helpers.writers.submit(ended.wait, 60.0) for _ in range(WRITERS)]
        try:
            asyncio.run(asyncio.wait_for(running.ask([0.5], None, None), 20.0))
        finally:
            ended.set()
            running.close()
            helpers.close()
        assert all(one.result() for one in waiting)


def test_a_server_that_never_rests_keeps_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Running, "is_current", True)  # so that the follower leaves it alone
    with opened(tmp_path / "shop.db") as store, served(store) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        for _ in range(6):
            asked = client.post(f"{HERE}/decisions", json={"contexts": [CUSTOMER] * 1000})
            assert asked.status_code == 200
        until(lambda: [kept.position for kept in store.snapshots("prices")] == [1, 5000])


@pytest.mark.parametrize(
    ("policy", "options"), [("recommended", {}), ("static-kwsa", {"horizon": 100, "step": 0.5})]
)
def test_an_error_that_nobody_foresaw_is_that_of_one_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, options: dict[str, Any]
) -> None:
    with opened(tmp_path / "shop.db") as store:
        box = Edges([0.0], [1.0])
        new = NewExperiment(box, box, policy=policy, options=options)
        Experiments(store, max_lag=5.0).create("prices", new)
        running = Running(store, "prices", 5.0)
        decide = running.desk.asked

        def breaks(point: Any, within: Any, key: str | None, **known: Any) -> Any:
            if key == "broken":
                raise ZeroDivisionError("a defect")
            return decide(point, within, key, **known)

        monkeypatch.setattr(running.desk, "asked", breaks)

        async def all_at_once() -> list[Any]:
            asks = (running.ask([0.5], None, key) for key in ("a", "broken", "b"))
            return await asyncio.gather(*asks, return_exceptions=True)

        first, broken, last = asyncio.run(all_at_once())
        assert isinstance(broken, ZeroDivisionError)
        assert {type(first).__name__, type(last).__name__} == {"Decision"}
        until(lambda: store.experiment("prices").head == running.replica.position)
        assert store.keyed("prices", "b") is not None
        running.close()


def test_requests_come_between_while_one_folds_all_that_it_has_missed(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with opened(path) as store, opened(path) as elsewhere:
        box, helpers = Edges([0.0], [1.0]), Helpers(store)
        Experiments(store).create("prices", NewExperiment(box, box))
        helpers.follower.close()  # it is behind until it is asked
        running = Running(store, "prices", 300.0, helpers=helpers)
        desk = Desk(Replica(elsewhere, "prices"))
        missed = [desk.asked(np.array([0.5]), None, None).entry for _ in range(60 * AT_ONCE)]
        elsewhere.append("prices", missed)

        async def positions() -> list[int]:
            """How far it was whenever another request could have been answered."""
            asking, seen = asyncio.ensure_future(running.ask([0.5], None, None)), list[int]()
            while not asking.done():
                await asyncio.sleep(0.0)
                seen.append(running.replica.position)
            return seen

        assert max(np.diff(asyncio.run(positions()))) <= 2 * AT_ONCE
        assert running.replica.position == elsewhere.experiment("prices").head
        running.close()
        helpers.close()


def test_a_server_that_ends_under_a_lock_answers_nobody_with_a_500(tmp_path: Path) -> None:
    """What is under way when it is told to end, and when it has waited long enough."""
    path = tmp_path / "shop.db"
    with ThreadPoolExecutor(3) as threads, closing(sqlite3.connect(path)) as other:
        with closing(open_store(path)) as store, served(store, grace=1) as client:
            assert client.put(HERE, json=PRICES).status_code == 201
            other.execute("BEGIN IMMEDIATE")
            there = f"{client.base_url}{HERE}"
            asking = [
                threads.submit(httpx.post, f"{there}/{v}", json=b, timeout=60)
                for v, b in (("decisions", ASK), ("forget", {"id": "0" * 32}), ("pause", {}))
            ]
            time.sleep(0.5)  # they wait for the lock by now, or else are answered at once
        for one in asking:
            assert (one.result().status_code, one.result().json()["error"]) == (503, "unavailable")
