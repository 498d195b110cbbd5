"""Beginnings: the snapshot that stands for all before it, and the version that folds what follows.

An experiment begins once. It begins again when another version takes it over, or when what was
before is erased.
"""

import hashlib
import json
from typing import Any, NamedTuple

from continuarm.errors import StoreError, UnknownExperimentError
from continuarm.ledger import version
from continuarm.ledger.entries import BEGAN
from continuarm.live import state
from continuarm.live.life import Life
from continuarm.store.protocol import Store
from continuarm.store.records import Entry, Record, Snapshot

__all__ = [
    "Began",
    "began",
    "began_of",
    "begin",
    "entry_of_beginning",
    "life_of",
    "pinned",
    "snapshot_of",
]


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


def snapshot_of(life: Life, position: int) -> Snapshot:
    """A life at a position of its ledger, with what became of its decisions."""
    closed = json.dumps(life.open.closed.to_plain(), allow_nan=False)
    content = closed.encode() + b"\n" + state.to_bytes(life)
    digest = hashlib.sha256(content).hexdigest()
    return Snapshot(position, version.fold_version(), digest, content)


def life_of(snapshot: Snapshot) -> Life:
    """The life that `snapshot_of` wrote."""
    closed, _, content = snapshot.state.partition(b"\n")
    life = state.from_bytes(content)
    life.open.closed.restore(json.loads(closed))
    return life


def entry_of_beginning(kept: Snapshot, since: int, **more: Any) -> Entry:
    """That an experiment begins with a snapshot; `more` is noted with it."""
    return Entry(BEGAN, json.dumps(Began(*kept[:3], since)._asdict() | more))


def begin(store: Store, name: str, life: Life, **more: Any) -> None:
    """Let an experiment begin with this state, if it has not begun."""
    kept = store.keep(name, snapshot_of(life, 1))
    store.append(name, [entry_of_beginning(kept, 1, **more)], onto=0)


def began(store: Store, name: str) -> Began:
    """The newest beginning of an experiment."""
    found = store.latest(name, BEGAN)
    if found is None:
        raise UnknownExperimentError(f"an experiment must have begun, but {name!r} has not yet")
    return began_of(found)


def began_of(record: Record) -> Began:
    """The beginning that a record says."""
    plain = {"position": record.position, "since": record.position, **json.loads(record.body)}
    return Began(**{field: plain[field] for field in Began._fields})


def pinned(name: str, beginning: Began) -> str:
    """The version that folds an experiment, if it is this one."""
    own = version.fold_version()
    if beginning.version != own:
        raise StoreError(
            f"an experiment is folded by the version that began it, and {name!r} is of "
            f"{beginning.version}, but this is {own}: run that one, or let this one take it over "
            f"with `continuarm upgrade {name}`"
        )
    return own
