"""Worlds that misbehave: no state ever holds a NaN, and what is saved can be loaded."""

from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.errors import InputError, SettingsError
from tests.worlds import check_state

UNIT = ca.Box([0.0], [1.0])


def is_sound(policy: ca.Policy, *contexts: Any) -> None:
    """Its numbers are numbers, it can be loaded, and it decides inside its box."""
    check_state(policy)
    again = ca.Policy.from_snapshot(policy.snapshot())
    for x in contexts:
        for one in (policy.recommend(x), again.ask(x).value):
            policy.decision.point(one)
        policy.explain(x)


def still(context: Any) -> Any:
    while True:
        yield context


def seldom(rng: np.random.Generator) -> Any:
    """Always one context, but for one payoff of another."""
    yield from ([0.5] for _ in range(800))
    yield [0.3]
    while True:
        yield [0.5]


def decades(rng: np.random.Generator) -> Any:
    while True:
        yield [10.0 ** rng.uniform(-80, 0)]


WORLDS: dict[str, Any] = {
    "a memory of one, and one other context": ({"memory": 1}, 2801, seldom),
    "a memory of one, for longer": ({"memory": 1}, 3000, seldom),
    "a memory of one, a context in the middle": ({"memory": 1}, 3000, lambda rng: still([0.5])),
    "a memory of ten": ({"memory": 10}, 15_000, lambda rng: still([0.5])),
    "a context that stands still for long": ({"memory": 200}, 130_000, lambda rng: still([0.25])),
    "contexts over 80 decades": ({}, 20_000, decades),
}


@pytest.mark.parametrize("name", WORLDS)
def test_the_recommended_policy_stays_sound(name: str) -> None:
    options, n, contexts_of = WORLDS[name]
    rng = np.random.default_rng(0)
    policy, contexts = ca.SurfaceSampling(UNIT, UNIT, rng=0, **options), contexts_of(rng)
    for noise in rng.standard_normal(n):
        x = next(contexts)
        decision = policy.ask(x)
        policy.tell(decision, -((float(decision.value[0]) - 0.3) ** 2) + 0.05 * noise)
    is_sound(policy, [0.5], [0.0], [1.0], [1e-60])
    found = [policy.ask([0.5]).value[0] for _ in range(50)]
    assert len(set(found)) > 1, "it decides one thing for ever"


@pytest.mark.parametrize("still", [0, 1])
def test_one_coordinate_that_stands_still_for_long(still: int) -> None:
    """The other one moves, so that nothing else is degenerate."""
    policy = ca.SurfaceSampling(ca.Box.unit(2), UNIT, memory=200, rng=0)
    rng = np.random.default_rng(0)
    for noise, x in zip(rng.standard_normal(130_000), rng.random((130_000, 2)), strict=True):
        x[still] = 0.25
        decision = policy.ask(x)
        policy.tell(decision, -((float(decision.value[0]) - 0.3) ** 2) + 0.05 * noise)
    is_sound(policy, [0.25, 0.25], [0.0, 1.0], [1.0, 0.0])
    assert len({policy.ask([0.25, 0.25]).value[0] for _ in range(50)}) > 1


@pytest.mark.parametrize("memory", [None, 1, 50, 200])
def test_a_log_whose_price_never_moves(memory: int | None) -> None:
    policy = ca.SurfaceSampling(
        ca.Box([0], [1], names=["x"]), ca.Box([0], [1], names=["y"]), memory=memory, rng=0
    )
    rng = np.random.default_rng(0)
    for _ in range(3):
        x = rng.random(20_000)
        policy.learn_from(
            {"x": x, "y": np.full(20_000, 0.4), "payoff": x + rng.standard_normal(20_000)}
        )
        is_sound(policy, [0.2], [0.9])
    assert len({policy.ask([0.2]).value[0] for _ in range(50)}) > 1


@pytest.mark.parametrize("context", [1.0, 0.0, 1 / 3])
def test_bins_that_cannot_be_halved_any_more_are_not(context: float) -> None:
    """All payoffs at one context, and a partition that splits whenever it can."""
    eager = ca.EvidenceTree(split_lead=1e-3, fresh_lead=1e-3, renew_lead=1e9, first=1, noted=2)
    partitions: list[Any] = [eager, ca.Tree([1] * 40)]
    for partition in partitions:
        policy = ca.Policy(UNIT, UNIT, partition=partition, learner=ca.ResponseSurface(), rng=0)
        rng = np.random.default_rng(1)
        for _ in range(2000):
            decision = policy.ask([context])
            policy.tell(decision, float(decision.value[0]) + 0.1 * rng.standard_normal())
        is_sound(policy, [context], [0.5])
        sides = [bin_.high[0] - bin_.low[0] for bin_ in policy.bins()]
        assert min(sides) > 0.0
    with pytest.raises(SettingsError, match="at most 40 levels can be split"):
        ca.Tree([1] * 41)


