"""open_store: the store of an address."""

import os
from pathlib import Path

from continuarm.errors import MissingExtraError, SettingsError
from continuarm.store.memory import MemoryStore
from continuarm.store.protocol import Store
from continuarm.store.sql import SqlStore
from continuarm.store.sqlite import SqliteDatabase

__all__ = ["open_store"]

POSTGRESQL = ("postgresql://", "postgres://")


def open_store(address: str | os.PathLike[str], *, make: bool = True) -> Store:
    """Open a store, and make it if it is not there.

    Parameters
    ----------
    address : the path of a file, which holds a SQLite database; `postgresql://…`, as libpq takes
        it; or `:memory:`, which is gone when the process ends.
    make : whether one that is not there is made; else it is refused.

    >>> store = open_store(":memory:")
    >>> store.create("prices", "{}").name
    'prices'
    """
    if isinstance(address, Path):
        return SqlStore(SqliteDatabase(address, make=make))
    if not isinstance(address, str) or not address:
        raise SettingsError(
            f"a store is the path of a file or postgresql://…, but got {address!r}"
        )
    if address == ":memory:":
        return MemoryStore()
    if address.startswith(POSTGRESQL):
        try:
            from continuarm.store.postgresql import PostgresqlDatabase
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                "a store in PostgreSQL needs psycopg: pip install 'continuarm[postgresql]'"
            ) from error
        return SqlStore(PostgresqlDatabase(address, make=make))
    if "://" in address:
        raise SettingsError(
            f"a store is the path of a file or postgresql://…, but got {address!r}"
        )
    return SqlStore(SqliteDatabase(address, make=make))
