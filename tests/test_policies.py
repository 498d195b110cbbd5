"""One contract for every policy, and what bad input does to it: nothing."""

import threading
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.state import TOLD
from continuarm.errors import (
    AlreadyToldError,
    InputError,
    SettingsError,
    StepWarning,
    UnknownDecisionError,
)

CONTEXT = ca.Box([18, 0], [90, 2.5e5], names=["age", "income"])
DECISION = ca.Box([1.0, 1.0, 0.5], [9.0, 9.0, 4.0], names=["price", "fee", "bid"])
POLICIES: dict[str, dict[str, Any]] = {
    "SurfaceSampling": {},
    "StaticKWSA": {"horizon": 10_000, "curvature": 0.34},
    "AdaptiveKWSA": {"horizon": 10_000, "curvature": 0.34},
    "UniformUCB": {"horizon": 10_000},
    "RobbinsMonro": {"horizon": 10_000, "curvature": 0.34},
    "LinearThompson": {},
    "CosineThompson": {},
}


def make(name: str, context: ca.Box = CONTEXT, decision: ca.Box = DECISION, **more: Any) -> Any:
    return getattr(ca, name)(context, decision, **({"rng": 0} | POLICIES[name] | more))


def contexts(n: int, seed: int = 0) -> Any:
    return CONTEXT.from_unit(np.random.default_rng(seed).random((n, 2)))


def learn(policy: ca.Policy, n: int, seed: int = 0) -> list[Any]:
    """Some rounds against a payoff; the decisions."""
    values, rng = [], np.random.default_rng(seed)
    for x in contexts(n, seed):
        decision = policy.ask(x)
        values.append(decision.value)
        gap = policy.decision.to_unit(decision.value) - 0.3
        policy.tell(
            decision, -float(gap @ gap) + 0.1 * rng.standard_normal(), **slope(policy, gap)
        )
    return values


def slope(policy: ca.Policy, gap: Any) -> dict[str, Any]:
    if policy.uses_gradient:
        return {"gradient": -2 * gap / policy.decision.span}
    return {}


def state(policy: ca.Policy) -> bytes:
    """Everything that could change."""
    return policy.snapshot()


