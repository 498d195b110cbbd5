"""Cells over HTTP: those of the policy, for a policy that has one bin."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import numpy as np
import pytest

import continuarm as ca
from continuarm.store import open_store
from tests.service import served, until

HERE = "/v1/experiments/calls"
CONTEXT = ca.Box([18, 0, 0], [90, 24, 2.5e5], names=["age", "hour", "income"])
Shop = tuple[httpx.Client, ca.Policy]


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    """A service with an experiment of one bin, and the policy behind it."""
    policy = ca.Policy(
        CONTEXT,
        ca.Box([1.0], [9.0], names=["price"]),
        partition=ca.Grid(1),
        learner=ca.SmoothSurface(),
        rng=0,
    )
    rng = np.random.default_rng(0)
    for x in rng.uniform(CONTEXT.low, CONTEXT.high, (400, 3)):
        decision = policy.ask(x)
        best = 3.0 + 3.0 * x[2] / 2.5e5
        policy.tell(decision, 5.0 - (decision.value[0] - best) ** 2 + 0.2 * rng.normal())
    with closing(open_store(":memory:")) as store:
        ca.share(policy, store, "calls")
        with served(store) as client:
            yield client, policy


def test_cells_are_those_of_the_policy(shop: Shop) -> None:
    client, policy = shop
    query: dict[str, Any] = {"along": ["income", "age"], "parts": 3, "hour": 20}
    says = client.get(f"{HERE}/cells", params=query).json()
    assert (says["along"], says["held"]) == (["income", "age"], {"hour": 20.0})
    wanted = policy.cells(along=["income", "age"], parts=3, at={"hour": 20})
    assert len(says["cells"]) == len(wanted) == 9
    for one, own in zip(says["cells"], wanted, strict=True):
        assert one["segment"] == {name: list(ends) for name, ends in own.where.items()}
        assert list(one["context"].values()) == own.context.tolist()
        assert one["best"] == {"price": own.best[0]}
        assert one["today"] == {"price": own.today[0]}
        assert one["expected"] == pytest.approx(own.expected)
        assert one["gain_error"] == pytest.approx(own.gain_error)
        assert one["error"] == {"price": own.peak_error[0] if own.peak_error else None}
        assert one["frozen"] is False
    assert client.get(HERE).json()["one_bin"] is True
    assert len(client.get(f"{HERE}/cells").json()["cells"]) == 64


@pytest.mark.parametrize(
    ("query", "field", "says"),
    [
        ("along=height", "along", "a context is one of"),
        ("along=age&along=age", "along", "one or two different contexts"),
        ("along=age&along=hour&along=income", "along", "one or two different contexts"),
        ("parts=33", "parts", "`parts` must be from 1 to 32, but got '33'"),
        ("parts=0", "parts", "`parts` must be from 1 to 32"),
        ("parts=x", "parts", "a whole number"),
        ("age=7", "context", "age"),
        ("height=7", "context", "a name of `at` is one of"),
        ("age=old", "age", "`age` must be a number"),
    ],
)
def test_bad_queries_get_one_line(shop: Shop, query: str, field: str, says: str) -> None:
    refused = shop[0].get(f"{HERE}/cells?{query}")
    assert (refused.status_code, refused.json()["error"]) == (422, "invalid")
    assert refused.json()["field"] == field
    assert says in refused.json()["message"]


def test_the_page_of_operations_says_that_along_may_come_twice(shop: Shop) -> None:
    path = shop[0].get("/openapi.json").json()["paths"]["/v1/experiments/{name}/cells"]["get"]
    [along] = [one for one in path["parameters"] if one["name"] == "along"]
    assert along["schema"] == {"type": "array", "items": {"type": "string"}, "maxItems": 2}
    assert path["x-scope"] == "read"


def same(one: Any, other: Any) -> bool:
    """Whether two cells are equal; JSON keeps every digit of a number."""
    pairs = zip(one, other, strict=True)
    return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)


def test_clients_have_the_cells_of_the_policy_and_freeze_one(shop: Shop) -> None:
    server, policy = shop
    address, at = str(server.base_url), {"hour": 20}
    wanted = policy.cells(along="income", parts=4, at=at)
    with ca.Client(address, "calls") as client:
        found = client.cells(along="income", parts=4, at=at)
        assert all(same(*pair) for pair in zip(found, wanted, strict=True))
        in_order = client.cells(along="income", parts=4, at=[54, 20, 125_000])
        assert all(same(*pair) for pair in zip(in_order, wanted, strict=True))
        with pytest.raises(ca.errors.InputError, match="one or two different contexts"):
            client.cells(along=["age", "age"])
        segment = client.freeze(found[2].where)
        until(lambda: client.cells(along="income", parts=4)[2].frozen)
        client.unfreeze(segment)
        until(lambda: not client.cells(along="income", parts=4)[2].frozen)

    async def ask() -> list[Any]:
        async with ca.AsyncClient(address, "calls") as other:
            return await other.cells(along="income", parts=4, at=at)

    assert all(same(*pair) for pair in zip(asyncio.run(ask()), wanted, strict=True))


def test_a_learner_that_knows_no_error_of_a_gain_has_cells_without_it() -> None:
    box, rng = ca.Box([0.0], [1.0], names=["hour"]), np.random.default_rng(0)
    policy = ca.SurfaceSampling(box, ca.Box([1.0], [9.0], names=["price"]), rng=0)
    for x in rng.random((60, 1)):
        decision = policy.ask(x)
        policy.tell(decision, -((decision.value[0] - 6.0) ** 2) + 0.1 * rng.normal())
    with closing(open_store(":memory:")) as store:
        ca.share(policy, store, "calls")
        with served(store) as client:
            answer = client.get(f"{HERE}/cells", params={"parts": 2})
    assert answer.status_code == 200
    for one, own in zip(answer.json()["cells"], policy.cells(parts=2), strict=True):
        assert one["gain"] == pytest.approx(own.gain)
        assert one["gain_error"] is None
