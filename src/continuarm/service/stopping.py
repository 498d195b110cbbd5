"""A signal that ends the process is heard by those who would go on for ever."""

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

from continuarm.background import Task

__all__ = ["end_well", "end_with", "hear"]

LOOK = 0.5  # seconds between two looks whether the parent is still there


def hear(stop: Callable[[], None]) -> None:
    """Call `stop` when the process is told to end, and then who was listening before."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _heard(stop, signal.getsignal(number)))


def _heard(stop: Callable[[], None], before: object) -> Callable[[int, FrameType | None], None]:
    def heard(number: int, frame: FrameType | None) -> None:
        stop()
        if callable(before):
            before(number, frame)

    return heard


def end_with(parent: int) -> None:
    """Let this process end, and finish what it has begun, when its parent is no more.

    A parent that is killed tells nobody, and its children would keep the address.
    """

    def watch() -> None:
        task, is_over = Task("parent"), False
        while not is_over:
            time.sleep(max(LOOK, task.pause))
            with task.surviving():
                if is_over := os.getppid() != parent:
                    os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def end_well() -> None:
    """Let SIGTERM end the process with 0: when a server raises it again, all is finished."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)