@pytest.mark.parametrize("name", POLICIES)
class TestEveryPolicy:
    def test_decisions_lie_in_the_box_and_contexts_come_in_any_form(self, name: str) -> None:
        policy = make(name)
        for value in learn(policy, 300):
            assert ((DECISION.low <= value) & (value <= DECISION.high)).all()
        given = [37, 5.2e4], (37, 5.2e4), np.array([37, 5.2e4]), {"income": 5.2e4, "age": 37}
        for context in given:
            decision = policy.ask(context)
            assert decision.context.tolist() == [37, 5.2e4]
            assert list(decision.as_dict()) == ["price", "fee", "bid"]
            assert list(decision.as_dict().values()) == decision.value.tolist()

    def test_recommend_is_pure_and_inside_the_box(self, name: str) -> None:
        policy = make(name)
        learn(policy, 200)
        before = state(policy)
        points = contexts(50, seed=1)
        many = policy.recommend_many(points)
        ones = [policy.recommend(x) for x in points]
        np.testing.assert_array_equal(many, ones)
        assert ((DECISION.low <= many) & (many <= DECISION.high)).all()
        assert state(policy) == before

    def test_asking_many_is_asking_one_after_the_other(self, name: str) -> None:
        one, many = make(name), make(name)
        points = contexts(40)
        decisions = many.ask_many(points)
        singles = [one.ask(x) for x in points]
        np.testing.assert_array_equal(decisions.values, [d.value for d in singles])
        np.testing.assert_array_equal(decisions.contexts, points)
        payoffs = np.linspace(0, 1, 40)
        slopes = np.ones((40, 3)) if name == "RobbinsMonro" else None
        extra = {} if slopes is None else {"gradients": slopes}
        many.tell_many(decisions, payoffs, **extra)
        for k, decision in enumerate(singles):
            one.tell(decision, payoffs[k], **({} if slopes is None else {"gradient": slopes[k]}))
        assert state(one) == state(many)

    def test_a_copy_goes_its_own_way(self, name: str) -> None:
        policy = make(name)
        learn(policy, 100)
        twin = policy.copy()
        before = state(policy)
        assert state(twin) == before
        values = learn(twin, 50, seed=2)
        assert state(policy) == before
        np.testing.assert_array_equal(learn(policy, 50, seed=2), values)

    def test_bins_cover_what_was_asked(self, name: str) -> None:
        policy = make(name)
        learn(policy, 500)
        bins = policy.bins()
        for b in bins:
            assert ((CONTEXT.low <= b.low) & (b.low < b.high) & (b.high <= CONTEXT.high)).all()
            assert b.asked >= 0
            assert ((DECISION.low <= b.best) & (b.best <= DECISION.high)).all()
        if policy.name not in ("AdaptiveKWSA", "SurfaceSampling"):
            assert sum(b.asked for b in bins) == sum(b.told for b in bins) == 500

    def test_a_repeated_or_unknown_decision_is_refused(self, name: str) -> None:
        policy = make(name)
        decision = policy.ask([37, 1000])
        extra = slope(policy, np.zeros(3))
        policy.tell(decision, 1.0, **extra)
        before = state(policy)
        for unknown in (decision, decision.id):
            with pytest.raises(AlreadyToldError, match="a decision is told once, but"):
                policy.tell(unknown, 1.0, **extra)
        with pytest.raises(UnknownDecisionError, match="handed out, but 12345 was not"):
            policy.tell(12345, 1.0, **extra)
        for unknown in ("x", None, True, 1.0):
            with pytest.raises(UnknownDecisionError, match="a Decision or its number is needed"):
                policy.tell(unknown, 1.0, **extra)
        with pytest.raises(UnknownDecisionError):
            policy.tell_many([decision.id], [1.0])
        assert state(policy) == before

    @pytest.mark.parametrize(
        "context",
        [[17, 0], [18, -1], [91, 0], [float("nan"), 0], [1], [[18, 0]], "ab", {"age": 1}],
    )
    def test_a_bad_context_changes_nothing(self, name: str, context: Any) -> None:
        policy = make(name)
        learn(policy, 20)
        before = state(policy)
        for call in (policy.ask, policy.recommend):
            with pytest.raises(InputError):
                call(context)
        for call in (policy.ask_many, policy.recommend_many):
            with pytest.raises(InputError):
                call([[20, 0], context])
        assert state(policy) == before

    @pytest.mark.parametrize("payoff", [float("nan"), float("inf"), "1.0x", None, True, [1, 2]])
    def test_a_bad_payoff_changes_nothing(self, name: str, payoff: Any) -> None:
        policy = make(name)
        learn(policy, 20)
        decision, other = policy.ask([37, 1000]), policy.ask([38, 1000])
        before = state(policy)
        with pytest.raises(InputError, match="the payoff must be a finite number, but got"):
            policy.tell(decision, payoff, **slope(policy, np.zeros(3)))
        with pytest.raises(InputError):
            policy.tell_many([decision.id, other.id], [1.0, payoff])
        with pytest.raises(InputError):
            policy.tell_many([decision.id, decision.id], [1.0, 2.0])
        with pytest.raises(InputError):
            policy.tell_many([decision.id], [1.0, 2.0])
        assert state(policy) == before

    def test_units_do_not_matter(self, name: str) -> None:
        """Boxes scaled and moved give the same decisions, scaled and moved."""
        unit = make(name, ca.Box.unit(2), ca.Box.unit(3))
        policy = make(name)
        rng = np.random.default_rng(5)
        for x in rng.random((400, 2)):
            plain, scaled = unit.ask(x), policy.ask(CONTEXT.from_unit(x))
            np.testing.assert_allclose(
                scaled.value, DECISION.from_unit(plain.value), rtol=1e-12, atol=1e-12
            )
            gap = plain.value - 0.3
            payoff = -float(gap @ gap)
            unit.tell(plain, payoff, **slope(unit, gap))
            policy.tell(scaled, payoff, **slope(policy, gap))


