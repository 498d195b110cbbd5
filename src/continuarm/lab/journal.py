"""Journal: finished runs, one JSON object per line, written at once and read back."""

import fcntl
import hashlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from continuarm.errors import SettingsError

__all__ = ["Journal"]

Rows = list[dict[str, Any]]


class Journal:
    """The finished runs of a folder; without a folder, nothing is kept.

    A line carries a checksum; one that was cut off by a crash, or damaged since, is passed over.
    Two processes cannot write to one journal.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self.runs: dict[str, Rows] = {}
        self._file: Any = None
        if folder is None:
            return
        path = Path(folder) / "runs.jsonl"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise SettingsError(f"{path} must not be in use, but another run writes it") from None
        except OSError as error:
            raise SettingsError(f"the folder must be writable, but got {error}") from None
        self._read()

    def _read(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        for line in content.split(b"\n"):
            found = _read_line(line.rstrip(b"\r"))
            if found is not None:
                self.runs[found[0]] = found[1]
        if content and not content.endswith(b"\n"):
            self._file.write(b"\n")

    def write(self, key: str, rows: Rows) -> None:
        """Keep a finished run, on disk before this returns."""
        if self._file is not None:
            text = json.dumps({"key": key, "rows": rows}).encode()
            self._file.write(_checksum(text) + b" " + text + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()


def _checksum(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:16].encode()


def _read_line(line: bytes) -> tuple[str, Rows] | None:
    checksum, _, text = line.partition(b" ")
    if checksum != _checksum(text):
        return None
    try:
        entry = json.loads(text)
        key, rows = entry["key"], entry["rows"]
    except (KeyError, RecursionError, TypeError, ValueError):
        return None
    fits = isinstance(key, str) and isinstance(rows, list)
    return (key, rows) if fits and all(isinstance(row, dict) for row in rows) else None
