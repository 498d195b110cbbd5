"""The service: a real server on a real store, spoken to over HTTP."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

import continuarm as ca
from continuarm.errors import (
    AlreadyToldError,
    InputError,
    UnavailableError,
    UnknownDecisionError,
    UnknownExperimentError,
)
from continuarm.ledger import SharedPolicy
from continuarm.service.operations import openapi
from continuarm.service.tokens import issue
from continuarm.store import open_store
from tests.service import CUSTOMER, HERE, PRICES, SIZES, Server, free_port, until


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with Server(tmp_path_factory.mktemp("service") / "shop.db") as server:
        made = server.client.put(HERE, json=PRICES)
        assert made.status_code == 201, made.text
        yield server.client


def test_contexts_go_in_decisions_come_out_payoffs_come_back(service: httpx.Client) -> None:
    asked = service.post(f"{HERE}/decisions", json={"context": CUSTOMER, "key": "order-17"})
    assert asked.status_code == 200
    answer = asked.json()
    assert set(answer) == {"id", "decision", "role"}
    assert Decimal(str(answer["decision"]["price"])) % Decimal("0.05") == 0
    again = service.post(f"{HERE}/decisions", json={"context": CUSTOMER, "key": "order-17"})
    assert again.json() == answer
    other = service.post(
        f"{HERE}/decisions", json={"context": {"age": 38, "income": 1}, "key": "order-17"}
    )
    assert (other.status_code, other.json()["error"]) == (409, "key-conflict")
    limited = {"context": CUSTOMER, "key": "order-17", "within": {"price": [1, 2]}}
    assert service.post(f"{HERE}/decisions", json=limited).status_code == 409
    told = service.post(f"{HERE}/payoffs", json={"id": answer["id"], "payoff": 1.5})
    assert told.json() == {"id": answer["id"], "done": True}
    same = service.post(f"{HERE}/payoffs", json={"id": answer["id"], "payoff": 1.5})
    assert same.status_code == 200
    another = service.post(f"{HERE}/payoffs", json={"id": answer["id"], "payoff": 2.5})
    assert (another.status_code, another.json()["error"]) == (409, "closed-before")
    unknown = service.post(f"{HERE}/payoffs", json={"id": "f" * 32, "payoff": 2.5})
    assert (unknown.status_code, unknown.json()["error"]) == (404, "unknown-decision")
    why = service.get(f"{HERE}/explain/{answer['id']}").json()
    assert "price" in why["text"]
    assert why["id"] == answer["id"]
    assert f"Decision {answer['id']}" in why["text"]


def test_a_batch_says_what_became_of_each(service: httpx.Client) -> None:
    contexts = [CUSTOMER, {"age": 7, "income": 1}, CUSTOMER]
    asked = service.post(f"{HERE}/decisions", json={"contexts": contexts}).json()["decisions"]
    assert [set(answer) for answer in asked] == [
        {"id", "decision", "role"},
        {"refused"},
        {"id", "decision", "role"},
    ]
    assert asked[1]["refused"]["message"] == "`18.0 <= age <= 90.0` must hold, but got 7.0"
    told = service.post(
        f"{HERE}/payoffs",
        json={"payoffs": [{"id": asked[0]["id"], "payoff": 1}, {"id": "0" * 32, "payoff": 1}]},
    ).json()["closed"]
    assert [one["done"] for one in told] == [True, False]
    gone = service.post(f"{HERE}/forget", json={"ids": [asked[2]["id"]]})
    assert gone.json()["closed"][0]["id"] == asked[2]["id"]


def test_a_refused_batch_is_answered_in_short_lines_whatever_the_names(
    service: httpx.Client,
) -> None:
    names = [f"{k:04}" + "x" * 195 for k in range(900)]
    box = {"low": [0.0] * 900, "high": [1.0] * 900, "names": names}
    new = {"context": box, "decision": {"low": [1.0], "high": [9.0]}}
    assert service.put("/v1/experiments/wide", json=new).status_code == 201
    ask = "/v1/experiments/wide/decisions"
    nothing: dict[str, float] = {}
    answer = service.post(ask, json={"contexts": [nothing] * 100 + [{"y" * 150: 1.0}]})
    assert answer.status_code == 200, answer.text
    assert len(answer.content) < 101 * 1000
    message = answer.json()["decisions"][0]["refused"]["message"]
    assert message.endswith("x…', and 892 more], but got []")
    assert message.count("'") == 16
    outside = dict.fromkeys(names, 7.0)
    refused = service.post(ask, json={"context": outside}).json()["message"]
    assert refused == f"`0.0 <= 0000{'x' * 56}… <= 1.0` must hold, but got 7.0"
    frozen = service.post("/v1/experiments/wide/freeze", json={"segment": {"age": [0, 1]}})
    assert frozen.status_code == 422
    assert len(frozen.content) < 1000
    service.delete("/v1/experiments/wide")


def test_a_client_has_the_verbs_of_a_policy(service: httpx.Client) -> None:
    with ca.Client(str(service.base_url), "prices") as policy:
        decision = policy.ask(CUSTOMER, within={"price": (3.0, 3.5)}, key="by client")
        assert 3.0 <= decision.value[0] <= 3.5
        assert decision.as_dict().keys() == {"price"}
        again = policy.ask(CUSTOMER, within={"price": (3.0, 3.5)}, key="by client")
        assert again.id == decision.id
        policy.tell(decision, 1.25, value=[3.25])
        policy.tell(decision.id, 1.25, value=[3.25])
        with pytest.raises(AlreadyToldError, match="closed once"):
            policy.tell(decision, 1.5)
        with pytest.raises(AlreadyToldError):
            policy.forget(decision)
        with pytest.raises(InputError, match="age"):
            policy.ask({"age": 7, "income": 1})
        with pytest.raises(UnknownDecisionError):
            policy.tell(5, 1.0)
        assert policy.recommend(CUSTOMER).shape == (1,)
    with (
        ca.Client(str(service.base_url), "nobody's") as nobody,
        pytest.raises(UnknownExperimentError),
    ):
        nobody.ask(CUSTOMER)


def test_a_client_of_an_event_loop_does_the_same(service: httpx.Client) -> None:
    async def visit() -> None:
        async with ca.AsyncClient(str(service.base_url), "prices") as policy:
            asked = await asyncio.gather(*(policy.ask(CUSTOMER) for _ in range(20)))
            assert len({decision.id for decision in asked}) == 20
            await asyncio.gather(*(policy.tell(decision, 1.0) for decision in asked[1:]))
            await policy.forget(asked[0])
            assert (await policy.recommend(CUSTOMER)).shape == (1,)

    asyncio.run(visit())


def test_a_client_whose_service_is_away_says_so() -> None:
    with (
        ca.Client(f"http://127.0.0.1:{free_port()}", "prices") as policy,
        pytest.raises(UnavailableError, match="a service must answer"),
    ):
        policy.ask(CUSTOMER)


def test_everybody_may_look(service: httpx.Client) -> None:
    names = [one["name"] for one in service.get("/v1/experiments").json()["experiments"]]
    assert "prices" in names
    says = service.get(HERE).json()
    counts = says["counts"]
    rest = counts["payoffs"] + counts["open"] + counts["lost"] + counts["late"]
    assert counts["decisions"] == rest
    query = {"age": 37, "income": 52000}
    best = service.get(f"{HERE}/recommendation", params=query).json()
    assert 1.0 <= best["decision"]["price"] <= 9.0
    assert "age 37" in service.get(f"{HERE}/explain", params=query).json()["text"]
    [bin_] = service.get(f"{HERE}/bins").json()["bins"]
    assert bin_["payoffs"] == counts["payoffs"]
    assert service.get(f"{HERE}/uplift").json()["counted"] >= 0
    reader = ca.Reader(service.get(f"{HERE}/export").text)
    assert reader.decide(query) == pytest.approx(list(best["decision"].values()))
    lines = service.get(f"{HERE}/events", params={"after": 1}).text.splitlines()
    assert [json.loads(line)["position"] for line in lines] == list(range(2, says["events"] + 1))
    counted = service.get("/metrics").text
    assert f'continuarm_asked{{experiment="prices"}} {counts["decisions"]}' in counted
    assert 'continuarm_request_seconds_bucket{verb="decisions",le="+Inf"}' in counted


def test_coupled_limits_hold(service: httpx.Client) -> None:
    sizes = {"context": PRICES["context"], "decision": SIZES | {"rows": ["small <= large - 0.5"]}}
    assert service.put("/v1/experiments/sizes", json=sizes).status_code == 201
    asked = {"contexts": [CUSTOMER] * 50}
    answers = service.post("/v1/experiments/sizes/decisions", json=asked).json()["decisions"]
    decisions = [answer["decision"] for answer in answers]
    assert all(decision["small"] <= decision["large"] - 0.5 for decision in decisions)
    assert service.delete("/v1/experiments/sizes").json() == {"done": True}
    gone = service.post("/v1/experiments/sizes/decisions", json=asked)
    assert (gone.status_code, gone.json()["error"]) == (409, "conflict")


def test_what_happens_is_streamed(service: httpx.Client) -> None:
    with service.stream("GET", f"{HERE}/stream") as stream:
        asked = service.post(f"{HERE}/decisions", json={"context": CUSTOMER}).json()
        for line in stream.iter_lines():
            if line.startswith("data: "):
                event = json.loads(line.removeprefix("data: "))
                break
    assert (event["event"], event["id"]) == ("asked", asked["id"])


def test_readers_of_streams_hold_nobody_up(service: httpx.Client) -> None:
    """More of them than there are threads."""
    with ExitStack() as readers:
        for _ in range(12):
            readers.enter_context(service.stream("GET", f"{HERE}/stream"))
        began = time.monotonic()
        assert service.post(f"{HERE}/decisions", json={"context": CUSTOMER}).status_code == 200
    assert time.monotonic() - began < 10.0, "a thread that waits for a reader does so for 15 s"


def test_an_administrator_steers(service: httpx.Client) -> None:
    assert service.post(f"{HERE}/pause").json() == {"done": True}
    until(lambda: service.get(HERE).json()["paused"])
    asked = service.post(f"{HERE}/decisions", json={"context": CUSTOMER}).json()
    assert (asked["role"], asked["decision"]) == ("incumbent", {"price": 4.0})
    service.post(f"{HERE}/resume")
    until(lambda: not service.get(HERE).json()["paused"])
    [bin_] = service.get(f"{HERE}/bins").json()["bins"]
    service.post(f"{HERE}/bins/{bin_['id']}/freeze")
    until(lambda: service.get(f"{HERE}/bins").json()["bins"][0]["frozen"])
    service.post(f"{HERE}/bins/{bin_['id']}/unfreeze")
    until(lambda: not service.get(f"{HERE}/bins").json()["bins"][0]["frozen"])
    refused = service.post(f"{HERE}/bins/99/freeze")
    assert refused.status_code == 404


def test_an_administrator_freezes_a_segment(service: httpx.Client) -> None:
    customer, body = {"age": 70, "income": 52_000}, {"segment": {"age": [60, 95]}}
    path = f"{HERE}/recommendation?age=70&income=52000"
    best = service.get(path).json()["decision"]
    done = service.post(f"{HERE}/freeze", json=body)
    assert done.status_code == 200, done.text
    segment = done.json()["segment"]
    assert segment["segment"] == {"age": [60.0, 90.0]}
    assert segment["text"].startswith("age 60 to 90, since 20")  # a date
    until(lambda: service.get(HERE).json()["frozen"]["segments"])
    [kept] = service.get(HERE).json()["frozen"]["segments"]
    assert kept["segment"] == segment["segment"]
    asked = service.post(f"{HERE}/decisions", json={"context": customer}).json()
    if asked["role"] != "incumbent":
        assert (asked["role"], asked["decision"]) == ("best", best)
    why = service.get(f"{HERE}/explain/{asked['id']}").json()
    assert why["segment"]["where"] == segment["segment"]
    assert service.get(path).json()["decision"] == best
    again = service.post(f"{HERE}/freeze", json=body)
    assert (again.status_code, again.json()["error"]) == (409, "segment-conflict")
    assert again.json()["field"] == "segment"
    service.post(f"{HERE}/unfreeze", json=body)
    until(lambda: not service.get(HERE).json()["frozen"]["segments"])
    assert service.post(f"{HERE}/unfreeze", json=body).status_code == 409


BAD: list[tuple[str, str, Any, int]] = [
    ("PUT", HERE, PRICES | {"options": {"reach": 0.3}}, 409),
    ("PUT", "/v1/experiments/other", PRICES | {"policy": "static-kwsa"}, 422),
    ("PUT", "/v1/experiments/other", PRICES | {"options": {"rng": 1}}, 422),
    ("PUT", "/v1/experiments/other", PRICES | {"more": 1}, 400),
    ("PUT", "/v1/experiments/other", PRICES | {"decision": SIZES | {"rows": ["small <="]}}, 422),
    (
        "PUT",
        "/v1/experiments/other",
        PRICES | {"decision": SIZES | {"rows": ["small >= 10"]}},
        422,
    ),
    ("PUT", "/v1/experiments/" + "x" * 101, PRICES, 422),
    ("POST", f"{HERE}/decisions", {}, 422),
    ("POST", f"{HERE}/decisions", {"context": {"age": 37}}, 422),
    ("POST", f"{HERE}/decisions", {"context": {"age": False, "income": 1}}, 400),
    ("POST", f"{HERE}/decisions", {"context": CUSTOMER, "within": {"price": [5, 4]}}, 422),
    ("POST", f"{HERE}/decisions", {"context": CUSTOMER, "key": ""}, 400),
    ("POST", f"{HERE}/decisions", {"contexts": [CUSTOMER], "keys": ["a", "b"]}, 422),
    ("POST", f"{HERE}/payoffs", {"id": "1", "payoff": 1}, 400),
    ("POST", f"{HERE}/payoffs", {"payoff": 1}, 422),
    ("POST", "/v1/experiments/nobodys/decisions", {"context": CUSTOMER}, 404),
    ("GET", f"{HERE}/events?after=-1", None, 422),
    ("GET", f"{HERE}/recommendation?age=much&income=1", None, 422),
    ("GET", "/v2", None, 404),
    ("DELETE", "/v1/experiments", None, 405),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), BAD)
def test_bad_requests_get_one_line_and_change_nothing(
    service: httpx.Client, method: str, path: str, body: Any, status: int
) -> None:
    before = service.get(HERE).json()["events"]
    answer = service.request(method, path, json=body)
    assert answer.status_code == status, answer.text
    assert set(answer.json()) <= {"error", "message", "field"}
    assert "\n" not in answer.json()["message"]
    assert service.get(HERE).json()["events"] == before


def test_bodies_that_are_no_json_or_too_large_are_refused(service: httpx.Client) -> None:
    json_ = {"content-type": "application/json"}
    for content, headers, status in (
        (b"{", json_, 400),
        (b'{"context": [NaN, 1]}', json_, 400),
        (b'{"context": [37, 1]}', {"content-type": "text/plain"}, 400),
        (b'{"context": [37, 1]}', {"content-type": "Application/JSON; charset=utf-8"}, 200),
        (b" " * 2_000_000, json_, 413),
    ):
        answer = service.post(f"{HERE}/decisions", content=content, headers=headers)
        assert answer.status_code == status


def test_the_openapi_page_describes_what_there_is(service: httpx.Client) -> None:
    page = service.get("/openapi.json").json()
    assert page["openapi"] == "3.1.0"
    assert set(page["paths"][f"{HERE.replace('prices', '{name}')}/decisions"]) == {"post"}
    assert openapi([])["paths"] == {}
    content = page["paths"][f"{HERE.replace('prices', '{name}')}/decisions"]["post"]["responses"]
    schema = content["200"]["content"]["application/json"]["schema"]
    named = [one["$ref"].rpartition("/")[2] for one in schema["anyOf"]]
    assert named == ["Answer", "Answers"]


def test_tokens_let_in_who_may(tmp_path: Path) -> None:
    where = tmp_path / "shop.db"
    with closing(open_store(where)) as store:
        tokens = {scope: issue(store, scope, scope) for scope in ("read", "decide", "admin")}
    with Server(where) as server:

        def tried(scope: str | None, method: str, path: str, body: Any = None) -> int:
            headers = (
                {} if scope is None else {"authorization": f"Bearer {tokens.get(scope, scope)}"}
            )
            return server.client.request(method, path, json=body, headers=headers).status_code

        assert tried(None, "PUT", HERE, PRICES) == tried("guessed", "PUT", HERE, PRICES) == 401
        assert tried("read", "PUT", HERE, PRICES) == tried("decide", "PUT", HERE, PRICES) == 403
        assert tried("admin", "PUT", HERE, PRICES) == 201
        asked = {"context": CUSTOMER}
        assert tried("read", "POST", f"{HERE}/decisions", asked) == 403
        assert tried("decide", "POST", f"{HERE}/decisions", asked) == 200
        assert tried("read", "GET", HERE) == 200
        assert tried(None, "GET", HERE) == 401
        assert tried(None, "GET", "/healthz") == 200
        with closing(open_store(where)) as store:
            store.revoke_token("decide")
        until(lambda: tried("decide", "POST", f"{HERE}/decisions", asked) == 401)
        with closing(open_store(where)) as store:
            for name in ("read", "admin"):
                store.revoke_token(name)
        until(lambda: tried("admin", "GET", HERE) == 401)
        assert tried(None, "GET", HERE) == 401, "with the last token the door stays shut"
        log = server.stop()
    assert all(token not in log for token in tokens.values())
    assert "52000" not in log, "contexts are not logged"


def test_what_others_can_reach_needs_tokens(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "continuarm", "serve", "--store", str(tmp_path / "shop.db")]
    done = subprocess.run([*command, "--host", "0.0.0.0"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "without tokens a server listens on loopback" in done.stderr


def test_two_servers_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    """Decisions and payoffs through two servers on one file, one of them killed at a time."""
    where, waiting = tmp_path / "shop.db", list[str]()
    acknowledged: dict[str, set[str]] = {"asked": set(), "told": set()}
    servers = [Server(where).ready(), Server(where).ready()]
    assert servers[0].client.put(HERE, json=PRICES).status_code == 201
    for round_ in range(2):
        for k in range(20):
            client = servers[(round_ + k) % 2].client
            asked = client.post(f"{HERE}/decisions", json={"contexts": [CUSTOMER] * 3}).json()
            ids = [answer["id"] for answer in asked["decisions"]]
            acknowledged["asked"] |= set(ids)
            waiting += ids
            told = [{"id": waiting.pop(0), "payoff": 1.5} for _ in range(2)]
            closed = client.post(f"{HERE}/payoffs", json={"payoffs": told}).json()["closed"]
            acknowledged["told"] |= {one["id"] for one in closed if one["done"]}
        killed = servers.pop(0)
        killed.stop(signal.SIGKILL)
        servers.append(Server(where).ready())
    for server in servers:
        server.stop()
    with closing(open_store(where)) as store:
        records = store.read("prices", 0, 10**6)
        assert acknowledged["asked"] <= {record.opens for record in records}
        assert acknowledged["told"] == {r.closes for r in records if r.kind == "told"}
        policy = SharedPolicy(store, "prices").policy()
    assert policy.stats().asked == len(acknowledged["asked"])
    assert policy.stats().told == len(acknowledged["told"])
