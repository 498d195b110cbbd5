"""A newcomer takes the place of a past that misleads, and of no other (docs/recommended.md)."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.learners.surface import layout
from continuarm.core.learners.surface.triangle import forget_decision
from continuarm.core.partitions.evidence.nodes import (
    HALVES,
    NEWCOMER,
    NEWCOMER_TIME,
    PARTS,
    RENEWER,
    ROOT,
    TIMES,
    USED,
    part,
)
from continuarm.core.state import HEAD, in_use
from tests.test_steady_surface import SHAPES, surface_of

UNIT = ca.Box.unit(1)


def surface(context: ca.Box, decision: ca.Box, *, tree: dict[str, Any], rng: Any) -> ca.Policy:
    learner = ca.ResponseSurface(reach=0.1, bounded=True, level=True, calm=True)
    return ca.Policy(
        context, decision, partition=ca.EvidenceTree(**tree), learner=learner, rng=rng
    )


def live(policy: ca.Policy, peak: float, steps: int, rng: np.random.Generator) -> float:
    """Let a policy live where the best decision is `peak`; its mean regret over the last fifth."""
    regrets = []
    for x in rng.random((steps, 1)):
        decision = policy.ask(x)
        regret = float((decision.value[0] - peak) ** 2)
        policy.tell(decision, -regret + 0.05 * rng.standard_normal())
        regrets.append(regret)
    return float(np.mean(regrets[-steps // 5 :]))


def test_a_wrong_past_ends_and_what_it_held_is_given_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    policy = ca.SurfaceSampling(UNIT, ca.Box([0.0], [1.0]), rng=0)
    live(policy, 0.3, 4000, rng)
    oldest = max(found.id for found in policy.bins())
    # another best decision, and a curvature of which nothing was known
    for x in rng.random((3000, 1)):
        decision = policy.ask(x)
        away = float(decision.value[0]) - 0.8
        policy.tell(decision, -8.0 * away * away + 0.05 * rng.standard_normal())
    assert all(found.id > oldest for found in policy.bins())
    assert policy.recommend([0.5])[0] == pytest.approx(0.8, abs=0.03)
    state = policy.life.model.state
    if len(policy.bins()) == 1:
        challengers = 1 + 4 if state.nodes[ROOT, RENEWER] > 0 else 0
        assert in_use(state) == 1 + 1 + challengers + (state.nodes[0, NEWCOMER] > 0)
    policy.save(tmp_path / "policy.continuarm")
    again = ca.load(tmp_path / "policy.continuarm")
    assert again.snapshot() == policy.snapshot()


@pytest.mark.parametrize(
    ("past", "now"), [("two-communities", "jump"), ("communities-quiet", "quadratic")]
)
def test_it_recovers_from_another_world(past: str, now: str) -> None:
    """Late regret at most twice a fresh policy's; without what mends it, many times as much."""
    marks = [40_000, 50_000]
    fresh = ca.simulate(
        "recommended", now, horizon=marks[-1], replications=4, rng=0, checkpoints=marks
    )
    late = []
    for tree in ({}, {"anew_lead": 0.0, "long": None}):
        made = partial(surface, tree=tree)
        fitted = ca.simulate(made, past, horizon=20_000, rng=51, checkpoints=1).policies[0]
        run = ca.simulate(fitted, now, horizon=marks[-1], rng=51, checkpoints=marks)
        late.append(float(np.diff(run.regret)[0, 0] / np.diff(fresh.regret).mean()))
    assert late[0] < 2.0
    if past == "communities-quiet":
        assert late[1] > 5.0


@pytest.mark.parametrize(
    "world",
    ["two-communities", "heavy-tails", "absurd-payoffs", "cauchy-noise", "purchase-in-1000"],
)
def test_where_the_past_is_right_a_newcomer_changes_nothing(world: str) -> None:
    runs = [
        ca.simulate(partial(surface, tree=tree), world, horizon=20_000, replications=3, rng=7)
        for tree in ({}, {"anew_lead": 0.0})
    ]
    np.testing.assert_array_equal(runs[0].regret, runs[1].regret)
    headers = [policy.life.model.state.nodes[0] for policy in runs[0].policies]
    assert all(header[NEWCOMER] > 0 and header[TIMES] > 3 for header in headers)
    assert all(policy.life.model.state.nodes[0, NEWCOMER] == 0 for policy in runs[1].policies)


