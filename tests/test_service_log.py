"""A log of thousands of rows is learned while decisions go on, and all servers learn the same."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import numpy as np
import pytest

from continuarm.ledger.replica import Replica
from continuarm.store import open_store
from continuarm.store.protocol import Store
from tests.service import CUSTOMER, HERE, PRICES, served, until

ROWS = 15_000


def _log(rows: int) -> dict[str, list[float]]:
    rng = np.random.default_rng(0)
    age, income = rng.integers(18, 90, rows), rng.integers(0, 250_000, rows)
    price = np.round(rng.uniform(2, 6, rows), 1)
    paid = 9.0 - (price - 3.0 - age / 60.0) ** 2 + rng.normal(size=rows)
    columns = {"age": age, "income": income, "price": price, "payoff": paid}
    return {name: np.round(column, 3).tolist() for name, column in columns.items()}


@pytest.fixture(params=["near", "follows"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, str]]:
    """A store, and which server is asked: the one that is given the log, or another one."""
    with closing(open_store(tmp_path / "shop.db")) as store:
        yield store, request.param


def test_decisions_go_on_while_a_log_is_learned(other: tuple[Store, str]) -> None:
    store, asked = other
    path = store.database.path  # type: ignore[attr-defined]
    with served(store) as given, closing(open_store(path)) as second, served(second) as follows:
        client = given if asked == "near" else follows
        assert given.put(HERE, json=PRICES).status_code == 201
        client.post(f"{HERE}/decisions", json={"context": CUSTOMER})
        with ThreadPoolExecutor(1) as threads:
            learning = threads.submit(given.post, f"{HERE}/log", json={"columns": _log(ROWS)})
            _ask_until(client, learning.done)
            assert learning.result().status_code == 200, learning.result().text
        assert _before_the_log(store) > 0, "they must not wait"
        until(lambda: given.get(f"{HERE}/export").text == follows.get(f"{HERE}/export").text)
        folded = Replica(store, "prices")
        folded.catch_up()
        assert folded.life.model.learned[0] >= ROWS
        said = given.get(f"{HERE}/export").text
        assert json.loads(said) == json.loads(_exported(folded))


def _ask_until(client: httpx.Client, holds: Callable[[], bool]) -> None:
    def ask() -> bool:
        asked = client.post(f"{HERE}/decisions", json={"context": CUSTOMER})
        assert asked.status_code == 200, asked.text
        return holds()

    until(ask)


def _before_the_log(store: Store) -> int:
    """How many decisions after a log were made from the state before it."""
    records = store.read("prices", 0, 10**6)
    logged = [record.position for record in records if record.kind == "learned-from-log"]
    if not logged:
        return 0
    asked = [record for record in records if record.kind == "asked"]
    return sum(json.loads(r.body)["folded"] < logged[0] < r.position for r in asked)


def _exported(replica: Replica) -> str:
    from continuarm.live.policy import Policy

    return Policy.of_life(replica.life, name="prices").export()


def test_a_policy_whose_decisions_change_it_learns_a_log_first() -> None:
    with closing(open_store(":memory:")) as store, served(store) as client:
        new = {k: PRICES[k] for k in ("context", "decision")} | {"policy": "static-kwsa"}
        new["decision"] = {"low": [1], "high": [9], "names": ["price"]}
        new["options"] = {"horizon": 1000, "curvature": 1.0}
        assert client.put(HERE, json=new).status_code == 201
        learned = client.post(f"{HERE}/log", json={"columns": _log(500)})
        assert learned.status_code == 200, learned.text
        asked = client.post(f"{HERE}/decisions", json={"context": CUSTOMER})
        assert asked.status_code == 200
        assert client.post(f"{HERE}/log", json={"columns": {}}).status_code == 422
