"""Processes that decide and tell until they are killed, and what must hold afterwards.

    python -m benchmarks.crashing ADDRESS KILLS [WORKERS] [SEED]

A worker does what a server does, but for HTTP: requests in parallel, answered when they are
durable. It is forked from a process that has loaded the compiled code, so that it starts in
milliseconds. What it acknowledges it writes to a pipe, which outlives it.
"""

import asyncio
import gc
import hashlib
import json
import os
import random
import select
import signal
import sys
import time
from contextlib import closing
from typing import NamedTuple

import continuarm as ca
from continuarm.errors import ContinuarmError
from continuarm.ledger.entries import id_of, read_body, text_of
from continuarm.ledger.replaying import replay
from continuarm.ledger.replica import Replica
from continuarm.ledger.shared import begun
from continuarm.service.running import Running
from continuarm.store import open_store
from continuarm.store.protocol import MOST_READ, Store
from continuarm.store.records import Record

__all__ = ["NAME", "Acknowledged", "check", "crash", "payoff_of"]

NAME = "prices"
LONGEST = 0.05  # seconds until a worker is killed
OFTEN = 0.9  # of them have answered something by then; the others are killed as they begin
PATIENCE = 60.0
LANES = 4  # requests at once
BATCH = 3  # decisions of a request


class Acknowledged(NamedTuple):
    """What was answered: decisions by their keys, and those whose payoffs were told."""

    asked: dict[str, str]
    told: set[str]

    def hear(self, line: str) -> None:
        """One answer."""
        what, id_, *key = line.split()
        if what == "asked":
            assert self.asked.setdefault(key[0], id_) == id_, "a key gets one decision"
        else:
            self.told.add(id_)


def payoff_of(id_: str) -> float:
    """What a decision pays, whoever asks."""
    return int(hashlib.sha256(id_.encode()).hexdigest()[:8], 16) / 2**32


def policy() -> ca.Policy:
    """The policy that all workers share."""
    context = ca.Box([18, 0], [90, 250_000], names=["age", "income"])
    return ca.SurfaceSampling(context, ca.Box([1], [9], names=["price"]), ttl_seconds=7200, rng=0)


async def _lane(running: Running, pipe: int, seed: int, open_: list[str]) -> None:
    """Ask and tell, one request after the other; some of them twice."""
    rng = random.Random(seed)
    while True:
        contexts = [[rng.uniform(18, 90), rng.uniform(0, 250_000)] for _ in range(BATCH)]
        keys = [f"{seed}-{rng.random()}" for _ in range(BATCH)]
        for _ in range(rng.choice((1, 1, 2))):
            for key, found in zip(keys, await running.ask_all(contexts, None, keys), strict=True):
                assert not isinstance(found, ContinuarmError), found
                os.write(pipe, f"asked {text_of(found.id)} {key}\n".encode())
                open_.append(text_of(found.id))
        rng.shuffle(open_)
        ids, open_[:] = open_[: BATCH + 1], open_[BATCH + 1 :]
        told = [running.desk.told(id_of(id_), payoff_of(id_), None) for id_ in ids]
        for id_, error in zip(ids, await running.close_all(told), strict=True):
            assert error is None, error  # the same payoff again is acknowledged
            os.write(pipe, f"told {id_}\n".encode())


async def _work(address: str, pipe: int, seed: int, open_: list[str]) -> None:
    running = Running(open_store(address), NAME, 60.0)
    lanes = [
        asyncio.create_task(_lane(running, pipe, LANES * seed + k, list(open_[k::LANES])))
        for k in range(LANES)
    ]
    await asyncio.gather(*lanes)


async def _warm_up() -> None:
    """Compile everything, and leave no thread behind: then a fork is ready at once."""
    store = open_store(":memory:")
    begun(policy(), store, NAME)
    running = Running(store, NAME, 60.0)
    [found] = await running.ask_all([[20.0, 10.0]], None, ["1"])
    assert not isinstance(found, ContinuarmError)
    await running.close_all([running.desk.told(found.id, 1.0, None)])
    running.close()
    Replica(store, NAME).catch_up()
    gc.freeze()  # a child need not look through what is compiled


