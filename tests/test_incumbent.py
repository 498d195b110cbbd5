"""The incumbent: what a policy starts from, and how far from what is known to be good it tries."""

import json
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import continuarm as ca
from benchmarks.damage import put_together, taken_apart
from continuarm.core.learners.response_surface import ResponseSurface
from continuarm.core.partitions.evidence_tree import EvidenceTree
from continuarm.errors import SavedFileError
from continuarm.live import saved_file
from continuarm.live.log_rule import reach_of, rule_of

CONTEXT = ca.Box([18.0, 0.0], [90.0, 2.5e5], names=["age", "income"])
DECISION = ca.Box([1.0, 0.5], [9.0, 4.0], names=["price", "fee"])


def with_reach(
    context: ca.Box = CONTEXT, decision: ca.Box = DECISION, **options: Any
) -> ca.Policy:
    learner = ResponseSurface(reach=options.pop("reach", 0.1))
    return ca.Policy(CONTEXT, DECISION, partition=EvidenceTree(), learner=learner, **options)


def contexts(n: int, seed: int = 0, box: ca.Box = CONTEXT) -> Any:
    return box.from_unit(np.random.default_rng(seed).random((n, box.dim)))


def play(policy: ca.Policy, n: int, seed: int = 0) -> ca.Policy:
    rng = np.random.default_rng(seed)
    for x in contexts(n, seed, policy.context):
        decision = policy.ask(x)
        y, u = policy.decision.to_unit(decision.value), policy.context.to_unit(x)
        policy.tell(decision, float(-((y - 0.3 - 0.3 * u[0]) ** 2).sum() + rng.normal()))
    return policy


def test_the_reach_of_a_life_is_its_learners() -> None:
    assert with_reach().life.limits.reach.tolist() == [0.1, 0.1]
    assert ca.StaticKWSA(CONTEXT, DECISION, bins=2, step=1.0).life.limits.reach.tolist() == [0, 0]


def test_each_dimension_has_a_reach_of_its_own() -> None:
    policy = with_reach(start=[5.0, 1.0])
    policy.life.limits = policy.life.limits._replace(reach=np.array([0.01, 0.2]))
    values = policy.ask_many(contexts(200)).values
    low, high = DECISION.from_unit(DECISION.to_unit([5.0, 1.0]) + np.outer([-1, 1], [0.01, 0.2]))
    assert (low <= values).all()
    assert (values <= high).all()
    assert (np.ptp(values, axis=0) > 0.9 * (high - low)).all()


def test_a_reach_goes_through_snapshot_save_and_load(tmp_path: Path) -> None:
    policy = play(with_reach(rng=0), 50)
    policy.life.limits = policy.life.limits._replace(reach=np.array([0.01, 0.2]))
    policy.save(tmp_path / "policy")
    for other in (
        ca.load(tmp_path / "policy"),
        ca.Policy.from_snapshot(policy.snapshot()),
        policy.copy(),
    ):
        assert other.life.limits.reach.tolist() == [0.01, 0.2]
        assert other.snapshot() == policy.snapshot()
        assert other.ask([37, 1e5]).value.tolist() == policy.copy().ask([37, 1e5]).value.tolist()


@pytest.mark.parametrize(
    "reach",
    [[np.nan, 0.1], [0.0, 0.1], [-0.1, 0.1], [0.1, 1.1], [0.1], [[0.1, 0.1]], [np.inf, 0.1]],
)
def test_a_crafted_reach_is_refused(reach: list[float], tmp_path: Path) -> None:
    with_reach().save(tmp_path / "policy")
    shell, state = saved_file.read(tmp_path / "policy")
    header, arrays = taken_apart(state)
    arrays["reach"] = np.array(reach)
    saved_file.write(tmp_path / "policy", shell, put_together(header, arrays))
    with pytest.raises(SavedFileError, match="reach"):
        ca.load(tmp_path / "policy")


