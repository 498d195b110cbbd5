"""Gradients that are told: the step that is learned from them, late ones, and what they bring."""

from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.learners.protocol import Read, code
from continuarm.core.learners.smooth import layout
from continuarm.core.learners.smooth_gradient import LARGEST
from continuarm.core.state import HEAD, SERIAL
from continuarm.errors import SavedFileError

UNIT, NONE = ca.Box.unit(1), ca.Box.unit(0)
SEEDS = 10


def climb(policy: ca.Policy, gradients: list[float]) -> list[float]:
    """The decisions of a policy that is told these gradients one by one."""
    found = []
    for gradient in gradients:
        decision = policy.ask()
        found.append(float(decision.value[0]))
        policy.tell(decision, 0.0, gradient=[gradient])
    return found


def is_ahead(ours: Any, others: Any) -> bool:
    """Whether the mean of paired gains lies five standard errors above 0."""
    gain = others - ours
    return bool(gain.mean() > 5 * gain.std(ddof=1) / np.sqrt(len(gain)))


def test_with_a_given_curvature_the_learned_step_is_robbins_monro() -> None:
    """Mean decision plus a times mean gradient is a_n = a/n (docs/robbins-monro.md)."""
    learned = ca.Policy(NONE, UNIT, partition=ca.Grid(1), learner=ca.SmoothGradient(fade=0.0))
    printed = ca.RobbinsMonro(NONE, UNIT, bins=1, step=1 / (2 * 2.0))  # dv/dy = 2
    learned.tell(learned.ask(), 0.0, gradient=[0.0])  # the bin is made
    row = learned.life.model.state.rows[1, HEAD:]
    cfg: Any = learned.life.model.lcfg
    slope, bend = (int(layout.row_at(cfg, i)) for i in (1, 2))
    row[slope : slope + 2], row[bend] = (1e-6, 0.0), 1e6  # as good as no ridge; a ridge of H,
    row[bend + cfg.size - 2], row[LARGEST] = -2.0 * 1e6, 1.0  # of -2, that nothing moves
    gradients = np.random.default_rng(0).uniform(-0.4, 0.4, 40).tolist()
    np.testing.assert_allclose(climb(learned, gradients), climb(printed, gradients), atol=1e-6)


def test_a_late_gradient_takes_a_smaller_step() -> None:
    """a/(n + 4τ), τ the steps since the decision was asked for."""
    policy = ca.RobbinsMonro(NONE, UNIT, bins=1, step=0.1)
    first, second, third = (policy.ask() for _ in range(3))
    expected = 0.5
    for k, decision in enumerate((second, third, first)):
        policy.tell(decision, 0.0, gradient=[1.0])
        expected += 0.1 / (1 + k + 4 * k)
        assert policy.recommend()[0] == pytest.approx(expected, rel=1e-14)
    fresh = policy.ask()
    policy.tell(fresh, 0.0, gradient=[1.0])
    assert policy.recommend()[0] == pytest.approx(expected + 0.1 / 4, rel=1e-14)


@pytest.mark.parametrize("options", [{}, {"step": 0.1, "bins": 1}], ids=["learned", "given"])
def test_many_late_gradients_from_one_place_do_not_overshoot(options: dict[str, Any]) -> None:
    """100 gradients of a peak at 0.6: full steps a/n would sum to 5.2 times the first."""
    policy = ca.RobbinsMonro(NONE, UNIT, **options)
    decisions = policy.ask_many(np.empty((100, 0)))
    gradients = 4.0 * (0.6 - decisions.values)
    policy.tell_many(decisions, np.zeros(100), gradients=gradients)
    one_step = 0.25 if not options else 0.1 * 0.4 * (1 + 1 / 4 + np.log(100) / 5)
    assert 0.5 < policy.recommend()[0] <= 0.5 + one_step


def test_nothing_but_the_boxes_is_needed() -> None:
    shape = ca.RobbinsMonro(UNIT, ca.Box.unit(2)).describe()
    assert shape == ca.RobbinsMonro(UNIT, ca.Box.unit(2), bins=1).describe()


