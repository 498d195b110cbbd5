"""Defects of tables: rows that no store has written."""

from collections.abc import Callable, Iterator
from functools import partial

from continuarm.errors import InputError, StoreError
from continuarm.store.database import Database, Row, Session
from continuarm.store.records import SCOPES, Experiment, Kept, Token
from continuarm.store.rules import is_typed, named

__all__ = ["defects"]

LONG = 3600.0  # seconds for a look at all rows
WRONG = "a row of the table {!r} must be as it was written, but got {!r}"


def _of_experiment(row: Row) -> Iterator[str]:
    """What is wrong with a row of the table of experiments."""
    name, settings, archived, *numbers = row
    if not is_typed(Experiment._make((name, settings, bool(archived), *numbers))):
        yield WRONG.format("experiments", row)
        return
    yield from _wrong_name(name, "an experiment")
    if archived not in (0, 1):
        yield f"archived must be 0 or 1, but that of the experiment {name!r} is {archived!r}"


def _of_snapshot(row: Row) -> Iterator[str]:
    if not is_typed(Kept(*row)):
        yield WRONG.format("snapshots", row)


def _of_token(row: Row) -> Iterator[str]:
    token = Token(*row)
    if not is_typed(token):
        yield WRONG.format("tokens", row)
        return
    yield from _wrong_name(token.name, "a token")
    if token.scope not in SCOPES:
        yield (
            f"the scope of a token must be one of {list(SCOPES)}, but that of {token.name!r} is "
            f"{token.scope!r}"
        )


def _wrong_name(name: str, of: str) -> Iterator[str]:
    try:
        named(name, of)
    except InputError as error:
        yield str(error)


TABLES: tuple[tuple[str, str, Callable[[Row], Iterator[str]]], ...] = (
    (
        "experiments",
        "name, settings, archived, begins, head, time, numbers, clock_offset",
        _of_experiment,
    ),
    ("snapshots", "position, version, digest, time", _of_snapshot),
    ("tokens", "name, scope, hashed, created", _of_token),
)


def defects(database: Database) -> list[str]:
    """What is wrong with the database itself, and rows of wrong types or of no experiment."""
    found = _tried(database.defects)
    for table, columns, look_at in TABLES:
        found += _tried(partial(_wrong_rows, database, table, columns, look_at))
    for table in ("events", "snapshots"):
        found += _tried(partial(_strays, database, table))
    return found


def _tried(look: Callable[[], list[str]]) -> list[str]:
    try:
        return look()
    except StoreError as error:
        return [" ".join(str(error).split())]


def _wrong_rows(
    database: Database, table: str, columns: str, look_at: Callable[[Row], Iterator[str]]
) -> list[str]:
    with database.reading(LONG) as session:
        rows = session.run(f"SELECT {columns} FROM {table}")
    return [wrong for row in rows for wrong in look_at(row)]


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