def test_a_decision_of_another_policy_is_refused() -> None:
    one, other = make("StaticKWSA"), make("StaticKWSA")
    decision, twin = one.ask([37, 0]), one.copy()
    other.ask([38, 0])
    before = state(other)
    with pytest.raises(UnknownDecisionError, match="must be of this policy"):
        other.tell(decision, 1.0)
    assert state(other) == before
    twin.tell(decision, 1.0)  # a copy has its open decisions, too
    one.tell(decision, 1.0)
    assert state(one) == state(twin)


def test_the_example_of_the_readme() -> None:
    policy = ca.AdaptiveKWSA(
        context=ca.Box([18, 0], [90, 2.5e5], names=["age", "income"]),
        decision=ca.Box([1.0, 1.0, 0.5], [9.0, 9.0, 4.0]),
        horizon=1_000_000,
        curvature=0.34,
    )
    decision = policy.ask([37, 5.2e4])
    policy.tell(decision, 3.0)
    assert policy.recommend([37, 5.2e4]).tolist() == [5.0, 5.0, 2.25]


def test_depth_zero_is_one_bin() -> None:
    static, adaptive = make("StaticKWSA", bins=1), make("AdaptiveKWSA", depth=0)
    np.testing.assert_array_equal(learn(static, 300), learn(adaptive, 300))


def test_a_policy_that_misses_something_says_so_when_it_is_made() -> None:
    with pytest.raises(SettingsError, match="`curvature` or `step` is needed, but got neither"):
        ca.StaticKWSA(CONTEXT, DECISION, horizon=100)
    with pytest.raises(SettingsError, match="`horizon` is needed for bins='printed'"):
        ca.StaticKWSA(CONTEXT, DECISION, curvature=1.0)
    with pytest.raises(SettingsError, match="`horizon` is needed for depth='printed'"):
        ca.AdaptiveKWSA(CONTEXT, DECISION, curvature=1.0)
    with pytest.raises(SettingsError, match="`horizon` is needed where `bins` or `arms`"):
        ca.UniformUCB(CONTEXT, DECISION)
    with pytest.raises(SettingsError, match='`curvature` is needed for step="printed"'):
        ca.RobbinsMonro(CONTEXT, DECISION, horizon=100, step="printed")
    with pytest.raises(SettingsError, match="`horizon` is needed for bins='printed'"):
        ca.RobbinsMonro(CONTEXT, DECISION, bins="printed")
    with pytest.raises(SettingsError, match="`horizon` is needed for depth='consistent'"):
        ca.RobbinsMonro(CONTEXT, DECISION, depth="consistent")
    with pytest.raises(SettingsError, match="`curvature_max`"):
        ca.AdaptiveKWSA(
            CONTEXT, DECISION, horizon=10**4, curvature=1.0, split_after="appendix", depth=2
        )