def test_the_papers_choice_has_a_name() -> None:
    boxes = UNIT, ca.Box.unit(2)
    known: dict[str, Any] = {"horizon": 10**5, "curvature": 0.5}
    by_name = ca.RobbinsMonro(*boxes, step="printed", bins="printed", **known)
    assert by_name.describe() == ca.RobbinsMonro(*boxes, step=2.0, bins=316).describe()
    assert by_name.describe() == ca.RobbinsMonro(*boxes, step="printed", **known).describe()
    deep = ca.RobbinsMonro(*boxes, step="printed", depth="consistent", **known)
    assert deep.describe() == ca.RobbinsMonro(*boxes, step=2.0, depth=8).describe()


@pytest.mark.parametrize("memory", [None, 1, 30])
@pytest.mark.parametrize("scale", [1e-308, 1e-150, 1.0, 1e90, 1e150, 1e308])
def test_no_gradient_makes_a_state_of_nan(memory: int | None, scale: float) -> None:
    """Huge, vanishing and alternating gradients; contexts that stand still and then move."""
    policy = ca.RobbinsMonro(ca.Box.unit(2), ca.Box.unit(2), memory=memory)
    rng = np.random.default_rng(0)
    for k in range(300):
        x = rng.random(2) if k % 100 < 30 else np.array([0.5, 0.25])
        decision = policy.ask(x)
        assert np.isfinite(decision.value).all()
        size = (0.0, 1.0, scale)[rng.integers(3)]
        policy.tell(decision, 0.0, gradient=size * rng.uniform(-1.0, 1.0, 2))
    assert all(np.isfinite(array).all() for array in policy.life.model.state)
    assert np.isfinite(policy.recommend_many(rng.random((50, 2)))).all()


def test_one_gradient_out_of_all_proportion_does_little() -> None:
    policy, rng = ca.RobbinsMonro(NONE, UNIT), np.random.default_rng(0)
    for k in range(400):
        decision = policy.ask()
        noise = 1e6 if k == 50 else 0.1 * rng.standard_normal()
        policy.tell(decision, 0.0, gradient=2.0 * (0.3 - decision.value) + noise)
    assert policy.recommend()[0] == pytest.approx(0.3, abs=0.03)


def test_what_was_really_done_is_learned() -> None:
    """The gradient was measured at 0.5, whatever had been decided."""
    policy = ca.RobbinsMonro(NONE, UNIT)
    for value in (0.5, 0.4, 0.7):
        gradient = [2.0 * (0.6 - value)]
        policy.tell(policy.ask(), 0.0, gradient=gradient, value=[value])
    for _ in range(20):
        decision = policy.ask()
        policy.tell(decision, 0.0, gradient=2.0 * (0.6 - decision.value))
    assert policy.recommend()[0] == pytest.approx(0.6, abs=3e-3)


def trained(dy: int, n: int = 300) -> ca.Policy:
    policy, rng = ca.RobbinsMonro(UNIT, ca.Box.unit(dy)), np.random.default_rng(1)
    for x in rng.random((n, 1)):
        decision = policy.ask(x)
        noise = 0.01 * rng.standard_normal(dy)
        policy.tell(decision, 0.0, gradient=4.0 * (0.2 + 0.5 * x - decision.value) + noise)
    return policy


@pytest.mark.parametrize("dy", [1, 3, 70])
def test_it_follows_a_best_decision_that_depends_on_the_context(dy: int) -> None:
    """Up to ten dimensions with a full Hessian, beyond with its diagonal."""
    policy = trained(dy)
    for x in (0.1, 0.5, 0.9):
        np.testing.assert_allclose(policy.recommend([x]), 0.2 + 0.5 * x, atol=0.02)
    numbers = policy.explain([0.5])
    curvature = np.array(numbers["curvature"])  # decisions at the peak say little of it
    assert ((curvature > -5.0) & (curvature < -1.0)).all()
    np.testing.assert_allclose(numbers["slope"], 0.0, atol=1e-6)


