"""Helpers: the threads of a process that its experiments share."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from continuarm.service.following import Follower
from continuarm.service.refusals import ending
from continuarm.store.protocol import Store

__all__ = ["Helpers", "in_thread"]

WRITERS = 8  # as many as a store in a database has connections
DECIDERS = 2  # slow decisions of several experiments take turns


class Helpers:
    """The threads of a process that its experiments share.

    follower : folds what is appended.
    writers : wait for the store.
    ender : ends what the event loop has begun. Writers may all be waiting for that end.
    learner : learns logs.
    deciders : make decisions that take long.
    """

    def __init__(self, store: Store) -> None:
        self.follower, self.writers = Follower(store), ThreadPoolExecutor(WRITERS, "write")
        self.ender = ThreadPoolExecutor(1, "end")  # one writes at a time to a store that is near
        self.learner = ThreadPoolExecutor(1, "learn")
        self.deciders = ThreadPoolExecutor(DECIDERS, "decide")

    def close(self) -> None:
        """Let what was begun be done, and no more."""
        self.deciders.shutdown()
        self.writers.shutdown()
        self.ender.shutdown()
        self.learner.shutdown(wait=False, cancel_futures=True)
        self.follower.close()


async def in_thread(threads: ThreadPoolExecutor, work: Any, *given: Any) -> Any:
    """What some work answers that a thread does, while the event loop goes on."""
    try:
        begun = threads.submit(work, *given)
    except RuntimeError as error:  # they were told to end
        raise ending() from error
    return await asyncio.wrap_future(begun)
