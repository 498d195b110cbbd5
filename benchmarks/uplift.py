"""Whether what `uplift` says is true, however often one looks.

    python -m benchmarks.uplift [--runs 1000] [--write docs/uplift.md]

Simulated shops with payoffs of several kinds are looked at after every decision. About ten minutes
on two cores.
"""

import argparse
import math
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.live.uplift import Tally, uplift_of
from continuarm.table import Table

SHARE, CONFIDENCE, DECISIONS, LIVE_DECISIONS = 0.1, 0.95, 10_000, 2_000
LEVEL, GAIN = 10.0, 0.3  # what the incumbent's decisions pay, and the most that ours pay more
DELAY = 100  # decisions, on average


def gaussian(rng: np.random.Generator, mean: Array) -> Array:
    """Noise of standard deviation 1."""
    return np.asarray(mean + rng.normal(size=len(mean)))


def purchase(rng: np.random.Generator, mean: Array) -> Array:
    """A purchase worth 200 or none: one in twenty buys."""
    return np.where(rng.random(len(mean)) < mean / 200.0, 200.0, 0.0)


def heavy(rng: np.random.Generator, mean: Array) -> Array:
    """Student's t with 3 degrees of freedom: the fourth moment is infinite."""
    return mean + rng.standard_t(3, size=len(mean))


def lognormal(rng: np.random.Generator, mean: Array) -> Array:
    """Order values: a few are a hundred times the median."""
    return mean * np.exp(1.5 * rng.normal(size=len(mean)) - 1.125)


KINDS = {
    "Gaussian": gaussian,
    "purchases, one in twenty": purchase,
    "heavy tails (t, 3 degrees)": heavy,
    "order values (log-normal)": lognormal,
}


class Run(NamedTuple):
    """What came of looking at one shop after every decision."""

    first: int | None  # decision at which something was said
    missed: bool  # the truth was once outside
    missed_percent: bool
    width: float  # of the last interval, in those that hold at one moment only
    last: int  # decisions counted then


class Looked:
    """One shop, and what is true of it."""

    def __init__(self) -> None:
        self.first: int | None = None
        self.missed = self.missed_percent = False
        self.truths = [0.0, 0.0]

    def look(self, tally: Tally, counted: int, means: tuple[float, float]) -> None:
        """After a decision whose payoffs would have been these on average."""
        if tally.counted == counted:
            return
        self.truths = [total + mean for total, mean in zip(self.truths, means, strict=True)]
        found = uplift_of(tally, 0, CONFIDENCE)
        if found.per_decision is None:
            return
        if self.first is None:
            self.first = tally.ours + tally.theirs
        ours, theirs = (total / tally.counted for total in self.truths)
        low, _, high = found.per_decision
        self.missed |= not low <= ours - theirs <= high
        if found.percent is not None:
            low, _, high = found.percent
            self.missed_percent |= not low <= 100.0 * (ours - theirs) / abs(theirs) <= high

    def run(self, tally: Tally) -> Run:
        """What came of it."""
        found, n, width = uplift_of(tally, 0, CONFIDENCE).per_decision, tally.counted, math.nan
        if found is not None:
            variance = (tally.aa - 2.0 * tally.ab + tally.bb) / n
            width = (found.high - found.low) / (2.0 * 1.96 * math.sqrt(variance / n))
        return Run(self.first, self.missed, self.missed_percent, width, n)


def drawn(kind: str, seed: int) -> Run:
    """Decisions that adapt: what ours are worth depends on what was seen before."""
    rng, looked, tally = np.random.default_rng(seed), Looked(), Tally()
    theirs = rng.random(DECISIONS) < SHARE
    units = KINDS[kind](rng, np.full(DECISIONS, LEVEL)) - LEVEL
    rich = KINDS[kind](rng, np.full(DECISIONS, LEVEL + GAIN)) - LEVEL - GAIN
    for t in range(DECISIONS):
        better = tally.counted > 0 and tally.a > tally.b
        mean = LEVEL + GAIN if better else LEVEL
        noise = rich[t] if better and not theirs[t] else units[t]
        payoff = (LEVEL if theirs[t] else mean) + float(noise)
        before = tally.counted
        tally = tally.with_payoff(payoff, theirs=bool(theirs[t]), share=SHARE)
        looked.look(tally, before, (mean, LEVEL))
    return looked.run(tally)


def served(problem: ca.Problem, seed: int) -> Run:
    """The recommended policy, whose payoffs come late and out of order."""
    rng = np.random.default_rng(seed)
    start = problem.decision.from_unit(np.full(problem.decision.dim, 0.3))
    policy = ca.SurfaceSampling(
        problem.context, problem.decision, start=start, share=SHARE, rng=seed
    )
    life, looked, means = policy.life, Looked(), list[tuple[float, float]]()
    waiting: list[list[Any]] = [[] for _ in range(LIVE_DECISIONS + 20 * DELAY)]
    for t, x in enumerate(problem.draw_contexts(rng, LIVE_DECISIONS)):
        value = np.empty(problem.decision.dim)  # what ours is, whoever decides
        limits = life.limits._replace(share=0.0)
        life.model.decide(x, life.beginning.key, life.open.next_id, limits, value, start.copy())
        means.append((problem.mean_payoff(x, value), problem.mean_payoff(x, start)))
        decision = policy.ask(x)
        late = min(int(rng.exponential(DELAY)), 20 * DELAY - 1)
        waiting[t + late].append((decision, problem.payoff(x, decision.value, rng)))
        for one, payoff in waiting[t]:
            policy.tell(one, payoff)
            _look(looked, life, means)
    return looked.run(life.comparison.tally)


