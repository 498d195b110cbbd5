"""How often each check of `policy.diagnose()` fires: where its assumption is broken, or is not.

Thresholds were chosen on other seeds (--tuning) and, for clean worlds, on other worlds.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.live.diagnosis.diagnose import CHECKS, IDLE
from continuarm.live.diagnosis.findings import Findings
from continuarm.table import Table

__all__ = ["BROKEN", "CLEAN", "Case", "diagnoses"]

Rng = np.random.Generator
# What becomes of a payoff: how many decisions later it comes, None if never.
Fate = Callable[[Rng, Array, Array, float], int | None]
NAMES = [*(check.name for check in CHECKS), IDLE]
SEEDS = 100
JUDGED, TUNED = 5_000, 0  # where the seeds begin


def at_once(rng: Rng, x: Array, y: Array, z: float) -> int | None:
    """Nothing happens to it."""
    return 0


@dataclass(frozen=True)
class Case:
    """A world, who decides there, and what happens to payoffs on their way."""

    shows: str  # the check that is to fire; empty: none
    what: str
    problem: Callable[[], ca.Problem]
    horizon: int = 5_000
    fate: Fate = at_once
    policy: Callable[..., Any] = ca.SurfaceSampling
    altered: Callable[[int, float], float] | None = None  # the payoff of a decision number
    ttl: int = 500


def hills() -> ca.Problem:
    """Payoffs are lowest in the middle of the box."""

    def payoff(x: Array, y: Array) -> Any:
        return 4.0 * (y[0] - 0.5) ** 2 + 0.2 * x[0]

    unit = ca.Box.unit(1)
    return ca.Problem(context=unit, decision=unit, mean_payoff=payoff, noise=0.05, name="hills")


def one_of_5() -> ca.Problem:
    """One of five contexts matters, and that can be seen."""
    return ca.problem("one-of-5").with_noise(0.01)


def quiet_communities() -> ca.Problem:
    """The paper's problem, with little noise."""
    return ca.problem("two-communities").with_noise(0.01)


def late_if_high(rng: Rng, x: Array, y: Array, z: float) -> int | None:
    """Who pays more takes longer."""
    return int(rng.exponential(50.0 if z > 0.4 else 20.0))


def late_by_context(rng: Rng, x: Array, y: Array, z: float) -> int | None:
    """Delays that go with the context, and loss at random: nothing is wrong."""
    return None if rng.random() < 0.1 else int(rng.exponential(20.0 + 60.0 * x[0]))


def lost_by_context(rng: Rng, x: Array, y: Array, z: float) -> int | None:
    """Payoffs of high contexts are lost more often."""
    return None if rng.random() < 0.05 + 0.2 * x[0] else int(rng.exponential(20.0))


def lost_by_decision(rng: Rng, x: Array, y: Array, z: float) -> int | None:
    """Payoffs of high decisions are lost more often."""
    return None if y[0] > 0.3 and rng.random() < 0.4 else int(rng.exponential(20.0))


def lost_where_high(rng: Rng, x: Array, y: Array, z: float) -> int | None:
    """Payoffs of the upper third of contexts never come."""
    return None if x[0] > 0.66 else 0


def one_early(number: int, payoff: float) -> float:
    """The tenth payoff is a million."""
    return 1e6 if number == 10 else payoff


def one_late(number: int, payoff: float) -> float:
    """The 3,000th payoff is a million."""
    return 1e6 if number == 3_000 else payoff


def on_a_grid(bins: int) -> Callable[..., ca.Policy]:
    """A policy with so many bins along each context."""

    def made(context: ca.Box, decision: ca.Box, **options: Any) -> ca.Policy:
        grid, learner = ca.Grid(bins=bins), ca.ResponseSurface()
        return ca.Policy(context, decision, partition=grid, learner=learner, **options)

    return made


def near_the_start(context: ca.Box, decision: ca.Box, **options: Any) -> ca.Policy:
    """A policy that may hardly move."""
    return ca.SurfaceSampling(context, decision, max_move=0.1 * decision.span, **options)


