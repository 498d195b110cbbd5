"""What the first day costs: decisions and `recommend` against the incumbent, and a shop's log.

    python -m benchmarks.first_day [--seeds 20] [--write docs/first-day.md]

`--write` puts the tables under the heading "Measured" of the page. About half an hour on two
cores.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import continuarm as ca
from benchmarks.recommended import BOLD, changed
from benchmarks.recommended_page import NOISY
from continuarm.core.compiling import Array
from continuarm.core.learners.protocol import size
from continuarm.lab.measures import ratio
from continuarm.table import Table

REACH = 0.1
HORIZON = 100_000
MARKS = [30, 100, 300, 1000, 3000, 10_000, 30_000, HORIZON]
NEW = ("insurance", "three-tariffs")  # written when the safe start was finished
TUNED = "tuned-already"  # whose incumbent is the best
REACHES = (0.025, 0.05, REACH, 0.2)
TRADED = ("linear-demand", "rare-purchase", "communities-drowned", *NEW)
LOGS = ("linear-demand", "orange-juice")
ROWS, SPREAD = 10_000, 0.1  # of the shop's log, around its rule, as a part of each side
LOOKS = (200, 2000, 20_000)
LEASTS = (0.97, 0.98, 1.0)
FIRST = 500  # decisions that are looked at one by one
MEASURED = "## Measured\n"
BEFORE = partial(changed, changes=BOLD)


def early(world: ca.Problem) -> int:
    """p + 3, the decisions that are uniform within reach."""
    learner = ca.ResponseSurface(reach=REACH)
    return size(learner.configured(world.context.dim, world.decision.dim)) + 3


def worst_of(ratios: Array, marks: list[int]) -> str:
    """The largest mean ratio over the checkpoints, its interval, and where."""
    means, errors = ratios.mean(axis=0), ratios.std(axis=0, ddof=1) / len(ratios) ** 0.5
    at = int(np.argmax(means))
    margin = 1.96 * errors[at]
    low, high = means[at] - margin, means[at] + margin
    return f"{means[at]:.2f} [{low:.2f}, {high:.2f}] at {marks[at]:,}"


def noisy_row(name: str, seeds: int, reach: float = REACH) -> tuple[str, ...]:
    """One problem: what decisions and `recommend` cost, relative to the start."""
    world = ca.problem(name)
    first = early(world)
    marks = sorted({*MARKS, first})
    run = partial(
        ca.simulate, problem=world, horizon=HORIZON, replications=seeds, rng=1, checkpoints=marks
    )
    policies: tuple[Any, ...] = ("fixed", ("recommended", {"reach": reach}), BEFORE)
    start, safe, bold = (run(policy) for policy in policies)
    kept = [k for k, mark in enumerate(marks) if mark >= MARKS[0]]
    base = start.regret.mean(axis=0)
    decisions = safe.regret[:, kept] / base[kept]
    beyond = (safe.regret[:, kept] - safe.regret[:, [marks.index(first)]].mean()) / base[kept]
    recommended = safe.recommend_regret[:, kept] / start.recommend_regret.mean(axis=0)[kept]
    shown = [kept.index(marks.index(mark)) for mark in (100, 1000, 10_000, HORIZON)]
    middle, low, high = ratio(safe.regret[:, -1], bold.regret[:, -1])
    share = (safe.regret[:, kept] > 2.0 * start.regret[:, kept]).mean(axis=0).max()
    marked = [marks[k] for k in kept]
    return (
        name,
        ", ".join(f"{decisions[:, k].mean():.2f}" for k in shown),
        worst_of(beyond, marked),
        worst_of(recommended, marked),
        f"{share:.0%}",
        f"{middle:.2f} [{low:.2f}, {high:.2f}]",
    )


def noisy_table(seeds: int) -> Table:
    """A row for each problem."""
    rows = []
    for name in (*NOISY, *NEW):
        rows.append(noisy_row(name, seeds))
        print(rows[-1], flush=True)
    columns = (
        "problem",
        "decisions / start at 10², 10³, 10⁴, 10⁵",
        "worst, less the first p + 3 (at most 1.3)",
        "recommend / start, worst (at most 1.1)",
        "seeds above 2",
        "regret at 10⁵ / before",
    )
    return Table.of(columns, rows)


def reach_table(seeds: int) -> Table:
    """A row for each problem and reach: what is safe early and what is cheap late."""
    rows = []
    for name in TRADED:
        for reach in REACHES:
            _, _, decisions, recommended, share, late = noisy_row(name, seeds, reach)
            rows.append((name, reach, decisions, recommended, share, late))
            print(rows[-1], flush=True)
    columns = ("problem", "reach", "decisions / start, worst", "recommend / start, worst")
    return Table.of((*columns, "seeds above 2", "regret at 10⁵ / before"), rows)


def tuned_table(seeds: int) -> Table:
    """What it costs to try where nothing can be won, in percent of the best payoff."""
    world, marks = ca.problem(TUNED), [100, 1000, 10_000, HORIZON]
    rng = np.random.default_rng(0)
    most = float(world.best_many(world.draw_contexts(rng, 10_000))[1].mean())
    rows = []
    for name, policy in (("recommended", "recommended"), ("before", BEFORE)):
        run = ca.simulate(
            policy, world, horizon=HORIZON, replications=seeds, rng=1, checkpoints=marks
        )
        for what, costs in (
            ("decisions so far", run.regret / marks / most),
            ("recommend", run.recommend_regret / most),
        ):
            means, errors = costs.mean(axis=0), costs.std(axis=0, ddof=1) / seeds**0.5
            cells = [f"{m:.2%} ± {e:.2%}" for m, e in zip(means, errors, strict=True)]
            rows.append((name, what, *cells))
            print(rows[-1], flush=True)
    return Table.of(("policy", "cost of", *[f"{mark:,}" for mark in marks]), rows)


def old_rule(world: ca.Problem) -> ca.AffineRule:
    """The centre of the box, a little higher where the first context is."""
    slopes = np.zeros((world.decision.dim, world.context.dim))
    span = world.context.high[0] - world.context.low[0]
    slopes[:, 0] = 0.1 * (world.decision.high - world.decision.low) / span
    middle = 0.5 * (world.context.low[0] + world.context.high[0])
    return ca.AffineRule(world.decision.centre - slopes[:, 0] * middle, slopes)


def decided(rule: ca.AffineRule, world: ca.Problem, x: Array) -> Array:
    """What a rule decides for contexts."""
    policy = ca.Fixed(world.context, world.decision, value=rule)
    return np.array([policy.ask(point).value for point in x])


def named(box: ca.Box, letter: str) -> ca.Box:
    """The box with names that a log's columns can have."""
    return ca.Box(box.low, box.high, names=[f"{letter}{k}" for k in range(box.dim)])


