"""The log: lines that a thread writes, so that nobody waits for who reads them."""

import logging
import os
import sys
import time
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import msgspec

from continuarm import background

__all__ = ["LOGGING", "Log", "standard_error"]

MOST = 4 * 2**20  # characters that wait to be written
PATIENCE, LOOK = 1.0, 0.01  # seconds that the end waits for what is not written yet


class Log:
    """Standard error, written to by a thread; what it cannot take is dropped and counted.

    A pipe that nobody reads is full at some time, and then a write never ends.
    """

    def __init__(self) -> None:
        self.dropped = 0  # lines
        self._texts: SimpleQueue[str] = SimpleQueue()
        self._given = self._written = 0  # characters
        self._lock = Lock()
        self._thread: Thread | None = None

    def __call__(self, text: str) -> None:
        """Have lines written; nobody is waited for."""
        with self._lock:
            if self._given - self._written + len(text) > MOST:
                self.dropped += text.count("\n")
                return
            self._given += len(text)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="log", daemon=True)
                self._thread.start()
        self._texts.put(text)

    def flush(self) -> None:
        """Wait until all is written, but not long."""
        until = time.monotonic() + PATIENCE
        while self._written < self._given and time.monotonic() < until:
            time.sleep(LOOK)

    def _run(self) -> None:
        while True:
            text = self._texts.get()
            try:
                _write(text.encode())
            except (OSError, ValueError):  # nobody reads any more
                self.dropped += text.count("\n")
            self._written += len(text)


def _write(content: bytes) -> None:
    """Write it past Python's own buffer, on whose lock others would wait."""
    number = sys.stderr.fileno()
    while content:
        content = content[os.write(number, content) :]


standard_error = Log()


class Handler(logging.Handler):
    """What the server says of itself, as lines of JSON."""

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        if record.name == background.LOG.name:  # the application says it by itself
            return
        said = {"time": round(record.created, 3), "level": record.levelname.lower()}
        line = msgspec.json.encode(said | {"message": self.format(record)})
        standard_error(line.decode() + "\n")


HANDLED = {"handlers": ["lines"], "level": "WARNING"}
#: for `logging.config.dictConfig`
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"lines": {"()": f"{__name__}.Handler"}},
    "loggers": {name: HANDLED for name in ("uvicorn", "continuarm")},
}
