"""Requests to the service, a second, and how long each takes, beside the same server's echo.

    python -m benchmarks.service [--part requests] [--seconds 4] [--write]

Servers run in processes of their own, on real stores: SQLite on this disk, and a PostgreSQL of the
benchmark's own. The load comes over loopback from this process. `--write` puts the tables into
docs/service-measured.md, and with all parts what follows from them into docs/deployment.md. The
other server that it compares with needs `pip install granian`.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import continuarm as ca
from benchmarks.service_load import Measured, load, post
from benchmarks.service_page import machine, put, put_sizing, verdict
from continuarm.ledger.desk import Desk
from continuarm.ledger.replica import Replica
from continuarm.ledger.shared import begun
from continuarm.store import open_store
from continuarm.table import Table
from tests import postgresql

CONNECTIONS, MANY_CONNECTIONS, BATCH, BATCH_CONNECTIONS = 32, 128, 100, 8
ENOUGH = 60_000  # requests that are made before a measurement
WARM, TURNS, WORKER_TURNS = 2000, 8, 3
SHAPES = (
    ("single", 1, CONNECTIONS),
    ("single, many connections", 1, MANY_CONNECTIONS),
    ("batches", BATCH, BATCH_CONNECTIONS),
)
HERE = "/v1/experiments/prices"
CONTEXT: dict[str, Any] = {"low": [18, 0], "high": [90, 250_000], "names": ["age", "income"]}
DECISION: dict[str, Any] = {"low": [1], "high": [9], "names": ["price"]}
PRICES = {"context": CONTEXT, "decision": DECISION, "options": {"ttl_seconds": 7200}}
OF_ECHO = {  # what is wanted of the server that is kept, beside its echo
    ("SQLite", "ask"): 0.5,
    ("SQLite", "tell"): 0.5,
    ("PostgreSQL", "ask"): 0.35,
}
MANY, TWO_WORKERS, LONGER, SOON = 20_000.0, 1.3, 1.5, 5.0  # what else is wanted
SHORT, LONG = 10**3, 10**6  # events


class Durable(postgresql.Server):
    """A PostgreSQL that waits for the disk."""

    flags = ()


class Shop:
    """Requests of a shop, made ahead."""

    def __init__(self, seed: int) -> None:
        self._rng, self._orders = np.random.default_rng(seed), 0

    def contexts(self, count: int) -> list[dict[str, float]]:
        drawn = self._rng.random((count, 2)) * [72.0, 250_000.0] + [18.0, 0.0]
        return [{"age": age, "income": income} for age, income in drawn.tolist()]

    def keys(self, count: int) -> list[str]:
        self._orders += count
        return [f"order-{number}" for number in range(self._orders - count, self._orders)]

    def asks(self, count: int, path: str = f"{HERE}/decisions") -> list[bytes]:
        given = zip(self.contexts(count), self.keys(count), strict=True)
        return [post(path, _json({"context": c, "key": key})) for c, key in given]

    def batches(self, count: int) -> list[bytes]:
        bodies = (
            {"contexts": self.contexts(BATCH), "keys": self.keys(BATCH)} for _ in range(count)
        )
        return [post(f"{HERE}/decisions", _json(body)) for body in bodies]

    def tells(self, bodies: list[bytes]) -> list[bytes]:
        given = [(json.loads(body)["id"], self._rng.normal(1.0)) for body in bodies]
        return [post(f"{HERE}/payoffs", _json({"id": id_, "payoff": p})) for id_, p in given]

    def batched_tells(self, bodies: list[bytes]) -> list[bytes]:
        batches = [[d["id"] for d in json.loads(body)["decisions"]] for body in bodies]
        told = (
            [{"id": id_, "payoff": float(self._rng.normal(1.0))} for id_ in ids] for ids in batches
        )
        return [post(f"{HERE}/payoffs", _json({"payoffs": payoffs})) for payoffs in told]


def _json(body: Any) -> bytes:
    return json.dumps(body).encode()


class Server:
    """The service in a process of its own, with an echo."""

    def __init__(self, store: str, server: str = "uvicorn", workers: int = 1) -> None:
        self.port, began = postgresql.free_port(), time.perf_counter()
        answer = _json({"id": "0" * 32, "decision": {"price": 4.123456789012345}, "role": "best"})
        given = (server, store, str(self.port), str(workers), str(len(answer)))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.service_app", *given], stderr=subprocess.DEVNULL
        )
        while not self._is_ready():
            assert self.process.poll() is None, "the server must start"
            time.sleep(0.02)
        self.started_in = time.perf_counter() - began
        time.sleep(0.5 * workers)  # the other workers are as quick

    def call(self, method: str, path: str, body: Any = None) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with closing(connection):
            headers = {"content-type": "application/json"}
            connection.request(method, path, None if body is None else _json(body), headers)
            return connection.getresponse().status

    def seconds_of_cores(self) -> float:
        """How long cores have worked for it, for the workers that it has started, too."""
        of, total = [self.process.pid], 0.0
        for process in of:
            folder = Path(f"/proc/{process}")
            of += map(int, (folder / f"task/{process}/children").read_text().split())
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return total

    def _is_ready(self) -> bool:
        try:
            return self.call("GET", "/readyz") == 200
        except OSError:
            return False

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)


@contextmanager
def stores() -> Iterator[dict[str, str]]:
    """Empty stores, by name."""
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder, Durable() as database:
        yield {"SQLite": str(Path(folder) / "shop.db"), "PostgreSQL": database.address}


@contextmanager
def serving(
    store: str, server: str = "uvicorn", workers: int = 1
) -> Iterator[tuple[Server, Shop]]:
    """A server of an experiment that has learned something."""
    shop = Shop(0)
    with Server(store, server, workers) as running:
        assert running.call("PUT", HERE, PRICES) in (200, 201)
        asked = load(running.port, shop.asks(WARM), connections=CONNECTIONS)
        load(running.port, shop.tells(asked.bodies), connections=CONNECTIONS)
        yield running, shop


def row(found: Measured, times: int = 1) -> list[Any]:
    """A rate, and quantiles of the times."""
    return [round(times * found.rate), found.milliseconds(0.5), found.milliseconds(0.99)]


def requests(seconds: float) -> str:
    """Single requests: echoes, ask, tell, by turns, with both servers on both stores."""
    rows = []
    for server in ("uvicorn", "granian"):
        with stores() as addresses:
            for name, store in addresses.items():
                with serving(store, server) as (running, shop):
                    found = by_turns(running, shop, seconds / 4.0)
                base = np.array([one.rate for one in found["echo"]])
                for what, measured in found.items():
                    ratios = [one.rate for one in measured] / base
                    wanted = OF_ECHO.get((name, what)) if server == "uvicorn" else None
                    took = [t for one in measured for t in one.took]
                    whole = Measured(median(one.rate for one in measured), took, [])
                    times = [whole.milliseconds(0.5), whole.milliseconds(0.99)]
                    edges = f"{min(ratios):.2f} to {max(ratios):.2f}"
                    middle = round(median(ratios), 2)
                    ratio = (middle, edges, wanted, verdict(median(ratios), wanted))
                    rows.append((server, name, what, round(whole.rate), *times, *ratio))
                    print(rows[-1], flush=True)
    columns = ("server", "store", "request", "a second", "p50, ms", "p99, ms", "of echo", "range")
    return f"""
