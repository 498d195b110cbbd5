"""Snapshots: a life at a position of its ledger as bytes, and which of a store can be read."""

import json
import math
from collections.abc import Iterator

from continuarm.errors import ContinuarmError
from continuarm.ledger.version import own_version
from continuarm.live import state
from continuarm.live.life import Life
from continuarm.store.checksums import digest_of, is_whole
from continuarm.store.protocol import Store
from continuarm.store.records import Kept, Snapshot

__all__ = ["all_kept", "is_whole", "life_of", "newest_kept", "readable_life", "snapshot_of"]


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


def all_kept(store: Store, name: str) -> Iterator[Snapshot]:
    """The snapshots of an experiment, the oldest first; each is read when it is wanted."""
    yield from _read(store, name, store.kept(name))


def newest_kept(store: Store, name: str, first: int, last: float = math.inf) -> Iterator[Snapshot]:
    """Those of this version from a position to another, the newest first."""
    own = [one for one in store.kept(name) if one.version == own_version()]
    yield from _read(store, name, [one for one in own[::-1] if first <= one.position <= last])


def _read(store: Store, name: str, kept: list[Kept]) -> Iterator[Snapshot]:
    for one in kept:
        snapshot = store.snapshot(name, one.position, one.version)
        if snapshot is not None:
            yield snapshot
