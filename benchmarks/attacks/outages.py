"""Errors of PostgreSQL that pass: afterwards all goes on, and nothing was lost."""

import http.client
import json
import random
import signal
import time
from functools import partial
from threading import Thread

import psycopg

from benchmarks.attacks.acknowledged import acknowledged
from benchmarks.attacks.ledger import check, command, replayed
from benchmarks.attacks.place import Place
from benchmarks.attacks.result import Case, Defect, Tally
from benchmarks.attacks.servers import Server, request, several
from benchmarks.attacks.shop import Shop, until

__all__ = ["CASES"]

AGAIN = 30.0  # seconds until all servers decide again
JSON = {"content-type": "application/json"}
HERE = "/v1/experiments/prices"
DECIDE = f"{HERE}/decisions"


def outages(place: Place, tally: Tally, *, way: str) -> None:
    """Let something pass, again and again; then every server decides, and all is there."""
    address, log = place.fresh("PostgreSQL"), place.log(f"outages {way}")
    with several(2, address, place.folder / "outages.stderr") as servers:
        with Shop([server.port for server in servers], log, tally) as shop:
            for _ in range(place.often(10, 1)):
                shop.until_more(20)
                WAYS[way](place, address)
                tally.times += 1
                shop.until_more(20, AGAIN)
            for server in servers:
                until(partial(_decides, server), f"after {way}, a decision of each server", AGAIN)
                server.ready()
        _revoked(servers[0], address)
    check(address, "prices", acknowledged(log.path, "prices"), tally)
    replayed(address, "prices")
    tally.came = "all go on"


def _decides(server: Server, token: str | None = None) -> bool:
    asked = {"context": {"age": 40, "income": 100}}
    return request(server.port, "POST", DECIDE, asked, token=token)[0] == 200


def _revoked(server: Server, address: str) -> None:
    """Who looks after tokens must still be there: a first one shuts the door."""
    command("token", "create", "guard", "--store", address)
    until(lambda: not _decides(server), "a token is made, and a request without one refused", 10.0)
    command("token", "disable", "--yes", "--store", address)
    until(partial(_decides, server), "tokens are disabled, and a request let in", 10.0)


def table_missing(place: Place, address: str) -> None:
    """A table is another's for two seconds, as in a restore."""
    with psycopg.connect(address, autocommit=True) as connection:
        for table in ("events", "experiments", "tokens", "snapshots"):
            connection.execute(f"ALTER TABLE {table} RENAME TO {table}_away".encode())
        time.sleep(2.0)
        for table in ("events", "experiments", "tokens", "snapshots"):
            connection.execute(f"ALTER TABLE {table}_away RENAME TO {table}".encode())


def read_only(place: Place, address: str) -> None:
    """The database takes no writes for two seconds, and new connections neither."""
    name = address.rpartition("/")[2]
    rule = f'ALTER DATABASE "{name}" SET default_transaction_read_only ='
    with psycopg.connect(place.database.address, autocommit=True) as connection:
        connection.execute(f"{rule} on".encode())
        terminate(place, address)
        time.sleep(2.0)
        connection.execute(f"{rule} off".encode())
        terminate(place, address)


def terminate(place: Place, address: str) -> None:
    """All connections are ended, some times."""
    name = address.rpartition("/")[2]
    with psycopg.connect(place.database.address, autocommit=True) as connection:
        for _ in range(5):
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                [name],
            )
            time.sleep(random.uniform(0.0, 0.1))


def restart(place: Place, address: str) -> None:
    """The database crashes, and starts again."""
    place.database.restart(signal.SIGQUIT)


WAYS = {
    "tables missing for 2 s": table_missing,
    "read-only for 2 s": read_only,
    "connections terminated": terminate,
    "the database crashes": restart,
}


def storm(place: Place, tally: Tally) -> None:
    """Connections that repeat one payoff keep nobody from deciding."""
    address = place.fresh("PostgreSQL")
    with several(1, address, place.folder / "outages.stderr", "--max-lag", "0.5") as servers:
        port = servers[0].port
        asked = request(port, "POST", DECIDE, {"context": [40, 100]})[1]
        told = {"id": asked["id"], "payoff": 1.0}
        request(port, "POST", f"{HERE}/payoffs", told)
        end = time.monotonic() + place.often(20, 4)

        def repeat() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30.0)
            while time.monotonic() < end:
                connection.request("POST", f"{HERE}/payoffs", json.dumps(told), JSON)
                connection.getresponse().read()
                tally.times += 1

        threads = [Thread(target=repeat, daemon=True) for _ in range(6)]
        for thread in threads:
            thread.start()
        time.sleep(1.5)  # three times what it may be behind
        refused, slowest = 0, 0.0
        while time.monotonic() < end:
            time.sleep(0.05)
            began = time.monotonic()
            refused += not _decides(servers[0])
            slowest = max(slowest, time.monotonic() - began)
            tally.decisions += 1
        for thread in threads:
            thread.join()
    tally.decisions -= refused
    tally.pause = slowest
    if refused:
        tally.wrong = refused
        raise Defect(f"{refused} of {tally.decisions + refused} asks were refused meanwhile")
    tally.came = "all asks were answered"


CASES = [
    *(
        Case("outages", f"PostgreSQL, {way}", partial(outages, way=way), "missing" in way)
        for way in WAYS
    ),
    Case("outages", "PostgreSQL, six connections repeat one payoff", storm),
]
