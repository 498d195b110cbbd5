"""Requests that nobody would write: never a failure of the server, and nothing changes."""

import json
import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok

from continuarm.store import open_store
from tests.service import CUSTOMER, HERE, PRICES, served

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with closing(open_store(":memory:")) as store, served(store, most=1) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        yield client


def _said(answer: httpx.Response) -> None:
    """A refusal of the one shape, or an answer."""
    assert answer.status_code < 500, (answer.request.url, answer.request.content, answer.text)
    if answer.status_code >= 400:
        assert {"error", "message"} <= set(answer.json()) <= {"error", "message", "field"}


BODIES = [
    b"",
    b"null",
    b"[]",
    b"\xff\xfe",
    b'{"context": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"context": [1e400, 1]}',
    b'{"context": [' + b"9" * 4000 + b", 1]}",
    b'{"context": [NaN, 1]}',
    b'{"context": {"age": Infinity}}',
    b'{"context": {"\\ud800": 1}}',
    b'{"context": {"age": 37, "income": 1}, "key": "\\ud800"}',
    b'{"context": {"age": 37, "income": 1}, "key": "\\u0000"}',
    b'{"context": {"age": 37, "income": 1}, "within": {"\\udfff": [1, 2]}}',
    b'{"id": "' + b"f" * 32 + b'", "payoff": 1e308, "value": {"\\ud800": 1}}',
    b'{"columns": {"\\ud800": [1]}}',
    b'{"context": {"low": [], "high": []}, "decision": {"low": [], "high": []}}',
    b'{"context": {"low": [1e308], "high": [-1e308]}, "decision": {"low": [0], "high": [1]}}',
]
NESTED = b'{"context": {"low": [0], "high": [1]}, "decision": {"low": [0], "high": [1]}, '
BODIES += [
    NESTED + b'"options": {"start": ' + b"[" * deep + b"]" * deep + b"}}"
    for deep in (25, 400, *range(900, 1000, 5), 1200, 200_000)
]
BODIES += [NESTED + b'"options": ' + b'{"start":' * 1200 + b"1" + b"}" * 1201]
VERBS = ["decisions", "payoffs", "forget", "log"]


@pytest.mark.parametrize("body", BODIES)
def test_bodies_that_nobody_would_write(client: httpx.Client, body: bytes) -> None:
    for verb in VERBS:
        _said(client.post(f"{HERE}/{verb}", content=body, headers=JSON))
    _said(client.put(HERE, content=body, headers=JSON))
    _said(client.put("/v1/experiments/%00%ff%22", content=body, headers=JSON))


def test_bodies_at_random(client: httpx.Client) -> None:
    """Bytes at random, and good bodies with some bytes changed."""
    rng = random.Random(0)
    good = json.dumps({"context": CUSTOMER, "key": "order", "within": {"price": [1, 9]}}).encode()
    for k in range(200):
        body = bytearray(good if k % 2 else rng.randbytes(60))
        for _ in range(rng.randint(1, 4)):
            body[rng.randrange(len(body))] = rng.randrange(256)
        _said(client.post(f"{HERE}/{VERBS[k % 3]}", content=bytes(body), headers=JSON))


def test_requests_that_the_page_describes_are_never_a_failure(client: httpx.Client) -> None:
    """Made by schemathesis from the page itself, some for every operation."""
    page = client.get("/openapi.json").json()
    tried = 0
    for found in schemathesis.openapi.from_dict(page).get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        if operation.path.endswith("/stream"):  # it would not end
            continue

        @settings(max_examples=6, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(), name=st.sampled_from(["prices", None]))
        def check(case: Any, name: str | None) -> None:
            if name is not None and "name" in (case.path_parameters or {}):
                case.path_parameters["name"] = name
            if case.method == "DELETE":
                return
            _said_of(case.call(base_url=str(client.base_url)))

        check()
        tried += 1
    assert tried >= 24


def _said_of(answer: Any) -> None:
    assert answer.status_code < 500, (answer.request.url, answer.request.body, answer.text)
