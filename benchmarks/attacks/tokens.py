"""Tokens: revoked, disabled, made again, while servers start anew or are busy."""

import time
from collections.abc import Callable
from functools import partial

from benchmarks.attacks.ledger import command
from benchmarks.attacks.place import STORES, Place
from benchmarks.attacks.reads import left_reads, wide
from benchmarks.attacks.result import Case, Defect, Tally
from benchmarks.attacks.servers import Server, request, several
from benchmarks.attacks.shop import until

__all__ = ["CASES"]

DECIDE = "/v1/experiments/prices/decisions"
ASK = {"context": {"age": 40, "income": 100}}
SOON = 3.0  # seconds until a token that is revoked is let in no more: one, and this machine's


def _made(address: str, name: str, scope: str = "admin") -> str:
    return command("token", "create", name, "--scope", scope, "--store", address).split()[-1]


def _answers(server: Server, token: str | None, status: int) -> Callable[[], bool]:
    """Whether an ask is answered so."""
    return lambda: _status(server, token) == status


def _status(server: Server, token: str | None) -> int:
    return request(server.port, "POST", DECIDE, ASK, token=token)[0]


def _refused(server: Server, token: str | None, tally: Tally, when: str) -> None:
    """Nobody may be let in with this token."""
    tally.times += 1
    for method, path in (
        ("POST", DECIDE),
        ("GET", "/v1/experiments"),
        ("DELETE", "/v1/experiments/x"),
    ):
        status, answer = request(server.port, method, path, ASK if method == "POST" else None,
                                 token=token)  # fmt: skip
        if status not in (401, 403):
            tally.wrong += 1
            raise Defect(f"{when}, {method} {path} must be refused, but is {status}: {answer}")


def revoked(place: Place, tally: Tally, *, store: str) -> None:
    """Revoke the last token, and start servers anew: nobody is let in until one is made."""
    address = place.fresh(store)
    with several(2, address, place.folder / "tokens.stderr") as servers:
        for round_ in range(place.often(5, 1)):
            token = _made(address, f"last-{round_}")
            for server in servers:
                until(_answers(server, None, 401), "a first token shuts the door", 10.0)
                if _status(server, token) != 200:
                    raise Defect("a token that was made must be let in")
            command("token", "revoke", f"last-{round_}", "--store", address)
            for server in servers:
                until(_answers(server, token, 401), "a revoked token is refused", SOON)
                _refused(server, None, tally, "when the last token is revoked")
            servers[0].end()
            servers[0].start()
            servers[0].ready("/healthz")
            _refused(servers[0], None, tally, "when the last token is revoked, after a restart")
            _refused(servers[0], token, tally, "with the revoked token, after a restart")
            command("token", "disable", "--yes", "--store", address)
            for server in servers:
                until(_answers(server, None, 200), "disabled tokens let in", 10.0)
    tally.came = "refused, also after a restart"


def beyond(place: Place, tally: Tally) -> None:
    """A server that others can reach never serves without tokens, also if they go later."""
    address = place.fresh("SQLite")
    token = _made(address, "first")
    server = Server(address, place.folder / "tokens.stderr", "--host", "0.0.0.0")
    try:
        server.ready("/healthz")
        _refused(server, None, tally, "beyond loopback, with tokens")
        if request(server.port, "GET", "/v1/experiments", token=token)[0] != 200:
            raise Defect("beyond loopback a token must be let in")
        command("token", "disable", "--yes", "--store", address)
        end = time.monotonic() + SOON
        while time.monotonic() < end and server.process.poll() is None:
            _refused(server, None, tally, "beyond loopback, after `token disable`")
            time.sleep(0.1)
        server.end()
        server.start()
        try:
            server.ready("/healthz")
        except Defect:
            tally.came = "refused; a server beyond loopback does not start without tokens"
            return
        _refused(server, None, tally, "beyond loopback, without tokens, after a restart")
    finally:
        server.end()
    tally.came = "refused"


def busy(place: Place, tally: Tally) -> None:
    """Revoke a token while 24 heavy reads are under way, whose clients have left."""
    address = place.fresh("SQLite")
    with several(1, address, place.folder / "tokens.stderr") as [server]:
        wide(server)
        for round_ in range(place.often(3, 1)):
            token, reader = _made(address, f"shop-{round_}"), _made(address, f"reader-{round_}")
            until(_answers(server, token, 200), "a new token is let in", 10.0)
            left_reads(server, reader, 24)
            command("token", "revoke", f"shop-{round_}", "--store", address)
            began = time.monotonic()
            until(_answers(server, token, 401), "a revoked token is refused", SOON)
            tally.pause = max(tally.pause or 0.0, time.monotonic() - began)
            tally.times += 1
    tally.came = "refused at once"


CASES = [
    *(Case("tokens", f"{store}, the last token revoked, servers started anew",
           partial(revoked, store=store), store == "SQLite") for store in STORES),
    Case("tokens", "SQLite, beyond loopback, tokens disabled", beyond),
    Case("tokens", "SQLite, revoked during 24 heavy reads", busy),
]  # fmt: skip
