"""Upgrading: another version takes an experiment over.

It folds the whole ledger anew by its own code. The state that it comes to is kept, as the new
beginning. Servers of the version before stop deciding when they read that.
"""

from collections.abc import Callable
from typing import NamedTuple

from continuarm.ledger.beginnings import began, entry_of_beginning
from continuarm.ledger.refold import Refold
from continuarm.ledger.snapshots import snapshot_of
from continuarm.ledger.version import own_version
from continuarm.store.protocol import Store

__all__ = ["Upgraded", "upgrade"]


class Upgraded(NamedTuple):
    """A version has taken an experiment over.

    before : the version of before.
    position : of the newest event that it found.
    folded : how many events it has folded.
    from_export : whether it began with what an export recommends.
    left_out : payoffs of decisions that were erased, which only a successor leaves out.
    """

    before: str
    position: int
    folded: int
    from_export: bool
    left_out: int


def upgrade(
    store: Store,
    name: str,
    *,
    table: str | bytes | None = None,
    progress: Callable[[int], object] = lambda events: None,
) -> Upgraded | None:
    """Let this version fold an experiment from now on; None: it does already.

    table : what `export` of the version before gave, where nothing else can be read.
    progress : is called with how many events were folded.
    """
    while (beginning := began(store, name)).version != own_version():
        anew = Refold(store, name, table, progress)
        while True:
            position = anew.fold_news()
            kept = store.keep(name, snapshot_of(anew.life, position), stays=True)
            entry = entry_of_beginning(kept, position + 1)
            [outcome], _ = store.append(name, [entry], onto=position)
            if outcome.refused is None:
                folded = position - anew.began
                return Upgraded(
                    beginning.version, position, folded, anew.from_export, anew.left_out
                )
            if began(store, name) != beginning:
                break  # somebody else was faster
    return None
