"""What is seen of an experiment: enough to draw a page, by the numbers of the policy itself."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import continuarm as ca
from continuarm.ledger import SharedPolicy
from continuarm.plots import learned_table, payoff_table
from continuarm.store import open_store
from tests.service import CUSTOMER, HERE, PRICES, served, until

DECISIONS = 600
NEW = PRICES | {"options": {"ttl_seconds": 7200, "share": 0.3, "start": [4.0]}}
Shop = tuple[httpx.Client, ca.Policy]


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    """A service whose shop has sold a while, and the policy that its ledger folds to."""
    with closing(open_store(":memory:")) as store:
        with served(store) as client:
            assert client.put(HERE, json=NEW).status_code == 201
            _sell(client)
            client.post(f"{HERE}/decisions", json={"contexts": [CUSTOMER] * 3})
            until(lambda: client.get(HERE).json()["counts"]["open"] == 3)
            yield client, SharedPolicy(store, "prices").policy()


def _sell(client: httpx.Client) -> None:
    rng = np.random.default_rng(0)
    for _ in range(DECISIONS // 100):
        contexts = rng.uniform([18.0, 0.0], [90.0, 250_000.0], (100, 2))
        asked = client.post(f"{HERE}/decisions", json={"contexts": contexts.tolist()}).json()
        prices = np.array([answer["decision"]["price"] for answer in asked["decisions"]])
        best = 3.0 + contexts[:, 0] / 45.0
        paid = 4.0 - (prices - best) ** 2 + rng.normal(size=100)
        ids = [answer["id"] for answer in asked["decisions"]]
        told = [{"id": id_, "payoff": z} for id_, z in zip(ids, paid.tolist(), strict=True)]
        client.post(f"{HERE}/payoffs", json={"payoffs": told})
        until(lambda: client.get(HERE).json()["counts"]["open"] == 0)


def test_an_experiment_says_how_it_fares(shop: Shop) -> None:
    client, policy = shop
    until(lambda: client.get(HERE).json()["bins"] == len(policy.bins()))
    says = client.get(HERE).json()
    assert says == client.get("/v1/experiments").json()["experiments"][0]
    assert says["counts"] == {
        "decisions": DECISIONS + 3,
        "payoffs": DECISIONS,
        "open": 3,
        "late": 0,
        "lost": 0,
    }
    assert (says["paused"], says["archived"]) == (False, False)
    lately, beginning = says["payoff"]["lately"], says["payoff"]["beginning"]
    assert lately["mean"] > beginning["mean"]
    assert lately["payoffs"] >= DECISIONS / 8
    uplift = policy.uplift()
    assert uplift.per_decision is not None
    assert says["uplift"]["per_decision"] == uplift.per_decision._asdict()
    assert uplift.awaited is not None
    awaited = f"decision {uplift.awaited.id}"
    assert awaited in str(uplift)
    assert says["uplift"]["text"] == str(uplift).replace(
        awaited, f"decision {uplift.awaited.id:032x}"
    )
    assert says["context"]["names"] == ["age", "income"]
    assert says["decision"]["spacing"] == [0.05]
    assert says["options"]["start"] == {"constant": [4.0], "by_context": [[0.0, 0.0]]}
    assert (says["options"]["share"], says["options"]["ttl_seconds"]) == (0.3, 7200.0)


def test_the_diagnosis_is_that_of_the_policy(shop: Shop) -> None:
    client, policy = shop
    found, own = client.get(f"{HERE}/diagnosis").json(), policy.diagnose()
    assert found["text"] == str(own)
    assert found["unchecked"] == own.unchecked
    assert [(f["check"], f["level"], f["bins"]) for f in found["findings"]] == [
        (f.name, f.level, list(f.bins)) for f in own
    ]
    assert found["health"] == client.get(HERE).json()["health"]


def test_a_finding_is_the_health_of_an_experiment(shop: Shop) -> None:
    """Payoffs that rise to the edge of the box: a warning, with evidence and advice."""
    client, _ = shop
    there = "/v1/experiments/edge"
    new = {"context": {"low": [], "high": []}, "decision": PRICES["decision"]}
    assert client.put(there, json=new).status_code == 201
    for k in range(8):
        asked = client.post(f"{there}/decisions", json={"contexts": [[]] * 50}).json()["decisions"]
        told = [{"id": a["id"], "payoff": a["decision"]["price"]} for a in asked]
        client.post(f"{there}/payoffs", json={"payoffs": told})
        until(lambda k=k: client.get(there).json()["counts"]["payoffs"] == 50 * (k + 1))
    found = client.get(f"{there}/diagnosis").json()
    edge = next(f for f in found["findings"] if f["check"] == "decisions at the edge")
    assert edge["advice"]
    assert edge["evidence"] > 0.0
    assert client.get(there).json()["health"] == found["findings"][0]["level"] == found["health"]
    client.delete(there)
    names = [one["name"] for one in client.get("/v1/experiments").json()["experiments"]]
    assert names == ["prices"], "what is archived is not listed"


def test_bins_say_what_was_learned_in_their_middle(shop: Shop) -> None:
    client, policy = shop
    page = client.get(f"{HERE}/bins").json()
    assert page["count"] == len(policy.bins())
    for said, own in zip(page["bins"], policy.bins(), strict=True):
        known = policy.explain(0.5 * (own.low + own.high))
        assert (said["id"], said["visits"], said["payoffs"]) == (own.id, own.asked, own.told)
        assert (said["low"], said["high"]) == (own.low.tolist(), own.high.tolist())
        assert said["best"] == {"price": own.best[0]}
        assert said["error"] == {"price": known["peak_error"][0]}
        assert said["tried"] == {"price": [known["tried"][0][0], known["tried"][1][0]]}
        assert said["expected"] == pytest.approx(4.0, abs=1.0)


def test_many_bins_come_page_by_page(shop: Shop) -> None:
    client, _ = shop
    whole = client.get(f"{HERE}/bins").json()["bins"]
    pages, after = list[Any](), 0
    while after is not None:
        page = client.get(f"{HERE}/bins", params={"after": after, "most": 1}).json()
        assert len(page["bins"]) == 1
        pages, after = pages + page["bins"], page["next"]
    assert pages == whole
    assert client.get(f"{HERE}/bins", params={"most": 2001}).status_code == 422


def test_history_curve_and_payoff_are_those_of_the_figures(
    shop: Shop,
) -> None:
    client, policy = shop
    buckets = client.get(f"{HERE}/history").json()["buckets"]
    assert [tuple(b.values())[1:] for b in buckets] == [r[1:] for r in policy.history().rows]
    assert {b["whose"] for b in buckets} == {"ours", "incumbent"}
    curve = client.get(f"{HERE}/curve", params={"along": "age", "income": 9e4, "points": 7}).json()
    table = learned_table(policy, "age", {"income": 9e4}, 7)
    assert curve["held"] == {"income": 9e4}
    price = curve["decision"]["price"]
    columns = [curve["x"], price["learned"], price["peak"], price["error"]]
    columns += [price["today"], price["set_by"]]
    assert list(zip(*columns, strict=True)) == [(r[0], *r[2:]) for r in table.rows]
    paid = client.get(f"{HERE}/payoff", params={"over": "price", "age": 37}).json()
    middle = {"age": 37, "income": 125_000}
    rows = payoff_table(policy, middle, "price").rows
    names = ("x", "expected", "error", "tried", "allowed")
    assert list(zip(*(paid[name] for name in names), strict=True)) == list(rows)
    assert paid["context"] == middle
    assert paid["best"] == policy.recommend(middle)[0]
    assert paid["today"] == 4.0


@pytest.mark.parametrize(
    "query",
    [
        "curve?along=height",
        "payoff?over=age",
        "payoff?age=7",
        "curve?income=nan",
        "curve?points=0",
    ],
)
def test_bad_queries_get_one_line(shop: Shop, query: str) -> None:
    client, _ = shop
    refused = client.get(f"{HERE}/{query}")
    assert (refused.status_code, refused.json()["error"]) == (422, "invalid")


def test_an_experiment_without_a_share_has_no_uplift_and_nothing_to_show_yet() -> None:
    with closing(open_store(":memory:")) as store:
        with served(store) as client:
            new = PRICES | {"options": {}}
            says = client.put(HERE, json=new).json()
            assert says["uplift"] is None
            assert set(says["payoff"].values()) == {None}
            assert says["health"] == "good"
            assert client.get(f"{HERE}/payoff").json()["x"] == []
            assert client.get(f"{HERE}/history").json() == {"buckets": []}
            assert client.get(f"{HERE}/bins").json() == {"bins": [], "count": 0, "next": None}


def test_pages_of_a_walk_are_of_one_moment_and_a_new_walk_is_of_now() -> None:
    with closing(open_store(":memory:")) as store, served(store) as client:
        policy = ca.Policy(
            ca.Box([0], [1], names=["hour"]),
            ca.Box([0], [1], names=["bid"]),
            partition=ca.Grid(bins=4),
            learner=ca.ResponseSurface(),
            rng=0,
        )
        for x in (0.1, 0.4, 0.6):
            policy.tell(policy.ask([x]), 1.0)
        shared = ca.share(policy, store, "bids")
        path, walk = "/v1/experiments/bids/bins", {"most": 1}
        first = client.get(path, params=walk).json()
        shared.tell(shared.ask([0.9]), 1.0)
        until(lambda: client.get("/v1/experiments/bids").json()["counts"]["payoffs"] == 4)
        second = client.get(path, params=walk | {"after": first["next"]}).json()
        assert (first["count"], second["count"]) == (3, 3)
        last = client.get(path, params=walk | {"after": second["next"]}).json()
        assert (last["count"], last["next"]) == (3, None)
        again = client.get(path).json()
        assert (again["count"], len(again["bins"])) == (4, 4)


def test_a_policy_has_its_name_or_its_parts_and_a_payoff_its_name_and_unit() -> None:
    with closing(open_store(":memory:")) as store, served(store) as client:
        new = NEW | {"payoff": {"name": "profit", "unit": "$"}}
        assert client.put(HERE, json=new).status_code == 201
        assert client.put(HERE, json=new).status_code == 200
        assert client.put(HERE, json=NEW).status_code == 409, "the unit is part of it"
        says = client.get(HERE).json()
        assert says["policy"] == "recommended"
        assert (says["payoff"]["name"], says["payoff"]["unit"]) == ("profit", "$")
        options = {"memory": 500, "reach": 0.2}
        client.put("/v1/experiments/drifts", json=PRICES | {"options": options})
        says = client.get("/v1/experiments/drifts").json()
        assert says["policy"] == "recommended"
        assert (says["payoff"]["name"], says["payoff"]["unit"]) == (None, None)
        box = ca.Box([0], [1])
        parts = ca.Policy(box, box, partition=ca.Grid(bins=2), learner=ca.ResponseSurface())
        ca.share(parts, store, "parts")
        says = client.get("/v1/experiments/parts").json()
        assert says["policy"] == "Grid × ResponseSurface"
        wrong = client.put("/v1/experiments/wrong", json=PRICES | {"payoff": {"unit": ""}})
        assert (wrong.status_code, wrong.json()["field"]) == (400, "payoff.unit")


def test_the_beginning_stays_what_it_was(tmp_path: Path) -> None:
    """However many payoffs come later, and whichever server says it."""
    with closing(open_store(tmp_path / "shop.db")) as store:
        with served(store) as client:
            assert client.put(HERE, json=PRICES).status_code == 201
            for payoff in range(6):
                asked = client.post(f"{HERE}/decisions", json={"contexts": [CUSTOMER] * 100})
                told = [{"id": one["id"], "payoff": payoff} for one in asked.json()["decisions"]]
                client.post(f"{HERE}/payoffs", json={"payoffs": told})
                until(lambda p=payoff: _trend(client)["lately"]["mean"] > p - 1)
                beginning = {"payoffs": 100, "mean": 0.0, "error": 0.0}
                assert _trend(client)["beginning"] == beginning, payoff
        with closing(open_store(tmp_path / "shop.db")) as again, served(again) as client:
            assert _trend(client)["beginning"] == beginning


def _trend(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get(HERE).json()["payoff"]
    return found | {"lately": found["lately"] or {"mean": -2.0}}
