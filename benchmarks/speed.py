"""Speed and memory, as ratios to floors measured in the same run.

    python -m benchmarks.speed --earlier FOLDER [--horizon 1e7] [--rounds 5] [--write FILE]

The first floor draws contexts and noise and evaluates f and f* through the package's own loop,
which takes the problem's functions as arguments, as a user's own problem does. The second is one
fused compiled loop for the paper's problem that does the same and nothing else. One thread; floors
and policies take turns, and each ratio is the median over the rounds of its round's ratio.
"""

import argparse
import platform
import statistics
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.random import SeedSequence

import continuarm as ca
from benchmarks.pauses import DECISIONS, ROUNDS, cost_table
from continuarm.core import entries
from continuarm.core.compiling import OPTIONS
from continuarm.core.learners.kiefer_wolfowitz import KieferWolfowitzConfig
from continuarm.core.model import limits_of
from continuarm.core.partitions.grid import GridConfig
from continuarm.lab.replication import compile_all, replicate
from continuarm.lab.streams import Streams
from continuarm.live.named.by_name import maker_of
from continuarm.problems.worlds.paper import two_communities
from continuarm.table import Table

FLOOR = "floor (draw, evaluate f and f*)"
PORTION = 2000  # live cycles per measurement; the median of 25 is reported
OPEN = 100_000


def seconds(make: Any, problem: ca.Problem, horizon: int, **settings: Any) -> float:
    """Wall time of one replication in this thread."""
    streams = Streams(problem, SeedSequence(0))
    known = problem.knowledge | {"horizon": horizon, "rng": streams.policy}
    policy = maker_of(make)(problem.context, problem.decision, known, settings)
    compile_all(policy, problem)
    started = time.perf_counter()
    replicate(policy, streams, np.array([horizon]), lambda done: None)
    return time.perf_counter() - started


@cache
def fused_floor() -> Any:
    """One compiled loop for the paper's problem: draw, evaluate f and f*, nothing else."""
    sources = two_communities().sources
    mean, best = (numba.njit(**OPTIONS)(f) for f in (sources.mean_payoff, sources.best_decision))

    @numba.njit(**OPTIONS)
    def floor(contexts, noise, horizon, x, y, best_y):  # type: ignore[no-untyped-def]
        regret = payoff = 0.0
        for _ in range(horizon):
            x[0] = contexts.random()
            expected = mean(x, y)
            best_y[0], best_y[1] = best(x)
            regret += mean(x, best_y) - expected
            payoff += expected + 0.1 * noise.standard_normal()
        return regret, payoff

    return floor


def fused_seconds(horizon: int) -> float:
    """Wall time of the fused loop."""
    rngs = np.random.default_rng(0), np.random.default_rng(1)
    floor = fused_floor()
    started = time.perf_counter()
    floor(*rngs, horizon, np.empty(1), np.full(2, 0.5), np.empty(2))
    return time.perf_counter() - started


def speed_table(horizon: int, rounds: int) -> Table:
    """Ratios to the floors on the paper's problem, and nanoseconds per decision."""
    world = ca.problem("two-communities")
    ucb = {"bins": 25, "arms": 25}
    players: dict[str, tuple[str, dict[str, Any], float | None, float | None]] = {
        FLOOR: ("fixed", {"decision": [0.5, 0.5]}, None, None),
        "static-kwsa": ("static-kwsa", {}, 4.0, 6.0),
        "adaptive-kwsa": ("adaptive-kwsa", {}, 5.0, 7.0),
        "uniform-ucb, K = k = 25": ("uniform-ucb", ucb, 40.0, 35.0),
        "robbins-monro, as printed": ("robbins-monro", {"step": "printed"}, None, None),
        "robbins-monro": ("robbins-monro", {}, None, None),
        "recommended": ("recommended", {}, 75.0, None),
        "recommended, reach=None": ("recommended", {"reach": None}, None, None),
    }
    fused, times = list[float](), {name: list[float]() for name in players}
    for name, settings, _, _ in players.values():
        seconds(name, world, 10_000, **settings)
    fused_seconds(10_000)
    for _ in range(rounds):
        fused.append(fused_seconds(horizon))
        for label, (name, settings, _, _) in players.items():
            times[label].append(seconds(name, world, horizon, **settings))
    rows: list[tuple[Any, ...]] = [
        ("fused floor", None, None, 1.0, None, round(1e9 * statistics.median(fused) / horizon))
    ]
    for label, (_, _, limit, fused_limit) in players.items():
        ours = [mine / base for mine, base in zip(times[label], times[FLOOR], strict=True)]
        bare = [mine / base for mine, base in zip(times[label], fused, strict=True)]
        nanoseconds = round(1e9 * statistics.median(times[label]) / horizon)
        cells = (round(statistics.median(ours), 2), limit, round(statistics.median(bare), 1))
        rows.append((label, *cells, fused_limit, nanoseconds))
    columns = ("what", "ratio to the floor", "at most", "ratio to the fused floor", "aim")
    return Table.of((*columns, "ns per decision"), rows)


