"""What was answered, as its customers note it: nothing of this comes from the package.

Each answer is a line of a file, on the disk before the next request. Processes may share a file.
"""

import json
import os
from pathlib import Path
from typing import NamedTuple

from benchmarks.attacks.result import Defect

__all__ = ["Acknowledged", "Asked", "Log", "acknowledged"]


class Asked(NamedTuple):
    """A decision that was answered: under this number, for this key, with these values."""

    id: str
    key: str | None
    values: list[float]


class Acknowledged(NamedTuple):
    """All that was answered: decisions and payoffs by the decision's number."""

    asked: dict[str, Asked]
    told: dict[str, float]


class Log:
    """A file of answers, which only grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)

    def asked(self, experiment: str, answers: list[Asked]) -> None:
        """Note decisions."""
        self._note([["asked", experiment, *one] for one in answers])

    def told(self, experiment: str, payoffs: dict[str, float]) -> None:
        """Note payoffs that were acknowledged."""
        self._note([["told", experiment, id_, payoff] for id_, payoff in payoffs.items()])

    def _note(self, lines: list[list[object]]) -> None:
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        written = os.write(self._file, text)  # all at once: no lock, which a fork might copy
        assert written == len(text), "the log must have room"
        os.fsync(self._file)

    def close(self) -> None:
        """Write no more."""
        os.close(self._file)


def acknowledged(path: Path, experiment: str, first: int = 0) -> Acknowledged:
    """What a log has for an experiment from a line on; a number must have had one meaning."""
    found = Acknowledged({}, {})
    keys: dict[str, str] = {}
    for line in path.read_text().splitlines()[first:]:
        kind, name, *rest = json.loads(line)
        if name != experiment:
            continue
        if kind == "told":
            id_, payoff = rest
            _same(found.told.setdefault(id_, payoff), payoff, f"the payoff of {id_}")
            continue
        one = Asked(*rest)
        _same(found.asked.setdefault(one.id, one), one, f"the decision {one.id}")
        if one.key is not None:
            _same(keys.setdefault(one.key, one.id), one.id, f"the key {one.key!r}")
    return found


def _same(before: object, now: object, what: str) -> None:
    if before != now:
        raise Defect(f"{what} was answered as {before!r}, and later as {now!r}")
