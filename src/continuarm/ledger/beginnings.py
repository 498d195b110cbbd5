"""Beginnings: the snapshot that stands for all before it, and the version that folds what follows.

An experiment begins once. It begins again when another version takes it over, or when what was
before is erased.
"""

import json
from typing import Any, NamedTuple

from continuarm.errors import StoreError, UnknownExperimentError
from continuarm.ledger.entries import BEGAN
from continuarm.ledger.snapshots import copy_of_state, snapshot_of
from continuarm.ledger.version import is_newer, own_version
from continuarm.live.life import Life
from continuarm.store.protocol import Store
from continuarm.store.records import Entry, Record, Snapshot

__all__ = [
    "Began",
    "OtherVersionError",
    "began",
    "began_of",
    "begin",
    "entry_of_beginning",
    "pinned",
]


class OtherVersionError(StoreError):
    """An experiment is folded by another version."""


class Began(NamedTuple):
    """A beginning.

    position : of the snapshot that it begins with.
    version : that folds what comes after.
    digest : of the snapshot.
    since : the first position from which this version has decided.
    """

    position: int
    version: str
    digest: str
    since: int


def entry_of_beginning(kept: Snapshot, since: int, **more: Any) -> Entry:
    """That an experiment begins with a snapshot; `more` is noted with it."""
    return Entry(BEGAN, json.dumps(Began(*kept[:3], since)._asdict() | more))


def begin(store: Store, name: str, life: Life, **more: Any) -> None:
    """Let an experiment begin with this state, if it has not begun."""
    kept = store.keep(name, snapshot_of(life, 1), stays=True)
    entry = entry_of_beginning(kept, 1, **more, state=copy_of_state(kept.state))
    store.append(name, [entry], onto=0)


def began(store: Store, name: str) -> Began:
    """The newest beginning of an experiment."""
    found = store.latest(name, BEGAN)
    if found is None:
        raise UnknownExperimentError(f"an experiment must have begun, but {name!r} has not yet")
    return began_of(found)


def began_of(record: Record) -> Began:
    """The beginning that a record says."""
    try:
        plain = {"position": record.position, "since": record.position, **json.loads(record.body)}
        return Began(**{field: plain[field] for field in Began._fields})
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"record {record.position} must say what an experiment begins with, but does not: "
            f"{error!r}"
        ) from None


def pinned(name: str, beginning: Began) -> Began:
    """The beginning, if this version folds what follows it."""
    if beginning.version != own_version():
        way = (
            "stop it, and start one of that version"
            if is_newer(beginning.version)
            else f"run `continuarm upgrade {name}` with this version"
        )
        raise OtherVersionError(
            f"an experiment is folded by one version, and {name!r} is of version "
            f"{beginning.version}, but this server is of version {own_version()}: {way}"
        )
    return beginning
