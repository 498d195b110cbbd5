"""Succession: an experiment with other boxes or parts learns the ledger of the one before it."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from continuarm.box import Box
from continuarm.checks import among
from continuarm.core.compiling import Array
from continuarm.errors import SettingsError, StoreError
from continuarm.ledger.beginnings import began
from continuarm.ledger.entries import EXPIRED, event_of, id_of
from continuarm.ledger.snapshots import all_kept, is_whole
from continuarm.live import checked_events, state
from continuarm.live.deciding import Beginning
from continuarm.live.events import KINDS, Asked, Event, LearnedFromLog, Told
from continuarm.live.life import Life
from continuarm.live.policy import Policy
from continuarm.store.protocol import Store
from continuarm.store.records import Record

__all__ = ["Heir", "succeeding"]


class Heir(NamedTuple):
    """What a successor begins with.

    learned : payoffs of the predecessor that it has learned.
    left_out : those of contexts or decisions outside its boxes, or of no size that it takes.
    """

    life: Life
    learned: int
    left_out: int


def succeeding(policy: Policy, store: Store, name: str) -> Heir:
    """A policy that has learned the payoffs of another experiment's ledger, in their order."""
    before = _beginning(store, name)
    rows = list(_rows(store, name, before.waiting.missing))
    boxes = enumerate((before.context, before.decision))
    x, y = (np.array([row[k] for row in rows]).reshape(len(rows), box.dim) for k, box in boxes)
    z = np.array([row[2] for row in rows])
    life = policy.life.copy()
    x = _matched(x, before.context, policy.context)
    y = _matched(y, before.decision, policy.decision)
    fits = _inside(x, policy.context) & _inside(y, policy.decision)
    fits &= np.abs(z) <= life.model.largest_payoff
    if fits.any():
        log = LearnedFromLog(*(np.ascontiguousarray(part[fits]) for part in (x, y, z)))
        checked_events.check(life, log)
        life.apply(log)
    return Heir(life, int(fits.sum()), int((~fits).sum()))


def _beginning(store: Store, name: str) -> Beginning:
    """What an experiment began with, whatever can be read of what it has learned."""
    for snapshot in all_kept(store, name):
        if snapshot[:2] == began(store, name)[:2] and is_whole(snapshot):
            return state.beginning_of(snapshot.state.partition(b"\n")[2])
    raise StoreError(
        f"a predecessor must begin with a snapshot that can be read, but {name!r} does not"
    )


def _rows(store: Store, name: str, missing: float | None) -> Iterator[tuple[Array, Array, float]]:
    """Context, what was done, and payoff of each decision that is closed with one."""
    opened: dict[int, Asked] = {}
    for record in _records(store, name):
        if record.kind == EXPIRED:
            asked = opened.pop(id_of(str(record.closes)), None)
            if asked is not None and missing is not None:
                yield asked.context, asked.value, missing
            continue
        event: Event | None = event_of(record, 0.0) if record.kind in KINDS else None
        match event:
            case Asked():
                opened[event.id] = event
            case Told(id_, payoff, _, value) if id_ in opened:
                asked = opened.pop(id_)
                yield asked.context, asked.value if value is None else value, payoff
            case LearnedFromLog(contexts, values, payoffs):
                yield from zip(contexts, values, payoffs.tolist(), strict=True)


def _records(store: Store, name: str) -> Iterator[Record]:
    yield from store.kept_open(name)
    position = store.experiment(name).begins
    while records := store.read(name, position):
        yield from records
        position = records[-1].position


def _matched(points: Array, before: Box, now: Box) -> Array:
    """Columns by name, else in their order."""
    names, wanted = list(before.names), list(now.names)
    if before.named and now.named and sorted(names) == sorted(wanted):
        order = [names.index(name) for name in wanted]
    elif before.dim == now.dim and not (before.named and now.named):
        order = list(range(now.dim))
    else:
        raise SettingsError(
            f"a successor must have the coordinates of its predecessor, {among(names)}, "
            f"but got {among(wanted)}"
        )
    return points.reshape(len(points), before.dim)[:, order]


def _inside(points: Array, box: Box) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.all((points >= box.low) & (points <= box.high), axis=1)
    return found
