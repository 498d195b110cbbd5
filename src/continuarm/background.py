"""Background: what a process does by itself survives whatever it meets, says so, and goes on."""

import asyncio
import logging
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from threading import Lock

__all__ = ["LOG", "Task", "counted", "every", "heard"]

LOG = logging.getLogger("continuarm.background")
SOON, LATE = 0.1, 2.0  # seconds until the next try, after one error and after many
SILENCE, LONGEST = 1.0, 3600.0  # seconds between two lines about a task: the first, and at most

_errors: Counter[str] = Counter()  # of this process, by task
_counting = Lock()


def counted() -> dict[str, int]:
    """The errors of this process, by the names of its tasks."""
    with _counting:
        return dict(_errors)


class Task:
    """Work that is tried again and again, as long as the process lives.

    name : of the kind of task, by which its errors are counted.
    about : which one it is, where there are several.
    pause : seconds to wait before the next try; 0: the last one went well.
    """

    def __init__(self, name: str, about: str = "") -> None:
        self.name, self.pause = name, 0.0
        self._title = f"{name} {about}".strip()
        self._due, self._said, self._silence = 0.0, -LONGEST, SILENCE
        with _counting:
            _errors[name] += 0  # who reads the metric knows that it is there

    @property
    def is_due(self) -> bool:
        """Whether the pause is over."""
        return time.monotonic() >= self._due

    @contextmanager
    def surviving(self) -> Iterator[None]:
        """Go on after whatever is raised in here."""
        try:
            yield
        except Exception as error:
            self._failed(error)
        else:
            self.went_well()

    def went_well(self) -> None:
        """The next error is a first one again."""
        self.pause = self._due = 0.0

    def _failed(self, error: Exception) -> None:
        now = time.monotonic()
        self.pause = min(max(2.0 * self.pause, SOON), LATE)
        self._due = now + self.pause
        with _counting:
            _errors[self.name] += 1
            count = _errors[self.name]
        silent = now - self._said
        if silent < self._silence:
            return
        rare = silent > 2.0 * self._silence + LATE
        self._silence = SILENCE if rare else min(2.0 * self._silence, LONGEST)
        self._said = now
        LOG.warning("%s goes on after %s (error %d)", self._title, _in_one_line(error), count)


def _in_one_line(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words} ({last.filename}, line {last.lineno})"


async def every(seconds: float, task: Task, work: Callable[[], Awaitable[None]]) -> None:
    """Do some work again and again, until this is cancelled."""
    while True:
        await asyncio.sleep(max(seconds, task.pause))
        with task.surviving():
            await work()


@contextmanager
def heard(say: Callable[[str], None]) -> Iterator[None]:
    """Have what this process warns of said by a function, which any thread may call.

    Where somebody else hears all warnings, as under `continuarm serve`, those of tasks alone are.
    """
    handler, log = _Handler(say), logging.getLogger("continuarm")
    if not all(isinstance(other, _Handler) for other in log.handlers):
        log = LOG
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


class _Handler(logging.Handler):
    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        self._say(self.format(record))
