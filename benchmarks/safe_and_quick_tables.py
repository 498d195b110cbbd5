"""The tables of docs/safe-and-quick.md, and which limits hold."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import continuarm as ca
from benchmarks.safe_and_quick_run import (
    FAR,
    FREE,
    NEW,
    POLICIES,
    SHOPS,
    SPREADS,
    START,
    TODAY,
    TUNED,
    WIDE,
    Scale,
    key_of,
)
from continuarm.core.compiling import Array
from continuarm.lab.measures import Interval, ratio
from continuarm.table import Table

DECISIONS, RECOMMEND = 1.3, 1.1  # of what the start costs, at every mark
ALLOWANCE = 0.5  # of the standard deviation of the sum of as many payoffs
NO_REACH, FAR_LIMIT = 1.1, 0.6  # regret at the end, relative to no reach, and to today's
SHARE_LATE, SHARE_EARLY = 0.45, -0.15  # of the possible gain, with 30 columns
SLOWER = 1.0  # regret with a log, relative to without
DRAWN = 4000  # payoffs whose standard deviation is taken

Found = dict[str, list[dict[str, list[float]]]]  # for each task, for each seed


class Judged(NamedTuple):
    """A number beside its limit, which it may be at most."""

    limit: str
    world: str
    found: Interval
    most: float

    @property
    def holds(self) -> bool:
        return self.found.value <= self.most

    @property
    def sure(self) -> bool:
        """Whether the limit lies outside the interval."""
        return not self.found.low <= self.most < self.found.high

    def __str__(self) -> str:
        word = "holds" if self.holds else "**missed**"
        return word if self.sure else f"{word}, inconclusive"


Made = tuple[Table, list[Judged]]


def runs(
    found: Found, world: str, policy: str, what: str = "regret", spread: float | None = None
) -> Array:
    """A row per seed, a column per mark."""
    return np.array([one[what] for one in found[key_of(world, policy, spread)]])


def pair(mine: Array, base: Array) -> tuple[Array, Array]:
    """The seeds that both have."""
    n = min(len(mine), len(base))
    return mine[:n], base[:n]


def mean_of(values: Array) -> Interval:
    """The mean over seeds, with its 95 % interval."""
    mean, n = float(values.mean()), len(values)
    reach = float(stats.t.ppf(0.975, n - 1) * stats.sem(values)) if n > 1 else math.nan
    return Interval(mean, mean - reach, mean + reach)


def geometric(values: Iterable[float]) -> float:
    """The geometric mean."""
    return math.exp(float(np.mean(np.log(list(values)))))


def cell(found: Interval) -> str:
    """For a table."""
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def worst(costs: Array, marks: tuple[int, ...]) -> tuple[Interval, int]:
    """The largest mean over the marks, and the mark."""
    at = int(np.argmax(costs.mean(axis=0)))
    return mean_of(costs[:, at]), marks[at]


def first_day(
    found: Found, world: str, policy: str, marks: tuple[int, ...], what: str
) -> tuple[Interval, int]:
    """The worst mark of what was done, divided by what the start costs."""
    mine, base = pair(runs(found, world, policy, what), runs(found, world, START, what))
    return worst(mine / base.mean(axis=0), marks)


def first_day_table(found: Found, scale: Scale, what: str, most: float) -> Made:
    """A row per shop, a column per policy."""
    rows, judged = [], []
    said = {"regret": "first day: decisions", "recommend": "first day: `recommend`"}[what]
    for world in SHOPS:
        each = {p: first_day(found, world, p, scale.shops, what) for p in POLICIES}
        judged.append(Judged(f"{said} / start", world, each[NEW][0], most))
        cells = [f"{cell(value)} at {mark:,}" for value, mark in each.values()]
        rows.append((world, *cells, str(judged[-1])))
    return Table.of(("shop", *POLICIES, f"{NEW}: at most {most}"), rows), judged


def noise_at_start(world: ca.Problem) -> float:
    """The standard deviation of a payoff around its mean, at the centre of the box."""
    rng = np.random.default_rng(0)
    contexts = world.draw_contexts(rng, DRAWN)
    means = world.mean_many(contexts, np.tile(world.decision.centre, (DRAWN, 1)))
    payoffs = [world.payoff(x, world.decision.centre, rng) for x in contexts]
    return float(np.std(payoffs - means))


def tuned_table(found: Found, scale: Scale) -> Made:
    """What it costs to try where nothing can be won, in standard deviations of the total."""
    rows, judged = [], []
    for world in TUNED:
        scales = noise_at_start(ca.problem(world)) * np.sqrt(scale.shops)
        each = {p: worst(runs(found, world, p) / scales, scale.shops) for p in POLICIES}
        judged.append(Judged("nothing to win: cost / s√n", world, each[NEW][0], ALLOWANCE))
        cells = [f"{cell(value)} at {mark:,}" for value, mark in each.values()]
        rows.append((world, *cells, str(judged[-1])))
    return Table.of(("shop", *POLICIES, f"{NEW}: at most {ALLOWANCE}"), rows), judged


def at_mark(found: Found, scale: Scale, world: str, mine: str, base: str, mark: int) -> Interval:
    """The ratio of two regrets at a mark, paired by seed."""
    k = scale.shops.index(mark)
    return ratio(*pair(runs(found, world, mine)[:, k], runs(found, world, base)[:, k]))


def regret_table(found: Found, scale: Scale) -> Table:
    """A row per shop: regrets relative to today's."""
    marks, others = (scale.middle, scale.shops[-1]), [p for p in POLICIES if p != TODAY]
    rows = []
    for world in SHOPS:
        regret = runs(found, world, TODAY)[:, -1].mean()
        cells = [
            cell(at_mark(found, scale, world, policy, TODAY, mark))
            for policy in others
            for mark in marks
        ]
        rows.append((world, f"{regret:,.0f}", *cells))
    named = [f"{policy}: {mark:,}" for policy in others for mark in marks]
    return Table.of(("shop", f"{TODAY}: regret at {marks[-1]:,}", *named), rows)


