"""What a client sends without end, or never ends, or never reads, costs others nothing."""

import asyncio
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest

from continuarm.service import connections, http
from continuarm.service.connections import Connection, Joined, Limits
from continuarm.store import open_store
from tests.service import PRICES, Server, served, until

POST = b"POST /v1/experiments/prices/log HTTP/1.1\r\nhost: 127.0.0.1\r\n"
JSON = b"content-type: application/json\r\n"
CHUNKED = POST + JSON + b"transfer-encoding: chunked\r\n\r\n"
GET = b"GET /openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
SMALL = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with closing(open_store(":memory:")) as store, served(store) as found:
        yield found


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Limits:
    """The same limits, but none is waited for for long."""
    quick = Limits(headers_seconds=0.5, body_seconds=0.5, idle_seconds=0.5, stuck_seconds=0.5)
    monkeypatch.setattr(connections, "SWEEP", 0.1)
    monkeypatch.setattr(Connection, "limits", quick)
    return quick


def _connected(client: httpx.Client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port), 30.0)


def _answer(plain: socket.socket) -> bytes:
    """All that is answered, until the connection ends."""
    found = b""
    with suppress(ConnectionError):
        while more := plain.recv(2**16):
            found += more
    return found


def _sent_without_end(plain: socket.socket, piece: bytes) -> int:
    """Send until it is refused; how many bytes went."""
    sent = 0
    with suppress(ConnectionError):
        while sent < 2**28:
            plain.sendall(piece)
            sent += len(piece)
    return sent


@pytest.mark.parametrize(
    ("begin", "piece", "status"),
    [
        (POST + b"x: ", b"x" * 2**14, b"431"),
        (POST, b"x: y\r\n" * 2**11, b"431"),
        (POST[:-2] + b"/" * 2**17, b"/" * 2**14, b"431"),
        (CHUNKED, b"4000\r\n" + b" " * 2**14 + b"\r\n", b"413"),
        (CHUNKED + b"0\r\nx: ", b"x" * 2**14, b"413"),
        (CHUNKED + b"1;", b"x" * 2**14, b"413"),
    ],
    ids=["a header", "headers", "a path", "chunks", "a trailer", "an extension"],
)
def test_what_never_ends_is_refused(
    client: httpx.Client, begin: bytes, piece: bytes, status: bytes
) -> None:
    with closing(_connected(client)) as plain:
        with suppress(ConnectionError):
            plain.sendall(begin)
        assert _sent_without_end(plain, piece) < 2**27
        assert client.get("/healthz").status_code == 200
    with closing(_connected(client)) as plain:  # a little too much, and the answer is read
        plain.sendall(begin)
        with suppress(ConnectionError):
            for _ in range(200):
                plain.sendall(piece)
        assert _answer(plain).startswith((b"HTTP/1.1 " + status, b"HTTP/1.1 400"))


@pytest.mark.parametrize("begin", [b"POST /v1", POST, CHUNKED + b"5\r\n", b""])
def test_what_does_not_go_on_is_ended(client: httpx.Client, limits: Limits, begin: bytes) -> None:
    with closing(_connected(client)) as plain:
        plain.sendall(begin)
        found = _answer(plain)
        assert found.startswith(b"HTTP/1.1 408") or not begin
        assert b"must come within 0.5 s" in found or not begin


def test_empty_lines_are_no_request(client: httpx.Client, limits: Limits) -> None:
    with closing(_connected(client)) as plain:
        plain.sendall(SMALL)
        assert plain.recv(2**16).startswith(b"HTTP/1.1 200")
        plain.settimeout(0.1)
        with suppress(ConnectionError):
            for _ in range(300):
                plain.sendall(b"\r\n")
                with suppress(TimeoutError):
                    if not plain.recv(1):
                        return
        assert Connection.cut["idle"] > 0


