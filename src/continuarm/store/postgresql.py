"""PostgresqlDatabase: a store that servers on several machines share, through psycopg.

A transaction that appends locks its experiment's row first. So positions are given and become
visible in one order, while other experiments go on.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Condition, Lock, Thread
from typing import Any
from weakref import WeakSet

from continuarm.errors import MissingExtraError, StoreError, UnavailableError
from continuarm.store import schema
from continuarm.store.addresses import without_password
from continuarm.store.immortal import keep_for_ever
from continuarm.store.sql import Row, Session

try:
    import psycopg
    from psycopg_pool import ConnectionPool, PoolTimeout
except ImportError as error:
    raise MissingExtraError(
        "a store in PostgreSQL needs psycopg: pip install 'continuarm[postgresql]'"
    ) from error

__all__ = ["PostgresqlDatabase"]

PATIENCE = 10.0  # seconds that one waits for a connection
LOOK = 0.25  # seconds after which one looks, whatever was heard
AGAIN = 0.5  # seconds between two tries to listen
MOST_CONNECTIONS = 8
ONE_AT_A_TIME = 0x636F6E74696E7561  # the advisory lock of those who make tables
WORDS = {
    "identity": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "float": "DOUBLE PRECISION",
    "bytes": "BYTEA",
    "clustered": "",
}


class _Session:
    """A transaction of one connection."""

    def __init__(self, connection: "psycopg.Connection[Row]") -> None:
        self._connection = connection

    def run(self, statement: str, *given: Any) -> list[Row]:
        found = self._connection.execute(_placed(statement), given)
        return found.fetchall() if found.description is not None else []

    def run_many(self, statement: str, given: Iterable[Row]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_placed(statement), given)


def _placed(statement: str) -> Any:
    return statement.replace("?", "%s")


class PostgresqlDatabase:
    """The tables in a database.

    address : `postgresql://user@host:port/database`, as psycopg takes it.
    make : whether tables that are not there are made; else the database is refused.
    """

    among = (
        "SELECT {columns} FROM unnest(?::text[]) AS listed CROSS JOIN LATERAL "
        "(SELECT * FROM events WHERE {column} = listed AND experiment = ? OFFSET 0) AS met"
    )  # each by itself: else all events are looked through, as long as there are no statistics
    locking, is_near = " FOR UPDATE", False

    def __init__(self, address: str, *, make: bool = True) -> None:
        self._address, self.where = address, without_password(address)
        self._marks, self._closed = 0, False
        self._begin()
        with self._refusals():
            with psycopg.connect(address, connect_timeout=int(PATIENCE)) as connection:
                self._migrate(_Session(connection), make)
            self._start()
        _all.add(self)

    def _begin(self) -> None:
        self._heard, self._starting = Condition(), Lock()
        self._connected: WeakSet[psycopg.Connection[Any]] = WeakSet()
        self._pool: ConnectionPool[Any] | None = None

    def _start(self) -> ConnectionPool[Any]:
        """The pool of this process, and one who listens."""
        with self._starting:
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._address,
                    min_size=1,
                    max_size=MOST_CONNECTIONS,
                    timeout=PATIENCE,
                    open=False,
                    configure=self._connected.add,
                )
                self._pool.open(wait=False)
                Thread(target=self._listen, name="continuarm-listener", daemon=True).start()
            return self._pool

    def forked(self) -> None:
        """In a child process: the parent's sockets are its own, and threads are gone.

        To close a connection would tell the database that the parent has gone. To keep its socket
        would hide from the database that the parent has gone, when it has.
        """
        with open(os.devnull, "r+b", buffering=0) as nothing:
            for connection in list(self._connected):
                with suppress(psycopg.Error, OSError):
                    os.dup2(nothing.fileno(), connection.fileno())
        keep_for_ever(self._pool)
        self._begin()

    @staticmethod
    def clock(session: Session) -> float:
        """That of the database."""
        [(now,)] = session.run("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(now)

    @staticmethod
    def listed(strings: list[str]) -> list[str]:
        """Strings as one parameter."""
        return strings

    def _migrate(self, session: Session, make: bool) -> None:
        session.run("SELECT pg_advisory_xact_lock(?)", ONE_AT_A_TIME)
        if not make and session.run("SELECT to_regclass('continuarm')") == [(None,)]:
            raise schema.missing(self.where)
        session.run("CREATE TABLE IF NOT EXISTS continuarm (version BIGINT NOT NULL)")
        rows = session.run("SELECT version FROM continuarm")
        for statement in schema.statements(rows[0][0] if rows else 0, self.where, WORDS):
            session.run(statement)
        session.run("DELETE FROM continuarm")
        session.run("INSERT INTO continuarm VALUES (?)", schema.VERSION)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """What psycopg raises, in words of ours."""
        if self._closed:
            raise StoreError(f"a store must be open, but {self.where} was closed")
        try:
            yield
        except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
            raise UnavailableError(f"a store must answer, but {self.where}: {error}") from error
        except psycopg.InternalError as error:  # such as a server that recovers, or reads only
            raise UnavailableError(f"a store must answer, but {self.where}: {error}") from error

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction."""
        with self._refusals(), (self._pool or self._start()).connection() as connection:
            yield _Session(connection)

    reading = writing_now = writing

    def appended(self, session: Session) -> None:
        """Tell those who listen, when the transaction ends."""
        session.run("SELECT pg_notify('continuarm', '')")

    def glance(self) -> object:
        """It is far."""
        return None

    def mark(self) -> int:
        """Another one when something was heard."""
        if self._pool is None and not self._closed:
            self._start()
        return self._marks

    def sleep(self, mark: int, seconds: float) -> None:
        """Wait until something is heard, or a while, because one may have heard nothing."""
        with self._heard:
            self._heard.wait_for(lambda: self._marks != mark, min(seconds, LOOK))

    def scrub(self) -> None:
        """Write the tables anew; who reads or writes waits meanwhile."""
        with self._refusals(), psycopg.connect(self._address, autocommit=True) as connection:
            for table in ("events", "snapshots"):
                connection.execute(f"VACUUM FULL {table}".encode())

    def _listen(self) -> None:
        """Hear of what is appended; begin again when the connection is lost."""
        while not self._closed:
            with suppress(psycopg.Error):
                with psycopg.connect(self._address, autocommit=True) as connection:
                    self._connected.add(connection)
                    connection.execute("LISTEN continuarm")
                    while not self._closed:
                        for _ in connection.notifies(timeout=1.0, stop_after=1):
                            self._wake()
            self._wake()
            time.sleep(AGAIN)

    def _wake(self) -> None:
        with self._heard:
            self._marks += 1
            self._heard.notify_all()

    def close(self) -> None:
        """Let go of all connections."""
        self._closed = True
        if self._pool is not None:
            self._pool.close()
        self._wake()


_all: WeakSet[PostgresqlDatabase] = WeakSet()


def _in_child() -> None:
    for database in list(_all):
        database.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
