"""Requests that nobody would write, as bytes: lines, headers and bodies that are fuzzed."""

import json
import random
from collections.abc import Callable

__all__ = ["sound", "volley"]

GOOD = "/v1/experiments/prices"
VERBS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "BREW")
ODD_VERBS = ("get", "", "PÖST", "G\x00T", "POST POST", "A" * 300)
PATHS = (
    "decisions", "payoffs", "forget", "recommendation?age=1e999", "explain?age=%00&income=%ff",
    "explain/%00", "explain/" + "f" * 32, "diagnosis", "bins?after=-1&most=1e9", "history",
    "curve?along=%F0%9F%92%A9", "payoff?over=%ed%a0%80", "events?after=99999999999999999999",
    "bins/%00/freeze", "bins/9/freeze", "uplift", "export?x=%", "log", "reference", "%00", "..",
)  # fmt: skip
NAMES = ("%00", "%ed%a0%80", "%ff%fe", "a%2fb", "..", ".", "%20", "x" * 2000, "%", "%zz", "p\x00",
         "'; DROP TABLE events;--", "%E2%80%AE", "prices%00")  # fmt: skip
BODIES = (
    b"", b"null", b"[]", b"{", b"\xff\xfe", b'{"context": [1e400, 1]}', b'{"context": [NaN, 1]}',
    b'{"context": {"age": 37, "income": 1}, "key": "\\u0000"}',
    b'{"context": {"age": 37, "income": 1}, "key": "\\ud800"}',
    b'{"context": {"\\ud800": 1}}', b'{"contexts": [], "keys": []}', b"[" * 3000,
    b'{"id": "' + b"0" * 32 + b'", "payoff": 1e308}', b'{"ids": ["\\u0000"]}',
    b'{"columns": {"\\ud800": [1]}}', b'{"columns": {"age": [1], "payoff": []}}',
    b'{"context": {"age": 37, "income": ' + b"9" * 400 + b"}}",
    b'{"context": {"age": 37, "income": 1}, "within": {"price": [9, 1]}}',
)  # fmt: skip
HEADERS = (
    "content-length: -1", "content-length: 99999999999999999999", "content-length: 1e3",
    "content-length: 5\r\ncontent-length: 6", "transfer-encoding: chunked", "connection: close",
    "transfer-encoding: gzip, chunked", "transfer-encoding: chunked\r\ncontent-length: 3",
    "host: evil.example", "host:", "host: 127.0.0.1\r\nhost: 127.0.0.1", "expect: 100-continue",
    "authorization: Bearer \x00", "authorization: Bearer " + "A" * 5000, "origin: null",
    "origin: http://evil.example", "x: " + "y" * 9000, ": no name", "no colon", " folded: 1",
    "upgrade: websocket\r\nconnection: upgrade", "upgrade: h2c", "content-type: text/plain",
    "content-type: \xff", "cookie: " + "=;" * 500, "x\x00y: 1", "accept: \r\n\ty",
    "content-encoding: gzip", "range: bytes=0-", "if-none-match: *",
)  # fmt: skip
ASK = json.dumps({"context": {"age": 37, "income": 52000}, "key": "k"}).encode()
Random = random.Random


def sound(path: str = "/healthz", method: str = "GET", body: bytes = b"", *more: str) -> bytes:
    """A request as it should be."""
    head = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", *more]
    if body:
        head += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*head, "", ""]).encode("latin-1", "replace") + body


def _path(rng: Random) -> str:
    if rng.random() < 0.3:
        name = rng.choice(NAMES)
        return f"/v1/experiments/{name}" + rng.choice(("", "/decisions", "/payoffs", "/explain/1"))
    return f"{GOOD}/{rng.choice(PATHS)}" if rng.random() < 0.9 else rng.choice(NAMES)


def bodies(rng: Random) -> bytes:
    """A body that is not what it should be, or a good one with some bytes changed."""
    body = bytearray(ASK if rng.random() < 0.5 else rng.choice(BODIES))
    for _ in range(rng.randint(0, 3)):
        if body:
            body[rng.randrange(len(body))] = rng.randrange(256)
    path = f"{GOOD}/{rng.choice(('decisions', 'payoffs', 'forget', 'log'))}"
    return sound(path, "POST", bytes(body) or b" ")


def paths(rng: Random) -> bytes:
    """A path that leads nowhere, by some verb."""
    method = rng.choice(("GET", "POST", "PUT", "HEAD", "OPTIONS", "PATCH"))
    return sound(_path(rng), method, rng.choice((b"", ASK)))


def headers(rng: Random) -> bytes:
    """Headers that contradict each other, or are none."""
    chosen = rng.sample(HEADERS, rng.randint(1, 3))
    return sound(f"{GOOD}/decisions", "POST", ASK, *chosen)


def lines(rng: Random) -> bytes:
    """A request line that is none."""
    method = rng.choice(VERBS + ODD_VERBS)
    version = rng.choice(("HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9", "", "http/1.1", "\x00"))
    path = _path(rng) if method != "DELETE" else "/v1/experiments/nothing"
    line = f"{method} {path} {version}\r\nhost: 127.0.0.1\r\n\r\n"
    return line.encode("latin-1", "replace")


def chunks(rng: Random) -> bytes:
    """Bodies in chunks whose sizes are wrong."""
    size = rng.choice((b"5", b"-1", b"ffffffffffffffff", b"zz", b"", b"5;x=" + b"y" * 300, b"0"))
    head = sound(f"{GOOD}/decisions", "POST", b"", "transfer-encoding: chunked")
    return head + size + b"\r\n" + rng.choice((b"hello", ASK, b"")) + b"\r\n0\r\n\r\n"


def flips(rng: Random) -> bytes:
    """A good request with some bytes changed, added or left out."""
    request = bytearray(sound(f"{GOOD}/decisions", "POST", ASK))
    for _ in range(rng.randint(1, 6)):
        at, way = rng.randrange(len(request)), rng.random()
        if way < 0.6:
            request[at] = rng.randrange(256)
        elif way < 0.8:
            request.insert(at, rng.randrange(256))
        else:
            del request[at]
    return bytes(request)


def noise(rng: Random) -> bytes:
    """Bytes at random."""
    return rng.randbytes(rng.randint(1, 200)) + b"\r\n\r\n"


def half(rng: Random) -> bytes:
    """A request that does not end."""
    request = sound(f"{GOOD}/decisions", "POST", ASK)
    return request[: rng.randrange(1, len(request))]


CLOSE = sound("/healthz", "GET", b"", "connection: close")
WHOLE: tuple[Callable[[Random], bytes], ...] = (bodies, bodies, paths)
LAST: tuple[Callable[[Random], bytes], ...] = (headers, lines, chunks, flips, noise, half)


def volley(rng: Random) -> list[bytes]:
    """Requests of one connection: some that a server can tell apart, or one that it may not."""
    if rng.random() < 0.5:
        return [*(rng.choice(WHOLE)(rng) for _ in range(rng.randint(1, 12))), CLOSE]
    return [*(rng.choice(WHOLE)(rng) for _ in range(rng.randint(0, 2))), rng.choice(LAST)(rng)]
