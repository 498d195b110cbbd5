"""Workers: processes that serve one address, each through a socket of its own.

Linux hands every new connection to one of them by chance. Of a socket that they share, whoever
wakes first takes all connections that wait: of 32, one of two workers often got 25 or more.
"""

import multiprocessing
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

from continuarm.background import Task

__all__ = ["ARE_EVEN", "Workers"]

ARE_EVEN = sys.platform == "linux"  # whether connections are shared out to sockets of one address
LOOK = 0.2  # seconds between two looks for a signal
PATIENCE = 30.0  # seconds for a worker to finish what it has begun


class Workers:
    """A function in so many processes; one that ends is started again.

    work : with what is given to it, both of which other processes can be sent.
    """

    def __init__(self, count: int, work: Callable[..., None], *given: Any) -> None:
        self._work, self._given, self._is_over = work, given, False
        self._context = multiprocessing.get_context("spawn")
        self._tasks = [Task("worker", str(number)) for number in range(1, count + 1)]
        self._processes: list[BaseProcess | None] = [None] * count

    def run(self) -> None:
        """Go on until a signal says to stop; what was begun is finished."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        while not self._is_over:
            for place, task in enumerate(self._tasks):
                if task.is_due:
                    with task.surviving():
                        self._keep_running(place)
            running = [process.sentinel for process in self._processes if process is not None]
            if running:
                connection.wait(running, LOOK)
            else:
                time.sleep(LOOK)
        self._end()

    def _keep_running(self, place: int) -> None:
        process = self._processes[place]
        if process is not None and not process.is_alive():
            self._processes[place] = None
            raise RuntimeError(f"a worker must go on, but ended with {process.exitcode}")
        if process is None:
            started = self._context.Process(target=self._work, args=self._given)
            started.start()
            self._processes[place] = started

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_over = True

    def _end(self) -> None:
        running = [process for process in self._processes if process is not None]
        for process in running:
            process.terminate()
        until = time.monotonic() + PATIENCE
        for process in running:
            process.join(max(until - time.monotonic(), 0.0))
            process.kill()
