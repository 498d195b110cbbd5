"""Forks under load, with parents that exit or close, and children that go on."""

import json
import os
import signal
import subprocess
import sys
from functools import partial

from benchmarks.attacks.acknowledged import acknowledged
from benchmarks.attacks.forking import NAME, WAYS
from benchmarks.attacks.ledger import check, replayed
from benchmarks.attacks.place import STORES, Place
from benchmarks.attacks.result import Case, Defect, Tally

__all__ = ["CASES"]

PATIENCE = 120.0


def forks(place: Place, tally: Tally, *, way: str, store: str) -> None:
    """Fork in one way, again and again, on one store."""
    address, log = place.fresh(store), place.log(f"forks {way} {store}")
    wrong = []
    for _ in range(place.often(10, 1)):
        codes = _forked(way, address, str(log.path))
        tally.times += len(codes)
        if any(codes):
            wrong.append(f"processes ended with {codes}")
    known = acknowledged(log.path, NAME)
    tally.decisions, tally.payoffs = len(known.asked), len(known.told)
    check(address, NAME, known, tally)
    if wrong:
        raise Defect(f"{len(wrong)} of {place.often(10, 1)} times {wrong[0]}")
    replayed(address, NAME)
    tally.came = "all is there"


def _forked(way: str, address: str, log: str) -> list[int]:
    """How the processes have ended; one that hangs is ended."""
    command = [sys.executable, "-m", "benchmarks.attacks.forking", way, address, log]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        said, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Defect(f"a process hangs for {PATIENCE:g} s after a fork") from None
    if process.returncode != 0:
        raise Defect(f"the parent ended with {process.returncode}: {errors.decode()[-400:]}")
    if not said:
        raise Defect(f"a child hangs or fails after a fork: {errors.decode()[-400:]}")
    codes: list[int] = json.loads(said)
    return codes


CASES = [
    Case("forks", f"{store}, {way}", partial(forks, way=way, store=store), (k + j) % 3 == 0)
    for k, store in enumerate(STORES)
    for j, way in enumerate(WAYS)
]
