"""`continuarm demo`: a chain of stores that learns its prices, to look at."""

import sys
import time

import click

from continuarm.cli.parameters import PORT, WholeNumber

__all__ = ["demo"]

EVERY = 10.0  # seconds, where lines are not written over


@click.command("demo")
@click.option(
    "--decisions", type=WholeNumber(1), help="End after so many, with a summary; else at Ctrl-C."
)
@click.option(
    "--speed", type=float, default=1.0, show_default=True, help="Times 25 decisions a second."
)
@click.option("--port", type=PORT, default="8080", show_default=True, help="Its port; 0: any.")
@click.option("--seed", type=WholeNumber(0), default="0", show_default=True, help="Of the world.")
def demo(decisions: int | None, speed: float, port: int, seed: int) -> None:
    """Watch 80 stores learn the prices of three orange juices, in a browser."""
    from continuarm.demo.ending import Ending

    ending = Ending()
    ending.listen()  # before what takes long to import
    from continuarm.checks import number
    from continuarm.demo.running import demonstrate

    pace = number("speed", speed)
    demonstrate(_Line(), ending, port=port, speed=pace, decisions=decisions, seed=seed)


class _Line:
    """The last line of a terminal, written over; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, text: str, lasting: bool) -> None:
        if sys.stdout.isatty():
            click.echo("\r\x1b[2K" + text[: None if lasting else self._width()], nl=lasting)
        elif lasting or time.monotonic() >= self._next:
            click.echo(text)
            self._next = self._next if lasting else time.monotonic() + EVERY

    @staticmethod
    def _width() -> int:
        import shutil

        return shutil.get_terminal_size().columns - 1
