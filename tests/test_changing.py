"""Options that change in a running policy, and experiments that succeed others."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.errors import (
    ExperimentConflictError,
    ExpiredDecisionError,
    InputError,
    SettingsError,
    UnavailableError,
    UnknownExperimentError,
)
from continuarm.ledger import share
from continuarm.ledger.replaying import replay
from continuarm.live import events
from continuarm.service.running import Running
from continuarm.store import Store, open_store
from tests.serving import served

AGE = ca.Box([18.0], [90.0], names=["age"])
PRICE = ca.Box([1.0], [9.0], names=["price"])
HERE = "/v1/experiments/prices"


def new(**options: Any) -> ca.Policy:
    return ca.SurfaceSampling(AGE, PRICE, rng=1, **options)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "shop.db")) as opened:
        yield opened


def test_options_change_from_now_on_and_are_saved_and_replayed(tmp_path: Path) -> None:
    policy = new(ttl=50, ttl_seconds=100.0, share=0.2, max_move=2.0, missing=0.0)
    beginning, happened = policy.snapshot(), list[events.Event]()
    policy.listen(happened.append)
    waiting = [policy.ask([20.0 + k], now=10.0) for k in range(8)]
    for decision in waiting[:4]:
        policy.tell(decision, 1.0)
    policy.change(share=0.5, max_move={"price": 0.5})
    assert (policy.share, policy.ttl, policy.ttl_seconds) == (0.5, 50, 100.0)
    assert policy.uplift().counted == 0, "the comparison begins anew"
    policy.change(ttl=4)
    assert policy.expire(now=10.0) == 5, "open decisions have the new time to live"
    policy.change(ttl_seconds=5.0, ttl=None)
    policy.ask([30.0], now=11.0)
    assert policy.expire(now=16.0) > 0
    with pytest.raises(ExpiredDecisionError):
        policy.tell(policy.ask([30.0], now=17.0).id - 1, 1.0)
    policy.change(share=0.5)  # it is
    assert sum(isinstance(event, events.OptionsChanged) for event in happened) == 3
    again = ca.Policy.from_snapshot(beginning)
    for event in happened:
        again.apply(events.from_plain(json.loads(json.dumps(events.to_plain(event)))))
    assert again.snapshot() == policy.snapshot()
    policy.save(tmp_path / "shop")
    loaded = ca.load(tmp_path / "shop")
    assert loaded.snapshot() == policy.snapshot()
    for other in (policy, loaded):
        other.change(ttl=3, max_move=0.25)
        decision = other.ask([40.0], now=18.0)
        assert abs(decision.value[0] - 5.0) <= 0.25 or decision.role == "incumbent"
    assert loaded.snapshot() == policy.snapshot()


def test_a_time_to_live_may_begin_later_and_end() -> None:
    policy = new(ttl=None)
    for k in range(5):
        policy.ask([20.0 + k])
    policy.change(ttl=2)
    assert policy.expire() == 4
    policy.change(ttl=None)
    for k in range(5):
        policy.ask([20.0 + k])
    assert policy.expire() == 0
    assert policy.stats()[:5] == (10, 0, 6, 0, 4)


@pytest.mark.parametrize(
    ("begins", "options", "rule"),
    [
        ({}, {}, "must be given to change them"),
        ({}, {"reach": 0.3}, "must be given to change them"),
        ({}, {"ttl": 0}, "`ttl`"),
        ({}, {"share": 1.5}, "`share`"),
        ({}, {"share": float("nan")}, "`0 <= share`"),
        ({}, {"ttl_seconds": 60.0}, "`ttl_seconds` is there from the beginning or never"),
        ({"ttl_seconds": 60.0}, {"ttl_seconds": None}, "from the beginning or never"),
        ({"ttl_seconds": 60.0}, {"ttl_seconds": -1.0}, "`0 < ttl_seconds`"),
        ({}, {"max_move": 0.5}, "`max_move` is there from the beginning or never"),
        ({"max_move": 0.5}, {"max_move": -1.0}, "`max_move` must be a number"),
        ({"ttl": 9, "missing": 0.0}, {"ttl": None}, "is needed with `missing`"),
    ],
)
def test_options_that_cannot_be_are_refused_and_change_nothing(
    begins: dict[str, Any], options: dict[str, Any], rule: str, store: Store
) -> None:
    policy, shared = new(**begins), share(new(**begins), store, "prices")
    before, head = policy.snapshot(), store.experiment("prices").head
    for verb in (policy.change, shared.change):
        with pytest.raises(SettingsError, match=rule):
            verb(**options)
    assert policy.snapshot() == before
    assert store.experiment("prices").head == head


def test_an_event_that_somebody_else_wrote_is_checked() -> None:
    policy = new(max_move=0.5)
    good = events.OptionsChanged(10, None, 0.1, np.array([0.5]))
    for bad in (
        good._replace(ttl=-1),
        good._replace(share=float("nan")),
        good._replace(max_move=np.array([np.nan])),
        good._replace(max_move=np.array([1.0, 2.0])),
        good._replace(max_move=None),
        good._replace(ttl_seconds=1.0),
    ):
        with pytest.raises((InputError, SettingsError)):
            policy.apply(bad)
    policy.apply(good)
    assert (policy.ttl, policy.share) == (10, 0.1)


def test_a_change_binds_everywhere_and_replays(store: Store) -> None:
    one, two = share(new(ttl=100), store, "prices"), share(new(ttl=7), store, "prices")
    decisions = [one.ask([20.0 + k]) for k in range(6)]
    two.change(ttl=3, share=0.4)
    one.ask([30.0])
    with pytest.raises(ExpiredDecisionError):
        two.tell(decisions[0], 1.0)
    for k in range(20):
        two.tell(one.ask([20.0 + k]), 1.0)
    assert {shared.policy().share for shared in (one, two)} == {0.4}
    assert one.policy().snapshot() == two.policy().snapshot()
    assert one.policy().uplift().counted > 5
    assert replay(store, "prices").difference is None


PRICES: dict[str, Any] = {
    "context": {"low": [18.0], "high": [90.0], "names": ["age"]},
    "decision": {"low": [1.0], "high": [9.0], "names": ["price"]},
    "options": {"ttl": 1000, "max_move": 1.0},
}


def test_a_put_changes_options_and_other_boxes_are_a_conflict_that_names_the_way(
    tmp_path: Path,
) -> None:
    wider = {**PRICES, "decision": {"low": [0.5], "high": [5.0], "names": ["price"]}}
    with served(open_store(tmp_path / "shop.db")) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        options = {"ttl": 500, "max_move": [0.5], "share": 0.3}
        for body in (PRICES, {**PRICES, "options": options}, {**PRICES, "options": options}):
            assert client.put(HERE, json=body).status_code == 200
        assert client.get(f"{HERE}/events?after=0").text.count("options-changed") == 1
        paid = 0
        for k in range(30):
            context = {"context": {"age": 20.0 + k}}
            answer = client.post(f"{HERE}/decisions", json=context).json()
            assert abs(answer["decision"]["price"] - 5.0) <= 0.5
            paid += answer["decision"]["price"] <= 5.0
            payoff = {"id": answer["id"], "payoff": 1.0}
            assert client.post(f"{HERE}/payoffs", json=payoff).status_code == 200
        refused = client.put(HERE, json=wider)
        assert refused.status_code == 409
        assert "with `after` 'prices'" in refused.json()["message"]
        unknown = client.put(f"{HERE}-2", json={**wider, "after": "nobody's"})
        assert unknown.status_code == 404
        for status in (201, 200):
            made = client.put(f"{HERE}-2", json={**wider, "after": "prices"})
            assert made.status_code == status, made.text
        [began] = client.get(f"{HERE}-2/events?after=0").text.splitlines()
        assert (json.loads(began)["learned"], json.loads(began)["left_out"]) == (paid, 30 - paid)


def test_a_successor_learns_the_payoffs_of_its_predecessor(store: Store) -> None:
    before = share(new(ttl=30, missing=0.5), store, "prices")
    rows = []
    for k in range(60):
        decision = before.ask([18.0 + 7.0 * k % 72.0])
        if k % 5:
            payoff = 3.0 - (decision.value[0] - 0.05 * decision.context[0]) ** 2
            value = [decision.value[0] + 0.1] if k % 7 == 0 else None
            before.tell(decision, payoff, value=value)
            rows.append((decision.context[0], (value or decision.value)[0], payoff))
    policy = ca.SurfaceSampling(
        ca.Box([18.0], [60.0], names=["age"]), ca.Box([2.0], [8.0], names=["price"]), rng=2
    )
    heir = share(policy, store, "prices-2", after="prices")
    [began] = store.read("prices-2", 0)
    said = json.loads(began.body)
    silent = sum(r.kind == "expired" for r in store.read("prices", 0))
    assert said["learned"] + said["left_out"] == len(rows) + silent > len(rows)
    inside = [row for row in rows if row[0] <= 60.0 and 2.0 <= row[1] <= 8.0]
    assert len(inside) <= said["learned"] < len(rows)
    assert heir.policy().stats().payoffs_per_bin == [said["learned"]]
    assert policy.stats().payoffs_per_bin == [], "the policy that was given is as it was"
    assert share(policy, store, "prices-2", after="prices").policy().snapshot() == (
        heir.policy().snapshot()
    )
    heir.tell(heir.ask([30.0]), 1.0)
    assert replay(store, "prices-2").difference is None
    other = ca.SurfaceSampling(AGE, ca.Box([1.0], [9.0], names=["fee"]))
    with pytest.raises(SettingsError, match="the coordinates of its predecessor"):
        share(other, store, "prices-3", after="prices")
    with pytest.raises(UnknownExperimentError):
        share(policy, store, "prices-4", after="nobody's")
    with pytest.raises(ExperimentConflictError, match="a successor learns"):
        share(policy, store, "prices")


def test_a_server_too_many_events_behind_answers_503_until_it_has_caught_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = share(new(), store, "prices")
    running = Running(store, "prices", 1000.0, 5)
    try:
        running.refuse_if_behind()
        with monkeypatch.context() as slow:
            slow.setattr(running.replica, "fold_read", lambda records: 0)  # it hears, and is slow
            for _ in range(4):
                shared.tell(shared.ask([30.0]), 1.0)
            until = time.monotonic() + 30.0
            while running.behind < 8 and time.monotonic() < until:
                time.sleep(0.01)
            assert (running.behind, running.is_behind) == (8, True)
            with pytest.raises(UnavailableError, match=r"within 1000 s and 5 events .* 8 events"):
                running.refuse_if_behind()
        while running.is_behind and time.monotonic() < until:
            time.sleep(0.01)
        running.refuse_if_behind()
        assert running.replica.position == store.experiment("prices").head
    finally:
        running.close()
