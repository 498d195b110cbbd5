"""Regret with payoffs that come late or never, with a log to start from, and under drift.

python -m benchmarks.live [--seeds 10] [--write docs/live.md]
"""

import argparse
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.lab.measures import ratio
from continuarm.problems.building import compiled_helper, tracking
from continuarm.table import Table

HORIZON = 10**6
FEEDBACKS: dict[str, dict[str, Any]] = {
    "at once": {},
    "100 decisions late": {"delay": 100},
    "1,000 decisions late": {"delay": 1000},
    "a fifth lost": {"lost": 0.2},
    "a fifth lost, ttl=10,000": {"lost": 0.2},
    "0 to 2,000 late, a tenth lost": {
        "delay": lambda rng, n: rng.integers(0, 2001, n),
        "lost": 0.1,
    },
}
LIMITS = {
    "static-kwsa": (None, 1.1, 1.6, 1.5, None, None),
    "recommended": (None, 1.1, 1.3, 1.3, None, None),
}
LOGS = {"orange-juice": 10**5, "plane": 10**4, "two-subscriptions": 10**5}
SPREADS = (0.2, 0.4)  # of the older rule around the centre, in sides of the box
FIRST = 10**4  # decisions after the log
PHASES, PHASE = 40, 5000  # of the drift


def static(world: ca.Problem, **more: Any) -> ca.Policy:
    """The policy of the paper whose limits are stated."""
    settings: dict[str, Any] = {"bins": 16, "step": 1.0, "width": 0.3, "probe": "alternate"}
    return ca.StaticKWSA(world.context, world.decision, **settings, **more)


def compared(run: Array, base: Array) -> tuple[float, str]:
    """The ratio of mean regrets, and its 95 % interval over paired seeds."""
    middle, low, high = ratio(run, base)
    return round(middle, 3), f"{low:.3f} to {high:.3f}"


def feedback_table(seeds: int) -> Table:
    """Regret relative to that with payoffs at once."""
    world = ca.problem("two-communities")
    players: dict[str, Callable[..., Any]] = {
        "static-kwsa": partial(static, world),
        "recommended": partial(ca.SurfaceSampling, world.context, world.decision),
    }
    rows = []
    for name, player in players.items():
        base = np.empty(0)
        for (label, feedback), limit in zip(FEEDBACKS.items(), LIMITS[name], strict=True):
            late = world.with_feedback(**feedback)
            policy = player(ttl=10_000) if "ttl" in label else player()
            regret = ca.simulate(
                policy, late, horizon=HORIZON, replications=seeds, rng=0, checkpoints=1
            ).regret[:, -1]
            base = base if len(base) else regret
            mean, error = float(regret.mean()), float(regret.std(ddof=1) / len(regret) ** 0.5)
            rows.append((name, label, round(mean), round(error), *compared(regret, base), limit))
            print(rows[-1], flush=True)
    columns = ("policy", "payoffs", "regret", "std error", "ratio", "95 % interval", "at most")
    return Table.of(columns, rows)


def purchase_table(seeds: int) -> Table:
    """The recommended policy where a payoff is a purchase or none."""
    rows = []
    for name in ("purchase", "two-subscriptions"):
        world = ca.problem(name)
        policy, base = ca.SurfaceSampling(world.context, world.decision), np.empty(0)
        for delay in (0, 100, 1000):
            regret = ca.simulate(
                policy, world.with_feedback(delay=delay), horizon=10**5, replications=seeds, rng=0
            ).regret[:, -1]
            base = base if len(base) else regret
            rows.append((name, delay, round(float(regret.mean())), *compared(regret, base)))
            print(rows[-1], flush=True)
    return Table.of(("problem", "delay", "regret", "ratio", "95 % interval"), rows)


def named(world: ca.Problem) -> ca.Problem:
    """The same world with names for its log's columns."""
    sides = {"context": world.context, "decision": world.decision}
    for side, box in sides.items():
        names = [f"{side} {i}" for i in range(box.dim)]
        setattr(world, side, ca.Box(box.low, box.high, names=names))
    return world


def log(world: ca.Problem, n: int, spread: float, rng: np.random.Generator) -> dict[str, Any]:
    """An older rule: the centre of the box, give or take a part of each side."""
    x = world.draw_contexts(rng, n)
    y = world.decision.from_unit(0.5 + rng.uniform(-spread, spread, (n, world.decision.dim)))
    table: dict[str, Any] = dict(zip(world.context.names, x.T, strict=True))
    table |= dict(zip(world.decision.names, y.T, strict=True))
    table["payoff"] = [world.payoff(*row, rng) for row in zip(x, y, strict=True)]
    return table


