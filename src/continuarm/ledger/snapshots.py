"""Snapshots: a life at a position of its ledger as bytes, and which of a store can be read.

The first one, with which an experiment begins, stands in the ledger's first record, too: there is
no other to begin with while an experiment is young.
"""

import base64
import json
import logging
import math
from collections.abc import Iterable, Iterator

from continuarm.errors import ContinuarmError, StoreError, UnavailableError
from continuarm.ledger.version import own_version
from continuarm.live import state
from continuarm.live.life import Life
from continuarm.store.checksums import digest_of, is_whole
from continuarm.store.protocol import Store
from continuarm.store.records import Record, Snapshot
from continuarm.store.rules import is_typed

__all__ = [
    "all_kept",
    "copy_of_beginning",
    "copy_of_state",
    "is_whole",
    "life_of",
    "newest_kept",
    "readable_life",
    "snapshot_of",
    "state_in",
]

LOG = logging.getLogger("continuarm")
Place = tuple[int, str]  # position and version of a snapshot


def snapshot_of(life: Life, position: int) -> Snapshot:
    """A life at a position of its ledger, with what became of its decisions."""
    closed = json.dumps(life.open.closed.to_plain(), allow_nan=False)
    content = closed.encode() + b"\n" + state.to_bytes(life)
    return Snapshot(position, own_version(), digest_of(content), content)


def life_of(snapshot: Snapshot) -> Life:
    """The life that `snapshot_of` wrote."""
    closed, _, content = snapshot.state.partition(b"\n")
    life = state.from_bytes(content)
    life.open.closed.restore(json.loads(closed))
    return life


def readable_life(snapshot: Snapshot) -> Life | None:
    """The life of a snapshot, if that is whole and of a form that this code reads."""
    try:
        return life_of(snapshot) if is_whole(snapshot) else None
    except (ContinuarmError, ValueError):
        return None


def copy_of_state(state: bytes) -> str:
    """A state as text, for a record."""
    return base64.b64encode(state).decode()


def state_in(record: Record) -> Snapshot | None:
    """The snapshot whose copy a record of a beginning has, if it has one that is whole."""
    try:
        plain = json.loads(record.body)
        state = base64.b64decode(plain["state"], validate=True)
        found = Snapshot(plain["position"], plain["version"], digest_of(state), state)
        return found if found.digest == plain["digest"] and is_typed(found) else None
    except (KeyError, TypeError, ValueError):
        return None


def copy_of_beginning(store: Store, name: str) -> Snapshot | None:
    """The snapshot that the first record of a ledger has; versions before wrote none."""
    try:
        records = store.read(name, 0, 1)
    except UnavailableError:
        raise
    except StoreError:  # that record is damaged
        return None
    return state_in(records[0]) if records and records[0].position == 1 else None


def all_kept(store: Store, name: str) -> Iterator[Snapshot]:
    """The snapshots of an experiment, the oldest first; each is read when it is wanted."""
    copy = copy_of_beginning(store, name)
    yield from _read(store, name, sorted(_places(store, name, copy)), copy)


def newest_kept(store: Store, name: str, first: int, last: float = math.inf) -> Iterator[Snapshot]:
    """Those of this version from a position to another, the newest first."""
    copy, version = copy_of_beginning(store, name), own_version()
    places = sorted(_places(store, name, copy), reverse=True)
    own = [place for place in places if place[1] == version and first <= place[0] <= last]
    yield from _read(store, name, own, copy)


def _places(store: Store, name: str, copy: Snapshot | None) -> set[Place]:
    return {one[:2] for one in (*store.kept(name), *([] if copy is None else [copy]))}


def _read(
    store: Store, name: str, places: Iterable[Place], copy: Snapshot | None
) -> Iterator[Snapshot]:
    """The snapshots at these places; where that of the beginning is broken, its copy."""
    for place in places:
        snapshot = store.snapshot(name, *place)
        if copy is not None and copy[:2] == place and snapshot != copy:
            LOG.warning("the snapshot of %r at %d is broken: the ledger's copy is taken",
                        name, copy.position)  # fmt: skip
            snapshot = copy
        if snapshot is not None:
            yield snapshot
