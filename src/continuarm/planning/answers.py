"""The numbers of a first day in tables and sentences."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from continuarm.table import Table

if TYPE_CHECKING:
    from continuarm.planning.first_day import FirstDay

__all__ = ["count", "frontier", "improvement", "number", "report", "text", "verdicts"]

WIDTH = 88  # of a printed line


def count(decisions: float) -> str:
    """A number of decisions as people write it."""
    return f"{math.ceil(decisions):,}"


def percent(part: float) -> str:
    """A part as percents."""
    return f"{100.0 * part:.3g} %"


def improvement(day: "FirstDay") -> str:
    """The improvement to be seen."""
    share = "" if day.mean is None else f" ({percent(day.gain / day.mean)})"
    return f"{day.gain:.4g}{share}"


def text(day: "FirstDay") -> str:
    """The whole answer."""
    title = (
        f"{day.decisions:,} decisions within reach {day.reach:g} of the start, "
        f"noise {day.noise:.4g}, curvature {day.curvature:.4g}"
    )
    points = "\n".join(_point(line) for line in (*verdicts(day), *day.notes))
    return f"{title}\n\n{questions(day)}\n\n{points}\n\n{day.table()}"


def _point(line: str) -> str:
    return textwrap.fill(line, WIDTH, initial_indent="- ", subsequent_indent="  ")


def questions(day: "FirstDay") -> Table:
    """Each question with its answer for the two ways to draw within reach."""
    rows: list[tuple[str, ...]] = [
        ("a decision costs, on average", *map(number, day.per_decision)),
        ("the day costs, if nothing is learned", *map(number, day.day)),
    ]
    if day.mean is not None:
        shares = [percent(cost / day.mean) for cost in day.per_decision]
        rows.append(("that is, of the mean payoff", *shares))
    rows.append((f"decisions until {improvement(day)} more is seen", *map(count, day.seen_after)))
    if day.seen_at_the_latest is not None:
        rows.append(("the same, if the payoff is flat", *map(count, day.seen_at_the_latest)))
    rows.append(("until it is seen it costs", *[number(day.cost_until_seen)] * 2))
    return Table.of(("", "drawn evenly", "at the ends of the reach"), rows)


def number(value: float) -> str:
    """An amount as people write it."""
    return f"{value:.4g}" if value < 1e4 else f"{value:,.0f}"


def verdicts(day: "FirstDay") -> list[str]:
    """What follows from the numbers, in words."""
    lines = [_in_time(day)]
    if day.budget is not None:
        lines.append(_in_budget(day, day.budget))
    lines.append(
        f"Seeing it costs as much as {count(day.pays_back_after)} decisions with the improvement "
        "gain, at any reach."
    )
    lines.append(
        "If noise also leads the centre a reach astray, the day costs "
        f"{number(day.astray)} instead of {number(day.day.ends)}."
    )
    if day.worst_decision is not None:
        worst = number(day.worst_decision)
        lines.append(f"No decision within reach of the start costs more than {worst}.")
    return lines


def _in_time(day: "FirstDay") -> str:
    latest = day.seen_at_the_latest
    if latest is not None and latest.even <= day.decisions:
        return f"The improvement can be seen within the {day.decisions:,} decisions."
    if day.seen_after.even <= day.decisions:
        flat = "very flat" if latest is None else "flat"
        return f"The improvement can be seen within the day, unless the payoff is {flat}."
    if day.seen_after.ends <= day.decisions:
        found = "The improvement can only just be seen within the day"
    else:
        found = f"The improvement cannot be seen within the {day.decisions:,} decisions"
    if day.reach_in_time is None:
        return f"{found}, nor surely at any other reach."
    return f"{found}: a reach of {day.reach_in_time:.2g} would be needed."


def _in_budget(day: "FirstDay", budget: float) -> str:
    allowed, widest = day.budget_of_day or 0.0, day.reach_in_budget or 0.0
    kept = f"A budget of {percent(budget)} ({number(allowed)}) is kept by a reach of {widest:.2g}"
    if day.reach_in_time is not None and day.reach_in_time <= widest:
        return f"{kept}; from {day.reach_in_time:.2g} on the improvement is seen in time, too."
    needed = day.with_reach(widest).cost_until_seen
    if needed <= allowed:
        return f"{kept}; the improvement is seen in time if decisions lean to its ends."
    return (
        f"{kept}. But seeing the improvement costs {number(needed)}, at any reach: budget and "
        "time cannot both be had. With this budget it takes "
        f"{count(day.decisions * needed / allowed)} decisions."
    )


def frontier(days: Sequence["FirstDay"]) -> Table:
    """A row for each reach, with both ways to draw within it."""
    columns = (
        "reach",
        "cost, evenly",
        "cost, at ends",
        "seen, evenly",
        "seen, at ends",
        "cost until seen",
    )
    rows = [
        (day.reach, *day.per_decision, *map(math.ceil, day.seen_after), day.cost_until_seen)
        for day in days
    ]
    return Table.of(columns, rows)


def report(day: "FirstDay") -> dict[str, Any]:
    """All numbers as one JSON object."""
    latest = day.seen_at_the_latest
    names = ("reach", "cost_even", "cost_ends", "seen_even", "seen_ends", "cost_until_seen")
    return asdict(day) | {
        "notes": list(day.notes),
        "coefficients": day.coefficients,
        "per_decision": day.per_decision._asdict(),
        "day": day.day._asdict(),
        "astray": day.astray,
        "worst_decision": day.worst_decision,
        "at_edge": day.at_edge,
        "seen_after": day.seen_after._asdict(),
        "seen_at_the_latest": latest._asdict() if latest else None,
        "cost_until_seen": day.cost_until_seen,
        "pays_back_after": day.pays_back_after,
        "reach_in_time": day.reach_in_time,
        "reach_in_budget": day.reach_in_budget,
        "budget_of_day": day.budget_of_day,
        "verdicts": verdicts(day),
        "frontier": [dict(zip(names, row, strict=True)) for row in day.table().rows],
    }
