"""How little the first day costs, and how little is lost afterwards: both ends of one trade.

    python -m benchmarks.safe_and_quick [--folder safe-and-quick] [--seeds 20] [--part shops]
                                        [--write docs] [--quick]

Each part is kept in the folder as JSON, seed by seed, and nothing is run twice: more `--seeds` add
to it. `--write` makes docs/safe-and-quick.md and its figure. `--quick` looks at a thousand
decisions of two seeds, to see that all parts work. With 20 seeds about two hours on two cores.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import joblib

import continuarm as ca
from benchmarks.safe_and_quick_page import write_page
from benchmarks.safe_and_quick_run import FULL, QUICK, Scale, Task, logs, run, shops, wide
from benchmarks.safe_and_quick_tables import Found
from continuarm.cli.progress import Progress

PARTS: dict[str, tuple[Callable[[Scale], Iterator[Task]], float]] = {  # and seeds, of those wanted
    "shops": (shops, 1.0),
    "wide": (wide, 0.3),
    "logs": (logs, 1.0),
}


def stored(file: Path) -> Found:
    """What has been run: for each task a dictionary per seed."""
    return dict(json.loads(file.read_text())) if file.exists() else {}


def extend(tasks: list[Task], file: Path, seeds: int) -> None:
    """Run what is missing, and keep it after each task."""
    found = stored(file)
    each = ((task, range(len(found.get(task.key, [])), seeds)) for task in tasks)
    missing = [(task, more) for task, more in each if more]
    length = sum(len(more) * task.marks[-1] for task, more in missing)
    with Progress(file.stem, length, hidden=False) as move:
        for task, more in missing:
            have, world = found.setdefault(task.key, []), ca.problem(task.world)
            calls = (joblib.delayed(run)(task, world, seed) for seed in more)
            threads = joblib.Parallel(n_jobs=-1, prefer="threads", return_as="generator")
            for one in threads(calls):
                have.append(one)
                move(task.marks[-1])
            file.write_text(json.dumps(found))
            if not sys.stderr.isatty():  # which hides the bar
                print(task.key, len(have), flush=True)


def main() -> None:
    """Run what is missing, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("safe-and-quick"), help="of results")
    parser.add_argument("--part", choices=list(PARTS), action="append", help="only this part")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--write", type=Path, help="the folder of the docs")
    parser.add_argument("--quick", action="store_true", help="a small run, in a folder of its own")
    options = parser.parse_args()
    folder = options.folder / "quick" if options.quick else options.folder
    scale, wanted = (QUICK, 2) if options.quick else (FULL, options.seeds)
    folder.mkdir(parents=True, exist_ok=True)
    for name in options.part or PARTS:
        tasks, share = PARTS[name]
        extend(list(tasks(scale)), folder / f"{name}.json", max(2, round(share * wanted)))
    if options.write is not None:
        parts = {name: stored(folder / f"{name}.json") for name in PARTS}
        write_page(parts, scale, options.write)


if __name__ == "__main__":
    main()
