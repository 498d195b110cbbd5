"""Verbs that steer, over HTTP: two servers on one ledger, and what is acknowledged holds."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from continuarm.errors import InputError, SegmentConflictError
from continuarm.ledger import SharedPolicy
from continuarm.ledger.desk import Desk
from continuarm.ledger.entries import entry_of
from continuarm.ledger.log_learning import LogLearning
from continuarm.live import checked_events, events
from continuarm.service import running
from continuarm.service.running import Running
from continuarm.store import Store, open_store
from tests.service import HERE, PRICES, served, until

VERBS = ("freeze", "freeze", "unfreeze", "unfreeze", "freeze", "unfreeze")
SEGMENT = {"segment": {"age": [30, 40]}}
LOG = {"columns": {"age": [20.0, 50.0], "income": [1.0, 2.0], "price": [2, 3], "payoff": [1, 2]}}


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "shop.db")
    address: str = request.getfixturevalue("server").fresh("steering")
    return address


@contextmanager
def _two(where: str | Path) -> Iterator[tuple[httpx.Client, httpx.Client, Store]]:
    with closing(open_store(where)) as one, closing(open_store(where)) as two:
        with served(one) as first, served(two) as second:
            assert first.put(HERE, json=PRICES).status_code == 201
            assert second.get(HERE).status_code == 200
            yield first, second, one


def _is_paused(client: httpx.Client) -> bool:
    paused: bool = client.get(HERE).json()["paused"]
    return paused


def _frozen(client: httpx.Client) -> list[Any]:
    frozen: list[Any] = client.get(HERE).json()["frozen"]["segments"]
    return frozen


def _follow_by_themselves_no_more(patch: pytest.MonkeyPatch) -> None:
    """As if their followers came too late every time."""
    patch.setattr(Running, "is_current", property(lambda one: True))


def test_what_one_server_steers_the_other_knows_at_its_next_verb(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _two(where) as (one, two, store):
        assert one.post(f"{HERE}/pause").status_code == 200
        until(lambda: _is_paused(two))
        _follow_by_themselves_no_more(monkeypatch)
        for _ in range(3):
            assert one.post(f"{HERE}/resume").status_code == 200
            assert two.post(f"{HERE}/pause").status_code == 200
            assert SharedPolicy(store, "prices").policy().paused
            assert two.post(f"{HERE}/resume").status_code == 200
            assert one.post(f"{HERE}/pause").status_code == 200
            assert SharedPolicy(store, "prices").policy().paused
        for _ in range(3):
            statuses = [
                client.post(f"{HERE}/{verb}", json=SEGMENT).status_code
                for verb, client in zip(VERBS, (one, two, two, one, one, two), strict=True)
            ]
            assert statuses == [200, 409, 200, 409, 200, 200]
            assert SharedPolicy(store, "prices").frozen == []


def test_a_pause_that_holds_already_is_written_once() -> None:
    with closing(open_store(":memory:")) as store, served(store) as client:
        client.put(HERE, json=PRICES)
        for _ in range(3):
            assert client.post(f"{HERE}/pause").status_code == 200
        assert [r.kind for r in store.read("prices", 0)].count("paused") == 1


def _quicker(patch: pytest.MonkeyPatch, store: Store, event: events.Event) -> None:
    """Somebody else steers in the moment after a verb was found to be right."""
    steered = Desk.steered

    def overtaken(desk: Desk, *given: Any, **options: Any) -> Any:
        found = steered(desk, *given, **options)
        store.append("prices", [entry_of(event)])
        return found

    patch.setattr(Desk, "steered", overtaken)


QUICKER = [
    ("freeze", events.SegmentFrozen({"age": [30.0, 40.0]}), 409, SegmentConflictError),
    ("unfreeze", events.SegmentUnfrozen({"age": [30.0, 40.0]}), 409, SegmentConflictError),
    ("freeze", events.SegmentFrozen({"age": [20.0, 30.0]}), 422, InputError),
]


@pytest.mark.parametrize(("verb", "event", "status", "error"), QUICKER)
def test_a_verb_that_was_overtaken_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    event: events.Event,
    status: int,
    error: type[Exception],
) -> None:
    monkeypatch.setattr(checked_events, "MOST", 1)
    with _two(tmp_path / "shop.db") as (one, two, store):
        shared = SharedPolicy(store, "prices")
        if verb == "unfreeze":
            shared.freeze({"age": (30, 40)})
        with monkeypatch.context() as patch:
            _quicker(patch, store, event)
            refused = two.post(f"{HERE}/{verb}", json=SEGMENT)
        assert (refused.status_code, refused.json()["field"]) == (status, "segment"), refused.text
        frozen = SharedPolicy(store, "prices").frozen
        assert len(frozen) == (verb == "freeze")
        until(lambda: len(_frozen(one)) == len(_frozen(two)) == len(frozen))
        if verb == "unfreeze":
            shared.freeze({"age": (30, 40)})
        else:
            shared.unfreeze(frozen[0])
        with monkeypatch.context() as patch:
            _quicker(patch, store, event)
            with pytest.raises(error):
                getattr(shared, verb)({"age": (30, 40)})


def test_of_many_who_freeze_at_once_no_more_are_acknowledged_than_freeze(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checked_events, "MOST", 5)
    with _two(tmp_path / "shop.db") as (one, two, store), ThreadPoolExecutor(16) as threads:
        bodies = [{"segment": {"age": [20 + k // 2, 60]}} for k in range(16)]
        found = threads.map(
            lambda k: (one, two)[k % 2].post(f"{HERE}/freeze", json=bodies[k]), range(16)
        )
        statuses = [answer.status_code for answer in found]
        assert statuses.count(200) == 5
        assert set(statuses) <= {200, 409, 422}
        assert len(SharedPolicy(store, "prices").frozen) == 5


@contextmanager
def _learning(client: httpx.Client, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """A log is learned meanwhile."""
    begun, goes_on, learn = Event(), Event(), LogLearning.learn

    def slowly(learning: LogLearning) -> None:
        begun.set()
        goes_on.wait(30.0)
        learn(learning)

    patch.setattr(LogLearning, "learn", slowly)
    with ThreadPoolExecutor(1) as threads:
        learned = threads.submit(client.post, f"{HERE}/log", json=LOG)
        try:
            assert begun.wait(30.0)
            yield
        finally:
            goes_on.set()
        assert learned.result().status_code == 200


def test_while_a_log_is_learned_the_last_of_pause_and_resume_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with closing(open_store(":memory:")) as store, served(store) as client:
        client.put(HERE, json=PRICES)
        assert client.post(f"{HERE}/pause").status_code == 200
        with _learning(client, monkeypatch):
            for verb in ("resume", "pause"):  # at once: nobody waits with a pause
                assert client.post(f"{HERE}/{verb}").status_code == 200
            assert client.put(HERE, json=PRICES).status_code == 200  # it changes nothing
        kinds = [record.kind for record in store.read("prices", 0)]
        assert kinds[-4:] == ["paused", "learned-from-log", "resumed", "paused"]
        assert SharedPolicy(store, "prices").policy().paused
        until(lambda: _is_paused(client))


def test_other_verbs_wait_for_a_log_though_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_store(":memory:")) as store, served(store) as client:
        client.put(HERE, json=PRICES)
        freeze = partial(client.post, f"{HERE}/freeze", json=SEGMENT)
        with ThreadPoolExecutor(1) as threads:
            with _learning(client, monkeypatch):
                monkeypatch.setattr(running, "LEARNING", 0.1)
                assert freeze().status_code == 503
                changed = PRICES | {"options": PRICES["options"] | {"share": 0.2}}  # type: ignore[operator]
                assert client.put(HERE, json=changed).status_code == 503
                monkeypatch.setattr(running, "LEARNING", 30.0)
                waiting = threads.submit(freeze)
            assert waiting.result().status_code == 200
        assert len(_frozen(client)) == 1
