"""Forks of a process that uses SQLite: no connection is ever carried into a child.

SQLite keeps in memory which locks its process holds on a file. A child process inherits this
memory, but none of the locks. So what it writes may be lost, and what it closes may be a log that
others write to. Therefore all connections are closed before a process forks, when nobody uses
one. Parent and child open new ones when they need them.

Some forks leave them open: those in the middle of a transaction, and those by C, of which Python
hears nothing. Their children know the files by device and inode, as SQLite does, and use none.
"""

import os
import time
from itertools import starmap
from threading import Event, Lock, get_ident
from typing import Any, Protocol
from weakref import WeakSet

from continuarm.live.gate import AtFork, while_gates_are_held

__all__ = ["carried", "keep", "unclosed", "wait"]

LONGEST_USE = 20.0  # seconds that a fork waits for those who use a connection
HELD_UP = 0.05  # seconds, before a fork lets everybody go on and tries again


class Connection(Protocol):
    """What must be closed; `user` is the thread that has it to itself until it is done."""

    used: Lock
    user: int
    file: tuple[int, int] | None

    def close(self) -> None: ...


class Connections(Protocol):
    """What has them; who holds `opening` opens others."""

    opening: Lock
    opened: list[Any]

    def have_none(self) -> None:
        """All are closed."""

    def forked(self) -> None:
        """This is a child process now."""


unclosed: set[Connection] = set()  # all of this process
carried: set[tuple[int, int] | None] = set()  # files with connections of before a fork
_all: WeakSet[Connections] = WeakSet()
_adding = Lock()
_nobody_forks = Event()
_nobody_forks.set()
_held: dict[Any, bool] = {}  # locks, while this process forks
_process = os.getpid()


def keep(connections: Connections) -> None:
    """Close these before a fork."""
    wait()
    with _adding:
        _all.add(connections)


def wait() -> None:
    """Let a fork find all connections unused; notice one that Python did not make."""
    if _process != os.getpid():
        _in_child()
    if not _nobody_forks.is_set():
        _nobody_forks.wait(HELD_UP)


def _before() -> None:
    """Close all connections, as soon as nobody uses one."""
    until = time.monotonic() + LONGEST_USE
    while not _close_all(may_wait=time.monotonic() < until):
        _let_go()
        time.sleep(HELD_UP)  # who was held up may be waited for


def _close_all(may_wait: bool) -> bool:
    """Hold and close all connections, and let nobody open others; whether that is done."""
    _nobody_forks.clear()
    if not _hold(_adding, may_wait):
        return not may_wait
    for connections in list(_all):
        if not _close(connections, may_wait) and may_wait:
            return False
    return True


def _close(connections: Connections, may_wait: bool) -> bool:
    """The same for one file; false: somebody else uses one of them."""
    if not _hold(connections.opening, may_wait):  # until then others are opened
        return False
    mine = [one for one in connections.opened if one.user == get_ident()]
    others = [one for one in connections.opened if one not in mine]
    if not all([_hold(one.used, may_wait) for one in others]):
        return False
    if not mine:  # else this thread forks in a transaction
        for connection in others:
            connection.close()
        connections.have_none()
    return True


def _hold(lock: Any, may_wait: bool) -> bool:
    if lock in _held:
        return True
    taking = starmap(lock.acquire, ((True, HELD_UP if may_wait else 0.0),))
    [taken] = taking  # a stroke: nothing is called from here on
    if taken:
        _held[lock] = True
    return bool(taken)


def _let_go() -> None:
    for lock in list(_held):
        giving = starmap(lock.release, ((),))
        [_] = giving  # a stroke: nothing is called from here on
        del _held[lock]
    _nobody_forks.set()


def _in_child() -> None:
    """Locks that threads of the parent may hold are new ones."""
    global _adding, _nobody_forks, _process
    if _process == os.getpid():  # who was told of the fork before us has used a store already
        return
    _held.clear()
    _adding, _nobody_forks = Lock(), Event()
    _nobody_forks.set()
    for connection in list(unclosed):
        carried.add(connection.file)
        unclosed.discard(connection)
    for connections in list(_all):
        connections.forked()
    _process = os.getpid()


while_gates_are_held(AtFork(_before, _let_go, _in_child))
