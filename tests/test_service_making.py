"""Decisions that take long: others are answered meanwhile, and a request has a limit of time."""

import asyncio
import json
import socket
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

from continuarm.ledger.desk import Desk, Written
from continuarm.ledger.replica import Replica
from continuarm.live.decision import Decision
from continuarm.live.life import Life
from continuarm.service import deciding, making
from continuarm.service.experiments import Experiments
from continuarm.service.groups import Waiting
from continuarm.service.making import Making, Wish
from continuarm.service.messages import Edges, NewExperiment
from continuarm.service.refusals import TooBusyError
from continuarm.service.running import Running
from continuarm.store import open_store
from continuarm.store.records import Entry
from tests.service import CUSTOMER, HERE, PRICES, SIZES, served, until

OTHER = "/v1/experiments/other"
BATCH = {"contexts": [CUSTOMER] * 20}
WAIT = 15.0  # seconds after which a server that is held up goes on, and the test fails


class Slow:
    """Work on "prices" that lasts until it is told to go on."""

    def __init__(self, patch: pytest.MonkeyPatch, kind: type, name: str) -> None:
        self.begun, self.goes_on, self.calls = Event(), Event(), 0
        self.was_late = False
        work = getattr(kind, name)

        def slowly(one: Any, *given: Any, **options: Any) -> Any:
            if getattr(getattr(one, "replica", None), "name", "prices") == "prices":
                self.calls += 1
                self.begun.set()
                if not self.goes_on.wait(WAIT):
                    self.was_late = True
                    self.goes_on.set()
            return work(one, *given, **options)

        patch.setattr(kind, name, slowly)


@contextmanager
def _under_way(client: httpx.Client, slow: Slow, request: httpx.Request) -> Iterator[Any]:
    """A request whose work has begun, and that work goes on at the end."""
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(client.send, request)
        try:
            assert slow.begun.wait(WAIT)
            yield found
        finally:
            slow.goes_on.set()


@contextmanager
def _running(policy: str = "recommended", **options: Any) -> Iterator[Running]:
    with closing(open_store(":memory:")) as store:
        box = Edges([0.0], [1.0])
        new = NewExperiment(box, box, policy=policy, options=options)
        Experiments(store).create("prices", new)
        running = Running(store, "prices", 5.0)
        try:
            yield running
        finally:
            running.close()


def _batch(running: Running, count: int) -> Any:
    return running.ask_all([[0.5]] * count, None, [None] * count)


@pytest.mark.parametrize("asked", [BATCH, {"context": CUSTOMER}])
def test_others_are_answered_while_a_decision_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    path = tmp_path / "shop.db"
    with (
        closing(open_store(path)) as store,
        closing(open_store(path)) as elsewhere,
        served(store) as client,
    ):
        for name in (HERE, OTHER):
            assert client.put(name, json=PRICES).status_code == 201
        point = np.array([37.0, 52000.0])
        anothers = Desk(Replica(elsewhere, "prices")).asked(point, None, None).entry
        slow = Slow(monkeypatch, Desk, "asked")
        request = client.build_request("POST", f"{HERE}/decisions", json=asked)
        with _under_way(client, slow, request) as found:
            assert client.get("/healthz").status_code == 200
            body = {"context": CUSTOMER}
            assert client.post(f"{OTHER}/decisions", json=body).status_code == 200
            elsewhere.append("prices", [anothers])
            until(lambda: client.get(HERE).json()["counts"]["decisions"] == 1)
            assert not slow.was_late
            assert not found.done()
        assert found.result().status_code == 200
        first = store.read("prices", 2)[0]
        assert json.loads(first.body)["folded"] == 1, "it was made before the other's was known"


def test_others_are_answered_while_a_recommendation_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with closing(open_store(":memory:")) as store, served(store) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        slow = Slow(monkeypatch, Life, "recommend")
        path = f"{HERE}/recommendation"
        request = client.build_request("GET", path, params=CUSTOMER)
        with _under_way(client, slow, request) as found:
            assert client.get("/healthz").status_code == 200
            assert not slow.was_late
            assert not found.done()
        assert found.result().status_code == 200