Durable requests from {CONNECTIONS} connections over loopback, one worker: medians of {TURNS}
rounds, in which all kinds took turns. An *echo* is a route of the same application that parses the
same body and answers as much. A *bare echo* does so past the routes, where asks and tells go, too.
Every ask has a key.

{Table.of((*columns, "wanted", ""), rows).markdown()}
"""


def by_turns(running: Server, shop: Shop, seconds: float) -> dict[str, list[Measured]]:
    """Echoes, asks and tells, one after the other, in each round."""
    found: dict[str, list[Measured]] = {"echo": [], "bare echo": [], "ask": [], "tell": []}
    given: dict[str, Any] = {"connections": CONNECTIONS, "seconds": seconds}
    echoes = shop.asks(ENOUGH, "/echo"), shop.asks(ENOUGH, f"{HERE}/echo")
    for turn in range(TURNS + 1):
        measured = [load(running.port, sent, **given) for sent in echoes]
        asked = load(running.port, shop.asks(ENOUGH // 4), **given)
        told = load(running.port, shop.tells(asked.bodies), **given)
        if turn > 0:  # the first one is to warm up
            for kept, one in zip(found.values(), (*measured, asked, told), strict=True):
                kept.append(one)
    return found


def batches(seconds: float) -> str:
    """Batches of a hundred."""
    rows = []
    with stores() as addresses:
        for name, store in addresses.items():
            with serving(store) as (running, shop):
                given: dict[str, Any] = {"connections": BATCH_CONNECTIONS, "seconds": seconds}
                asked = load(running.port, shop.batches(1000), **given)
                told = load(running.port, shop.batched_tells(asked.bodies), **given)
            wanted = MANY if name == "SQLite" else None
            said = verdict(BATCH * asked.rate, wanted)
            rows.append((name, "decisions", *row(asked, BATCH), wanted, said))
            rows.append((name, "payoffs", *row(told, BATCH), None, None))
            print(*rows[-2:], sep="\n", flush=True)
    columns = ("store", "what", "a second", "p50 of a batch, ms", "p99, ms", "wanted", "")
    return f"""
Batches of {BATCH} from {BATCH_CONNECTIONS} connections, one worker.

