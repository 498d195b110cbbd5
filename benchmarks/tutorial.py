"""What the steps of the tutorial print.

    python -m benchmarks.tutorial

Runs the Python of each page of docs/tutorial and writes what it prints into the blocks of text
that follow. A test runs the same, and compares first lines, but for their numbers.
"""

import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

PAGES = sorted((Path(__file__).parent.parent / "docs" / "tutorial").glob("*.md"))
BLOCK = re.compile(r"```python\n(.*?)```(\n\n```text\n(.*?)```)?", re.S)
PORT = "8093"  # of the tutorial's server: another one here, so that runs do not meet
END = "--- the end of a block ---"


def printed(text: str) -> list[str]:
    """What each block of Python on a page prints, all of them run as one script."""
    text = text.replace(PORT, str(_free_port()))
    code = "\n".join(f"{block[1]}\nprint({END!r})" for block in BLOCK.finditer(text))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            capture_output=True,
            text=True,
            cwd=folder,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(f"{END}\n")[:-1]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def shown(text: str) -> list[str]:
    """What each block of Python on a page is said to print."""
    return [block[3] or "" for block in BLOCK.finditer(text)]


def with_output(text: str) -> str:
    """The page with what its blocks print; a block that prints nothing has no text after it."""
    outputs = iter(printed(text))

    def block(found: re.Match[str]) -> str:
        output = next(outputs)
        return f"```python\n{found[1]}```" + (f"\n\n```text\n{output}```" if output else "")

    return BLOCK.sub(block, text)


def main() -> None:
    """Write all pages."""
    for page in PAGES:
        page.write_text(with_output(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
