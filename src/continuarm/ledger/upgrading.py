"""Upgrading: another version takes an experiment over.

It begins with the newest snapshot of the version before, and folds what came after by its own
code. Nothing says that this gives the bits of before; so the state that it comes to is kept, as
the new beginning. Servers of the version before stop deciding when they read that.
"""

from typing import NamedTuple

from continuarm.errors import SavedFileError, StoreError
from continuarm.ledger import version
from continuarm.ledger.beginnings import Began, began, entry_of_beginning, life_of, snapshot_of
from continuarm.ledger.fold import fold
from continuarm.live.life import Life
from continuarm.store.protocol import Store
from continuarm.store.records import Snapshot

__all__ = ["Upgraded", "upgrade"]


class Upgraded(NamedTuple):
    """A version has taken an experiment over.

    before : the version of before.
    position : of the newest event that it found.
    folded : how many of them it has folded, after the newest snapshot of before.
    """

    before: str
    position: int
    folded: int


def upgrade(store: Store, name: str) -> Upgraded | None:
    """Let this version fold an experiment from now on; None: it does already."""
    while (beginning := began(store, name)).version != version.fold_version():
        first = _newest(store, name, beginning)
        life, position = _read(first, name), first.position
        while True:
            position = _folded(store, name, life, position)
            kept = store.keep(name, snapshot_of(life, position))
            entry = entry_of_beginning(kept, position + 1)
            [outcome], _ = store.append(name, [entry], onto=position)
            if outcome.refused is None:
                return Upgraded(beginning.version, position, position - first.position)
            if began(store, name) != beginning:
                break  # somebody else was faster
    return None


def _newest(store: Store, name: str, beginning: Began) -> Snapshot:
    found = store.newest(name, beginning.version)
    if found is None:
        raise StoreError(f"an experiment must begin with a snapshot, but {name!r} has none")
    return found


def _read(snapshot: Snapshot, name: str) -> Life:
    try:
        return life_of(snapshot)
    except SavedFileError as error:
        raise StoreError(
            f"this version must read the states of {name!r}, of version {snapshot.version}, "
            f"but cannot: {error}"
        ) from error


def _folded(store: Store, name: str, life: Life, position: int) -> int:
    """Fold what comes after a position; the newest position."""
    while records := store.read(name, position):
        for record in records:
            fold(life, record)
            position = record.position
    return position