def shop(name: str, seed: int) -> tuple[list[float], float, float]:
    """Payoffs relative to the old rule's, the share outside the log's range, and on an edge."""
    world, rng = ca.problem(name), np.random.default_rng(seed)
    rule, x = old_rule(world), world.draw_contexts(rng, ROWS)
    side = world.decision.high - world.decision.low
    off = rng.uniform(-SPREAD, SPREAD, (ROWS, world.decision.dim)) * side
    y = np.clip(decided(rule, world, x) + off, world.decision.low, world.decision.high)
    context, decisions = named(world.context, "x"), named(world.decision, "y")
    table: dict[str, Any] = dict(zip(context.names, x.T, strict=True))
    table |= dict(zip(decisions.names, y.T, strict=True))
    table["payoff"] = [world.payoff(*row, rng) for row in zip(x, y, strict=True)]
    policy = ca.SurfaceSampling(context, decisions, rng=seed)
    policy.learn_from(table, payoff="payoff")
    x = world.draw_contexts(rng, LOOKS[-1])
    done = np.empty((LOOKS[-1], world.decision.dim))
    for k, point in enumerate(x):
        decision = policy.ask(point)
        done[k] = decision.value
        policy.tell(decision, world.payoff(point, decision.value, rng))
    before = decided(rule, world, x)
    ours, theirs = world.mean_many(x, done).cumsum(), world.mean_many(x, before).cumsum()
    outside = (abs(done - before) > (SPREAD + 1e-9) * side)[:FIRST].any(axis=1).mean()
    edge = ((done <= world.decision.low) | (done >= world.decision.high))[:FIRST].any(axis=1)
    return [ours[n - 1] / theirs[n - 1] for n in LOOKS], float(outside), float(edge.mean())


def shop_table(seeds: int) -> Table:
    """A row for each shop."""
    rows = []
    for name in LOGS:
        found = [shop(name, seed) for seed in range(seeds)]
        payoffs = np.array([each[0] for each in found])
        means, errors = payoffs.mean(axis=0), payoffs.std(axis=0, ddof=1) / seeds**0.5
        cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(means, errors, strict=True)]
        outside, edge = (np.mean([each[k] for each in found]) for k in (1, 2))
        rows.append((name, *cells, f"{outside:.0%}", f"{edge:.1%}"))
        print(rows[-1], flush=True)
    looks = [f"{n:,} (≥ {least})" for n, least in zip(LOOKS, LEASTS, strict=True)]
    return Table.of(("shop", *looks, "outside the log (< 33 %)", "on an edge (< 2 %)"), rows)


def measured(seeds: int, noisy: Table, reaches: Table, tuned: Table, shops: Table) -> str:
    """The part of the page below its heading."""
    return f"""
`python -m benchmarks.first_day --write docs/first-day.md` has written this part.

*The start against the policy.* `SurfaceSampling` on problems whose payoffs are mostly noise,
{seeds} seeds. `insurance` and `three-tariffs` were written, and first run, when the policy was
finished. A ratio is what decisions (or `recommend`) have cost so far, divided
by what the start costs. The third column is the worst checkpoint from 30 decisions on, after what
the first p + 3 decisions cost is taken away, with a 95 % interval over seeds. The fifth is the
share of seeds that have cost twice the start's at some checkpoint. The last compares with the
policy of version 0.1.0, by paired seeds.

{noisy.markdown()}

*What another reach would do.* Where the start is good already, trying within 0.1 of it costs more
than 0.3 of what the start itself costs, whatever is done with what is seen. A smaller reach costs
less, and learns later: no reach serves all of these problems.

{reaches.markdown()}

*A start that is the best already.* In `{TUNED}` nothing can be won, and the start costs
nothing. No ratio to it can be had, and whatever is tried costs something. In percent of the best
payoff:

{tuned.markdown()}

*A shop with a log.* An older rule, and its log of {ROWS:,} rows within ±{SPREAD:.0%} of each side.
Mean payoffs over the first decisions, divided by the older rule's; then how many of the first
{FIRST} decisions lie outside the log's range, or on an edge of the box.

{shops.markdown()}
"""


def main() -> None:
    """Measure, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="replications of each run")
    parser.add_argument("--write", type=Path, help="the page")
    options = parser.parse_args()
    shops = shop_table(min(options.seeds, 10))
    noisy, reaches = noisy_table(options.seeds), reach_table(options.seeds)
    tables = (noisy, reaches, tuned_table(options.seeds), shops)
    print(*tables, sep="\n\n")
    if options.write is not None:
        above = options.write.read_text().split(MEASURED)[0]
        options.write.write_text(above + MEASURED + measured(options.seeds, *tables))


if __name__ == "__main__":
    main()
