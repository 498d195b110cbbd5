"""Clocks that jump by hours and a year, forth and back, under load."""

import os
import re
from functools import partial
from pathlib import Path

import psycopg

from benchmarks.attacks.acknowledged import acknowledged
from benchmarks.attacks.ledger import check, command, replayed
from benchmarks.attacks.place import STORES, Place
from benchmarks.attacks.result import Case, Defect, Tally
from benchmarks.attacks.servers import Server, created, request, several
from benchmarks.attacks.shop import Shop, until

__all__ = ["CASES"]

HOUR, YEAR = 3600.0, 365 * 86400.0
JUMPS = (HOUR, 0.0, -HOUR, -YEAR, 0.0, 26 * HOUR, 0.0)
SHORT, LIVES = "short", 2.0  # an experiment, and seconds that its decisions live
AHEAD = re.compile(r'continuarm_clock_ahead_seconds\{experiment="prices"\} (\S+)')
SHIFTED = """
import os, time
_read, _read_ns, _file = time.time, time.time_ns, os.environ["ATTACK_CLOCK"]

def _shift():
    with open(_file) as file:
        return float(file.read() or 0.0)

time.time = lambda: _read() + _shift()
time.time_ns = lambda: _read_ns() + int(1e9 * _shift())
"""
FUNCTION = """
CREATE SCHEMA attack;
CREATE TABLE attack.clock (shift DOUBLE PRECISION);
INSERT INTO attack.clock VALUES (0);
CREATE FUNCTION attack.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    'SELECT pg_catalog.clock_timestamp() + make_interval(secs => shift) FROM attack.clock';
"""


class Clock:
    """What servers and a database take for the time.

    Python reads a module of ours before it starts; PostgreSQL finds a function of ours first.
    """

    def __init__(self, folder: Path, address: str) -> None:
        self._file, self._far = folder / "shift", None
        self._file.write_text("0")
        (folder / "sitecustomize.py").write_text(SHIFTED)
        self.environment = {
            "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}",
            "ATTACK_CLOCK": str(self._file),
        }
        if address.startswith("postgresql://"):
            self._far = address
            database = address.rpartition("/")[2]
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute(FUNCTION.encode())
                path = f'ALTER DATABASE "{database}" SET search_path = public, attack, pg_catalog'
                connection.execute(path.encode())

    def set(self, shift: float) -> None:
        """Let it be so many seconds later, everywhere."""
        self._file.write_text(repr(shift))
        if self._far is not None:
            with psycopg.connect(self._far) as connection:
                connection.execute("UPDATE attack.clock SET shift = %s", [shift])


def clocks(place: Place, tally: Tally, *, store: str) -> None:
    """Let clocks jump, and last by a year for a moment."""
    address, log = place.fresh(store), place.log(f"clocks {store}")
    folder = place.stores / f"clock-{store}"
    folder.mkdir()
    clock, errors = Clock(folder, address), place.folder / "clocks.stderr"
    with several(2, address, errors, environment=clock.environment) as servers:
        created(servers[0], SHORT, options={"ttl_seconds": LIVES})
        with Shop([server.port for server in servers], log, tally, may_expire=True) as shop:
            for shift in (*JUMPS * place.often(5, 1), YEAR, 0.0):
                clock.set(shift)
                shop.until_more(30)
                tally.times += 1
            asked(servers[0])
            for server in servers:
                until(partial(alarms, server), f"{server.port} says that a clock was ahead", 15.0)
            for name in ("prices", SHORT):
                command("clock", name, "--set", "--store", address, env=environment(clock))
            until(partial(expires, servers[1], asked(servers[0])), "what is asked expires", 30.0)
            for server in servers:
                until(partial(quiet, server), "after the clock was set, no alarm", 15.0)
            shop.until_more(30)
    check(address, "prices", acknowledged(log.path, "prices"), tally)
    replayed(address, "prices")
    tally.came = "all is there; an alarm, which a command ended"


def environment(clock: Clock) -> dict[str, str]:
    """Of a command that has the same clock."""
    return {**os.environ, **clock.environment}


def asked(server: Server) -> str:
    """A decision of the experiment whose decisions live shortly."""
    path, context = f"/v1/experiments/{SHORT}/decisions", {"age": 40, "income": 100}
    status, answer = request(server.port, "POST", path, {"context": context})
    if status != 200:
        raise Defect(f"a decision must be made whatever the clock says, but got {answer}")
    return str(answer["id"])


def expires(server: Server, id_: str) -> bool:
    """Whether a decision is over its time."""
    path = f"/v1/experiments/{SHORT}"
    counts = request(server.port, "GET", path)[1]["counts"]
    if counts.get("open"):
        return False
    told = request(server.port, "POST", f"{path}/payoffs", {"id": id_, "payoff": 1.0})[1]
    return bool(told.get("error") == "expired")


def alarms(server: Server) -> bool:
    """Whether a server says everywhere that a clock was ahead, or else nowhere."""
    ready = request(server.port, "GET", "/readyz")[1].get("alarms")
    health = request(server.port, "GET", "/v1/experiments/prices")[1]["health"]
    metrics = str(request(server.port, "GET", "/metrics")[1])
    found = AHEAD.search(metrics)
    metric = found is not None and float(found[1]) > 0.0
    return bool(ready) and "serious" in str(health) and metric


def quiet(server: Server) -> bool:
    """Whether it is silent again."""
    return not alarms(server)


CASES = [
    Case("clocks", f"{store}, jumps by hours and a year, 2 servers", partial(clocks, store=store),
         store == "SQLite")
    for store in STORES
]  # fmt: skip