class Worker:
    """A forked process, and what it acknowledges."""

    def __init__(self, address: str, seed: int, open_: list[str]) -> None:
        self.reads, writes = os.pipe()
        self.process, self._rest = os.fork(), b""
        if self.process == 0:
            try:
                asyncio.run(_work(address, writes, seed, open_))
            finally:  # it does not end by itself
                os._exit(3)
        os.close(writes)

    def hear(self, acknowledged: Acknowledged, seconds: float, *, speaks_first: bool) -> None:
        """Note what it says for a while, which begins now or when it has said something."""
        if speaks_first:
            assert select.select([self.reads], [], [], PATIENCE)[0], "a worker must answer"
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.reads], [], [], left)[0]:
                self._note(acknowledged)

    def _note(self, acknowledged: Acknowledged) -> bool:
        said = os.read(self.reads, 2**16)
        *lines, self._rest = (self._rest + said).split(b"\n")
        for line in lines:
            acknowledged.hear(line.decode())
        return bool(said)

    def kill(self, acknowledged: Acknowledged) -> None:
        """Kill it, and note its last words."""
        os.kill(self.process, signal.SIGKILL)
        _, status = os.waitpid(self.process, 0)
        assert os.WIFSIGNALED(status), "a worker works until it is killed"
        while self._note(acknowledged):
            pass
        os.close(self.reads)


def crash(address: str, kills: int, workers: int = 1, seed: int = 0) -> Acknowledged:
    """Let workers work and kill one after the other; what they have acknowledged.

    Call it in a process without threads that has no store open.
    """
    asyncio.run(_warm_up())
    if os.fork() == 0:
        with closing(open_store(address)) as store:
            begun(policy(), store, NAME)
        os._exit(0)
    os.wait()
    rng, acknowledged = random.Random(seed), Acknowledged({}, set())
    running = [Worker(address, k, []) for k in range(workers)]
    for k in range(kills):
        for worker in running:
            seconds, first = rng.uniform(0.0, LONGEST / workers), rng.random() < OFTEN
            worker.hear(acknowledged, seconds, speaks_first=first)
        running.pop(0).kill(acknowledged)
        open_ = [id_ for id_ in acknowledged.asked.values() if id_ not in acknowledged.told]
        running.append(Worker(address, 10_000 * seed + workers + k, open_[-50:]))
    for worker in running:
        worker.kill(acknowledged)
    return acknowledged


def check(store: Store, acknowledged: Acknowledged) -> int:
    """Check a ledger against what was acknowledged; how many events it has."""
    records: list[Record] = []
    more = True
    while more:
        after = records[-1].position if records else 0
        found = store.read(NAME, after)
        records, more = records + found, len(found) == MOST_READ
    opened = {record.opens: record.key for record in records if record.opens}
    told = {record.closes: record for record in records if record.kind == "told"}
    lost = {id_ for key, id_ in acknowledged.asked.items() if opened.get(id_) != key}
    assert not lost, f"acknowledged decisions are lost: {lost}"
    assert acknowledged.told <= set(told), "acknowledged payoffs are lost"
    assert len(told) == sum(record.kind == "told" for record in records), "a payoff counts once"
    for id_, record in told.items():
        assert read_body(record.body)["payoff"] == payoff_of(str(id_)), (
            "a payoff is as it was told"
        )
    assert len({r.key for r in records if r.key}) == sum(r.key is not None for r in records)
    _check_state(store, len(opened), len(told))
    return len(records)


def _check_state(store: Store, asked: int, told: int) -> None:
    """The state must be a replay of the ledger, bit for bit, at every snapshot and now."""
    replica = Replica(store, NAME)
    replica.catch_up()
    assert replica.differs is None, replica.differs
    store.keep(NAME, replica.snapshot())
    again = replay(store, NAME)
    assert again.difference is None, again.difference
    assert (again.decisions, again.events) == (asked, replica.position - 1), again
    opened = replica.life.open
    assert (opened.asked, opened.closed.counts[1]) == (asked, told), "all of them count once"


def main(address: str, kills: str, workers: str = "1", seed: str = "0") -> None:
    """Crash, and print what was acknowledged."""
    asked, told = crash(address, int(kills), int(workers), int(seed))
    print(json.dumps([asked, sorted(told)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
