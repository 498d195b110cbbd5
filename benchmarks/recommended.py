"""What the recommended policy achieves, against what, and what each ingredient brings.

    python -m benchmarks.recommended [--folder comparison] [--part paper] [--write docs]

Each part is kept in the folder as JSON and not run again; `--write` makes docs/comparison.md and
its figure from them. About an hour and a half on two cores.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import continuarm as ca
from benchmarks.recommended_page import (
    ABLATION_HORIZON,
    EARLY_HORIZON,
    HORIZONS,
    PAPER_LIMIT,
    SUITE_HORIZON,
    by_policy,
    limit_of,
    write_page,
)
from continuarm.lab.comparison import Choices
from continuarm.lab.measures import ratio
from continuarm.problems.curvature import curvature_at_best

OURS = {"recommended": "recommended"}
MOST_SEEDS = 100
MILLION = ("orange-juice", "logit-demand", "two-subscriptions")
SAFE = {"reach": 0.1, "bounded": True, "level": True, "calm": True, "degree": 5}
BOLD: dict[str, Any] = {"reach": None, "bounded": False, "level": False, "calm": False}
BOLD |= {"degree": 1, "anew_lead": 0.0, "long": None}  # as in version 0.1.0


def changed(
    context: ca.Box, decision: ca.Box, *, changes: dict[str, Any], rng: Any = None
) -> ca.Policy:
    """The policy with some options changed."""
    of_the_tree = {key: value for key, value in changes.items() if key in TREE}
    of_the_surface = {key: value for key, value in changes.items() if key not in TREE}
    return ca.Policy(
        context,
        decision,
        partition=ca.EvidenceTree(**of_the_tree),
        learner=ca.ResponseSurface(**SAFE | of_the_surface),
        rng=rng,
    )


TREE = {field.name for field in fields(ca.EvidenceTree)}
BEFORE = {"before": partial(changed, changes=BOLD)}


def paper(seeds: int) -> dict[str, Any]:
    """The paper's problem: the static algorithm as printed, and the uniform one tuned."""
    found: dict[str, Any] = {}
    for horizon in HORIZONS:
        printed = {"step": 1.0, "width": 0.2, "start": [0.0, 0.0]}
        printed["bins"] = round(horizon ** (1 / 3))
        bins = sorted({max(1, round(f * horizon**0.2)) for f in (0.5, 1.0, 2.0)})
        arms = sorted({max(2, round(f * horizon**0.1)) for f in (1.5, 2.0, 3.0)})
        tuned = tuple(
            {"bins": k, "arms": a, "scale": s}
            for k in bins
            for a in arms
            for s in (0.05, 0.1, 0.2)
        )
        entrants = (
            OURS
            | BEFORE
            | {
                "static-kwsa as printed": ("static-kwsa", printed),
                "uniform-ucb tuned": Choices("uniform-ucb", tuned),
            }
        )
        run = ca.compare(entrants, ["two-communities"], horizons=[horizon], replications=seeds)
        scores = run.report()["scores"]
        more = paired(ca.problem("two-communities"), scores, horizon, PAPER_LIMIT)
        found[str(horizon)] = {"scores": scores, "paired": more}
        print(run.table(), flush=True)
    return found


def rival(world: ca.Problem) -> Choices:
    """Adaptive KWSA with the corrections, told the curvature, the best of many in hindsight."""
    at_best = curvature_at_best(world) if world.decision.dim <= 10 else None
    curvatures = {c for c in (world.curvature, at_best) if c is not None and c > 1e-6}
    settings = tuple(
        {
            "curvature": c,
            "width": width,
            "split_after": split,
            "depth": depth,
            "probe": "alternate",
            "inherit": "iterate-and-count",
        }
        for c in sorted(curvatures)
        for width in (0.1, 0.2, 0.4)
        for split in ("text", "lipschitz")
        for depth in (3, 6)
    )
    return Choices("adaptive-kwsa", settings)


def noise_and_range(world: ca.Problem) -> tuple[float, float]:
    """The payoff's noise at the best decisions, and the range of its mean over the decisions."""
    rng = np.random.default_rng(0)
    points = world.draw_contexts(rng, 300)
    best, heights = world.best_many(points)
    gaps = [world.payoff(x, y, rng) - h for x, y, h in zip(points, best, heights, strict=True)]
    ranges = []
    for x, height in zip(points[:60], heights[:60], strict=True):
        drawn = world.decision.from_unit(rng.random((200, world.decision.dim)))
        ranges.append(height - min(world.mean_payoff(x, y) for y in drawn))
    return float(np.std(gaps)), float(np.mean(ranges))


def suite(seeds: int) -> dict[str, Any]:
    """Every problem of the suite, seen and unseen."""
    found: dict[str, Any] = {}
    for name in ca.problem_names("suite"):
        world = ca.problem(name)
        entrants = OURS | BEFORE | {"adaptive-kwsa": rival(world)}
        run = ca.compare(entrants, {name: world}, horizons=[SUITE_HORIZON], replications=seeds)
        noise, reach = noise_and_range(world)
        shape = {"dx": world.context.dim, "dy": world.decision.dim, "noise": noise, "range": reach}
        scores = run.report()["scores"]
        more = paired(world, scores, SUITE_HORIZON, limit_of(name))
        found[name] = {"scores": scores, "paired": more, **shape}
        print(run.table(), flush=True)
    return found