def test_payoffs_at_the_end_of_all_numbers() -> None:
    policies = [
        ca.StaticKWSA(UNIT, UNIT, bins=1, step=1e-200),
        ca.AdaptiveKWSA(UNIT, UNIT, depth=2, step=1.0),
        ca.SurfaceSampling(UNIT, UNIT, rng=0),
        ca.StaticKWSA(UNIT, UNIT, bins=1, step=1.0, average=True, memory=5),
        ca.UniformUCB(UNIT, UNIT, bins=1, arms=1),
        ca.UniformUCB(UNIT, UNIT, bins=1, arms=3),
    ]
    for policy in policies:
        largest = min(policy.life.model.largest_payoff, 1.7e308)
        for payoff in [-largest, largest, 1.0, 5e-324, largest, -largest] * 40:
            policy.tell(policy.ask([0.5]), payoff)
            is_sound(policy, [0.5])
    with pytest.raises(SettingsError, match="step"):
        ca.StaticKWSA(UNIT, UNIT, bins=1, step=5e-324)
    with pytest.raises(InputError, match="the payoff must be within"):
        policies[-1].tell(policies[-1].ask([0.5]), 1e308)


OPTIONS: dict[str, dict[str, Any]] = {
    "SurfaceSampling": {},
    "StaticKWSA": {"bins": 1, "step": 1.0},
    "UniformUCB": {"bins": 1, "arms": 3},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_limits_hold_to_the_last_digit(name: str) -> None:
    options = OPTIONS[name]
    rng = np.random.default_rng(0)
    for k in range(1500):
        edges = np.sort(rng.uniform(-10, 10, 4)) if k else np.array([-1e16, 0.1, 0.2, 1e16])
        policy = getattr(ca, name)(ca.Box.unit(0), ca.Box(edges[:1], edges[3:]), **options)
        within = ca.Box(edges[1:2], edges[2:3])
        found = [policy.ask((), within=within).value, policy.recommend((), within=within)]
        found.append(np.array(policy.explain((), within=within)["centre"]))
        for value in found:
            assert within.low <= value <= within.high, (edges, value)


def test_the_best_arm_within_limits_is_one_that_was_tried() -> None:
    policy = ca.UniformUCB(ca.Box.unit(0), UNIT, bins=1, arms=4)
    for payoff in (0.0, 5.0, 1.0, 9.0):
        policy.tell(policy.ask(), payoff)
    assert policy.recommend((), within=ca.Box([0.3], [0.7])).tolist() == [0.375]
    assert policy.ask((), within=ca.Box([0.3], [0.7])).value.tolist() == [0.375]
    assert policy.recommend((), within=ca.Box([0.41], [0.42])).tolist() == [0.42]


@pytest.mark.parametrize("policy", OPTIONS)
def test_compiled_and_live_agree_where_payoffs_are_lost_for_ever(policy: str) -> None:
    world = ca.problem("quadratic", dx=0, dy=1).with_feedback(lost=0.3)
    options = OPTIONS[policy]
    made = getattr(ca, policy)(world.context, world.decision, ttl=None, **options)
    slow = world.with_feedback(lost=0.3)
    slow._functions = slow.functions._replace(compiled=False)
    fast, live = (ca.simulate(made, w, horizon=400, rng=0).policies[0] for w in (world, slow))
    assert fast.snapshot() == live.snapshot()


def test_compiled_and_live_agree_on_gradients_in_units() -> None:
    world = ca.Problem(
        context=UNIT,
        decision=ca.Box([0.0], [3.0]),
        mean_payoff=lambda x, y: -((y[0] - 1.0) ** 2),
        best_decision=lambda x: np.array([1.0]),
        gradient=lambda x, y: np.array([-2.0 * (y[0] - 1.0)]),
        noise=0.1,
    )
    slow = world.with_feedback()
    slow._functions = slow.functions._replace(compiled=False)
    made = ca.RobbinsMonro(world.context, world.decision, bins=1, step=0.1)
    fast, live = (ca.simulate(made, w, horizon=300, rng=0).policies[0] for w in (world, slow))
    assert fast.snapshot() == live.snapshot()