def dimension_table() -> Table:
    """Microseconds per simulated decision of the recommended policy in several dimensions."""
    rows = []
    cases = ((1, 2, 200_000, None), (2, 5, 50_000, 15), (1, 50, 10_000, 150), (1, 100, 5000, None))
    for dx, dy, horizon, limit in cases:
        world = ca.problem("quadratic", dx=dx, dy=dy)
        times = [seconds("recommended", world, horizon) for _ in range(3)]
        rows.append((dx, dy, round(1e6 * statistics.median(times) / horizon, 2), limit))
    return Table.of(("dx", "dy", "µs per decision", "at most"), rows)


def live_table() -> Table:
    """ask + tell cycles per second in one process."""
    rows = []
    for dx, dy in ((1, 2), (2, 3), (5, 10)):
        world = ca.problem("quadratic", dx=dx, dy=dy)
        policies = {
            "static-kwsa": ca.StaticKWSA(world.context, world.decision, horizon=10**6, step=1.0),
            "adaptive-kwsa": ca.AdaptiveKWSA(
                world.context, world.decision, horizon=10**6, step=1.0
            ),
            "recommended": ca.SurfaceSampling(world.context, world.decision),
        }
        for name, policy in policies.items():
            contexts = np.random.default_rng(0).random((50_000, dx))
            lists = contexts.tolist()
            payoffs = np.random.default_rng(1).standard_normal(PORTION).tolist()
            policy.tell(policy.ask(lists[0]), 0.0)
            rates = []
            for first in range(0, len(lists), PORTION):
                started = time.perf_counter()
                for k, context in enumerate(lists[first : first + PORTION]):
                    policy.tell(policy.ask(context), payoffs[k])
                rates.append(PORTION / (time.perf_counter() - started))
            rate = round(statistics.median(rates))
            limit = 100_000 if dy == 2 and name != "recommended" else None
            rows.append((name, dx, dy, rate, limit))
    return Table.of(("policy", "dx", "dy", "ask + tell per second", "at least"), rows)


def dispatch_table() -> Table:
    """Microseconds to call compiled code with bundles, directly and through Numba's dispatcher."""
    world = ca.problem("two-communities")
    policy = ca.StaticKWSA(world.context, world.decision, bins=16, step=1.0)
    model, limits = policy.life.model, limits_of(np.full(2, 0.5))
    key, context = policy.life.beginning.key, np.array([0.5])
    given = (key, 0, 0, context, np.empty(2), np.empty(2))
    arguments = (model.setup, model.state, model.room, limits, given, (np.empty((0, 0)),) * 3)
    direct = entries.answer_entry(GridConfig, KieferWolfowitzConfig)
    jit: Any = numba.njit
    flat = [*model.setup, *model.state, model.room, *limits[:3], *given[:5]]

    @jit
    def bundled(setup, state, room, limits, given, asked_for):  # type: ignore[no-untyped-def]
        return room[0]

    @jit
    def unbundled(*arrays):  # type: ignore[no-untyped-def]
        return arrays[8][0]

    rows = []
    calls: dict[str, Any] = {
        "the entry itself, which decides": lambda: direct(*arguments),
        "the dispatcher, the same bundles, which does nothing": lambda: bundled(*arguments),
        "the dispatcher, 17 arguments, which does nothing": lambda: unbundled(*flat),
    }
    for label, call in calls.items():
        call()
        started = time.perf_counter()
        for _ in range(PORTION):
            call()
        rows.append((label, round(1e6 * (time.perf_counter() - started) / PORTION, 2)))
    return Table.of(("called", "µs"), rows)