def paired(
    world: ca.Problem, scores: list[dict[str, Any]], horizon: int, limit: float
) -> list[dict[str, Any]]:
    """Ours and before, with more seeds where the interval of their ratio straddles the limit."""
    seeds = len(scores[0]["regret"])
    while seeds < MOST_SEEDS:
        regrets = by_policy(scores)
        if not regrets["before"].any():
            break
        _, low, high = ratio(regrets["recommended"], regrets["before"])
        if not low <= limit <= high:
            break
        seeds = min(3 * seeds, MOST_SEEDS)
        run = ca.compare(OURS | BEFORE, {"it": world}, horizons=[horizon], replications=seeds)
        scores = run.report()["scores"]
    return [score for score in scores if score["policy"] in (*OURS, *BEFORE)]


def fixed(seeds: int) -> dict[str, Any]:
    """What it costs to decide for the centre of the box, whatever the context."""
    found: dict[str, Any] = {}
    for name in ca.problem_names("suite"):
        run = ca.simulate(
            "fixed", name, horizon=SUITE_HORIZON, replications=seeds, rng=0, checkpoints=1
        )
        found[name] = float(run.mean[-1])
        print(name, found[name], flush=True)
    return found


def million(seeds: int) -> dict[str, Any]:
    """Shops after a million decisions, against the policy of version 0.1.0."""
    found: dict[str, Any] = {}
    for name in MILLION:
        run = ca.compare(OURS | BEFORE, [name], horizons=[10**6], replications=seeds)
        found[name] = run.report()["scores"]
        print(run.table(), flush=True)
    return found


def growth(seeds: int) -> dict[str, Any]:
    """Regret along one run to a million decisions."""
    marks = [round(10 ** (k / 4)) for k in range(12, 25)]
    worlds = {
        "two-communities": ca.problem("two-communities"),
        "quadratic dx=2 dy=2": ca.problem("quadratic", dx=2, dy=2),
    }
    found = {}
    for name, world in worlds.items():
        run = ca.simulate(
            "recommended", world, horizon=marks[-1], replications=seeds, rng=0, checkpoints=marks
        )
        found[name] = {"marks": marks, "regret": run.regret.tolist()}
        print(name, run.mean, flush=True)
    return found


NEVER = 1e300
ABLATIONS: dict[str, dict[str, Any]] = {
    "never splits": {"split_lead": NEVER, "fresh_lead": NEVER},
    "halves that keep all only": {"fresh_lead": NEVER, "renew_lead": NEVER},
    "halves that keep little only": {"split_lead": NEVER},
    "no renewal of a bin": {"renew_lead": NEVER},
    "challengers never start again": {"again": NEVER},
    "cuts in the middle of the box": {"median": False},
    "nothing fades (γ = 0)": {"fade": 0.0},
    "fades twice as fast (γ = 1)": {"fade": 1.0},
    "samples all of the posterior (κ = 1)": {"spread": 1.0},
    "contexts may differ from the start (ridge 10⁻⁴)": {"varying_ridge": 1e-4},
    "Hessian constant in the context": {"hessian": "constant"},
    "Hessian diagonal": {"hessian": "diagonal"},
    "no reach": {"reach": None},
    "no gates": {"gated": False},
    "absurd payoffs count, levels are not followed": {"bounded": False, "level": False},
    "levels are not followed": {"level": False},
    "calm is not noticed": {"calm": False},
    "terms do not enter": {"degree": 1},
    "no newcomer": {"anew_lead": 0.0},
    "of a long past a tenth is little": {"long": None},
    "none of the last eight, as in version 0.1.0": BOLD,
}


EARLY = ("no reach", "no gates", "contexts may differ from the start (ridge 10⁻⁴)")


def changed_suite(labels: Iterable[str], horizon: int, seeds: int) -> dict[str, Any]:
    """The suite with one thing at a time taken out or changed."""
    found: dict[str, Any] = {}
    for name in ca.problem_names("suite"):
        entrants = OURS | {label: partial(changed, changes=ABLATIONS[label]) for label in labels}
        run = ca.compare(
            entrants, [name], horizons=[horizon], replications=seeds, baseline="recommended"
        )
        found[name] = run.report()["scores"]
        print(name, [round(s["ratio"] or math.nan, 2) for s in found[name]], flush=True)
    return found


PARTS: dict[str, tuple[Callable[[int], dict[str, Any]], int]] = {
    "paper": (paper, 20),
    "suite": (suite, 10),
    "fixed": (fixed, 2),
    "growth": (growth, 10),
    "million": (million, 10),
    "ablation": (partial(changed_suite, ABLATIONS, ABLATION_HORIZON), 2),
    "early": (partial(changed_suite, EARLY, EARLY_HORIZON), 20),
}


def main() -> None:
    """Run what is missing, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("comparison"), help="for the results")
    parser.add_argument("--part", choices=list(PARTS), action="append", help="only this part")
    parser.add_argument("--write", type=Path, help="the folder of the docs")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    parts = {}
    for name in options.part or PARTS:
        run, seeds = PARTS[name]
        file = options.folder / f"{name}.json"
        if not file.exists():
            file.write_text(json.dumps(run(seeds)))
        parts[name] = json.loads(file.read_text())
    if options.write is not None:
        write_page(parts, {name: count for name, (_, count) in PARTS.items()}, options.write)


if __name__ == "__main__":
    main()
