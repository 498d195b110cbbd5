"""Which snapshots of an experiment stay: its beginnings, the newest few, and one for each day."""

import json
import math
from collections.abc import Iterable, Iterator
from contextlib import suppress

from continuarm.store.records import Kept

__all__ = ["BEGAN", "STAYS", "beginnings", "superfluous"]

BEGAN = "began"  # the kind of records that say with which snapshot a ledger begins
STAYS = math.inf  # the time of a snapshot that is never superfluous
NEWEST = 3  # of each version
DAY = 86_400.0  # seconds; those of UTC begin at its multiples


def beginnings(records: Iterable[tuple[int, str]]) -> set[int]:
    """The positions that records of this kind name, by their positions and bodies."""
    return {found for position, body in records for found in _named(position, body)}


def _named(position: int, body: str) -> Iterator[int]:
    yield position  # as bodies without one mean
    with suppress(ValueError, TypeError, KeyError):
        yield int(json.loads(body)["position"])


def superfluous(kept: Iterable[Kept], staying: set[int]) -> list[Kept]:
    """The snapshots that need not be kept.

    staying : the positions of those that stay, whatever their time is.
    """
    newest_first = sorted(kept, key=lambda one: one.position, reverse=True)
    count: dict[str, int] = {}
    days = set[tuple[str, float]]()
    found = []
    for one in newest_first:
        count[one.version] = count.get(one.version, 0) + 1
        day = one.version, one.time // DAY
        few, first_of_day = count[one.version] <= NEWEST, day not in days
        days.add(day)
        if not (few or first_of_day or one.time == STAYS or one.position in staying):
            found.append(one)
    return found
