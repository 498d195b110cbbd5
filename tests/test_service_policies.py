"""The service with policies other than the recommended one."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from continuarm.ledger.replaying import replay
from continuarm.store import open_store
from tests.service import HERE, served

AGES = {"low": [18], "high": [90], "names": ["age"]}
PRICE = {"low": [1], "high": [9], "names": ["price"]}
OPTIONS: dict[str, dict[str, Any]] = {
    "static-kwsa": {"bins": 2, "step": 1.0, "width": 0.3},
    "adaptive-kwsa": {"depth": 2, "horizon": 1000, "curvature": 2.0},
    "uniform-ucb": {"bins": 2, "arms": 5, "horizon": 1000, "scale": 1.0},
}


@pytest.fixture(params=list(OPTIONS))
def new(request: pytest.FixtureRequest) -> dict[str, Any]:
    policy: str = request.param
    return {"policy": policy, "context": AGES, "decision": PRICE, "options": OPTIONS[policy]}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[httpx.Client]]:
    """Two services on one file."""
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(open_store(tmp_path / "shop.db"))) for _ in range(2)]
        yield [stack.enter_context(served(store)) for store in stores]


def visit(client: httpx.Client, number: int) -> str:
    """A customer is asked for and pays."""
    body = {"context": {"age": 18 + number % 72}, "key": f"visit {number}"}
    asked = client.post(f"{HERE}/decisions", json=body)
    assert asked.status_code == 200, asked.text
    id_, price = asked.json()["id"], asked.json()["decision"]["price"]
    told = client.post(f"{HERE}/payoffs", json={"id": id_, "payoff": -((price - 4.0) ** 2)})
    assert told.status_code == 200, told.text
    return str(id_)


def test_two_servers_share_any_policy(
    servers: list[httpx.Client], new: dict[str, Any], tmp_path: Path
) -> None:
    assert servers[0].put(HERE, json=new).status_code == 201
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(lambda k: visit(servers[k % 2], k), range(60)))
    assert len(set(ids)) == 60
    for client in servers:
        for look in ("", "/bins", "/diagnosis", "/history", "/recommendation?age=37"):
            found = client.get(f"{HERE}{look}")
            assert found.status_code == 200, found.text
    with closing(open_store(tmp_path / "shop.db")) as store:
        again = replay(store, "prices")
        assert (again.difference, again.decisions) == (None, 60)


def test_what_a_policy_does_not_take_is_refused(tmp_path: Path, new: dict[str, Any]) -> None:
    with closing(open_store(tmp_path / "shop.db")) as store, served(store) as client:
        for options in ({"rng": 1}, {"reach": 0.1}, {"bins": "x", "depth": "x"}, {"horizon": "x"}):
            refused = client.put(HERE, json=new | {"options": new["options"] | options})
            assert refused.status_code == 422, refused.text
            assert refused.json()["field"].startswith("options")
        assert client.get("/v1/experiments").json()["experiments"] == []
        for policy in ("robbins-monro", "oracle", "fixed", "nobody"):
            refused = client.put(HERE, json=new | {"policy": policy})
            assert (refused.status_code, refused.json()["field"]) == (422, "policy")


def test_a_decision_in_turn_that_waits_for_the_store_holds_up_nobody_else(
    tmp_path: Path, new: dict[str, Any]
) -> None:
    with closing(open_store(tmp_path / "shop.db")) as store, served(store) as client:
        assert client.put(HERE, json=new).status_code == 201
        append, waiting, disk = store.append, Event(), Event()

        def slowly(*given: Any, **options: Any) -> Any:
            waiting.set()
            assert disk.wait(60.0)
            return append(*given, **options)

        store.append = slowly  # type: ignore[method-assign]
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(visit, client, 1)
            try:
                assert waiting.wait(60.0)
                for look in ("/healthz", f"{HERE}/recommendation?age=37", f"{HERE}/history"):
                    assert client.get(look, timeout=20.0).status_code == 200
            finally:
                disk.set()
            assert asked.result()