def test_what_nobody_waits_for_is_neither_decided_nor_appended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with closing(open_store(":memory:")) as store, served(store) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        slow = Slow(monkeypatch, Desk, "asked")
        body = json.dumps(BATCH).encode()
        head = f"POST {HERE}/decisions HTTP/1.1\r\nhost: localhost\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        where = client.base_url.host, client.base_url.port
        with closing(socket.create_connection(where, 30.0)) as plain:
            plain.sendall(head.encode() + body)
            assert slow.begun.wait(WAIT)
        until(lambda: 'status="499"' in client.get("/metrics").text)
        assert not slow.was_late
        slow.goes_on.set()
        asked = client.post(f"{HERE}/decisions", json={"context": CUSTOMER})
        assert asked.status_code == 200
        assert slow.calls == 2, "one that was under way, and that of the next request"
        assert store.experiment("prices").head == 2


def test_a_request_whose_decisions_take_too_long_is_refused_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(making, "SECONDS", 0.0)
    monkeypatch.setattr(making, "SLICE_ASIDE", 0.0)
    with closing(open_store(":memory:")) as store, served(store) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        monkeypatch.setattr(Making, "_notice", lambda *_: None)  # all are made aside
        late = client.post(f"{HERE}/decisions", json=BATCH)
        assert (late.status_code, late.json()["error"]) == (503, "busy")
        assert "take at most 0 s here" in late.json()["message"]
        assert late.headers["retry-after"] == "1"
        assert store.experiment("prices").head == 1
        alone = client.post(f"{HERE}/decisions", json={"context": CUSTOMER})
        assert alone.status_code == 200, "it is made already"


def test_a_payoff_that_waited_behind_slow_decisions_is_not_late() -> None:
    async def late_ones() -> list[bool]:
        loop = asyncio.get_running_loop()
        waiting = [Waiting(loop.create_future(), time.monotonic() - 1e6) for _ in range(2)]
        wish = Wish(np.zeros(1), None, None)
        making._refuse_late([wish, Written(Entry("told", "{}"))], waiting)
        waiting[0].done.exception()
        return [one.done.done() for one in waiting]

    assert asyncio.run(late_ones()) == [True, False]


def test_decisions_in_turn_have_the_same_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were made stay: each is appended before the next one is made."""
    settled = Running._settle_in_turn

    async def settles(one: Running, *given: Any) -> Any:
        found = await settled(one, *given)
        monkeypatch.setattr(making, "SECONDS", 0.0)
        return found

    monkeypatch.setattr(Running, "_settle_in_turn", settles)
    with _running("static-kwsa", horizon=100, step=0.5) as running:
        found = asyncio.run(_batch(running, 3))
        kinds = [type(one) for one in found]
        assert kinds == [Decision, TooBusyError, TooBusyError]


def test_requests_come_between_cheap_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "SLICE", 0.0)
    monkeypatch.setattr(Making, "_notice", lambda *_: None)
    with _running() as running:
        running._making.is_aside = False

        async def turns() -> int:
            asking, count = asyncio.ensure_future(_batch(running, 50)), 0
            while not asking.done():
                await asyncio.sleep(0.0)
                count += 1
            assert len(asking.result()) == 50
            return count

        assert asyncio.run(turns()) >= 50


def test_who_makes_decisions_is_chosen_by_how_long_they_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(making, "SLICE", 0.2)
    with _running() as running:
        asyncio.run(_batch(running, 1))  # what is done once may be slow
        running._making.is_aside, running._making._aside_until = True, 0.0
        asyncio.run(_batch(running, 1))
        assert not running._making.is_aside
        asked = Desk.asked

        def slowly(one: Desk, *given: Any, **options: Any) -> Any:
            end = time.thread_time() + 0.25
            while time.thread_time() < end:
                pass
            return asked(one, *given, **options)

        with monkeypatch.context() as patch:
            patch.setattr(Desk, "asked", slowly)
            asyncio.run(_batch(running, 1))
        assert running._making.is_aside
        asyncio.run(_batch(running, 1))
        assert running._making.is_aside, "a cheap one says little"


def test_a_batch_has_a_limit_on_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "MOST_NUMBERS", 41)
    with closing(open_store(":memory:")) as store, served(store) as client:
        assert (
            client.put(HERE, json=PRICES | {"decision": SIZES, "options": {}}).status_code == 201
        )
        assert client.post(f"{HERE}/decisions", json=BATCH).status_code == 200
        more = {"contexts": [CUSTOMER] * 21}
        refused = client.post(f"{HERE}/decisions", json=more)
        assert (refused.status_code, refused.json()["field"]) == (422, "contexts")
        assert "at most 41 numbers, which are 20 of 2, but got 21" in refused.json()["message"]
