"""What became of decisions: errors that say it, counts that add up, what was really done."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.errors import (
    AlreadyToldError,
    ExpiredDecisionError,
    InputError,
    UnknownDecisionError,
)
from continuarm.live.closings import EXPIRED, FORGOTTEN, TOLD, Closings, Note

UNIT = ca.Box([0.0], [1.0])


def shop(**options: Any) -> ca.Policy:
    return ca.SurfaceSampling(UNIT, UNIT, rng=0, **options)


def test_late_repeated_and_forgotten_payoffs_have_errors_of_their_own(tmp_path: Path) -> None:
    policy = shop(ttl=5)
    told, forgotten, late = (policy.ask([0.5]) for _ in range(3))
    policy.tell(told, 1.0)
    policy.forget(forgotten)
    for _ in range(6):
        policy.ask([0.2])
    policy.save(tmp_path / "policy")
    for one in (policy, ca.load(tmp_path / "policy"), policy.copy()):
        for decision, kind, message in (
            (told, AlreadyToldError, "a decision is told once, but the payoff of 0 was told"),
            (forgotten, UnknownDecisionError, "the decision must be open, but 1 was forgotten"),
            (late, ExpiredDecisionError, "within 5 decisions, but decision 2 has expired"),
            (77, UnknownDecisionError, "must have been handed out, but 77 was not"),
            (-1, UnknownDecisionError, "must have been handed out, but -1 was not"),
        ):
            with pytest.raises(UnknownDecisionError, match=message) as caught:
                one.tell(decision, 1.0)
            assert type(caught.value) is kind
            with pytest.raises(kind):
                one.forget(decision)
    for _ in range(1000):
        policy.tell(policy.ask([0.5]), 0.0)
    with pytest.raises(UnknownDecisionError, match="too old to say whether it was told"):
        policy.tell(late, 1.0)


def test_seconds_are_named_where_they_are_the_limit() -> None:
    policy = shop(ttl=None, ttl_seconds=2.0)
    decision = policy.ask([0.5], now=0.0)
    policy.expire(now=2.0)
    with pytest.raises(ExpiredDecisionError, match="within 2 seconds, but decision 0"):
        policy.tell(decision, 1.0)


def test_a_payoff_that_is_held_was_told() -> None:
    policy = shop(ttl=3, missing=0.0)
    decision, silent = policy.ask([0.5]), policy.ask([0.5])
    policy.tell(decision, 1.0)
    assert (policy.stats().told, policy.stats().held, policy.stats().open) == (1, 1, 1)
    for _ in range(4):
        with pytest.raises(AlreadyToldError):
            policy.tell(decision, 1.0)
        policy.ask([0.5])
    with pytest.raises(ExpiredDecisionError):
        policy.tell(silent, 1.0)
    assert (policy.stats().held, policy.stats().expired) == (0, 2)


def test_a_ttl_that_happens_to_be_the_default_was_given() -> None:
    assert shop(ttl=100_000, missing=0.0).ttl == 100_000


def test_the_counts_of_a_policy() -> None:
    policy = shop(ttl=4)
    assert policy.stats().mean_payoff is None
    decisions = [policy.ask([k / 10]) for k in range(4)]
    policy.tell(decisions[0], 3.0)
    policy.tell(decisions[1], 5.0)
    policy.forget(decisions[2])
    for _ in range(2):
        with pytest.raises(AlreadyToldError):
            policy.tell(decisions[0], 3.0)
    for wrong in (lambda: policy.ask([7]), lambda: policy.tell(decisions[3], float("nan"))):
        with pytest.raises(InputError):
            wrong()
    with pytest.raises(UnknownDecisionError):
        policy.tell(99, 1.0)
    for _ in range(4):
        policy.ask([0.5])
    with pytest.raises(ExpiredDecisionError):
        policy.tell_many([decisions[3].id], [1.0])
    stats = policy.stats()
    assert stats == ca.Stats(
        asked=8,
        told=2,
        open=4,
        held=0,
        expired=1,
        forgotten=1,
        refused={
            "already told": 2,
            "expired": 1,
            "unknown decision": 1,
            "bad input": 2,
            "other": 0,
        },
        bins=1,
        payoffs_per_bin=[2],
        mean_payoff=4.0,
    )


def test_refusals_are_no_part_of_the_state(tmp_path: Path) -> None:
    policy = shop()
    before = policy.snapshot()
    with pytest.raises(InputError):
        policy.ask([7])
    assert policy.snapshot() == before
    policy.tell(policy.ask([0.5]), 2.5)
    policy.save(tmp_path / "policy")
    stats = ca.load(tmp_path / "policy").stats()
    assert stats.refused == dict.fromkeys(stats.refused, 0)
    assert (stats.asked, stats.told, stats.mean_payoff) == (1, 1, 2.5)


def note(closed: Closings, noted: Note) -> None:
    closed.fates[noted[0]], closed.numbers = noted[1:]


def tell(closed: Closings, id_: int, payoff: float) -> None:
    note(closed, closed.noted(id_, TOLD, payoff))


def test_the_mean_payoff_follows_what_happens_lately() -> None:
    closed = Closings(10)
    for k in range(20_000):
        tell(closed, k, 1.0 if k < 10_000 else 3.0)
    assert closed.mean_payoff == pytest.approx(3.0, abs=1e-3)
    closed = Closings(10)
    for k in range(500):
        tell(closed, k, float(k))
    assert closed.mean_payoff == pytest.approx(249.5)
    for k in range(3000):
        tell(closed, k, 1.7e308 * (-1) ** k)
        assert np.isfinite(closed.numbers).all()


def test_silence_counts_in_the_mean_payoff() -> None:
    policy = shop(ttl=10, missing=0.0)
    for k in range(2000):
        decision = policy.ask([0.5])
        if k % 10 == 0:
            policy.tell(decision, 5.0)
    assert policy.stats().mean_payoff == pytest.approx(0.5, abs=0.1)


def test_fates_are_remembered_whatever_became_of_their_neighbours() -> None:
    rng, closed = np.random.default_rng(0), Closings(50)
    fates = rng.integers(1, 4, 500).tolist()
    for k, fate in enumerate(fates):
        note(closed, closed.noted(k, fate))
        for j in range(max(0, k - 49), k + 1):
            kind = type(closed.refusal(j, k + 1, ""))
            wanted = {TOLD: AlreadyToldError, EXPIRED: ExpiredDecisionError}
            assert kind is wanted.get(fates[j], UnknownDecisionError)
    counts = [fates.count(fate) for fate in (0, TOLD, FORGOTTEN, EXPIRED)]
    assert closed.counts == counts
    again = Closings(50)
    again.restore(closed.to_plain())
    assert again.to_plain() == closed.to_plain()


@pytest.mark.parametrize("late", [{}, {"delay": 7, "lost": 0.3}])
@pytest.mark.parametrize("more", [{}, {"ttl": 40}, {"ttl": 40, "missing": 0.1}])
def test_a_simulation_counts_what_became_of_decisions(late: Any, more: Any) -> None:
    world = ca.problem("plane").with_feedback(**late) if late else ca.problem("plane")
    slow = world.with_feedback(delay=world.feedback.delay, lost=world.feedback.lost)
    slow._functions = slow.functions._replace(compiled=False)
    policy = ca.SurfaceSampling(world.context, world.decision, **more)
    fast, live = (
        ca.simulate(policy, w, horizon=500, rng=3).policies[0].stats() for w in (world, slow)
    )
    assert fast._replace(mean_payoff=None) == live._replace(mean_payoff=None)
    assert fast.asked == fast.told + fast.expired + fast.forgotten == 500


def test_what_was_really_done_is_what_is_learned() -> None:
    """Told the rounded price, a policy knows what a policy knows that decided it."""
    decided, rounded = shop(), shop()
    rng = np.random.default_rng(0)
    for x in rng.random((200, 1)):
        one, other = decided.ask(x), rounded.ask(x)
        price = np.round(one.value, 1)
        payoff = -float((price[0] - 0.3) ** 2)
        decided.tell(one, payoff, value=price)
        rounded.tell_many([other.id], [payoff], values=[price])
        assert decided.snapshot() == rounded.snapshot()
    plain = shop()
    for x in rng.random((200, 1)):
        plain.tell(plain.ask(x), 0.0)
    assert decided.recommend([0.5])[0] == pytest.approx(0.3, abs=0.1)


def test_an_arm_that_was_not_tried_is_asked_again() -> None:
    policy = ca.UniformUCB(ca.Box.unit(0), UNIT, bins=1, arms=2)
    first = policy.ask()
    policy.tell(first, 1.0, value=[0.75])
    asked = [policy.ask().value[0] for _ in range(2)]
    assert sorted(asked) == [0.25, 0.75]


@pytest.mark.parametrize("name", ["StaticKWSA", "AdaptiveKWSA", "RobbinsMonro"])
def test_stencils_and_gradients_refuse_another_value(name: str) -> None:
    options: dict[str, Any] = (
        {"depth": 1, "step": 1.0} if name == "AdaptiveKWSA" else {"bins": 1, "step": 1.0}
    )
    policy = getattr(ca, name)(UNIT, UNIT, **options)
    slope = [1.0] if policy.uses_gradient else None
    decision, before = policy.ask([0.5]), policy.snapshot()
    with pytest.raises(InputError, match="learns from what it decided alone"):
        policy.tell(decision, 1.0, gradient=slope, value=[0.3])
    assert policy.snapshot() == before


def test_a_value_outside_the_box_is_refused() -> None:
    policy = shop()
    decision = policy.ask([0.5])
    with pytest.raises(InputError, match=r"`0\.0 <= value 0 <= 1\.0` must hold"):
        policy.tell(decision, 1.0, value=[1.5])
    policy.tell(decision, 1.0, value=[0.5])
