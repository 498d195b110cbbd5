"""`continuarm experiments`, `export` and `import`: what a store has, moved to another one."""

import contextlib
import datetime
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click

from continuarm.cli.stores import opened, store_option

__all__ = ["events", "experiments", "export", "import_", "snapshots", "utc"]


def utc(seconds: float) -> str:
    """A time as people write it."""
    found = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return found.strftime("%Y-%m-%d %H:%M:%S UTC")


def events(count: int) -> str:
    """So many events."""
    return "1 event" if count == 1 else f"{count:,} events"


def snapshots(count: int) -> str:
    """So many snapshots."""
    return "1 snapshot" if count == 1 else f"{count:,} snapshots"


@click.command("experiments")
@store_option
def experiments(store: str) -> None:
    """List the experiments of a store: events, the time of the newest, and what is erased."""
    from continuarm.table import Table

    with opened(store) as ledgers:
        rows = [
            (
                e.name,
                e.head,
                utc(e.time - e.clock_offset) if e.head else None,
                e.begins or None,
                _word(e.archived),
            )
            for e in ledgers.experiments()
        ]
    click.echo(Table.of(("experiment", "events", "newest", "erased up to", "state"), rows))


def _word(archived: bool) -> str:
    return "archived" if archived else "open"


@click.command("export")
@click.argument("name", metavar="NAME")
@click.option(
    "--to",
    "target",
    default="-",
    show_default=True,
    metavar="FILE|-",
    help="A file that is not there yet; - is standard output.",
)
@store_option
def export(name: str, target: str, store: str) -> None:
    """Write an experiment as lines of JSON: its settings, snapshots and events.

    NAME is that of the experiment.
    """
    from continuarm.ledger.exports import export_lines

    with opened(store) as ledgers:
        lines = export_lines(ledgers, name)  # what is refused leaves no file
        with _written(target) as file:
            for line in lines:
                file.write(line + "\n")


@contextlib.contextmanager
def _written(target: str) -> Iterator[IO[Any]]:
    """A new file, all of it or none, or standard output."""
    from continuarm.errors import SettingsError

    if target == "-":
        yield sys.stdout
        return
    try:
        file = open(target, "x", encoding="utf-8", opener=_private)
    except OSError as error:
        raise SettingsError(
            f"`--to` must be a file that can be made, but got {target!r}: {error.strerror}"
        ) from None
    try:
        with file:
            yield file
    except BaseException:
        Path(target).unlink(missing_ok=True)
        raise


def _private(path: str, flags: int) -> int:
    """A new file that only its owner may read."""
    return os.open(path, flags, 0o600)


@click.command("import")
@click.argument("file", metavar="FILE")
@click.option("--as", "name", metavar="NAME", help="Another name than it had.")
@store_option
def import_(file: str, name: str | None, store: str) -> None:
    """Take over an experiment that `export` wrote, positions, times and keys included.

    FILE is what it wrote; - is standard input. All of it is taken over, or nothing. The name must
    be free. A store that is not there is made.
    """
    from continuarm.ledger.imports import import_lines

    with _read(file) as lines, opened(store, make=True) as ledgers:
        found = import_lines(ledgers, lines, name)
    archived = "; it is archived" if found.archived else ""
    click.echo(f"{found.name}: {events(found.head)}{archived}")


@contextlib.contextmanager
def _read(file: str) -> Iterator[IO[Any]]:
    from continuarm.errors import SettingsError

    try:
        lines = click.open_file(file, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise SettingsError(
            f"FILE must be one that can be read, but got {file!r}: {error.strerror}"
        ) from None
    with lines:
        yield lines
