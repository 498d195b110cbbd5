"""Heavy reads: deciding goes on beside them, and so does who lets people in."""

import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import httpx
import numpy as np
import pytest

from continuarm.service import reads, streams
from continuarm.service.tokens import issue
from continuarm.store import open_store
from continuarm.store.protocol import Store
from tests.service import CUSTOMER, HERE, PRICES, served, until

LARGE = {
    "context": {"low": [0.0] * 30, "high": [1.0] * 30},
    "decision": {"low": [0.0] * 100, "high": [1.0] * 100},
}
CURVE = f"{HERE}/curve?points=289"


def _metric(client: httpx.Client, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return float(next(line.split()[-1] for line in lines if line.startswith(name)))


@pytest.fixture(scope="module")
def large() -> Iterator[tuple[Store, httpx.Client]]:
    """A service with a large experiment that has learned a little, and a token of an admin."""
    rng = np.random.default_rng(0)
    with closing(open_store(":memory:")) as store:
        token = issue(store, "kept", "admin")
        with served(store) as client:
            client.headers["authorization"] = f"Bearer {token}"
            assert client.put(HERE, json=LARGE).status_code == 201
            asked = {"contexts": rng.random((300, 30)).tolist()}
            found = client.post(f"{HERE}/decisions", json=asked).json()["decisions"]
            told = [{"id": one["id"], "payoff": float(rng.normal())} for one in found]
            assert client.post(f"{HERE}/payoffs", json={"payoffs": told}).status_code == 200
            client.get(f"{HERE}/curve?points=1")  # compiled
            yield store, client


def test_eight_curves_delay_neither_decisions_nor_a_revocation(
    large: tuple[Store, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "SECONDS", 600.0)
    store, client = large
    gone = {"authorization": f"Bearer {issue(store, 'gone', 'admin')}"}
    until(lambda: client.get("/v1/experiments", headers=gone).status_code == 200)
    before = _metric(client, "continuarm_reads_ended_total")
    with ExitStack() as stack:
        curves = [stack.enter_context(closing(_asked_for_a_curve(client))) for _ in range(8)]
        for _ in range(20):
            asked = client.post(f"{HERE}/decisions", json={"context": [0.5] * 30}, headers=gone)
            assert asked.status_code == 200
        store.revoke_token("gone")
        until(lambda: _out(client, gone))
        answered, _, _ = select.select(curves, [], [], 0.0)
        assert len(answered) < 8, "they must be under way meanwhile"
    until(lambda: _metric(client, "continuarm_reads_ended_total") >= before + 8 - len(answered))
    assert client.get(f"{HERE}/curve?points=1").status_code == 200, "nobody computes for who left"


def _asked_for_a_curve(client: httpx.Client) -> socket.socket:
    plain = socket.create_connection((client.base_url.host, client.base_url.port), 30.0)
    token = client.headers["authorization"]
    head = f"GET {CURVE} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: {token}\r\n\r\n"
    plain.sendall(head.encode())
    return plain


def _out(client: httpx.Client, headers: dict[str, str]) -> bool:
    asked = client.post(f"{HERE}/decisions", json={"context": [0.5] * 30}, headers=headers)
    return asked.status_code == 401


def test_reads_have_a_limit_and_a_deadline(
    large: tuple[Store, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, client = large
    monkeypatch.setattr(reads, "SECONDS", 0.05)
    late = client.get(CURVE)
    assert (late.status_code, late.json()["error"]) == (503, "busy")
    assert "at most 0.05 s" in late.json()["message"]
    monkeypatch.setattr(reads, "MOST", 0)
    full = client.get(f"{HERE}/history")
    assert (full.status_code, full.json()["error"]) == (503, "busy")
    assert full.headers["retry-after"] == "1"


def test_streams_share_one_look_and_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gets all that happens, in order; one that comes late gets what it missed."""
    monkeypatch.setattr(streams, "MOST_STREAMS", 20)
    with closing(open_store(":memory:")) as store, served(store) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        opened = [client.send(_stream(client, after=0), stream=True) for _ in range(20)]
        full = client.get(f"{HERE}/stream")
        assert (full.status_code, full.json()["error"]) == (503, "busy")
        for _ in range(30):
            client.post(f"{HERE}/decisions", json={"context": CUSTOMER})
        for stream in opened:
            lines = (line for line in stream.iter_lines() if line.startswith("id: "))
            assert [next(lines) for _ in range(30)] == [f"id: {k}" for k in range(1, 31)]
        for stream in opened:
            stream.close()
        until(lambda: _opens(client))


def _opens(client: httpx.Client) -> bool:
    with client.stream("GET", f"{HERE}/stream") as stream:
        return stream.status_code == 200


def _stream(client: httpx.Client, **query: Any) -> httpx.Request:
    return client.build_request("GET", f"{HERE}/stream", params=query)