@pytest.mark.parametrize(
    ("name", "option", "value", "rule"),
    [
        ("StaticKWSA", "horizon", 0, "`horizon` must be a whole number >= 1, but got 0"),
        ("StaticKWSA", "horizon", 1.5, "`horizon` must be a whole number >= 1, but got 1.5"),
        ("StaticKWSA", "horizon", "100", "but got '100'"),
        ("StaticKWSA", "curvature", -1.0, "`0 < curvature` must hold, but got -1.0"),
        ("StaticKWSA", "step", 0, "`0 < step` must hold, but got 0"),
        ("StaticKWSA", "width", 0.6, "`1e-06 <= width <= 0.5` must hold, but got 0.6"),
        ("StaticKWSA", "width", float("nan"), "but got nan"),
        ("StaticKWSA", "holder", 2.1, "`0 < holder <= 2.0` must hold, but got 2.1"),
        ("StaticKWSA", "bins", 0, "`bins` must be a whole number >= 1, but got 0"),
        ("StaticKWSA", "bins", "many", "`bins` must be one of ['printed', 'consistent',"),
        ("StaticKWSA", "probe", "sideways", "`probe` must be one of ['forward', 'alternate',"),
        ("StaticKWSA", "average", "yes", "`average` must be true or false, but got 'yes'"),
        ("StaticKWSA", "start", [0.0, 1.0, 1.0], "`1.0 <= price <= 9.0` must hold, but got 0.0"),
        ("AdaptiveKWSA", "depth", -1, "`depth` must be a whole number >= 0, but got -1"),
        ("AdaptiveKWSA", "split_after", "often", "`split_after` must be one of ['text',"),
        ("AdaptiveKWSA", "split_after", 5, "`split_after` must be a sequence of whole numbers"),
        ("AdaptiveKWSA", "split_after", None, "`split_after` must be a sequence of whole"),
        ("AdaptiveKWSA", "split_after", [0], "`split_after` must be a whole number >= 1"),
        ("AdaptiveKWSA", "inherit", "all", "`inherit` must be one of ['iterate',"),
        ("AdaptiveKWSA", "curvature_max", 0.0, "`0 < curvature_max` must hold"),
        ("UniformUCB", "arms", 0, "`arms` must be a whole number >= 1, but got 0"),
        ("UniformUCB", "arms", 1000, "`arms^dy <= 16777216` must hold"),
        ("UniformUCB", "scale", -1.0, "`0 <= scale` must hold, but got -1.0"),
        ("RobbinsMonro", "split_after", [3], "`split_after` needs `depth`"),
        ("RobbinsMonro", "step", "large", "`step` must be one of ['learned', 'printed']"),
        ("RobbinsMonro", "step", 0.0, "`1e-200 <= step` must hold, but got 0.0"),
        ("RobbinsMonro", "bins", "many", "`bins` must be one of ['printed']"),
        ("RobbinsMonro", "depth", "deep", "`depth` must be one of ['printed', 'consistent']"),
        ("RobbinsMonro", "average", True, "`average` needs a step that is given"),
        ("RobbinsMonro", "inherit", "iterate-and-count", "`inherit` needs a step that is given"),
    ],
)
def test_a_bad_option_is_refused(name: str, option: str, value: Any, rule: str) -> None:
    with pytest.raises((SettingsError, InputError)) as caught:
        make(name, **{option: value})
    assert rule in str(caught.value)


def test_options_are_keyword_only() -> None:
    with pytest.raises(TypeError):
        ca.StaticKWSA(CONTEXT, DECISION, 1000)  # type: ignore[call-arg]


def test_a_step_outside_its_interval_warns() -> None:
    with pytest.warns(StepWarning, match="its rate is lost"):
        make("StaticKWSA", step=0.1)
    with pytest.warns(StepWarning, match="constant factor"):
        make("StaticKWSA", step=10.0)
    make("StaticKWSA", step=1 / (2 * 0.34))


def test_gradients_go_only_where_they_are_wanted() -> None:
    policy = make("RobbinsMonro")
    decision = policy.ask([37, 0])
    with pytest.raises(InputError, match="needs a gradient, but got None"):
        policy.tell(decision, 1.0)
    with pytest.raises(InputError, match="must be finite"):
        policy.tell(decision, 1.0, gradient=[1.0, float("nan"), 0.0])
    policy.tell(decision, 1.0, gradient={"price": 1.0, "fee": 0.0, "bid": 0.0})
    static = make("StaticKWSA")
    with pytest.raises(InputError, match="takes no gradient"):
        static.tell(static.ask([37, 0]), 1.0, gradient=[1.0, 0.0, 0.0])


def test_a_gradient_is_in_payoff_per_decision_unit() -> None:
    unit = ca.RobbinsMonro(ca.Box.unit(0), ca.Box.unit(1), bins=1, step=0.1)
    cents = ca.RobbinsMonro(ca.Box.unit(0), ca.Box([0], [100]), bins=1, step=0.1)
    unit.tell(unit.ask(), 0.0, gradient=[2.0])
    cents.tell(cents.ask(), 0.0, gradient=[0.02])
    assert cents.recommend()[0] == pytest.approx(100 * unit.recommend()[0])


