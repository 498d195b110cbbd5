"""Guards: what they cost in regret, against the best allowed decision, and in time.

    python -m benchmarks.guards --earlier FOLDER [--folder guards] [--part time] [--write FILE]

FOLDER is the source of the commit before guards, 189784c. Ask and tell are timed in processes of
their own, by turns: `python -m benchmarks.guards cost KIND` prints one measurement. Each part is
kept in the folder as JSON, and nothing is run twice: times need an idle machine, regrets do not.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import continuarm as ca
from continuarm.problems.functions import maximise_entry
from continuarm.table import Table

WORLDS = ("two-communities", "plane", "purchase")
HORIZON, SEEDS = 10_000, 10
MOST = 1.5  # times the regret without guards
STEPS = 20  # of a side
DX, DY, ROWS = 2, 5, 10
CYCLES, ROUNDS = 4000, 5
MICROSECONDS = 100.0


def regrets(problem: ca.Problem) -> Any:
    """The regret of each seed."""
    run = ca.simulate(
        "recommended", problem, horizon=HORIZON, replications=SEEDS, rng=0, checkpoints=1
    )
    return run.regret[:, -1]


def spaced(problem: ca.Problem) -> ca.Problem:
    """Only twenty-one values of each coordinate are allowed."""
    box = problem.decision
    return problem.allowing(ca.Box(box.low, box.high, spacing=(box.span / STEPS).tolist()))


def cut(problem: ca.Problem) -> ca.Problem:
    """A row cuts the best decision off for half of the contexts."""
    box = problem.decision
    best, _ = problem.best_many(problem.draw_contexts(np.random.default_rng(1), 2000))
    bound = float(np.median(box.to_unit(best).sum(axis=1)))
    row = 1.0 / box.span
    return problem.allowing(ca.Polytope(box, [row.tolist()], [bound + float(row @ box.low)]))


def limits(rng: np.random.Generator, box: ca.Box) -> ca.Box:
    """Limits of one request: on each side a part of 30 to 100 %, anywhere."""
    width = rng.uniform(0.3, 1.0, box.dim)
    low = rng.random(box.dim) * (1.0 - width)
    return ca.Box(box.from_unit(low), box.from_unit(low + width))


def best_between(problem: ca.Problem, x: Any, within: ca.Box) -> float:
    """The highest mean payoff within limits."""
    decision, payoff = np.empty((1, within.dim)), np.empty(1)
    edges = within.low.copy(), within.high.copy()
    maximise_entry()(problem.functions.addresses[0], *edges, x[None, :], decision, payoff)
    return float(payoff[0])


def regret_within(problem: ca.Problem, seed: int) -> float:
    """The regret against the best decision within limits that differ from request to request."""
    rng = np.random.default_rng(seed)
    policy = ca.SurfaceSampling(problem.context, problem.decision, rng=seed)
    contexts, total = problem.draw_contexts(rng, HORIZON), 0.0
    for x in contexts:
        within = limits(rng, problem.decision)
        asked = policy.ask(x, within=within)
        best = best_between(problem, x, within)
        total += best - problem.mean_payoff(x, asked.value)
        policy.tell(asked, problem.payoff(x, asked.value, rng))
    return total


def ratio_of(mine: Any, base: Any) -> tuple[float, float]:
    """The ratio of means and its standard error, seeds taken as pairs."""
    ratio = mine.mean() / base.mean()
    error = np.std(mine - ratio * base, ddof=1) / np.sqrt(len(base)) / base.mean()
    return float(ratio), float(error)


def regret_table() -> Table:
    """Regret with guards, divided by the regret without."""
    rows = []
    for name in WORLDS:
        problem = ca.problem(name)
        base = regrets(problem)
        within = np.array([regret_within(problem, seed) for seed in range(SEEDS)])
        kinds = {
            "a spacing of a twentieth": regrets(spaced(problem)),
            "coupled limits that cut the best decision off": regrets(cut(problem)),
            "limits of each request": within,
        }
        for kind, mine in kinds.items():
            ratio, error = ratio_of(mine, base)
            verdict = "holds" if ratio <= MOST else "missed"
            numbers = (
                round(float(base.mean()), 1),
                round(float(mine.mean()), 1),
                round(ratio, 2),
            )
            rows.append((f"`{name}`", kind, *numbers, round(error, 2), MOST, verdict))
            print(rows[-1], flush=True)
    columns = ("problem", "guard", "regret without", "regret with", "ratio", "±", "at most", "")
    return Table.of(columns, rows)


def decision_of(kind: str) -> ca.Box:
    """A set of five decisions."""
    if "no guard" in kind:
        return ca.Box.unit(DY)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(ROWS, DY))
    bounds = rows @ np.full(DY, 0.5) + 0.3 * np.linalg.norm(rows, axis=1)
    box = ca.Box([0.0] * DY, [1.0] * DY, spacing=1.0 / STEPS) if "spacing" in kind else None
    if kind == "a spacing":
        assert box is not None
        return box
    return ca.Polytope(box or ca.Box.unit(DY), rows, bounds)


def cost(kind: str) -> float:
    """Microseconds of ask and tell together."""
    boxes = ca.Box.unit(DX), decision_of(kind)
    affine = ca.ResponseSurface(reach=0.1, bounded=True, level=True, calm=True)
    policy = (
        ca.Policy(*boxes, partition=ca.EvidenceTree(), learner=affine, rng=0)
        if "affine" in kind
        else ca.SurfaceSampling(*boxes, rng=0)
    )
    rng, took = np.random.default_rng(0), []
    for x in rng.random((CYCLES, DX)):
        began = time.perf_counter()
        asked = policy.ask(x)
        middle = time.perf_counter()
        off = asked.value - 0.5 - 0.4 * np.sin(8.0 * x[0])
        payoff = float(0.05 * rng.normal() - off @ off)
        told = time.perf_counter()
        policy.tell(asked, payoff)
        took.append(time.perf_counter() - told + middle - began)
    return 1e6 * median(took[CYCLES // 4 :])


def _apart(kind: str, source: Path | None = None) -> float:
    command = [sys.executable, str(Path(__file__).resolve()), "cost", kind]
    environment = dict(os.environ) | ({} if source is None else {"PYTHONPATH": str(source)})
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout))


def cost_table(earlier: Path) -> Table:
    """Microseconds of ask and tell, the commit before and kinds of guards by turns."""
    kinds = (
        "no guard, models affine",
        "no guard",
        "ten rows",
        "a spacing",
        "ten rows and a spacing",
    )
    rounds = [
        {"before": _apart("no guard, models affine", earlier)}
        | {kind: _apart(kind) for kind in kinds}
        for _ in range(ROUNDS)
    ]
    rows: list[tuple[Any, ...]] = []
    for kind in ("before", *kinds):
        times = [one[kind] for one in rounds]
        ratio = median(one[kind] / one["before"] for one in rounds)
        limit = MICROSECONDS if kind == "ten rows" else None
        verdict = None if limit is None else "holds" if median(times) <= limit else "missed"
        label = "no guard, models affine, the commit before" if kind == "before" else kind
        rows.append((label, round(median(times), 1), round(ratio, 2), limit, verdict))
    return Table.of(("guard", "ask + tell, µs", "ratio to before", "at most, µs", ""), rows)


def page(regret: Table, cost: Table) -> str:
    """The page."""
    return f"""# Guards, measured

