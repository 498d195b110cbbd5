"""SqliteDatabase: a store in one file, which any number of processes of one machine may share.

A transaction that writes holds the file's one lock from its beginning on, so that positions are
given and become visible in one order. It is on the disk when it ends (WAL, synchronous=FULL).
"""

import json
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from continuarm.errors import StoreError, UnavailableError
from continuarm.store import schema
from continuarm.store.database import Row, Rows, Session
from continuarm.store.protocol import TurnTakenError
from continuarm.store.sqlite_connections import (
    PATIENCE,
    TRY,
    Connection,
    Connections,
    is_locked,
    wait_for_turn,
)
from continuarm.store.sqlite_names import refuse_other_names

__all__ = ["SqliteDatabase"]

LOOK = 0.002  # seconds between two looks whether something was appended
PRIVATE = 0o600
HEADING = "*** in database main ***"  # of what an integrity check finds
NO_TEXT = "Could not decode"  # how sqlite3 begins to say that a text is damaged
MALFORMED = "malformed"  # as SQLite says of a file that is damaged
READ, WRITE = "BEGIN", "BEGIN IMMEDIATE"
WORDS = {
    "identity": "INTEGER PRIMARY KEY",
    "float": "REAL",
    "bytes": "BLOB",
    "clustered": "WITHOUT ROWID",
}


