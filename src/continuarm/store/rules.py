"""What every store refuses, in the same words."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from continuarm.errors import ExperimentConflictError, InputError, UnknownExperimentError
from continuarm.store.records import Entry, Experiment, Record

__all__ = [
    "LONGEST_NAME",
    "Once",
    "adoptable",
    "appendable",
    "erasable",
    "is_storable",
    "is_typed",
    "named",
    "same_settings",
    "sought",
    "storable",
    "storable_group",
    "there_already",
    "token_taken",
    "token_unknown",
    "unknown",
]

LONGEST_NAME = 100
MOST = 2**62
FROM_THE_BEGINNING = {"has_clock": "ttl_seconds", "has_max_move": "max_move"}


def named(name: str, of: str = "an experiment") -> str:
    """A name that also is part of a path."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise InputError(
            f"the name of {of} must have 1 to {LONGEST_NAME} characters that print, "
            f"but got {name!r}"
        )
    if name in (".", "..") or name != name.strip() or "/" in name or "\\" in name:
        raise InputError(
            f"the name of {of} must be without / and \\ and spaces around it, and not . or .., "
            f"but got {name!r}"
        )
    return name


def is_storable(text: str) -> bool:
    """Whether every database takes this as text."""
    return "\0" not in text and (text.isascii() or not _is_torn(text))


def storable(text: str | None) -> None:
    """Refuse what no database takes as text."""
    if text is not None and not is_storable(text):
        raise InputError(
            f"text without zeros and halves of characters is needed, but got {text!r}"
        )


def storable_group(group: Sequence[Entry]) -> None:
    """The same for all texts of a group."""
    texts = [text for entry in group for text in entry if text is not None]
    whole = "".join(texts)
    if whole.isascii() and "\0" not in whole:  # as almost always
        return
    for entry in group:
        for text in entry:
            storable(text)


def _is_torn(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def unknown(name: str) -> UnknownExperimentError:
    """There is no experiment of this name."""
    return UnknownExperimentError(f"an experiment must be created first, but {name!r} was not")


def sought(name: str) -> str:
    """A name to look for; what no database takes is the name of no experiment."""
    if not is_storable(name):
        raise unknown(name)
    return name


def is_typed(part: NamedTuple) -> bool:
    """Whether each field is of its type; a whole number may stand for a float."""
    kinds = type(part).__annotations__.values()
    return all(_is_a(value, kind) for value, kind in zip(part, kinds, strict=True))


def _is_a(value: Any, kind: Any) -> bool:
    if kind in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)


def same_settings(experiment: Experiment, settings: str) -> Experiment:
    """The experiment, if it was created with these settings."""
    if experiment.settings != settings:
        raise ExperimentConflictError(
            f"an experiment keeps its settings, but for {experiment.name!r} got others: "
            f"{_difference(experiment.settings, settings)}"
        )
    return experiment


def _difference(kept: str, given: str) -> str:
    """What differs between two texts of settings, by name if they are JSON."""
    with suppress(ValueError, AttributeError, TypeError):
        before, after = json.loads(kept), json.loads(given)
        names = sorted(k for k in before | after if before.get(k) != after.get(k))
        return ", ".join(_changed(name, before.get(name), after.get(name)) for name in names)
    return f"{kept} before and {given} now"


def _changed(name: str, before: object, after: object) -> str:
    if name not in FROM_THE_BEGINNING:
        return f"{name} {before} before and {after} now"
    had, has = ("given" if one else "not given" for one in (before, after))
    return f"{FROM_THE_BEGINNING[name]} {had} before and {has} now (from the beginning or never)"


def appendable(experiment: Experiment) -> Experiment:
    """The experiment, if it is not archived."""
    if experiment.archived:
        raise ExperimentConflictError(
            f"nothing is appended to an archived experiment, but {experiment.name!r} is one"
        )
    return experiment


def erasable(experiment: Experiment, until: int, has_snapshot: bool) -> None:
    """Refuse to erase what nothing stands for."""
    if not experiment.begins <= until <= experiment.head or not has_snapshot:
        raise InputError(
            f"a position between {experiment.begins} and {experiment.head} with a snapshot is "
            f"needed to erase what is before it, but got {until}"
        )


def there_already(experiment: Experiment) -> ExperimentConflictError:
    """An experiment of this name is in the store."""
    return ExperimentConflictError(
        f"an experiment is taken over under a name that is free, but {experiment.name!r} is taken"
    )


def adoptable(experiment: Experiment, records: Iterable[Record]) -> Iterator[Record]:
    """The records of an experiment; those that no store could have appended are refused."""
    position, time = experiment.begins, 0.0
    counts = (experiment.begins, experiment.head, experiment.numbers)
    times = (experiment.time, experiment.clock_offset)
    if min(counts) < 0 or max(counts) > MOST or not all(0.0 <= at < math.inf for at in times):
        raise InputError(f"an experiment must be as it was exported, but got {experiment}")
    storable(experiment.settings)
    once, last_early = Once(experiment.begins == 0), 0
    for record in records:
        for text in record[2:]:
            storable(text)
        once.take(record)
        if _is_early(experiment, record) and position == experiment.begins:
            if not last_early < record.position or not 0.0 <= record.time <= experiment.time:
                raise InputError(f"records must be in their order, but got {record.position}")
            last_early = record.position
            yield record
            continue
        if record.position != position + 1 or not time <= record.time <= experiment.time:
            raise InputError(
                f"record {position + 1} must follow, not before {time}, but got record "
                f"{record.position} at {record.time}"
            )
        position, time = record.position, record.time
        yield record
    if position != experiment.head:
        raise InputError(f"{experiment.head} records are needed, but got {position}")


def _is_early(experiment: Experiment, record: Record) -> bool:
    """Whether a record was kept because its decision was open, while those around were erased."""
    return record.position <= experiment.begins and record.opens is not None


class Once:
    """That decisions are opened once and closed once, and keys are taken once.

    is_all : whether nothing was erased, so that what is closed must have been opened.
    """

    def __init__(self, is_all: bool) -> None:
        self.is_all = is_all
        self.opened, self.closed, self.keys = set[str](), set[str](), set[str]()

    def take(self, record: Record) -> None:
        """Take the next record of a ledger, or refuse it."""
        for name, known in zip(record[4:], (self.opened, self.closed, self.keys), strict=True):
            if name is None:
                continue
            if name in known:
                raise InputError(
                    f"a decision is opened and closed once, and a key taken once, but record "
                    f"{record.position} does so again with {name!r}"
                )
            known.add(name)
        if record.closes is not None and self.is_all and record.closes not in self.opened:
            raise InputError(
                f"a decision must be opened before it is closed, but record {record.position} "
                f"closes {record.closes!r}"
            )


def token_taken(name: str) -> ExperimentConflictError:
    """A token of this name is there."""
    return ExperimentConflictError(f"a token needs a name that is free, but {name!r} is taken")


def token_unknown(name: str) -> InputError:
    """There is no token of this name."""
    return InputError(f"a token must be there to be revoked, but {name!r} is not")
