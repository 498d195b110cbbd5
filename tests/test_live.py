"""Late, lost and repeated payoffs, told to a live policy."""

import math
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.state import ROWS_USED
from continuarm.errors import AlreadyToldError, InputError, SettingsError, UnknownDecisionError
from tests.test_policies import make, slope, state


def climber(**more: Any) -> ca.Policy:
    """Kiefer–Wolfowitz in one dimension without contexts: stencils of two decisions."""
    settings: dict[str, Any] = {"bins": 1, "step": 0.05, "width": 0.1}
    return ca.StaticKWSA(ca.Box.unit(0), ca.Box.unit(1), **(settings | more))


def pool_in_use(policy: Any) -> int:
    """Stencils that hold a row of the pool."""
    pool = policy.life.model.state.pool
    free, count = int(pool[0, 0]), 0
    while free > 0:
        free, count = int(pool[free, 0]), count + 1
    return int(pool[0, 1]) - 1 - count


def learned(policy: Any) -> tuple[bytes, ...]:
    """All that a policy knows, however much room its arrays have."""
    counts, nodes, rows, pool, _ = policy.life.model.state
    used, pooled = int(counts[ROWS_USED]), int(pool[0, 1])
    arrays = counts, nodes, rows[:used], pool[:pooled]
    return tuple(array.tobytes() for array in arrays)


class TestStencils:
    def test_a_late_gradient_makes_a_smaller_step(self) -> None:
        """Four stencils at 0.5, all with the gradient -1; the k-th completed is k-1 steps old."""
        policy = climber()
        asked = [policy.ask() for _ in range(8)]
        expected = 0.5
        for n, (centre, probe) in enumerate(zip(asked[::2], asked[1::2], strict=True), 1):
            assert centre.value[0] == 0.5
            policy.tell(probe, -float(probe.value[0]))
            policy.tell(centre, -0.5)
            expected -= 0.05 / (n + 4 * (n - 1))
            assert policy.recommend()[0] == pytest.approx(expected, rel=1e-12)

    def test_a_forgotten_slot_is_handed_out_again_and_nothing_is_lost(self) -> None:
        """With half of the decisions forgotten it walks the same way as without."""
        plain, lossy = climber(probe="alternate"), climber(probe="alternate")
        rng = np.random.default_rng(0)
        for _ in range(50):
            x = plain.ask()
            y = lossy.ask()
            while rng.random() < 0.5:
                lossy.forget(y)
                y = lossy.ask()
            assert x.value[0] == y.value[0]
            payoff = -((x.value[0] - 0.3) ** 2)
            plain.tell(x, payoff)
            lossy.tell(y, payoff)
        assert lossy.recommend()[0] == plain.recommend()[0]
        assert pool_in_use(lossy) == pool_in_use(plain)

    def test_waiting_slots_of_several_stencils_come_before_a_new_stencil(self) -> None:
        policy = climber()
        asked = [policy.ask() for _ in range(6)]
        for k in (0, 1, 3, 4):
            policy.forget(asked[k])
        again = [policy.ask().value[0] for _ in range(4)]
        assert sorted(again) == sorted(asked[k].value[0] for k in (0, 1, 3, 4))
        assert pool_in_use(policy) == 3
        policy.ask()
        assert pool_in_use(policy) == 4

    def test_what_is_forgotten_in_a_bin_that_has_split_is_given_back(self) -> None:
        policy = ca.AdaptiveKWSA(
            ca.Box.unit(1), ca.Box.unit(1), step=0.05, depth=2, split_after=[1, 1]
        )
        first, second, third, fourth, fifth = (policy.ask([0.2]) for _ in range(5))
        policy.tell(first, 0.0)
        policy.tell(second, 0.0)  # the bin splits
        assert pool_in_use(policy) == 2
        policy.forget(third)
        before = policy.recommend([0.9])
        policy.tell(fourth, 9.0)  # cannot be completed any more: dropped
        assert pool_in_use(policy) == 1
        policy.tell(fifth, 1.0)  # the first slot of a stencil of which no other was handed out
        assert pool_in_use(policy) == 0
        assert policy.recommend([0.9]) == before

    def test_an_outage_is_not_asked_again_where_the_bin_once_was(self) -> None:
        """A stencil all of which was forgotten is dropped; the next one opens at the iterate."""
        policy = climber(start=[0.1])
        for _ in range(1000):
            policy.ask()
        policy.forget_all()
        for _ in range(3000):
            decision = policy.ask()
            policy.tell(decision, -((float(decision.value[0]) - 0.8) ** 2))
        assert abs(policy.ask().value[0] - policy.recommend()[0]) < 0.1
        assert pool_in_use(policy) == 1

    def test_a_split_gives_back_what_nobody_can_complete(self) -> None:
        policy = ca.AdaptiveKWSA(
            ca.Box.unit(1), ca.Box.unit(1), step=0.05, depth=1, split_after=[1]
        )
        one, two, three, four, five = (policy.ask([0.2]) for _ in range(5))
        policy.tell(five, 0.0)  # all that was handed out of the newest stencil is told
        policy.forget(three)
        policy.tell(four, 0.0)  # the stencil in the middle waits for a slot to be asked again
        policy.tell(one, 0.0)
        assert pool_in_use(policy) == 3
        policy.tell(two, 0.0)  # splits
        assert pool_in_use(policy) == 0

    def test_the_pool_stays_as_small_as_what_is_open(self) -> None:
        policy = ca.AdaptiveKWSA(ca.Box.unit(1), ca.Box.unit(2), step=0.1, depth=4, ttl=40)
        rng = np.random.default_rng(0)
        waiting: list[Any] = []
        for _ in range(6000):
            waiting.append(policy.ask([rng.random()]))
            if rng.random() < 0.7 and len(waiting) > 5:
                told = waiting.pop(int(rng.integers(len(waiting))))
                if told.id > policy.life.open.asked - 30:
                    policy.tell(told, float(rng.standard_normal()))
            waiting = waiting[-40:]
        assert policy.open_decisions <= 40
        assert pool_in_use(policy) <= 40 + 2 * len(policy.bins())

    def test_a_fifth_of_the_payoffs_lost_in_fifty_dimensions(self) -> None:
        """No stencil of 51 decisions survives that; each is completed all the same."""
        policy = ca.StaticKWSA(ca.Box.unit(0), ca.Box.unit(50), bins=1, step=0.5, ttl=200)
        rng = np.random.default_rng(0)
        for _ in range(20_000):
            decision = policy.ask()
            if rng.random() > 0.2:
                policy.tell(decision, -float(((decision.value - 0.2) ** 2).sum()))
        assert policy.bins()[0].progress > 250
        assert np.abs(policy.recommend() - 0.2).max() < 0.1


