"""The log of a file of SQLite (`-wal`) and its index (`-shm`): whether they are still there.

What was committed lies in the log until it is copied to the file. Who deletes the log while
somebody has it open hides it from all who come later. Those who have it open can still read it.
So one of them copies it to the file, and all open a new log. That is certain only while nobody
has written to a new log, and while all agree on one index, in which lies the lock of writers.
"""

import os
import secrets
import sqlite3
import time
from pathlib import Path
from typing import NamedTuple

from continuarm.errors import UnavailableError

__all__ = [
    "Files",
    "copy_log",
    "files_of",
    "gone",
    "is_copied",
    "is_unwritten",
    "last_copied",
    "names",
    "note_copied",
    "restart_log",
]

SHORTLY = 2.0  # seconds that readers of the log are waited for
AGAIN = 0.005  # seconds between two tries
NOTED = "log copied"  # the setting that names the log that was copied last


class Files(NamedTuple):
    """Which files belong together; None: it is not there."""

    main: tuple[int, int] | None
    log: tuple[int, int] | None
    shared: tuple[int, int] | None


def files_of(path: Path) -> Files:
    """The files that are there now."""
    return Files(*map(_identity, names(path)))


def names(path: Path) -> list[str]:
    """What the files are called."""
    return [os.fspath(path) + ending for ending in ("", "-wal", "-shm")]


def _identity(name: str) -> tuple[int, int] | None:
    try:
        found = os.stat(name)
    except OSError:  # nor may its folder be there, or the disk
        return None
    return found.st_dev, found.st_ino


def is_unwritten(path: Path) -> bool:
    """Whether nobody has written to a new log."""
    try:
        return os.stat(f"{path}-wal").st_size == 0
    except OSError:
        return True


def copy_log(path: Path, known: Files, copier: sqlite3.Connection) -> None:
    """Copy a log that was deleted to the file; refused where that is not certain.

    copier : has the log open. Who calls this holds the lock of writers by another connection.
    """
    until = time.monotonic() + SHORTLY
    while True:
        found = files_of(path)
        if found.shared != known.shared or found.main != known.main or not is_unwritten(path):
            raise gone(path)
        _, logged, copied = copier.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if logged == copied:
            return
        if time.monotonic() > until:
            raise gone(path)
        time.sleep(AGAIN)


def restart_log(path: Path, fresh: sqlite3.Connection) -> None:
    """Let the next writer begin a new log, once nobody reads the one that was copied."""
    until = time.monotonic() + SHORTLY
    while fresh.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] != 0:
        if time.monotonic() > until:
            raise gone(path)
        time.sleep(AGAIN)


def gone(path: Path) -> UnavailableError:
    """The log cannot be saved while this goes on."""
    return UnavailableError(
        f"the files of a store must stay, but {path}-wal or {path}-shm was deleted or replaced: "
        "stop all that use it before you start any; the last one to stop saves what it can"
    )


def last_copied(connection: sqlite3.Connection) -> str | None:
    """Which log was copied last, as a text of its own."""
    try:
        rows = connection.execute(
            "SELECT value FROM continuarm_settings WHERE name = ?", (NOTED,)
        ).fetchall()
    except sqlite3.OperationalError:  # a store that is being made, or of an earlier version
        return None
    return str(rows[0][0]) if rows else None


def is_copied(noted: str | None, before: str | None, known: Files) -> bool:
    """Whether somebody has copied the log that we have open, since we have."""
    return noted is not None and noted != before and noted.startswith(f"{known.log} ")


def note_copied(connection: sqlite3.Connection, known: Files) -> str:
    """Tell others who have the same log open that it was copied."""
    text = f"{known.log} {secrets.token_hex(8)}"
    connection.execute(
        "INSERT INTO continuarm_settings (name, value) VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (NOTED, text),
    )
    return text
