"""Exports: an experiment as lines that an import takes; what no import would take is refused."""

from collections.abc import Iterator

from continuarm.errors import InputError, StoreError
from continuarm.ledger.refold import first_life
from continuarm.ledger.settings import settings_of
from continuarm.ledger.snapshots import all_kept, is_whole
from continuarm.ledger.version import own_version
from continuarm.store.moving import written_lines
from continuarm.store.protocol import Store
from continuarm.store.records import Snapshot

__all__ = ["export_lines"]


def export_lines(store: Store, name: str) -> Iterator[str]:
    """An experiment as it is now, one line at a time; refused before the first."""
    experiment = store.experiment(name)
    try:
        settings_of(experiment)
    except InputError as error:
        raise _broken(name, f"its settings: {error}") from None
    if experiment.head > 0 and not any(map(_can_begin, all_kept(store, name))):
        raise _broken(name, "none of its snapshots can be read")
    return written_lines(store, name, all_kept(store, name))


def _can_begin(snapshot: Snapshot) -> bool:
    """Whether this version can begin with it, or another one perhaps can."""
    is_of_another = snapshot.version != own_version()
    return is_whole(snapshot) and (is_of_another or first_life(snapshot) is not None)


def _broken(name: str, why: str) -> StoreError:
    return StoreError(
        f"an experiment is exported if it can be imported, but {name!r} cannot: {why}. Restore a "
        "backup of the store"
    )
