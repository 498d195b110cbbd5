"""The longest pause of `tell`, the memory of a process, and the time to compile.

    python -m benchmarks.pauses DX DY DECISIONS
    python -m benchmarks.pauses compile
    python -m benchmarks.pauses cost DX DY DECISIONS

Each runs in a process of its own and prints numbers; `benchmarks.fuzz` and `benchmarks.speed` make
tables of them.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from continuarm.table import Table

SIZES = ((30, 100), (30, 29), (30, 3), (10, 10), (1, 2))
DECISIONS = 3000
COSTS = ((1, 2), (2, 5), (10, 2))
STEPS = ("ask", "tell", "recommend")
ROUNDS = 3


def measure(dx: int, dy: int, decisions: int) -> dict[str, float]:
    """Ask and tell; milliseconds of this thread's time, so that other processes do not count."""
    import continuarm as ca

    policy = ca.SurfaceSampling(ca.Box.unit(dx), ca.Box.unit(dy), rng=0)
    policy.warm_up()
    before, rng, took = _megabytes(), np.random.default_rng(0), []
    for x in rng.random((decisions, dx)):
        decision = policy.ask(x)
        payoff = float(-((decision.value - 0.3 - 0.4 * x[0]) ** 2).sum() + 0.1 * rng.normal())
        started = time.thread_time()
        policy.tell(decision, payoff)
        took.append(1000 * (time.thread_time() - started))
    return {
        "mean": float(np.mean(took)),
        "99.9 %": float(np.quantile(took, 0.999)),
        "longest": max(took),
        "memory before": before,
        "memory": _megabytes(),
    }


def _megabytes() -> float:
    """The most memory that this process has had; what it was forked from does not count."""
    status = Path("/proc/self/status").read_text().splitlines()
    (line,) = [one for one in status if one.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def compile_times() -> dict[str, float]:
    """Seconds that the first `ask`, `tell` and `recommend` take."""
    import continuarm as ca

    unit, seconds = ca.Box([0.0], [1.0]), {}
    policy: Any = ca.SurfaceSampling(unit, unit, rng=0)
    started = time.process_time()
    decision = policy.ask([0.5])
    seconds["ask"] = time.process_time() - started
    started = time.process_time()
    policy.tell(decision, 1.0)
    seconds["tell"] = time.process_time() - started
    started = time.process_time()
    policy.recommend([0.5])
    seconds["recommend"] = time.process_time() - started
    return seconds


def cost(dx: int, dy: int, decisions: int) -> dict[str, float]:
    """Microseconds of `ask` and of `tell`, and kilobytes of a saved policy per bin."""
    import continuarm as ca

    policy: Any = ca.SurfaceSampling(ca.Box.unit(dx), ca.Box.unit(dy), rng=0)
    policy.tell(policy.ask(np.full(dx, 0.5)), 0.0)
    rng, asks, tells = np.random.default_rng(0), [], []
    for x in rng.random((decisions, dx)):
        began = time.perf_counter()
        decision = policy.ask(x)
        asked = time.perf_counter()
        off = decision.value - 0.5 - 0.3 * np.sin(8.0 * x[0])
        payoff = float(0.05 * rng.normal() - off @ off)
        told = time.perf_counter()
        policy.tell(decision, payoff)
        asks.append(asked - began)
        tells.append(time.perf_counter() - told)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy"
        policy.save(file)
        size = file.stat().st_size / 1024
    return {
        "ask, µs": 1e6 * median(asks),
        "tell, µs": 1e6 * median(tells),
        "bins": len(policy.bins()),
        "KB per bin": size / len(policy.bins()),
    }


def apart(*arguments: object, source: Path | None = None) -> dict[str, float]:
    """The same in a process of its own that has compiled nothing, with a package's source."""
    command = [sys.executable, str(Path(__file__).resolve()), *map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        if arguments[0] == "compile":
            environment["NUMBA_CACHE_DIR"] = folder
        if source is not None:
            environment["PYTHONPATH"] = str(source)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def pause_table() -> Table:
    """The longest pause and the memory at several sizes."""
    rows = []
    for dx, dy in SIZES:
        found = apart(dx, dy, DECISIONS)
        holds = found["longest"] <= 100 and found["memory"] <= 1000
        rows.append((dx, dy, *found.values(), "holds" if holds else "missed"))
    columns = ("dx", "dy", "mean, ms", "99.9 %, ms", "longest, ms")
    return Table.of((*columns, "MB after warm-up", "MB at most", "100 ms, 1,000 MB"), rows)


def compile_table(earlier: Path) -> Table:
    """The time to compile, of an earlier version and of this one, by turns."""
    rounds = [(apart("compile", source=earlier), apart("compile")) for _ in range(ROUNDS)]
    rows = []
    for step in (*STEPS, "all three"):
        names = STEPS if step == "all three" else (step,)
        old = [sum(one[name] for name in names) for one, _ in rounds]
        new = [sum(one[name] for name in names) for _, one in rounds]
        ratio = median(b / a for a, b in zip(old, new, strict=True))
        rows.append((step, median(old), median(new), ratio))
    return Table.of(("first", "version 0.1.0, s", "now, s", "ratio"), rows)


def cost_table(earlier: Path) -> Table:
    """What `ask`, `tell` and a bin cost, of an earlier version and of this one, by turns."""
    rows = []
    limits = {"ask, µs": 1.4, "KB per bin": 1.2}
    for dx, dy in COSTS:
        given = ("cost", dx, dy, DECISIONS * 20)
        rounds = [(apart(*given, source=earlier), apart(*given)) for _ in range(ROUNDS)]
        for what in rounds[0][0]:
            old, new = ([one[side][what] for one in rounds] for side in (0, 1))
            ratio = median(b / a for a, b in zip(old, new, strict=True))
            limit = limits.get(what)
            verdict = None if limit is None else "holds" if ratio <= limit else "missed"
            rows.append((dx, dy, what, median(old), median(new), ratio, limit, verdict))
    columns = ("dx", "dy", "what", "version 0.1.0", "now", "ratio", "at most", "")
    return Table.of(columns, rows)


if __name__ == "__main__":
    given = sys.argv[1:]
    if given == ["compile"]:
        numbers = compile_times()
    elif given[0] == "cost":
        numbers = cost(*map(int, given[1:]))
    else:
        numbers = measure(*map(int, given))
    sys.stdout.write(json.dumps(numbers))