def test_pipelined_requests_are_answered_in_order_and_bounded(client: httpx.Client) -> None:
    with closing(_connected(client)) as plain:
        plain.sendall(
            (SMALL + GET) * 3 + SMALL.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
        )
        found = _answer(plain)
        order = [b"alive" in part for part in found.split(b"HTTP/1.1 200")[1:]]
        assert order == [True, False] * 3 + [True]
    before = Connection.cut["pipelined"]
    with closing(_connected(client)) as plain, suppress(ConnectionError):
        plain.sendall(SMALL * 1000)
        _answer(plain)
    assert Connection.cut["pipelined"] == before + 1


def test_who_never_reads_is_let_go(
    client: httpx.Client, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "limits", limits._replace(pipelined=10**6))
    before = Connection.cut["unread"]
    with closing(_connected(client)) as plain:
        plain.setblocking(False)

        def ask_on() -> bool:
            with suppress(OSError):
                plain.send(GET * 20)
            return Connection.cut["unread"] > before

        until(ask_on)


def test_a_newcomer_is_heard_however_many_are_silent(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "limits", Limits(connections=20))
    silent = [_connected(client) for _ in range(50)]
    try:
        for plain in silent[::2]:
            with suppress(ConnectionError):
                plain.sendall(POST)
        with closing(_connected(client)) as plain:
            plain.sendall(SMALL)
            assert plain.recv(2**16).startswith(b"HTTP/1.1 200")
        assert Connection.cut["full"] >= 30
    finally:
        for plain in silent:
            plain.close()


def test_a_log_that_nobody_reads_stops_nobody(tmp_path: Path) -> None:
    """A pipe holds 64 KiB, which is some 700 lines."""
    read, write = os.pipe()
    with closing(open(read, "rb")), closing(open(write, "wb")):
        with Server(tmp_path / "shop.db", log=write) as server:
            for _ in range(1500):
                assert server.client.get("/v1/experiments").status_code == 200
            for _ in range(10):
                with closing(_connected(server.client)) as plain:
                    plain.sendall(b"no request at all\r\n\r\n")
                    assert _answer(plain).startswith(b"HTTP/1.1 400")
            server.stop()
            assert server.process.returncode == 0


