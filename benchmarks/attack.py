"""An attack on stores and servers, with book-keeping of its own: what was tried, what came of it.

    python -m benchmarks.attack [--part kills,forks] [--quick] [--folder attack] [--write]

A row that is finished is kept in the folder, and is not run again. A defect ends its row. The
command goes on with the next one, and its exit code is 1 in the end.
"""

import argparse
import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.attacks.place import Place
from benchmarks.attacks.result import COLUMNS, Case, Defect, Tally
from benchmarks.service_page import machine
from continuarm.table import Table

PARTS = (
    "kills",
    "forks",
    "restores",
    "failovers",
    "clocks",
    "outages",
    "frozen",
    "tokens",
    "reads",
    "streams",
    "fuzz",
    "records",
    "ids",
)
PAGE = Path("docs/attack.md")


def cases(parts: list[str], *, quick: bool = False) -> list[Case]:
    """The rows of some parts; of a quick attack, those that are not slow or like others."""
    all_ = [case for part in parts for case in import_module(f"benchmarks.attacks.{part}").CASES]
    return [case for case in all_ if case.quick or not quick]


def attacked(place: Place, case: Case) -> dict[str, Any]:
    """Run one row; what came of it, and the defect if there is one."""
    tally, began, defect = Tally(), time.perf_counter(), None
    try:
        case.run(place, tally)
    except Defect as found:
        defect = str(found)
    if tally.failures and defect is None:
        defect = f"{tally.failures} answers are a 500"
    if defect is not None:
        tally.came = "**defect**"
    took = round(time.perf_counter() - began)
    row = tally.row(case.part, case.what)
    return {"row": row, "defect": defect, "seconds": took, "statuses": dict(tally.statuses)}


def main() -> None:
    """Attack, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", help=f"some of {','.join(PARTS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="some rows, a few times each")
    parser.add_argument("--folder", type=Path, default=Path("attack"), help="for the results")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE}")
    options = parser.parse_args()
    parts = options.part.split(",") if options.part else list(PARTS)
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        parser.error(f"the parts are {', '.join(PARTS)}, but got {', '.join(unknown)}")
    options.folder.mkdir(exist_ok=True)
    results = attacked_all(cases(parts, quick=options.quick), options.folder, quick=options.quick)
    table = Table.of(COLUMNS, [result["row"] for result in results])
    print(f"\n{table}")
    if options.write:
        said = "python -m benchmarks.attack" + " --quick" * options.quick + " --write"
        PAGE.write_text(page(results, said))
    defects = [result for result in results if result["defect"] is not None]
    for result in defects:
        print(f"\nDEFECT in {result['row'][0]}, {result['row'][1]}: {result['defect']}")
    sys.exit(1 if defects else 0)


def attacked_all(wanted: list[Case], folder: Path, *, quick: bool) -> list[dict[str, Any]]:
    """All rows, those of before included; a row with a defect is tried again."""
    kept = folder / ("quick.json" if quick else "rows.json")
    known: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    results = []
    with Place(folder, quick=quick) as place:
        for case in wanted:
            name = f"{case.part}: {case.what}"
            if name not in known or known[name]["defect"] is not None:
                known[name] = attacked(place, case)
                kept.write_text(json.dumps(known, indent=1))
            print(f"{known[name]['seconds']:5} s  {known[name]['row']}", flush=True)
            results.append(known[name])
    return results


ABOVE = """# The attack, measured

What was done to stores and servers, how often, and what came of it. The book-keeping is the
attack's own:

- Customers note each answer in a file before their next request: the number of the decision, its
  key, its values; or the payoff that was acknowledged.
- Afterwards a checker reads the tables by plain SQL. Every decision that was acknowledged is there
  once, with its values and its key. Every payoff closes its decision once, with its value.
  Positions are dense, and times never go back. No number of a decision came twice.
- Then `continuarm replay` makes every decision again.

*Times* is how often something was done to it. *Decisions* and *payoffs* are those acknowledged
meanwhile. *Lost*, *wrong* and *500s* must be 0. The *longest pause* is the longest time in which
no customer had an answer; where one server alone was killed, it is that of its start. A defect
ends its row, and the command fails.
"""


def page(results: list[dict[str, Any]], said: str) -> str:
    """The page of the docs: a section for each part."""
    sections = [ABOVE]
    for part in dict.fromkeys(result["row"][0] for result in results):
        rows = [result["row"][1:] for result in results if result["row"][0] == part]
        about = str(import_module(f"benchmarks.attacks.{part}").__doc__).strip()
        used = [k for k in range(len(rows[0])) if any(row[k] is not None for row in rows)]
        table = Table.of([COLUMNS[1:][k] for k in used], [[row[k] for k in used] for row in rows])
        sections.append(f"## {part.capitalize()}\n\n{about}\n\n{table.markdown()}\n")
    parts = {result["row"][0] for result in results}
    if missing := [part for part in PARTS if part not in parts]:
        sections.append(f"Not on this page, and not run this time: {', '.join(missing)}.\n")
    minutes = sum(result["seconds"] for result in results) / 60
    sections.append(f"`{said}` on {machine()}, in {minutes:.0f} minutes.\n")
    return "\n".join(sections)


if __name__ == "__main__":
    main()
