"""Findings: what was found, as text that a shop manager can read, and as dictionaries."""

import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["Finding", "Findings", "Level"]

Level = Literal["note", "warning", "serious"]
LEVELS: tuple[Level, ...] = ("serious", "warning", "note")
OVERALL = "overall"
WIDTH = 88


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One assumption that the data contradict.

    level : `"serious"`, what is learned is wrong or will be; `"warning"`, it costs; `"note"`.
    name : of the check.
    where : a bin in words, or `"overall"`.
    evidence, measure : a number, and what it is.
    advice : what to do, in one sentence.
    bins : the numbers of the bins it concerns; none: overall.
    """

    level: Level
    name: str
    where: str
    evidence: float
    measure: str
    advice: str
    bins: tuple[int, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.level.upper()}: {self.name} ({self.where})"]
        lines += _wrapped(f"{self.measure}: {_number(self.evidence)}")
        return "\n".join([*lines, *_wrapped(self.advice)])

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self) | {"bins": list(self.bins)}


class Findings(list[Finding]):
    """All that was found, the worst first; printed, text that needs no other.

    payoffs : how many were looked at.
    unchecked : the checks that could not be made, and why.
    """

    def __init__(self, found: Iterable[Finding], payoffs: int, unchecked: dict[str, str]) -> None:
        super().__init__(sorted(found, key=lambda finding: LEVELS.index(finding.level)))
        self.payoffs, self.unchecked = payoffs, unchecked

    def __str__(self) -> str:
        n = len(self)
        if not n and not self.payoffs:
            return "No payoff was learned yet: there is nothing to check."
        what = f"{n} finding{'s' if n > 1 else ''}" if n else "Nothing was found"
        parts = [f"{what} in {self.payoffs:,} payoffs.", *map(str, self)]
        if self.unchecked:
            lines = ["Not checked:"]
            for name, why in self.unchecked.items():
                lines += _wrapped(f"{name}: {why}")
            parts.append("\n".join(lines))
        return "\n\n".join(parts)

    def dicts(self) -> list[dict[str, Any]]:
        """One dictionary of plain values per finding."""
        return [finding.to_dict() for finding in self]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False
    )


def _number(value: float) -> str:
    if value >= 100.0 and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.3g}"
