"""Connections of this process to one file of SQLite, its log included.

Each is used by one thread at a time. Two more are never used but to save a log that somebody has
deleted (`sqlite_log`). All are closed before a fork (`sqlite_forks`), and opened anew afterwards.
"""

import os
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import stat
from pathlib import Path
from threading import Lock, get_ident, local
from typing import Any

from continuarm.errors import StoreError, UnavailableError
from continuarm.store import sqlite_forks, sqlite_log
from continuarm.store.immortal import keep_for_ever, let_go
from continuarm.store.sqlite_log import Files, files_of

__all__ = ["PATIENCE", "TRY", "Connection", "Connections", "is_locked", "wait_for_turn"]

PATIENCE = 10.0  # seconds that a writer waits for the others
TRY, SOON = 0.001, 0.0001  # seconds between two tries, at most, and at first
PAGE = 4096  # bytes
CACHE, LOGGED = 16 * 2**20, 16 * 2**20  # bytes of pages kept, and of log before it is written back
WRITE = "BEGIN IMMEDIATE"


class Connection(sqlite3.Connection):
    """A connection that only `close` closes: no collection of garbage, and no end of a process.

    retired : it is closed, or will be when its user is done.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self.used, self.user = Lock(), 0
        self.process, self.file = os.getpid(), files_of(path).main
        self.patient, self.retired = True, False
        sqlite_forks.unclosed.add(self)  # before it is open: C may fork at any moment
        try:
            super().__init__(path, patience, isolation_level=None, check_same_thread=False)
        except BaseException:
            sqlite_forks.unclosed.discard(self)
            raise
        self.file = self.file or files_of(path).main
        keep_for_ever(self)
        self.is_open = True

    def close(self) -> None:
        """Close it, if this process has opened it."""
        self.retired = True
        if self.is_open and self.process == os.getpid():
            super().close()
            self.is_open = False
            sqlite_forks.unclosed.discard(self)
            let_go(self)

    def close_unless_used(self) -> None:
        """Close it, or let its user do so; to close it meanwhile would end the process."""
        self.retired = True
        if self.used.acquire(blocking=False):
            try:
                self.close()
            finally:
                self.used.release()

    def refuse_if_carried(self) -> None:
        """What was begun before a fork ends in the parent alone."""
        if self.process != os.getpid():
            raise StoreError(
                "a transaction must end in the process that began it, but this is a child of it"
            )


def is_locked(error: sqlite3.OperationalError) -> bool:
    """Whether another one writes."""
    return "locked" in str(error)


def wait_for_turn(connection: sqlite3.Connection) -> None:
    """Begin a transaction that writes, and wait for others, so long at most.

    SQLite itself would wait a tenth of a second between two tries, and hardly ever find the moment
    in which a busy writer lets go.
    """
    until, pause = time.monotonic() + PATIENCE, SOON
    while True:
        try:
            connection.execute(WRITE)
            return
        except sqlite3.OperationalError as error:
            if not is_locked(error) or time.monotonic() > until:
                raise
        time.sleep(random.uniform(0.5, 1.0) * pause)
        pause = min(2.0 * pause, TRY)


class Connections:
    """The connections of this process to one file."""

    def __init__(self, path: Path) -> None:
        self.path, self.is_closed = path, False
        self.file: tuple[int, int] | None = None  # the one that all of them are to
        self.opening = Lock()
        self.have_none()
        sqlite_forks.keep(self)

    def have_none(self) -> None:
        """All are closed, and nobody opens one."""
        self.opened, self._spare, self._mine = list[Connection](), list[Connection](), local()
        self._savers: tuple[Connection, Connection] | None = None
        self._files, self._watched = Files(None, None, None), list[Any]()
        self._copied: str | None = None

    def forked(self) -> None:
        """In a child process: use nothing of the parent's."""
        self.opening = Lock()
        self.have_none()

    @contextmanager
    def of_this_thread(self) -> Iterator[Connection]:
        """This thread's connection."""
        while True:
            sqlite_forks.wait()
            found: Connection | None = getattr(self._mine, "connection", None)
            if found is None or found.retired:
                found = self._mine.connection = self._open(PATIENCE)
            if found.user == get_ident():  # from inside: SQLite refuses
                yield found
                return
            try:
                with found.used:
                    if found.retired:
                        continue
                    found.user = get_ident()
                    try:
                        yield found
                    finally:
                        found.user = 0
                return
            finally:
                self._close_if_retired(found)

    @contextmanager
    def spared(self) -> Iterator[Connection]:
        """One that waits for nobody, and that no other thread uses meanwhile."""
        while True:
            sqlite_forks.wait()
            spare = self._spare
            try:
                found = spare.pop()
            except IndexError:
                found = self._open(0.0)
            try:
                with found.used:
                    if not found.retired:
                        yield found
                        return
            finally:
                if not found.retired:
                    spare.append(found)
                self._close_if_retired(found)

    def _close_if_retired(self, connection: Connection) -> None:
        if self.is_closed or connection.retired:
            connection.close_unless_used()

    def _open(self, patience: float) -> Connection:
        """One more connection."""
        with self.opening:
            if self.is_closed:
                raise StoreError(f"a store must be open, but {self.path} was closed")
            self._refuse_if_carried()
            self.opened = [one for one in self.opened if one.is_open]
            self._refuse_if_main_is_gone()
            if self._savers is None:
                self._watch(self._fresh())
            self._mend()
            return self._connect(patience)

    def _refuse_if_carried(self) -> None:
        """SQLite knows a file by its inode, whatever its name, and would believe to hold locks."""
        if files_of(self.path).main in sqlite_forks.carried:
            raise StoreError(
                "a process must not be forked in the middle of a transaction, nor by C while a "
                f"store is open, but this one was, and cannot use {self.path}: start another "
                "process, or open the store after the fork alone"
            )

    def _connect(self, patience: float) -> Connection:
        connection = Connection(self.path, patience)
        try:
            if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                connection.execute("PRAGMA journal_mode = WAL")  # nobody waits for this lock
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA cache_size = -{CACHE // 1024}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {LOGGED // PAGE}")
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # opens the log
        except BaseException:  # its log may not be there, and the next try needs its place
            connection.close()
            raise
        self.opened.append(connection)
        return connection

    def _watch(self, savers: tuple[Connection, Connection]) -> None:
        """From now on the files that these have opened must stay."""
        found = files_of(self.path)
        self._copied = sqlite_log.last_copied(savers[0])
        self.file = self.file or found.main
        if None in found or found.main != self.file:
            raise sqlite_log.gone(self.path)
        self._files, self._savers = found, savers
        self._watched = list(zip(sqlite_log.names(self.path), found, strict=True))

    def is_whole(self) -> bool:
        """Whether the files are those that were opened."""
        if self._savers is None:
            return True
        try:
            for name, file in self._watched:
                found = stat(name)
                if found.st_ino != file[1] or found.st_dev != file[0]:
                    return False
        except OSError:
            return False
        return True

    def _refuse_if_main_is_gone(self) -> None:
        """A file that was deleted takes what is written to it along."""
        if self.file is not None and files_of(self.path).main != self.file:
            raise UnavailableError(f"the file of a store must stay, but {self.path} is gone")

    def mend(self) -> None:
        """Save the log if somebody has deleted it, and have a new one; refused if that is unsafe.

        What was committed before is durable afterwards.
        """
        sqlite_forks.wait()
        with self.opening:
            self._mend()

    def _mend(self) -> None:
        if self.is_whole():  # another thread was faster
            return
        self._refuse_if_main_is_gone()
        if self._savers is None:
            raise sqlite_log.gone(self.path)
        if sqlite_log.is_unwritten(self.path):
            self._save_log(*self._savers)
        else:
            self._join()

    def _save_log(self, writer: Connection, copier: Connection) -> None:
        """Copy the log while nobody writes, and let all begin a new one."""
        wait_for_turn(writer)
        try:
            sqlite_log.copy_log(self.path, self._files, copier)
            fresh = self._fresh()
        finally:
            writer.execute("ROLLBACK")
        with self._closed_unless_used(fresh):
            sqlite_log.restart_log(self.path, fresh[0])
            with suppress(sqlite3.OperationalError):  # others then refuse, and nothing is lost
                sqlite_log.note_copied(fresh[0], self._files)

    def _join(self) -> None:
        """Others may have saved the log."""
        try:
            fresh = self._fresh()
        except sqlite3.DatabaseError:  # of another one's log
            raise sqlite_log.gone(self.path) from None
        with self._closed_unless_used(fresh):
            noted = sqlite_log.last_copied(fresh[0])
            if not sqlite_log.is_copied(noted, self._copied, self._files):
                raise sqlite_log.gone(self.path)

    def _fresh(self) -> tuple[Connection, Connection]:
        return self._connect(PATIENCE), self._connect(PATIENCE)

    @contextmanager
    def _closed_unless_used(self, fresh: tuple[Connection, Connection]) -> Iterator[None]:
        """New connections take the place of all others at the end.

        They are open before the others are closed: the last one to close copies its log.
        """
        before = [one for one in self.opened if one not in fresh]
        try:
            yield
            self._watch(fresh)
        except BaseException:
            for connection in fresh:
                connection.close_unless_used()
            raise
        for connection in before:
            connection.close_unless_used()

    def close(self) -> None:
        """Close all; who uses one at this moment closes it."""
        sqlite_forks.wait()
        with self.opening:
            self.is_closed = True
            is_safe = self._savers is None or self._is_safe_to_close()
            for connection in self.opened:
                if is_safe:
                    connection.close_unless_used()
                else:
                    connection.retired = True
            self._savers = None

    def _is_safe_to_close(self) -> bool:
        """The last to close copies its log to the file; it must not be one that was replaced."""
        with suppress(StoreError, sqlite3.Error):
            self._mend()
        return self.is_whole() or sqlite_log.is_unwritten(self.path)
