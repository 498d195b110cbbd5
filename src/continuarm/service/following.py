"""Following: one thread of a process folds what is appended to any of its experiments."""

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread

from continuarm.errors import StoreError
from continuarm.store.protocol import Store

__all__ = ["Follower"]

LOOK = 0.5  # seconds after which it looks, whatever it was told
AGAIN = 0.2  # seconds before a store that does not answer is asked again
REST = 0.005  # seconds between two looks

Follow = Callable[[int, float], None]  # up to this head, which was known at this time


class Follower:
    """Lets experiments follow their ledgers; it may be given more of them at any time."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock, self._stop = store, Lock(), Event()
        self._follows: dict[str, Follow] = {}
        self._thread: Thread | None = None

    def add(self, name: str, follow: Follow) -> None:
        """Have an experiment followed; `follow` folds it, and is called whenever it was looked."""
        with self._lock:
            self._follows[name] = follow
            if self._thread is None:
                self._thread = Thread(target=self._run, name="follow", daemon=True)
                self._thread.start()

    def remove(self, name: str) -> None:
        """Follow an experiment no more."""
        with self._lock:
            self._follows.pop(name, None)

    def close(self) -> None:
        """Follow nothing more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        heads: dict[str, int] = {}
        while not self._stop.wait(REST):
            began = time.monotonic()
            try:
                heads = self._store.wait_for_any(heads, LOOK)
            except StoreError:  # it does not answer
                self._stop.wait(AGAIN)
                continue
            with self._lock:
                follows = list(self._follows.items())
            for name, follow in follows:
                with suppress(StoreError):  # nor that, or another version has taken over
                    follow(heads.get(name, 0), began)