RULE = ca.AffineRule({"price": 2.0, "fee": 1.0}, {"price": {"age": 0.03, "income": 1e-5}})
PLAIN = ca.Box.unit(1)
NOT_NESTED: Any = {"price": 0.03}
NOTHING: Any = {"price": {"age": None}}
PART = ca.AffineRule({"price": 2.0})
SMALL = ca.AffineRule([2.0, 1.0], [[0.03], [0.0]])
COLOUR = ca.AffineRule([2.0, 1.0], {"colour": {"age": 1.0}})
WEIGHT = ca.AffineRule([2.0, 1.0], {"price": {"weight": 1.0}})
STEEP = ca.AffineRule([2.0, 1.0], {"price": {"income": 1e305}})
SLOPED = ca.AffineRule([0.5], {"price": {"age": 1.0}})
LEARNERS: dict[str, Any] = {
    "reach": ca.ResponseSurface(reach=0.1),
    "surface": ca.ResponseSurface(),
    "stencils": ca.KieferWolfowitz(step=1.0, width=0.3),
    "arms": ca.GridUCB(arms=7),
    "gradients": ca.SmoothGradient(),
}
PARTITIONS: dict[str, Any] = {
    "evidence": EvidenceTree(),
    "grid": ca.Grid(3),
    "one": ca.Grid(1),
    "tree": ca.Tree([2, 4]),
}
KINDS = [("evidence", "reach"), ("evidence", "surface"), ("grid", "stencils")]
KINDS += [("tree", "stencils"), ("grid", "arms"), ("one", "gradients")]
every_kind = pytest.mark.parametrize(("partition", "learner"), KINDS)


def by_hand(context: dict[str, float]) -> list[float]:
    """RULE as a function."""
    price = 2.0 + 0.03 * context["age"] + 1e-5 * context["income"]
    return [min(max(price, 1.0), 9.0), 1.0]


def made(partition: str, learner: str, start: Any = RULE, **options: Any) -> ca.Policy:
    parts: Any = {"partition": PARTITIONS[partition], "learner": LEARNERS[learner]}
    return ca.Policy(CONTEXT, DECISION, **parts, start=start, rng=0, **options)


def profit(x: Any, y: Any) -> Any:
    return -((y[0] - 2.0 - 0.05 * x[0]) ** 2) - (y[1] - 2.0) ** 2


def slope(x: Any, y: Any) -> Any:
    return np.array([-2.0 * (y[0] - 2.0 - 0.05 * x[0]), -2.0 * (y[1] - 2.0)])


WORLD = ca.Problem(
    context=CONTEXT, decision=DECISION, mean_payoff=profit, gradient=slope, noise=3.0
)


def told(policy: ca.Policy, n: int, seed: int = 0) -> ca.Policy:
    """A policy that has lived in WORLD for a while, with decisions open and forgotten."""
    rng = np.random.default_rng(seed)
    for x in contexts(n, seed):
        decision, fate = policy.ask(x), rng.random()
        more = {"gradient": slope(x, decision.value)} if policy.uses_gradient else {}
        if fate < 0.8:
            policy.tell(decision, profit(x, decision.value) + 3.0 * rng.normal(), **more)
        elif fate < 0.9:
            policy.forget(decision)
    return policy


def rejected(error: type[Exception], message: str, call: Any) -> None:
    """The call fails with one line that holds the message."""
    with pytest.raises(error) as raised:
        call()
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_affine_rule_is_a_value() -> None:
    other = ca.AffineRule({"fee": 1, "price": 2}, {"price": {"income": 1e-5, "age": 0.03}})
    assert other == RULE
    assert hash(other) == hash(RULE)
    assert eval(repr(RULE), {"AffineRule": ca.AffineRule}) == RULE
    assert pickle.loads(pickle.dumps(RULE)) == RULE
    assert RULE != ca.AffineRule({"price": 2.0, "fee": 1.0})
    assert RULE != [2.0, 1.0]
    with pytest.raises(AttributeError, match="cannot be changed"):
        RULE.constant = [1.0]
    with pytest.raises(TypeError):
        RULE.constant["price"] = 3.0


