"""The client: a policy that lives in a service."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from socket import SHUT_RDWR, SHUT_WR, socket
from threading import Thread
from typing import Any, NamedTuple

import httpx
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest

import continuarm as ca
from continuarm.client.incumbent import KEYS, incumbent_of
from continuarm.errors import (
    AlreadyToldError,
    DeniedError,
    ExperimentConflictError,
    InputError,
    SegmentConflictError,
    SettingsError,
    UnavailableError,
    UnknownDecisionError,
)
from continuarm.live.segments import Segment
from continuarm.service.tokens import issue
from continuarm.store import open_store
from tests.service import CUSTOMER, HERE, PRICES, free_port, served, until


@pytest.fixture(scope="module")
def service() -> Iterator[httpx.Client]:
    with closing(open_store(":memory:")) as store, served(store) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        yield client


def sell(policy: Any) -> dict[str, Any]:
    """A script that knows nothing of where its policy is."""
    decision = policy.ask(CUSTOMER, within={"price": (3.0, 6.0)})
    policy.tell(decision, payoff=1.5)
    with pytest.raises(AlreadyToldError):
        policy.tell(decision, payoff=2.5)
    lost = policy.ask([37, 52_000])
    policy.forget(lost)
    with pytest.raises(InputError, match="age"):
        policy.ask({"age": 7, "income": 1})
    with pytest.raises(InputError, match="age"):
        policy.ask_many([[37.0, 1.0], [7.0, 1.0]])
    many = policy.ask_many({"age": [20, 30, 40], "income": [1e4, 2e4, 3e4]})
    policy.tell_many(many, [1.0, 2.0, 3.0])
    with pytest.raises(AlreadyToldError):
        policy.tell_many(many, [7.0, 8.0, 9.0])
    done = policy.ask(CUSTOMER)
    policy.tell(done, payoff=1.0, value=[4.5])
    policy.pause()
    until(lambda: policy.ask(CUSTOMER).role == "incumbent")
    policy.resume()
    until(lambda: policy.ask(CUSTOMER).role != "incumbent")
    segment = policy.freeze({"age": (30, 40), "income": [0, 300_000]})
    until(lambda: policy.ask(CUSTOMER).role in ("best", "incumbent"))
    assert [one.where for one in policy.frozen] == [segment.where]
    assert "age 30 to 40" in policy.explain(CUSTOMER)["text"]
    for wrong in ({"age": (40, 30)}, {"aeg": (30, 40)}, {"age": (30, np.nan)}, {}):
        with pytest.raises(InputError, match="`segment`"):
            policy.freeze(wrong)
    with pytest.raises(SegmentConflictError, match="age 30 to 40 and income 0 to 250,000 is"):
        policy.freeze(segment)
    policy.unfreeze(segment)
    until(lambda: not policy.frozen)
    with pytest.raises(SegmentConflictError):
        policy.unfreeze({"age": (30, 40)})
    assert "age 37" in policy.explain(CUSTOMER)["text"]
    best = policy.recommend(CUSTOMER)
    return {
        "names": decision.names,
        "context": decision.context.tolist(),
        "shapes": [decision.value.shape, many.values.shape, many.contexts.shape, best.shape],
        "inside": 3.0 <= decision.value[0] <= 6.0,
        "roles": len(many.roles),
    }


def test_a_script_moves_to_the_service_by_changing_one_line(service: httpx.Client) -> None:
    policy = ca.SurfaceSampling(
        ca.Box([18, 0], [90, 250_000], names=["age", "income"]),
        ca.Box([1], [9], names=["price"], spacing=0.05),
        start=[4.0],
        ttl_seconds=7200,
        share=0.1,
        rng=0,
    )
    alone = sell(policy)
    with ca.Client(str(service.base_url), "prices") as shared:
        assert sell(shared) == alone


def test_a_freeze_whose_answer_was_lost_is_made_again_without_harm(service: httpx.Client) -> None:
    with ca.Client(str(service.base_url), "prices") as policy, deaf(policy) as lost:
        lost.append("freeze")
        segment = policy.freeze({"income": (0, 10)})
        lost.append("unfreeze")
        policy.unfreeze(segment)
        assert lost == []
        until(lambda: not policy.frozen)


@contextmanager
def deaf(policy: ca.Client) -> Iterator[list[str]]:
    """Does not hear the first answer to each verb of the list that it gives."""
    lost, request = list[str](), policy._http.request

    def hear(**options: Any) -> httpx.Response:
        found = request(**options)
        verb = options["url"].rpartition("/")[2]
        if verb in lost:
            lost.remove(verb)
            raise httpx.ReadError("cut off")
        return found

    policy._http.request = hear  # type: ignore[method-assign, assignment]
    yield lost


def test_a_client_of_an_event_loop_freezes_too(service: httpx.Client) -> None:
    async def freeze() -> None:
        async with ca.AsyncClient(str(service.base_url), "prices") as policy:
            segment = await policy.freeze({"age": (50, 60)})
            assert segment.where == {"age": (50.0, 60.0)}
            for _ in range(100):
                if await policy.frozen:
                    break
            [found] = await policy.frozen
            assert isinstance(found, Segment)
            assert found.where == segment.where
            with pytest.raises(SegmentConflictError):
                await policy.freeze(segment)
            await policy.unfreeze(segment)
            with pytest.raises(InputError, match="is needed, but got 'three'"):
                await policy.freeze("three")  # type: ignore[call-overload]

    asyncio.run(freeze())


def test_a_client_freezes_a_bin_by_its_number(service: httpx.Client) -> None:
    with ca.Client(str(service.base_url), "prices") as policy:
        policy.tell(policy.ask(CUSTOMER), 1.0)
        until(lambda: service.get(f"{HERE}/bins").json()["bins"])
        number = service.get(f"{HERE}/bins").json()["bins"][0]["id"]
        policy.freeze(number)
        until(lambda: policy.frozen == [number])
        policy.unfreeze(number)
        until(lambda: policy.frozen == [])


def test_what_the_service_refuses_is_typed_and_names_its_field(service: httpx.Client) -> None:
    with ca.Client(str(service.base_url), "prices") as policy:
        with pytest.raises(InputError) as refused:
            policy.ask({"age": 7, "income": 1})
        assert refused.value.field == "context"
        with pytest.raises(UnknownDecisionError) as unknown:
            policy.explain(ca.Decision(5, np.zeros(2), np.ones(1), ("price",)))
        assert unknown.value.field == "id"


def test_a_token_that_does_not_reach_is_an_error_of_its_own() -> None:
    with closing(open_store(":memory:")) as store:
        token = issue(store, "page", "read")
        with served(store) as client:
            for given in (None, "guessed", token):
                with (
                    ca.Client(str(client.base_url), "prices", token=given) as policy,
                    pytest.raises(DeniedError, match="needed"),
                ):
                    policy.ask(CUSTOMER)


@contextmanager
def slow(target: int, seconds: float) -> Iterator[str]:
    """What passes requests on to a port, and lets answers wait as long as it says."""
    with socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(32)

        def pump(source: socket, sink: socket, wait: float) -> None:
            with suppress(OSError):
                while content := source.recv(65536):
                    time.sleep(wait)
                    sink.sendall(content)
            with suppress(OSError):
                sink.shutdown(SHUT_WR)

        def pass_on(one: socket) -> None:
            with one, socket() as other:
                other.connect(("127.0.0.1", target))
                there = Thread(target=pump, args=(one, other, 0.0), daemon=True)
                there.start()
                pump(other, one, seconds)
                there.join()

        def accept() -> None:
            while True:
                try:
                    one, _ = listening.accept()
                except OSError:
                    return
                Thread(target=pass_on, args=(one,), daemon=True).start()

        thread = Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(SHUT_RDWR)
        thread.join()


def test_a_client_answers_the_incumbent_when_the_service_is_slow_and_forgets_later(
    service: httpx.Client,
) -> None:
    """The service has decided; the shop did not wait; so nobody is taken for a lost sale."""
    port = service.base_url.port
    assert port is not None
    before = service.get(HERE).json()["counts"]
    with slow(port, 0.5) as address:
        with ca.Client(address, "prices", incumbent={"price": 4.0}, patience=0.1) as policy:
            began = time.monotonic()
            decision = policy.ask(CUSTOMER)
            assert time.monotonic() - began < 0.4
            assert (decision.role, decision.as_dict()) == ("incumbent", {"price": 4.0})
            policy.tell(decision, 1.0)  # nobody's
            policy.forget(decision)
    until(lambda: service.get(HERE).json()["counts"]["lost"] == before["lost"] + 1)
    after = service.get(HERE).json()["counts"]
    assert after["decisions"] == before["decisions"] + 1
    assert (after["open"], after["payoffs"]) == (before["open"], before["payoffs"])


def test_an_incumbent_may_follow_the_context_and_a_quick_service_is_not_replaced(
    service: httpx.Client,
) -> None:
    def today(context: Any) -> list[float]:
        return [2.0 + context["age"] / 37.0]

    away = f"http://127.0.0.1:{free_port()}"
    with ca.Client(away, "prices", incumbent=today, patience=0.05) as policy:
        first, second = policy.ask(CUSTOMER), policy.ask(CUSTOMER)
        assert first.value.tolist() == second.value.tolist() == [3.0]
        assert first.id != second.id
    with ca.Client(str(service.base_url), "prices", incumbent=today, patience=5.0) as policy:
        assert policy.ask(CUSTOMER).id > 0
        with pytest.raises(InputError):
            policy.ask({"age": 7, "income": 1})


def test_a_client_of_an_event_loop_answers_the_incumbent_too(service: httpx.Client) -> None:
    port = service.base_url.port
    assert port is not None
    before = service.get(HERE).json()["counts"]

    async def visit(address: str) -> None:
        options: dict[str, Any] = {"incumbent": [4.0], "patience": 0.1}
        async with ca.AsyncClient(address, "prices", **options) as policy:
            asked = await asyncio.gather(*(policy.ask(CUSTOMER) for _ in range(3)))
            assert {decision.role for decision in asked} == {"incumbent"}
            await policy.tell(asked[0], 1.0)
        async with ca.AsyncClient(str(service.base_url), "prices") as policy:
            many = await policy.ask_many([CUSTOMER] * 3)
            await policy.tell_many(many, [1.0, 2.0, 3.0])
            with pytest.raises(InputError):
                await policy.ask_many([CUSTOMER, {"age": 7, "income": 1}])

    with slow(port, 0.3) as address:
        asyncio.run(visit(address))
    until(lambda: service.get(HERE).json()["counts"]["lost"] == before["lost"] + 4)
    assert service.get(HERE).json()["counts"]["open"] == before["open"]


def test_a_key_that_was_answered_by_the_incumbent_has_the_same_answer_again(
    service: httpx.Client,
) -> None:
    """Previously the service's decision was given for it, and then forgotten in the background."""
    port = service.base_url.port
    assert port is not None
    before = counts_of(service)

    async def visit(address: str, options: dict[str, Any]) -> None:
        async with ca.AsyncClient(address, "prices", **options) as policy:
            asked = [await policy.ask(CUSTOMER, key=f"async {before['lost']}") for _ in range(2)]
            assert {decision.role for decision in asked} == {"incumbent"}

    with slow(port, 0.5) as address:
        options: dict[str, Any] = {"incumbent": [4.0], "patience": 0.1}
        with ca.Client(address, "prices", **options) as policy:
            asked = [policy.ask(CUSTOMER, key=f"visit {before['lost']}") for _ in range(2)]
            assert {decision.role for decision in asked} == {"incumbent"}
            assert policy._incumbent is not None
            policy._incumbent.patience = 10.0  # longer than the service takes
            again = policy.ask(CUSTOMER, key=f"visit {before['lost']}")
            assert again.role == "incumbent"
            assert policy.ask(CUSTOMER, key="another").id > 0
            policy.tell(again, 1.0)
        asyncio.run(visit(address, options))
    until(lambda: counts_of(service)["lost"] == before["lost"] + 2)
    assert counts_of(service)["decisions"] == before["decisions"] + 3


