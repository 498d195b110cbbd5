"""Processes that are frozen by SIGSTOP: servers within a transaction, and the database itself."""

import os
import signal
import sqlite3
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from threading import Thread

import psycopg

from benchmarks.attacks.acknowledged import acknowledged
from benchmarks.attacks.ledger import check, replayed
from benchmarks.attacks.place import Place
from benchmarks.attacks.result import Case, Defect, Tally
from benchmarks.attacks.servers import Server, request, several
from benchmarks.attacks.shop import Shop, until

__all__ = ["CASES"]

FROZEN = 12.0  # seconds
OTHERS = 6.0  # seconds within which the others must decide again
SAYS = 3.0  # seconds until a frozen database is a 503: two, and one for this machine
HELD = 12.0  # seconds of a lock: more than a server gives what is open when it ends
AGAIN = 30.0  # seconds until all decide again afterwards
DECIDE = "/v1/experiments/prices/decisions"
ASK = {"context": {"age": 40, "income": 100}}
WITHIN = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND state LIKE 'idle in trans%%' "
    "AND pg_catalog.clock_timestamp() - state_change > interval '60 ms'"
)


def server_frozen(place: Place, tally: Tally) -> None:
    """Freeze one of three servers within a transaction that writes; the others go on."""
    address, log = place.fresh("PostgreSQL"), place.log("frozen PostgreSQL")
    worst = 0.0
    with several(3, address, place.folder / "frozen.stderr") as servers:
        with Shop([server.port for server in servers], log, tally, timeout=2.0, lanes=6) as shop:
            for round_ in range(place.often(5, 1)):
                shop.until_more(20)
                frozen = servers[round_ % 3]
                _freeze_within(frozen, partial(_within_postgresql, address))
                began = time.monotonic()
                shop.until_more(30, OTHERS)
                worst = max(worst, time.monotonic() - began)
                shop.rest(FROZEN - (time.monotonic() - began))
                frozen.send(signal.SIGCONT)
                tally.times += 1
                shop.until_more(20, AGAIN)
            for server in servers:
                until(partial(_decides, server), "each server decides again", AGAIN)
                server.ready()
    check(address, "prices", acknowledged(log.path, "prices"), tally)
    replayed(address, "prices")
    tally.came = f"the others decided again within {worst:.1f} s"


def _freeze_within(server: Server, within: partial[bool]) -> None:
    """Freeze it until it is within a transaction."""
    for _ in range(5000):
        server.send(signal.SIGSTOP)
        if within():
            return
        server.send(signal.SIGCONT)
        time.sleep(0.002)
    raise Defect("a server must be within a transaction sometimes, but never was")


def _within_postgresql(address: str) -> bool:
    time.sleep(0.07)  # the transactions of the others end meanwhile
    with psycopg.connect(address) as connection:
        found = connection.execute(WITHIN, [address.rpartition("/")[2]]).fetchone()
    return found is not None and found[0] > 0


def _within_sqlite(address: str) -> bool:
    """Whether the lock of the file is held for long; then nobody else can write."""
    with closing(sqlite3.connect(address, 0.1, isolation_level=None)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        other.execute("ROLLBACK")
    return False


def sqlite_frozen(place: Place, tally: Tally) -> None:
    """On SQLite a frozen writer holds the file's lock: others say so, and go on afterwards."""
    address, log = place.fresh("SQLite"), place.log("frozen SQLite")
    with several(3, address, place.folder / "frozen.stderr") as servers:
        with Shop([server.port for server in servers], log, tally, lanes=6) as shop:
            for round_ in range(place.often(5, 1)):
                shop.until_more(20)
                _freeze_within(servers[round_ % 3], partial(_within_sqlite, address))
                shop.rest(place.often(12, 3))
                servers[round_ % 3].send(signal.SIGCONT)
                tally.times += 1
                shop.until_more(20, AGAIN)
            for server in servers:
                until(partial(_decides, server), "each server decides again", AGAIN)
                server.ready()
    check(address, "prices", acknowledged(log.path, "prices"), tally)
    replayed(address, "prices")
    tally.came = "others wait or say 503; all go on afterwards"


def _decides(server: Server) -> bool:
    return request(server.port, "POST", DECIDE, ASK)[0] == 200


def database_frozen(place: Place, tally: Tally) -> None:
    """Freeze the database: every request is answered in time, and all goes on afterwards."""
    address, log = place.fresh("PostgreSQL"), place.log("frozen database")
    slowest = 0.0
    with several(2, address, place.folder / "frozen.stderr") as servers:
        with Shop([server.port for server in servers], log, tally, timeout=30.0) as shop:
            for _ in range(place.often(5, 1)):
                shop.until_more(20)
                processes = _processes(place)
                _send(processes, signal.SIGSTOP)
                try:
                    for k in range(place.often(6, 3)):
                        slowest = max(slowest, _answered(servers[k % 2]))
                finally:
                    _send(processes, signal.SIGCONT)
                tally.times += 1
                shop.until_more(20, AGAIN)
            for server in servers:
                until(partial(_decides, server), "each server decides again", AGAIN)
    check(address, "prices", acknowledged(log.path, "prices"), tally)
    replayed(address, "prices")
    tally.came = f"answered within {slowest:.1f} s, and all go on afterwards"


def _processes(place: Place) -> list[int]:
    """Those of the database, the one that starts the others first."""
    process = place.database.process
    assert process is not None
    children = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            if parent == process.pid:
                children.append(int(status.parent.name))
    return [process.pid, *children]


def _send(processes: list[int], which: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, which)


def _answered(server: Server) -> float:
    """How long an ask takes while the database is frozen; it is a 503 in time."""
    began = time.monotonic()
    try:
        status, _ = request(server.port, "POST", DECIDE, ASK, timeout=3 * SAYS)
    except OSError:
        status = 0
    took = time.monotonic() - began
    if status != 503 or took > SAYS:
        raise Defect(
            f"a frozen database must be a 503 in 2 s, but was {status or 'nothing'} in {took:.1f}"
        )
    return took


def ended_while_locked(place: Place, tally: Tally) -> None:
    """SIGTERM while another process holds the file's lock: what waits is answered, and no 500."""
    address = place.fresh("SQLite")
    with several(1, address, place.folder / "frozen.stderr") as [server]:
        for _ in range(place.often(5, 1)):
            statuses: list[int] = []

            def ask(found: list[int] = statuses) -> None:
                with suppress(OSError):
                    found.append(request(server.port, "POST", DECIDE, ASK)[0])

            with closing(sqlite3.connect(address, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                threads = [Thread(target=ask, daemon=True) for _ in range(8)]
                for thread in threads:
                    thread.start()
                time.sleep(0.5)
                server.send(signal.SIGTERM)
                time.sleep(HELD)
                other.execute("ROLLBACK")
            for thread in threads:
                thread.join(60.0)
            tally.times += 1
            tally.statuses.update(statuses)
            code = server.end(signal.SIGTERM)
            if code != 0:
                raise Defect(f"SIGTERM under a lock must end a server well, but it is {code}")
            server.start()
            server.ready()
    tally.failures = tally.statuses[500]
    said = ", ".join(f"{count} times {status}" for status, count in tally.statuses.items())
    tally.came = f"answered: {said}"


CASES = [
    Case("frozen", "PostgreSQL, one of three servers within a transaction", server_frozen, False),
    Case("frozen", "SQLite, one of three servers within a transaction", sqlite_frozen),
    Case("frozen", "PostgreSQL, the database", database_frozen),
    Case("frozen", "SQLite, SIGTERM while another holds the lock", ended_while_locked, False),
]
