"""docs/service-measured.md: a section for each part, which the command that measures it writes.

From its tables comes the section *Sizing* of docs/deployment.md.
"""

import os
import platform
from pathlib import Path

from continuarm.table import Table

__all__ = ["DEPLOYMENT", "MEASURED", "machine", "put", "put_sizing"]

MEASURED, DEPLOYMENT = Path("docs/service-measured.md"), Path("docs/deployment.md")
ABOVE = """# The service, measured

What [the service](service.md) carries, and what it costs to decide from several servers; what it
survives is [the attack's](attack.md). Each section says which command has written it.
[Deployment](deployment.md) says what follows from the numbers.
"""
ORDER = (
    "Requests",
    "Batches",
    "Workers",
    "Long ledgers",
    "Hostile clients",
    "Regret through three servers",
)
SERVER = "uvicorn"  # the one that is kept
MILLION = 1e6


def put(heading: str, text: str) -> None:
    """Write one section of what was measured; the others stay as they are."""
    found = _sections(MEASURED.read_text() if MEASURED.exists() else ABOVE)
    found[heading] = text
    _write(MEASURED, ABOVE, {name: found[name] for name in ORDER if name in found})


def _sections(page: str) -> dict[str, str]:
    """The texts below the headings of a page."""
    _, *sections = page.split("\n## ")
    return {section.partition("\n")[0]: section.partition("\n")[2] for section in sections}


def _write(page: Path, above: str, sections: dict[str, str]) -> None:
    texts = [f"## {heading}\n\n{text.strip()}\n" for heading, text in sections.items()]
    page.write_text("\n".join([above.rstrip() + "\n", *texts]))


def verdict(value: float, wanted: float | None, *, at_most: bool = False) -> str | None:
    """Whether what was wanted holds."""
    if wanted is None:
        return None
    return "holds" if (value <= wanted if at_most else value >= wanted) else "**missed**"


def machine() -> str:
    """What it was measured on."""
    return f"{os.cpu_count()} cores, Python {platform.python_version()}"


def put_sizing() -> None:
    """Write what follows from the numbers for the size of an installation."""
    page, measured = DEPLOYMENT.read_text(), _sections(MEASURED.read_text())
    sections = _sections(page)
    sections["Sizing"] = _sizing({name: _rows(text) for name, text in measured.items()})
    _write(DEPLOYMENT, page.partition("\n## ")[0], sections)


def _rows(text: str) -> list[dict[str, str]]:
    """The rows of the first table in a text, by column."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [dict(zip(lines[0], line, strict=False)) for line in lines[2:]]


def _sizing(measured: dict[str, list[dict[str, str]]]) -> str:
    rows = [
        (f"{request}s a second, one at a time", *_of(measured["Requests"], request, "a second"))
        for request in ("ask", "tell")
    ]
    rows += [
        (f"{what} a second, in batches of 100", *_of(measured["Batches"], what, "a second"))
        for what in ("decisions", "payoffs")
    ]
    rows.append(("p99 of an ask, ms", *_of(measured["Requests"], "ask", "p99, ms")))
    batched = float(rows[2][1].replace(",", ""))
    table = Table.of(("one worker, one experiment", "SQLite", "PostgreSQL"), rows)
    return f"""
What [was measured](service-measured.md) on a machine of {machine()}:

{table.markdown()}

- Two workers on one file of SQLite make {_of_two(measured["Workers"], "single")} times as many
  decisions one at a time as one worker does, and {_of_two(measured["Workers"], "batches")} times
  as many in batches.
- With {measured["Long ledgers"][1]["events"]} events a server starts in
  {measured["Long ledgers"][1]["start, s"]} s, and an ask takes
  {measured["Long ledgers"][1]["times short"]} times as long as with a thousand.
- In batches, a million decisions a second are {MILLION / batched:.0f} such stores.

`python -m benchmarks.service --write` has written this section.
"""


def _of_two(rows: list[dict[str, str]], what: str) -> str:
    """How much more two workers do."""
    [found] = [row for row in rows if (row["what"], row["workers"]) == (what, "2")]
    return found["times one worker"]


def _of(rows: list[dict[str, str]], what: str, column: str) -> list[str]:
    """A number for SQLite, and for PostgreSQL."""
    return [
        row[column]
        for store in ("SQLite", "PostgreSQL")
        for row in rows
        if row.get("server", SERVER) == SERVER
        and row["store"] == store
        and what in (row.get("request"), row.get("what"))
    ]