def named(name: str, **settings: Any) -> Callable[[], ca.Problem]:
    """A world of the suite."""
    return lambda: ca.problem(name, **settings)


CURVE, EDGE, HELD, NOISE, DRIFT, STARVING, ABSURD, DELAY, LOSS, CONTEXT = NAMES
BROKEN = (
    Case(CURVE, "payoffs lowest in the middle of the box", hills, 2_000),
    Case(EDGE, "`edge`: the best decision is at an edge", named("edge")),
    Case(
        HELD,
        "`two-communities` with noise 0.01, and a `max_move` of a tenth of each side",
        quiet_communities,
        1_000,
        policy=near_the_start,
    ),
    Case(
        HELD,
        "`two-communities` with its own noise, and the same `max_move`",
        named("two-communities"),
        2_000,
        policy=near_the_start,
    ),
    Case(NOISE, "`purchase-in-100`: few buy", named("purchase-in-100")),
    Case(NOISE, "`three-tariffs`: noise three times the mean payoff", named("three-tariffs")),
    Case(DRIFT, "`level-rise`: all payoffs rise once", named("level-rise"), 10_000),
    Case(DRIFT, "`level-rise-loud`: by one standard deviation", named("level-rise-loud"), 10_000),
    Case(DRIFT, "`level-sine`: they go up and down", named("level-sine"), 10_000),
    Case(STARVING, "`plane` on a grid of 400 bins", named("plane"), 2_000, policy=on_a_grid(20)),
    Case(
        STARVING,
        "`street-quiet` on a grid, a third of contexts never told",
        named("street-quiet"),
        fate=lost_where_high,
        policy=on_a_grid(6),
    ),
    Case(CONTEXT, "`one-of-5` with noise 0.01: four contexts do not matter", one_of_5, 20_000),
    Case(ABSURD, "the tenth payoff is a million", named("street-quiet"), altered=one_early),
    Case(ABSURD, "the 3,000th payoff is a million", named("street-quiet"), altered=one_late),
    Case(DELAY, "`purchase`: who pays more takes longer", named("purchase"), fate=late_if_high),
    Case(LOSS, "`dose`: lost more often in high contexts", named("dose"), fate=lost_by_context),
    Case(LOSS, "`dose`: lost more often at high doses", named("dose"), fate=lost_by_decision),
)
CLEAN = (
    Case("", "`two-communities`, the paper's", named("two-communities"), 10_000),
    Case("", "`purchase`", named("purchase"), 10_000),
    Case("", "`dose`, two contexts", named("dose"), 10_000),
    Case("", "`cosine-hills`, three coordinates", named("cosine-hills"), 10_000),
    Case(
        "",
        "`dose`, delays that go with a context, a tenth lost at random",
        named("dose"),
        10_000,
        fate=late_by_context,
    ),
)
TUNING = (
    Case("", "`auction`", named("auction"), 10_000),
    Case("", "`newsvendor`", named("newsvendor"), 20_000),
    Case("", "`log-utility-3`", named("log-utility-3"), 10_000),
    Case(
        "",
        "`auction`, delays that go with a context, a tenth lost at random",
        named("auction"),
        10_000,
        fate=late_by_context,
    ),
)


def diagnoses(case: Case, seeds: int, first: int) -> list[Findings]:
    """What is found after the horizon, for each seed."""
    problem = case.problem()
    if case.fate is at_once and case.altered is None:

        def maker(context: ca.Box, decision: ca.Box, rng: Rng) -> Any:
            return case.policy(context, decision, rng=rng)

        given: dict[str, Any] = {"horizon": case.horizon, "replications": seeds, "rng": first}
        result = ca.simulate(maker, problem, workers=1, checkpoints=1, **given)
        return [policy.diagnose() for policy in result.policies]
    return [served(case, problem, first + k).diagnose() for k in range(seeds)]


