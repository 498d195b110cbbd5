"""How a policy is seen: what its methods say, as messages.

Nothing is computed here: bins, findings and tables are those of `Policy` and of `plots`.
"""

from itertools import accumulate
from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.core import numbered_bins
from continuarm.ledger.entries import text_of
from continuarm.live.cells import Cell
from continuarm.live.decision import Bin
from continuarm.live.diagnosis.findings import Findings
from continuarm.live.policy import Policy
from continuarm.live.segments import Segment
from continuarm.live.uplift import Interval, Uplift
from continuarm.plots.history import history_table, pooled
from continuarm.plots.learned import learned_table
from continuarm.plots.payoff import payoff_table
from continuarm.plots.subject import dimension, filled
from continuarm.service import shown
from continuarm.service.beginnings import FIRST

__all__ = [
    "bin_seen",
    "box_seen",
    "by_name",
    "cells_seen",
    "curve_seen",
    "diagnosis_seen",
    "frozen_seen",
    "history_seen",
    "options_seen",
    "payoff_seen",
    "segment_seen",
    "trend_of",
    "uplift_seen",
]

PART = 8  # of all payoffs, lately
WHOSE: dict[str, shown.Whose] = {"ours": "ours", "incumbent's": "incumbent"}


def by_name(box: Box, values: Any) -> dict[str, float]:
    """Numbers by the names of a box."""
    return dict(zip(box.names, np.asarray(values).tolist(), strict=True))


def box_seen(box: Box, units: list[str] | None) -> shown.BoxSays:
    """A box."""
    edges = box.low.tolist(), box.high.tolist(), list(box.names), units
    return shown.BoxSays(
        *edges, list(box.spacing), list(box.ending), list(getattr(box, "texts", ()))
    )


def options_seen(policy: Policy, clips: bool) -> shown.OptionsSay:
    """The options of a policy."""
    numbers, move = policy.life.incumbent.numbers, policy.max_move
    return shown.OptionsSay(
        start=shown.Incumbent(numbers.first.tolist(), numbers.slopes.tolist()),
        reach=None if policy.reach is None else policy.reach.tolist(),
        memory=getattr(policy.life.beginning.learner, "memory", None),
        ttl=policy.ttl,
        ttl_seconds=policy.ttl_seconds,
        missing=policy.missing,
        share=policy.share,
        max_move=None if move is None else move.tolist(),
        outside="clip" if clips else "refuse",
    )


def frozen_seen(policy: Policy) -> shown.FrozenSays:
    """What is frozen."""
    life, context = policy.life, policy.context
    segments = [segment_seen(segment, context) for segment, _ in life.segments]
    return shown.FrozenSays(segments, numbered_bins.frozen(life.model.state))


def segment_seen(segment: Segment, context: Box) -> shown.SegmentSays:
    """A segment that is frozen."""
    where = {name: (rule.low, rule.high) for name, rule in segment.where.items()}
    text = f"{segment.in_words(context)}, {segment.since()}"
    return shown.SegmentSays(where, segment.asked, segment.at, text)


def trend_of(policy: Policy, named: dict[str, str], first: shown.Mean | None) -> shown.Trend:
    """What was paid at the beginning, and lately.

    named : what a payoff is, and its unit.
    first : the first payoffs; where they are not known, those that the history has together.
    """
    rows = sorted((row[1:] for row in history_table(policy).rows), key=lambda row: row[0])
    part = sum(row[2] for row in rows) / PART
    beginning = _mean(rows, FIRST) if first is None else first
    return shown.Trend(named.get("name"), named.get("unit"), beginning, _mean(rows[::-1], part))


def _mean(rows: list[tuple[Any, ...]], least: float) -> shown.Mean | None:
    """The mean of the first rows that have so many payoffs together."""
    counts = accumulate(row[2] for row in rows)
    taken = [row for row, count in zip(rows, counts, strict=True) if count - row[2] < least]
    if not taken:
        return None
    [(_, _, *numbers)] = pooled(taken, least=sum(row[2] for row in taken))
    return shown.Mean(*numbers)


def uplift_seen(found: Uplift) -> shown.UpliftSays:
    """How much better it is than the incumbent; decisions have the names that answers have."""
    text, awaited = str(found), found.awaited
    if awaited is not None:
        text = text.replace(f"decision {awaited.id},", f"decision {text_of(awaited.id)},")
    return shown.UpliftSays(
        _between(found.per_decision),
        _between(found.percent),
        found.counted,
        found.incumbents,
        found.waiting,
        found.confidence,
        text,
    )


