"""An experiment as lines of JSON, which another store takes over: settings, events, snapshots."""

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, Protocol, TypeVar

from continuarm.errors import InputError
from continuarm.store.checksums import checksum_of, fits, is_whole
from continuarm.store.protocol import Store
from continuarm.store.records import Experiment, Record, Snapshot
from continuarm.store.rules import is_typed, named

__all__ = ["Check", "read_lines", "written_lines"]

FORMAT = 1
LONGEST_SHOWN = 200  # characters
Part = TypeVar("Part", Experiment, Record, Snapshot)


def written_lines(
    store: Store, name: str, snapshots: Iterable[Snapshot] | None = None
) -> Iterator[str]:
    """An experiment as it is now, one line at a time.

    snapshots : those that are written; None: all that are kept.
    """
    experiment = store.experiment(name)
    yield json.dumps({"continuarm": FORMAT, **experiment._asdict()})
    for snapshot in _kept(store, name) if snapshots is None else snapshots:
        if snapshot.position <= experiment.head and is_whole(snapshot):
            state = base64.b64encode(snapshot.state).decode()
            yield json.dumps({"snapshot": {**snapshot._asdict(), "state": state}})
    for record in store.kept_open(name):
        yield _line_of(record)
    position = experiment.begins
    while position < experiment.head:
        for record in store.read(name, position):
            if record.position <= experiment.head:
                yield _line_of(record)
            position = record.position


def _line_of(record: Record) -> str:
    return json.dumps({"event": record._asdict(), "checksum": checksum_of(record)})


def _kept(store: Store, name: str) -> Iterator[Snapshot]:
    for kept in store.kept(name):
        snapshot = store.snapshot(name, *kept[:2])
        if snapshot is not None:
            yield snapshot


class Check(Protocol):
    """What else parts of an experiment must be; an InputError says why one is not."""

    def snapshot(self, snapshot: Snapshot) -> None: ...

    def record(self, record: Record) -> None: ...


def read_lines(
    store: Store,
    lines: Iterable[str],
    name: str | None = None,
    check: Callable[[Experiment], Check] | None = None,
) -> Experiment:
    """Take over an experiment that was written so, under its name or another one.

    check : makes what looks at each part before it is taken over.
    """
    read = _Lines(lines)
    try:
        parts = read.parts()
        experiment = next(parts, None)
        if not isinstance(experiment, Experiment):
            raise InputError("it must be that of an experiment, but is not")
        experiment = experiment._replace(name=named(experiment.name if name is None else name))
        snapshots: list[Snapshot] = []  # filled while records are read, which is done first
        looks = None if check is None else check(experiment)
        store.adopt(experiment, _records(parts, snapshots, looks), snapshots)
    except InputError as error:
        raise InputError(f"line {read.number}: {error}") from None
    return experiment


def _records(
    parts: Iterator[Any], snapshots: list[Snapshot], check: Check | None
) -> Iterator[Record]:
    """The events; snapshots are set aside."""
    known = set[tuple[int, str]]()
    for part in parts:
        if isinstance(part, Snapshot):
            if part[:2] in known:
                raise InputError(f"a snapshot is kept once, but got {part[:2]} again")
            known.add(part[:2])
            snapshots.append(part)
            if check is not None:
                check.snapshot(part)
        else:
            if check is not None:
                check.record(part)
            yield part


class _Lines:
    """Lines of an export, and the number of the one that was read last."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines, self.number = lines, 1
        self._checked: bool | None = None  # whether events have checksums: all, or none

    def parts(self) -> Iterator[Experiment | Record | Snapshot]:
        for number, line in enumerate(self._lines, 1):
            self.number = number
            try:
                plain = json.loads(line, parse_constant=_refuse)
                self._check_checked(plain)
                yield _part(plain, first=number == 1)
            except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
                words = _in_words(error)
                raise InputError(f"it must be as it was exported, but {words}") from None

    def _check_checked(self, plain: Any) -> None:
        """Refuse an event without a checksum beside others with one, or the other way round."""
        if "event" in plain:
            checked = plain.get("checksum") is not None
            if checked is not (checked if self._checked is None else self._checked):
                raise ValueError("events with and without a checksum")
            self._checked = checked


def _in_words(error: Exception) -> str:
    """What is wrong with a line."""
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON: {error.msg}, at character {error.pos + 1}"
    if isinstance(error, KeyError):
        return f"has no {error}"
    if isinstance(error, RecursionError):
        return "is nested too deep"
    if isinstance(error, AttributeError | TypeError):
        return "is no object with the fields of an export"
    return f"got {error}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _part(plain: dict[str, Any], first: bool) -> Experiment | Record | Snapshot:
    if first:
        if plain.pop("continuarm") != FORMAT:
            raise ValueError("another format")
        return _typed(Experiment(**plain))
    checksum = plain.pop("checksum", None)  # versions before wrote none
    [(kind, fields)] = plain.items()
    if kind == "event":
        record = _typed(Record(**fields))
        if not fits(record, checksum):
            raise ValueError(f"an event that its checksum {checksum!r} does not fit")
        return record
    if kind != "snapshot":
        raise ValueError(kind)
    state = base64.b64decode(fields["state"], validate=True)
    snapshot = _typed(Snapshot(**{**fields, "state": state}))
    if not is_whole(snapshot):
        raise ValueError(f"a state that its digest {snapshot.digest!r} does not fit")
    return snapshot


def _typed(part: Part) -> Part:
    """The same, if each field is of its type."""
    if not is_typed(part):
        raise ValueError(f"{part!r}"[:LONGEST_SHOWN])
    return part
