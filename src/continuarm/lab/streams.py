"""The random streams of a replication: what the world has in store, block by block."""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from continuarm.checks import generator
from continuarm.core.compiling import Array
from continuarm.problems import Problem

__all__ = ["BLOCK", "Block", "Streams", "generator_seed"]

BLOCK = 2**14  # numbers are drawn in whole blocks: nothing depends on where a run pauses
HELD_OUT = 1000  # contexts on which `recommend` is judged


class Block(NamedTuple):
    """What the world has in store for the next decisions."""

    contexts: Array
    noises: Array
    slope_noises: Array
    added: Array  # to the payoffs, whatever is decided
    delays: NDArray[np.int64]


class Streams:
    """Independent streams: contexts, payoff noise, delays, the policy's own random numbers."""

    def __init__(self, problem: Problem, seed: SeedSequence) -> None:
        contexts, noise, policy = seed.spawn(3)
        self.problem = problem
        self.contexts, self.noise = np.random.default_rng(contexts), np.random.default_rng(noise)
        self.policy = np.random.default_rng(policy)
        self.slope_noise, self.delays = map(np.random.default_rng, noise.spawn(2))
        self.disturbance, self.drawn = np.random.default_rng(noise.spawn(1)[0]), 0
        held_out = np.random.default_rng(contexts.spawn(1)[0])
        self.held_out = problem.draw_contexts(held_out, HELD_OUT)
        self.held_out_best = problem.best_many(self.held_out)[1]

    def block(self, sloped: bool) -> Block:
        """The next block."""
        problem = self.problem
        contexts = problem.draw_contexts(self.contexts, BLOCK)
        noises = np.empty(BLOCK)
        if problem.sources.sample_payoff is None:
            self.noise.standard_normal(out=noises)
        slopes = np.empty((BLOCK, problem.decision.dim if sloped else 0))
        if sloped:
            self.slope_noise.standard_normal(out=slopes)
        delays = np.zeros(BLOCK, np.int64)
        if not problem.feedback.at_once:
            delays = problem.feedback.draw(self.delays, BLOCK)
        added = problem.disturb(self.disturbance, self.drawn, contexts)
        self.drawn += BLOCK
        return Block(contexts, noises, slopes, added, delays)


def generator_seed(rng: Generator | int | None) -> SeedSequence:
    """The root of all streams of a simulation."""
    made = generator(rng)  # also refuses what is no seed
    if rng is None or isinstance(rng, int | np.integer):
        return SeedSequence(rng if rng is None else int(rng))
    return SeedSequence(made.integers(0, 2**63, 4).tolist())