@pytest.mark.parametrize("dy", [1, 3, 70])
def test_explain_knows_curvature_and_noise_where_decisions_differ(dy: int) -> None:
    """Gradients 4(0.2 + 0.5 x - y) + 0.01 ξ of 1,000 decisions all over the box."""
    policy, rng = ca.RobbinsMonro(UNIT, ca.Box.unit(dy)), np.random.default_rng(1)
    for x in rng.random((1000, 1)):
        value, noise = rng.random(dy), 0.01 * rng.standard_normal(dy)
        gradient = 4.0 * (0.2 + 0.5 * x - value) + noise
        policy.tell(policy.ask(x), 0.0, gradient=gradient, value=value)
    numbers = policy.explain([0.5])
    np.testing.assert_allclose(numbers["curvature"], -4.0, atol=0.02)
    assert 0.01 < numbers["noise"] < 0.05  # the errors of the first steps count, too


def test_a_log_says_where_to_begin() -> None:
    policy, rng = ca.RobbinsMonro(NONE, UNIT), np.random.default_rng(3)
    prices = rng.random(200)
    policy.learn_from({"0": prices, "payoff": -((prices - 0.8) ** 2)})
    assert policy.recommend()[0] == pytest.approx(0.8, abs=0.02)
    policy.tell(policy.ask(), 0.0, gradient=[0.1])  # twenty gradients' worth of trust in the log
    assert policy.recommend()[0] == pytest.approx(0.8, abs=0.05)


def test_a_file_that_no_learner_could_have_made_is_refused() -> None:
    policy = trained(1)
    (row,) = [r for r in policy.life.model.state.rows if r[SERIAL] > 0][:1]
    cfg = policy.life.model.lcfg
    assert code(cfg).fits(cfg, Read(row[None, HEAD:], [1], {1}, np.zeros((8, 2)), set(), []))
    for k, value in ((LARGEST, -1.0), (LARGEST, np.inf), (len(row) - HEAD - 1, np.nan)):
        damaged = policy.copy()
        for r in damaged.life.model.state.rows:
            if r[SERIAL] > 0:
                r[HEAD + k] = value
        content = damaged.snapshot()
        damaged.life.model.state.rows[:] = 0.0  # the tests walk all states for NaN
        with pytest.raises(SavedFileError):
            ca.Policy.from_snapshot(content)


def test_a_twentieth_of_static_kwsa_as_printed() -> None:
    """On the paper's problem, told the horizon alone, by five standard errors."""
    runs = [
        ca.simulate(name, "two-communities", horizon=10**4, replications=SEEDS, rng=0)
        for name in ("robbins-monro", "static-kwsa")
    ]
    assert is_ahead(20 * runs[0].regret[:, -1], runs[1].regret[:, -1])


@pytest.mark.parametrize("world", ["hard", "communities-drowned", "logit-demand", "ridge"])
def test_gradients_are_ahead_of_the_recommended_policy(world: str) -> None:
    """Where it is hardest: many steps, much noise, little curvature, much of it (paired)."""
    runs = [
        ca.simulate(name, world, horizon=20_000, replications=2 * SEEDS, rng=0)
        for name in ("robbins-monro", "recommended")
    ]
    assert is_ahead(runs[0].regret[:, -1], runs[1].regret[:, -1])


def test_late_gradients_cost_what_is_decided_before_they_come() -> None:
    """1,000 decisions late: the centre for so long, about as much again until it has learned.

    The ratio is 2.15 over 120 seeds; 2.5 is more than five standard errors away with 60.
    """
    world, late, seeds = ca.problem("two-communities"), 1000, 60
    slow = ca.simulate(
        "robbins-monro", world.with_feedback(delay=late), horizon=10**4, replications=seeds, rng=0
    ).regret[:, -1]
    centre = ca.simulate("fixed", world, horizon=late, replications=seeds, rng=0).regret[:, -1]
    assert is_ahead(slow, 2.5 * centre)


def test_a_memory_follows_what_moves() -> None:
    """The best decision jumps from 0.2 to 0.8 after 2,000 gradients; 300 are kept in mind."""
    found = {}
    for memory in (None, 300):
        policy, rng, gap = ca.RobbinsMonro(NONE, UNIT, memory=memory), np.random.default_rng(0), []
        for k in range(4000):
            decision, best = policy.ask(), 0.2 if k < 2000 else 0.8
            gap.append((decision.value[0] - best) ** 2)
            gradient = 2.0 * (best - decision.value) + 0.1 * rng.standard_normal()
            policy.tell(decision, 0.0, gradient=gradient)
        found[memory] = sum(gap[2000:])
    assert found[300] < 0.5 * found[None]
