"""An experiment as lines of JSON, which another store takes over: settings, events, snapshots."""

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, TypeVar

from continuarm.errors import InputError
from continuarm.store.protocol import Store
from continuarm.store.records import Experiment, Record, Snapshot

__all__ = ["read_lines", "written_lines"]

FORMAT = 1
Part = TypeVar("Part", Experiment, Record, Snapshot)


def written_lines(store: Store, name: str) -> Iterator[str]:
    """An experiment as it is now, one line at a time."""
    experiment = store.experiment(name)
    yield json.dumps({"continuarm": FORMAT, **experiment._asdict()})
    for snapshot in store.snapshots(name):
        if snapshot.position <= experiment.head:
            state = base64.b64encode(snapshot.state).decode()
            yield json.dumps({"snapshot": {**snapshot._asdict(), "state": state}})
    for record in store.kept_open(name):
        yield json.dumps({"event": record._asdict()})
    position = experiment.begins
    while position < experiment.head:
        for record in store.read(name, position):
            if record.position <= experiment.head:
                yield json.dumps({"event": record._asdict()})
            position = record.position


def read_lines(store: Store, lines: Iterable[str], name: str | None = None) -> Experiment:
    """Take over an experiment that was written so, under its name or another one."""
    parts = _parts(lines)
    experiment = next(parts, None)
    if not isinstance(experiment, Experiment):
        raise InputError("the first line must be that of an experiment, but is not")
    if name is not None:
        experiment = experiment._replace(name=name)
    snapshots: list[Snapshot] = []  # filled while records are read, which is done first
    store.adopt(experiment, _records(parts, snapshots), snapshots)
    return experiment


def _records(parts: Iterator[Any], snapshots: list[Snapshot]) -> Iterator[Record]:
    """The events; snapshots are set aside."""
    for part in parts:
        if isinstance(part, Snapshot):
            snapshots.append(part)
        else:
            yield part


def _parts(lines: Iterable[str]) -> Iterator[Experiment | Record | Snapshot]:
    for number, line in enumerate(lines, 1):
        try:
            yield _part(json.loads(line, parse_constant=_refuse), first=number == 1)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"line {number} must be as it was exported, but {_in_words(error)}"
            ) from None


def _in_words(error: Exception) -> str:
    """What is wrong with a line."""
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON: {error.msg}, at character {error.pos + 1}"
    if isinstance(error, KeyError):
        return f"has no {error}"
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
    [(kind, fields)] = plain.items()
    if kind == "event":
        return _typed(Record(**fields))
    if kind != "snapshot":
        raise ValueError(kind)
    return _typed(
        Snapshot(**{**fields, "state": base64.b64decode(fields["state"], validate=True)})
    )


def _typed(part: Part) -> Part:
    """The same, if each field is of its type."""
    for name, kind in type(part).__annotations__.items():
        value = getattr(part, name)
        fits = type(value) is int if kind is int else isinstance(value, kind)
        if not fits and not (kind is float and type(value) is int):
            raise ValueError(f"{name}: {value!r}")
    return part