{Table.of(columns, rows).markdown()}
"""


def workers(seconds: float) -> str:
    """Two workers against one, by turns."""
    found: dict[tuple[str, int], list[tuple[float, ...]]] = {}
    for count in (1, 2) * WORKER_TURNS:
        with stores() as addresses, serving(addresses["SQLite"], workers=count) as (running, shop):
            for what, times, connections in SHAPES:
                sent = shop.asks(ENOUGH) if times == 1 else shop.batches(ENOUGH // 20)
                before = running.seconds_of_cores(), time.process_time()
                done = load(running.port, sent, connections=connections, seconds=seconds)
                after = running.seconds_of_cores(), time.process_time()
                each = 1e6 / (times * len(done.took))
                cores = (each * (b - a) for a, b in zip(before, after, strict=True))
                found.setdefault((what, count), []).append((times * done.rate, *cores))
                print(what, count, found[what, count][-1], flush=True)
    rows = []
    for (what, count), measured in found.items():
        rate, served, loaded = (median(column) for column in zip(*measured, strict=True))
        alone = median(one[0] for one in found[what, 1])
        times = round(rate / alone, 2)
        ratio = (times, TWO_WORKERS, verdict(times, TWO_WORKERS)) if count > 1 else 3 * (None,)
        rows.append((what, count, round(rate), *ratio, round(served, 1), round(loaded, 1)))
    rates = ("what", "workers", "decisions a second", "times one worker", "wanted", "")
    columns = (*rates, "server, µs each", "load, µs each")
    return f"""
Decisions on SQLite, singly from {CONNECTIONS} and from {MANY_CONNECTIONS} connections, and in
batches of {BATCH} from {BATCH_CONNECTIONS}; workers share the file; medians of {WORKER_TURNS}
rounds by turns. The last columns say how long a core works for one decision, all workers together.
The load and both workers share this machine's two cores, so two workers can at most decide as
often as two cores have room for both.

{Table.of(columns, sorted(rows, key=lambda row: (str(row[0]), int(row[1])))).markdown()}

Why two workers are not twice as fast: each folds the decisions of the other, too, and with half of
the connections each has groups half as large, so that twice as many wait for the disk, one after
the other. The more connections there are, the less that costs. Where servers have more cores than
the load leaves here, that wait remains, and that each decision is folded everywhere. More than one
worker is also for what happens when one of them is busy or gone. For speed, send batches, or let
[experiments shard](deployment.md#a-million-decisions-a-second).
"""


def fill(store: str, events: int) -> None:
    """Let an experiment have so many events: decisions, and their payoffs a thousand later."""
    policy = ca.SurfaceSampling(ca.Box(**CONTEXT), ca.Box(**DECISION), ttl_seconds=7200.0, rng=0)
    rng, shop = np.random.default_rng(1), Shop(1)
    with closing(open_store(store)) as opened:
        begun(policy, opened, "prices")
        replica = Replica(opened, "prices")
        desk, block = Desk(replica), 500
        while replica.position < events:
            points = [desk.context.point(context) for context in shop.contexts(block)]
            keys = shop.keys(block)
            asked = [desk.asked(p, None, key) for p, key in zip(points, keys, strict=True)]
            ids = [int(str(one.entry.opens), 16) for one in asked]
            told = [desk.told(id_, float(rng.normal(1.0)), None) for id_ in ids]
            for group in (asked, told):
                outcomes = opened.append("prices", [entry for entry, _ in group]).outcomes
                replica.fold_own(zip(outcomes, (event for _, event in group), strict=True))
                replica.keep_snapshots()


def length(seconds: float) -> str:
    """Short and long ledgers."""
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        for events in (SHORT, LONG):
            store = str(Path(folder) / f"{events}.db")
            fill(store, events)
            with Server(store) as running:
                shop, given = Shop(2), {"connections": CONNECTIONS, "seconds": seconds}
                shop.keys(LONG)
                asked = load(running.port, shop.asks(ENOUGH), **given)  # type: ignore[arg-type]
                load(running.port, shop.tells(asked.bodies), connections=CONNECTIONS)
                asked = load(running.port, shop.asks(ENOUGH), **given)  # type: ignore[arg-type]
            rows.append([events, 1e6 / asked.rate, running.started_in])
            print(rows[-1], flush=True)
    times = [found / rows[0][1] for _, found, _ in rows]
    limits = [None, LONGER], [None, SOON]
    table = [
        (events, round(took, 1), round(ratio, 2), most, round(started, 1), soon)
        for (events, took, started), ratio, most, soon in zip(rows, times, *limits, strict=True)
    ]
    columns = ("events", "µs per ask", "times short", "at most", "start, s", "below, s")
    return f"""
A server on a ledger of SQLite with so many events, half of them payoffs: the time per decision
from {CONNECTIONS} connections, and the time from the start of the process until `/readyz` says so.

{Table.of(columns, table).markdown()}
"""


PARTS = {"Requests": requests, "Batches": batches, "Workers": workers, "Long ledgers": length}


def main() -> None:
    """Measure, and print or write the sections."""
    parser = argparse.ArgumentParser(description=__doc__)
    words = {heading.split()[-1].lower(): heading for heading in PARTS}
    parser.add_argument("--part", choices=words, action="append")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    for word in options.part or words:
        text = PARTS[words[word]](options.seconds)
        text += f"\n`python -m benchmarks.service --part {word} --write` on {machine()}.\n"
        print(text)
        if options.write:
            put(words[word], text)
    if options.write and not options.part:
        put_sizing()


if __name__ == "__main__":
    main()
