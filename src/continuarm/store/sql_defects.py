"""Defects of tables: rows that no store has written."""

from collections.abc import Callable, Iterator
from functools import partial

from continuarm.errors import StoreError
from continuarm.store.database import Database, Row, Session
from continuarm.store.records import Experiment, Kept, Token
from continuarm.store.rules import is_typed

__all__ = ["defects"]

LONG = 3600.0  # seconds for a look at all rows
TABLES: tuple[tuple[str, str, Callable[[Row], bool]], ...] = (
    (
        "experiments",
        "name, settings, archived, begins, head, time, numbers, clock_offset",
        lambda row: is_typed(Experiment._make((*row[:2], bool(row[2]), *row[3:]))),
    ),
    ("snapshots", "position, version, digest, time", lambda row: is_typed(Kept(*row))),
    ("tokens", "name, scope, hashed, created", lambda row: is_typed(Token(*row))),
)


def defects(database: Database) -> list[str]:
    """What is wrong with the database itself, and rows of wrong types or of no experiment."""
    found = _tried(database.defects)
    for table, columns, is_right in TABLES:
        found += _tried(partial(_wrong_rows, database, table, columns, is_right))
    for table in ("events", "snapshots"):
        found += _tried(partial(_strays, database, table))
    return found


def _tried(look: Callable[[], list[str]]) -> list[str]:
    try:
        return look()
    except StoreError as error:
        return [" ".join(str(error).split())]


def _wrong_rows(
    database: Database, table: str, columns: str, is_right: Callable[[Row], bool]
) -> list[str]:
    with database.reading(LONG) as session:
        rows = session.run(f"SELECT {columns} FROM {table}")
    return [
        f"a row of the table {table!r} must be as it was written, but got {row!r}"
        for row in rows
        if not is_right(row)
    ]


def _strays(database: Database, table: str) -> list[str]:
    """Rows that belong to no experiment."""
    with database.reading(LONG) as session:
        return list(_of_nobody(session, table))


def _of_nobody(session: Session, table: str) -> Iterator[str]:
    rows = session.run(
        f"SELECT experiment, COUNT(*) FROM {table} WHERE experiment NOT IN "
        "(SELECT number FROM experiments) GROUP BY experiment"
    )
    for experiment, count in rows:
        yield (
            f"rows of the table {table!r} must belong to an experiment, but {count} belong to "
            f"number {experiment!r}, which is none"
        )
