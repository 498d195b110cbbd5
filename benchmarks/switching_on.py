"""Write the figures of docs/switching-on.md, and what its code prints, by running its code.

    python -m benchmarks.switching_on

The figures that the code saves go to docs/figures. The page's blocks of text are what its prints
say, in their order.
"""

import os
import re
import shutil
import tempfile
import textwrap
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "switching-on.md"
TEXT = re.compile(r"(?<=```text\n).*?(?=\n```)", re.DOTALL)
WIDTH = 96  # columns of a block


def main() -> None:
    page = PAGE.read_text()
    printed = iter(run("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))))
    PAGE.write_text(TEXT.sub(lambda _: wrapped(next(printed)), page))


def wrapped(text: str) -> str:
    """Lines that fit a page."""
    return "\n".join(
        textwrap.fill(line, WIDTH, subsequent_indent="  ") for line in text.split("\n")
    )


def run(code: str) -> list[str]:
    """What the code prints, each time; its figures are kept."""
    printed: list[str] = []

    def note(text: Any) -> None:
        printed.append(str(text))

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(code, {"print": note})
        for figure in sorted(Path(folder).glob("*.png")):
            shutil.copy(figure, DOCS / "figures" / f"switching-{figure.name}")
    return printed


if __name__ == "__main__":
    main()
