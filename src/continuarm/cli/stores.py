"""The option that says which store a command is about, and how that is opened."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from continuarm.store import Store

__all__ = ["opened", "store_option"]

STORE = "shop.db"


def store_option(command: Any) -> Any:
    """`--store`."""
    return click.option(
        "--store",
        default=STORE,
        show_default=True,
        metavar="FILE|postgresql://…",
        help="Where the ledgers are: a file or a database.",
    )(command)


@contextmanager
def opened(address: str, *, make: bool = False) -> Iterator["Store"]:
    """A store, closed at the end; one that is not there is made only if asked for."""
    from continuarm.errors import StoreError
    from continuarm.store import open_store

    try:
        store, is_new = open_store(address, make=False), False
    except StoreError:
        if not make:
            raise
        store, is_new = open_store(address), True
    with closing(store), _left_only_if_used(address, store, is_new):
        yield store
    if is_new:
        shown = "the database" if "://" in address else address  # that may hold a password
        click.echo(f"{shown} is a new store", err=True)


@contextmanager
def _left_only_if_used(address: str, store: "Store", is_new: bool) -> Iterator[None]:
    """What fails leaves no new file."""
    try:
        yield
    except BaseException:
        if is_new and "://" not in address and not store.experiments() and not store.tokens():
            store.close()
            for ending in ("", "-wal", "-shm"):
                Path(address + ending).unlink(missing_ok=True)
        raise
