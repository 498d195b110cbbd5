"""Progress: a bar on standard error."""

import sys
from collections.abc import Callable
from typing import Any

import click

__all__ = ["Progress"]


class Progress:
    """A progress bar on standard error; `with` gives the function that moves it."""

    def __init__(self, label: str, length: int, hidden: bool) -> None:
        hidden = hidden or not sys.stderr.isatty()
        self.bar = click.progressbar(
            length=length, label=label, file=sys.stderr, hidden=hidden, show_pos=False
        )

    def __enter__(self) -> Callable[[int], None]:
        self.bar.__enter__()
        return self.bar.update

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self.bar.finish()
        self.bar.__exit__(*error)
