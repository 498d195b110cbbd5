"""Starting from logs, and forgetting what is old."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import continuarm as ca
from continuarm.core.learners.iterate import COUNT
from continuarm.core.state import HEAD, TOLD
from continuarm.errors import InputError, SettingsError
from continuarm.problems.building import compiled_helper, tracking
from tests.test_policies import POLICIES, make, state


def shop() -> ca.Problem:
    """Two prices whose best values depend on the customer's age."""
    world = tracking(1, 2, compiled_helper(lambda x, i: 0.3 + 0.4 * x[0] * (1 - i)))
    world.context = ca.Box([0.0], [1.0], names=["age"])
    world.decision = ca.Box([0.0, 0.0], [1.0, 1.0], names=["price", "fee"])
    return world


def log(world: ca.Problem, n: int, rng: np.random.Generator) -> dict[str, Any]:
    """An older rule: the middle of the box, give or take a third of it."""
    ages = rng.random(n)
    prices, fees = 0.5 + rng.uniform(-0.3, 0.3, (2, n))
    payoffs = [world.payoff([a], [p, f], rng) for a, p, f in zip(ages, prices, fees, strict=True)]
    return {"age": ages, "price": prices, "fee": fees, "earned": payoffs}


def test_a_log_halves_the_first_regret() -> None:
    world, rng = shop(), np.random.default_rng(0)
    table = log(world, 3000, rng)
    for policy in (
        ca.SurfaceSampling(world.context, world.decision),
        ca.StaticKWSA(
            world.context, world.decision, bins=4, step=0.5, start=[0.0, 1.0], probe="central"
        ),
    ):
        cold = ca.simulate(policy, world, horizon=2000, replications=4, rng=1)
        policy.learn_from(pl.DataFrame(table), payoff="earned")
        warm = ca.simulate(policy, world, horizon=2000, replications=4, rng=1)
        assert warm.mean[-1] < 0.5 * cold.mean[-1]


def test_a_log_blocks_nothing_that_it_has_not_seen() -> None:
    """The older rule never went above 0.4, and the best price is 0.7."""
    world, rng = shop(), np.random.default_rng(0)
    table = log(world, 3000, rng)
    seen = np.flatnonzero(table["price"] < 0.4)
    policy = ca.SurfaceSampling(world.context, world.decision, rng=0)
    policy.learn_from(
        {name: np.array(column)[seen] for name, column in table.items()}, payoff="earned"
    )
    for learned in ca.simulate(policy, world, horizon=20_000, replications=3, rng=1).policies:
        np.testing.assert_allclose(learned.recommend([1.0]), [0.7, 0.3], atol=0.12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fee": None}, "'fee' is missing"),
        ({"fee": ["1", "2"]}, "column 'fee' of the log must hold numbers"),
        ({"fee": [0.5]}, "one length, but 'fee' has not"),
        ({"price": [0.5, 2.0]}, "`0.0 <= price <= 1.0` must hold, but got 2.0"),
        ({"age": [0.5, -1.0]}, "`0.0 <= age <= 1.0` must hold, but got -1.0"),
        ({"earned": [1.0, np.nan]}, "row 1 of 'earned' has nan"),
    ],
)
def test_a_bad_log_changes_nothing(change: dict[str, Any], message: str) -> None:
    world = shop()
    policy = ca.SurfaceSampling(world.context, world.decision, rng=0)
    before = state(policy)
    good: dict[str, Any] = {k: [0.5, 0.6] for k in ("age", "price", "fee", "earned")}
    table = {k: v for k, v in (good | change).items() if v is not None}
    with pytest.raises(InputError) as error:
        policy.learn_from(table, payoff="earned")
    assert message in str(error.value)
    assert state(policy) == before


def test_a_log_on_the_edge_of_the_box_finds_its_arm() -> None:
    policy = ca.UniformUCB(ca.Box.unit(0), ca.Box([0.0], [1.0], names=["y"]), bins=1, arms=5)
    rows = policy.life.model.state.rows.shape
    policy.learn_from({"y": [1.0, 1.0, 0.0], "payoff": [5.0, 5.0, 1.0]})
    assert policy.life.model.state.rows.shape == rows
    assert policy.recommend()[0] == pytest.approx(0.9)


def test_nothing_is_recommended_that_nobody_has_tried() -> None:
    """A log with one price says nothing about others; too few payoffs say nothing at all."""
    boxes = ca.Box([0], [24], names=["hour"]), ca.Box([1.0], [9.0], names=["price"])
    rng = np.random.default_rng(0)
    for prices in (np.full(2000, 5.5), rng.uniform(4.0, 6.0, 2000)):
        policy = ca.SurfaceSampling(*boxes, rng=0)
        hours, payoffs = rng.uniform(0, 24, 2000), 3 + rng.standard_normal(2000)
        policy.learn_from({"hour": hours, "price": prices, "payoff": payoffs})
        best = policy.recommend_many(rng.uniform(0, 24, (50, 1)))
        assert prices.min() - 1e-9 <= best.min() <= best.max() <= prices.max() + 1e-9
    early = ca.SurfaceSampling(*boxes, start=[3.0])
    for payoff in (1.0, 2.0, 3.0):
        early.tell(early.ask([12]), payoff)
    assert early.recommend([12])[0] == pytest.approx(3.0)


def test_a_log_needs_names_that_differ() -> None:
    policy = ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(1))
    with pytest.raises(InputError, match="different column names"):
        policy.learn_from({"0": [0.5], "payoff": [1.0]})


@pytest.mark.parametrize(("name", "more"), [("SurfaceSampling", {}), ("StaticKWSA", {"bins": 2})])
def test_memory_follows_a_best_decision_that_moves(name: str, more: dict[str, Any]) -> None:
    worlds = [
        tracking(1, 1, compiled_helper(lambda x, i: 0.25)),
        tracking(1, 1, compiled_helper(lambda x, i: 0.75)),
    ]

    def regret(memory: int | None) -> float:
        settings = POLICIES[name] | more if name == "StaticKWSA" else {}
        boxes = worlds[0].context, worlds[0].decision
        policy, total = getattr(ca, name)(*boxes, memory=memory, rng=0, **settings), 0.0
        for k in range(6):
            run = ca.simulate(policy, worlds[k % 2], horizon=4000, rng=k)
            policy, total = run.policies[0], total + float(run.regret[0, -1])
        return total

    assert regret(300) < 0.5 * regret(None)


@pytest.mark.parametrize("name", ["SurfaceSampling", "StaticKWSA", "RobbinsMonro"])
def test_memory_is_a_whole_number(name: str) -> None:
    with pytest.raises(SettingsError, match="`memory` must be a whole number >= 1"):
        make(name, memory=0)


def test_memory_counts_the_time_before_a_split() -> None:
    """A child first visited long after its parent's last payoff has forgotten most of it."""
    policy = ca.AdaptiveKWSA(
        ca.Box.unit(1), ca.Box.unit(1), step=0.5, depth=1, split_after=[100], memory=1000,
        inherit="iterate-and-count",
    )  # fmt: skip
    for _ in range(200):
        policy.tell(policy.ask([0.2]), 0.0)
    for _ in range(5000):
        policy.tell(policy.ask([0.2]), 0.0)
    policy.tell(policy.ask([0.8]), 0.0)
    (row,) = [r for r in policy.life.model.state.rows[1:4] if r[TOLD] == 1.0]
    assert 1.0 <= row[HEAD + COUNT] < 1.0 + 100 * np.exp(-5)