def late_table(found: Found, scale: Scale) -> Made:
    """What the reach of the new policy costs at the end, and what the new policy brings."""
    rows, judged, end = [], [], scale.shops[-1]
    for world in SHOPS:
        free = at_mark(found, scale, world, NEW, FREE, end)
        judged.append(Judged(f"regret at {end:,} / no reach", world, free, NO_REACH))
        cells = [cell(free), str(judged[-1])]
        over = at_mark(found, scale, world, NEW, TODAY, end)
        if world in FAR:
            judged.append(
                Judged(f"start far away: regret at {end:,} / today's", world, over, FAR_LIMIT)
            )
            cells += [cell(over), str(judged[-1])]
        else:
            cells += [cell(over), ""]
        rows.append((world, *cells))
    first = ("shop", f"{NEW} / {FREE}", f"at most {NO_REACH}")
    last = (f"{NEW} / {TODAY}", f"at most {FAR_LIMIT} where the start is far")
    return Table.of((*first, *last), rows), judged


def wide_table(found: Found, scale: Scale) -> Made:
    """The share of the possible gain over the start so far, in percent."""
    rows, judged = [], []
    marks = [f"{mark:,}" for mark in scale.wide]
    for world in WIDE:
        for policy in POLICIES:
            mine, base = pair(runs(found, world, policy), runs(found, world, START))
            left = [ratio(mine[:, k], base[:, k]) for k in range(len(scale.wide))]
            cells = [f"{1 - r.value:.0%} ± {r.high - r.value:.0%}" for r in left]
            words = ""
            if policy == NEW and ca.problem(world).context.dim == 30:
                ends = [
                    Judged(
                        f"30 columns: regret at {scale.wide[k]:,} / start", world, left[k], most
                    )
                    for k, most in ((0, 1.0 - SHARE_EARLY), (-1, 1.0 - SHARE_LATE))
                ]
                judged += ends
                words = "; ".join(map(str, ends))
            rows.append((world, policy, *cells, words))
    said = f"{NEW}: at least {SHARE_EARLY:.0%} first, {SHARE_LATE:.0%} last"
    return Table.of(("table", "policy", *marks, said), rows), judged


def spread_words(spread: float) -> str:
    """What a log's decisions were."""
    return f"within ±{spread:.0%}" if spread else "all at the start"


def log_table(found: Found) -> Made:
    """Regret with a log over regret without."""
    rows, judged = [], []
    for world in SHOPS:
        for policy in (TODAY, NEW):
            without = runs(found, world, policy)[:, -1]
            cells: list[Any] = []
            words = []
            for spread in SPREADS:
                known = runs(found, world, policy, spread=spread)[:, -1]
                known_over = ratio(*pair(known, without))
                one = Judged("regret with a log / without", world, known_over, SLOWER)
                cells.append(cell(one.found))
                words.append(str(one))
                judged += [one] if policy == NEW else []
            rows.append((world, policy, *cells, "; ".join(words) if policy == NEW else ""))
    named = [spread_words(spread) for spread in SPREADS]
    return Table.of(("shop", "policy", *named, f"{NEW}: at most {SLOWER:g}"), rows), judged


def summary(judged: list[Judged]) -> Table:
    """A row per limit."""
    rows = []
    for limit in dict.fromkeys(one.limit for one in judged):
        ones = [one for one in judged if one.limit == limit]
        missed = sorted({one.world for one in ones if not one.holds})
        worst_one = max(ones, key=lambda one: one.found.value)
        holds = sum(one.holds for one in ones)
        said = "holds" if holds == len(ones) else "**missed**"
        rows.append((
            limit, ones[0].most, said, f"{holds} of {len(ones)}",
            f"{worst_one.found.value:.2f} ({worst_one.world})", ", ".join(missed),
        ))  # fmt: skip
    columns = ("limit", "at most", "", "holds", "worst", "missed on")
    return Table.of(columns, rows)


class Point(NamedTuple):
    """A policy in a shop, or its geometric mean over shops."""

    first_day: float
    middle: float
    end: float


def frontier(found: Found, scale: Scale) -> dict[str, dict[str, Point]]:
    """For each policy and shop: the worst cost of the first day, and regret over today's."""
    return {
        policy: {
            world: Point(
                first_day(found, world, policy, scale.shops, "regret")[0].value,
                *(
                    at_mark(found, scale, world, policy, TODAY, mark).value
                    for mark in (scale.middle, scale.shops[-1])
                ),
            )
            for world in SHOPS
        }
        for policy in POLICIES
    }


def means(points: dict[str, Point]) -> Point:
    """Geometric means over shops."""
    return Point(*(geometric(values) for values in zip(*points.values(), strict=True)))


def frontier_table(points: dict[str, dict[str, Point]], scale: Scale) -> Table:
    """A row per policy."""
    rows = [(p, *(f"{value:.2f}" for value in means(of))) for p, of in points.items()]
    regrets = [f"regret at {mark:,} / today's" for mark in (scale.middle, scale.shops[-1])]
    return Table.of(("policy", "first day / start, worst", *regrets), rows)
