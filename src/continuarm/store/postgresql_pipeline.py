"""Pipeline: statements that are sent together to PostgreSQL, each prepared once for a connection.

The pipeline that psycopg itself has goes to the network with every statement. Here that happens
when an answer is waited for, which takes less than half of the time of a core for a group of
decisions, and lets other threads in twice for each group instead of a dozen times.
"""

import selectors
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import lru_cache
from itertools import count
from typing import Any, Final, Self

import psycopg
from psycopg import pq

__all__ = ["Connection", "Pipeline"]

Row = tuple[Any, ...]
Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
LOADERS: Final[dict[int, Callable[[bytes], Any]]] = {  # by numbers that PostgreSQL gives to types
    17: lambda text: bytes.fromhex(text[2:].decode()),
    20: int,
    21: int,
    23: int,
    701: float,
}


OUTDATED: Final = ("26000", "0A000")  # states of what was prepared: it is gone, or fits no more


class Connection(psycopg.Connection[Row]):
    """A connection that knows what was prepared on it."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.prepared = dict[str, bytes]()
        self.names = count()


class Answer:
    """What a statement answers.

    prepares : the statement that it prepares, if it does.
    """

    __slots__ = ("_pipeline", "prepares", "result")

    def __init__(self, pipeline: "Pipeline", prepares: str | None) -> None:
        self._pipeline, self.prepares = pipeline, prepares
        self.result: pq.abc.PGresult | None = None

    def rows(self) -> list[Row]:
        """Its rows; they are waited for."""
        if self.result is None:
            self._pipeline.wait()
        found = self.result
        if found is None or not found.ntuples:
            return []
        loaders = [LOADERS.get(found.ftype(c), bytes.decode) for c in range(found.nfields)]
        return [
            tuple(
                None if (value := found.get_value(r, c)) is None else load(value)
                for c, load in enumerate(loaders)
            )
            for r in range(found.ntuples)
        ]


class Pipeline:
    """Statements on a connection, as a `with` statement; at its end all are done."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._libpq = connection, connection.pgconn
        self._sent, self._is_waiting = deque[Answer](), False

    def __enter__(self) -> Self:
        self._libpq.enter_pipeline_mode()
        return self

    def send(self, statement: str, given: Sequence[Any] = ()) -> Answer:
        """Have a statement done after those before it; `?` stands for each thing given."""
        name = self._connection.prepared.get(statement) or self._prepare(statement)
        values = [
            one.encode()
            if type(one) is str
            else one
            if one is None or type(one) is bytes
            else str(one).encode()
            for one in given
        ]
        formats = None
        if bytes in map(type, given):
            formats = [pq.Format.BINARY if type(one) is bytes else pq.Format.TEXT for one in given]
        self._libpq.send_query_prepared(name, values, formats)
        return self._expect()

    def _prepare(self, statement: str) -> bytes:
        name = b"continuarm_%d" % next(self._connection.names)
        self._libpq.send_prepare(name, _numbered(statement))
        self._expect(statement)
        self._connection.prepared[statement] = name
        return name

    def _expect(self, prepares: str | None = None) -> Answer:
        answer = Answer(self, prepares)
        self._sent.append(answer)
        return answer

    def wait(self) -> None:
        """Wait until all that was sent is answered; the first error is raised."""
        self._is_waiting = True
        self._libpq.pipeline_sync()
        with Selector() as selector:
            selector.register(self._libpq.socket, READ | WRITE)
            while self._libpq.flush():
                selector.select()
                self._libpq.consume_input()
            selector.modify(self._libpq.socket, READ)
            wrong = self._answered(selector)
        self._is_waiting = False
        if wrong is not None:
            raise wrong

    def _answered(self, selector: selectors.BaseSelector) -> psycopg.Error | None:
        """Take all answers; the first error among them."""
        wrong: psycopg.Error | None = None
        while self._sent:
            found = self._result(selector, wrong)
            answer = self._sent.popleft()
            answer.result = found
            if found.status == pq.ExecStatus.FATAL_ERROR:
                wrong = wrong or self._error_of(found)
            if wrong is not None and answer.prepares is not None:
                self._connection.prepared.pop(answer.prepares, None)
            self._libpq.get_result()  # None: the next one begins
        self._result(selector, wrong)  # that all are answered
        return wrong

    def _result(
        self, selector: selectors.BaseSelector, wrong: psycopg.Error | None
    ) -> "pq.abc.PGresult":
        while self._libpq.is_busy():
            selector.select()
            self._libpq.consume_input()
        found = self._libpq.get_result()
        if found is None:
            raise wrong or psycopg.OperationalError("the connection is lost")
        return found

    def _error_of(self, found: "pq.abc.PGresult") -> psycopg.Error:
        state = (found.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
        text = found.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or found.error_message
        if state in OUTDATED:
            self._connection.prepared.clear()
        kind: type[psycopg.Error] = psycopg.OperationalError
        with suppress(KeyError):
            kind = psycopg.errors.lookup(state)
        return kind(text.decode(errors="replace"))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self._sent and not self._is_waiting:
                with nullcontext() if kind is None else suppress(psycopg.Error):
                    self.wait()
        finally:
            if self._is_waiting:  # nobody knows what is still to come
                self._connection.close()
            elif not self._connection.closed:
                self._libpq.exit_pipeline_mode()


@lru_cache(maxsize=256)
def _numbered(statement: str) -> bytes:
    """A statement with the places of its parameters as PostgreSQL has them."""
    first, *rest = statement.split("?")
    places = (f"${number}{text}" for number, text in enumerate(rest, 1))
    return "".join((first, *places)).encode()
