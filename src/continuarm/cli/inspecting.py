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
from continuarm.live.explaining import start_given
from continuarm.live.explanation import Explanation
from continuarm.live.policy import Policy, load
from continuarm.table import Table
from continuarm.words import box_in_words, label_of, values_in_words

__all__ = ["Inspected", "inspected"]
MOST_ALONG = 6  # contexts along which what was learned is drawn


class Inspected(NamedTuple):
    """What was found, for people and for programs."""

    text: str
    plain: dict[str, Any]


def inspected(
    file: str, contexts: Sequence[str], most: int | None, plot: str | None = None
) -> Inspected:
    """What the policy of a file has learned; the largest bins first, at most so many."""
    policy = load(file)
    if plot is not None:
        check_path(plot)
    summary, bins = _summary(policy), _bins(policy)
    shown = bins.rows if most is None else bins.rows[:most]
    parts = [str(summary), f"{Table.of(bins.columns, shown)}"]
    if len(shown) < len(bins.rows):
        parts.append(f"and {len(bins.rows) - len(shown):,} more bins: --all")
    findings = policy.diagnose()
    parts.append(str(findings))
    plain: dict[str, Any] = {"policy": dict(summary.rows), "bins": bins.dicts()}
    plain |= {"findings": findings.dicts(), "unchecked": findings.unchecked}
    explanation = policy.explain(_context(policy, contexts)) if contexts else None
    if explanation is not None:
        parts.append(str(explanation))
        plain["explanation"] = dict(explanation)
    if plot is not None:
        plain["figures"] = _drawn(policy, explanation, Path(plot))
        parts.append("\n".join(plain["figures"]))
    return Inspected("\n\n".join(parts), plain)


def _drawn(policy: Policy, explanation: Explanation | None, path: Path) -> list[str]:
    """Draw the figures that make sense; their files."""
    draws: dict[str, Callable[[Path], object]] = {}
    at = None if explanation is None else explanation["context"]
    for name in policy.context.names[:MOST_ALONG]:
        along = "learned" if policy.context.dim == 1 else f"learned-{_in_a_file(name)}"
        draws[along] = partial(policy.plot_learned, name, at)
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
    stats = policy.stats()
    rows: list[tuple[str, Any]] = [
        ("policy", policy.name),
        ("contexts", _ranges(policy.context) or "none"),
        ("decision", _ranges(policy.decision)),
        ("payoffs in today's bins", sum(stats.payoffs_per_bin)),
        ("decisions asked", stats.asked),
        ("told", stats.told),
        ("open", stats.open),
        ("expired", stats.expired),
        ("forgotten", stats.forgotten),
        ("bins", stats.bins),
        ("mean payoff lately", stats.mean_payoff),
        ("paused", "yes" if policy.paused else "no"),
        ("frozen segments", "; ".join(_frozen(policy)) or "none"),
        ("frozen bins", ", ".join(str(one.id) for one in policy.bins() if one.frozen) or "none"),
    ]
    rows += _guards(policy)
    if policy.share > 0.0:
        rows.append(("uplift", str(policy.uplift())))
    return Table.of(("", "what"), rows)


def _frozen(policy: Policy) -> list[str]:
    """The segments that are frozen, the one that answers first before others."""
    segments = (segment for segment, _ in policy.life.segments)
    return [f"{one.in_words(policy.context)}, {one.since()}" for one in segments]


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
