"""What must hold of a ledger, read by plain SQL: nothing of this comes from the package."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg

from benchmarks.attacks.acknowledged import Acknowledged
from benchmarks.attacks.result import Defect, Tally

__all__ = ["check", "command", "replayed", "rows"]

HEAD = "SELECT number, begins, head, time FROM experiments WHERE name = ?"
EVENTS = (
    "SELECT position, time, kind, body, opens, closes, client_key FROM events "
    "WHERE experiment = ? ORDER BY position"
)
SOME = 3  # that are named of what is lost
PATIENCE = 900.0


class _Event(NamedTuple):
    position: int
    time: float
    kind: str
    body: str
    opens: str | None
    closes: str | None
    key: str | None


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    if not address.startswith("postgresql://"):
        connection = sqlite3.connect(f"file:{address}?mode=ro", uri=True, timeout=30.0)
        try:
            yield connection.execute
        finally:
            connection.close()
        return
    with psycopg.connect(address) as far:
        yield lambda text, given=(): far.execute(text.replace("?", "%s"), given)


def rows(address: str, statement: str, *given: object) -> list[Any]:
    """What a statement finds in a store."""
    with _connected(address) as execute:
        return list(execute(statement, given))


def check(address: str, experiment: str, known: Acknowledged, tally: Tally) -> int:
    """Compare a ledger with what was acknowledged; how many events it has.

    Every acknowledged decision is there once, with its values and its key; every payoff closes its
    decision once, with its value; positions are dense, and times never go back.
    """
    with _connected(address) as execute:
        found = list(execute(HEAD, (experiment,)))
        if len(found) != 1:
            raise Defect(f"the store has {len(found)} experiments {experiment!r}")
        number, begins, head, last = found[0]
        seen = _Seen(begins)
        for row in execute(EVENTS, (number,)):
            seen.look(_Event(*row))
    if seen.position != head or seen.time > last:
        raise Defect(
            f"the ledger ends at {seen.position}, {seen.time}, but says {head} and {last}"
        )
    _compare(seen, known, tally)
    return int(head)


class _Seen:
    """A ledger as it is read, event by event."""

    def __init__(self, begins: int) -> None:
        self.begins, self.position, self.time = begins, begins, 0.0
        self.opened: dict[str, _Event] = {}
        self.closed: dict[str, _Event] = {}
        self.keys: set[str] = set()

    def look(self, event: _Event) -> None:
        if event.position > self.begins:
            if event.position != self.position + 1:
                raise Defect(f"position {event.position} follows position {self.position}")
            self.position = event.position
        if event.time < self.time:
            raise Defect(f"time goes back at {event.position}: {event.time} after {self.time}")
        self.time = event.time
        if event.opens is not None:
            self._once(self.opened, event.opens, event)
        if event.closes is not None:
            self._once(self.closed, event.closes, event)
            if event.closes not in self.opened and not self.begins:
                raise Defect(f"position {event.position} closes {event.closes}, never asked")
        if event.key is not None:
            if event.key in self.keys:
                raise Defect(f"position {event.position} has the key {event.key!r} again")
            self.keys.add(event.key)

    @staticmethod
    def _once(seen: dict[str, _Event], id_: str, event: _Event) -> None:
        if id_ in seen:
            raise Defect(f"{id_} is {event.kind} at {seen[id_].position} and {event.position}")
        seen[id_] = event


def _compare(seen: _Seen, known: Acknowledged, tally: Tally) -> None:
    """Count what is lost or another; a Defect names some of it."""
    lost = [id_ for id_ in known.asked if id_ not in seen.opened]
    lost += [id_ for id_ in known.told if id_ not in seen.closed]
    wrong = []
    for id_, asked in known.asked.items():
        event = seen.opened.get(id_)
        if event is not None and (json.loads(event.body)["value"], event.key) != asked[:0:-1]:
            wrong.append(f"{id_}: {asked} was answered, {event} is kept")
    for id_, payoff in known.told.items():
        event = seen.closed.get(id_)
        if event is not None and (event.kind, _payoff(event)) != ("told", payoff):
            wrong.append(f"{id_}: the payoff {payoff} was acknowledged, {event} is kept")
    tally.lost += len(lost)
    tally.wrong += len(wrong)
    if lost:
        many = len(known.asked) + len(known.told)
        raise Defect(f"{len(lost)} of {many} acknowledged are lost, such as {lost[:SOME]}")
    if wrong:
        raise Defect(f"{len(wrong)} are others than acknowledged: {wrong[0]}")


def _payoff(event: _Event) -> Any:
    return json.loads(event.body).get("payoff")


def command(*words: str, patience: float = PATIENCE, **more: Any) -> str:
    """Run `continuarm` with these words, which must succeed; what it prints."""
    full = [sys.executable, "-m", "continuarm", *words]
    done = subprocess.run(full, capture_output=True, text=True, timeout=patience, **more)
    if done.returncode != 0:
        raise Defect(f"`continuarm {' '.join(words)}`: {done.stderr.strip()[-600:]}")
    return str(done.stdout)


def replayed(address: str, experiment: str) -> None:
    """Fold the ledger again by the package's own command."""
    command("replay", experiment, "--store", address)