def open_table() -> Table:
    """Microseconds of ask and tell together while many decisions are open, contexts by name."""
    context = ca.Box([18.0, 0.0], [90.0, 2.5e5], names=["age", "income"])
    decision = ca.Box([1.0, 0.5], [9.0, 4.0], names=["price", "fee"])
    rng = np.random.default_rng(0)
    points = context.from_unit(rng.random((OPEN + 5 * PORTION, 2))).tolist()
    named = [dict(zip(context.names, point, strict=True)) for point in points]
    order = rng.permutation(OPEN)
    policies: dict[str, tuple[Any, float]] = {
        "static-kwsa": (ca.StaticKWSA(context, decision, bins=16, step=1.0, ttl=None), 15),
        "adaptive-kwsa": (ca.AdaptiveKWSA(context, decision, depth=4, step=1.0, ttl=None), 15),
        "recommended": (ca.SurfaceSampling(context, decision, ttl=None), 40),
    }
    rows = []
    for name, (policy, limit) in policies.items():
        waiting = [policy.ask(point) for point in named[:OPEN]]
        times = []
        for first in range(OPEN, len(named), PORTION):
            started = time.perf_counter()
            for k, point in enumerate(named[first : first + PORTION], first - OPEN):
                fresh = policy.ask(point)
                policy.tell(waiting[order[k]], 0.5)
                waiting[order[k]] = fresh
            times.append(1e6 * (time.perf_counter() - started) / PORTION)
        assert policy.open_decisions == OPEN
        rows.append((name, OPEN, round(statistics.median(times), 1), limit))
    return Table.of(("policy", "open decisions", "µs for ask and tell", "at most"), rows)


def memory_table() -> Table:
    """Peak memory of a process at growing horizons: flat but for the bins."""
    rows = []
    for name in ("static-kwsa", "adaptive-kwsa", "uniform-ucb", "recommended"):
        for horizon in (10**5, 10**6, 10**7):
            code = (
                "from benchmarks.speed import peak_megabytes\n"
                f"print(peak_megabytes({name!r}, {horizon}))"
            )
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            )
            rows.append((name, horizon, float(done.stdout)))
    return Table.of(("policy", "decisions", "peak MB of the process"), rows)


def peak_megabytes(name: str, horizon: int) -> float:
    """Run one replication; the most memory that this process ever held."""
    ca.simulate(name, "two-communities", horizon=horizon, rng=0, checkpoints=1)
    status = Path("/proc/self/status").read_text()  # getrusage would count the parent's pages, too
    return round(int(status.split("VmHWM:")[1].split()[0]) / 1024, 1)


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--horizon", type=float, default=1e7, help="decisions per run")
    parser.add_argument("--rounds", type=int, default=5, help="turns of floor and policies")
    parser.add_argument("--earlier", type=Path, required=True, help="version 0.1.0's `src` folder")
    parser.add_argument("--write", type=Path, help="a page of Markdown to write the tables to")
    options = parser.parse_args()
    speed = speed_table(int(options.horizon), options.rounds)
    live = (live_table(), open_table(), cost_table(options.earlier))
    tables = (speed, dimension_table(), dispatch_table(), *live, memory_table())
    print(*tables, sep="\n\n")
    if options.write is not None:
        options.write.write_text(page(*tables, int(options.horizon), options.rounds))


def page(
    speed: Table,
    dimensions: Table,
    dispatch: Table,
    live: Table,
    many: Table,
    earlier: Table,
    memory: Table,
    horizon: int,
    rounds: int,
) -> str:
    """The page of the docs."""
    machine = (
        f"{platform.machine()}, Python {platform.python_version()}, numba {numba.__version__}"
    )
    return f"""# Speed

This page is written by `python -m benchmarks.speed --earlier FOLDER --write docs/speed.md`, where
FOLDER is the `src` of version 0.1.0 ({machine}).

## In a simulation

`two-communities`, {horizon:,} decisions, one thread, {rounds} rounds in which floors and policies
take turns. A ratio is the median over the rounds of policy / floor of the same round. *At most* is
the limit that we hold ourselves to.

All policies run through the same compiled loop, which receives the problem's functions as
arguments: a problem of your own that declares its best decision is as fast. The floor goes through
that loop's frame, too: it draws contexts and noise and evaluates the mean payoff of a decision and
of the best one. The fused floor does the same for this problem alone, in one compiled loop that
knows its functions.

{speed.markdown()}

The recommended policy keeps second-order information, whose cost grows with the dimensions
(`quadratic`, one thread):

{dimensions.markdown()}

## Calling compiled code

Arrays that travel together are NamedTuples. Numba's dispatcher takes long to recognise them, so
the package calls the one compiled version directly.

{dispatch.markdown()}

## Live

One process, contexts given as lists, payoffs told at once; the median over portions of
{PORTION:,} cycles.

{live.markdown()}

With many decisions open, contexts given by name, and the payoff of a random one of them told after
each ask (dx = 2, dy = 2):

{many.markdown()}

The recommended policy against version 0.1.0, which knew neither a reach nor a moving level:
medians over {20 * DECISIONS:,} decisions, {ROUNDS} rounds by turns, each in a process of its own.
The memory of a bin is that of a saved policy.

{earlier.markdown()}

## Memory

Memory grows with the bins visited and with open decisions, not with decisions made.

{memory.markdown()}
"""


if __name__ == "__main__":
    main()
