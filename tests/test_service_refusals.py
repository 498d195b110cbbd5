"""What is refused, and how: one shape, one table, and nothing half done."""

import json
import resource
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from continuarm.store import Store, open_store
from tests.postgresql import Server as Postgres
from tests.service import CUSTOMER, HERE, PRICES, SIZES, served, until

CLIPS = "/v1/experiments/clips"
OTHER = "/v1/experiments/other"


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with closing(open_store(":memory:")) as store, served(store) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        assert client.put(CLIPS, json=PRICES | {"outside": "clip"}).status_code == 201
        yield client


def _id(client: httpx.Client) -> str:
    return str(client.post(f"{HERE}/decisions", json={"context": CUSTOMER}).json()["id"])


DECIDE, PAY = f"{HERE}/decisions", f"{HERE}/payoffs"
FIELDS: list[tuple[str, str, Any, int, str]] = [
    ("POST", DECIDE, {"context": {"age": 7, "income": 1}}, 422, "context"),
    ("POST", DECIDE, {"context": {"age": 37}}, 422, "context"),
    ("POST", DECIDE, {"context": CUSTOMER, "within": {"price": [5, 4]}}, 422, "within"),
    ("POST", DECIDE, {"context": CUSTOMER, "within": {"price": [4.01, 4.02]}}, 422, "within"),
    ("POST", DECIDE, {"contexts": [CUSTOMER], "keys": []}, 422, "keys"),
    ("POST", DECIDE, {"context": CUSTOMER, "more": 1}, 400, "more"),
    ("POST", DECIDE, {"contexts": [CUSTOMER, {"age": "x"}]}, 400, "contexts[1].age"),
    ("POST", DECIDE, {"context": {"age": 37, "income": "x"}}, 400, "context.income"),
    ("POST", DECIDE, {"context": CUSTOMER, "within": {"a": [2, 3], "b": [2]}}, 400, "within.b"),
    ("POST", DECIDE, {"context": CUSTOMER, "within": {"b": [2, None]}}, 400, "within.b[1]"),
    ("POST", f"{HERE}/log", {"columns": {"age": [1], "price": [1, "x"]}}, 400, "columns.price[1]"),
    ("POST", PAY, {"id": "f" * 32, "payoff": 1.0}, 404, "id"),
    ("POST", PAY, {"id": "f" * 32 + "\n", "payoff": 1.0}, 400, "id"),
    ("POST", PAY, {"payoffs": [{"id": "f" * 32}]}, 400, "payoffs[0].payoff"),
    ("POST", PAY, {"id": "ID", "payoff": 1e200}, 422, "payoff"),
    ("POST", PAY, {"id": "ID", "payoff": 1.0, "value": [99.0]}, 422, "value"),
    ("PUT", OTHER, PRICES | {"policy": "none"}, 422, "policy"),
    ("PUT", OTHER, PRICES | {"options": {"share": 7}}, 422, "options.share"),
    ("PUT", OTHER, PRICES | {"options": {"rng": 7}}, 422, "options"),
    ("PUT", OTHER, PRICES | {"outside": "sometimes"}, 400, "outside"),
    ("PUT", OTHER, PRICES | {"decision": SIZES | {"low": [9, 9]}}, 422, "decision"),
    ("PUT", OTHER, PRICES | {"decision": SIZES | {"units": ["€"]}}, 422, "decision"),
    ("PUT", OTHER, {"context": SIZES}, 400, "decision"),
    ("GET", f"{HERE}/events?after=x", None, 422, "after"),
    ("GET", f"{HERE}/recommendation?age=x", None, 422, "age"),
    ("GET", f"{HERE}/recommendation?age=7&income=1", None, 422, "context"),
    ("GET", f"{HERE}/curve?along=height", None, 422, "along"),
    ("GET", f"{HERE}/payoff?over=height", None, 422, "over"),
    ("GET", f"{HERE}/explain/{'f' * 32}", None, 404, "id"),
    ("POST", f"{HERE}/bins/x/freeze", None, 422, "bin"),
    ("POST", f"{HERE}/freeze", {"segment": {}}, 422, "segment"),
    ("POST", f"{HERE}/freeze", {"segment": {"aeg": [1, 2]}}, 422, "segment"),
    ("POST", f"{HERE}/freeze", {"segment": {"age": [40, 30]}}, 422, "segment"),
    ("POST", f"{HERE}/freeze", {"segment": {"age": [91, 99]}}, 422, "segment"),
    ("POST", f"{HERE}/freeze", {"segment": {"age": [40]}}, 400, "segment.age"),
    ("POST", f"{HERE}/freeze", {"segment": {"age": [40, None]}}, 400, "segment.age[1]"),
    ("POST", f"{HERE}/freeze", {}, 400, "segment"),
    ("POST", f"{HERE}/unfreeze", {"segment": {"age": [30, 40]}}, 409, "segment"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "field"), FIELDS)
def test_a_refusal_names_the_field(
    client: httpx.Client, method: str, path: str, body: Any, status: int, field: str
) -> None:
    if isinstance(body, dict) and body.get("id") == "ID":
        body = body | {"id": _id(client)}
    answer = client.request(method, path, json=body)
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error", "message", "field"}
    assert answer.json()["field"] == field, answer.text


def test_a_refusal_in_a_batch_names_its_field(client: httpx.Client) -> None:
    asked = client.post(DECIDE, json={"contexts": [CUSTOMER, {"age": 7, "income": 1}]}).json()
    assert asked["decisions"][1]["refused"]["field"] == "context"
    paid = [{"id": asked["decisions"][0]["id"], "payoff": 1.0}, {"id": "0" * 32, "payoff": 1.0}]
    told = client.post(PAY, json={"payoffs": paid}).json()
    assert told["closed"][1]["refused"]["field"] == "id"


