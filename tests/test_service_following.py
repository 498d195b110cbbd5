"""Many experiments of one server: they share its threads, and each follows its ledger."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from continuarm.ledger import SharedPolicy
from continuarm.service.following import Follower
from continuarm.store import Entry, open_store
from tests.postgresql import Server as Postgres
from tests.service import CUSTOMER, HERE, PRICES, served, until

COUNT = 20


@dataclass
class Followed:
    """What notes the heads that it hears of, or fails."""

    name: str
    fails: bool = False
    is_current: bool = False
    heads: list[int] = field(default_factory=list)

    def follow(self, head: int, at: float) -> None:
        if self.fails:
            raise IndexError("a defect")
        self.heads.append(head)


def test_experiments_share_their_threads_and_each_follows_its_ledger(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with (
        closing(open_store(path)) as store,
        closing(open_store(path)) as elsewhere,
        served(store) as client,
    ):
        names = [f"/v1/experiments/prices-{k}" for k in range(COUNT)]
        for name in names:
            assert client.put(name, json=PRICES).status_code == 201
            assert client.post(f"{name}/decisions", json={"context": CUSTOMER}).status_code == 200
        kinds = [thread.name.split("_")[0] for thread in threading.enumerate()]
        assert kinds.count("follow") == 1
        assert kinds.count("write") <= 8
        assert not any(name.startswith("prices") for name in kinds)
        for k in range(COUNT):
            SharedPolicy(elsewhere, f"prices-{k}").ask(CUSTOMER)
        for name in names:
            until(lambda name=name: client.get(name).json()["counts"]["decisions"] == 2)
        assert client.delete(names[0]).status_code == 200
        SharedPolicy(elsewhere, "prices-1").ask(CUSTOMER)
        until(lambda: client.get(names[1]).json()["counts"]["decisions"] == 3)


def test_a_defect_of_one_experiment_holds_up_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = open_store(":memory:")
    follower, broken, whole = Follower(store), Followed("broken", True), Followed("prices")
    store.create("prices", "{}")
    for one in (broken, whole):
        follower.add(one)
    until(lambda: bool(whole.heads))
    store.append("prices", [Entry("asked", "{}", opens="1")])
    until(lambda: whole.heads[-1] == 1)
    follower.close()
    assert caplog.text.count("follower broken goes on after IndexError: a defect") == 1


def test_a_folder_that_was_away_is_followed_again(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "shop", tmp_path / "elsewhere"
    folder.mkdir()
    with closing(open_store(folder / "shop.db")) as store, served(store) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        folder.rename(elsewhere)
        folder.touch()
        away = client.post(f"{HERE}/decisions", json={"context": CUSTOMER})
        assert (away.status_code, away.json()["error"]) == (503, "unavailable")
        until(lambda: client.get("/v1/experiments").status_code == 503)
        folder.unlink()
        elsewhere.rename(folder)
        with closing(open_store(folder / "shop.db")) as another:
            SharedPolicy(another, "prices").ask(CUSTOMER)
        until(lambda: client.get(HERE).json()["counts"]["decisions"] == 1)


def test_time_passes_where_another_experiment_was_archived(tmp_path: Path) -> None:
    new = PRICES | {"options": {"ttl_seconds": 0.6}}
    with closing(open_store(tmp_path / "shop.db")) as store, served(store) as client:
        for name in ("a", "b"):
            path = f"/v1/experiments/{name}"
            assert client.put(path, json=new).status_code == 201
            assert client.post(f"{path}/decisions", json={"context": CUSTOMER}).status_code == 200
            if name == "a":
                store.archive("a")  # by another server
        until(lambda: store.read("b", 0)[-1].kind == "expired")


def test_what_another_server_was_told_is_known_when_the_next_decision_is_made(
    tmp_path: Path,
) -> None:
    path = tmp_path / "shop.db"
    with (
        closing(open_store(path)) as store,
        closing(open_store(path)) as elsewhere,
        served(store) as client,
    ):
        assert client.put(HERE, json=PRICES).status_code == 201
        other = SharedPolicy(elsewhere, "prices")
        for _ in range(30):  # sooner than a follower looks
            decisions = [other.ask(CUSTOMER) for _ in range(5)]
            other.tell(decisions[0].id, 1.0)
            head = elsewhere.experiment("prices").head
            asked = client.post(f"{HERE}/decisions", json={"context": CUSTOMER}).json()
            record = elsewhere.opening("prices", asked["id"])
            assert record is not None
            assert json.loads(record.body)["folded"] == head


def test_a_payoff_that_is_repeated_without_end_stops_no_decisions(server: Postgres) -> None:
    """What is refused is news of the ledger, too: the server is not behind."""
    with closing(open_store(server.fresh("storm"))) as store, served(store, max_lag=0.5) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        id_ = client.post(f"{HERE}/decisions", json={"context": CUSTOMER}).json()["id"]
        over = threading.Event()

        def repeat() -> set[int]:
            found = set[int]()
            with httpx.Client(base_url=client.base_url, timeout=60.0) as mine:
                while not over.is_set():
                    told = mine.post(f"{HERE}/payoffs", json={"id": id_, "payoff": 1.0})
                    found.add(told.status_code)
            return found

        with ThreadPoolExecutor(6) as pool:
            storm = [pool.submit(repeat) for _ in range(6)]
            time.sleep(1.0)  # longer than it may be behind
            asked = list[int]()
            for _ in range(20):
                answer = client.post(f"{HERE}/decisions", json={"context": CUSTOMER})
                asked.append(answer.status_code)
                time.sleep(0.05)
            over.set()
        assert asked.count(200) > 10, "one of fifty was answered; a busy machine may refuse some"
        assert all(200 in one.result() for one in storm)