def test_large_answers_are_few_at_a_time_and_whole(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = "/v1/experiments/prices"
    assert client.put(there, json=PRICES).status_code == 201
    whole = client.get(f"{there}/history").content
    monkeypatch.setattr(http, "SLICE", 10)
    assert client.get(f"{there}/history").content == whole
    monkeypatch.setattr(http, "MOST_LARGE", 0)
    full = client.get(f"{there}/history")
    assert (full.status_code, full.json()["error"]) == (503, "busy")
    assert http.Large.under_way == 0


def test_requests_before_bytes_that_are_none_leave_no_traceback(
    client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("uvicorn.error").addHandler(caplog.handler)
    slow = GET.replace(b"/openapi.json", b"/v1/experiments")
    for last in (b"\x00nonsense\r\n\r\n", b""):
        for _ in range(20):
            with closing(_connected(client)) as plain:
                plain.sendall(slow * 3 + last)
                if last:
                    assert b"400" in _answer(plain)
    until(lambda: client.get("/healthz").status_code == 200)
    assert [record.message for record in caplog.records if record.exc_info] == []


class _Written:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.pieces, self.is_closed = list[bytes](), False

    def write(self, piece: bytes) -> None:
        assert not self.is_closed
        self.pieces.append(piece)

    def close(self) -> None:
        self.is_closed = True

    def write_eof(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self.is_closed


def test_head_and_body_of_an_answer_are_one_write() -> None:
    plain = _Written()
    joined = Joined(plain)  # type: ignore[arg-type]
    joined.write(b"first")
    joined.hold()
    joined.write(b"head")
    joined.write(b"body")
    assert plain.pieces == [b"first"]
    joined.release()
    joined.release()
    joined.write(b"next")
    assert plain.pieces == [b"first", b"headbody", b"next"]


@pytest.mark.parametrize("end", ["close", "write_eof"])
def test_what_is_held_is_written_before_the_end(end: str) -> None:
    plain = _Written()
    joined = Joined(plain)  # type: ignore[arg-type]
    joined.hold()
    joined.write(b"head")
    getattr(joined, end)()
    assert plain.pieces == [b"head"]
    assert joined.is_closing()
    joined.release()


def test_what_is_written_after_the_end_of_what_is_said_reaches_nobody() -> None:
    plain = _Written()
    joined = Joined(plain)  # type: ignore[arg-type]
    joined.hold()
    joined.write_eof()
    joined.write(b"late")
    joined.hold()
    joined.write(b"later")
    joined.release()
    assert plain.pieces == []


def test_a_refusal_is_said_while_an_answer_waits_for_its_client(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("uvicorn.error").addHandler(caplog.handler)
    held, hold, make = list[Joined](), Joined.hold, Connection.connection_made

    def noted(self: Connection, transport: asyncio.Transport) -> None:
        make(self, transport)
        self.pause_writing()  # as if its client had not read for long

    def noted_hold(self: Joined) -> None:
        hold(self)
        held.append(self)

    monkeypatch.setattr(Connection, "connection_made", noted)
    monkeypatch.setattr(Joined, "hold", noted_hold)
    with closing(_connected(client)) as plain:
        plain.sendall(CHUNKED.replace(b"application/json", b"text/plain"))  # answered with 400
        until(lambda: held)
        with suppress(ConnectionError):
            for _ in range(200):
                plain.sendall(b"1;" + b"x" * 2**14 + b"\r\n1\r\n")
        found = _answer(plain)
    assert found.startswith(b"HTTP/1.1 413")
    assert found.count(b"HTTP/1.1") == 1
    assert [record.message for record in caplog.records if record.exc_info] == []


def test_a_server_writes_an_answer_at_once(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = list[bytes]()
    release = Joined.release

    def noted(self: Joined) -> None:
        pieces.append(b"".join(self._held))
        release(self)

    monkeypatch.setattr(Joined, "release", noted)
    assert client.get("/healthz").status_code == 200
    [answer] = [piece for piece in pieces if piece]
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert body


def test_the_head_of_a_stream_ends(client: httpx.Client) -> None:
    there = "/v1/experiments/heads"
    assert client.put(there, json=PRICES).status_code == 201
    answer = client.head(f"{there}/stream", timeout=30.0)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert client.head("/v1/experiments/none/stream", timeout=30.0).status_code == 404


@pytest.mark.parametrize("size", [1, 2**16], ids=["byte by byte", "at once"])
def test_offers_of_another_protocol_are_ignored(
    client: httpx.Client, caplog: pytest.LogCaptureFixture, size: int
) -> None:
    logging.getLogger("uvicorn.error").addHandler(caplog.handler)
    there = f"/v1/experiments/offers-{size}"
    assert client.put(there, json=PRICES).status_code == 201
    offer = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"
    body = b'{"context": {"age": 37, "income": 52000}}'
    ask = f"POST {there}/decisions?a=b HTTP/1.1\r\nhost: localhost\r\n".encode() + JSON
    whole = ask + offer + b"content-length: %d\r\n\r\n" % len(body) + body
    chunks = ask + offer + b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
    look = SMALL.replace(b"\r\n\r\n", b"\r\n" + offer + b"\r\n")
    closes = b"\r\n" + offer.replace(b"connection: ", b"connection: close, ") + b"\r\n"
    last = SMALL.replace(b"\r\n\r\n", closes)
    said = whole + look + SMALL + chunks % (len(body), body) + whole + last
    with closing(_connected(client)) as plain:
        for first in range(0, len(said), size):
            plain.sendall(said[first : first + size])
        found = _answer(plain)
    parts = found.split(b"HTTP/1.1 200")[1:]
    order = [b"alive" in part for part in parts]
    assert order == [False, True, True, False, False, True], found
    assert all(b'"decision"' in part or b"alive" in part for part in parts)
    assert not [record for record in caplog.records if "upgrade" in record.message]
