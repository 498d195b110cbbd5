"""Connections to PostgreSQL on which nobody waits without end.

PostgreSQL itself ends a statement, a wait for a lock, and a transaction whose client is silent,
each after its time. Where PostgreSQL stands still it ends nothing: then a thread of this process
cuts the connection, and who waits for it hears that it is lost. From then on one at a time tries
now and then whether PostgreSQL answers again; the others are refused at once.
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from threading import Event, Lock, Thread
from typing import Final
from weakref import WeakSet

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolTimeout

from continuarm.store.immortal import keep_for_ever
from continuarm.store.postgresql_pipeline import Connection

__all__ = ["Connections", "limited"]

LIMITS: Final = {  # milliseconds, unless `options=-c …` of an address says otherwise
    "lock_timeout": 1000,
    "statement_timeout": 1500,
    "idle_in_transaction_session_timeout": 2000,
}
# What a database, a role or an address says otherwise does not count: an answer that is sent must
# be durable, and records are read as they were written.
FIXED: Final = {
    "synchronous_commit": "on",
    "default_transaction_isolation": r"read\ committed",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "standard_conforming_strings": "on",
}
ENCODING = "UTF8"
NETWORK: Final = {  # seconds, and milliseconds the last one, unless an address says otherwise
    "connect_timeout": 2,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
MOST = 8  # connections
GRACE = 0.1  # seconds after which a connection is cut whose statement should have ended by itself
LOOK = 0.1  # seconds between two looks for such connections
REST = 0.5  # seconds until somebody may try again whether PostgreSQL answers
REPLACING = 2.0  # seconds for which the pool tries to replace a connection that nobody waits for


def limited(address: str) -> str:
    """An address with the limits that it does not set itself, and with what is fixed."""
    given = conninfo_to_dict(address)
    limits, fixed = (
        " ".join(f"-c {name}={value}" for name, value in settings.items())
        for settings in (LIMITS, FIXED)
    )
    options = f"{limits} {given.get('options') or ''} {fixed}"  # of two, the last one counts
    network = {name: value for name, value in NETWORK.items() if name not in given}
    return make_conninfo(address, **network, options=options, client_encoding=ENCODING)


class Connections:
    """The connections of one process.

    address : with limits.
    is_closed : whether they are let go.
    """

    def __init__(self, address: str) -> None:
        self._address, self.is_closed = address, Event()
        self._until: dict[Connection, float] = {}
        self._made: WeakSet[Connection] = WeakSet()
        self._looking, self._trial = Lock(), Lock()
        self._stands_still, self._next_trial = False, 0.0
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            address,
            connection_class=Connection,
            kwargs={"autocommit": True},
            min_size=1,
            max_size=MOST,
            reconnect_timeout=REPLACING,
            configure=self._made.add,
            open=False,
        )
        Thread(target=self._cut_late_ones, name="continuarm-deadlines", daemon=True).start()

    def open(self) -> None:
        """Let there be connections; the first one is waited for by who needs it."""
        self._pool.open(wait=False)

    @contextmanager
    def new(self, patience: float | None = None) -> Iterator[Connection]:
        """One more connection; seconds for what is done in here, if they are limited."""
        with Connection.connect(self._address, autocommit=True) as connection:
            self._made.add(connection)
            with nullcontext() if patience is None else self.cutting(connection, patience):
                yield connection

    @contextmanager
    def one(self, patience: float, for_connection: float) -> Iterator[Connection]:
        """A connection; seconds for what is done in here, and for the wait for it."""
        with self._trying():
            began = time.monotonic()
            connection = self._connection(for_connection)
            try:
                left = patience - (time.monotonic() - began)
                with self.cutting(connection, left), connection:
                    yield connection
            finally:
                self._pool.putconn(connection)

    def _connection(self, patience: float) -> Connection:
        try:
            return self._pool.getconn(patience)
        except PoolTimeout:
            self._has_stood_still()
            raise

    def _has_stood_still(self) -> None:
        self._stands_still, self._next_trial = True, time.monotonic() + REST

    @contextmanager
    def _trying(self) -> Iterator[None]:
        alone = self._stands_still
        is_soon = alone and time.monotonic() < self._next_trial
        if is_soon or (alone and not self._trial.acquire(blocking=False)):
            raise psycopg.OperationalError("it stands still, and is tried again soon")
        try:
            yield
            self._stands_still = False
        finally:
            if alone:
                self._trial.release()

    @contextmanager
    def cutting(self, connection: Connection, seconds: float) -> Iterator[None]:
        """Seconds for what is done in here, then the connection is cut."""
        with self._looking:
            self._until[connection] = time.monotonic() + seconds + GRACE
        try:
            yield
        finally:
            with self._looking:
                del self._until[connection]

    def _cut_late_ones(self) -> None:
        while not self.is_closed.wait(LOOK):
            now = time.monotonic()
            with self._looking:
                for connection, until in self._until.items():
                    if now > until and not connection.closed:
                        self._has_stood_still()
                        _cut(connection)

    def leave_to_parent(self) -> None:
        """In a child process: do nothing to them ever, and have none of their sockets.

        To close one would tell PostgreSQL that the parent has gone. To keep its socket would hide
        from PostgreSQL when the parent has gone. Locks may be held by threads that are not here.
        """
        keep_for_ever(self)
        with open(os.devnull, "r+b", buffering=0) as nothing:
            for connection in list(self._made):
                with suppress(psycopg.Error, OSError):
                    os.dup2(nothing.fileno(), connection.fileno())

    def close(self) -> None:
        """Let go of all connections."""
        self.is_closed.set()
        self._pool.close()


def _cut(connection: Connection) -> None:
    """Let whoever waits for a connection hear that it is lost; who uses it closes it."""
    with socket.socket(fileno=os.dup(connection.fileno())) as copy:
        try:
            copy.shutdown(socket.SHUT_RDWR)
        except OSError:  # it is lost already
            pass
