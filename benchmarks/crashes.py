"""Five hundred kills at random moments on each store, and what is left afterwards.

python -m benchmarks.crashes [--kills 500] [--folder crashes] [--write]

What is measured is kept in the folder, and nothing is run twice.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.crashing import Acknowledged, check
from benchmarks.service_page import machine, put
from continuarm.store import open_store
from continuarm.table import Table
from tests import postgresql


def measured(kills: int, kept: Path) -> Table:
    """One process and three, on each store."""
    rows: list[list[Any]] = json.loads(kept.read_text()) if kept.exists() else []
    with tempfile.TemporaryDirectory(dir=".") as folder, postgresql.Server() as database:
        cases = [
            ("SQLite", str(Path(folder) / "shop.db"), 1),
            ("SQLite", str(Path(folder) / "three.db"), 3),
            ("PostgreSQL", database.fresh("one"), 1),
            ("PostgreSQL", database.fresh("three"), 3),
        ]
        for name, address, workers in cases[len(rows) :]:
            began = time.perf_counter()
            command = [sys.executable, "-m", "benchmarks.crashing", address]
            done = subprocess.run(
                [*command, str(kills), str(workers)], stdout=subprocess.PIPE, check=True
            )
            asked, told = json.loads(done.stdout)
            with closing(open_store(address)) as store:
                events = check(store, Acknowledged(asked, set(told)))
            took = round(time.perf_counter() - began)
            rows.append([name, workers, kills, len(asked), len(told), events, 0, took])
            kept.write_text(json.dumps(rows))
            print(rows[-1], flush=True)
    columns = ("store", "processes", "kills", "decisions", "payoffs", "events", "lost", "seconds")
    return Table.of(columns, rows)


def main() -> None:
    """Kill, check, and print or write the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--folder", type=Path, default=Path("crashes"), help="for the results")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    table = measured(options.kills, options.folder / f"{options.kills}.json").markdown()
    text = f"""
Processes that decide and tell as a server does, killed by `kill -9` at random moments, and
started again. Then every acknowledged decision and payoff is in the ledger, and no payoff counts
twice. The state is a replay of the ledger, bit for bit, with every decision made again from the
state that its process had folded. *Decisions* and *payoffs* are those acknowledged. A difference
would have ended the command.

{table}

`python -m benchmarks.crashes --kills {options.kills} --write` on {machine()}.
"""
    print(text)
    if options.write:
        put("Kills", text)


if __name__ == "__main__":
    main()
