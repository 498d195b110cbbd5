"""What happens inside one bin: stencils, edges, order of payoffs, and a learner of one's own."""

import itertools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import continuarm as ca
from continuarm.core.compiling import Array, compiled
from continuarm.core.learners.protocol import Learner, register
from continuarm.core.request import (
    ALONE,
    UNFORESEEN,
    Foreseen,
    Observation,
    Request,
    clip_into,
)
from continuarm.testing.tables import check_table

CONTEXT_FREE = ca.Box.unit(0)


def one_bin(dy: int = 1, **settings: Any) -> ca.Policy:
    """Algorithm 1."""
    defaults = {"bins": 1, "step": 0.5, "width": 0.2}
    return ca.StaticKWSA(CONTEXT_FREE, ca.Box.unit(dy), **(defaults | settings))


def test_a_stencil_is_a_centre_and_one_probe_per_dimension() -> None:
    policy = one_bin(dy=3)
    values = [policy.ask().value.tolist() for _ in range(4)]
    assert values == [[0.5, 0.5, 0.5], [0.7, 0.5, 0.5], [0.5, 0.7, 0.5], [0.5, 0.5, 0.7]]


def test_the_step_goes_up_and_the_width_shrinks() -> None:
    policy = one_bin()
    for payoff in (1.0, 1.1):
        policy.tell(policy.ask(), payoff)
    assert policy.recommend()[0] == pytest.approx(0.5 + 0.5 * (1.1 - 1.0) / 0.2)  # a_1 = a
    policy = one_bin(width=0.4)
    centres, probes = [], []
    for _ in range(3):
        decisions = [policy.ask(), policy.ask()]
        centres.append(decisions[0].value[0])
        probes.append(decisions[1].value[0])
        for decision in decisions:
            policy.tell(decision, 0.0)
    np.testing.assert_allclose(np.subtract(probes, centres), [0.4 * n**-0.25 for n in (1, 2, 3)])


def test_a_probe_outside_takes_the_other_side_and_one_on_the_edge_is_inside() -> None:
    policy = one_bin(start=[0.9])
    centre, probe = policy.ask(), policy.ask()
    assert probe.value[0] == pytest.approx(0.7)
    policy.tell(centre, 0.0)
    policy.tell(probe, -0.02)  # falling to the left: the gradient is +0.1
    assert policy.recommend()[0] == pytest.approx(0.95)
    on_edge = one_bin(start=[0.5], width=0.5)
    on_edge.ask()
    assert on_edge.ask().value[0] == 1.0


def test_alternate_changes_sides_and_central_takes_both() -> None:
    policy = one_bin(probe="alternate")
    offsets = []
    for _ in range(4):
        decisions = policy.ask(), policy.ask()
        offsets.append(decisions[1].value[0] - decisions[0].value[0])
        for decision in decisions:
            policy.tell(decision, 0.0)
    assert np.sign(offsets).tolist() == [1, -1, 1, -1]
    policy = one_bin(probe="central", dy=2)
    values = np.array([policy.ask().value for _ in range(4)])
    np.testing.assert_allclose(values, [[0.7, 0.5], [0.3, 0.5], [0.5, 0.7], [0.5, 0.3]])


def test_central_stops_at_the_edge_and_divides_by_what_is_left() -> None:
    policy = one_bin(probe="central", start=[0.9], step=0.1)
    above, below = policy.ask(), policy.ask()
    np.testing.assert_allclose([above.value[0], below.value[0]], [1.0, 0.7])
    policy.tell(above, 0.3)
    policy.tell(below, 0.0)
    assert policy.recommend()[0] == pytest.approx(0.9 + 0.1 * 0.3 / 0.3)


def test_averaging_recommends_and_probes_at_the_mean_of_the_iterates() -> None:
    policy = one_bin(average=True, step=0.1)
    iterates: list[float] = []
    iterate = 0.5
    for n in (1, 2, 3):
        decisions = policy.ask(), policy.ask()
        expected = np.mean(iterates) if iterates else 0.5
        assert decisions[0].value[0] == pytest.approx(expected)
        for decision, payoff in zip(decisions, (0.0, 0.3), strict=True):
            policy.tell(decision, payoff)
        width = decisions[1].value[0] - decisions[0].value[0]
        iterate = min(iterate + 0.1 / n * 0.3 / width, 1.0)
        iterates.append(iterate)
    assert policy.recommend()[0] == pytest.approx(np.mean(iterates))