class TestTokens:
    def test_a_decision_handed_out_after_the_last_save_is_not_mistaken(
        self, tmp_path: Path
    ) -> None:
        """The loaded policy gives the same numbers and draws again, to another context."""
        policy = make("SurfaceSampling")
        opened = policy.ask([37, 1000])
        policy.save(tmp_path / "policy")
        lost = policy.ask([20, 1000])
        first, second = ca.load(tmp_path / "policy"), ca.load(tmp_path / "policy")
        mine = first.ask([80, 2000])
        assert (mine.id, mine.value.tolist()) == (lost.id, lost.value.tolist())
        for wrong in (lost, second.ask([80, 2000])):
            with pytest.raises(UnknownDecisionError, match="of another"):
                first.tell(wrong, 5.0)
        first.tell(mine, 0.0)
        first.tell(opened, 0.0)

    def test_old_tokens_are_kept_as_long_as_they_are_needed(self, tmp_path: Path) -> None:
        policy: Any = make("StaticKWSA")
        opened = []
        for _ in range(5):
            opened.append(policy.ask([37, 1000]))
            policy.save(tmp_path / "policy")
            policy = ca.load(tmp_path / "policy")
        assert len(policy._tokens.tokens) == 6
        for decision in opened[:4]:
            policy.tell(decision, 1.0)
        twin = policy.copy()
        for one in (policy, twin):
            one.tell(opened[4], 1.0)
        assert len(twin._tokens.tokens) == 6
        for one in (policy, twin):
            with pytest.raises(AlreadyToldError):
                one.tell(opened[0], 1.0)
        with pytest.raises(UnknownDecisionError, match="of another"):
            twin.tell(policy.ask([37, 1000]), 1.0)


