"""Following: one thread of a process folds what is appended to any of its experiments."""

import time
import traceback
from threading import Event, Lock, Thread
from typing import Protocol

from continuarm.errors import StoreError
from continuarm.store.protocol import Store

__all__ = ["Follower"]

LOOK = 0.5  # seconds after which it looks, whatever it was told
AGAIN = 0.2  # seconds before a store that does not answer is asked again
REST = 0.005  # seconds between two looks


class Followed(Protocol):
    """What follows a ledger."""

    name: str

    @property
    def is_current(self) -> bool:
        """Whether it knows by itself how far its ledger goes."""

    def follow(self, head: int, at: float) -> None:
        """Fold what was appended up to a head, which was known at a time."""


class Follower:
    """Lets experiments follow their ledgers; it may be given more of them at any time."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock, self._stop = store, Lock(), Event()
        self._followed: dict[str, Followed] = {}
        self._thread: Thread | None = None

    def add(self, one: Followed) -> None:
        """Have an experiment follow its ledger."""
        with self._lock:
            self._followed[one.name] = one
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
        heads: dict[str, int] = {}
        while not self._stop.wait(REST):
            began = time.monotonic()
            if not self._not_current():
                continue
            try:
                heads = self._store.wait_for_any(heads, LOOK)
            except StoreError:  # it does not answer
                self._stop.wait(AGAIN)
                continue
            for one in self._not_current():
                self._follow(one, heads.get(one.name, 0), began)

    def _follow(self, one: Followed, head: int, at: float) -> None:
        try:
            one.follow(head, at)
        except StoreError:  # nor that, or another version has taken over
            pass
        except Exception:  # a defect of ours: it falls behind, and says so; others go on
            traceback.print_exc()
            self.remove(one)

    def _not_current(self) -> list[Followed]:
        with self._lock:
            followed = list(self._followed.values())
        return [one for one in followed if not one.is_current]