def log_table(seeds: int) -> Table:
    """Regret of the first decisions, with and without a log."""
    rows = []
    for name, n in LOGS.items():
        world = named(ca.problem(name))
        fresh = ca.SurfaceSampling(world.context, world.decision)
        cold = first_regrets([fresh] * seeds, world)
        for spread in SPREADS:
            learned = [fresh.copy() for _ in range(seeds)]
            for seed, policy in enumerate(learned):
                policy.learn_from(log(world, n, spread, np.random.default_rng([seed, 1])))
            warm = first_regrets(learned, world)
            means = (round(float(cold.mean()), 1), round(float(warm.mean()), 1))
            rows.append((name, n, f"±{100 * spread:.0f} %", *means, *compared(warm, cold)))
            print(rows[-1], flush=True)
    columns = ("problem", "rows", "older rule", "regret without", "with", "ratio", "95 % interval")
    return Table.of(columns, rows)


def first_regrets(policies: list[ca.Policy], world: ca.Problem) -> Array:
    """The regret of each policy on a seed of its own."""
    runs = [ca.simulate(p, world, horizon=FIRST, rng=seed) for seed, p in enumerate(policies)]
    return np.array([run.regret[0, -1] for run in runs])


def moved(kind: str, phase: int) -> ca.Problem:
    """A world whose best decisions have moved along a sine, by up to a quarter of the box."""
    shift = 0.25 * math.sin(2 * math.pi * phase / 20) if kind != "line, still" else 0.0
    if kind.startswith("line"):
        target = compiled_helper(lambda x, i: 0.5 + shift + 0.2 * (x[0] - 0.5) * (1 - 2 * i))
    else:
        target = compiled_helper(lambda x, i: 0.5 + shift + 0.2 * math.sin(6.3 * x[0] + i))
    return tracking(1, 2, target)


def drift_table(seeds: int) -> Table:
    """Regret where the best decisions move, by memory."""
    rows = []
    for kind in ("line", "wave", "line, still"):
        worlds = [moved(kind, phase) for phase in range(PHASES)]
        boxes = worlds[0].context, worlds[0].decision
        for name in ("recommended", "static-kwsa"):
            base = np.empty(0)
            for memory in (None, 2000, 5000, 20_000):
                regret = np.zeros(seeds)
                for seed in range(seeds):
                    policy: Any = ca.SurfaceSampling(*boxes, memory=memory, rng=seed)
                    if name == "static-kwsa":
                        policy = ca.StaticKWSA(
                            *boxes, bins=8, curvature=2.0, probe="alternate", memory=memory
                        )
                    for phase, world in enumerate(worlds):
                        run = ca.simulate(policy, world, horizon=PHASE, rng=1000 * seed + phase)
                        policy, regret[seed] = run.policies[0], regret[seed] + run.regret[0, -1]
                base = base if len(base) else regret
                rows.append(
                    (kind, name, memory, round(float(regret.mean())), *compared(regret, base))
                )
                print(rows[-1], flush=True)
    columns = ("best decisions", "policy", "memory", "regret", "ratio", "95 % interval")
    return Table.of(columns, rows)


def page(seeds: int, feedback: Table, purchases: Table, logs: Table, drift: Table) -> str:
    """The page of the docs."""
    return f"""# Live decisions, measured

This page is written by `python -m benchmarks.live --write docs/live.md`. All ratios are of mean
regrets over {seeds} seeds, paired by seed.

## Late and lost payoffs

`two-communities`, noise 0.1, {HORIZON:,} decisions; `static-kwsa` with 16 bins, a = 1, δ = 0.3 and
`probe="alternate"`; the time to live is the default but where the row says so. The ratio is to the
same policy with payoffs at once, the last column the limit that we hold ourselves to.

{feedback.markdown()}

A delay costs most at the start, and where payoffs say little: all decisions until the first
payoffs are made without them. The recommended policy where a payoff is a purchase or none, 100,000
decisions:

{purchases.markdown()}

## Starting from a log

The recommended policy: regret of its first {FIRST:,} decisions, without a log and with one of an
older rule that decided for the centre of the box, give or take a part of each side.

{logs.markdown()}

## Drift

Best decisions that move along a sine by a quarter of the box, {PHASES} times {PHASE:,} decisions,
two periods; they are a line, or a wave, in the context. In the last rows they stand still: what a
memory costs where none is needed. The ratio is to the same policy without
`memory`.

{drift.markdown()}
"""


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="replications, at least 2")
    parser.add_argument("--write", type=Path, help="a page of Markdown to write the tables to")
    options = parser.parse_args()
    seeds = options.seeds
    feedback, purchases = feedback_table(seeds), purchase_table(seeds)
    logs, drift = log_table(seeds), drift_table(seeds)
    print(feedback, purchases, logs, drift, sep="\n\n")
    if options.write is not None:
        options.write.write_text(page(seeds, feedback, purchases, logs, drift))


if __name__ == "__main__":
    main()
