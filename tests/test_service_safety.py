"""Who may do what, how much of it, and what a page of others may read."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from continuarm.errors import InputError, SettingsError
from continuarm.service.listening import bound
from continuarm.service.tokens import SCOPES, issue
from continuarm.store import open_store
from continuarm.store.records import Experiment
from tests.service import CUSTOMER, HERE, PRICES, Server, served, until

OPEN = {"/healthz", "/readyz", "/metrics"}  # for who looks after machines
DECIDING = {"decisions", "payoffs", "forget"}


@pytest.fixture(scope="module")
def guarded() -> Iterator[tuple[httpx.Client, dict[str, str]]]:
    """A service with a token of each scope."""
    with closing(open_store(":memory:")) as store:
        tokens = {scope: issue(store, scope, scope) for scope in SCOPES}
        with served(store) as client:
            yield client, tokens


def _needed(method: str, path: str) -> str:
    """The scope that an operation needs, by a rule that knows nothing of the table."""
    if method == "get":
        return "read"
    return "decide" if path.rpartition("/")[2] in DECIDING else "admin"


def test_every_operation_needs_its_scope(guarded: tuple[httpx.Client, dict[str, str]]) -> None:
    """All that the page describes, each with no token, a wrong one, and one of each scope."""
    client, tokens = guarded
    paths, tried = client.get("/openapi.json").json()["paths"], 0
    for path, operations in paths.items():
        for method, operation in operations.items():
            needed = _needed(method, path)
            assert operation["x-scope"] == needed, (method, path)
            there = path.format(name="nobody", id="f" * 32, bin="1")
            for scope, token in [(None, None), ("wrong", "guessed"), *tokens.items()]:
                headers = {} if token is None else {"authorization": f"Bearer {token}"}
                status = client.request(method.upper(), there, headers=headers).status_code
                if scope not in SCOPES:
                    assert status == 401, (method, path, scope)
                elif SCOPES.index(scope) < SCOPES.index(needed):
                    assert status == 403, (method, path, scope)
                else:
                    assert status in (200, 400, 404), (method, path, scope, status)
                tried += 1
    assert tried >= 5 * 25


def test_only_health_is_open_to_everybody(guarded: tuple[httpx.Client, dict[str, str]]) -> None:
    client, _ = guarded
    for path in OPEN:
        assert client.get(path).status_code == 200
    assert client.get("/v1/experiments").status_code == 401


def test_a_token_has_a_rate() -> None:
    with closing(open_store(":memory:")) as store:
        tokens = [issue(store, name, "read") for name in ("busy", "calm")]
        busy, calm = ({"authorization": f"Bearer {token}"} for token in tokens)
        with served(store, rate=2.0) as client:
            statuses = [client.get("/v1/experiments", headers=busy) for _ in range(8)]
            assert [s.status_code for s in statuses[:4]] == [200] * 4, "two seconds' worth at once"
            refused = statuses[-1]
            assert (refused.status_code, refused.json()["error"]) == (429, "too-many")
            assert client.get("/v1/experiments", headers=calm).status_code == 200
            time.sleep(0.6)
            assert client.get("/v1/experiments", headers=busy).status_code == 200


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with closing(open_store(":memory:")) as store:
        with served(store, most=2, origins=["https://shop.example"]) as client:
            assert client.put(HERE, json=PRICES).status_code == 201
            yield client


MANY = {"low": [0.0] * 1001, "high": [1.0] * 1001}
LIMITS: list[tuple[str, str, Any, int]] = [
    ("PUT", "/v1/experiments/wide", PRICES | {"context": MANY}, 400),
    ("PUT", "/v1/experiments/wide", PRICES | {"decision": MANY}, 400),
    ("PUT", "/v1/experiments/" + "x" * 101, PRICES, 422),
    ("POST", f"{HERE}/decisions", {"contexts": [[37, 1]] * 1001}, 400),
    ("POST", f"{HERE}/decisions", {"context": CUSTOMER, "key": "x" * 201}, 400),
    ("POST", f"{HERE}/payoffs", {"payoffs": [{"id": "0" * 32, "payoff": 1}] * 1001}, 400),
    ("POST", f"{HERE}/forget", {"ids": ["0" * 32] * 1001}, 400),
    ("POST", f"{HERE}/log", {"columns": {"age": [1.0] * 300_000}}, 413),
    ("GET", f"{HERE}/bins?most=2001", None, 422),
    ("GET", f"{HERE}/curve?points=290", None, 422),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), LIMITS)
def test_what_is_too_much_is_refused(
    client: httpx.Client, method: str, path: str, body: Any, status: int
) -> None:
    answer = client.request(method, path, json=body)
    assert answer.status_code == status, answer.text
    assert len(answer.text) < 500


def test_experiments_have_a_limit(client: httpx.Client) -> None:
    assert client.put("/v1/experiments/second", json=PRICES).status_code == 201
    third = client.put("/v1/experiments/third", json=PRICES)
    assert (third.status_code, third.json()["error"]) == (409, "conflict")
    assert "at most 2 experiments" in third.json()["message"]
    assert client.put("/v1/experiments/second", json=PRICES).status_code == 200


def test_pages_of_others_read_nothing_unless_asked(
    client: httpx.Client, guarded: tuple[httpx.Client, dict[str, str]]
) -> None:
    closed, _ = guarded
    preflight = {"access-control-request-method": "POST", "origin": "https://shop.example"}
    for headers in (preflight, {"origin": "https://shop.example"}):
        answer = closed.options("/v1/experiments", headers=headers)
        assert not any(name.startswith("access-control") for name in answer.headers)
    allowed = client.options(f"{HERE}/decisions", headers=preflight)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == "https://shop.example"
    other = client.get(HERE, headers={"origin": "https://other.example"})
    assert "access-control-allow-origin" not in other.headers


FOREIGN: list[dict[str, str]] = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:1"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
]


@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize(("method", "path"), [("POST", f"{HERE}/pause"), ("DELETE", HERE)])
def test_a_page_of_others_changes_nothing(
    client: httpx.Client, headers: dict[str, str], method: str, path: str
) -> None:
    answer = client.request(method, path, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    assert "origin" in answer.json()["message"]
    assert client.get(HERE, headers=headers).json()["paused"] is False


def test_the_page_itself_changes_what_it_may(client: httpx.Client) -> None:
    """At its own address, behind a proxy, and where an origin is allowed."""
    here = f"http://{client.base_url.netloc.decode()}"
    ours: list[dict[str, str]] = [
        {"origin": here},
        {"origin": here, "sec-fetch-site": "same-origin"},
        {"origin": "https://proxy.example", "sec-fetch-site": "same-origin"},
        {"origin": "https://shop.example", "sec-fetch-site": "cross-site"},
    ]
    for headers in ours:
        assert client.post(f"{HERE}/resume", headers=headers).status_code == 200, headers


def test_without_tokens_only_loopback_is_answered(
    client: httpx.Client, guarded: tuple[httpx.Client, dict[str, str]]
) -> None:
    for host in ("evil.example", "evil.example:8080", "localhost.evil.example", "[", "10.0.0.1"):
        for path in ("/v1/experiments", "/metrics", "/"):
            answer = client.get(path, headers={"host": host})
            assert (answer.status_code, answer.json()["error"]) == (403, "forbidden"), host
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:8080"):
        assert client.get("/v1/experiments", headers={"host": host}).status_code == 200, host
    closed, tokens = guarded
    headers = {"host": "shop.example", "authorization": f"Bearer {tokens['read']}"}
    assert closed.get("/v1/experiments", headers=headers).status_code == 200


def test_a_verb_without_a_body_takes_none_but_an_object(client: httpx.Client) -> None:
    there, json_ = f"{HERE}/resume", {"content-type": "application/json"}
    for content, headers in [(b"a=1", {}), (b"{}", {}), (b"[1]", json_), (b"{", json_)]:
        answer = client.post(there, content=content, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (400, "malformed"), content
    assert client.post(there, content=iter([b"a=1"])).status_code == 400, "of unknown length"
    assert client.post(there, json={}).status_code == 200


def test_the_stream_of_a_revoked_token_ends() -> None:
    with closing(open_store(":memory:")) as store:
        kept, gone = (
            {"authorization": f"Bearer {issue(store, name, 'admin')}"} for name in ("kept", "gone")
        )
        with served(store) as client:
            assert client.put(HERE, json=PRICES, headers=kept).status_code == 201
            with client.stream("GET", f"{HERE}/stream", headers=gone) as stream:
                assert stream.status_code == 200
                began = time.monotonic()
                store.revoke_token("gone")
                assert b"".join(stream.iter_raw()) == b""
                assert time.monotonic() - began < 3.0, "half a second, and a busy machine"


def _run(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "continuarm", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_what_cannot_be_listened_on_is_refused_before_an_address_is_said(tmp_path: Path) -> None:
    store = tmp_path / "shop.db"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        tried = {
            ("serve", "--port", "99999"): "from 0 to 65535",
            ("demo", "--port", "99999"): "from 0 to 65535",
            ("serve", "--port", port): f"must be free, but {port} is taken",
            ("serve", "--port", "0", "--host", "no.invalid"): "an address of this machine",
            ("serve", "--port", "0", "--host", "0.0.0.0"): "without tokens",
        }
        for words, expected in tried.items():
            options = [] if words[0] == "demo" else ["--store", str(store)]
            done = _run(*words, *options)
            assert done.returncode == 2, done
            assert expected in done.stderr
            assert "http://" not in done.stdout + done.stderr


def test_an_unknown_token_is_told_what_is_needed(
    guarded: tuple[httpx.Client, dict[str, str]],
) -> None:
    assert guarded[0].get("/v1/experiments").headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("name", [".", "..", "a/b", "a\\b", " a", "a ", "", "a\n"])
def test_names_that_are_no_part_of_a_path_are_refused(name: str, tmp_path: Path) -> None:
    for address in (":memory:", str(tmp_path / "shop.db")):
        with closing(open_store(address)) as store:
            with pytest.raises(InputError, match="the name of an experiment must"):
                store.create(name, "{}")
            with pytest.raises(InputError, match="the name of a token must"):
                issue(store, name, "read")
            with pytest.raises(InputError, match="the name of an experiment must"):
                store.adopt(Experiment(name, "{}"), [], [])
            assert store.experiments() == []


@pytest.fixture
def one() -> Iterator[httpx.Client]:
    with closing(open_store(":memory:")) as store, served(store) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
        yield client


def test_a_refusal_names_its_field_and_its_rule(one: httpx.Client) -> None:
    asked = {"context": CUSTOMER, "key": "\0"}
    torn = one.post(f"{HERE}/decisions", json=asked)
    assert (torn.status_code, torn.json()["field"]) == (422, "key")
    several = {"contexts": [CUSTOMER, CUSTOMER], "keys": ["\0", "good"]}
    first, second = one.post(f"{HERE}/decisions", json=several).json()["decisions"]
    assert (first["refused"]["field"], "id" in second) == ("key", True)
    unknown = one.post(f"{HERE}/bins/99/freeze")
    assert (unknown.status_code, unknown.json()["error"]) == (404, "unknown-bin")
    assert "bins()" not in unknown.text
    before = one.get(f"{HERE}/events", params={"after": -1})
    assert "a whole number from 0 on" in before.json()["message"]
    assert before.json()["message"].endswith("but got '-1'")


def test_uplift_names_the_decision_that_is_waited_for_as_answers_do(one: httpx.Client) -> None:
    first = one.post(f"{HERE}/decisions", json={"context": CUSTOMER}).json()["id"]
    second = one.post(f"{HERE}/decisions", json={"context": CUSTOMER}).json()["id"]
    one.post(f"{HERE}/payoffs", json={"id": second, "payoff": 1.0})
    until(lambda: f"until decision {first}," in one.get(f"{HERE}/uplift").json()["text"])


def test_what_is_archived_stays_so(one: httpx.Client) -> None:
    assert one.delete(HERE).status_code == 200
    again = one.put(HERE, json=PRICES)
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
    asked = one.post(f"{HERE}/decisions", json={"context": CUSTOMER})
    assert (asked.status_code, asked.json().get("field")) == (409, None)


def test_a_clock_is_there_from_the_beginning_or_never(one: httpx.Client) -> None:
    answer = one.put(HERE, json=PRICES | {"options": {"share": 0.1, "start": [4.0]}})
    assert answer.status_code == 409
    words = "ttl_seconds given before and not given now (from the beginning or never)"
    assert words in answer.json()["message"]
    assert "has_clock" not in answer.text


def test_a_new_store_is_said_and_a_failure_leaves_none(tmp_path: Path) -> None:
    store, lines = tmp_path / "typo.db", tmp_path / "lines"
    for text, expected in [
        ("{", "line 1: it must be as it was exported, but is not JSON"),
        ("[]", "line 1: it must be as it was exported, but is no object"),
        ("{}", "line 1: it must be as it was exported, but has no 'continuarm'"),
    ]:
        lines.write_text(text)
        done = _run("import", str(lines), "--store", str(store))
        assert (done.returncode, expected in done.stderr) == (2, True), done.stderr
        assert list(tmp_path.iterdir()) == [lines]
    done = _run("token", "create", "", "--store", str(store))
    assert "the name of a token must" in done.stderr
    assert list(tmp_path.iterdir()) == [lines]
    made = _run("token", "create", "shop", "--store", str(store))
    assert made.stderr == f"{store} is a new store\n"
    again = _run("token", "create", "till", "--store", str(store))
    assert (again.returncode, again.stderr) == (0, "")


def test_a_purge_of_the_future_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "shop.db"
    with closing(open_store(store)) as opened, served(opened) as client:
        assert client.put(HERE, json=PRICES).status_code == 201
    done = _run("purge", "prices", "--before", "2999-01-01", "--store", str(store))
    assert done.returncode == 2
    assert "must be a time that has passed, but got 2999-01-01" in done.stderr


@pytest.mark.parametrize("path", ["/v1/experiments", "/healthz", "/openapi.json", "/nowhere"])
def test_answers_have_headers_of_safety(client: httpx.Client, path: str) -> None:
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


EVIL = "prices'; DROP TABLE events; --"


def test_names_and_keys_are_never_put_into_sql(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "shop.db")) as store, served(store) as client:
        there = f"/v1/experiments/{EVIL}"
        assert client.put(there, json=PRICES).status_code == 201
        asked = {"context": CUSTOMER, "key": EVIL}
        first = client.post(f"{there}/decisions", json=asked).json()
        assert client.post(f"{there}/decisions", json=asked).json() == first
        assert client.get(f"{there}/explain/{EVIL}").status_code == 404
        assert [one.name for one in store.experiments()] == [EVIL]


def test_two_workers_share_a_store_and_end_well(tmp_path: Path) -> None:
    with Server(tmp_path / "shop.db", "--workers", "2") as server:
        assert server.client.put(HERE, json=PRICES).status_code == 201
        ids = set()
        for k in range(20):  # each on a connection of its own: either worker may take it
            url = f"{server.client.base_url}{HERE}/decisions"
            asked = httpx.post(
                url, json={"context": CUSTOMER, "key": f"order-{k // 2}"}, timeout=300
            )
            ids.add(asked.json()["id"])
        assert len(ids) == 10, "one decision for each key, whichever worker was asked"
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        server.stop()


def test_workers_end_with_the_process_that_was_killed(tmp_path: Path) -> None:
    with Server(tmp_path / "shop.db", "--workers", "2") as server:
        assert server.client.put(HERE, json=PRICES).status_code == 201
        server.process.kill()
        server.process.wait(60)
        until(lambda: can_be_bound(server.port))
        server.stop()


def can_be_bound(port: int) -> bool:
    try:
        bound("127.0.0.1", port).close()
    except SettingsError:
        return False
    return True


def test_sigterm_ends_open_streams_at_once_and_the_process_with_zero(tmp_path: Path) -> None:
    with Server(tmp_path / "shop.db", "--log-contexts") as server:
        assert server.client.put(HERE, json=PRICES).status_code == 201
        server.client.post(f"{HERE}/decisions", json={"context": CUSTOMER})
        server.client.get(f"{HERE}/recommendation", params=CUSTOMER)
        with server.client.stream("GET", f"{HERE}/stream") as stream:
            began = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            assert b"".join(stream.iter_raw()) == b""
            assert server.process.wait(30) == 0
        assert time.monotonic() - began < 5.0
        log = server.stop()
    lines = [json.loads(line) for line in log.splitlines() if line[0] == "{"]
    asked = [line["asked"]["context"] for line in lines if "asked" in line]
    assert asked == [CUSTOMER]
    assert [line["query"] for line in lines if "query" in line] == [
        {name: str(value) for name, value in CUSTOMER.items()}
    ]


def test_a_request_without_a_host_comes_from_no_browser(client: httpx.Client) -> None:
    """As health checks by HTTP/1.0 do it."""
    address = (client.base_url.host, client.base_url.port)
    with closing(socket.create_connection(address, 30.0)) as plain:
        plain.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert plain.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(("option", "value"), [("rate", "nan"), ("rate", "0"), ("max-lag", "-1")])
def test_limits_that_are_none_are_refused(option: str, value: str) -> None:
    done = _run("serve", f"--{option}", value, "--store", ":memory:")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"`0 < {option}` must hold" in done.stderr