def all_drawn(kind: str, seeds: list[int]) -> list[Run]:
    """The shops of these seeds."""
    return [drawn(kind, seed) for seed in seeds]


def all_served(world: str, seeds: list[int]) -> list[Run]:
    """The shops of these seeds in one world, whose functions are compiled once."""
    problem = ca.problem(world)
    return [served(problem, seed) for seed in seeds]


def _look(looked: Looked, life: Any, means: list[tuple[float, float]]) -> None:
    """What is true of the decisions that have been counted."""
    n = life.comparison.tally.counted
    if n == 0:
        return
    begun = life.comparison.tally.ours + life.comparison.tally.theirs - n
    looked.truths = [math.fsum(pair[i] for pair in means[begun : begun + n]) for i in (0, 1)]
    looked.truths = [looked.truths[i] - means[begun + n - 1][i] for i in (0, 1)]
    looked.look(life.comparison.tally, n - 1, means[begun + n - 1])


def row_of(name: str, runs: list[Run]) -> tuple[str, ...]:
    """A row of the table."""
    said = [run for run in runs if run.first is not None]
    firsts = sorted(run.first for run in said if run.first is not None)
    widths = [run.width for run in runs if math.isfinite(run.width)]
    n = max(len(said), 1)
    missed = sum(run.missed for run in said)
    error = math.sqrt(max(missed, 1) / n * (1.0 - missed / n) / n)
    return (
        name,
        f"{len(said):,} of {len(runs):,}",
        f"{firsts[len(firsts) // 2]:,}" if firsts else "",
        f"{100.0 * missed / n:.1f} ± {100.0 * error:.1f}",
        f"{100.0 * sum(run.missed_percent for run in said) / n:.1f}",
        f"{np.mean(widths):.2f}" if widths else "",
    )


COLUMNS = (
    "payoffs",
    "runs in which something was said",
    "first said after (median)",
    "the truth was ever outside, %",
    "that in percent, %",
    "half width, against that of one look",
)


def coverage(runs: int) -> Table:
    """How often the truth was ever outside."""
    rows = []
    jobs: list[tuple[str, Any, str]] = [(kind, all_drawn, kind) for kind in KINDS]
    jobs += [
        (f"`{world}`, the recommended policy, payoffs {DELAY} decisions late", all_served, world)
        for world in ("two-communities", "purchase")
    ]
    parts = np.array_split(np.arange(runs), 8)
    for name, function, given in jobs:
        tasks = (joblib.delayed(function)(given, part.tolist()) for part in parts)
        found = [run for part in joblib.Parallel(n_jobs=-1)(tasks) for run in part]
        rows.append(row_of(name, found))
        print(rows[-1], flush=True)
    return Table.of(COLUMNS, rows)


def page(runs: int, table: Table) -> str:
    """The page."""
    return f"""# Uplift, measured

This page is written by `python -m benchmarks.uplift --write docs/uplift.md`.

`policy.uplift()` says how much better our decisions are than the incumbent's, with intervals that
are to hold at every moment at once ([how it is found](switching-on.md#is-it-better)). Here
{runs:,} shops of each kind are looked at after every decision, over {DECISIONS:,} decisions
({LIVE_DECISIONS:,} of the recommended policy), {SHARE:.0%} of them the incumbent's. The truth is
known, because the shops are simulated. It may once be outside in at most {1 - CONFIDENCE:.0%} of
the runs.

In the first four kinds what our decisions are worth depends on what was seen before: they pay
{GAIN / LEVEL:.0%} more while ours seem to be better, and nothing more while not. So they adapt to
exactly what is estimated.

{table.markdown()}

- Nothing is said while one payoff rules what is known: where a tenth of the incumbent's squares is
  one payoff's. So it takes long where few buy, and where order values differ by a hundred times.
- The share that was ever outside is of the runs in which something was said. Where these are few,
  as with order values, no very large payoff has come in them yet, and they are wrong more often
  than one in twenty. Of all runs, few are.
- The last column is what it costs that one may look at any time: the half width of the last
  interval, divided by that of an interval for one look at a time that was fixed before.
"""


def main() -> None:
    """Measure, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000, help="shops of each kind")
    parser.add_argument("--write", type=Path, help="the page")
    options = parser.parse_args()
    table = coverage(options.runs)
    if options.write is not None:
        options.write.write_text(page(options.runs, table))


if __name__ == "__main__":
    main()
