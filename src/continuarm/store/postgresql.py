"""PostgresqlDatabase: a store that servers on several machines share, through psycopg.

A transaction that appends locks its experiment's row first. So positions are given and become
visible in one order, while other experiments go on. Statements that need no answers of each other
are sent together: a group is appended in two round trips.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Condition, Lock, Thread
from typing import Any
from weakref import WeakSet

import psycopg
from psycopg_pool import PoolTimeout

from continuarm.background import Task
from continuarm.errors import StoreError, UnavailableError
from continuarm.store import schema
from continuarm.store.addresses import without_password
from continuarm.store.database import Row, Rows, Session
from continuarm.store.postgresql_connections import Connections, limited
from continuarm.store.postgresql_pipeline import Connection, Pipeline

__all__ = ["PostgresqlDatabase"]

LOOK = 0.25  # seconds after which one looks, whatever was heard
REST = 0.005  # seconds after something was heard, in which more of it is no news
HEARING = 1.0  # seconds after which who listens looks whether the store was closed
FIRST = 2.0  # seconds that a first statement may take
MANY = 1000  # statements that are sent before one waits for them
LONGEST = 3600.0  # seconds that work on whole tables may take
ONE_AT_A_TIME = 0x636F6E74696E7561  # the advisory lock of those who make tables
WORDS = {
    "identity": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "float": "DOUBLE PRECISION",
    "bytes": "BYTEA",
    "clustered": "",
}
LONG_LIMITS = (
    "SELECT set_config('lock_timeout', ?, true), set_config('statement_timeout', ?, true), "
    "set_config('idle_in_transaction_session_timeout', ?, true)"
)
LIMIT = "SELECT setting::float8 / 1000 FROM pg_settings WHERE name = 'statement_timeout'"


class _Session:
    """Statements of one pipeline."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def send(self, statement: str, *given: Any) -> Rows:
        return self._pipeline.send(statement, given).rows

    def run(self, statement: str, *given: Any) -> list[Row]:
        return self._pipeline.send(statement, given).rows()

    def run_many(self, statement: str, given: Iterable[Row]) -> None:
        for number, row in enumerate(given, 1):
            self._pipeline.send(statement, row)
            if number % MANY == 0:
                self._pipeline.wait()


