"""Processes that fork while they share a policy, each of which notes what it was answered.

    python -m benchmarks.attacks.forking WAY ADDRESS LOG

It prints how many processes had to end well, and how many did.
"""

import json
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import continuarm as ca
from benchmarks.attacks.acknowledged import Asked, Log

__all__ = ["WAYS"]

NAME = "forked"
EACH = 10  # decisions of each process
LONGEST = 15.0  # seconds until a process has made them


def policy() -> ca.Policy:
    """That which all processes share."""
    context = ca.Box([18, 0], [90, 250_000], names=["age", "income"])
    return ca.SurfaceSampling(context, ca.Box([1], [9], names=["price"]), ttl_seconds=7200, rng=0)


def work(shared: ca.SharedPolicy, log: Log, count: int = EACH) -> None:
    """Ask and tell, and note each answer."""
    for _ in range(count):
        key = f"{random.SystemRandom().getrandbits(64):x}"
        context = [random.uniform(18, 90), random.uniform(0, 250_000)]
        decision = shared.ask(context, key=key)
        id_, payoff = f"{decision.id:032x}", random.random()
        log.asked(NAME, [Asked(id_, key, decision.value.tolist())])
        shared.tell(decision, payoff)
        log.told(NAME, {id_: payoff})


def child(*steps: Callable[[], object], cleanly: bool = False) -> int:
    """A forked process that does this and ends; its number.

    cleanly : as a program does that lets go of what it has; else as if it were killed.
    """
    process = os.fork()
    if process == 0:
        signal.setitimer(signal.ITIMER_REAL, LONGEST)  # its end, if it hangs
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for step in steps:
            step()
        if cleanly:
            sys.exit(0)
        os._exit(0)
    return process


def ended(processes: list[int]) -> list[int]:
    """How each has ended."""
    return [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in processes]


def parent_exits(shared: ca.SharedPolicy, log: Log) -> list[int]:
    """The one that opened the store ends while its child goes on, which says how that went."""
    parent, (reads, writes) = os.getpid(), os.pipe()

    def orphan() -> None:
        _began(shared, log, writes)
        while os.getppid() == parent:
            time.sleep(0.01)
        work(shared, log)
        print(json.dumps([0]), flush=True)

    child(orphan)
    os.read(reads, 1)
    sys.exit(0)


def _began(shared: ca.SharedPolicy, log: Log, writes: int) -> None:
    work(shared, log, 3)
    os.write(writes, b"0")


def parent_closes(shared: ca.SharedPolicy, log: Log) -> list[int]:
    """The store is closed in the process that opened it while its child goes on."""
    begun, begins = os.pipe()
    closed, closes = os.pipe()
    steps = (partial(_began, shared, log, begins), partial(os.read, closed, 1))
    process = child(*steps, partial(work, shared, log))
    os.read(begun, 1)
    shared.store.close()
    os.write(closes, b"0")
    return ended([process])


def child_exits(shared: ca.SharedPolicy, log: Log) -> list[int]:
    """Children that use it, or do nothing, end; their parent goes on."""
    codes = ended([child(partial(work, shared, log, 3), cleanly=True), child(cleanly=True)])
    work(shared, log)
    return codes


def threads_write(shared: ca.SharedPolicy, log: Log) -> list[int]:
    """Forked while threads of the parent write; all go on."""
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            work(shared, log, 1)

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(5):
        time.sleep(random.uniform(0.0, 0.05))
        children.append(child(partial(work, shared, log)))
    codes = ended(children)
    stop.set()
    for thread in threads:
        thread.join()
    return codes


def _in_pool(count: int) -> int:
    work(*_GIVEN, count)
    return 0


_GIVEN: tuple[ca.SharedPolicy, Log]


def pool(shared: ca.SharedPolicy, log: Log) -> list[int]:
    """`multiprocessing` with forks, whose workers have it from their parent."""
    global _GIVEN
    _GIVEN = (shared, log)
    with multiprocessing.get_context("fork").Pool(3) as workers:
        codes = workers.map_async(_in_pool, [3] * 6, chunksize=1).get(3 * LONGEST)
    work(shared, log, 3)
    return codes


def prefork(shared: ca.SharedPolicy, log: Log) -> list[int]:
    """A parent that only loads, as gunicorn with preload does; one of its workers is killed."""
    workers = [child(partial(work, shared, log, 10**6)), *(_worker(shared, log) for _ in "ab")]
    time.sleep(0.3)
    os.kill(workers[0], signal.SIGKILL)
    ended(workers[:1])
    return ended([*workers[1:], _worker(shared, log)])


def _worker(shared: ca.SharedPolicy, log: Log) -> int:
    return child(partial(work, shared, log))


def daemon(shared: ca.SharedPolicy, log: Log) -> list[int]:
    """Forked twice, as daemons are; those between end at once, without their handlers."""
    reads, writes = os.pipe()

    def begin() -> None:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        signal.setitimer(signal.ITIMER_REAL, LONGEST)
        work(shared, log)
        os.write(writes, b"0")

    codes = ended([child(begin)])
    os.close(writes)
    return codes + ([0] if os.read(reads, 1) == b"0" else [1])


WAYS: dict[str, Callable[[ca.SharedPolicy, Log], list[int]]] = {
    "the parent exits": parent_exits,
    "the parent closes the store": parent_closes,
    "children exit": child_exits,
    "threads of the parent write": threads_write,
    "a pool of multiprocessing": pool,
    "a prefork server, one worker killed": prefork,
    "a daemon": daemon,
}


def main(way: str, address: str, log: str) -> None:
    """Fork in one way, and say how the processes have ended."""
    shared, noted = ca.share(policy(), address, NAME), Log(Path(log))
    work(shared, noted, 3)
    print(json.dumps(WAYS[way](shared, noted)))


if __name__ == "__main__":
    main(*sys.argv[1:])