@settings(max_examples=40)
@given(st.integers(1, 3), st.sampled_from(["forward", "alternate", "central"]), st.data())
def test_payoffs_in_any_order_complete_their_own_stencil(
    dy: int, probe: Any, data: st.DataObject
) -> None:
    """Any number of stencils open: each keeps its own centre, width and signs."""
    policy = one_bin(dy=dy, probe=probe, step=0.05)
    size = 2 * dy if probe == "central" else dy + 1
    decisions = [policy.ask() for _ in range(3 * size)]
    slopes = np.linspace(0.1, 0.3, dy)
    order = data.draw(st.permutations(range(3 * size)))
    iterate, n, missing = np.full(dy, 0.5), 1, [size] * 3
    for k in order:
        policy.tell(decisions[k], float(slopes @ decisions[k].value))  # linear: every G is exact
        missing[k // size] -= 1
        if missing[k // size] == 0:
            step = 0.05 / (n + 4 * (n - 1))  # all were opened at n = 1
            iterate, n = np.clip(iterate + step * slopes, 0, 1), n + 1
        np.testing.assert_allclose(policy.recommend(), iterate, atol=1e-12)
    assert policy.bins()[0].progress == 3


def test_a_payoff_that_comes_after_the_split_moves_what_the_children_start_from() -> None:
    policy = ca.AdaptiveKWSA(
        ca.Box.unit(1), ca.Box.unit(1), depth=1, split_after=[1], step=0.1, width=0.2
    )
    first, second, third, fourth = (policy.ask([0.2]) for _ in range(4))
    policy.tell(first, 0.0)
    policy.tell(second, 0.2)  # completes a stencil: the bin splits
    policy.ask([0.2])  # makes the lower child
    before = policy.recommend([0.2]), policy.recommend([0.8])
    policy.tell(third, 0.0)
    policy.tell(fourth, 0.2)
    assert policy.recommend([0.2]) == before[0]
    assert policy.recommend([0.8]) > before[1]  # nobody has visited the upper child yet
    assert len(policy.bins()) == 1


def test_ucb_takes_the_lowest_of_equal_indices() -> None:
    policy = ca.UniformUCB(CONTEXT_FREE, ca.Box.unit(1), bins=1, arms=3)
    for _ in range(3):
        policy.tell(policy.ask(), 1.0)
    assert policy.ask().value[0] == pytest.approx(1 / 6)


def test_ucb_goes_on_while_nothing_is_told() -> None:
    policy = ca.UniformUCB(CONTEXT_FREE, ca.Box.unit(1), bins=1, arms=3)
    decisions = [policy.ask() for _ in range(7)]
    values = [round(3 * d.value[0] - 0.5) for d in decisions]
    assert values == [0, 1, 2, 0, 1, 2, 0]
    policy.tell(decisions[2], 5.0)
    assert policy.ask().value[0] == pytest.approx(5 / 6)
    assert policy.recommend()[0] == pytest.approx(5 / 6)


class SamplerConfig(NamedTuple):
    """A learner of the other kind: each observation stands alone, and asking is random.

    The posterior of a mean payoff that is linear in the context and the decision: v ~ slope·u.
    """

    dy: int
    spread: float


@dataclass(frozen=True)
class Sampler:
    """What a user types to choose it."""

    spread: float

    def configured(self, dx: int, dy: int) -> SamplerConfig:
        return SamplerConfig(dy, self.spread)


SUM_XX, SUM_XY, SEEN = 0, 1, 2


@compiled
def _init(cfg: SamplerConfig, row: Array, start: Array) -> None:
    row[SUM_XX], row[SUM_XY], row[SEEN] = 1.0, 0.0, 0.0


@compiled
def _decide(
    cfg: SamplerConfig, row: Array, pool: Array, request: Request, work: Array, y: Array
) -> int:
    slope = row[SUM_XY] / row[SUM_XX] + cfg.spread * request.xi[0] / math.sqrt(row[SUM_XX])
    y[0] = 0.5 + slope * request.u[0]
    clip_into(request.region, y)
    return ALONE


@compiled
def _tell(cfg: SamplerConfig, row: Array, pool: Array, seen: Observation, work: Array) -> Foreseen:
    row[SUM_XX] += seen.u[0] * seen.u[0]
    row[SUM_XY] += seen.u[0] * seen.z
    row[SEEN] += 1.0
    return UNFORESEEN


@compiled
def _best(cfg: SamplerConfig, row: Array, request: Request, work: Array, y: Array) -> None:
    y[0] = 0.5 + row[SUM_XY] / row[SUM_XX] * request.u[0]
    clip_into(request.region, y)


@compiled
def _inherit(
    cfg: SamplerConfig, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    half = 0.5 * (high[0] - low[0])  # a slope per u of the parent, in u of the child
    child[SUM_XX] = parent[SUM_XX] * half * half
    child[SUM_XY] = parent[SUM_XY] * half
    child[SEEN] = 0.0


@compiled
def _progress(cfg: SamplerConfig, row: Array) -> int:
    return int(row[SEEN])


register(
    SamplerConfig,
    Learner(
        width=lambda cfg: 3,
        pool_width=lambda cfg: 3,
        draws=lambda cfg: 1,
        uses_context=lambda cfg: True,
        init=_init,
        decide=_decide,
        tell=_tell,
        best=_best,
        inherit=_inherit,
        progress=_progress,
    ),
)


def sampling_policy(grid: bool, rng: Any = None) -> ca.Policy:
    """A policy of the learner above, in bins by count."""
    partition: Any = ca.Grid(4) if grid else ca.Tree([20, 40])
    return ca.Policy(
        ca.Box.unit(1), ca.Box.unit(1), partition=partition, learner=Sampler(0.1), rng=rng
    )


@pytest.mark.parametrize("grid", [True, False])
def test_a_learner_whose_observations_stand_alone(grid: bool) -> None:
    """It runs live and compiled with the same bits, random numbers included."""

    def mean_payoff(x: Array, y: Array) -> Any:
        return -((y[0] - 0.2 - 0.5 * x[0]) ** 2)

    problem = ca.Problem(
        context=ca.Box.unit(1), decision=ca.Box.unit(1), mean_payoff=mean_payoff, noise=0.0
    )
    policy = sampling_policy(grid)
    run = ca.simulate(policy, problem, horizon=500, rng=3)
    streams = np.random.SeedSequence(3, spawn_key=(0,)).spawn(3)
    live = policy.copy(rng=np.random.default_rng(streams[2]))
    for x in problem.draw_contexts(np.random.default_rng(streams[0]), 500):
        decision = live.ask(x)
        live.tell(decision, problem.mean_payoff(x, decision.value))
    states = run.policies[0].life.model.state, live.life.model.state
    for ours, theirs in zip(*states, strict=True):
        np.testing.assert_array_equal(ours.view(np.int64), theirs.view(np.int64))
    assert len({float(live.ask([0.3]).value[0]) for _ in range(9)}) == 9
    assert len(live.bins()) == 4


@pytest.mark.parametrize("grid", [True, False])
def test_late_observations_that_stand_alone_go_to_the_bin_of_their_context(grid: bool) -> None:
    policy = sampling_policy(grid, rng=0)
    late = policy.ask([0.9])
    for x in itertools.islice(itertools.cycle([0.1, 0.3, 0.6, 0.8]), 400):
        policy.tell(policy.ask([x]), 0.0)
    told = {tuple(b.low): b.told for b in policy.bins()}
    policy.tell(late, 1.0)
    changed = [k for k, v in ((tuple(b.low), b.told) for b in policy.bins()) if told.get(k) != v]
    assert changed == [(0.75,)]


def test_a_learner_that_exports_another_decision_breaks_its_contract() -> None:
    """A table without `rule` says that one decision is best in the whole bin."""
    policy = sampling_policy(True, rng=0)
    check_table(policy)
    for x in np.linspace(0.0, 1.0, 20):
        decision = policy.ask([x])
        policy.tell(decision, float(x))
    with pytest.raises(AssertionError, match="a reader must decide as `recommend` does"):
        check_table(policy)
