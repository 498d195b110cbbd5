"""Payoffs that come late, or never, in a simulation."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import continuarm as ca
from continuarm.errors import SettingsError
from continuarm.lab.arrivals import Arrivals
from continuarm.problems.feedback import NEVER, feedback

WORLD = ca.problem("two-communities")
POLICIES: dict[str, dict[str, Any]] = {
    "SurfaceSampling": {},
    "SurfaceSampling with a reach": {"reach": 0.1},
    "StaticKWSA": {"bins": 3, "step": 1.0, "width": 0.3, "probe": "alternate"},
    "AdaptiveKWSA": {"depth": 3, "step": 1.0, "probe": "central"},
    "UniformUCB": {"bins": 2, "arms": 3},
    "RobbinsMonro": {},
    "RobbinsMonro by steps": {"depth": 2, "step": 0.5},
}


def scattered(rng: np.random.Generator, n: int) -> Any:
    return rng.geometric(0.1, n) - 1


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(
    ("world", "more"),
    [
        (WORLD, {}),
        (WORLD.with_feedback(delay=7), {}),
        (WORLD.with_feedback(delay=scattered, lost=0.3), {"ttl": 40}),
        (WORLD.with_feedback(delay=30, lost=0.1), {"ttl": 20}),  # nothing comes in time
        (WORLD.with_feedback(delay=scattered, lost=0.3), {"ttl": 15, "missing": 0.25}),
        (WORLD, {"ttl": 15, "missing": 0.25}),
    ],
    ids=["at-once", "fixed", "scattered", "too-late", "missing", "held"],
)
def test_compiled_and_live_make_the_same_decisions(name: str, world: Any, more: Any) -> None:
    """One policy runs in the compiled loop, the other is asked and told one by one."""
    if name.startswith("RobbinsMonro") and "missing" in more:
        more = {"ttl": 15}
    policy = getattr(ca, name.split()[0])(WORLD.context, WORLD.decision, **POLICIES[name], **more)
    slow = world.with_feedback(delay=world.feedback.delay, lost=world.feedback.lost)
    slow._functions = slow.functions._replace(compiled=False)
    runs = [
        ca.simulate(policy, w, horizon=900, replications=2, rng=5, checkpoints=[100, 500])
        for w in (world, slow)
    ]
    np.testing.assert_array_equal(runs[0].regret, runs[1].regret)
    for fast, live in zip(runs[0].policies, runs[1].policies, strict=True):
        assert fast.snapshot() == live.snapshot()
        assert fast.open_decisions == live.open_decisions == 0


def test_a_clock_is_refused() -> None:
    boxes = WORLD.context, WORLD.decision
    with pytest.raises(SettingsError, match="needs a clock, which a simulation has not"):
        ca.simulate(ca.SurfaceSampling(*boxes, ttl_seconds=5), WORLD, horizon=9)


def test_no_delay_is_the_same_as_no_feedback() -> None:
    policy = ca.StaticKWSA(WORLD.context, WORLD.decision, **POLICIES["StaticKWSA"])
    at_once = ca.simulate(policy, WORLD, horizon=2000, rng=0).regret
    none = ca.simulate(policy, WORLD.with_feedback(delay=0), horizon=2000, rng=0).regret
    late = ca.simulate(policy, WORLD.with_feedback(delay=1), horizon=2000, rng=0).regret
    np.testing.assert_array_equal(at_once, none)
    assert (late != at_once).any()


def test_a_simulation_runs_over_many_blocks_and_pauses_anywhere() -> None:
    """Delays cross the blocks in which random numbers are drawn, and the ring grows."""

    def delay(rng: np.random.Generator, n: int) -> Any:
        return rng.integers(0, 2 if rng.random() < 0.5 else 5000, n)

    world = WORLD.with_feedback(delay=delay, lost=0.01)
    policy = ca.StaticKWSA(WORLD.context, WORLD.decision, **POLICIES["StaticKWSA"], ttl=6000)
    runs = [
        ca.simulate(policy, world, horizon=50_000, rng=1, checkpoints=marks).regret[0, -1]
        for marks in ([1], [10, 16_383, 16_384, 16_385, 40_000])
    ]
    assert runs[0] == runs[1]


def test_arrivals_are_sorted_by_time_and_then_by_decision() -> None:
    arrivals = Arrivals(ttl=10, horizon=100)
    arrivals.schedule(np.array([3, 0, 1, NEVER, 10, 9]))
    assert [arrivals.after(t) for t in range(6)] == [[], [1], [], [0, 2], [], []]
    assert [arrivals.arrives(t) for t in range(6)] == [True, True, True, False, False, True]
    arrivals.schedule(np.array([8, 0, 0, 0, 0, 0, 0, 0, 0]))
    assert arrivals.after(8) == [5, 6, 14]
    assert sorted(k for t in range(9) for k in arrivals.after(t)) == [5, *range(6, 15)]


def test_delays_are_numbers_functions_or_distributions() -> None:
    rng = np.random.default_rng(0)
    assert set(feedback(4, 0.0).draw(rng, 100)) == {4}
    drawn = feedback(stats.poisson(3), 0.25).draw(rng, 4000)
    assert np.mean(drawn == NEVER) == pytest.approx(0.25, abs=0.03)
    assert np.mean(drawn[drawn < NEVER]) == pytest.approx(3.0, abs=0.15)
    assert set(feedback(lambda rng, n: np.full(n, 2.9), 0).draw(rng, 9)) == {2}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"delay": -1}, "`delay` must be a whole number >= 0"),
        ({"delay": 2.5}, "`delay` must be a whole number >= 0"),
        ({"delay": "long"}, "`delay` must be a whole number >= 0"),
        ({"lost": 1.5}, "`0 <= lost <= 1.0` must hold"),
        ({"delay": lambda rng, n: [-1.0] * n}, "must give 16384 numbers >= 0"),
        ({"delay": lambda rng, n: 3}, "must give 16384 numbers >= 0"),
    ],
)
def test_wrong_feedback_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(SettingsError) as error:
        ca.simulate("static-kwsa", WORLD.with_feedback(**wrong), horizon=10)
    assert message in str(error.value)


def test_delays_beyond_the_horizon_need_no_room() -> None:
    boxes = WORLD.context, WORLD.decision
    for policy, world in (
        (ca.StaticKWSA(*boxes, bins=2, step=1.0, ttl=None), WORLD.with_feedback(delay=10**12)),
        (ca.StaticKWSA(*boxes, bins=2, step=1.0, ttl=10**12), WORLD.with_feedback(lost=0.1)),
    ):
        assert np.isfinite(ca.simulate(policy, world, horizon=300, rng=0).regret).all()


def test_decisions_that_were_open_before_are_forgotten() -> None:
    policy = ca.StaticKWSA(WORLD.context, WORLD.decision, bins=2, step=1.0, ttl=100)
    for x in np.linspace(0.0, 1.0, 50):
        policy.ask([x])
    slow = WORLD.with_feedback()
    slow._functions = slow.functions._replace(compiled=False)
    runs = [ca.simulate(policy, world, horizon=300, rng=0) for world in (WORLD, slow)]
    np.testing.assert_array_equal(runs[0].regret, runs[1].regret)
    assert policy.open_decisions == 50
    assert runs[0].policies[0].open_decisions == 0


def test_a_policy_of_your_own_is_told_late_too() -> None:
    told: list[int] = []

    class Counting:
        def __init__(self, *_: Any) -> None:
            self.asked = 0

        def ask(self, context: Any) -> Any:
            self.asked += 1
            return [0.5, 0.5]

        def tell(self, decision: Any, payoff: float) -> None:
            told.append(self.asked)

    ca.simulate(Counting, WORLD.with_feedback(delay=10), horizon=30, rng=0)
    assert told == list(range(11, 31))


def test_titles_say_delay_and_loss_and_two_runs_have_no_band() -> None:
    world = ca.problem("two-communities")
    late = world.with_feedback(delay=100, lost=0.2)
    for problem, said in ((world, ""), (late, "delay 100, 0.2 of payoffs lost")):
        run = ca.simulate("fixed", problem, horizon=200, replications=2, rng=0)
        assert run.feedback == said
        (axes,) = run.plot().axes
        assert said in axes.get_title()
        assert said in run.title
        assert "band" not in axes.get_title()
        assert not axes.collections
    (axes,) = ca.simulate("fixed", world, horizon=200, replications=3, rng=0).plot().axes
    assert "95 % band" in axes.get_title()
    assert len(axes.collections) == 1
    random = world.with_feedback(delay=lambda rng, n: rng.integers(0, 9, n))
    assert random.feedback.in_words == "random delays"
