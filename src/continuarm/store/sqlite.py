"""SqliteDatabase: a store in one file, which any number of processes of one machine may share.

A transaction that writes holds the file's one lock from its beginning on, so that positions are
given and become visible in one order. It is on the disk when it ends (WAL, synchronous=FULL).
"""

import json
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, local
from typing import Any

from continuarm.errors import StoreError, UnavailableError
from continuarm.store import schema
from continuarm.store.protocol import TurnTakenError
from continuarm.store.sql import Row, Rows, Session

__all__ = ["SqliteDatabase"]

PATIENCE = 10.0  # seconds that a writer waits for the others
TRY, SOON = 0.001, 0.0001  # seconds between two tries, at most, and at first
PAGE = 4096  # bytes
CACHE, LOGGED = 16 * 2**20, 16 * 2**20  # bytes of pages kept, and of log before it is written back
LOOK = 0.002  # seconds between two looks whether something was appended
READ, WRITE = "BEGIN", "BEGIN IMMEDIATE"
WORDS = {
    "identity": "INTEGER PRIMARY KEY",
    "float": "REAL",
    "bytes": "BLOB",
    "clustered": "WITHOUT ROWID",
}


class _Session:
    """A transaction of one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, statement: str, *given: Any) -> list[Row]:
        return self._connection.execute(statement, given).fetchall()

    def send(self, statement: str, *given: Any) -> Rows:
        rows = self.run(statement, *given)
        return lambda: rows

    def run_many(self, statement: str, given: Iterable[Row]) -> None:
        self._connection.executemany(statement, given)


class _Connection(sqlite3.Connection):
    """A connection that one thread uses at a time; to close it meanwhile would end the process."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.used = Lock()

    def close_unless_used(self) -> None:
        if self.used.acquire(blocking=False):
            try:
                self.close()
            finally:
                self.used.release()


@contextmanager
def _ended(connection: sqlite3.Connection) -> Iterator[None]:
    """What is done in here is on the disk at the end, or nothing of it is done."""
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _begin_now(connection: sqlite3.Connection) -> None:
    """Begin a transaction that writes, if nobody else writes."""
    try:
        connection.execute(WRITE)
    except sqlite3.OperationalError as error:
        if _is_locked(error):
            raise TurnTakenError("one writes at a time to a store") from None
        raise


