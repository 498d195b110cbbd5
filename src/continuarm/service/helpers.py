"""Helpers: the threads of a process that its experiments share."""

from concurrent.futures import ThreadPoolExecutor

from continuarm.service.following import Follower
from continuarm.store.protocol import Store

__all__ = ["Helpers"]

WRITERS = 8  # as many as a store in a database has connections


class Helpers:
    """The threads of a process that its experiments share.

    follower : folds what is appended.
    writers : wait for the store.
    ender : ends what the event loop has begun. Writers may all be waiting for that end.
    learner : learns logs.
    """

    def __init__(self, store: Store) -> None:
        self.follower, self.writers = Follower(store), ThreadPoolExecutor(WRITERS, "write")
        self.ender = ThreadPoolExecutor(1, "end")  # one writes at a time to a store that is near
        self.learner = ThreadPoolExecutor(1, "learn")

    def close(self) -> None:
        """Let what was begun be done, and no more."""
        self.writers.shutdown()
        self.ender.shutdown()
        self.learner.shutdown(wait=False, cancel_futures=True)
        self.follower.close()
