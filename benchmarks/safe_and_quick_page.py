"""The page docs/safe-and-quick.md and its figure, from the results that were kept."""

from pathlib import Path

from benchmarks.safe_and_quick_run import FREE, FULL, NEW, SHOPS, TODAY, TUNED, Scale
from benchmarks.safe_and_quick_tables import (
    ALLOWANCE,
    DECISIONS,
    RECOMMEND,
    Found,
    Point,
    first_day_table,
    frontier,
    frontier_table,
    late_table,
    log_table,
    means,
    regret_table,
    summary,
    tuned_table,
    wide_table,
)
from continuarm.drawing import COLOURS, figure_class, write

MARKERS = "osD^vPX"


def draw(points: dict[str, dict[str, Point]], scale: Scale, path: Path) -> None:
    """The frontier: small dots are shops, large ones geometric means; lower left is best."""
    from matplotlib.ticker import NullFormatter

    figure = figure_class()(figsize=(6.4, 4.6), layout="constrained")
    axes = figure.add_subplot()
    for i, (policy, of) in enumerate(points.items()):
        colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
        pairs = zip(*((one.first_day, one.end) for one in of.values()), strict=True)
        axes.plot(*pairs, marker, color=colour, markersize=4, alpha=0.4, linewidth=0)
        middle = means(of)
        axes.plot(
            middle.first_day, middle.end, marker, color=colour, markersize=11,
            markeredgecolor="black", linewidth=0, label=policy, zorder=3,
        )  # fmt: skip
    axes.set(xscale="log", yscale="log")
    axes.axvline(DECISIONS, color="0.4", linestyle="--", linewidth=1)
    axes.text(DECISIONS, 0.99, f" limit {DECISIONS}", transform=axes.get_xaxis_transform(),
              fontsize=8, color="0.3", va="top")  # fmt: skip
    axes.axhline(1.0, color="0.4", linewidth=1)
    for axis, ends in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        ticks = [t for t in (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 20, 50, 100)
                 if ends[0] <= t <= ends[1]]  # fmt: skip
        axis.set_ticks(ticks, [f"{t:g}" for t in ticks])
        axis.set_minor_formatter(NullFormatter())
        axis.set_tick_params(labelsize=8)
    axes.set_xlabel("cost of the first day / that of the start, at the worst mark", fontsize=9)
    axes.set_ylabel(f"regret at {scale.shops[-1]:,} / today's", fontsize=9)
    axes.set_title(
        f"{len(SHOPS)} shops (small) and their geometric means (large); lower left is best",
        fontsize=9, loc="left",
    )  # fmt: skip
    axes.grid(True, which="major", color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=len(points))
    write(figure, path)


def seeds_of(found: Found) -> str:
    """How many seeds the runs of a part have."""
    counts = sorted({len(ones) for ones in found.values()})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def write_page(parts: dict[str, Found], scale: Scale, docs: Path) -> None:
    """The page and its figure."""
    (docs / "figures").mkdir(parents=True, exist_ok=True)
    points = frontier(parts["shops"], scale)
    draw(points, scale, docs / "figures" / "safe-and-quick.png")
    (docs / "safe-and-quick.md").write_text(page(parts, scale, points))


def page(parts: dict[str, Found], scale: Scale, points: dict[str, dict[str, Point]]) -> str:
    """The page."""
    found = parts["shops"]
    decisions, first = first_day_table(found, scale, "regret", DECISIONS)
    recommend, second = first_day_table(found, scale, "recommend", RECOMMEND)
    tuned, third = tuned_table(found, scale)
    late, fourth = late_table(found, scale)
    wide, fifth = wide_table(parts["wide"], scale)
    logs, sixth = log_table(parts["logs"])
    judged = [*first, *second, *third, *fourth, *fifth, *sixth]
    end = f"{scale.shops[-1]:,}"
    seeds = {name: seeds_of(part) for name, part in parts.items()}
    quick = "" if scale == FULL else "\n**A quick run: none of these numbers counts.**\n"
    return f"""# Safe and quick

This page is written by `python -m benchmarks.safe_and_quick --write docs`.
{quick}
A policy that tries little costs little on its first day and learns late; one that tries much does
the reverse. This page measures both ends on {len(SHOPS)} shops, most of whose payoffs are mostly
noise, on {len(TUNED)} whose start is already the best ({seeds["shops"]} seeds), and on tables of
up to 80 columns. All worlds are [named problems](problems.md#all-worlds-by-theme).
The start is the centre of the box.

- *{TODAY}*: what `recommended` was at commit 425fb8f, an evidence tree of response surfaces with
  reach 0.1. *{TODAY}, no reach* is the same with `reach=None`.
- *{NEW}*: one `SmoothSurface` over all contexts with reach 0.1. *{FREE}* is the same with
  `reach=None`.

Ratios are of means over seeds; in brackets are 95 % intervals over seeds. A limit *holds* where
the mean keeps it, and is *missed* where not. *Inconclusive* is said where the interval contains
the limit. Limits are those of *{NEW}*.

{summary(judged).markdown()}

## The frontier

The worst cost of the first day over {len(scale.shops)} marks, from {scale.shops[0]} to {end}
decisions, and regret later: geometric means over the {len(SHOPS)} shops.

{frontier_table(points, scale).markdown()}

![First-day cost against regret at {end}](figures/safe-and-quick.png)

## The first day

The regret of decisions so far, divided by that of the start, at the mark where it is largest.

{decisions.markdown()}

The same for `recommend`, per decision at that moment:

{recommend.markdown()}

Where the start is already the best there is no ratio. There the cost so far is divided by s√n, the
standard deviation of the sum of n payoffs (s that of one payoff around its mean). A cost of
{ALLOWANCE} is allowed: half of what chance alone moves the total by.

{tuned.markdown()}

## Regret

Regret relative to that of *{TODAY}*, paired by seed; below 1 is better.

{regret_table(found, scale).markdown()}

What the reach of *{NEW}* costs in the end, and what *{NEW}* brings where the start is far from the
best:

{late.markdown()}

## Wide tables

The share of the possible gain over the start so far ({seeds["wide"]} seeds). With 100 % all
decisions were the best, with 0 % they paid what the start pays, and below it less. Four of the
columns matter.

{wide.markdown()}

## With a log

A log of {scale.rows:,} rows around the start, read by `learn_from`: regret at {scale.middle:,}
decisions, divided by that without a log ({seeds["logs"]} seeds). A log should never slow a policy
down.

{logs.markdown()}
"""
