"""A file of SQLite has one name: its log (`-wal`) is found by name, and its locks by inode.

Who opens it by another name finds no log, believes to be alone, and writes over what the log has.
"""

import os
import re
from pathlib import Path
from stat import S_ISREG

from continuarm.errors import StoreError

__all__ = ["refuse_other_names"]

MOUNTS = Path("/proc/self/mountinfo")  # where the system has one


def refuse_other_names(path: Path) -> None:
    """Refuse a file with a hard link, and one that is mounted without its folder."""
    try:
        found = os.stat(path)
    except OSError:  # SQLite says what is wrong with it
        return
    links = found.st_nlink
    if S_ISREG(found.st_mode) and links > 1:
        raise StoreError(
            f"the file of a store must have one name, but {path} has {links}: its log belongs to "
            "a name; remove the others, or copy the file by `sqlite3 ... .backup`"
        )
    if os.fspath(path) in mounted():
        raise StoreError(
            f"the folder of a store must be mounted, but of {path} it is the file alone: its log "
            "lies beside it, and would stay behind"
        )


def mounted() -> set[str]:
    """All that is mounted, as this process sees it."""
    try:
        lines = MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return set()
    return {_unescaped(fields[4]) for fields in map(str.split, lines) if len(fields) > 4}


def _unescaped(path: str) -> str:
    """Spaces and the like are written as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)
