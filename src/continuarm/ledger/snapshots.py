"""Snapshots: a life at a position of its ledger as bytes, and which of a store can be read."""

import hashlib
import json
import math
from collections.abc import Iterator

from continuarm.errors import ContinuarmError
from continuarm.ledger.version import own_version
from continuarm.live import state
from continuarm.live.life import Life
from continuarm.store.protocol import Store
from continuarm.store.records import Snapshot

__all__ = ["all_kept", "is_whole", "life_of", "newest_kept", "readable_life", "snapshot_of"]


def snapshot_of(life: Life, position: int) -> Snapshot:
    """A life at a position of its ledger, with what became of its decisions."""
    closed = json.dumps(life.open.closed.to_plain(), allow_nan=False)
    content = closed.encode() + b"\n" + state.to_bytes(life)
    return Snapshot(position, own_version(), _digest(content), content)


def life_of(snapshot: Snapshot) -> Life:
    """The life that `snapshot_of` wrote."""
    closed, _, content = snapshot.state.partition(b"\n")
    life = state.from_bytes(content)
    life.open.closed.restore(json.loads(closed))
    return life


def is_whole(snapshot: Snapshot) -> bool:
    """Whether a snapshot is as it was kept."""
    return _digest(snapshot.state) == snapshot.digest


def readable_life(snapshot: Snapshot) -> Life | None:
    """The life of a snapshot, if that is whole and of a form that this code reads."""
    try:
        return life_of(snapshot) if is_whole(snapshot) else None
    except (ContinuarmError, ValueError):
        return None


def all_kept(store: Store, name: str) -> Iterator[Snapshot]:
    """The snapshots of an experiment, the oldest first."""
    yield from store.snapshots(name)


def newest_kept(store: Store, name: str, first: int, last: float = math.inf) -> Iterator[Snapshot]:
    """Those of this version from a position to another, the newest first."""
    newest = store.newest(name, own_version())
    if newest is not None and first <= newest.position <= last:
        yield newest  # as a rule the others need not be read
    for snapshot in reversed(list(all_kept(store, name))):
        fits = first <= snapshot.position <= last and snapshot.version == own_version()
        if fits and (newest is None or snapshot.position != newest.position):
            yield snapshot


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
