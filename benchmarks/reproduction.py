"""The page of the docs with the full reproduction.

    python -m benchmarks.reproduction [FOLDER]

Runs `continuarm reproduce` in full into FOLDER (default `reproduction`), unless its runs are there
already, and writes docs/reproduction.md and docs/figures/ from it.
"""

import re
import shutil
import sys
from pathlib import Path

from benchmarks.wrapping import wrapped
from continuarm.paper import reproduction

DOCS = Path(__file__).parent.parent / "docs"
NOTE = (
    "This page is written by `python -m benchmarks.reproduction` from a full run of "
    "`continuarm reproduce`; version {version}.\n"
)


def main() -> None:
    """Run what is missing and write the page."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "reproduction")
    reproduction.reproduce(folder)
    (DOCS / "figures").mkdir(exist_ok=True)
    for name in reproduction.FIGURES:
        shutil.copy(folder / f"{name}.png", DOCS / "figures" / f"{name}.png")
    report = re.sub(r"(!\[[^]]*\]\()", r"\1figures/", (folder / "report.md").read_text("utf-8"))
    title, _, rest = report.partition("\n")
    from continuarm.version import __version__

    page = f"{title}\n\n{NOTE.format(version=__version__)}{rest}"
    (DOCS / "reproduction.md").write_text(wrapped(page), "utf-8")


if __name__ == "__main__":
    main()