class TestTimeToLive:
    def test_in_decisions(self) -> None:
        policy = climber(ttl=3)
        late = policy.ask()
        others = [policy.ask() for _ in range(2)]
        policy.tell(others[0], 0.0)
        again = policy.ask()  # the fourth: the first is three decisions old
        assert again.value[0] == late.value[0] == 0.5
        before = state(policy)
        with pytest.raises(
            UnknownDecisionError, match="within 3 decisions, but decision 0 has expired"
        ):
            policy.tell(late, 1.0)
        assert state(policy) == before
        policy.tell(again, 0.0)
        assert policy.bins()[0].progress == 1

    def test_in_the_callers_time(self) -> None:
        policy = climber(ttl_seconds=60)
        first, second = policy.ask(now=1000.0), policy.ask(now=1030)
        assert policy.expire(now=1059.9) == 0
        policy.tell(second, 0.0)
        assert policy.expire(now=1060.0) == 1
        with pytest.raises(UnknownDecisionError):
            policy.tell(first, 0.0)
        assert policy.ask(now=900.0).value[0] == first.value[0]  # time does not go back
        assert policy.expire(now=1119.0) == 0
        assert policy.expire(now=1120.0) == 1
        with pytest.raises(InputError, match="finite number of seconds"):
            policy.ask(now=math.nan)

    def test_a_refused_question_gives_up_nothing(self) -> None:
        """Although it comes when the time of another decision is over."""
        policy = ca.StaticKWSA(
            ca.Box.unit(1), ca.Box.unit(1), bins=1, step=0.05, ttl=1, ttl_seconds=60
        )
        policy.ask([0.5], now=0.0)
        before, heard = state(policy), list[Any]()
        policy.listen(heard.append)
        for wrong in ([1.5], [math.nan]):
            with pytest.raises(InputError):
                policy.ask(wrong, now=100.0)
        for within in (ca.Box([0.5], [1.5]), ca.Box.unit(2)):
            with pytest.raises(InputError):
                policy.ask([0.5], within=within, now=100.0)
        with pytest.raises(InputError):
            policy.ask_many([[0.5], [1.5]], now=100.0)
        assert state(policy) == before
        assert heard == []
        assert policy.expire(now=100.0) == 1

    def test_never(self) -> None:
        policy = climber(ttl=None)
        late = policy.ask()
        for _ in range(200_000):
            policy.ask()
        policy.tell(late, 1.0)
        assert policy.open_decisions == 200_000

    @pytest.mark.parametrize("name", ["SurfaceSampling", "StaticKWSA", "UniformUCB"])
    def test_missing_says_what_silence_is_worth(self, name: str, tmp_path: Path) -> None:
        """The same as telling all payoffs in order, that of silence too, when the time is up."""
        silent, told = make(name, ttl=5, missing=0.25), make(name, ttl=None)
        rng = np.random.default_rng(0)
        waiting: list[Any] = []
        for k, x in enumerate(silent.context.from_unit(rng.random((200, 2)))):
            if len(waiting) == 5:
                told.tell(*waiting.pop(0))
            decision, twin = silent.ask(x), told.ask(x)
            assert decision.value.tolist() == twin.value.tolist()
            waiting.append((twin, 0.25))
            if rng.random() < 0.5:
                silent.tell(decision, 1.0)
                waiting[-1] = (twin, 1.0)
                with pytest.raises(UnknownDecisionError):
                    silent.tell(decision, 1.0)  # held, and so told
                with pytest.raises(UnknownDecisionError):
                    silent.forget(decision)
            if k % 50 == 0:
                silent.save(tmp_path / "policy")
                silent = ca.load(tmp_path / "policy")
        silent.forget_all()
        assert silent.open_decisions == 0
        for twin, payoff in waiting:
            if payoff == 1.0:
                told.tell(twin, payoff)
            else:
                told.forget(twin)
        assert learned(silent) == learned(told)
        assert [b.asked for b in silent.bins()] == [b.asked for b in told.bins()]

    def test_silence_needs_a_time(self) -> None:
        with pytest.raises(SettingsError, match="`ttl` or `ttl_seconds` is needed with `missing`"):
            climber(missing=0.0)
        with pytest.raises(SettingsError, match="is needed with `missing`"):
            climber(missing=0.0, ttl=None)

    @pytest.mark.parametrize(
        "wrong", [{"ttl": 0}, {"ttl": 2.5}, {"ttl_seconds": -1}, {"missing": math.nan, "ttl": 9}]
    )
    def test_what_is_wrong_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(SettingsError, match=next(iter(wrong))):
            climber(**wrong)

    def test_silence_has_no_gradient(self) -> None:
        boxes = ca.Box.unit(0), ca.Box.unit(1)
        with pytest.raises(SettingsError, match=r"silence has no gradient, but got missing=0\.0"):
            ca.RobbinsMonro(*boxes, step=1.0, bins=1, ttl=9, missing=0.0)