def test_keys_that_were_answered_by_the_incumbent_are_kept_within_bounds() -> None:
    today = incumbent_of([4.0], None)
    assert today is not None
    for number in range(KEYS + 1):
        today.decision((), [], str(number))
    assert not today.answered("0")
    assert not today.answered(None)
    assert today.answered("1")
    assert today.answered(str(KEYS))


def test_many_decisions_of_which_a_later_part_fails_are_forgotten(service: httpx.Client) -> None:
    """Nobody has seen those of the first thousand; so nobody waits for their payoffs."""
    before = counts_of(service)
    rows = [CUSTOMER] * 1000 + [{"age": "old", "income": 1}]
    with ca.Client(str(service.base_url), "prices") as policy, pytest.raises(InputError):
        policy.ask_many(rows)

    async def visit() -> None:
        async with ca.AsyncClient(str(service.base_url), "prices") as policy:
            await policy.ask_many(rows)

    with pytest.raises(InputError):
        asyncio.run(visit())
    assert counts_of(service)["open"] == before["open"]
    assert counts_of(service)["lost"] >= before["lost"]


def counts_of(service: httpx.Client) -> Any:
    return service.get(HERE).json()["counts"]


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now, self.sleeps = 100.0, list[float]()
        self.on_sleep: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds
        self.on_sleep()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("continuarm.client.trying.time", found)
    monkeypatch.setattr("continuarm.client.clients.time", found)
    return found


