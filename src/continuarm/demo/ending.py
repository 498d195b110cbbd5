"""Ctrl-C that is not lost, although Python raises it once and what runs then may swallow it.

The compiler calls Python back from C, and from there nothing can be raised.
"""

import signal
import sys
from types import FrameType

__all__ = ["Ending"]


class Ending:
    """Whether the process was told to end."""

    def __init__(self) -> None:
        self._is_wanted = False

    def listen(self) -> None:
        """Hear SIGTERM as Ctrl-C: nothing is left."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._heard)
        sys.unraisablehook = _silent_if_swallowed

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self._is_wanted = True
        raise KeyboardInterrupt

    def look(self) -> None:
        """Raise what was swallowed before."""
        if self._is_wanted:
            raise KeyboardInterrupt


def _silent_if_swallowed(lost: "sys.UnraisableHookArgs") -> None:
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
