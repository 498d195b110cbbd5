"""docs/service-measured.md: a section for each part, which the command that measures it writes."""

import os
import platform
from pathlib import Path

__all__ = ["PAGE", "machine", "put"]

PAGE = Path("docs/service-measured.md")
ABOVE = """# The service, measured

What [the service](service.md) carries, what it survives, and what it costs to decide from several
servers. Each section says which command has written it. [Deployment](deployment.md) says what
follows from the numbers.
"""
ORDER = (
    "Requests",
    "Batches",
    "Workers",
    "Long ledgers",
    "Kills",
    "Regret through three servers",
)


def put(heading: str, text: str) -> None:
    """Write one section; the others stay as they are."""
    before = PAGE.read_text() if PAGE.exists() else ABOVE
    _, *sections = before.split("\n## ")
    found = {section.partition("\n")[0]: section.partition("\n")[2] for section in sections}
    found[heading] = f"\n{text.strip()}\n"
    kept = [f"\n## {name}\n{found[name]}" for name in ORDER if name in found]
    PAGE.write_text(ABOVE + "".join(section.rstrip() + "\n" for section in kept))


def machine() -> str:
    """What it was measured on."""
    return f"{os.cpu_count()} cores, Python {platform.python_version()}"