def test_a_restart_of_some_seconds_is_outlasted_by_every_verb(
    service: httpx.Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, back_at = httpx.Client.request, 0.0

    def request(self: httpx.Client, method: str, url: Any, **options: Any) -> httpx.Response:
        if clock.now < back_at:
            if clock.now < back_at - 5.0:
                raise httpx.ConnectError("nobody listens")
            return httpx.Response(503, json={"error": "unavailable", "message": "it starts"})
        return send(self, method, url, **options)

    with ca.Client(str(service.base_url), "prices") as policy:
        monkeypatch.setattr(httpx.Client, "request", request)
        decision = policy.ask(CUSTOMER)
        verbs: list[Callable[[], Any]] = [
            lambda: policy.ask(CUSTOMER),
            lambda: policy.tell(decision, 1.0),
            lambda: policy.recommend(CUSTOMER),
            lambda: policy.ask_many([CUSTOMER]),
        ]
        for verb in verbs:
            clock.sleeps, back_at = [], clock.now + 15.0
            verb()
            assert len({*clock.sleeps}) == len(clock.sleeps) > 10, "clients come one by one"
            assert max(clock.sleeps) <= 1.0
        back_at, began = clock.now + 1e9, clock.now
        with pytest.raises(UnavailableError):
            policy.tell(decision, 1.0)
        assert 25.0 < clock.now - began <= 30.0


def test_patience_is_how_long_a_request_is_tried_for(clock: Clock) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    with ca.Client(away, "prices", patience=3.0) as policy, pytest.raises(UnavailableError):
        policy.recommend(CUSTOMER)
    assert 1.5 < sum(clock.sleeps) <= 3.0
    with ca.Client(away, "prices", incumbent=[4.0]) as policy:
        clock.sleeps.clear()
        assert policy.ask(CUSTOMER).role == "incumbent"
        assert sum(clock.sleeps) <= 0.2
        clock.sleeps.clear()
        with pytest.raises(UnavailableError):
            policy.recommend(CUSTOMER)
        assert sum(clock.sleeps) > 20.0, "there is nothing to fall back on"
    with pytest.raises(SettingsError, match="patience"):
        ca.Client(away, "prices", patience=0.0)


def test_the_next_address_is_tried_at_once_and_kept(service: httpx.Client, clock: Clock) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    with ca.Client([away, str(service.base_url)], "prices") as policy:
        policy.tell(policy.ask(CUSTOMER), 1.0)
        assert set(clock.sleeps) <= {0.0}
        assert len(clock.sleeps) == 1, "the one that answers is asked first from then on"
    for wrong in ("127.0.0.1:8080", [], ["http://127.0.0.1", "shop"]):
        with pytest.raises(SettingsError, match="address"):
            ca.Client(wrong, "prices")


def test_one_address_that_hangs_leaves_time_for_the_next(service: httpx.Client) -> None:
    options: dict[str, Any] = {"incumbent": [4.0], "patience": 60.0, "timeout": 0.3}

    async def visit(addresses: list[str]) -> None:
        async with ca.AsyncClient(addresses, "prices", **options) as policy:
            assert (await policy.ask(CUSTOMER)).id > 0

    with socket() as hanging:  # it takes connections, and answers nothing
        hanging.bind(("127.0.0.1", 0))
        hanging.listen(8)
        addresses = [f"http://127.0.0.1:{hanging.getsockname()[1]}", str(service.base_url)]
        with ca.Client(addresses, "prices", **options) as policy:
            assert policy.ask(CUSTOMER).id > 0
        asyncio.run(visit(addresses))


class Customer(NamedTuple):
    income: float
    age: float


FORMS = [
    [37, 52_000],
    (37, 52_000),
    np.array([37.0, 52_000.0]),
    Customer(52_000, 37),
    pd.Series({"income": 52_000.0, "age": 37.0}),
    pd.DataFrame({"age": [37.0], "income": [52_000.0]}),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: type(form).__name__)
def test_a_context_has_the_forms_that_a_policy_takes(service: httpx.Client, form: Any) -> None:
    with ca.Client(str(service.base_url), "prices") as policy:
        best = policy.recommend(CUSTOMER)
        assert policy.recommend(form).tolist() == best.tolist()
        assert policy.explain(form)["text"] == policy.explain(CUSTOMER)["text"]
        asked = policy.ask(form)
        assert sorted(asked.context.tolist()) == [37.0, 52_000.0]
        policy.tell(asked, 1.0)

    async def visit() -> None:
        async with ca.AsyncClient(str(service.base_url), "prices") as policy:
            best = await policy.recommend(CUSTOMER)
            assert (await policy.recommend(form)).tolist() == best.tolist()
            assert "age 37" in (await policy.explain(form))["text"]

    asyncio.run(visit())


def test_contexts_of_a_batch_have_the_forms_that_a_policy_takes(service: httpx.Client) -> None:
    columns = {"age": [20.0, 30.0], "income": [1e4, 2e4]}
    rows = np.array(list(columns.values())).T
    forms = [columns, pd.DataFrame(columns), rows, [Customer(1e4, 20), Customer(2e4, 30)]]
    with ca.Client(str(service.base_url), "prices") as policy:
        for form in forms:
            many = policy.ask_many(form)
            assert many.values.shape == (2, 1)
            policy.tell_many(many, np.array([1.0, 2.0]), values=[[4.0], [5.0]])


def test_limits_have_the_forms_that_a_policy_takes(service: httpx.Client) -> None:
    forms: list[Any] = [
        ca.Box([4.1], [4.2], names=["price"]),
        ca.Box([4.1], [4.2]),
        {"price": (4.1, 4.2)},
        {"price": np.array([4.1, 4.2])},
    ]
    with ca.Client(str(service.base_url), "prices", incumbent=[4.0], patience=60.0) as policy:
        for within in forms:
            decision = policy.ask(CUSTOMER, within=within)
            assert 4.1 <= decision.value[0] <= 4.2
            policy.forget(decision)


WRONG: list[tuple[str, Callable[[Any, Any, Any], Any]]] = [
    ("within", lambda policy, one, many: policy.ask(CUSTOMER, within=([3.5], [4]))),
    ("within", lambda policy, one, many: policy.ask(CUSTOMER, within={"price": 4.0})),
    ("within", lambda policy, one, many: policy.ask(CUSTOMER, within={"price": (4.0, np.nan)})),
    ("within", lambda policy, one, many: policy.ask(CUSTOMER, within={})),
    ("context", lambda policy, one, many: policy.ask([37, np.nan])),
    ("context", lambda policy, one, many: policy.recommend("young")),
    ("contexts", lambda policy, one, many: policy.ask_many({"age": [1.0], "income": []})),
    ("contexts", lambda policy, one, many: policy.ask_many(7)),
    ("payoff", lambda policy, one, many: policy.tell(one, np.nan)),
    ("payoff", lambda policy, one, many: policy.tell(one, "a lot")),
    ("value", lambda policy, one, many: policy.tell(one, 1.0, value=[np.inf])),
    ("payoffs", lambda policy, one, many: policy.tell_many(many, [1.0])),
    ("payoffs", lambda policy, one, many: policy.tell_many(many, 1.0)),
    ("payoffs", lambda policy, one, many: policy.tell_many(many, [1.0, np.nan])),
    ("values", lambda policy, one, many: policy.tell_many(many, [1.0, 2.0], values=[[4.0]])),
]


@pytest.mark.parametrize(("field", "wrong"), WRONG)
def test_what_is_wrong_is_refused_before_it_is_sent_and_names_its_field(
    field: str, wrong: Callable[[Any, Any, Any], Any], clock: Clock
) -> None:
    one = ca.Decision(5, np.zeros(2), np.ones(1), ("price",))
    many = ca.Decisions(np.array([5, 6]), np.zeros((2, 2)), np.ones((2, 1)))
    with ca.Client(f"http://127.0.0.1:{free_port()}", "prices") as policy:
        with pytest.raises(InputError) as refused:
            wrong(policy, one, many)
    assert refused.value.field == field
    assert clock.sleeps == [], "nobody was asked"


def test_a_list_of_another_length_is_refused(service: httpx.Client) -> None:
    with ca.Client(str(service.base_url), "prices") as policy:
        with pytest.raises(InputError, match="2 numbers are needed") as refused:
            policy.recommend([37.0])
        assert refused.value.field == "context"


@pytest.mark.parametrize("given", [{"prize": 4.0}, [4.0, 5.0], lambda context: {"prize": 4.0}])
def test_an_incumbent_that_is_no_decision_is_refused_at_the_first_contact(
    service: httpx.Client, given: Any
) -> None:
    before = counts_of(service)
    options: dict[str, Any] = {"incumbent": given, "patience": 60.0}

    async def visit() -> None:
        async with ca.AsyncClient(str(service.base_url), "prices", **options) as policy:
            with pytest.raises(SettingsError, match=r"must be \['price'\], but got"):
                await policy.ask(CUSTOMER)

    with ca.Client(str(service.base_url), "prices", **options) as policy:
        with pytest.raises(SettingsError, match=r"must be \['price'\], but got"):
            policy.ask(CUSTOMER)
        if not callable(given):
            with pytest.raises(SettingsError, match="incumbent"):
                policy.ask(CUSTOMER)
    with ca.Client(str(service.base_url), "prices", **options) as policy:
        with pytest.raises(SettingsError, match="incumbent"):
            policy.recommend(CUSTOMER)
    asyncio.run(visit())
    until(lambda: counts_of(service)["open"] == before["open"])
    assert counts_of(service)["decisions"] == before["decisions"] + 2


def test_before_any_contact_an_incumbent_is_used_as_given(clock: Clock) -> None:
    with ca.Client(f"http://127.0.0.1:{free_port()}", "p", incumbent={"prize": 4.0}) as policy:
        assert policy.ask(CUSTOMER).as_dict() == {"prize": 4.0}
    with pytest.raises(InputError) as refused:
        ca.Client("http://127.0.0.1", "prices", incumbent={"price": np.nan})
    assert refused.value.field == "incumbent"


def test_an_id_of_http_is_taken_like_its_number(service: httpx.Client) -> None:
    def asked() -> str:
        id_ = service.post(f"{HERE}/decisions", json={"context": CUSTOMER}).json()["id"]
        assert isinstance(id_, str)
        return id_

    with ca.Client(str(service.base_url), "prices") as policy:
        before, ids = counts_of(service), [asked() for _ in range(5)]
        policy.tell(ids[0], 1.0)
        policy.tell(int(ids[0], 16), 1.0)
        policy.forget(ids[1])
        policy.tell_many(ids[2:4], [1.0, 2.0])
        policy.tell(ids[4], 1.0)
        until(lambda: counts_of(service)["payoffs"] == before["payoffs"] + 4)
        assert counts_of(service)["lost"] == before["lost"] + 1
        decision = policy.ask(CUSTOMER)
        assert service.get(f"{HERE}/explain/{decision.id:032x}").status_code == 200
        policy.forget(decision)
        for wrong in ("4a17", ids[0].upper() + "Z", f"-{ids[0][1:]}"):
            with pytest.raises(UnknownDecisionError, match="32 hexadecimal digits"):
                policy.tell(wrong, 1.0)


def test_a_shared_policy_takes_an_id_of_http() -> None:
    policy = ca.SurfaceSampling(ca.Box([18.0], [90.0]), ca.Box([1.0], [9.0]), rng=1)
    with closing(open_store(":memory:")) as store:
        shared = ca.share(policy, store, "prices")
        told, lost = shared.ask([20.0]), shared.ask([20.0])
        shared.tell(f"{told.id:032x}", 1.0)
        shared.forget(f"{lost.id:032x}")
        stats = shared.policy().stats()
        assert (stats.told, stats.forgotten, stats.open) == (1, 1, 0)


def test_what_was_archived_is_opened_again_from_python() -> None:
    with closing(open_store(":memory:")) as store, served(store) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        with ca.Client(str(client.base_url), "prices") as policy:
            decision = policy.ask(CUSTOMER)
            assert client.delete(HERE).status_code == 200
            assert client.get(HERE).json()["archived"]
            for verb in (lambda: policy.ask(CUSTOMER), lambda: policy.tell(decision, 1.0)):
                with pytest.raises(ExperimentConflictError, match="archived"):
                    verb()
            assert client.put(HERE, json=PRICES).status_code == 409
            store.archive("prices", False)
            policy.tell(decision, 1.0)
            policy.ask(CUSTOMER)
