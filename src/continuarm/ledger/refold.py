"""A refold: a whole ledger folded by the code of this version, decisions as they were made.

It begins where the ledger does. Where a purge has cut the ledger, that is with a snapshot; if this
code cannot read it, with a successor, whose incumbent does what an export of the policy of before
recommends.
"""

from collections.abc import Callable, Iterator

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.errors import ContinuarmError, SavedFileError, SettingsError, StoreError
from continuarm.ledger.beginnings import began_of
from continuarm.ledger.entries import BEGAN, event_of, id_of
from continuarm.ledger.fold import fold, fold_until
from continuarm.ledger.snapshots import all_kept, is_whole, readable_life
from continuarm.live import state
from continuarm.live.deciding import Beginning
from continuarm.live.events import NAMES, Asked, Event, Frozen, Paused, SegmentFrozen, Unfrozen
from continuarm.live.life import Life
from continuarm.live.log_rule import rule_of
from continuarm.live.near_reference import life_of
from continuarm.live.reader import Reader
from continuarm.live.view import View
from continuarm.store.protocol import Store
from continuarm.store.records import Record, Snapshot

__all__ = ["Refold"]

SAMPLE = 2000  # contexts at which an export is asked
ASKED, FROZEN, UNFROZEN = NAMES[Asked], NAMES[Frozen], NAMES[Unfrozen]
Progress = Callable[[int], object]


class Refold:
    """A ledger that is folded anew, from its first position on; `fold_news` goes on with it.

    table : what `export` of the policy of before gave; it is used where nothing else can be read.
    left_out : closings of decisions whose events were erased.
    from_export : whether it is a successor.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        table: str | bytes | None = None,
        progress: Progress = lambda events: None,
    ) -> None:
        self.store, self.name, self._progress = store, name, progress
        self.left_out, self.from_export = 0, False
        # where bins of the version before were: the middle of each, as its decisions say it
        self._middles: dict[int, Array] = {}
        self._freezes = store.latest(name, FROZEN) is not None
        self.life, self.position = self._begun(table)
        self.began = self.position

    def fold_news(self, until: int | None = None) -> int:
        """Fold what came after, up to a position or to the newest; the last one's."""
        self.position = fold_until(
            self.store, self.name, self.life, self.position, until, self._fold
        )
        return self.position

    def _begun(self, table: str | bytes | None) -> tuple[Life, int]:
        kept = list(self._first_kept())
        for snapshot in kept:
            life = first_life(snapshot)
            if life is not None:
                return life, snapshot.position
        return self._succeeding(kept, table)

    def _first_kept(self) -> Iterator[Snapshot]:
        """Snapshots to begin with: that of the ledger's first position, and those after it."""
        begins = self.store.experiment(self.name).begins
        if begins > 0:
            yield from (s for s in all_kept(self.store, self.name) if s.position >= begins)
            return
        records = self.store.read(self.name, 0, 1)
        if not records or records[0].kind != BEGAN:
            raise StoreError(f"a ledger must say how {self.name!r} began, but has {records}")
        first = began_of(records[0])
        for snapshot in all_kept(self.store, self.name):
            if snapshot.position > first.position or snapshot[:3] == first[:3]:
                yield snapshot

    def _succeeding(self, kept: list[Snapshot], table: str | bytes | None) -> tuple[Life, int]:
        """A life whose incumbent is what an export recommends, with the decisions still open."""
        first = next((s for s in kept if is_whole(s)), None)
        if first is None or table is None:
            raise StoreError(self._unread(kept, first))
        _, _, content = first.state.partition(b"\n")
        life = life_of(_with_rule(state.beginning_of(content), table))
        if life.model.counts_asking:
            raise _made_otherwise(self.name, "its state cannot be read")
        header, _ = state.parts_of(content)
        life.clock_offset = header.get("clock_offset", 0.0)
        if header["paused"]:
            life.apply(Paused())
        for segment in header.get("segments", []):  # it answers as the export recommends
            life.apply(SegmentFrozen(segment["where"], segment["at"]))
        for record in self.store.kept_open(self.name):
            fold(life, record)
        self.from_export = True
        return life, max(first.position, self.store.experiment(self.name).begins)

    def _unread(self, kept: list[Snapshot], whole: Snapshot | None) -> str:
        """Why there is nothing to begin with, and what to do."""
        if whole is not None:
            return (
                f"this version must read a state of {self.name!r} to begin with, but can read "
                f"none of its {len(kept)} snapshots: let its old version `export` what it "
                f"recommends (GET …/{self.name}/export), and run `continuarm upgrade {self.name} "
                "--export FILE`"
            )
        at = ", ".join(f"{one.position:,}" for one in self.store.kept(self.name))
        what = f"each of those it has, at {at}, is damaged" if at else "it has none"
        return (
            f"a ledger begins with a snapshot that is whole, but of {self.name!r} {what}: restore "
            "a backup of the store"
        )

    def _fold(self, life: Life, record: Record) -> None:
        self._progress(1)
        if self.from_export and record.closes and id_of(record.closes) not in life.open.open:
            self.left_out += 1
            return
        try:
            fold(life, record, self._renumbered(life, record) if self._freezes else None)
        except (ContinuarmError, LookupError) as error:
            reason = f"record {record.position} cannot happen in this version: {error}"
            raise _made_otherwise(self.name, reason) from None

    def _renumbered(self, life: Life, record: Record) -> Event | None:
        """A freeze with the number that the bin has here, which may be another one."""
        if record.kind == ASKED:
            event = event_of(record, 0.0)
            if isinstance(event, Asked) and event.view is not None and event.segment is None:
                view = View.of(event.view, life.model.dx, life.model.dy)
                self._middles[event.bin] = 0.5 * (view.low + view.high)
        elif record.kind in (FROZEN, UNFROZEN):
            event = event_of(record, 0.0)
            assert isinstance(event, Frozen | Unfrozen)
            middle = self._middles.get(event.bin)
            if middle is not None:
                here, _ = life.decide(middle, 0.0, draw=0, explained=False)
                return event._replace(bin=here.bin)
        return None


def first_life(snapshot: Snapshot) -> Life | None:
    """The life of a snapshot; where nothing was learned yet, as this code would begin it."""
    _, _, content = snapshot.state.partition(b"\n")
    try:
        if is_whole(snapshot) and not state.has_learned(content):
            return life_of(state.beginning_of(content))
    except SavedFileError:
        return None
    return readable_life(snapshot)


def _made_otherwise(name: str, reason: str) -> StoreError:
    return StoreError(
        f"a ledger must be folded with its decisions as they were made, but of {name!r} {reason}. "
        f"Begin another experiment after it, which learns its payoffs: `after` {name!r}"
    )


def _with_rule(beginning: Beginning, table: str | bytes) -> Beginning:
    """The beginning of a successor: what is done without it is what a table recommends."""
    try:
        reader = Reader(table)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    for box, given in ((beginning.context, reader.context), (beginning.decision, reader.decision)):
        if not _is_of(box, given):
            raise SettingsError(f"an export of this experiment has {box!r}, but got {given}")
    units = np.random.default_rng(0).random((SAMPLE, beginning.context.dim))
    contexts = beginning.context.from_unit(units)
    decisions = np.array([reader.decide(point) for point in contexts.tolist()])
    rule = rule_of(beginning.context, beginning.decision, contexts, decisions)
    return beginning._replace(start=rule)


def _is_of(box: Box, given: dict[str, object]) -> bool:
    return given == {"low": box.low.tolist(), "high": box.high.tolist(), "names": list(box.names)}
