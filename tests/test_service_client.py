"""The client: a policy that lives in a service."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from socket import SHUT_RDWR, SHUT_WR, socket
from threading import Thread
from typing import Any

import httpx
import numpy as np
import pytest

import continuarm as ca
from continuarm.errors import (
    AlreadyToldError,
    DeniedError,
    InputError,
    SettingsError,
    UnavailableError,
    UnknownDecisionError,
)
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
        with pytest.raises(UnavailableError):
            policy.recommend(CUSTOMER)
    with ca.Client(str(service.base_url), "prices", incumbent=today, patience=5.0) as policy:
        assert policy.ask(CUSTOMER).id > 0
        with pytest.raises(InputError):
            policy.ask({"age": 7, "income": 1})
    with pytest.raises(SettingsError, match="needs an `incumbent`"):
        ca.Client(away, "prices", patience=1.0)


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