def _is_locked(error: sqlite3.OperationalError) -> bool:
    """Whether another one writes."""
    return "locked" in str(error)


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
        self.path = Path(path)
        self._mine = local()
        self._open: list[_Connection] = []
        self._opening, self._closed = Lock(), False
        self._spare: dict[int, list[_Connection]] = {}  # for `writing_now`, by process
        if not self.path.parent.is_dir():
            raise StoreError(f"the folder of a store must be there, but {self.path.parent} is not")
        self._inode: int | None = None
        if not make and not (self.path.exists() and self.path.stat().st_size):
            raise schema.missing(str(self.path))
        try:
            self._migrate(make)
            self._inode = self.path.stat().st_ino
        except BaseException:
            self.close()
            raise

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
                if session.run("PRAGMA user_version") == [(schema.VERSION,)]:
                    return
        with self.writing() as session:
            [(found,)] = session.run("PRAGMA user_version")
            if found == 0 and session.run("SELECT 1 FROM sqlite_master LIMIT 1"):
                raise StoreError(f"a store must be a file of its own, but {self.path} is another")
            if found == 0 and not make:
                raise schema.missing(str(self.path))
            for statement in schema.statements(found, str(self.path), WORDS):
                session.run(statement)
            session.run(f"PRAGMA user_version = {schema.VERSION}")

    def _connect(self, patience: float) -> _Connection:
        """A connection for any thread, which waits so many seconds for others."""
        if self._closed:
            raise StoreError(f"a store must be open, but {self.path} was closed")
        connection = _Connection(
            self.path, patience, isolation_level=None, check_same_thread=False
        )
        try:
            if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                connection.execute("PRAGMA journal_mode = WAL")  # nobody waits for this lock
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA cache_size = -{CACHE // 1024}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {LOGGED // PAGE}")
        except BaseException:  # its log may not be there, and the next try needs its place
            connection.close()
            raise
        with self._opening:
            self._open.append(connection)
        return connection

    @contextmanager
    def _using(self, connection: _Connection) -> Iterator[_Connection]:
        """A connection that nobody closes meanwhile; of a store that was closed, it is then."""
        mine = connection.used.acquire(blocking=False)  # else SQLite refuses, as from inside
        try:
            yield connection
        finally:
            if mine:
                connection.used.release()
                if self._closed:
                    connection.close_unless_used()

    def _connection(self) -> _Connection:
        """This thread's connection; one made before a fork is not used after it."""
        if self._closed or getattr(self._mine, "process", None) != os.getpid():
            self._mine.connection, self._mine.process = self._connect(PATIENCE), os.getpid()
            self._mine.patient = True
        found: _Connection = self._mine.connection
        return found

    def _refuse_if_gone(self) -> None:
        """A file that was deleted takes what is written to it along."""
        if self._inode is None:  # it is being made
            return
        try:
            stays = self.path.stat().st_ino == self._inode
        except OSError:  # nor is its folder, or the disk
            stays = False
        if not stays:
            raise UnavailableError(f"the file of a store must stay, but {self.path} is gone")

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """What SQLite raises, in words of ours."""
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.InterfaceError) as error:
            raise UnavailableError(f"a store must answer, but {self.path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise StoreError(f"a store must be readable, but {self.path}: {error}") from error

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Session]:
        with self._refusals():
            self._refuse_if_gone()
            with self._using(self._connection()) as connection:
                self._be_patient(connection, begin == READ)
                if begin == WRITE:
                    self._wait_for_turn(connection)
                else:
                    connection.execute(begin)
                with _ended(connection):
                    yield _Session(connection)

    @contextmanager
    def writing_now(self) -> Iterator[Session]:
        """A transaction of a connection of its own, if nobody else writes."""
        with self._refusals(), self._spared() as connection:
            _begin_now(connection)
            with _ended(connection):
                yield _Session(connection)

    @contextmanager
    def _spared(self) -> Iterator[_Connection]:
        """A connection that waits for nobody, and that no other thread uses meanwhile."""
        self._refuse_if_gone()
        spare = self._spare.setdefault(os.getpid(), [])
        connection = spare.pop() if spare and not self._closed else self._connect(0.0)
        try:
            with self._using(connection):
                yield connection
        finally:
            spare.append(connection)

    def glance(self) -> object:
        """Another one when another connection has written than the one that `writing_now` has."""
        with self._refusals(), self._spared() as connection:
            return connection, *connection.execute("PRAGMA data_version").fetchone()

    def _be_patient(self, connection: sqlite3.Connection, patient: bool) -> None:
        """Whether SQLite itself waits for others."""
        if self._mine.patient != patient:
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * PATIENCE) if patient else 0}")
            self._mine.patient = patient

    @staticmethod
    def _wait_for_turn(connection: sqlite3.Connection) -> None:
        """Begin a transaction that writes, and wait for others, so long at most.

        SQLite itself would wait a tenth of a second between two tries, and hardly ever find the
        moment in which a busy writer lets go.
        """
        until, pause = time.monotonic() + PATIENCE, SOON
        while True:
            try:
                connection.execute(WRITE)
                return
            except sqlite3.OperationalError as error:
                if not _is_locked(error) or time.monotonic() > until:
                    raise
            time.sleep(random.uniform(0.5, 1.0) * pause)
            pause = min(2.0 * pause, TRY)

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
        with self._refusals(), self._using(self._connection()) as connection:
            [mark] = connection.execute("PRAGMA data_version").fetchone()
        return int(mark)

    def sleep(self, mark: int, seconds: float) -> None:
        """Look from time to time."""
        until = time.monotonic() + seconds
        while self.mark() == mark and (left := until - time.monotonic()) > 0.0:
            time.sleep(min(LOOK, left))

    def scrub(self) -> None:
        """Write the file anew, and cut the log of writes that holds what was in it."""
        until = time.monotonic() + PATIENCE
        with self._refusals(), self._using(self._connection()) as connection:
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
        with self._opening:
            self._closed, connections = True, self._open
            self._open = []
        for connection in connections:
            connection.close_unless_used()
