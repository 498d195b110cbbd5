"""Rows of a relational database as values; what is damaged is refused."""

from continuarm.errors import StoreError
from continuarm.store.database import Row
from continuarm.store.records import Experiment, Record
from continuarm.store.rules import is_typed, unknown
from continuarm.store.settling import Known

__all__ = ["listed", "met", "one"]


def one(rows: list[Row], name: str) -> tuple[int, Experiment]:
    """The experiment of a name, and its number."""
    if not rows:
        raise unknown(name)
    return _experiment_of(rows[0])


def met(rows: list[Row]) -> Known:
    """The records that the entries of a group may meet; 0 is the position of a mere opening."""
    known = Known.of(Record(*row) for row in rows if row[0])
    for row in rows:
        if not row[0]:
            known.opened.setdefault(row[4], None)
    return known


def _experiment_of(row: Row) -> tuple[int, Experiment]:
    number, name, settings, archived, *numbers = row
    found = Experiment(name, settings, bool(archived), *numbers)
    if not is_typed(found):
        raise StoreError(f"an experiment must be as it was written, but {found!r} is damaged")
    return number, found


def listed(row: Row) -> Experiment:
    """An experiment of a list; one that is damaged is there by its name, and hides no other."""
    try:
        return _experiment_of(row)[1]
    except StoreError:
        return Experiment(str(row[1]), "")