class PostgresqlDatabase:
    """The tables in a database.

    address : `postgresql://user@host:port/database`, as psycopg takes it.
    make : whether tables that are not there are made; else the database is refused.
    """

    among = (
        "SELECT {columns} FROM json_array_elements_text(?::json) AS listed CROSS JOIN LATERAL "
        "(SELECT * FROM events WHERE {column} = listed AND experiment = {number} OFFSET 0) AS met"
    )  # each by itself: else all events are looked through, as long as there are no statistics
    locking, is_near = " FOR UPDATE", False
    _pool: Connections

    def __init__(self, address: str, *, make: bool = True) -> None:
        self.where, self._closed, self._opening = without_password(address), False, Lock()
        with self._refusals():
            self._address = limited(address)
            self._open_pool()
            try:
                self._patience = self._limit()
                with self._transaction(self._pool.new(LONGEST), LONGEST) as session:
                    self._migrate(session, make)
                self._pool.open()
            except BaseException:
                self.close()
                raise
        _all.add(self)

    def forked(self) -> None:
        """In a child process: what comes next opens connections of its own."""
        self._pool.leave_to_parent()
        self._opening, self._heard = Lock(), Condition()

    def _limit(self) -> float:
        """Seconds that a statement may take."""
        with self._pool.new(FIRST) as connection:
            with Pipeline(connection) as pipeline:
                [(seconds,)] = pipeline.send(LIMIT).rows()
        return float(seconds) or LONGEST

    def _open_pool(self) -> None:
        """Have connections of this process, and hear of what is appended."""
        self._heard, self._marks = Condition(), 0
        self._pool, self._process = Connections(self._address), os.getpid()
        Thread(
            target=self._listen, args=(self._pool,), name="continuarm-listener", daemon=True
        ).start()

    def _own_pool(self) -> Connections:
        """The connections of this process; those that a fork has left are its parent's."""
        if self._process != os.getpid():
            with self._opening:
                if self._process != os.getpid():
                    self._open_pool()
                    self._pool.open()
        return self._pool

    @staticmethod
    def clock(session: Session) -> Callable[[], float]:
        """That of the database."""
        rows = session.send("SELECT extract(epoch FROM clock_timestamp())::float8")
        return lambda: float(rows()[0][0])

    @staticmethod
    def listed(strings: list[str]) -> str:
        """Strings as one parameter."""
        return json.dumps(strings)

    def _migrate(self, session: Session, make: bool) -> None:
        if session.run("SELECT to_regclass('continuarm')") != [(None,)]:
            if self._versions(session) == [(schema.VERSION,)]:
                return
        elif not make:
            raise schema.missing(self.where)
        session.run("SELECT pg_advisory_xact_lock(?)", ONE_AT_A_TIME)
        session.run("CREATE TABLE IF NOT EXISTS continuarm (version BIGINT NOT NULL)")
        rows = self._versions(session)
        for statement in schema.statements(rows[0][0] if rows else 0, self.where, WORDS):
            session.run(statement)
        session.run("DELETE FROM continuarm")
        session.run("INSERT INTO continuarm VALUES (?)", schema.VERSION)

    def _versions(self, session: Session) -> list[Row]:
        try:
            return session.run("SELECT version FROM continuarm")
        except psycopg.errors.UndefinedColumn:
            raise StoreError(
                f"a store must have tables of its own, but {self.where}: relation "
                '"continuarm" is another\'s'
            ) from None

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """What psycopg raises, in words of ours.

        A table that is missing, or a right, may be there again in a moment: a restore does that.
        """
        if self._closed:
            raise StoreError(f"a store must be open, but {self.where} was closed")
        try:
            yield
        except psycopg.errors.DuplicateTable as error:
            raise StoreError(
                f"a store must have tables of its own, but {self.where}: {_in_one_line(error)}"
            ) from error
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            raise StoreError(
                f"a store must take what it is given, but {self.where}: {_in_one_line(error)}"
            ) from error
        except (psycopg.Error, PoolTimeout) as error:
            raise UnavailableError(
                f"a store must answer, but {self.where}: {_in_one_line(error)}"
            ) from error

    @contextmanager
    def _transaction(
        self, connecting: AbstractContextManager[Connection], patience: float | None
    ) -> Iterator[Session]:
        """A transaction, which has happened at the end, or nothing of it has."""
        with self._refusals(), connecting as connection:
            with Pipeline(connection) as pipeline:
                pipeline.send("BEGIN")
                if patience is not None:
                    pipeline.send(LONG_LIMITS, 3 * [f"{patience}s"])
                yield _Session(pipeline)
                ended = pipeline.send("COMMIT")
            if ended.result is None or ended.result.command_status != b"COMMIT":
                raise UnavailableError(
                    f"a store must commit what it did, but {self.where} did not"
                )

    def writing(self, patience: float | None = None) -> AbstractContextManager[Session]:
        """A transaction; what takes long has limits of its own, in seconds."""
        return self._transaction(self._connection(patience), patience)

    writing_now = writing

    @contextmanager
    def reading(self, patience: float | None = None) -> Iterator[Session]:
        """Statements that read."""
        if patience is not None:
            with self.writing(patience) as session:
                yield session
            return
        with self._refusals(), self._connection(None) as connection:
            with Pipeline(connection) as pipeline:
                yield _Session(pipeline)

    @contextmanager
    def _connection(self, patience: float | None) -> Iterator[Connection]:
        within = self._patience if patience is None else patience
        with self._own_pool().one(within, self._patience) as connection:
            yield connection

    def appended(self, session: Session) -> None:
        """Tell those who listen, when the transaction ends."""
        session.send("SELECT pg_notify('continuarm', '')")

    def glance(self) -> object:
        """It is far."""
        return None

    def mark(self) -> int:
        """Another one when something was heard."""
        self._own_pool()
        return self._marks

    def sleep(self, mark: int, seconds: float) -> None:
        """Wait until something is heard, or a while, because one may have heard nothing."""
        with self._heard:
            self._heard.wait_for(lambda: self._marks != mark, min(seconds, LOOK))

    def defects(self) -> list[str]:
        """It says so when what is damaged is read."""
        return []

    def scrub(self) -> None:
        """Write the tables anew; who reads or writes waits meanwhile."""
        with self._refusals(), self._own_pool().new(LONGEST) as connection:
            for limit in ("lock_timeout", "statement_timeout"):
                connection.execute(f"SET {limit} = '{LONGEST}s'".encode())
            for table in ("events", "snapshots"):
                connection.execute(f"VACUUM FULL {table}".encode())

    def _listen(self, pool: Connections) -> None:
        """Hear of what is appended; begin again when the connection is lost."""
        task = Task("listener")
        while not pool.is_closed.wait(task.pause):
            with task.surviving():
                self._hear(pool, task)

    def _hear(self, pool: Connections, task: Task) -> None:
        """Hear of what is appended until the connection is lost, or let go."""
        try:
            with pool.new() as connection:
                with pool.cutting(connection, FIRST):
                    connection.execute(b"LISTEN continuarm")
                task.went_well()
                self._wake()  # something may have been missed
                while not pool.is_closed.wait(REST):
                    for _ in connection.notifies(timeout=HEARING, stop_after=1):
                        self._wake()
        except psycopg.Error:
            if not pool.is_closed.is_set():
                raise

    def _wake(self) -> None:
        with self._heard:
            self._marks += 1
            self._heard.notify_all()

    def close(self) -> None:
        """Let go of all connections."""
        self._closed = True
        if self._process == os.getpid():
            self._pool.close()
        self._wake()


def _in_one_line(error: Exception) -> str:
    lines = str(error).partition("\nLINE ")[0].splitlines()
    found = [words for line in lines if (words := " ".join(line.split()))]
    return "; ".join(found).replace(":; ", ": ")


_all: WeakSet[PostgresqlDatabase] = WeakSet()


def _in_child() -> None:
    for database in list(_all):
        database.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
