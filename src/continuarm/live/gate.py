"""Gate: a policy does one thing at a time, whoever calls, and a fork never copies half of it.

Other threads wait at the gate. The same thread can come a second time only from inside, from a
signal handler or a listener: it is refused, as it would see half a change, or wait for ever.
"""

import os
from collections.abc import Callable
from itertools import starmap
from threading import RLock, get_ident
from typing import Any, NamedTuple, Protocol, TypeVar
from weakref import WeakSet

from continuarm.errors import BusyError
from continuarm.strokes import insist

__all__ = ["Answer", "AtFork", "Gate", "keep_through_forks", "while_gates_are_held"]

Answer = TypeVar("Answer")

PATIENCE = 0.05  # seconds, before a fork lets go of all gates and tries again


class Gate:
    """What is done `alone` is done alone.

    Where every microsecond counts, `alone` is written out. No signal handler comes between the
    lock, which C code takes and lets go, and the mark that somebody is inside (`strokes`).
    """

    __slots__ = ("__weakref__", "busy", "leaving", "lock")

    def __init__(self) -> None:
        self.lock, self.busy = RLock(), False
        self.leaving: Callable[[], None] | None = None  # what is always done last

    def alone(self, work: Callable[..., Answer], *given: Any) -> Answer:
        """Do some work while nobody else is inside."""
        with self.lock:
            if self.busy:
                raise self.refusal()
            self.busy = True
            try:
                return work(*given)
            finally:
                self.busy = False
                if self.leaving is not None:
                    self.leave(self.leaving)

    def leave(self, last: Callable[[], None]) -> None:
        """Do what is always done last, still alone."""
        self.busy = True
        try:
            last()
        finally:
            self.busy = False

    def refusal(self) -> BusyError:
        """What is raised when somebody comes from inside."""
        return BusyError(
            "a policy does one thing at a time, but it was called from inside, by a signal "
            "handler or a listener: set a flag there, and call it afterwards"
        )


class Gated(Protocol):
    """What has a gate."""

    gate: Gate

    def forked(self) -> None:
        """This is a child process now."""


_gated: WeakSet[Gated] = WeakSet()
_one_fork = RLock()
_forker: int | None = None  # the thread that forks
_held: dict[Any, Gated] = {}  # by the locks that it holds
_inner: list["AtFork"] = []


def keep_through_forks(gated: Gated) -> None:
    """Hold its gate while the process forks, and tell it when it is in the child."""
    with _one_fork:
        _gated.add(gated)


class AtFork(NamedTuple):
    """What is done around a fork; each may be done again from its beginning."""

    before: Callable[[], None]
    in_parent: Callable[[], None]
    in_child: Callable[[], None]


def while_gates_are_held(inner: AtFork) -> None:
    """Do something else around each fork, after all gates are held and before they are let go.

    Who is inside a gate may wait for what is done here, but never the other way round.
    """
    _inner.append(inner)


def _before() -> None:
    insist(_hold_all)
    for inner in _inner:
        insist(inner.before)


def _hold_all() -> None:
    """Hold what is not held yet."""
    global _forker
    if _forker != get_ident():
        me, taking = get_ident(), starmap(_one_fork.acquire, ((),))
        [_] = taking  # a stroke: nothing is called from here on
        _forker = me
    waiting = list(_gated)
    while not all(gated.gate.lock in _held or _hold(gated) for gated in waiting):
        hard = next(gated for gated in waiting if gated.gate.lock not in _held)
        _let_go()
        waiting.sort(key=lambda gated: gated is not hard)  # who is inside may wait for another


def _hold(gated: Gated) -> bool:
    lock = gated.gate.lock
    taking = starmap(lock.acquire, ((True, PATIENCE),))
    [taken] = taking  # a stroke: nothing is called from here on
    if taken:
        _held[lock] = gated
    return bool(taken)


def _let_go() -> None:
    for lock in list(_held):
        giving = starmap(lock.release, ((),))
        [_] = giving  # a stroke: nothing is called from here on
        del _held[lock]


def _in_parent() -> None:
    for inner in _inner:
        insist(inner.in_parent)
    insist(_end)


def _end() -> None:
    global _forker
    if _forker == get_ident():
        _let_go()
        giving = starmap(_one_fork.release, ((),))
        _forker = None  # a stroke: nothing is called from here on
        [_] = giving


def _in_child() -> None:
    for inner in _inner:
        insist(inner.in_child)
    insist(_begin_anew)


def _begin_anew() -> None:
    """Nobody waits here any more; one that forked from inside is still there.

    A gate that a signal kept us from holding was left between two strokes of its thread.
    """
    global _one_fork, _forker
    for gated in list(_gated):
        gate, fresh = gated.gate, RLock()
        gated.forked()
        if gate.busy and gate.lock.acquire(blocking=False):  # by us
            gate.lock.release()
        else:
            _held.pop(gate.lock, None)
            gate.lock, gate.busy = fresh, False
    _let_go()
    _one_fork, _forker = RLock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
