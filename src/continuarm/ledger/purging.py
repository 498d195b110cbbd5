"""Purging: contexts are erased for good, and a snapshot is the new beginning.

A state holds what was learned as sums, and the contexts of decisions that are open. So the new
beginning is the first position at which of the decisions to erase only those are open that still
are. These keep their contexts, and can be told; the next purge erases them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from continuarm.ledger.beginnings import Began, began, entry_of_beginning, pinned
from continuarm.ledger.clock import dates
from continuarm.ledger.fold import fold_until
from continuarm.ledger.refold import Refold
from continuarm.ledger.replica import Replica
from continuarm.ledger.snapshots import newest_kept, readable_life, snapshot_of
from continuarm.live.life import Life
from continuarm.store.protocol import Store
from continuarm.store.records import Snapshot

__all__ = ["Purged", "purge"]


class Purged(NamedTuple):
    """What was erased.

    until : the position up to which.
    erased : how many events.
    open : decisions of before the date that are open, and so keep their contexts.
    """

    until: int
    erased: int
    open: int


def purge(store: Store, name: str, before: float) -> Purged:
    """Erase what happened before a time, in seconds since 1970, and what goes with it."""
    beginning, experiment = began(store, name), store.experiment(name)
    pinned(name, beginning)
    last = max(_last_before(store, name, before), experiment.begins)
    if last == experiment.begins:  # nothing is new; what an earlier purge erased must be gone
        if last > 0:
            store.erase(name, last)
        return Purged(last, 0, len(store.kept_open(name)))
    life, position = _start(store, name, beginning, last)
    last = max(last, position)
    fold_until(store, name, life, position, last)
    old = set(life.open.open)
    now = Replica(store, name)
    now.catch_up()
    still = old & set(now.life.open.open)
    until = last
    while (old - still) & set(life.open.open):
        until = fold_until(store, name, life, until, until + 1)
    _begin_with(store, name, store.keep(name, snapshot_of(life, until), stays=True))
    store.erase(name, until)
    return Purged(until, until - experiment.begins - len(store.kept_open(name)), len(still))


def _last_before(store: Store, name: str, before: float) -> int:
    """The position of the last record of before a time; what is erased already is, too."""
    experiment = store.experiment(name)
    date = dates(store, name)
    low, high = experiment.begins, experiment.head
    while low < high:  # dates never go back
        middle = (low + high + 1) // 2
        [record] = store.read(name, middle - 1, 1)
        low, high = (middle, high) if date(record) < before else (low, middle - 1)
    return low


def _start(store: Store, name: str, beginning: Began, last: int) -> tuple[Life, int]:
    """The newest life of up to a position that can be read, or at worst that of the beginning."""
    for snapshot in newest_kept(store, name, beginning.position, max(last, beginning.position)):
        life = readable_life(snapshot)
        if life is not None:
            return life, snapshot.position
    anew = Refold(store, name)
    return anew.life, anew.fold_news(beginning.position)


def _begin_with(store: Store, name: str, kept: Snapshot) -> None:
    """Let the ledger say that it begins with a snapshot, as long as its version is the pinned."""
    entry = entry_of_beginning(kept, kept.position)
    with _appendable(store, name):
        while True:
            head = store.experiment(name).head
            pinned(name, began(store, name))
            if store.append(name, [entry], onto=head).outcomes[0].refused is None:
                return


@contextmanager
def _appendable(store: Store, name: str) -> Iterator[None]:
    """An archived experiment, too, says where it begins."""
    archived = store.experiment(name).archived
    if archived:
        store.archive(name, False)
    try:
        yield
    finally:
        if archived:
            store.archive(name)