def test_zeros_of_both_signs_are_one_context(client: httpx.Client) -> None:
    zeros = [{"age": 37, "income": income} for income in (0.0, -0.0)]
    first, again = (client.post(DECIDE, json={"context": c, "key": "zero"}) for c in zeros)
    assert again.status_code == 200, again.text
    assert again.json() == first.json()


def test_a_context_outside_its_box_is_clipped_where_the_experiment_says_so(
    client: httpx.Client,
) -> None:
    outside = {"age": 37, "income": 300_000}
    inside = client.post(f"{CLIPS}/decisions", json={"context": CUSTOMER}).json()
    assert set(inside) == {"id", "decision", "role"}
    found = client.post(f"{CLIPS}/decisions", json={"context": outside, "key": "rich"}).json()
    assert found["clipped"] == ["income"]
    again = client.post(f"{CLIPS}/decisions", json={"context": outside, "key": "rich"}).json()
    assert again == found
    why = client.get(f"{CLIPS}/explain/{found['id']}").json()
    assert why["context"] == [37.0, 250_000.0]
    batch = [CUSTOMER, {"age": 7, "income": -1.0}, {"age": 37}]
    answers = client.post(f"{CLIPS}/decisions", json={"contexts": batch}).json()["decisions"]
    assert "clipped" not in answers[0]
    assert answers[1]["clipped"] == ["age", "income"]
    assert answers[2]["refused"]["field"] == "context"
    best = client.get(f"{CLIPS}/recommendation", params=outside).json()
    assert best["clipped"] == ["income"]
    infinite = client.get(f"{CLIPS}/recommendation", params={"age": "inf", "income": 1})
    assert infinite.status_code == 422, "what is not finite is refused, never clipped"
    assert client.get(CLIPS).json()["options"]["outside"] == "clip"
    assert client.put(CLIPS, json=PRICES).status_code == 409


def test_units_are_kept_to_show(client: httpx.Client) -> None:
    context: Any = PRICES["context"] | {"units": ["years", "€"]}  # type: ignore[operator]
    says = client.put("/v1/experiments/units", json=PRICES | {"context": context}).json()
    assert says["context"]["units"] == ["years", "€"]
    assert says["decision"]["units"] is None


def test_a_full_disk_is_503_with_nothing_half_done_and_recovers(tmp_path: Path) -> None:
    where = tmp_path / "shop.db"
    with closing(open_store(where)) as store, served(store) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        acknowledged = set[str]()
        with _no_file_grows_beyond(max(path.stat().st_size for path in tmp_path.iterdir())):
            for k in range(40):
                _ask(client, f"order-{k}", acknowledged)
        assert len(acknowledged) < 5 * 40, "the disk was full"
        _recovers(store, client, acknowledged, orders=40)


@contextmanager
def _no_file_grows_beyond(size: int) -> Iterator[None]:
    """As on a file system that is full; Python ignores the signal that comes with it."""
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _ask(client: httpx.Client, key: str, acknowledged: set[str]) -> None:
    contexts = {"contexts": [CUSTOMER] * 5, "keys": [f"{key}-{j}" for j in range(5)]}
    answer = client.post(DECIDE, json=contexts)
    assert answer.status_code in (200, 503), answer.text
    if answer.status_code == 200:
        acknowledged |= {one["id"] for one in answer.json()["decisions"]}
    else:
        assert answer.json()["error"] == "unavailable"


def _recovers(store: Store, client: httpx.Client, acknowledged: set[str], *, orders: int) -> None:
    """All orders are asked for again with their keys: none is lost, and none is made twice."""
    until(lambda: client.get("/readyz").status_code == 200)
    until(lambda: client.get(f"{HERE}/events").status_code == 200)
    for k in range(orders):
        _ask(client, f"order-{k}", acknowledged)
    opened = [record.opens for record in store.read("prices", 0, 10**6) if record.opens]
    assert len(opened) == len(set(opened)) == 5 * orders
    assert acknowledged == set(opened)
    until(lambda: client.get(HERE).json()["counts"]["decisions"] == 5 * orders)


def test_a_lost_database_is_503_with_nothing_half_done_and_recovers(server: Postgres) -> None:
    with closing(open_store(server.fresh("lost"))) as store, served(store) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        acknowledged = set[str]()
        _ask(client, "order-0", acknowledged)
        server.stop()
        try:
            for k in range(1, 3):
                before = len(acknowledged)
                _ask(client, f"order-{k}", acknowledged)
                assert len(acknowledged) == before
        finally:
            server.start()
        _recovers(store, client, acknowledged, orders=3)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgresql"])
def test_zeros_in_a_path_are_the_name_of_nothing(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    where = {"memory": ":memory:", "sqlite": str(tmp_path / "shop.db")}.get(kind)
    if where is None:
        where = request.getfixturevalue("server").fresh("zeros")
    with closing(open_store(where)) as store, served(store) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        bodies, there = {"POST": {"context": CUSTOMER}, "PUT": PRICES}, "/v1/experiments/a%00b"
        for method, path, status in [
            ("GET", there, 404),
            ("GET", f"{there}/events", 404),
            ("GET", f"{HERE}/explain/a%00b", 404),
            ("POST", f"{there}/decisions", 404),
            ("PUT", there, 422),
            ("DELETE", there, 404),
        ]:
            answer = client.request(method, path, json=bodies.get(method))
            assert answer.status_code == status, (method, path, answer.text)
        for after, statuses in (("\0", [404]), ("\ud800", [400, 404])):
            content = json.dumps(PRICES | {"after": after})
            headers = {"content-type": "application/json"}
            successor = client.put(OTHER, content=content, headers=headers)
            assert successor.status_code in statuses, successor.text
