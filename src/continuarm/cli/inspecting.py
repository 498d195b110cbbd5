"""What `continuarm inspect` calls: the file, the tables, the explanation."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from continuarm.checks import among
from continuarm.drawing import check_path
from continuarm.errors import InputError
from continuarm.live.active_guards import coupled_in_words, spacing_in_words
from continuarm.live.cells import Cell
from continuarm.live.explaining import start_given
from continuarm.live.explanation import Explanation
from continuarm.live.policy import Policy, load
from continuarm.plots.cells import cells_table
from continuarm.plots.subject import others
from continuarm.table import Table
from continuarm.words import box_in_words, label_of, plus_minus, values_in_words

__all__ = ["Inspected", "inspected"]
SURE = 2.0  # standard errors
MOST_ALONG = 6  # contexts along which what was learned is drawn


class Inspected(NamedTuple):
    """What was found, for people and for programs."""

    text: str
    plain: dict[str, Any]


def inspected(
    file: str,
    contexts: Sequence[str],
    most: int | None,
    plot: str | None = None,
    along: Sequence[str] | None = None,
    cells: int = 4,
) -> Inspected:
    """What the policy of a file has learned; the largest bins first, at most so many.

    Of a policy that has only one bin, its cells: so many along each of these contexts.
    """
    policy = load(file)
    if plot is not None:
        check_path(plot)
    if along is not None and not policy.has_one_bin:
        raise InputError(f"--along is for a policy with one bin, but got {list(along)}")
    explanation = policy.explain(_context(policy, contexts)) if contexts else None
    at = None if explanation is None else explanation["context"]
    summary = _summary(policy)
    plain: dict[str, Any] = {"policy": dict(summary.rows)}
    parts = [str(summary)]
    if policy.has_one_bin:
        parts.append(_cells_in_words(policy, policy.cells(along=along, parts=cells, at=at)))
        plain["cells"] = cells_table(policy, along, at, parts=cells).dicts()
    else:
        bins = _bins(policy)
        shown = bins.rows if most is None else bins.rows[:most]
        parts.append(str(Table.of(bins.columns, shown)))
        plain["bins"] = bins.dicts()
        if len(shown) < len(bins.rows):
            parts.append(f"and {len(bins.rows) - len(shown):,} more bins: --all")
    findings = policy.diagnose()
    parts.append(str(findings))
    plain |= {"findings": findings.dicts(), "unchecked": findings.unchecked}
    if explanation is not None:
        parts.append(str(explanation))
        plain["explanation"] = dict(explanation)
    if plot is not None:
        plain["figures"] = _drawn(policy, explanation, Path(plot), along, cells)
        parts.append("\n".join(plain["figures"]))
    return Inspected("\n\n".join(parts), plain)


def _drawn(
    policy: Policy,
    explanation: Explanation | None,
    path: Path,
    along: Sequence[str] | None,
    parts: int,
) -> list[str]:
    """Draw the figures that make sense; their files."""
    draws: dict[str, Callable[[Path], object]] = {}
    at = None if explanation is None else explanation["context"]
    for name in policy.context.names[:MOST_ALONG]:
        what = "learned" if policy.context.dim == 1 else f"learned-{_in_a_file(name)}"
        draws[what] = partial(policy.plot_learned, name, at)
    if policy.has_one_bin:
        draws["cells"] = lambda file: policy.plot_cells(along, at, path=file, parts=parts)
    else:
        draws["bins"] = lambda file: policy.plot_bins(at=at, path=file)
    draws["history"] = policy.plot_history
    if explanation is not None or policy.context.dim == 0:
        draws["payoff"] = lambda file: policy.plot_payoff(at or (), path=file)
    if explanation is not None:
        draws["explanation"] = explanation.plot
    files = []
    for what, draw in draws.items():
        file = path.with_name(f"{path.stem}-{what}{path.suffix}")
        draw(file)
        files.append(str(file))
    return files


def _in_a_file(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name)


def _summary(policy: Policy) -> Table:
    """One line per fact."""
    stats, one = policy.stats(), policy.has_one_bin
    rows: list[tuple[str, Any]] = [
        ("policy", policy.name),
        ("contexts", _ranges(policy.context) or "none"),
        ("decision", _ranges(policy.decision)),
        ("payoffs learned" if one else "payoffs in today's bins", sum(stats.payoffs_per_bin)),
        ("decisions asked", stats.asked),
        ("told", stats.told),
        ("open", stats.open),
        ("expired", stats.expired),
        ("forgotten", stats.forgotten),
        *([] if one else [("bins", stats.bins)]),
        ("mean payoff lately", stats.mean_payoff),
        ("paused", "yes" if policy.paused else "no"),
        ("frozen segments", "; ".join(_frozen(policy)) or "none"),
        _frozen_bins(policy),
    ]
    rows += _guards(policy)
    if policy.share > 0.0:
        rows.append(("uplift", str(policy.uplift())))
    return Table.of(("", "what"), rows)


def _frozen(policy: Policy) -> list[str]:
    """The segments that are frozen, the one that answers first before others."""
    segments = (segment for segment, _ in policy.life.segments)
    return [f"{one.in_words(policy.context)}, {one.since()}" for one in segments]


def _frozen_bins(policy: Policy) -> tuple[str, str]:
    """Which bins are frozen, by their numbers; of the only one, whether it is."""
    frozen = [str(one.id) for one in policy.bins() if one.frozen]
    if policy.has_one_bin:
        return "frozen as a whole", "yes" if frozen else "no"
    return "frozen bins", ", ".join(frozen) or "none"


def _guards(policy: Policy) -> list[tuple[str, Any]]:
    """What holds decisions back, where it is set."""
    move, limits = _around(policy, policy.max_move), policy.decision
    waits = [f"{limit:,g} {unit}" for limit, unit in _waits(policy) if limit is not None]
    rows = [
        ("start", _start(policy)),
        ("reach", _around(policy, policy.reach)),
        ("max_move", f"{move} from the reference" if move else ""),
        ("share of the incumbent", policy.share or ""),
        ("spacing", spacing_in_words(limits)),
        ("coupled limits", coupled_in_words(limits)),
        ("ttl", " or ".join(waits)),
    ]
    return [(name, says) for name, says in rows if says]


def _waits(policy: Policy) -> tuple[tuple[float | None, str], ...]:
    return (policy.ttl, "decisions"), (policy.ttl_seconds, "seconds")


def _start(policy: Policy) -> str:
    """What is done today; empty: nobody has said, and nothing depends on it."""
    incumbent = policy.life.incumbent
    if not start_given(policy):
        middle = values_in_words(policy.decision.centre, policy.decision)
        needed = policy.share > 0.0 or policy.max_move is not None
        says = f"not given: the middle of the box, {middle}, stands for what is done today"
        return says if needed else ""
    if incumbent.constant is not None:
        return values_in_words(incumbent.constant, policy.decision)
    return repr(policy.start)


def _around(policy: Policy, away: Any) -> str:
    """How far each coordinate may be, but for those that may be anywhere."""
    box = policy.decision
    if away is None:
        return ""
    parts = zip(box.names, away.tolist(), box.span.tolist(), strict=True)
    return ", ".join(
        f"{label_of(name, box)} ± {part:g}" for name, part, side in parts if part < side
    )


def _ranges(box: Any) -> str:
    edges = zip(box.names, box.low.tolist(), box.high.tolist(), strict=True)
    parts = [f"{f'{name} ' if box.named else ''}{low:g} to {high:g}" for name, low, high in edges]
    return ", ".join(parts)


def _bins(policy: Policy) -> Table:
    """The bins, those with most payoffs first."""
    found = sorted(policy.bins(), key=lambda one: -one.told)
    rows = [
        (
            one.id,
            box_in_words(one.low, one.high, policy.context),
            one.told,
            values_in_words(one.best, policy.decision),
        )
        for one in found
    ]
    return Table.of(("bin", "contexts", "payoffs", "best decision in its middle"), rows)


def _cells_in_words(policy: Policy, cells: Sequence[Cell]) -> str:
    """The cells as a table for people."""
    rows = [
        (
            one.in_words(policy.context),
            values_in_words(one.best, policy.decision),
            _sure(one.expected, one.expected_error),
            _sure(one.gain, one.gain_error, sign=True),
            "yes" if one.is_shown() else "not yet",
            "yes" if one.frozen else "",
        )
        for one in cells
    ]
    first = cells[0]
    shown = [policy.context.names.index(name) for name in first.where]
    held = others(policy.context, first.context, shown)
    says = f"Other contexts are held at {held}." if held else ""
    if any("\N{PLUS-MINUS SIGN}" in str(row) for row in rows):
        says = f"{says} Each ± is two standard errors.".strip()
    columns = ("contexts", "best decision in the middle", "expected", "more than today")
    table = Table.of((*columns, "payoffs show it", "frozen"), rows)
    return f"{table}\n\n{says}".strip()


def _sure(value: float | None, error: float | None, *, sign: bool = False) -> str:
    if value is None:
        return ""
    plus = "+" if sign else ""
    return f"{value:{plus}.4g}" if error is None else plus_minus(value, SURE * error, sign=sign)


def _context(policy: Policy, texts: Sequence[str]) -> Any:
    given = dict[str, float]()
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not name or name in given or math.isnan(number):
            raise InputError(f"`NAME=NUMBER` is needed once for each name, but got {text!r}")
        given[name] = number
    if policy.context.named:
        return given
    wanted = list(policy.context.names)
    if sorted(given) != sorted(wanted):
        raise InputError(f"--context must give {among(wanted)}, but got {among(given)}")
    return [given[name] for name in wanted]
