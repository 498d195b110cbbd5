"""`continuarm demo`: a chain of stores that learns its prices, to look at."""

import signal
import sys

import click

from continuarm.cli.parameters import PORT, WholeNumber

__all__ = ["demo"]


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
    from continuarm.checks import number
    from continuarm.demo import demonstrate

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: nothing is left
    pace = number("speed", speed)
    demonstrate(_Line(), port=port, speed=pace, decisions=decisions, seed=seed)


class _Line:
    """The last line of a terminal, written over; elsewhere only what lasts is written."""

    def __call__(self, text: str, lasting: bool) -> None:
        over = "\r\x1b[2K" if sys.stdout.isatty() else ""
        if lasting or over:
            click.echo(over + text[: None if lasting else self._width()], nl=lasting)

    @staticmethod
    def _width() -> int:
        import shutil

        return shutil.get_terminal_size().columns - 1
