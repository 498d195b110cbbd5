"""As it was: what a policy answered at some moment, of which nothing ever changes.

A frozen segment answers with it, and `max_move` is counted from it. It has no more than
`recommend` needs, so it learns nothing.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from continuarm.core import notes
from continuarm.core.compiling import Array
from continuarm.core.fitting import misfit
from continuarm.core.learners.protocol import empty_pool
from continuarm.core.model import Limits, Model
from continuarm.core.state import State
from continuarm.errors import SavedFileError
from continuarm.live.deciding import Beginning, Deciding, Held
from continuarm.live.incumbent import Incumbent

__all__ = ["AsItWas", "as_it_is", "bytes_of", "distinct", "shared"]


class AsItWas(Deciding):
    """A model, the reach and the incumbent of some moment, and the reference of then."""

    def __init__(
        self,
        beginning: Beginning,
        model: Model,
        limits: Limits,
        incumbent: Incumbent,
        reference: Deciding | None = None,
    ) -> None:
        self.beginning, self.model, self.limits = beginning, model, limits
        self.paused, self.views, self.reference = False, False, reference
        self.follow(incumbent)

    def arrays(self) -> dict[str, Array]:
        """What `restored` takes."""
        numbers, state = self.incumbent.numbers, self.model.state
        kept = {"start": numbers.first, "by_context": numbers.slopes}
        kept["reach"] = self.limits.reach
        return kept | {"counts": state.counts, "nodes": state.nodes, "rows": state.rows}

    @classmethod
    def restored(cls, now: Deciding, arrays: dict[str, Any], incumbent: Incumbent) -> "AsItWas":
        """What was saved, and checked but for its arrays."""
        model = now.model
        empty = empty_pool(model.lcfg), notes.empty(model.dx, model.dy)
        state = State(arrays["counts"], arrays["nodes"], arrays["rows"], *empty)
        pool = state.pool[:1].copy()
        wrong = misfit(model.pcfg, model.lcfg, state._replace(pool=pool), [])
        if wrong is not None:
            raise SavedFileError(f"what was known at some time must have {wrong}, but has not")
        kept = model.reader(model.room)
        kept.state = state
        limits = now.limits._replace(reach=arrays["reach"])
        return cls(now.beginning, kept, limits, incumbent)

    def is_same(self, other: Deciding | None) -> bool:
        """Whether another one answers the same, bit for bit."""
        if not isinstance(other, AsItWas):
            return False
        if self is other:
            return True
        if self.reference is not other.reference:
            if not isinstance(self.reference, AsItWas):
                return False
            if not self.reference.is_same(other.reference):
                return False
        mine, theirs = self.arrays(), other.arrays()
        own = self.incumbent.own is other.incumbent.own
        return own and all(np.array_equal(mine[name], theirs[name]) for name in mine)


def as_it_is(now: Deciding) -> AsItWas:
    """What is answered now; one that a frozen segment has already, if there is the same."""
    kept = AsItWas(now.beginning, now.model.as_it_is(), now.limits, now.incumbent, now.reference)
    known = list(distinct(now.segments))
    for one in known:  # equal references are one, so that equal states have equal bytes
        if isinstance(kept.reference, AsItWas) and kept.reference.is_same(one):
            kept.reference = one
            break
    return next((one for one in known if kept.is_same(one)), kept)


def distinct(segments: Iterable[Held]) -> Iterator[AsItWas]:
    """All that answers in segments, each once, and then what it stays near to."""
    seen = set[int]()
    for _, known in segments:
        for one in (known, known.reference):
            if isinstance(one, AsItWas) and id(one) not in seen:
                seen.add(id(one))
                yield one


def bytes_of(segments: Iterable[Held]) -> int:
    """How large all is that answers in segments; what they share counts once."""
    states = (one.model.state for one in distinct(segments))
    return sum(one.counts.nbytes + one.nodes.nbytes + one.rows.nbytes for one in states)


def shared(
    segments: Iterable[Held], reference: Deciding | None, room: Array
) -> tuple[tuple[Held, ...], Deciding | None]:
    """The same segments and reference for another life, which has a room of its own."""
    mine = dict[int, AsItWas]()

    def own(one: Deciding | None) -> AsItWas | None:
        if not isinstance(one, AsItWas):
            return None
        if id(one) not in mine:
            other = object.__new__(AsItWas)
            vars(other).update(vars(one))
            other.model, other.reference = one.model.reader(room), own(one.reference)
            mine[id(one)] = other
        return mine[id(one)]

    held = [(segment, own(known)) for segment, known in segments]
    return tuple(Held(s, known) for s, known in held if known is not None), own(reference)