@every_kind
def test_before_any_payoff_the_incumbent_is_recommended(partition: str, learner: str) -> None:
    points = contexts(50)
    expected = np.array([by_hand(dict(zip(CONTEXT.names, x, strict=True))) for x in points])
    if learner == "arms":
        expected = DECISION.from_unit((np.floor(7 * DECISION.to_unit(expected)) + 0.5) / 7)
    for start in (RULE, by_hand, ca.AffineRule([2.0, 1.0], [[0.03, 1e-5], [0.0, 0.0]])):
        policy = made(partition, learner, start)
        np.testing.assert_allclose(policy.recommend_many(points), expected, rtol=1e-14)
        np.testing.assert_allclose(policy.explain(points[0])["centre"], expected[0], rtol=1e-14)


def test_learners_that_climb_begin_a_bin_where_its_first_context_does() -> None:
    policy = made("grid", "stencils")
    x = [30.0, 1e5]
    policy.tell(policy.ask(x), 0.0)
    (bin_,) = policy.bins()
    np.testing.assert_allclose(bin_.best, [3.9, 1.0])
    np.testing.assert_allclose(policy.recommend([19.0, 1.2e5]), [3.9, 1.0])  # the same bin
    np.testing.assert_allclose(policy.recommend([80.0, 0.0]), [4.4, 1.0])  # another


def test_gradients_of_nothing_leave_every_context_its_start() -> None:
    policy = made("one", "gradients")
    policy.tell(policy.ask([30.0, 1e5]), 0.0, gradient=[0.0, 0.0])
    np.testing.assert_allclose(policy.recommend([30.0, 1e5]), [3.9, 1.0])
    np.testing.assert_allclose(policy.recommend([80.0, 0.0]), [4.4, 1.0])


