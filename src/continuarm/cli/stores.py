"""The option that says which store a command is about, and how that is opened."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
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
    from continuarm.store import open_store

    with closing(open_store(address, make=make)) as store:
        yield store
