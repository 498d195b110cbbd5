"""Gate: a policy does one thing at a time, whoever calls, and a fork never copies half of it.

Other threads wait at the gate. The same thread can come a second time only from inside, from a
signal handler or a listener: it is refused, as it would see half a change, or wait for ever.
"""

import os
from threading import RLock
from typing import Protocol
from weakref import WeakSet

from continuarm.errors import BusyError

__all__ = ["Gate", "keep_through_forks"]

PATIENCE = 0.05  # seconds, before a fork lets go of all gates and tries again


class Gate:
    """What is done inside `with gate` is done alone."""

    __slots__ = ("__weakref__", "_busy", "_lock")

    def __init__(self) -> None:
        self._lock, self._busy = RLock(), False

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._busy:
            self._lock.release()
            raise BusyError(
                "a policy does one thing at a time, but it was called from inside, by a signal "
                "handler or a listener: set a flag there, and call it afterwards"
            )
        self._busy = True

    def __exit__(self, *error: object) -> None:
        self._busy = False
        self._lock.release()

    def hold(self) -> bool:
        """Let nobody in; False: somebody stays inside."""
        return self._lock.acquire(timeout=PATIENCE)

    def release(self) -> None:
        """Let others in again."""
        self._lock.release()

    def renew(self) -> None:
        """In a child, where nobody waits any more; one that forked from inside is still there."""
        if self._busy:
            self._lock.release()
        else:
            self._lock = RLock()


class Gated(Protocol):
    """What has a gate."""

    gate: Gate

    def forked(self) -> None:
        """This is a child process now."""


_gated: WeakSet[Gated] = WeakSet()
_held: list[Gated] = []
_one_fork = RLock()


def keep_through_forks(gated: Gated) -> None:
    """Hold its gate while the process forks, and tell it when it is in the child."""
    with _one_fork:
        _gated.add(gated)


def _before() -> None:
    _one_fork.acquire()
    _held[:] = list(_gated)
    while not _hold_all():
        pass


def _hold_all() -> bool:
    for count, gated in enumerate(_held):
        if not gated.gate.hold():
            for other in _held[:count]:
                other.gate.release()
            _held.insert(0, _held.pop(count))  # who is inside it may wait for one that was held
            return False
    return True


def _in_parent() -> None:
    for gated in _held:
        gated.gate.release()
    _held.clear()
    _one_fork.release()


def _in_child() -> None:
    global _one_fork
    for gated in _held:
        gated.gate.renew()
        gated.forked()
    _held.clear()
    _one_fork = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
