"""SqlStore: ledgers in a relational database. What differs between databases is in `Database`.

Statements are fixed texts; whatever comes from outside is a parameter.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from time import monotonic
from typing import Any, TypeVar

from continuarm.store import sql_snapshots
from continuarm.store.checksums import checked, checksum_of
from continuarm.store.database import Database, Row, Session
from continuarm.store.protocol import MOST_READ
from continuarm.store.records import Appended, Entry, Experiment, Kept, Record, Snapshot, Token
from continuarm.store.rules import (
    adoptable,
    appendable,
    erasable,
    is_storable,
    named,
    same_settings,
    sought,
    storable,
    storable_group,
    there_already,
    token_taken,
    token_unknown,
)
from continuarm.store.settling import Known, settle
from continuarm.store.sql_defects import defects
from continuarm.store.sql_rows import listed, met, one

__all__ = ["SqlStore"]

Seen = TypeVar("Seen")


EXPERIMENT = "number, name, settings, archived, begins, head, time, numbers, clock_offset"
FIND = f"SELECT {EXPERIMENT} FROM experiments WHERE name = ?"
NUMBER = "(SELECT number FROM experiments WHERE name = ?)"
RECORD = "position, time, kind, body, opens, closes, client_key"
WRITTEN = f"{RECORD}, checksum"
ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
WRITE = f"INSERT INTO events (experiment, {WRITTEN}) VALUES {ROW}"
MOST_ROWS = 64  # of one statement
LARGE, WHOLE = 30.0, 3600.0  # seconds for a snapshot, and for a whole experiment
IS_OPENED = "0, 0.0, '', '', opens, NULL, NULL"  # a record without what its index does not have
CHECKSUM = "SELECT checksum FROM events WHERE experiment = ? AND position < ?"
NEED_TOKENS = (
    "INSERT INTO continuarm_settings (name, value) VALUES ('tokens', 'needed') "
    "ON CONFLICT DO NOTHING"
)
OPEN = (
    f"SELECT {WRITTEN} FROM events WHERE experiment = ? AND position <= ? "
    "AND opens IS NOT NULL AND NOT EXISTS (SELECT 1 FROM events AS later "
    "WHERE later.experiment = events.experiment AND later.closes = events.opens)"
)


class SqlStore:
    """Ledgers in a database."""

    def __init__(self, database: Database) -> None:
        self.database, self.is_near = database, database.is_near

    def _found(self, session: Session, name: str, locking: str = "") -> tuple[int, Experiment]:
        """An experiment and its number."""
        return one(session.run(f"{FIND}{locking}", sought(name)), name)

    def create(self, name: str, settings: str) -> Experiment:
        """See `Store`."""
        storable(settings)
        with self.database.writing() as session:
            session.run(
                "INSERT INTO experiments (name, settings) VALUES (?, ?) ON CONFLICT DO NOTHING",
                named(name),
                settings,
            )
            _, experiment = self._found(session, name)
            return same_settings(experiment, settings)

    def experiment(self, name: str) -> Experiment:
        """See `Store`."""
        with self.database.reading() as session:
            return self._found(session, name)[1]

    def experiments(self) -> list[Experiment]:
        """See `Store`."""
        with self.database.reading() as session:
            rows = session.run(f"SELECT {EXPERIMENT} FROM experiments")
        return sorted(map(listed, rows))

    def archive(self, name: str, archived: bool = True) -> None:
        """See `Store`."""
        with self.database.writing() as session:
            number, _ = self._found(session, name)
            session.run(
                "UPDATE experiments SET archived = ? WHERE number = ?", int(archived), number
            )

    def append(self, name: str, group: Sequence[Entry], onto: int | None = None) -> Appended:
        """See `Store`."""
        storable_group(group)
        with self.database.writing() as session:
            return self._append(session, name, group, onto)

    @contextmanager
    def appending(self, name: str, group: Sequence[Entry]) -> Iterator[Appended]:
        """See `Store`."""
        storable_group(group)
        with self.database.writing_now() as session:
            yield self._append(session, name, group, None)

    def _append(
        self, session: Session, name: str, group: Sequence[Entry], onto: int | None
    ) -> Appended:
        look = f"{FIND}{self.database.locking}"  # first: what is seen next is seen alone
        found, clock = session.send(look, sought(name)), self.database.clock(session)
        known = self._known(session, name, group)
        number, experiment = one(found(), name)
        now = max(appendable(experiment).time, clock() + experiment.clock_offset)
        outcomes = settle(group, experiment.head, now, known(), onto)
        added = [o.record for o in outcomes if o.refused is None and o.record is not None]
        if added:
            self._write(session, number, added)
        return Appended(outcomes, experiment.head + len(added))

    def _known(self, session: Session, name: str, group: Sequence[Entry]) -> Callable[[], Known]:
        """The records that the entries of a group may meet, when they are called for."""
        closes = [entry.closes for entry in group if entry.closes is not None]
        wanted = (
            ("opens", [entry.opens for entry in group if entry.opens is not None], RECORD),
            ("closes", closes, RECORD),
            ("client_key", [entry.key for entry in group if entry.key is not None], RECORD),
            ("opens", closes, IS_OPENED),
        )
        looks, given = list[str](), list[Any]()
        for column, names, columns in wanted:
            if names:
                look = self.database.among
                looks.append(look.format(column=column, columns=columns, number=NUMBER))
                given += self.database.listed(names), name
        rows = session.send(" UNION ALL ".join(looks), *given) if looks else list[Row]
        return lambda: met(rows())

    def _write(self, session: Session, number: int, added: list[Record]) -> None:
        rows, first = [(number, *record, checksum_of(record)) for record in added], 0
        while first < len(rows):  # few statements: each lets other threads in, and waits again
            last = first + min(MOST_ROWS, 1 << (len(rows) - first).bit_length() - 1)
            statement = WRITE + f", {ROW}" * (last - first - 1)
            session.send(statement, *chain.from_iterable(rows[first:last]))
            first = last
        head, time = added[-1][:2]
        session.send(
            "UPDATE experiments SET head = ?, time = ? WHERE number = ?", head, time, number
        )
        self.database.appended(session)

    def clock(self) -> float:
        """See `Store`."""
        with self.database.reading() as session:
            return self.database.clock(session)()

    def set_clock(self, name: str, entry: Entry, offset: float) -> Appended:
        """See `Store`."""
        storable_group([entry])
        with self.database.writing() as session:
            number, _ = self._found(session, name, self.database.locking)
            session.run("UPDATE experiments SET clock_offset = ? WHERE number = ?", offset, number)
            return self._append(session, name, [entry], None)

    def read(self, name: str, after: int, most: int = MOST_READ) -> list[Record]:
        """See `Store`."""
        with self.database.reading() as session:
            number, experiment = self._found(session, name)
            rows = session.run(
                f"SELECT {WRITTEN} FROM events WHERE experiment = ? AND position > ? "
                "ORDER BY position LIMIT ?",
                number,
                max(after, experiment.begins),
                most,
            )
        return checked(name, rows, partial(self._is_early, number))

    def _is_early(self, number: int, position: int) -> bool:
        """Whether no record before a position has a checksum.

        The first of all and the one before tell, where each is looked at when it is read.
        """
        look = f"{CHECKSUM} ORDER BY position"
        with self.database.reading() as session:
            ends = [
                session.send(f"{look} {way} LIMIT 1", number, position) for way in ("ASC", "DESC")
            ]
            return all(checksum is None for end in ends for (checksum,) in end())

    def glance(self) -> object:
        """See `Store`."""
        return self.database.glance()

    def _record(self, name: str, column: str, value: str) -> Record | None:
        with self.database.reading() as session:
            number, _ = self._found(session, name)
            if not is_storable(value):
                return None
            rows = session.run(
                f"SELECT {WRITTEN} FROM events WHERE experiment = ? AND {column} = ?",
                number,
                value,
            )
        return next(iter(checked(name, rows, partial(self._is_early, number))), None)

    def opening(self, name: str, decision: str) -> Record | None:
        """See `Store`."""
        return self._record(name, "opens", decision)

    def closing(self, name: str, decision: str) -> Record | None:
        """See `Store`."""
        return self._record(name, "closes", decision)

    def keyed(self, name: str, key: str) -> Record | None:
        """See `Store`."""
        return self._record(name, "client_key", key)

    def latest(self, name: str, kind: str) -> Record | None:
        """See `Store`."""
        with self.database.reading() as session:
            number, _ = self._found(session, name)
            rows = session.run(
                f"SELECT {WRITTEN} FROM events WHERE experiment = ? AND kind = ? "
                "AND opens IS NULL AND closes IS NULL ORDER BY position DESC LIMIT 1",
                number,
                kind,
            )
        return next(iter(checked(name, rows, partial(self._is_early, number))), None)

    def wait(self, name: str, after: int, seconds: float) -> bool:
        """See `Store`."""
        head = self._waited(lambda: self.experiment(name).head, lambda head: head > after, seconds)
        return head > after

    def wait_for_any(self, heads: dict[str, int], seconds: float) -> dict[str, int]:
        """See `Store`."""
        return self._waited(self._heads, lambda found: found != heads, seconds)

    def _heads(self) -> dict[str, int]:
        with self.database.reading() as session:
            rows = session.run("SELECT name, head FROM experiments")
        return {name: head for name, head in rows if isinstance(head, int)}

    def _waited(
        self, look: Callable[[], Seen], holds: Callable[[Seen], bool], seconds: float
    ) -> Seen:
        """What a look has found, when something holds of it, or when the time is over."""
        until = monotonic() + seconds
        while True:
            mark = self.database.mark()  # before the look: what comes after it is not missed
            seen, left = look(), until - monotonic()
            if holds(seen) or left <= 0.0:
                return seen
            self.database.sleep(mark, left)

    def keep(self, name: str, snapshot: Snapshot, stays: bool = False) -> Snapshot:
        """See `Store`."""
        with self.database.writing(LARGE) as session:
            number, _ = self._found(session, name)
            now = self.database.clock(session)()
            return sql_snapshots.keep(session, number, snapshot, now, stays)

    def newest(self, name: str, version: str) -> Snapshot | None:
        """See `Store`."""
        with self.database.reading(LARGE) as session:
            number, _ = self._found(session, name)
            return sql_snapshots.newest(session, number, version)

    def kept(self, name: str) -> list[Kept]:
        """See `Store`."""
        with self.database.reading() as session:
            number, _ = self._found(session, name)
            return sql_snapshots.kept(session, number)

    def snapshot(self, name: str, position: int, version: str) -> Snapshot | None:
        """See `Store`."""
        with self.database.reading(LARGE) as session:
            number, _ = self._found(session, name)
            return sql_snapshots.one(session, number, position, version)

    def snapshots(self, name: str) -> list[Snapshot]:
        """See `Store`."""
        found = (self.snapshot(name, *one[:2]) for one in self.kept(name))
        return [snapshot for snapshot in found if snapshot is not None]

    def adopt(
        self, experiment: Experiment, records: Iterable[Record], snapshots: Iterable[Snapshot]
    ) -> None:
        """See `Store`."""
        name, settings, archived, *numbers = experiment
        with self.database.writing(WHOLE) as session:
            rows = session.run(
                "INSERT INTO experiments (name, settings, archived, begins, head, time, numbers, "
                "clock_offset) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING "
                "RETURNING number",
                named(name),
                settings,
                int(archived),
                *numbers,
            )
            if not rows:
                raise there_already(experiment)
            [(number,)] = rows
            adopted = adoptable(experiment, records)
            session.run_many(WRITE, ((number, *r, checksum_of(r)) for r in adopted))
            sql_snapshots.adopt(session, number, snapshots)

    def erase(self, name: str, until: int) -> None:
        """See `Store`."""
        with self.database.writing(WHOLE) as session:
            number, experiment = self._found(session, name, self.database.locking)
            has = session.run(
                "SELECT 1 FROM snapshots WHERE experiment = ? AND position = ?", number, until
            )
            erasable(experiment, until, bool(has))
            kept = session.run(OPEN, number, until)
            session.run("DELETE FROM events WHERE experiment = ? AND position <= ?", number, until)
            session.run_many(WRITE, ((number, *row) for row in kept))
            session.run(
                "DELETE FROM snapshots WHERE experiment = ? AND position < ?", number, until
            )
            session.run("UPDATE experiments SET begins = ? WHERE number = ?", until, number)
        self.database.scrub()

    def kept_open(self, name: str) -> list[Record]:
        """See `Store`."""
        with self.database.reading() as session:
            number, experiment = self._found(session, name)
            rows = session.run(
                f"SELECT {WRITTEN} FROM events WHERE experiment = ? AND position <= ? "
                "ORDER BY position",
                number,
                experiment.begins,
            )
        return checked(name, rows, partial(self._is_early, number))

    def add_token(self, token: Token) -> None:
        """See `Store`."""
        named(token.name, "a token")
        with self.database.writing() as session:
            added = session.run(
                "INSERT INTO tokens (name, scope, hashed, created) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING RETURNING name",
                *token,
            )
            session.run(NEED_TOKENS)
        if not added:
            raise token_taken(token.name)

    def tokens(self) -> list[Token]:
        """See `Store`."""
        with self.database.reading() as session:
            rows = session.run("SELECT name, scope, hashed, created FROM tokens")
        return sorted(Token(*row) for row in rows)

    def revoke_token(self, name: str) -> None:
        """See `Store`."""
        if not is_storable(name):
            raise token_unknown(name)
        with self.database.writing() as session:
            gone = session.run("DELETE FROM tokens WHERE name = ? RETURNING name", name)
        if not gone:
            raise token_unknown(name)

    def tokens_needed(self) -> bool:
        """See `Store`."""
        with self.database.reading() as session:
            return bool(session.run("SELECT 1 FROM continuarm_settings WHERE name = 'tokens'"))

    def disable_tokens(self) -> None:
        """See `Store`."""
        with self.database.writing() as session:
            session.run("DELETE FROM tokens")
            session.run("DELETE FROM continuarm_settings WHERE name = 'tokens'")

    def defects(self) -> list[str]:
        """See `Store`."""
        return defects(self.database)

    def close(self) -> None:
        """See `Store`."""
        self.database.close()