This page is written by `python -m benchmarks.guards --earlier FOLDER --write FILE`, where FOLDER
is the source of the commit before guards. [Allowed decisions](guards.md) says how they are kept.

## Regret

The recommended policy, {HORIZON:,} decisions, {SEEDS} seeds. Regret with a guard is against the
best decision that is allowed. It is divided by the regret on the same problem without guards,
which is against the best decision of the box. The standard error is that of a ratio of means, with
seeds as pairs.

- *A spacing of a twentieth*: each coordinate has twenty-one values.
- *Coupled limits*: one row over all coordinates, which cuts the best decision off for half of the
  contexts.
- *Limits of each request*: `within` a box that is drawn anew for each decision, 30 to 100 % of
  each side, anywhere.

{regret.markdown()}

## Time

Ask and tell at dx = {DX}, dy = {DY}, microseconds, the median of {ROUNDS} processes by turns. The
ratio is to the commit before guards, whose models were affine in the context; with
`degree=1` they are so now. What [terms of the context](contexts.md#what-it-costs) add is not what
guards cost.

{cost.markdown()}
"""


def kept(file: Path, make: Callable[[], Table]) -> Table:
    """The table in a file, or a new one, which is kept there."""
    if not file.exists():
        table = make()
        file.write_text(json.dumps({"columns": table.columns, "rows": table.rows}))
    found = json.loads(file.read_text())
    return Table.of(found["columns"], found["rows"])


def main() -> None:
    """Measure, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--earlier", type=Path, required=True, help="source of the commit before")
    parser.add_argument("--folder", type=Path, default=Path("guards"), help="for the results")
    parser.add_argument("--part", choices=["time", "regret"], action="append")
    parser.add_argument("--write", type=Path, help="the page")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    parts = {"time": lambda: cost_table(options.earlier), "regret": regret_table}
    wanted = options.part or list(parts)
    tables = {name: kept(options.folder / f"{name}.json", parts[name]) for name in wanted}
    for table in tables.values():
        print(table.markdown())
    if options.write is not None:
        options.write.write_text(page(tables["regret"], tables["time"]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["cost"]:
        sys.stdout.write(json.dumps(cost(sys.argv[2])))
    else:
        main()
