"""Snapshots in a relational database, in a transaction that somebody else has begun."""

from collections.abc import Iterable

from continuarm.store.database import Row, Session
from continuarm.store.records import Kept, Snapshot
from continuarm.store.retention import BEGAN, STAYS, beginnings, superfluous
from continuarm.store.rules import is_typed

__all__ = ["adopt", "keep", "kept", "newest", "one"]

SNAPSHOT = "position, version, digest, state"
KEEP = (
    f"INSERT INTO snapshots (experiment, time, {SNAPSHOT}) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING"
)
PLACE = "WHERE experiment = ? AND position = ? AND version = ?"
# one of an earlier version, or of another store, is as old as its record
KEPT = (
    "SELECT position, version, digest, CASE WHEN time <> 0 THEN time ELSE COALESCE("
    "(SELECT events.time FROM events WHERE events.experiment = snapshots.experiment "
    "AND events.position = snapshots.position), 0) END FROM snapshots WHERE experiment = ?"
)
BEGINNINGS = (
    f"SELECT position, body FROM events WHERE experiment = ? AND kind = '{BEGAN}' "
    "AND opens IS NULL AND closes IS NULL"
)


def keep(session: Session, number: int, snapshot: Snapshot, now: float, stays: bool) -> Snapshot:
    """See `Store`."""
    place = number, *snapshot[:2]
    if (before := one(session, *place)) is None:
        time = STAYS if stays else now
        if session.run(f"{KEEP} RETURNING position", number, time, *snapshot):
            _let_go(session, number, snapshot)
            return snapshot
        before = one(session, *place)  # of somebody else, at this moment
    if stays:
        session.run(f"UPDATE snapshots SET time = ? {PLACE}", STAYS, *place)
    return before or snapshot


def _let_go(session: Session, number: int, newest: Snapshot) -> None:
    """Delete what need not be kept beside a new one."""
    staying = beginnings((int(at), str(body)) for at, body in session.run(BEGINNINGS, number))
    for old in superfluous(kept(session, number), staying | {newest.position}):
        session.run(f"DELETE FROM snapshots {PLACE}", number, *old[:2])


def adopt(session: Session, number: int, snapshots: Iterable[Snapshot]) -> None:
    """Keep those of another store."""
    session.run_many(KEEP, ((number, 0.0, *snapshot) for snapshot in snapshots))


def one(session: Session, number: int, position: int, version: str) -> Snapshot | None:
    """See `Store.snapshot`."""
    rows = session.run(f"SELECT {SNAPSHOT} FROM snapshots {PLACE}", number, position, version)
    return _first(rows)


def newest(session: Session, number: int, version: str) -> Snapshot | None:
    """See `Store`."""
    rows = session.run(
        f"SELECT {SNAPSHOT} FROM snapshots WHERE experiment = ? AND version = ? "
        "ORDER BY position DESC LIMIT 1",
        number,
        version,
    )
    return _first(rows)


def kept(session: Session, number: int) -> list[Kept]:
    """See `Store`."""
    found = (Kept(*row) for row in session.run(KEPT, number))
    return sorted(one for one in found if is_typed(one))


def _first(rows: list[Row]) -> Snapshot | None:
    found = next((Snapshot(*row) for row in rows), None)
    return found if found is not None and is_typed(found) else None
