"""max_move: decisions stay near a reference, which is what was known when it was last renewed."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import continuarm as ca
from continuarm.errors import InputError, SettingsError
from continuarm.live import events
from continuarm.live.near_reference import LifeNearReference

UNIT = ca.Box([0.0], [1.0], names=["x"])
PRICES = ca.Box([1.0, 0.0], [9.0, 4.0], names=["price", "fee"])
START = {"price": 4.0, "fee": 1.0}
MOVE = np.array([0.5, 0.25])


def made(**options: Any) -> ca.Policy:
    given: dict[str, Any] = {"start": START, "max_move": MOVE.tolist(), "rng": 0} | options
    return ca.SurfaceSampling(UNIT, PRICES, **given)


def play(policy: ca.Policy, n: int, seed: int = 0) -> list[ca.Decision]:
    """The best price is 2 or 7, the best fee 3: both farther away than a move."""
    rng, decisions = np.random.default_rng(seed), []
    for x in rng.random(n):
        decision = policy.ask([x])
        gap = decision.value - np.array([2.0 if x < 0.5 else 7.0, 3.0])
        policy.tell(decision, float(-gap @ gap + 0.1 * rng.standard_normal()))
        decisions.append(decision)
    return decisions


def references(policy: ca.Policy) -> Callable[[Any], Any]:
    """What the reference is now, whatever happens later."""
    life = policy.copy().life
    assert isinstance(life, LifeNearReference)
    return lambda context: life.reference_at(np.asarray(context))


def are_near(values: Any, middles: Any) -> bool:
    return bool((abs(np.asarray(values) - np.asarray(middles)) <= MOVE + 1e-12).all())


def test_at_first_the_reference_is_the_incumbent_and_then_what_was_learned() -> None:
    policy = made()
    for decision in play(policy, 400):
        assert are_near(decision.value, [4.0, 1.0])
    assert policy.recommend([0.2]).tolist() == [3.5, 1.25]
    assert policy.recommend([0.8]).tolist() == [4.5, 1.25]
    for k in range(3):
        policy.renew_reference()
        reference = references(policy)
        for decision in play(policy, 400, seed=k + 1):
            assert are_near(decision.value, reference(decision.context))
        for x in np.linspace(0.0, 1.0, 20):
            assert are_near(policy.recommend([x]), reference([x]))
    low, high = policy.recommend([0.2]), policy.recommend([0.8])
    assert low[0] == pytest.approx(2.0, abs=0.3)  # it arrives, by and by
    assert high[0] >= 5.5
    assert min(low[1], high[1]) >= 1.75


def test_the_reference_stays_what_it_was_whatever_is_learned() -> None:
    policy = made()
    play(policy, 400)
    policy.renew_reference()
    before, known = references(policy), policy.life.model.copy()
    play(policy, 600, seed=1)
    points = np.linspace(0.0, 1.0, 50)[:, None]
    now = np.array([references(policy)(x) for x in points])
    assert np.array_equal(now, [before(x) for x in points])
    assert np.array_equal(now, known.recommend(points, policy.life.limits))
    assert not np.array_equal(now, policy.life.model.recommend(points, policy.life.limits))


def test_the_copy_that_recommends_has_nothing_beside_its_bins() -> None:
    policy = made(max_move=9.0)
    play(policy, 1500)
    policy.renew_reference()
    assert isinstance(policy.life, LifeNearReference)
    assert policy.life.reference is not None
    state, bins = policy.life.reference.model.state, len(policy.bins())
    assert bins > 3
    assert len(state.rows) == bins + 1  # and the template
    assert len(state.nodes) == 2 * bins  # the header, the bins, and one cut less
    assert len(policy.life.model.state.rows) > 4 * bins


@settings(max_examples=40, deadline=None)
@given(
    st.floats(1.0, 9.0),
    st.floats(0.0, 8.0),
    st.sampled_from([None, 0.1]),
    st.booleans(),
    st.integers(0, 5),
)
def test_limits_always_hold_and_the_move_where_it_can(
    low: float, width: float, reach: float | None, renewed: bool, seed: int
) -> None:
    """Limits far from the reference: their nearest point is taken."""
    policy = made(reach=reach)
    play(policy, 30, seed)
    if renewed:
        policy.renew_reference()
    reference, high = references(policy), min(low + width, 9.0)
    for x in (0.1, 0.9):
        middle = reference([x])
        ends = (np.clip(middle[0] - 0.5, low, high), np.clip(middle[0] + 0.5, low, high))
        within = {"price": (low, high)}
        for value in (policy.ask([x], within=within).value, policy.recommend([x], within=within)):
            assert low <= value[0] <= high
            assert ends[0] <= value[0] <= ends[1]
            assert abs(value[1] - middle[1]) <= 0.25 + 1e-12


def test_what_is_done_today_is_not_moved() -> None:
    """While paused, and for the share of the incumbent, only limits hold."""
    policy = made(share=0.5)
    play(policy, 800)
    for k in range(4):
        policy.renew_reference()
        play(policy, 300, seed=k)
    assert not are_near(policy.recommend([0.8]), [4.0, 1.0])
    for _ in range(30):
        decision = policy.ask([0.8])
        assert decision.role in ("incumbent", "explored")
        if decision.role == "incumbent":
            assert decision.as_dict() == START
    policy.pause()
    assert policy.ask([0.8]).as_dict() == START
    limited = policy.ask([0.8], within={"price": (8.0, 9.0)})
    assert limited.as_dict() == {"price": 8.0, "fee": 1.0}


def test_a_frozen_bin_answers_near_the_reference_too() -> None:
    policy = made(max_move=9.0)
    play(policy, 800)
    near = ca.Policy.from_snapshot(policy.snapshot())
    policy.freeze(policy.bins()[0])
    one = policy.bins()[0]
    x = 0.5 * (one.low + one.high)
    decision = policy.ask(x)
    assert decision.role == "best"
    assert np.array_equal(decision.value, policy.recommend(x))
    assert not are_near(near.recommend(x), [4.0, 1.0])
    tight = made()
    play(tight, 800)
    for bin_ in tight.bins():
        tight.freeze(bin_)
    assert are_near(tight.ask(x).value, [4.0, 1.0])


def function(context: dict[str, float]) -> dict[str, float]:
    return {"price": 3.0 + 4.0 * context["x"], "fee": 1.0}


RULE = ca.AffineRule(constant=START, by_context={"price": {"x": 2.0}})


@pytest.mark.parametrize("start", [START, RULE, function])
def test_any_incumbent_can_be_the_reference(start: Any) -> None:
    policy = made(start=start)
    for decision in play(policy, 100):
        assert are_near(decision.value, policy.life.incumbent.at(decision.context))
    policy.renew_reference()
    before = policy.recommend([0.3])
    play(policy, 300, seed=1)
    assert are_near(policy.recommend([0.3]), before)


def test_a_log_brings_its_rule_to_the_reference() -> None:
    policy = made(start=None)
    x = np.linspace(0.0, 1.0, 60)
    log = {"x": x, "price": 2.0 + x, "fee": 3.0 + 0.0 * x, "payoff": 0.0 * x}
    assert are_near(policy.recommend([0.5]), PRICES.centre)
    policy.learn_from(log)
    assert are_near(policy.ask([0.5]).value, [2.5, 3.0])


def test_it_is_saved_copied_replayed_and_exported(tmp_path: Path) -> None:
    policy, happened = made(), list[Any]()
    before = policy.snapshot()
    policy.listen(happened.append)
    play(policy, 300)
    policy.renew_reference()
    play(policy, 200, seed=1)
    policy.ask([0.3])  # is open
    assert happened.count(events.ReferenceRenewed()) == 1
    policy.save(tmp_path / "policy")
    replayed = ca.Policy.from_snapshot(before)
    for event in happened:
        replayed.apply(events.from_plain(json.loads(json.dumps(events.to_plain(event)))))
    others = [ca.load(tmp_path / "policy"), policy.copy(), replayed]
    for other in others:
        assert other.snapshot() == policy.snapshot()
        assert other.max_move is not None
        assert other.max_move.tolist() == MOVE.tolist()
    values = [np.array([d.value for d in play(one, 50, seed=2)]) for one in (policy, *others)]
    assert all(np.array_equal(values[0], other) for other in values[1:])
    rehearsed = policy.rehearsed(rng=3)
    assert are_near(rehearsed.ask([0.3]).value, references(policy)([0.3]))


@pytest.mark.parametrize("reach", [0.1, None])
def test_a_reader_of_its_table_answers_the_same(reach: float | None) -> None:
    policy = made(reach=reach)
    for k in range(3):
        play(policy, 300, seed=k)
        reader = ca.Reader(policy.export())
        for x in np.linspace(0.0, 1.0, 30):
            best = policy.recommend([x]).tolist()
            assert reader.decide([x]) == pytest.approx(best, abs=1e-9)
        policy.renew_reference()
    table = json.loads(policy.export())
    assert table["max_move"] == MOVE.tolist()
    for wrong in ([1.0], [1.0, -1.0], "x", [1.0, None]):
        with pytest.raises(ValueError, match="damaged"):
            ca.Reader(json.dumps(table | {"max_move": wrong}))
    with pytest.raises(ValueError, match="damaged"):
        ca.Reader(json.dumps(table | {"reference": {"bins": []}}))


@pytest.mark.parametrize(
    ("move", "wanted"),
    [
        (0.5, [0.5, 0.5]),
        ([0.5, 2], [0.5, 2.0]),
        (np.array([0.0, 1.0]), [0.0, 1.0]),
        ({"fee": 0.25}, [8.0, 0.25]),
        ({"fee": 0.25, "price": 1}, [1.0, 0.25]),
        (100.0, [100.0, 100.0]),
    ],
)
def test_a_move_is_a_number_or_one_per_coordinate_or_by_name(move: Any, wanted: Any) -> None:
    found = made(max_move=move).max_move
    assert found is not None
    assert found.tolist() == wanted


@pytest.mark.parametrize(
    "move",
    [
        *(-0.1, [1.0], [1.0, 2.0, 3.0], [0.1, -1.0], float("nan"), float("inf"), "a", {}),
        *({"cost": 1.0}, {"price": "x"}, {"price": [1.0]}, [[1.0, 2.0]], [True, None], object()),
    ],
)
def test_other_moves_are_refused_in_one_line(move: Any) -> None:
    with pytest.raises(SettingsError, match=r"^`max_move` must be a number .* but got .*$"):
        made(max_move=move)


def test_who_cannot_honour_it_refuses_it_when_made() -> None:
    makers: list[Any] = [
        lambda: ca.StaticKWSA(UNIT, PRICES, bins=2, step=1.0, max_move=0.5),
        lambda: ca.UniformUCB(UNIT, PRICES, bins=2, arms=3, max_move=0.5),
        lambda: ca.RobbinsMonro(UNIT, PRICES, bins=2, step=1.0, max_move=0.5),
    ]
    for maker in makers:
        with pytest.raises(SettingsError, match=r"^`max_move` must have a learner that learns"):
            maker()


def test_without_it_there_is_no_reference() -> None:
    policy = made(max_move=None)
    play(policy, 20)
    before = policy.snapshot()
    assert policy.max_move is None
    line = "`max_move` must be set, so that there is a reference, but got None"
    for renew in (policy.renew_reference, lambda: policy.apply(events.ReferenceRenewed())):
        with pytest.raises(InputError, match=f"^{re.escape(line)}$"):
            renew()
    assert policy.snapshot() == before


def test_a_wide_move_decides_as_none_does_to_the_last_digits() -> None:
    wide, free = made(max_move=9.0, reach=None), made(max_move=None, reach=None)
    values = [np.array([d.value for d in play(one, 200)]) for one in (wide, free)]
    assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_contexts_outside_the_box_are_refused_and_change_nothing() -> None:
    policy = made()
    before = policy.snapshot()
    for verb in (policy.ask, policy.recommend, policy.explain):
        with pytest.raises(InputError):
            verb([1.5])
    assert policy.snapshot() == before


def test_a_simulation_obeys_it() -> None:
    """All decisions near 0.5, where the best is far off: the regret of each is what that costs."""
    problem = ca.problem("two-communities")
    move = 1e-9 * problem.decision.span
    policy = ca.SurfaceSampling(problem.context, problem.decision, max_move=move, rng=0)
    fixed = ca.simulate(policy, problem, horizon=200, rng=1)
    centre = ca.simulate("fixed", problem, horizon=200, rng=1)
    assert fixed.regret[0].tolist() == pytest.approx(centre.regret[0].tolist(), rel=1e-5)


def test_explain_says_what_the_reference_is() -> None:
    policy = made()
    assert policy.explain([0.3])["reference"] == [4.0, 1.0]
    play(policy, 200)
    policy.renew_reference()
    explanation = policy.explain([0.3])
    assert explanation["reference"] == references(policy)([0.3]).tolist()
    assert explanation["centre"] == policy.recommend([0.3]).tolist()


@pytest.mark.parametrize(
    ("decision", "start", "move"),
    [
        (ca.Box([1, 0], [9, 4], names=["price", "fee"], spacing={"price": 1}), [3.5, 1.0], 0.4),
        (ca.Polytope(ca.Box([1, 0], [9, 4], names=["price", "fee"]), ["price <= 4"]), [5, 1], 0.4),
        (
            ca.Polytope(
                ca.Box([1, 0], [9, 4], names=["price", "fee"], spacing={"price": 0.5}),
                ["price + fee <= 8"],
            ),
            [7.5, 3.0],
            0.2,
        ),
    ],
    ids=["spacing", "limit", "both"],
)
def test_near_a_reference_that_is_not_allowed_it_still_tries(
    decision: ca.Box, start: list[float], move: float
) -> None:
    """Moves are counted from the allowed decision that is nearest."""
    policy = ca.SurfaceSampling(
        ca.Box([], []), decision, start=start, max_move={"price": move}, rng=1
    )
    tried = set()
    for _ in range(120):
        asked = policy.ask()
        assert decision.allows(asked.value)
        tried.add(tuple(asked.value.tolist()))
        policy.tell(asked, -((asked.value[0] - 6.0) ** 2) - (asked.value[1] - 3.0) ** 2)
    assert len(tried) > 10
    assert policy.recommend()[1] > start[1] or decision.spaced
    reader = ca.Reader(policy.export())
    assert reader.decide() == pytest.approx(policy.recommend().tolist(), abs=1e-9)