def _between(found: Interval | None) -> shown.Between | None:
    return None if found is None else shown.Between(*found)


def diagnosis_seen(found: Findings) -> shown.Diagnosis:
    """What the checks have found."""
    findings = [
        shown.FindingSays(
            one.level, one.name, one.where, one.evidence, one.measure, one.advice, list(one.bins)
        )
        for one in found
    ]
    health: shown.Health = findings[0].level if findings else "good"
    return shown.Diagnosis(health, found.payoffs, findings, found.unchecked, str(found))


def bin_seen(policy: Policy, one: Bin) -> shown.BinSays:
    """A bin, and what was learned for its middle."""
    middle, names, life = 0.5 * (one.low + one.high), policy.decision.names, policy.life
    known = life.explain_learned(middle, life.near(middle, None, None))
    tried, error = known.get("tried"), known.get("peak_error")
    best = policy.decision.to_unit(one.best[None, :])
    expected = life.model.expected(middle, life.limits, best)  # thousands: nothing to check
    mean, spread = (None, None) if expected is None else expected[0].tolist()
    edges = None if tried is None else policy.decision.from_unit(tried).T.tolist()
    return shown.BinSays(
        id=one.id,
        low=one.low.tolist(),
        high=one.high.tolist(),
        level=one.level,
        visits=one.asked,
        payoffs=one.told,
        frozen=one.frozen,
        best=by_name(policy.decision, one.best),
        error=None if error is None else by_name(policy.decision, error),
        expected=mean,
        expected_error=spread,
        tried=None if edges is None else dict(zip(names, map(tuple, edges), strict=True)),
    )


def cells_seen(policy: Policy, along: list[str], parts: int, at: dict[str, float]) -> shown.Cells:
    """What is known in parts of one or two contexts."""
    cells = policy.cells(along=along or None, parts=parts, at=at)
    names = list(cells[0].where)
    middle = by_name(policy.context, cells[0].context)
    held = {name: value for name, value in middle.items() if name not in names}
    return shown.Cells(names, held, [_cell_seen(policy, one) for one in cells])


def _cell_seen(policy: Policy, one: Cell) -> shown.CellSays:
    decision, errors = policy.decision, None
    if one.peak_error is not None:
        errors = dict(zip(decision.names, one.peak_error, strict=True))
    return shown.CellSays(
        segment={name: (rule.low, rule.high) for name, rule in one.where.items()},
        context=by_name(policy.context, one.context),
        best=by_name(decision, one.best),
        today=by_name(decision, one.today),
        expected=one.expected,
        expected_error=one.expected_error,
        gain=one.gain,
        gain_error=one.gain_error,
        peak=None if one.peak is None else by_name(decision, one.peak),
        error=errors,
        frozen=one.frozen,
    )


def history_seen(policy: Policy) -> shown.HistorySays:
    """What was paid over time."""
    rows = history_table(policy).rows
    return shown.HistorySays([shown.BucketSays(WHOSE[row[0]], *row[1:]) for row in rows])


def curve_seen(
    policy: Policy, along: str | None, given: dict[str, float], points: int
) -> shown.Curve:
    """The decision that was learned along a context."""
    context, held = policy.context, filled(policy.context, given, policy.context.centre)
    table = learned_table(policy, along, given, points)
    name, coordinates = table.columns[0], dict[str, shown.Coordinate]()
    for coordinate in policy.decision.names:
        _, _, *columns = zip(*(row for row in table.rows if row[1] == coordinate), strict=True)
        coordinates[coordinate] = shown.Coordinate(*map(list, columns))
    others = {key: value for key, value in by_name(context, held).items() if key != name}
    x = [row[0] for row in table.rows if row[1] == policy.decision.names[0]]
    return shown.Curve(name, others, x, coordinates)


def payoff_seen(policy: Policy, over: str | None, given: dict[str, float]) -> shown.PayoffCurve:
    """The payoff that is expected over one coordinate, with the others at the best known."""
    decision, j = policy.decision, dimension(policy.decision, over, "coordinate")
    point = filled(policy.context, given, policy.context.centre)
    table, known = payoff_table(policy, point, decision.names[j]), policy.explain(point)
    columns = zip(*table.rows, strict=True) if table.rows else ((), (), (), (), ())
    best = by_name(decision, known["centre"])
    held = {name: value for name, value in best.items() if name != decision.names[j]}
    numbers = *map(list, columns), known["centre"][j], known["start"][j]
    return shown.PayoffCurve(decision.names[j], by_name(policy.context, point), held, *numbers)
