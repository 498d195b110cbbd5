"""Regrets of one policy in one world, also with the source of an earlier version.

    echo '{"world": ["suite", "one-of-5"], "policy": ["recommended", {}], "marks": [1000],
           "first": 0, "count": 2}' | python benchmarks/contexts_run.py

A line of JSON per task; it needs nothing but the package, so that any version of it will do.
"""

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numba
import numpy as np

import continuarm as ca
from continuarm.problems.building import compiled_helper, tracking
from continuarm.problems.worlds.dimensions import one_matters


def all_matter(dx: int) -> ca.Problem:
    """As `one_matters`, but every context dimension matters as much as any other."""
    scale = 0.35 / math.sqrt(dx)

    def target(x: Any, i: int) -> Any:
        total = 0.5
        for k in range(dx):
            total += scale * math.sin(2 * math.pi * x[k] + i)
        return total

    return tracking(dx, 2, compiled_helper(target), steepness=2.0)


def wider(name: str, more: int) -> ca.Problem:
    """A world with more context dimensions, none of which matters."""
    world = one_matters(1) if name == "one_matters(1)" else ca.problem(name)
    dx, box, sources = world.context.dim, world.context, world.sources
    if more == 0:
        return world
    mean, best = _compiled(sources.mean_payoff), _compiled(sources.best_decision)
    sample = None
    if sources.sample_payoff is not None:
        drawn = _compiled(sources.sample_payoff)
        sample = lambda x, y, rng: drawn(x[:dx], y, rng)  # noqa: E731
    return ca.Problem(
        context=ca.Box([*box.low, *np.zeros(more)], [*box.high, *np.ones(more)]),
        decision=world.decision,
        mean_payoff=lambda x, y: mean(x[:dx], y),
        best_decision=lambda x: best(x[:dx]),
        sample_payoff=sample,
        noise=world.noise,
        contexts=lambda rng, n: np.column_stack(
            [world.draw_contexts(rng, n), rng.random((n, more))]
        ),
    )


def _compiled(function: Any) -> Any:
    is_compiled = isinstance(function, numba.core.dispatcher.Dispatcher)
    return function if is_compiled else compiled_helper(function)


WORLDS: dict[str, Callable[..., ca.Problem]] = {
    "suite": ca.problem,
    "one matters": one_matters,
    "all matter": all_matter,
    "wider": wider,
    "drawn": lambda seed: ca.problem("drawn", seed=seed),
    "quadratic": lambda dy: ca.problem(
        "quadratic", dx=1, dy=dy, condition=1.0, curvature=2.0, rotation=False
    ),
}


def regrets(task: dict[str, Any]) -> list[list[float]]:
    """The regrets of each seed at each mark; the seeds are those of `compare`."""
    kind, *given = task["world"]
    world, policy = WORLDS[kind](*given), tuple(task["policy"])
    found = []
    for seed in range(task["first"], task["first"] + task["count"]):
        run = ca.simulate(
            policy, world, horizon=task["marks"][-1], rng=seed, checkpoints=task["marks"],
            workers=1,
        )  # fmt: skip
        found.append([float(regret) for regret in run.regret[0]])
    return found


def answers(lines: Iterable[str]) -> Iterator[str]:
    """A line of JSON for each line of JSON."""
    for line in lines:
        yield json.dumps(regrets(json.loads(line)))


if __name__ == "__main__":
    for answer in answers(sys.stdin):
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
