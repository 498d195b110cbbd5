"""Whether a store needs tokens is its own state: a server that may be reached never opens."""

import json
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from continuarm.errors import SettingsError
from continuarm.service import tokens
from continuarm.service.serving import serve
from continuarm.service.tokens import issue
from continuarm.store import open_store
from tests.service import CUSTOMER, HERE, PRICES, Server, served, until

ALL = "/v1/experiments"


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def _status(client: httpx.Client, token: str = "") -> int:
    return client.get(ALL, headers=_bearer(token) if token else {}).status_code


def _run(*words: str, said: str = "") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "continuarm", "token", *words]
    return subprocess.run(command, input=said, capture_output=True, text=True, timeout=120)


def test_a_store_stays_closed_when_its_last_token_is_revoked(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with closing(open_store(path)) as store:
        token = issue(store, "shop", "admin")
        store.revoke_token("shop")
        with served(store) as again:  # as a worker that was started again
            assert (_status(again), _status(again, token)) == (401, 401)
            kept = _run("disable", "--store", str(path), said="n\n")
            assert "everybody" in kept.stdout
            assert (kept.returncode, "nothing was changed" in kept.stdout) == (1, True)
            assert store.tokens_needed()
            done = _run("disable", "--yes", "--store", str(path))
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout == "all tokens are revoked: everybody on this machine is let in\n"
            until(lambda: _status(again) == 200)


def test_a_revocation_says_what_it_did(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with closing(open_store(path)) as store:
        for name in ("shop", "page"):
            issue(store, name, "read")
    assert _run("revoke", "shop", "--store", str(path)).stdout == "shop: revoked\n"
    assert _run("revoke", "page", "--store", str(path)).stdout == (
        "page: revoked; it was the last one: nobody is let in until one is made\n"
    )


def test_a_server_that_is_refused_for_want_of_tokens_makes_no_store(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with pytest.raises(SettingsError, match="without tokens a server listens on loopback"):
        serve(str(path), host="0.0.0.0", port=0, workers=1, max_lag=5.0)
    assert not list(tmp_path.iterdir())


def test_a_server_beyond_loopback_never_opens(tmp_path: Path) -> None:
    """Not even when somebody empties the tables of its store by hand."""
    path = tmp_path / "shop.db"
    with closing(open_store(path)) as store:
        token = issue(store, "shop", "admin")
    with Server(path, "--host", "0.0.0.0") as server:
        assert (_status(server.client, token), _status(server.client)) == (200, 401)
        with closing(sqlite3.connect(path)) as by_hand, by_hand:
            by_hand.execute("DELETE FROM tokens")
            by_hand.execute("DELETE FROM continuarm_settings")
        until(lambda: _status(server.client, token) == 401)
        assert _status(server.client) == 401
        assert server.client.get("/healthz").status_code == 200


def test_nobody_is_let_in_while_the_tokens_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is away may have revoked them all."""
    monkeypatch.setattr(tokens, "OLDEST", 1.5)
    path = tmp_path / "shop.db"
    with closing(open_store(path)) as store:
        token = issue(store, "shop", "read")
        with served(store) as client:
            assert _status(client, token) == 200
            path.rename(tmp_path / "away")
            until(lambda: "the tokens must" in client.get(ALL, headers=_bearer(token)).text)
            assert _status(client, token) == _status(client) == 503
            said = client.get("/metrics").text
            assert 'continuarm_background_errors_total{task="tokens"}' in said
            assert 'continuarm_background_errors_total{task="tokens"} 0\n' not in said
            (tmp_path / "away").rename(path)
            until(lambda: _status(client, token) == 200)


def test_a_token_that_is_revoked_before_the_body_has_come_does_nothing(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "shop.db")) as store:
        boss, thief = (_bearer(issue(store, name, "admin")) for name in ("boss", "thief"))
        with served(store) as client:
            assert client.put(HERE, json=PRICES, headers=boss).status_code == 201
            with _begun(client, "POST", f"{HERE}/decisions", {"context": CUSTOMER}, thief) as ask:
                with _begun(client, "PUT", f"{ALL}/stolen", PRICES, thief) as make:
                    store.revoke_token("thief")
                    until(lambda: client.get(ALL, headers=thief).status_code == 401)
                    for plain in (ask, make):
                        plain.sendall(b"}")
                        assert plain.recv(2**16).startswith(b"HTTP/1.1 401")
            assert client.get(f"{ALL}/stolen", headers=boss).status_code == 404
            assert client.get(HERE, headers=boss).json()["counts"]["decisions"] == 0


@contextmanager
def _begun(
    client: httpx.Client, method: str, path: str, body: Any, headers: dict[str, str]
) -> Iterator[socket.socket]:
    """A request that is let in, and lacks the last byte of its body."""
    content = json.dumps(body).encode()
    said = {"host": "localhost", "content-type": "application/json", **headers}
    said |= {"content-length": str(len(content)), "expect": "100-continue"}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in said.items())]
    with socket.create_connection((client.base_url.host, client.base_url.port), 30.0) as plain:
        plain.sendall("\r\n".join([*lines, "\r\n"]).encode())
        assert plain.recv(2**16).startswith(b"HTTP/1.1 100"), "its body is waited for"
        plain.sendall(content[:-1])
        yield plain