@pytest.mark.parametrize(
    "name", ["SurfaceSampling", "StaticKWSA", "AdaptiveKWSA", "UniformUCB", "RobbinsMonro"]
)
class TestEveryPolicy:
    def test_a_forged_decision_is_refused(self, name: str) -> None:
        policy, other = make(name), make(name)
        decision, another = policy.ask([37, 1000]), policy.ask([38, 1000])
        other.ask([37, 1000])
        extra = slope(policy, np.zeros(3))
        forged = ca.Decision(
            decision.id, decision.context, decision.value + 0.1, decision.names, decision.policy
        )
        swapped = ca.Decision(
            another.id + 1, decision.context, decision.value, decision.names, decision.policy
        )
        before = state(policy), state(other)
        for wrong in (forged, swapped):
            with pytest.raises(UnknownDecisionError):
                policy.tell(wrong, 1.0, **extra)
            with pytest.raises(UnknownDecisionError):
                policy.forget(wrong)
        with pytest.raises(UnknownDecisionError, match="of another"):
            other.tell(decision, 1.0, **extra)
        assert (state(policy), state(other)) == before

    def test_told_and_forgotten_once(self, name: str) -> None:
        policy = make(name)
        decision = policy.ask([37, 1000])
        policy.forget(decision)
        before = state(policy)
        for verb in (policy.forget, lambda d: policy.tell(d, 1.0, **slope(policy, np.zeros(3)))):
            with pytest.raises(UnknownDecisionError):
                verb(decision)
        assert state(policy) == before

    def test_many_threads(self, name: str) -> None:
        """Asking, telling and forgetting at once: every decision ends exactly once."""
        policy = make(name, ttl=None)
        errors: list[BaseException] = []
        ended = [0] * 8

        def work(k: int) -> None:
            try:
                rng = np.random.default_rng(k)
                waiting: list[Any] = []
                for _ in range(300):
                    waiting.append(policy.ask([18 + 70 * rng.random(), 1000]))
                    if len(waiting) > 20:
                        decision = waiting.pop(int(rng.integers(20)))
                        if rng.random() < 0.2:
                            policy.forget(decision)
                        else:
                            gap = policy.decision.to_unit(decision.value) - 0.3
                            policy.tell(decision, -float(gap @ gap), **slope(policy, gap))
                        ended[k] += 1
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert policy.open_decisions == 8 * 300 - sum(ended)
        policy.forget_all()
        assert policy.open_decisions == 0
        assert np.isfinite(policy.recommend([40, 2000])).all()


def test_a_value_cannot_be_changed_in_the_hands_of_the_caller() -> None:
    decision = climber().ask()
    with pytest.raises(ValueError, match="read-only"):
        decision.value[0] = 0.2


def test_many_decisions_of_another_policy_are_refused() -> None:
    policy, other = make("SurfaceSampling"), make("SurfaceSampling")
    points = policy.context.from_unit(np.full((3, 2), 0.5))
    mine, theirs = policy.ask_many(points), other.ask_many(points)
    before = state(policy)
    with pytest.raises(UnknownDecisionError, match="of another"):
        policy.tell_many(theirs, [1.0, 2.0, 3.0])
    assert state(policy) == before
    policy.tell_many(mine, [1.0, 2.0, 3.0])


def test_copies_made_while_others_ask_and_tell_are_whole() -> None:
    policy = climber(bins=1, ttl=None)
    stop = threading.Event()

    def busy() -> None:
        waiting = [policy.ask() for _ in range(9)]
        while not stop.is_set():
            waiting.append(policy.ask())
            policy.tell(waiting.pop(0), 0.0)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(300):
            for twin in (policy.copy(), pickle.loads(pickle.dumps(policy))):
                tickets = [(one[0], one[1]) for one in twin.life.open.open.values()]
                assert len(set(tickets)) == len(tickets)
                assert all(twin.life.model.holds(*ticket) for ticket in tickets)
                assert pool_in_use(twin) <= len(tickets) + 1
    finally:
        stop.set()
        thread.join()


def test_an_arm_whose_first_payoff_was_lost_is_asked_again() -> None:
    policy = ca.UniformUCB(ca.Box.unit(0), ca.Box.unit(1), bins=1, arms=3)
    asked = [policy.ask() for _ in range(3)]
    policy.tell(asked[0], 1.0)
    policy.forget(asked[1])
    policy.tell(asked[2], 1.0)
    assert policy.ask().value[0] == asked[1].value[0]
    assert policy.ask().value[0] != asked[1].value[0]


@pytest.mark.parametrize("name", ["StaticKWSA", "SurfaceSampling"])
def test_a_question_within_limits_is_counted_where_it_was_asked(name: str) -> None:
    """A stencil teaches nothing within limits: no bin is made, and none was asked."""
    options = {"bins": 2, "step": 1.0} if name == "StaticKWSA" else {}
    policy = getattr(ca, name)(ca.Box([0], [1]), ca.Box([0], [1]), **options)
    decision = policy.ask([0.2], within=ca.Box([0.6], [0.7]))
    assert policy.life.asked_per_bin == [1]
    policy.tell(decision, 1.0)
    assert policy.life.asked_per_bin == ([1] if name == "StaticKWSA" else [0, 1])


def test_expire_keeps_the_time_although_nothing_is_due() -> None:
    policy = ca.SurfaceSampling(ca.Box([0], [1]), ca.Box([0], [1]), ttl_seconds=10.0)
    assert policy.expire(now=50.0) == 0
    decision = policy.ask([0.5], now=3.0)  # a clock that went back
    assert policy.expire(now=59.0) == 0
    assert policy.expire(now=60.0) == 1
    with pytest.raises(UnknownDecisionError):
        policy.tell(decision, 1.0)
