"""What it brings that contexts earn their way in, and where it loses.

    python -m benchmarks.contexts --earlier FOLDER [--folder contexts] [--part suite] [--seeds 10]
                                  [--write docs]

FOLDER is the `src` of the version before, commit 189784c. Each part is kept in the folder as JSON,
seed by seed, and nothing is run twice: more `--seeds` add to it. `--write` makes docs/contexts.md
and its figures. With 10 seeds about an hour and a half on one core.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import continuarm as ca
from benchmarks.contexts_page import (
    DRAWN,
    HORIZON,
    KEPT_LIMIT,
    NAMED,
    WIDE,
    key_of,
    of_two,
)
from benchmarks.contexts_run import regrets
from benchmarks.contexts_text import write_page
from benchmarks.pauses import apart
from continuarm.lab.measures import ratio

OURS: tuple[str, dict[str, Any]] = ("recommended", {})
MARKS = [round(10 ** (k / 4)) for k in range(16, 25)]
CONTEXTS = (1, 2, 5, 10, 20)
DECISIONS = (1, 2, 5, 10, 20, 50)
MOST_SEEDS = 100
KWSA: dict[str, Any] = {"probe": "alternate", "inherit": "iterate-and-count"}
RIVALS = [
    ("adaptive-kwsa", KWSA | {"width": width, "split_after": split, "depth": 6})
    for width in (0.1, 0.2, 0.4)
    for split in ("text", "lipschitz")
]
ALTERNATE = {"static-kwsa": {"probe": "alternate"}, "adaptive-kwsa": KWSA, "uniform-ucb": {}}
COSTS = ((1, 2), (10, 2))
ROUNDS = 3

Task = tuple[str, dict[str, Any]]  # of which version, and what


def task(world: list[Any], policy: Any = OURS, marks: list[int] | None = None) -> dict[str, Any]:
    """What `regrets` needs, but for the seeds."""
    return {"world": world, "policy": policy, "marks": marks or [HORIZON]}


def suite() -> Iterator[Task]:
    """Every problem, now and before."""
    for name in ca.problem_names("suite"):
        for version in ("now", "before"):
            yield version, task(["suite", name])


def wide() -> Iterator[Task]:
    """Ten more context dimensions that do not matter."""
    for name in WIDE:
        for more in (0, 10):
            for version in ("now", "before"):
                yield version, task(["wider", name, more])


def drawn() -> Iterator[Task]:
    """Worlds that nobody has chosen, with the rival told the curvature."""
    for seed in DRAWN:
        for version in ("now", "before"):
            yield version, task(["drawn", seed])
        for rival in RIVALS:
            yield "now", task(["drawn", seed], rival)


def growth() -> Iterator[Task]:
    """Regret along one run to a million decisions."""
    for world in (["one matters", 1], ["suite", "two-communities"]):
        yield "now", task(world, marks=MARKS)


def dimensions() -> Iterator[Task]:
    """Regret against the number of context dimensions."""
    policies = [OURS, ("adaptive-kwsa", KWSA), ("uniform-ucb", {})]
    for dx in CONTEXTS:
        for kind in ("one matters", "all matter"):
            for policy in policies:
                yield "now", task([kind, dx], policy)


def decisions() -> Iterator[Task]:
    """Regret against the dimension of the decision, on the quadratic of the reproduction."""
    for dy in DECISIONS:
        yield "now", task(["quadratic", dy])
        for name, settings in ALTERNATE.items():
            if name != "uniform-ucb" or dy <= 5:
                yield "now", task(["quadratic", dy], (name, settings))


class Earlier:
    """The version before, in a process of its own."""

    def __init__(self, source: Path) -> None:
        script = Path(__file__).with_name("contexts_run.py")
        environment = os.environ | {"PYTHONPATH": str(source)}
        self.process = subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def __call__(self, wanted: dict[str, Any]) -> list[list[float]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(wanted) + "\n")
        self.process.stdin.flush()
        found: list[list[float]] = json.loads(self.process.stdout.readline())
        return found


def run(tasks: Iterator[Task], file: Path, seeds: int, before: Callable[..., Any]) -> None:
    """Run what is missing, and keep it after each task."""
    found = json.loads(file.read_text()) if file.exists() else {}
    for version, wanted in tasks:
        key = key_of(version, wanted["world"], wanted["policy"])
        have = found.setdefault(key, [])
        if len(have) < seeds:
            more = wanted | {"first": len(have), "count": seeds - len(have)}
            have += (regrets if version == "now" else before)(more)
            file.write_text(json.dumps(found))
            print(file.stem, key, np.mean(have, axis=0)[-1], flush=True)


def add_seeds(file: Path, before: Callable[..., Any], until: int) -> None:
    """More seeds for problems whose ratio's interval straddles its limit."""
    for name in ca.problem_names("suite"):
        while True:
            ours, theirs = of_two(json.loads(file.read_text()), ["suite", name])
            _, low, high = ratio(ours, theirs)
            if not low <= NAMED.get(name, KEPT_LIMIT) <= high or len(ours) >= until:
                break
            both = ((version, task(["suite", name])) for version in ("now", "before"))
            run(both, file, min(2 * len(ours), until), before)


def cost(file: Path, earlier: Path) -> None:
    """Time per decision, memory per bin, before and now, by turns."""
    found = []
    for dx, dy in COSTS:
        given = ("cost", dx, dy, 30_000)
        rounds = [(apart(*given, source=earlier), apart(*given)) for _ in range(ROUNDS)]
        found.append({"dx": dx, "dy": dy, "rounds": rounds})
        file.write_text(json.dumps(found))


PARTS: dict[str, tuple[Callable[[], Iterator[Task]], float]] = {  # and seeds, of those wanted
    "suite": (suite, 1.0),
    "wide": (wide, 1.0),
    "drawn": (drawn, 0.3),
    "growth": (growth, 1.0),
    "dimensions": (dimensions, 0.3),
    "decisions": (decisions, 0.5),
}


def main() -> None:
    """Run what is missing, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--earlier", type=Path, required=True, help="`src` of the version before")
    parser.add_argument("--folder", type=Path, default=Path("contexts"), help="for the results")
    parser.add_argument("--part", choices=[*PARTS, "more", "cost"], action="append")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--most", type=int, default=MOST_SEEDS, help="seeds where it straddles")
    parser.add_argument("--write", type=Path, help="the folder of the docs")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    file = {name: options.folder / f"{name}.json" for name in (*PARTS, "cost")}
    before = Earlier(options.earlier)
    for name in options.part or [*PARTS, "more", "cost"]:
        if name == "more":
            add_seeds(file["suite"], before, options.most)
        elif name == "cost":
            if not file[name].exists():
                cost(file[name], options.earlier)
        else:
            tasks, share = PARTS[name]
            run(tasks(), file[name], max(2, round(share * options.seeds)), before)
    if options.write is not None:
        parts = {name: json.loads(one.read_text()) for name, one in file.items() if one.exists()}
        write_page(parts, MARKS, options.write)


if __name__ == "__main__":
    main()