def served(case: Case, problem: ca.Problem, seed: int) -> Any:
    """A policy after its horizon, asked and told one by one."""
    rng = np.random.default_rng(seed)
    policy = case.policy(problem.context, problem.decision, rng=seed, ttl=case.ttl)
    arriving: list[list[Any]] = [[] for _ in range(case.horizon)]
    for t, x in enumerate(problem.draw_contexts(rng, case.horizon)):
        decision = policy.ask(x)
        payoff = problem.payoff(x, decision.value, rng)
        payoff = payoff if case.altered is None else case.altered(t, payoff)
        unit = problem.context.to_unit(x), problem.decision.to_unit(decision.value)
        later = case.fate(rng, *unit, payoff)
        if later is not None and later < case.ttl and t + later < case.horizon:
            arriving[t + later].append((decision, payoff))
        for told, paid in arriving[t]:
            policy.tell(told, paid)
    return policy


COLUMNS = ("world", "decisions", "should fire", "fired", "others that fired")


def row_of(case: Case, found: list[Findings]) -> tuple[Any, ...]:
    """How often which check fired."""
    counts = Counter(name for findings in found for name in {one.name for one in findings})
    silent = sum(not findings for findings in found)
    fired = f"{counts.pop(case.shows, 0)} of {len(found)}"
    others = ", ".join(f"{name} {n}" for name, n in counts.most_common())
    if not case.shows:
        fired = f"silent in {silent} of {len(found)}"
    return (case.what, case.horizon, case.shows or "none", fired, others or "none")


def table(cases: tuple[Case, ...], seeds: int, first: int) -> Table:
    """One row per case."""
    rows = []
    for case in cases:
        begun = time.perf_counter()
        rows.append(row_of(case, diagnoses(case, seeds, first)))
        print(*rows[-1], f"{time.perf_counter() - begun:.0f} s", sep=" | ", flush=True)
    return Table.of(COLUMNS, rows)


def page(seeds: int, clean: Table, broken: Table) -> str:
    """The page."""
    return f"""# Diagnosis, measured

This page is written by `python -m benchmarks.diagnosis --write docs/diagnosis.md`.

[`policy.diagnose()`](switching-on.md#diagnose) checks the assumptions of learning on what a policy
has seen. Here its checks look at {seeds} runs of each world, with seeds from {JUDGED:,} on. Their
thresholds were chosen on the seeds from {TUNED} on, and on other clean worlds: `auction`,
`newsvendor` and `log-utility-3`. The policy is the recommended one unless a row says otherwise.

## Where nothing is wrong

All checks together are to be silent in at least 95 of 100 runs.

{clean.markdown()}

## Where an assumption is broken

Each world breaks one assumption; its check is to fire in at least 95 of 100 runs. What breaks one
may break others, too. A payoff that is convex drives decisions to an edge. A bin that is never
told anything loses payoffs by context. An absurd payoff among the first is noise to all others.

{broken.markdown()}

- Loss and delays: decisions are given up 500 decisions after they were asked.
- `max_move` was measured with the world's own noise first, which missed its mark. The quieter
  world was chosen only after that, so it shows the check where it is easy.
- `purchase-in-100` and `three-tariffs` are worlds of the suite in which 5,000 decisions show
  nothing. The finding says how many more it takes.
- A level that seems to move is what the policy itself took it for: where purchases or claims are
  rare it is sometimes mistaken, and so is the check for drift.
"""


def main() -> None:
    """Measure, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument(
        "--tuning", action="store_true", help="the seeds thresholds were chosen on"
    )
    parser.add_argument("--only", default="", help="cases whose text has this in it")
    parser.add_argument("--write", type=Path, help="the page")
    options = parser.parse_args()
    first = TUNED if options.tuning else JUDGED
    clean, broken = (
        tuple(case for case in cases if options.only in f"{case.what} {case.shows}")
        for cases in (TUNING if options.tuning else CLEAN, BROKEN)
    )
    tables = table(clean, options.seeds, first), table(broken, options.seeds, first)
    if options.write is not None:
        options.write.write_text(page(options.seeds, *tables))


if __name__ == "__main__":
    main()