@every_kind
def test_a_rule_and_the_same_function_live_the_same_life(partition: str, learner: str) -> None:
    one, two = (told(made(partition, learner, start), 300) for start in (RULE, by_hand))
    for mine, other in zip(one.life.model.state, two.life.model.state, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert [b.best.tolist() for b in one.bins()] == [b.best.tolist() for b in two.bins()]
    opened = (p.life.open.open.values() for p in (one, two))
    for mine, other in zip(*opened, strict=True):
        assert [np.array(part).tolist() for part in mine] == [
            np.array(part).tolist() for part in other
        ]


@pytest.mark.parametrize("late", [{}, {"delay": 7, "lost": 0.2}])
@every_kind
def test_a_simulation_decides_as_the_live_policy(partition: str, learner: str, late: Any) -> None:
    """The rule runs in the compiled loop, the function in Python."""
    world = WORLD.with_feedback(**late) if late else WORLD
    options: dict[str, Any] = {"horizon": 400, "replications": 2, "rng": 3}
    one, two = (
        ca.simulate(made(partition, learner, start, ttl=50), world, **options)
        for start in (RULE, by_hand)
    )
    np.testing.assert_array_equal(one.regret, two.regret)
    np.testing.assert_array_equal(one.recommend_regret, two.recommend_regret)
    for mine, other in zip(one.policies, two.policies, strict=True):
        for array, same in zip(mine.life.model.state, other.life.model.state, strict=True):
            np.testing.assert_array_equal(array, same)


@every_kind
def test_a_rule_is_kept_and_continues(partition: str, learner: str, tmp_path: Path) -> None:
    policy = told(made(partition, learner), 200)
    policy.save(tmp_path / "policy")
    others = [ca.load(tmp_path / "policy"), pickle.loads(pickle.dumps(policy))]
    others += [ca.Policy.from_snapshot(policy.snapshot()), policy.copy()]
    for other in others:
        assert other.start == policy.start == RULE
        assert other.snapshot() == policy.snapshot()
    told(policy, 50, seed=1)
    assert {told(other, 50, seed=1).snapshot() for other in others} == {policy.snapshot()}


@every_kind
def test_events_carry_what_the_incumbent_does(partition: str, learner: str) -> None:
    """So a policy whose function is never called lives the life of the one whose is."""
    happened: list[Any] = []
    first, calls = made(partition, learner, by_hand), 0

    def counted(context: Any) -> Any:
        nonlocal calls
        calls += 1
        return by_hand(context)

    again, ruled = made(partition, learner, counted), made(partition, learner)
    first.listen(happened.append)
    told(first, 200)
    for event in happened:
        if isinstance(event, ca.events.Asked):
            names = dict(zip(CONTEXT.names, event.context.tolist(), strict=True))
            assert event.start.tolist() == by_hand(names)
        plain = json.loads(json.dumps(ca.events.to_plain(event)))
        again.apply(ca.events.from_plain(plain))
        ruled.apply(event)
    assert calls == 0
    for other in (again, ruled):
        for mine, same in zip(first.life.model.state, other.life.model.state, strict=True):
            np.testing.assert_array_equal(mine, same)
    told(ruled, 20, seed=1)
    told(first, 20, seed=1)
    assert first.stats()[:5] == ruled.stats()[:5]


@pytest.mark.parametrize("n", [0, 15, 300])
@pytest.mark.parametrize(("partition", "learner"), KINDS[:-1])  # the last one has no table
def test_the_reader_follows_the_rule(partition: str, learner: str, n: int) -> None:
    policy = told(made(partition, learner), n)
    reader, points = ca.Reader(policy.export()), contexts(300, seed=9)
    edges = np.array([CONTEXT.low, CONTEXT.high])
    points = np.concatenate([points, edges])
    found = np.array([reader.decide(x.tolist()) for x in points])
    np.testing.assert_allclose(found, policy.recommend_many(points), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "start",
    [
        {"constant": [2.0], "by_context": [[0.0, 0.0]]},
        {"constant": [2.0, 1.0], "by_context": [[0.0], [0.0]]},
        {"constant": [2.0, 1.0], "by_context": [[1e308, 0.0], [0.0, 0.0]]},
        {"constant": [2.0, float("nan")], "by_context": [[0.0, 0.0], [0.0, 0.0]]},
        {"constant": [2.0, 1.0]},
        [0.5, 0.5],
        None,
    ],
)
def test_a_reader_refuses_a_damaged_start(start: Any) -> None:
    table = json.loads(made("grid", "surface").export())
    rejected(ValueError, "damaged", lambda: ca.Reader(json.dumps(table | {"start": start})))


@pytest.mark.parametrize(
    ("message", "make"),
    [
        ("`constant` must be a decision of finite", lambda: ca.AffineRule("price")),
        ("`constant` must be a decision of finite", lambda: ca.AffineRule([np.nan])),
        ("`constant` must hold finite numbers", lambda: ca.AffineRule({"price": "2"})),
        ("the names of `constant` must be text", lambda: ca.AffineRule({1: 2.0})),
        ("`by_context` must be a matrix", lambda: ca.AffineRule([2.0], [0.03])),
        ("`by_context` must be a matrix", lambda: ca.AffineRule([2.0], [[np.inf]])),
        ("must be such as", lambda: ca.AffineRule([2.0], NOT_NESTED)),
        ("`by_context` must hold finite", lambda: ca.AffineRule([2.0], NOTHING)),
        ("must be a decision: 2 numbers", lambda: made("grid", "reach", ca.AffineRule([2.0]))),
        ("the names must be ['price', 'fee']", lambda: made("grid", "reach", PART)),
        ("of `by_context` must be (2, 2)", lambda: made("grid", "reach", SMALL)),
        ("a decision of `by_context` must be one", lambda: made("grid", "reach", COLOUR)),
        ("a context of `by_context` must be one", lambda: made("grid", "reach", WEIGHT)),
        ("must be finite for every context", lambda: made("grid", "reach", STEEP)),
        ("needs a decision with names", lambda: ca.SurfaceSampling(PLAIN, PLAIN, start=SLOPED)),
        ("`1.0 <= price <= 9.0` must hold", lambda: made("grid", "reach", [11.0, 1.0])),
    ],
)
def test_a_wrong_start_is_refused_when_the_policy_is_made(message: str, make: Any) -> None:
    rejected(ca.errors.ContinuarmError, message, make)


def broken(context: Any) -> Any:
    return {"price": 1.0 / (context["age"] - 37.0), "fee": 1.0}


@pytest.mark.parametrize(
    ("message", "start"),
    [
        ("'broken' must answer a decision for every context, but got ZeroDivisionError", broken),
        ("'<lambda>' must answer a decision", lambda context: [11.0, 1.0]),
        ("`1.0 <= price <= 9.0` must hold, but got 11.0", lambda context: [11.0, 1.0]),
        ("but got nan", lambda context: [np.nan, 1.0]),
        ("2 numbers are needed", lambda context: [1.0]),
        ("the names must be ['price', 'fee'], but got ['price']", lambda context: {"price": 2.0}),
        ("numbers are needed", lambda context: None),
    ],
)
def test_a_function_that_answers_no_decision_changes_nothing(message: str, start: Any) -> None:
    policy = made("grid", "stencils", start)
    before = [array.copy() for array in policy.life.model.state]
    for call in (policy.ask, policy.recommend, policy.explain):
        rejected(ca.errors.PolicyError, message, partial(call, [37, 1e4]))
    for many in (policy.ask_many, policy.recommend_many):
        rejected(ca.errors.PolicyError, message, partial(many, [[37, 1e4]]))
    assert all(map(np.array_equal, before, policy.life.model.state))
    assert policy.stats().asked == 0
    rejected(
        ca.errors.PolicyError,
        message,
        partial(ca.Fixed(CONTEXT, DECISION, value=start).ask, [37, 1]),
    )


def test_a_function_is_not_asked_about_a_context_outside() -> None:
    policy = made("grid", "stencils", lambda context: pytest.fail("it was asked"))
    for call in (policy.ask, policy.recommend, policy.explain):
        rejected(ca.errors.InputError, "`18.0 <= age <= 90.0`", partial(call, [17, 1e4]))


def test_a_function_may_ask_the_policy_itself() -> None:
    """It is called before the policy is entered."""
    other = made("grid", "surface")
    policy = made("grid", "surface", lambda context: other.recommend(context))
    np.testing.assert_array_equal(policy.recommend([37, 1e4]), other.recommend([37, 1e4]))
    nested: ca.Policy = made("grid", "surface", lambda context: [nested.stats().asked + 2.0, 1.0])
    assert nested.ask([37, 1e4]).value.shape == (2,)


def test_what_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    policy = made("evidence", "reach", by_hand)
    message = "must be a decision or an AffineRule, but got the function 'by_hand'"
    for call in (policy.snapshot, policy.export, partial(policy.save, tmp_path / "policy")):
        rejected(ca.errors.SettingsError, message, call)
    assert list(tmp_path.iterdir()) == []
    assert policy.start is by_hand
    policy.warm_up()


def test_a_function_of_a_box_without_names_gets_an_array() -> None:
    seen: list[Any] = []

    def rule(context: Any) -> Any:
        seen.append(context.tolist())
        context[:] = -1.0
        return context + 1.5

    policy = ca.SurfaceSampling(PLAIN, PLAIN, start=rule)
    assert policy.recommend([0.25]).tolist() == [0.5]
    assert policy.ask([0.75]).context.tolist() == [0.75]
    assert seen == [[0.25], [0.75]]


def test_fixed_follows_what_is_done_today() -> None:
    for value in (RULE, by_hand):
        fixed = ca.Fixed(CONTEXT, DECISION, value=value)
        assert fixed.ask([37, 1e4]).value.tolist() == pytest.approx([3.21, 1.0])
        assert fixed.recommend({"age": 37, "income": 1e4}).tolist() == pytest.approx([3.21, 1.0])
    assert repr(ca.Fixed(CONTEXT, DECISION, value=RULE)) == f"<Fixed: {RULE!r}>"
    one, two = (
        ca.simulate(ca.Fixed(CONTEXT, DECISION, value=value), WORLD, horizon=200, rng=0).regret
        for value in (RULE, by_hand)
    )
    np.testing.assert_allclose(one, two)


def test_a_start_by_any_name_is_shown_as_a_rule() -> None:
    assert made("grid", "reach", [2.0, 1.0]).start == ca.AffineRule({"price": 2.0, "fee": 1.0})
    assert (
        made("grid", "reach", {"fee": 1, "price": 2}).start == made("grid", "reach", [2, 1]).start
    )
    assert made("grid", "reach", None).start == ca.AffineRule({"price": 5.0, "fee": 2.25})
    outside = made("grid", "reach", ca.AffineRule([99.0, 1.0]))
    assert outside.recommend([37, 1e4]).tolist() == [9.0, 1.0]
    unnamed = ca.SurfaceSampling(PLAIN, PLAIN, start=ca.AffineRule([0.5], [[0.1]]))
    assert unnamed.start == ca.AffineRule([0.5], [[0.1]])
    assert unnamed.reach is not None
    assert unnamed.reach.tolist() == [0.1]
    assert ca.SurfaceSampling(PLAIN, PLAIN, reach=None).reach is None


def no_numbers(header: Any, arrays: Any) -> None:
    arrays["start"][0] = np.nan


def flat(header: Any, arrays: Any) -> None:
    arrays["by_context"] = arrays["by_context"].ravel()


def short(header: Any, arrays: Any) -> None:
    arrays["start"] = arrays["start"][:1]


def too_steep(header: Any, arrays: Any) -> None:
    arrays["by_context"][0, 1] = 1e305


def endless(header: Any, arrays: Any) -> None:
    arrays["by_context"][1, 1] = np.inf


def outside(header: Any, arrays: Any) -> None:
    arrays["by_context"][:] = 0.0
    arrays["start"][0] = 99.0


def whole_numbers(header: Any, arrays: Any) -> None:
    arrays["start"] = arrays["start"].astype(np.int64)


def perhaps_given(header: Any, arrays: Any) -> None:
    header["start_given"] = 1


@pytest.mark.parametrize(
    "edit",
    [no_numbers, flat, short, too_steep, endless, outside, whole_numbers, perhaps_given],
)
def test_a_crafted_rule_is_refused(edit: Any, tmp_path: Path) -> None:
    told(made("evidence", "reach"), 30).save(tmp_path / "policy")
    shell, state = saved_file.read(tmp_path / "policy")
    header, arrays = taken_apart(state)
    edit(header, arrays)
    saved_file.write(tmp_path / "policy", shell, put_together(header, arrays))
    with pytest.raises(SavedFileError):
        ca.load(tmp_path / "policy")


slopes = st.floats(-1e3, 1e3)


@settings(max_examples=60, deadline=None)
@given(
    constant=st.lists(slopes, min_size=2, max_size=2),
    by_context=st.lists(st.lists(slopes, min_size=2, max_size=2), min_size=2, max_size=2),
    seed=st.integers(0, 10**6),
    n=st.sampled_from([0, 20, 60]),
)
def test_decisions_stay_in_the_box_and_within_reach(
    constant: Any, by_context: Any, seed: int, n: int
) -> None:
    rule = ca.AffineRule(constant, by_context)
    policy = told(made("evidence", "reach", rule), n, seed)
    points = contexts(20, seed + 1)
    starts = ca.Fixed(CONTEXT, DECISION, value=rule).decide_many(points)
    best, decided = policy.recommend_many(points), policy.ask_many(points).values
    for values in (starts, best, decided):
        DECISION.points(values)
    assert policy.reach is not None
    assert (np.abs(decided - best) <= policy.reach + 1e-9).all()
    if n == 0:
        np.testing.assert_allclose(best, starts, rtol=0, atol=1e-9)


NEAR = ca.AffineRule({"price": 2.0, "fee": 2.0}, {"price": {"age": 0.03, "income": 1e-5}})


def log(n: int, seed: int = 0, spread: float = 0.1, **changed: Any) -> dict[str, Any]:
    """A shop that has followed NEAR, within ± spread of each side of the box."""
    rng, x = np.random.default_rng([seed, 1]), contexts(n, seed)
    y = ca.Fixed(CONTEXT, DECISION, value=NEAR).decide_many(x)
    y = np.clip(y + spread * DECISION.span * rng.uniform(-1, 1, (n, 2)), [1, 0.5], [9, 4])
    table = dict(zip(("age", "income", "price", "fee"), (*x.T, *y.T), strict=True))
    return table | {"payoff": rng.normal(size=n)} | changed


def test_after_a_log_the_start_is_its_own_rule() -> None:
    policy = with_reach()
    policy.learn_from(log(5000))
    fitted, wanted = (ca.Fixed(CONTEXT, DECISION, value=rule) for rule in (policy.start, NEAR))
    points = contexts(100, seed=1)
    off = (fitted.decide_many(points) - wanted.decide_many(points)) / DECISION.span
    assert np.abs(off).max() < 5 * 0.1 / np.sqrt(3) * np.sqrt(7 / 5000)  # standard errors
    assert policy.reach is not None
    np.testing.assert_allclose(policy.reach, 0.05 * DECISION.span, rtol=0.05)


@pytest.mark.parametrize("start", [{"price": 7.0, "fee": 3.0}, RULE, by_hand])
def test_a_start_that_was_given_stays_after_a_log(start: Any) -> None:
    policy = with_reach(start=start)
    before = policy.start
    policy.learn_from(log(2000))
    assert policy.start == before
    assert policy.reach is not None
    np.testing.assert_allclose(policy.reach, 0.05 * DECISION.span, rtol=0.1)


def test_a_log_without_spread_leaves_a_fifth_of_the_reach() -> None:
    policy = with_reach()
    policy.learn_from(log(2000, spread=0.0))
    np.testing.assert_allclose(policy.life.limits.reach, 0.02)
    wide = np.random.default_rng(0).choice([1.0, 9.0], 2000)
    policy.learn_from(log(2000, price=wide))
    np.testing.assert_allclose(policy.life.limits.reach[0], np.sqrt(3) / 4, rtol=0.01)


def test_a_policy_without_a_reach_keeps_its_start_after_a_log() -> None:
    policy = made("evidence", "surface", None)
    policy.learn_from(log(500))
    assert policy.start == ca.AffineRule({"price": 5.0, "fee": 2.25})
    assert policy.reach is None


def test_contexts_that_say_nothing_have_no_part_in_the_rule() -> None:
    policy = with_reach()
    policy.learn_from(log(2000, age=np.full(2000, 37.1), price=np.full(2000, 3.0)))
    assert "age" not in policy.start.by_context.get("fee", {})
    income = log(2000)["income"]
    policy.learn_from(log(2000, age=18.0 + 72.0 * income / 2.5e5))  # collinear
    assert all(set(row) <= {"age"} for row in policy.start.by_context.values())
    same = with_reach()
    same.learn_from(log(50, age=np.full(50, 30.0), income=np.full(50, 1e5)))
    assert same.start.by_context is None
    short = with_reach()
    short.learn_from(log(29))
    assert short.start.by_context is None
    table = log(29)
    means = [np.mean(table[name]) for name in ("price", "fee")]
    np.testing.assert_allclose(short.recommend([37, 1e4]), means)
    one = with_reach()
    one.learn_from(log(1))
    np.testing.assert_allclose(one.life.limits.reach, 0.02)


def test_what_a_log_said_is_replayed_kept_and_read(tmp_path: Path) -> None:
    happened: list[Any] = []
    policy = with_reach(rng=0)
    beginning = policy.snapshot()
    policy.listen(happened.append)
    told(policy, 20)
    policy.learn_from(log(500))
    told(policy, 50, seed=1)
    again = ca.Policy.from_snapshot(beginning)
    for event in happened:
        again.apply(ca.events.from_plain(json.loads(json.dumps(ca.events.to_plain(event)))))
    assert again.snapshot() == policy.snapshot()
    policy.save(tmp_path / "policy")
    loaded = ca.load(tmp_path / "policy")
    assert loaded.snapshot() == policy.snapshot()
    for other in (again, loaded):
        assert other.start == policy.start
        other.learn_from(log(300, seed=3))
    policy.learn_from(log(300, seed=3))
    assert again.snapshot() == loaded.snapshot() == policy.snapshot()
    reader, points = ca.Reader(policy.export()), contexts(200, seed=9)
    found = np.array([reader.decide(x.tolist()) for x in points])
    np.testing.assert_allclose(found, policy.recommend_many(points), rtol=0, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 120),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1e-300, 1e-3, 1.0, 1e12, 1e300]),
    shift=st.sampled_from([0.0, 1.0, -1e6]),
    narrow=st.sampled_from([1.0, 1e-5, 0.0]),
)
def test_the_rule_of_any_log_is_finite_and_in_the_box(
    n: int, seed: int, scale: float, shift: float, narrow: float
) -> None:
    rng = np.random.default_rng(seed)
    low = shift * scale * np.ones(3)
    context, decision = ca.Box(low, low + scale), ca.Box([-1.0, 1e6], [1.0, 1e6 + 1])
    x = context.from_unit(0.5 + narrow * (rng.random((n, 3)) - 0.5))
    x[:, 2] = x[:, 1]
    y = decision.from_unit(rng.random((n, 2)))
    rule = rule_of(context, decision, x, y)
    corners = context.from_unit(rng.integers(0, 2, (8, 3)))
    decision.points(rule.many(np.concatenate([x, corners])))
    reach = reach_of(rule, x, y, 0.02)
    assert ((reach >= 0.02) & (reach <= 1.0)).all()
    if narrow == 1.0 and n >= 40 and scale == 1.0 and shift == 0.0:
        design = np.column_stack([np.ones(n), x[:, :2]])
        expected = np.clip(design @ np.linalg.lstsq(design, y)[0], decision.low, decision.high)
        np.testing.assert_allclose(rule.many(x), expected, rtol=0, atol=1e-6)


def test_the_recommended_policy_takes_a_reach() -> None:
    policy = ca.SurfaceSampling(CONTEXT, DECISION, reach=0.05, rng=0)
    assert policy.reach is not None
    np.testing.assert_allclose(policy.reach, 0.05 * DECISION.span)
    assert policy.describe()["learner"]["reach"] == 0.1
    wrong: list[Any] = [0.0, -0.1, 1.5, np.nan, "0.1"]
    for reach in wrong:
        rejected(
            ca.errors.SettingsError,
            "`0 < reach <= 1.0` must hold",
            partial(ca.SurfaceSampling, CONTEXT, DECISION, reach=reach),
        )


def test_the_rule_of_a_log_that_always_did_the_same_is_just_that() -> None:
    rng = np.random.default_rng(0)
    boxes = ca.Box([0.0], [1.0], names=["x"]), ca.Box([0.0], [1.0], names=["y"])
    policy = ca.SurfaceSampling(*boxes, rng=0)
    table = {"x": rng.random(200), "y": np.full(200, 0.3), "z": rng.random(200)}
    policy.learn_from(table, payoff="z")
    assert repr(policy.start) == "AffineRule({'y': 0.3})"
