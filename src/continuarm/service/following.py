"""Following: one thread of a process folds what is appended to any of its experiments."""

import time
from threading import Event, Lock, Thread
from typing import NamedTuple, Protocol

from continuarm.background import Task
from continuarm.store.protocol import Store

__all__ = ["Follower"]

LOOK = 0.5  # seconds after which it looks, whatever it was told
REST = 0.005  # seconds between two looks
NAME = "follower"


class Followed(Protocol):
    """What follows a ledger."""

    name: str

    @property
    def is_current(self) -> bool:
        """Whether it knows by itself how far its ledger goes."""

    def follow(self, head: int, at: float) -> None:
        """Fold what was appended up to a head, which was known at a time."""


class _Following(NamedTuple):
    """An experiment, and how it fares: one that fails holds up no other."""

    one: Followed
    task: Task


class Follower:
    """Lets experiments follow their ledgers; it may be given more of them at any time."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock, self._stop = store, Lock(), Event()
        self._followed: dict[str, _Following] = {}
        self._heads: dict[str, int] = {}
        self._thread: Thread | None = None

    def add(self, one: Followed) -> None:
        """Have an experiment follow its ledger."""
        with self._lock:
            self._followed[one.name] = _Following(one, Task(NAME, one.name))
            if self._thread is None:
                self._thread = Thread(target=self._run, name="follow", daemon=True)
                self._thread.start()

    def remove(self, one: Followed) -> None:
        """Let an experiment follow no more."""
        with self._lock:
            self._followed.pop(one.name, None)

    def close(self) -> None:
        """Follow nothing more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        task = Task(NAME)
        while not self._stop.wait(max(REST, task.pause)):
            with task.surviving():
                self._look()

    def _look(self) -> None:
        """Wait until something was appended, and have it folded."""
        began = time.monotonic()
        if not self._not_current():
            return
        self._heads = self._store.wait_for_any(self._heads, LOOK)
        for one, task in self._not_current():
            with task.surviving():
                one.follow(self._heads.get(one.name, 0), began)

    def _not_current(self) -> list[_Following]:
        with self._lock:
            followed = list(self._followed.values())
        return [found for found in followed if found.task.is_due and not found.one.is_current]