def test_the_references() -> None:
    problem = ca.problem("two-communities")
    oracle = ca.Oracle(problem)
    decision = oracle.ask([0.1])
    assert decision.value.tolist() == [0.5, 0.5]
    oracle.tell(decision, 0.0)
    assert oracle.recommend([0.1]).tolist() == [0.5, 0.5]
    boxes = ca.Box([0], [9], names=["x"]), ca.Box([0, 0], [1, 2], names=["a", "b"])
    fixed = ca.Fixed(*boxes, value={"a": 0.25, "b": 1})
    assert fixed.ask([3]).as_dict() == {"a": 0.25, "b": 1.0}
    fixed.tell(fixed.ask({"x": 3}), 0.0)
    assert fixed.recommend([3]).tolist() == [0.25, 1.0]
    assert fixed.decide_many([[3], [4]]).tolist() == [[0.25, 1.0]] * 2
    for bad in ([], [[1]], ["a", 1], [float("nan"), 1], [0.5, 3], {"a": 1}):
        with pytest.raises(InputError):
            ca.Fixed(*boxes, value=bad)  # type: ignore[arg-type]
    for outside in ([10], {"y": 3}):
        with pytest.raises(InputError):
            fixed.ask(outside)
    assert ca.Fixed(*boxes).recommend([3]).tolist() == [0.5, 1.0]  # the centre


def test_one_policy_serves_many_threads() -> None:
    """Nothing is lost or torn: every decision is finite, counted once, and told once."""
    policy = make("AdaptiveKWSA")
    failures: list[Any] = []

    def work(seed: int) -> None:
        try:
            for x in contexts(2000, seed):
                decision = policy.ask(x)
                assert ((DECISION.low <= decision.value) & (decision.value <= DECISION.high)).all()
                policy.tell(decision, float(x[0]) / 100)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert policy.life.model.state.rows[:, TOLD].sum() == 8000
    assert sum(policy.life.asked_per_bin) == policy.life.open.asked == 8000
    assert not policy.life.open.open


@pytest.mark.parametrize("settings", [{"width": 1e-6}, {"width": 0.5}, {"step": 1e250}])
@pytest.mark.parametrize("probe", ["forward", "central"])
def test_extreme_settings_and_payoffs_keep_iterates_in_the_box(settings: Any, probe: Any) -> None:
    policy = ca.StaticKWSA(
        ca.Box.unit(0), DECISION, bins=1, probe=probe, **({"step": 1.0} | settings)
    )
    for payoff in (0.0, 1.7e308, -1.7e308, 5e-324, 0.0) * 20:
        policy.tell(policy.ask(), payoff)
        DECISION.point(policy.recommend())


@pytest.mark.parametrize("value", [10**400, "1", b"1", None, [1], {}, 1j, np.True_])
def test_odd_values_are_refused_by_our_own_errors(value: Any) -> None:
    policy = make("StaticKWSA")
    decision = policy.ask([37, 0])
    before = state(policy)
    calls: list[Any] = [
        lambda: policy.tell(decision, value),
        lambda: policy.tell(value, 1.0),
        lambda: policy.tell_many(value, [1.0]),
        lambda: make("StaticKWSA", horizon=value or "x"),
        lambda: make("StaticKWSA", rng="x"),
    ]
    if value is not np.True_:  # a context of booleans is a context of numbers
        calls.append(lambda: policy.ask([value, 0]))
    if not isinstance(value, list):  # one payoff in a list is one payoff
        calls.append(lambda: policy.tell_many([decision.id], value))
    for call in calls:
        with pytest.raises((InputError, SettingsError, UnknownDecisionError)):
            call()
    assert state(policy) == before


def test_numbers_of_numpy_are_numbers() -> None:
    policy = ca.AdaptiveKWSA(
        CONTEXT,
        DECISION,
        horizon=np.int64(1000),  # type: ignore[arg-type]
        step=np.float32(0.5),  # type: ignore[arg-type]
        depth=np.int32(2),  # type: ignore[arg-type]
        split_after=np.array([1, 4]),  # type: ignore[arg-type]
    )
    policy.tell(policy.ask(np.array([37, 0])).id, float(np.float32(1.0)))
    assert policy.describe()["partition"]["split_after"] == [1.0, 4.0]


def test_policies_of_many_threads_do_not_meet() -> None:
    """Compiled code shares nothing: policies in threads decide as they do alone."""
    alone = [learn(make("AdaptiveKWSA"), 300, seed=s) for s in range(4)]
    together: dict[int, Any] = {}

    def work(seed: int) -> None:
        together[seed] = learn(make("AdaptiveKWSA"), 300, seed=seed)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(4):
        np.testing.assert_array_equal(together[seed], alone[seed])
