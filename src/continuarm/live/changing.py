"""Changing: options of a life that may be others from now on.

A clock and a reference are there from the beginning, or never: what was decided without them has
no time, and no place near to which it was.
"""

from typing import Any

import numpy as np

from continuarm.errors import SettingsError
from continuarm.live.events import OptionsChanged
from continuarm.live.life import Life
from continuarm.live.near_reference import move_of
from continuarm.live.open_decisions import Waiting
from continuarm.live.uplift import checked_share

__all__ = ["check_options", "event_of", "is_so"]


def event_of(life: Life, given: dict[str, Any]) -> OptionsChanged:
    """The event that options, those that were given, are others from now on."""
    waiting, share, move = life.beginning.waiting, life.beginning.share, life.beginning.max_move
    if "max_move" in given:
        move = move_of(given["max_move"], life.beginning.decision)
    event = OptionsChanged(
        given.get("ttl", waiting.ttl),
        given.get("ttl_seconds", waiting.ttl_seconds),
        given.get("share", share),
        move,
    )
    return check_options(life, event)


def check_options(life: Life, event: OptionsChanged) -> OptionsChanged:
    """The same as numbers of their types; refused where a policy could not have them."""
    before = life.beginning
    ttl, seconds, _ = Waiting.checked(event.ttl, event.ttl_seconds, before.waiting.missing)
    for name, was, will in (
        ("ttl_seconds", before.waiting.ttl_seconds, seconds),
        ("max_move", before.max_move, event.max_move),
    ):
        if (was is None) != (will is None):
            raise SettingsError(
                f"`{name}` is there from the beginning or never, and was {was}, but got {will}"
            )
    move = event.max_move
    if move is not None:
        move = np.asarray(move_of(move, before.decision))
    return OptionsChanged(ttl, seconds, checked_share(event.share), move)


def is_so(life: Life, event: OptionsChanged) -> bool:
    """Whether these options hold already."""
    now = life.beginning
    if now.max_move is not None and not np.array_equal(now.max_move, np.asarray(event.max_move)):
        return False
    return (*now.waiting[:2], now.share) == event[:3]
