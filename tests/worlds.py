"""Small worlds and helpers that several tests share."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.random import SeedSequence

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.learners.grid_ucb import GridUCBConfig
from continuarm.core.partitions.tree import CUT, TreeConfig
from continuarm.lab.streams import Streams

ROOT = Path(__file__).parent.parent


def check_state(policy: ca.Policy) -> None:
    """Walk the whole state: no NaN, and nothing infinite that is no mark."""
    model, opened = policy.life.model, policy.life.open
    arrays: dict[str, Any] = model.state._asdict()
    if isinstance(model.pcfg, TreeConfig):  # whole numbers in all of its nodes but the cut
        arrays["nodes"] = arrays["nodes"][:, CUT]
    # arms that were not tried, and the slots of a stencil that were forgotten, are marked
    marked = {"rows"} if isinstance(model.lcfg, GridUCBConfig) else {"pool"}
    kept = [np.ravel(part) for parts in opened.open.values() for part in parts]
    arrays["open"] = np.concatenate([*kept, list(opened.held.values())])
    arrays["mean payoff"] = np.array(opened.closed.numbers)
    for name, array in arrays.items():
        assert not np.isnan(array).any(), f"{name} must hold numbers, but got {array}"
        assert name in marked or np.isfinite(array).all(), f"{name} must be finite: {array}"


@cache
def smooth(dx: int, dy: int, noise: float = 0.1) -> ca.Problem:
    """A payoff without symmetries, on unit cubes."""

    def mean_payoff(x: Array, y: Array) -> float:
        total = 0.0
        for i in range(dy):
            target = 0.3 + 0.1 * i / dy
            for j in range(dx):
                target += 0.3 * x[j] * x[j] / (1 + i + j)
            total -= (1.0 + 0.5 * i) * (y[i] - min(target, 0.9)) ** 2
        return total

    return ca.Problem(
        context=ca.Box.unit(dx),
        decision=ca.Box.unit(dy),
        mean_payoff=mean_payoff,
        curvature=2.0,
        curvature_max=2.0 + dy,
        noise=noise,
    )


def drawn(problem: ca.Problem, seed: int, n: int) -> tuple[Array, Array]:
    """The contexts and noises that replication 0 of a simulation with this seed meets."""
    streams = Streams(problem, SeedSequence(seed, spawn_key=(0,)))
    block = streams.block(sloped=False)
    return block.contexts[:n], block.noises[:n]


def minimal() -> ModuleType:
    """examples/minimal.py."""
    spec = importlib.util.spec_from_file_location("minimal", ROOT / "examples" / "minimal.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def play(policy: Any, problem: ca.Problem, contexts: Array, noises: Array) -> Array:
    """Ask and tell one by one; the decisions."""
    decisions = np.empty((len(contexts), problem.decision.dim))
    for t, (x, noise) in enumerate(zip(contexts, noises, strict=True)):
        decision = policy.ask(x)
        decisions[t] = decision.value
        policy.tell(decision, problem.mean_payoff(x, decision.value) + problem.noise * noise)
    return decisions