def test_its_times_are_short_and_long_in_turn() -> None:
    policy = ca.SurfaceSampling(UNIT, UNIT, rng=0)
    p = policy.life.model.pcfg.coefficients
    rng, times = np.random.default_rng(3), 0.0
    found: list[tuple[float, int]] = []
    while len(found) < 64:
        live(policy, 0.4, 1, rng)
        header = policy.life.model.state.nodes[0]
        if header[TIMES] > times:
            times = header[TIMES]
            found.append((float(header[NEWCOMER_TIME]) / (20 * p), policy.stats().told))
    for number, (time, told) in enumerate(found, 1):
        longest = 1
        while 16 * 2 * longest * 20 * p <= told:
            longest *= 2
        assert time == min(number & -number, longest)
    assert {time for time, _ in found} == {1.0, 2.0, 4.0}


def test_challengers_that_keep_little_keep_less_of_a_long_past() -> None:
    for long in (50.0, None):
        made = partial(surface, tree={"long": long, "split_lead": 1e9, "fresh_lead": 1e9})
        run = ca.simulate(made, "street-quiet", horizon=12_000, rng=0)
        model = run.policies[0].life.model
        node, dx = model.state.nodes[ROOT], 1
        assert model.state.nodes[0, USED] > ROOT
        first = part(model.pcfg, HALVES + PARTS)
        assert node[RENEWER] > 0
        for row in (int(node[RENEWER]), int(node[first]), int(node[first + dx])):
            head = model.state.rows[row, HEAD:]
            inherited = head[layout.AGE] - head[layout.SEEN]
            before = head[layout.KNOWN] - head[layout.SEEN]  # what the bin had seen then
            held = before if long is None else math.sqrt(50.0 * model.pcfg.coefficients * before)
            assert before > 100.0 * model.pcfg.coefficients
            assert inherited == pytest.approx(0.1 * held, rel=0.02)


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_doubting_the_decision_forgets_a_share_of_it_and_changes_no_estimate(
    dx: int, dy: int
) -> None:
    made = surface_of(dx, dy)
    r, d = made.triangle()
    first = 1 + dx + (dx * (dx + 1) // 2 if made.cfg.pairs else dx)
    forget_decision(made.cfg, made.row, 0.25)
    after, d_after = made.triangle()
    np.testing.assert_allclose(np.linalg.solve(after, d_after), np.linalg.solve(r, d), rtol=1e-8)
    known, known_after = r.T @ r, after.T @ after

    def of_the_decision(k: Any) -> Any:
        inner = np.linalg.solve(k[:first, :first], k[:first, first:])
        return k[first:, first:] - k[first:, :first] @ inner

    np.testing.assert_allclose(
        of_the_decision(known_after), 0.25 * of_the_decision(known), rtol=1e-7, atol=1e-9
    )
    np.testing.assert_allclose(known_after[:first], known[:first], rtol=1e-9, atol=1e-12)


def test_contexts_that_come_in_order_are_no_wrong_past() -> None:
    """A newcomer who knows the last hours well must not decide for the whole day."""
    regrets = []
    for tree in ({}, {"anew_lead": 0.0}):
        policy = surface(UNIT, UNIT, tree=tree, rng=1)
        rng, total = np.random.default_rng(1), 0.0
        for k in range(12_000):
            x = k % 2000 / 2000
            decision = policy.ask([x])
            regret = 4.0 * (float(decision.value[0]) - 0.2 - 0.6 * x) ** 2
            level = 5.0 * np.sin(6.0 * np.pi * x)
            policy.tell(decision, float(level - regret + 0.1 * rng.standard_normal()))
            total += regret
        regrets.append(total)
    assert regrets[0] == regrets[1]
