"""A signal that ends the process is heard by those who would go on for ever."""

import signal
import threading
from collections.abc import Callable
from types import FrameType

__all__ = ["end_well", "hear"]


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


def end_well() -> None:
    """Let SIGTERM end the process with 0: when a server raises it again, all is finished."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)