class _Session:
    """A transaction of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(self, statement: str, *given: Any) -> list[Row]:
        self._connection.refuse_if_carried()
        return self._connection.execute(statement, given).fetchall()

    def send(self, statement: str, *given: Any) -> Rows:
        rows = self.run(statement, *given)
        return lambda: rows

    def run_many(self, statement: str, given: Iterable[Row]) -> None:
        self._connection.refuse_if_carried()
        self._connection.executemany(statement, given)


@contextmanager
def _ended(connection: Connection) -> Iterator[None]:
    """What is done in here is on the disk at the end, or nothing of it is done."""
    try:
        yield
        connection.refuse_if_carried()
        connection.execute("COMMIT")
    except BaseException:
        if connection.process == os.getpid() and connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _begin_reading(connection: Connection) -> None:
    connection.execute(READ)


def _begin_now(connection: Connection) -> None:
    """Begin a transaction that writes, if nobody else writes."""
    try:
        connection.execute(WRITE)
    except sqlite3.OperationalError as error:
        if is_locked(error):
            raise TurnTakenError("one writes at a time to a store") from None
        raise


class SqliteDatabase:
    """The tables in a file.

    make : whether one that is not there is made; else it is refused.
    """

    among = (
        "SELECT {columns} FROM json_each(?) AS listed "
        "CROSS JOIN events ON {column} = listed.value WHERE experiment = {number}"
    )  # in this order: else all events may be looked through
    locking, is_near = "", True

    def __init__(self, path: str | os.PathLike[str], *, make: bool = True) -> None:
        self.path = Path(os.path.realpath(path))  # beside which SQLite has its other files
        if not self.path.parent.is_dir():
            raise StoreError(f"the folder of a store must be there, but {self.path.parent} is not")
        if not make and not (self.path.exists() and self.path.stat().st_size):
            what = "is an empty file" if self.path.is_file() else "is none"
            raise schema.missing(str(self.path), what)
        refuse_other_names(self.path)
        self._make_private()
        self._connections = Connections(self.path)
        self._end = weakref.finalize(self, self._connections.close)
        try:
            self._migrate(make)
        except BaseException:
            self.close()
            raise

    def _make_private(self) -> None:
        """A new file is its owner's alone; SQLite gives the files beside it the same mode."""
        with suppress(OSError):  # one that is there is not touched; SQLite says what is wrong
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))

    @staticmethod
    def clock(session: Session) -> Callable[[], float]:
        """That of the machine, which all writers are on."""
        return time.time

    @staticmethod
    def listed(strings: list[str]) -> str:
        """Strings as one parameter."""
        return json.dumps(strings)

    def _migrate(self, make: bool) -> None:
        if self.path.exists():
            with self.reading() as session:
                if self._version(session, make) == schema.VERSION:
                    return
        with self.writing() as session:
            found = self._version(session, make)
            for statement in schema.statements(found, str(self.path), WORDS):
                session.run(statement)
            session.run(f"PRAGMA user_version = {schema.VERSION}")

    def _version(self, session: Session, make: bool) -> int:
        """That of the tables; 0: there are none yet. A file of others is refused."""
        [(found,)] = session.run("PRAGMA user_version")
        tables = [name for (name,) in session.run("SELECT name FROM sqlite_master")]
        if tables and (found == 0 or "experiments" not in tables):
            raise StoreError(
                f"a store must be a file of its own, but {self.path} has the table {tables[0]!r} "
                "of another"
            )
        if found == 0 and not make:
            raise schema.missing(str(self.path))
        return int(found)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """What SQLite raises, in words of ours."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # of a damaged text, or message
            raise self._refusal(error) from error

    def _refusal(self, error: Exception) -> StoreError:
        passes = isinstance(error, sqlite3.OperationalError | sqlite3.InterfaceError)
        passes = passes and not str(error).startswith(NO_TEXT)
        if passes or not self._connections.is_whole():
            return UnavailableError(f"a store must answer, but {self.path}: {error}")
        way = ": restore a backup" if MALFORMED in str(error) else ""
        return StoreError(f"a store must be readable, but {self.path}: {error}{way}")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Session]:
        with self._refusals(), self._begun(begin) as connection:
            with _ended(connection):
                yield _Session(connection)
            self._mend_if_gone()

    @contextmanager
    def _begun(self, begin: str) -> Iterator[Connection]:
        """This thread's connection in a transaction."""
        while True:
            with self._connections.of_this_thread() as connection:
                self._be_patient(connection, begin == READ)
                if self._is_begun(connection, wait_for_turn if begin == WRITE else _begin_reading):
                    yield connection
                    return

    def _is_begun(self, connection: Connection, begin: Callable[[Connection], None]) -> bool:
        """Begin a transaction; false: the log was gone, and there is a new one now."""
        try:
            begin(connection)
        except sqlite3.DatabaseError:
            if self._connections.is_whole():
                raise
        else:
            if self._connections.is_whole() and not connection.retired:
                return True
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        self._connections.mend()
        return False

    def _mend_if_gone(self) -> None:
        """What was done must not be acknowledged if it was done to files that are gone."""
        if not self._connections.is_whole():
            self._connections.mend()

    @contextmanager
    def writing_now(self) -> Iterator[Session]:
        """A transaction of a connection of its own, if nobody else writes."""
        with self._refusals(), self._begun_now() as connection:
            with _ended(connection):
                yield _Session(connection)
            self._mend_if_gone()

    @contextmanager
    def _begun_now(self) -> Iterator[Connection]:
        while True:
            with self._connections.spared() as connection:
                if self._is_begun(connection, _begin_now):
                    yield connection
                    return

    def glance(self) -> object:
        """Another one when another connection has written than the one that `writing_now` has."""
        with self._refusals(), self._connections.spared() as connection:
            return connection, *connection.execute("PRAGMA data_version").fetchone()

    @staticmethod
    def _be_patient(connection: Connection, patient: bool) -> None:
        """Whether SQLite itself waits for others."""
        if connection.patient != patient:
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * PATIENCE) if patient else 0}")
            connection.patient = patient

    @contextmanager
    def reading(self, patience: float | None = None) -> Iterator[Session]:
        """A transaction that reads; it waits for nobody."""
        with self._transaction(READ) as session:
            yield session

    @contextmanager
    def writing(self, patience: float | None = None) -> Iterator[Session]:
        """A transaction that writes."""
        with self._transaction(WRITE) as session:
            yield session

    def appended(self, session: Session) -> None:
        """Who waits looks from time to time."""

    def mark(self) -> int:
        """Another one when another connection has written."""
        with self._refusals(), self._connections.of_this_thread() as connection:
            [mark] = connection.execute("PRAGMA data_version").fetchone()
        return int(mark)

    def sleep(self, mark: int, seconds: float) -> None:
        """Look from time to time."""
        until = time.monotonic() + seconds
        while self.mark() == mark and (left := until - time.monotonic()) > 0.0:
            time.sleep(min(LOOK, left))

    def defects(self) -> list[str]:
        """See `Database`."""
        with self.reading() as session:
            found = [str(text) for (text,) in session.run("PRAGMA integrity_check")]
        lines = [line for text in found for line in text.splitlines() if line != HEADING]
        damaged = f"{self.path} is damaged, as the lines before say: restore a backup"
        return [] if lines == ["ok"] else [*lines, damaged]

    def scrub(self) -> None:
        """Write the file anew, and cut the log of writes that holds what was in it."""
        until = time.monotonic() + PATIENCE
        self._connections.mend()
        with self._refusals(), self._connections.of_this_thread() as connection:
            self._be_patient(connection, True)
            connection.execute("VACUUM")
            while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] != 0:
                if time.monotonic() > until:
                    raise UnavailableError(
                        f"nobody may read {self.path} for long while it is cleaned, but somebody "
                        "does: what was erased may still be in its log; try again"
                    )
                time.sleep(TRY)

    def close(self) -> None:
        """Let go of the file; who uses a connection at this moment closes it."""
        self._end()
