"""freeze and unfreeze a segment: its contexts are answered as of then, and nothing is learned."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import continuarm as ca
from continuarm.cli import cli
from continuarm.errors import InputError
from continuarm.live import as_it_was, checked_events, events
from continuarm.live.segments import MOST, Between, Segment
from tests.test_frozen_bins import Fixed

DAY = ca.Box([0.0, 0.0], [24.0, 250_000.0], names=["hour", "income"])
PRICE = ca.Box([1.0], [9.0], names=["price"])
EVENING = {"hour": (18, 24)}
POOR = {"income": (0, 20_000)}


def play(policy: Any, n: int, seed: int = 0, shift: float = 0.0) -> None:
    """The best price rises with the hour, and falls by the shift."""
    rng = np.random.default_rng(seed)
    for x in DAY.from_unit(rng.random((n, 2))):
        decision = policy.ask(x)
        gap = decision.value[0] - (3.0 + x[0] / 8.0 - shift)
        policy.tell(decision, float(-gap * gap + 0.1 * rng.standard_normal()))


def learned(n: int = 400, **options: Any) -> ca.Policy:
    policy = ca.SurfaceSampling(DAY, PRICE, rng=0, **options)
    play(policy, n)
    return policy


def contexts(n: int = 200, seed: int = 9) -> Any:
    return DAY.from_unit(np.random.default_rng(seed).random((n, 2)))


def test_a_segment_answers_as_of_its_freezing_and_the_others_go_on() -> None:
    policy, x = learned(), contexts()
    evening, before = x[:, 0] >= 18.0, policy.recommend_many(x)
    segment = policy.freeze(EVENING)
    assert segment == Segment({"hour": Between(18.0, 24.0)}, 400, 0.0)
    assert policy.frozen == [segment]
    play(policy, 1500, seed=1, shift=1.5)
    after = policy.recommend_many(x)
    assert np.array_equal(after[evening], before[evening])
    assert not np.isclose(after[~evening], before[~evening]).any()
    for point, best in zip(x[:40], after[:40], strict=True):
        decision = policy.ask(point)
        frozen = bool(point[0] >= 18.0)
        assert decision.role == ("best" if frozen else "explored")
        assert np.array_equal(decision.value, best) == frozen
    policy.unfreeze(segment)
    assert policy.frozen == []
    assert {policy.ask([20.0, 1e5]).role for _ in range(5)} == {"explored"}
    assert not np.isclose(policy.recommend_many(x)[evening], before[evening]).any()


def test_both_ends_are_included_and_no_more() -> None:
    policy = learned()
    policy.freeze({"hour": (6, 12), "income": (0, 20_000)})
    for hour, income, inside in (
        (6.0, 0.0, True),
        (12.0, 20_000.0, True),
        (np.nextafter(12.0, 13.0), 0.0, False),
        (8.0, np.nextafter(20_000.0, 1e6), False),
    ):
        role = policy.ask({"hour": hour, "income": income}).role
        assert role == ("best" if inside else "explored")


def test_its_payoffs_are_counted_and_not_learned_also_of_decisions_asked_before() -> None:
    policy = learned(share=0.3)
    x = [20.0, 1e5]
    early, elsewhere = policy.ask(x), policy.ask([3.0, 1e5])
    policy.freeze(EVENING)
    rows, before = policy.life.model.state.rows.copy(), policy.stats()
    counted, told = policy.uplift(), policy.life.history.told
    policy.tell(early, 1000.0)
    policy.tell(policy.ask(x), -1000.0)
    late = policy.ask(x)
    changed = np.argwhere(policy.life.model.state.rows != rows)
    assert set(changed[:, 1].tolist()) == {2}  # how many were told
    after = policy.stats()
    assert (after.told, sum(after.payoffs_per_bin)) == (
        before.told + 2,
        sum(before.payoffs_per_bin) + 2,
    )
    assert policy.life.history.told == told + 2
    policy.forget_all()
    assert policy.uplift().counted >= counted.counted + 2
    policy.tell(policy.ask([3.0, 1e5]), 1.0)
    assert (policy.life.model.state.rows != rows).sum() > 2  # others are learned
    assert not policy.life.open.open
    assert (late.role, elsewhere.role) != ("", "")


def test_what_it_decides_is_never_learned_also_when_it_is_unfrozen() -> None:
    policy = learned()
    policy.freeze(EVENING)
    late = policy.ask([20.0, 1e5])
    policy.unfreeze(EVENING)
    rows = policy.life.model.state.rows.copy()
    policy.tell(late, 1000.0)
    assert np.array_equal(policy.life.model.state.rows, rows)
    policy.tell(policy.ask([20.0, 1e5]), 1.0)
    assert not np.array_equal(policy.life.model.state.rows, rows)


def test_of_segments_that_overlap_the_one_frozen_first_answers() -> None:
    policy, both = learned(), np.array([[20.0, 5_000.0]])
    first = policy.recommend_many(both)
    policy.freeze(EVENING)
    play(policy, 600, seed=1, shift=1.5)
    policy.freeze(POOR)
    middle = policy.recommend_many([[3.0, 5_000.0]])
    assert np.array_equal(policy.recommend_many(both), first)
    play(policy, 600, seed=2, shift=2.5)
    policy.unfreeze(EVENING)
    second = policy.recommend_many(both)
    assert not np.isclose(second, first).any()
    assert policy.ask(both[0]).role == "best"  # the other one answers, as of its freezing
    play(policy, 300, seed=3)
    assert np.array_equal(policy.recommend_many(both), second)
    assert np.array_equal(policy.recommend_many([[3.0, 5_000.0]]), middle)


def test_segments_frozen_at_one_state_share_what_was_known() -> None:
    policy = learned()
    for where in (EVENING, POOR):
        policy.freeze(where)
    play(policy, 50, seed=1)
    policy.freeze({"hour": (0, 1)})
    known = [id(one.known) for one in policy.life.segments]
    assert known[0] == known[1] != known[2]
    again = ca.Policy.from_snapshot(policy.snapshot())
    assert len({id(one.known) for one in again.life.segments}) == 2


def test_a_pause_and_the_share_come_first_and_limits_always_hold() -> None:
    policy, x = learned(share=0.5), [20.0, 1e5]
    policy.freeze(EVENING)
    assert {policy.ask(x).role for _ in range(40)} == {"best", "incumbent"}
    best = policy.recommend(x)[0]
    assert best < 8.0
    limited = [policy.ask(x, within={"price": (8.0, 9.0)}) for _ in range(20)]
    assert {d.value[0] for d in limited} == {8.0}
    assert policy.recommend(x, within={"price": (8.0, 9.0)})[0] == 8.0
    policy.pause()
    assert {policy.ask(x).role for _ in range(20)} == {"incumbent"}
    policy.resume()
    assert policy.recommend(x)[0] == best


def test_what_a_segment_answers_is_allowed() -> None:
    box = ca.Box([1.0, 0.0], [9.0, 4.0], names=["price", "fee"], spacing=[0.25, 0.0])
    allowed = ca.Polytope(box, ["price + fee <= 8"])
    policy = ca.SurfaceSampling(DAY, allowed, max_move=3.0, rng=0)
    rng = np.random.default_rng(0)
    for x in contexts(200):
        decision = policy.ask(x)
        gap = decision.value - np.array([7.0, 3.0])
        policy.tell(decision, float(-gap @ gap + 0.1 * rng.standard_normal()))
    policy.renew_reference()
    policy.freeze(EVENING)
    for x in contexts(20):
        x[0] = 18.0 + x[0] / 4.0
        for within in (None, {"fee": (0.3, 0.7)}):
            decision = policy.ask(x, within=within)
            assert decision.role == "best"
            assert allowed.allows(decision.value)
            assert np.array_equal(decision.value, policy.recommend(x, within=within))


def test_with_max_move_it_stays_near_the_reference_of_then() -> None:
    policy = learned(max_move=0.4)
    policy.renew_reference()
    play(policy, 300, seed=1)
    x = contexts()
    evening, before = x[:, 0] >= 18.0, policy.recommend_many(x)
    policy.freeze(EVENING)
    for k in range(3):
        play(policy, 300, seed=2 + k, shift=2.0)
        policy.renew_reference()
    after = policy.recommend_many(x)
    assert np.array_equal(after[evening], before[evening])
    assert not np.isclose(after[~evening], before[~evening]).any()
    policy.change(max_move=0.0)  # how far is that of now
    there = policy.recommend([20.0, 1e5])
    assert np.allclose(there, policy.explain([20.0, 1e5])["reference"])
    again = ca.Policy.from_snapshot(policy.snapshot())
    assert np.array_equal(again.recommend_many(x), policy.recommend_many(x))


def test_a_log_that_changes_the_incumbent_changes_nothing_in_it() -> None:
    policy = ca.SurfaceSampling(DAY, PRICE, rng=0)
    policy.freeze(EVENING)  # nothing is known: the middle
    x = contexts(300)
    log = {"hour": x[:, 0], "income": x[:, 1], "price": 2.0 + x[:, 0] / 24.0}
    twin = policy.copy()
    twin.unfreeze(EVENING)
    for one in (policy, twin):
        one.learn_from(log | {"payoff": np.ones(300)})
    assert policy.recommend([20.0, 1e5]).tolist() == [5.0]
    assert policy.ask([20.0, 1e5]).value.tolist() == [5.0]
    assert policy.recommend([3.0, 1e5])[0] < 4.0
    bin_, other = policy.bins()[0], twin.bins()[0]
    frozen = int((x[:, 0] >= 18.0).sum())
    assert other.progress - bin_.progress == frozen


def test_silence_in_a_segment_is_not_learned() -> None:
    policy = learned(ttl=3, missing=-50.0)
    policy.forget_all()
    policy.freeze(EVENING)
    rows = policy.life.model.state.rows.copy()
    for _ in range(10):
        policy.ask([20.0, 1e5])
    policy.forget_all()
    changed = np.argwhere(policy.life.model.state.rows != rows)
    assert set(changed[:, 1].tolist()) <= {2}


def test_arms_in_a_segment_are_tried_again_when_it_is_unfrozen() -> None:
    policy = ca.UniformUCB(ca.Box([0], [1], names=["x"]), PRICE, bins=2, arms=3, rng=0)
    open_ = policy.ask([0.1])
    policy.freeze({"x": (0, 0.2)})
    policy.tell(open_, 5.0)
    assert policy.ask([0.1]).value[0] == policy.recommend([0.1])[0]
    [bin_] = policy.bins()
    assert (bin_.told, bin_.progress) == (1, 0)
    again = ca.Policy.from_snapshot(policy.snapshot())
    assert again.snapshot() == policy.snapshot()
    policy.unfreeze({"x": (0, 0.2)})
    tried = [float(policy.ask([0.1]).value[0]) for _ in range(3)]
    assert float(open_.value[0]) in tried


@pytest.mark.parametrize("tree", [ca.Grid(4), ca.Tree(split_after=(30, 30)), ca.EvidenceTree()])
def test_bins_go_on_under_a_segment_and_are_frozen_beside_it(tree: Any) -> None:
    learner = ca.ResponseSurface()
    policy = ca.Policy(DAY, PRICE, partition=tree, learner=learner, rng=0)
    play(policy, 300)
    x, segment = contexts(), policy.freeze(EVENING)
    evening, before = x[:, 0] >= 18.0, policy.recommend_many(x)
    play(policy, 900, seed=1, shift=1.5)
    bin_ = policy.bins()[0]
    policy.freeze(bin_)
    first, second = policy.frozen
    assert first == segment
    assert isinstance(second, ca.live.decision.Bin)
    assert second.id == bin_.id
    play(policy, 300, seed=2, shift=1.5)
    assert np.array_equal(policy.recommend_many(x)[evening], before[evening])
    for number in (bin_.id, segment):
        policy.unfreeze(number)
    assert policy.frozen == []


def test_policies_of_stencils_refuse_in_one_line() -> None:
    policy = ca.StaticKWSA(DAY, PRICE, bins=2, step=1.0, rng=0)
    policy.ask([3.0, 1e5])
    before = policy.snapshot()
    with pytest.raises(InputError, match=r"^a segment can be frozen where .* `pause\(\)`$"):
        policy.freeze(EVENING)
    assert policy.snapshot() == before


WRONG: list[tuple[Any, str]] = [
    ({}, "`segment` must say from where to where for some contexts, such as"),
    ({"our": (18, 24)}, "the names of `segment` must be among ['hour', 'income'], but got 'our'"),
    ({0: (18, 24)}, "among ['hour', 'income'], but got 0"),
    ({"hour": (24, 18)}, "`low <= high` must hold for hour in `segment`, both finite, but got ("),
    ({"hour": (18, np.nan)}, "for hour in `segment`, both finite, but got (18, nan)"),
    ({"hour": (18, np.inf)}, "both finite, but got (18, inf)"),
    ({"hour": 18}, "for hour in `segment`, both finite, but got 18"),
    ({"hour": (18,)}, "both finite, but got (18,)"),
    ({"hour": "1824"}, "both finite, but got '1824'"),
    ({"hour": None}, "both finite, but got None"),
    ({"hour": (25, 30)}, "hour in `segment` must meet its box, 0.0 to 24.0, but got (25, 30)"),
    ({"hour": (-3, -1)}, "must meet its box, 0.0 to 24.0, but got (-3, -1)"),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_bad_input_gets_one_line_and_changes_nothing(given: Any, said: str) -> None:
    policy = learned(20)
    before = policy.snapshot()
    for verb in (policy.freeze, policy.unfreeze):
        with pytest.raises(InputError, match=re.escape(said)) as raised:
            verb(given)
        assert "\n" not in str(raised.value)
    for kind in (events.SegmentFrozen, events.SegmentUnfrozen):
        with pytest.raises(InputError):
            policy.apply(kind(given))
    assert policy.snapshot() == before


def test_what_is_frozen_already_or_is_not_is_refused() -> None:
    policy = learned(20)
    policy.freeze({"income": (0, 20_000), "hour": (18, 30)})
    before = policy.snapshot()
    same = {"hour": (18.0, 24.0), "income": [0, 20_000.0]}
    line = (
        "`segment` must not be frozen already, but hour 18 to 24 and income 0 to 20,000 is, "
        "since 20 decisions were asked"
    )
    with pytest.raises(ca.errors.SegmentConflictError, match=f"^{re.escape(line)}$"):
        policy.freeze(same)
    line = "`segment` must be one that is frozen, but hour 18 to 24 is not"
    with pytest.raises(ca.errors.SegmentConflictError, match=f"^{re.escape(line)}$"):
        policy.unfreeze(EVENING)
    assert policy.snapshot() == before
    policy.unfreeze(same)
    assert policy.frozen == []


def test_there_is_a_limit() -> None:
    policy = learned(20)
    for k in range(MOST):
        policy.freeze({"income": (k, k + 0.5)})
    before = policy.snapshot()
    with pytest.raises(InputError, match=r"^at most 100 segments can be frozen .* hour 18 to 24$"):
        policy.freeze(EVENING)
    assert policy.snapshot() == before


def test_what_was_known_has_a_limit_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = learned(20)
    policy.freeze(EVENING)
    state = policy.life.segments[0].known.model.state
    size = state.counts.nbytes + state.nodes.nbytes + state.rows.nbytes
    assert as_it_was.bytes_of(policy.life.segments) == size
    monkeypatch.setattr(checked_events, "MOST_BYTES", 2 * size)
    policy.freeze(POOR)  # the state is the same: it costs nothing
    assert as_it_was.bytes_of(policy.life.segments) == size
    play(policy, 20, seed=1)
    policy.freeze({"hour": (0, 6)})
    assert size < as_it_was.bytes_of(policy.life.segments) <= 2 * size
    policy.freeze({"hour": (0, 7)})
    play(policy, 20, seed=2)
    before = policy.snapshot()
    said = r"^what was known when segments were frozen can have at most .* MiB in all, .* hour 8 "
    again = ca.Policy.from_snapshot(before)
    for one in (policy, again, policy.copy()):
        with pytest.raises(InputError, match=said):
            one.freeze({"hour": (8, 9)})
        frozen = events.SegmentFrozen({"hour": [8.0, 9.0]}, 0.0)
        with pytest.raises(InputError, match=said):
            checked_events.check(one.life, frozen)
        assert one.snapshot() == before
        one.unfreeze(EVENING)
        with pytest.raises(InputError, match=said):  # another one has the same copy
            one.freeze({"hour": (8, 9)})
        one.unfreeze(POOR)
        one.freeze({"hour": (8, 9)})


class NotAsked(tuple[str, ...]):
    """Names that nobody may look for."""

    def index(self, *_: Any) -> int:
        raise AssertionError("a name is looked for")


class NotRead(dict[str, Between]):
    """A condition that nobody may go through."""

    def items(self) -> Any:
        raise AssertionError("a condition is gone through")


def test_which_segment_has_a_context_is_seen_without_names_and_rule_by_rule_work() -> None:
    box = ca.Box(DAY.low, DAY.high, names=DAY.names)  # it is changed below
    policy, x = ca.SurfaceSampling(box, PRICE, rng=0), contexts(40)
    many = [{"hour": (k / 10, k / 10 + 0.3), "income": (0, 2e5)} for k in range(80)]
    for where in many:
        policy.freeze(where)
    policy.unfreeze(many[3])
    kept = many[:3] + many[4:]
    life = policy.life
    held = [
        next((k for k, one in enumerate(kept) if inside(one, x[[t]])), None) for t in range(40)
    ]
    assert {None, *held} != {None}
    assert None in held
    segments = life.segments
    life.segments = tuple(
        one._replace(segment=one.segment._replace(where=NotRead(one.segment.where)))
        for one in segments
    )
    object.__setattr__(box, "names", NotAsked(DAY.names))
    found = [life.held_at(point) for point in x]
    for one, wanted in zip(found, held, strict=True):
        assert one is (None if wanted is None else life.segments[wanted])
    among = np.zeros(len(x), bool)
    for _, mine in life.held_among(x):
        assert not (among & mine).any()
        among |= mine
    assert among.tolist() == [wanted is not None for wanted in held]
    free = x[held.index(None)]
    policy.tell(policy.ask(free), 1.0)
    assert life.edges is not None
    assert len(life.edges.columns) == 2 * len(kept)
    life.segments = segments
    object.__setattr__(box, "names", DAY.names)
    again = ca.Policy.from_snapshot(policy.snapshot()).life
    for other in (again, life.copy()):
        for numbers, theirs in zip(life.edges, other.edges or (), strict=True):
            assert np.array_equal(numbers, theirs)
    policy.unfreeze(kept[0])
    for where in kept[1:]:
        policy.unfreeze(where)
    assert life.edges is None


def test_contexts_without_names_have_their_numbers() -> None:
    policy = ca.SurfaceSampling(ca.Box.unit(2), PRICE, rng=0)
    policy.freeze({"1": (0.5, 1.0)})
    assert policy.ask([0.1, 0.7]).role == "best"
    assert policy.ask([0.7, 0.1]).role == "explored"
    assert "dimension 1: 0.5 to 1" in str(policy.explain([0.1, 0.7]))


def test_it_survives_files_copies_rehearsals_and_exports(tmp_path: Path) -> None:
    policy, x = learned(share=0.1), contexts(60)
    policy.freeze(EVENING)
    play(policy, 300, seed=1, shift=1.5)
    policy.freeze(POOR)
    policy.ask([20.0, 1e5])
    policy.save(tmp_path / "policy")
    others = [ca.load(tmp_path / "policy"), policy.copy(), policy.rehearsed(rng=7)]
    for other in others:
        assert other.frozen == policy.frozen
        assert np.array_equal(other.recommend_many(x), policy.recommend_many(x))
    assert others[0].snapshot() == others[1].snapshot() == policy.snapshot()
    for one in (policy, others[0]):
        play(one, 100, seed=2)
        one.freeze({"hour": (0, 1)})
    assert others[0].snapshot() == policy.snapshot()
    others[1].unfreeze(EVENING)  # a copy goes its own way
    assert len(policy.frozen) == 3


@pytest.mark.parametrize("options", [{}, {"max_move": 0.4}])
def test_a_table_answers_as_the_policy_does(options: dict[str, Any]) -> None:
    policy = learned(**options)
    if options:
        policy.renew_reference()
    policy.freeze(EVENING)
    play(policy, 500, seed=1, shift=1.5)
    if options:
        policy.renew_reference()
    policy.freeze(POOR)
    play(policy, 500, seed=2, shift=2.5)
    table = policy.export()
    reader = ca.Reader(table)
    for x in contexts(60):
        assert reader.decide(x.tolist()) == pytest.approx(policy.recommend(x).tolist(), abs=1e-9)
    plain = json.loads(table)
    assert plain["version"] == 3  # readers of before know no segments, and refuse it
    for where in ({"our": [1, 2]}, {}, {"hour": [1]}, {"hour": ["a", "b"]}, None):
        plain["segments"][0]["where"] = where
        with pytest.raises(ValueError, match="damaged"):
            ca.Reader(json.dumps(plain))
    plain = json.loads(table)
    for number in (-1, len(plain["then"]), True, None, "0"):
        plain["segments"][0]["known"] = number
        with pytest.raises(ValueError, match="damaged"):
            ca.Reader(json.dumps(plain))


def test_both_are_events() -> None:
    policy, happened = learned(50), list[Any]()
    before = policy.snapshot()
    policy.listen(happened.append)
    policy.freeze(EVENING)
    policy.tell(policy.ask([20.0, 1e5]), 1.0)
    policy.unfreeze(EVENING)
    assert happened[0] == events.SegmentFrozen({"hour": [18.0, 24.0]}, 0.0)
    assert happened[-1] == events.SegmentUnfrozen({"hour": [18.0, 24.0]})
    assert events.to_plain(happened[0]) == {
        "event": "segment-frozen",
        "where": {"hour": [18.0, 24.0]},
        "at": 0.0,
    }
    assert happened[1].segment == {"where": {"hour": [18.0, 24.0]}, "asked": 50, "at": 0.0}
    replayed = ca.Policy.from_snapshot(before)
    for event in happened:
        plain = json.loads(json.dumps(events.to_plain(event)))
        replayed.apply(events.from_plain(plain))
    assert replayed.snapshot() == policy.snapshot()


def test_an_event_must_be_as_the_freeze_says() -> None:
    policy, happened = learned(100), list[Any]()
    policy.listen(happened.append)
    policy.ask([20.0, 1e5])
    later = happened[0]._replace(id=happened[0].id + 1)
    with pytest.raises(InputError, match="needs limits"):
        policy.apply(later._replace(role="best"))
    policy.freeze(EVENING)
    with pytest.raises(InputError, match="hour 18 to 24 is frozen and explores nothing"):
        policy.apply(later)
    for segment in ({}, {"where": {}, "asked": 0, "at": 0.0}, "evening", {"where": {"hour": [1]}}):
        with pytest.raises(InputError):
            policy.apply(later._replace(role="best", segment=segment))
    policy.apply(later._replace(role="best"))
    with pytest.raises(InputError, match="time"):
        policy.apply(events.SegmentFrozen({"hour": [0, 1]}, 5.0))


def test_with_a_clock_it_is_known_since_when() -> None:
    policy = ca.SurfaceSampling(DAY, PRICE, ttl_seconds=60.0, rng=0)
    policy.ask([3.0, 0.0], now=1.7e9)
    segment = policy.freeze(EVENING, now=1.7e9 + 30.0)
    assert segment.at == 1.7e9 + 30.0
    assert segment.since() == "since 2023-11-14 22:13 UTC, after 1 decision"
    assert "since 2023-11-14 22:13 UTC" in str(policy.explain([20.0, 0.0]))
    assert policy.freeze(POOR, now=0.0).at == 1.7e9  # time never goes back


def test_explain_and_inspect_say_so(tmp_path: Path) -> None:
    policy, x, happened = learned(), [20.0, 1e5], list[Any]()
    policy.listen(happened.append)
    before = policy.explain(x)
    assert not before["frozen"]
    policy.freeze(EVENING)
    decision = policy.ask(x)
    play(policy, 300, seed=1, shift=1.5)
    now, then = policy.explain(x), policy.explain(happened[1])
    policy.unfreeze(EVENING)
    later = policy.explain(happened[1])
    words = "hour 18 to 24, since 400 decisions were asked"
    for one in (now, then, later):
        assert one["frozen"]
        assert one["segment"]["where"] == {"hour": [18.0, 24.0]}
        assert one["value"] == decision.value.tolist()
        assert one["peak"] == before["peak"]
        assert one["payoffs"] == before["payoffs"]
        text = " ".join(str(one).split())
        assert f"It was the best one known when its segment was frozen: {words}." in text
        assert f"Guard freeze: {words}: it answers with the best decision known then" in text
    assert then["why"] == "frozen"
    policy.freeze(EVENING)
    policy.freeze(POOR)
    policy.save(tmp_path / "policy")
    done = CliRunner().invoke(cli, ["inspect", str(tmp_path / "policy")])
    assert re.search(
        r"frozen segments +hour 18 to 24, since .* asked; income 0 to 20,000, since", done.output
    )


def test_a_simulation_keeps_what_is_frozen() -> None:
    problem = ca.problem("two-communities")
    policy = ca.SurfaceSampling(problem.context, problem.decision, rng=0)
    for x in np.random.default_rng(0).random((300, problem.context.dim)):
        decision = policy.ask(problem.context.from_unit(x))
        policy.tell(decision, float(-np.sum(problem.decision.to_unit(decision.value) ** 2)))
    loose = ca.simulate(policy, problem, horizon=300, rng=1)
    low, high = float(problem.context.low[0]), float(problem.context.high[0])
    policy.freeze({problem.context.names[0]: (low, high)})  # all of it
    before = policy.snapshot()
    frozen, fixed = (
        ca.simulate(one, problem, horizon=300, rng=1)
        for one in (policy, lambda context, decision: Fixed(policy))
    )
    assert policy.snapshot() == before
    assert frozen.regret[0].tolist() == pytest.approx(fixed.regret[0].tolist(), abs=1e-9)
    assert frozen.regret[0, -1] != pytest.approx(loose.regret[0, -1], rel=0.01)


def test_a_function_is_the_incumbent_there_too() -> None:
    policy = ca.SurfaceSampling(
        DAY, PRICE, start=lambda c: {"price": 2.0 + c["hour"] / 8.0}, rng=0
    )
    policy.freeze(EVENING)
    for hour in (18.0, 22.0):
        assert policy.ask([hour, 0.0]).value.tolist() == [2.0 + hour / 8.0]
        assert policy.recommend([hour, 0.0]).tolist() == [2.0 + hour / 8.0]
    many = policy.recommend_many([[18.0, 0.0], [22.0, 0.0]])
    assert many.tolist() == [[4.25], [4.75]]


HOURS = st.tuples(st.integers(0, 24), st.integers(0, 24)).map(sorted).map(tuple)
SEGMENTS = st.fixed_dictionaries(
    {"hour": HOURS}, optional={"income": st.sampled_from([(0, 5e4), (5e4, 2e5), (1e5, 3e5)])}
)
STEPS = st.lists(st.one_of(SEGMENTS, st.integers(0, 5)), min_size=1, max_size=12)


@given(steps=STEPS)
@settings(max_examples=25, deadline=None)
def test_overlapping_segments_answer_as_of_the_first(steps: list[Any]) -> None:
    """What should be answered is kept beside it: a list of conditions with answers as of then."""
    policy, x, happened = learned(60), contexts(25), list[Any]()
    beginning, frozen = policy.snapshot(), list[tuple[Any, Any, Any]]()
    policy.listen(happened.append)

    def without() -> Any:
        """What would be answered if nothing were frozen."""
        loose = policy.copy()
        for where, _, _ in frozen:
            loose.unfreeze(where)
        return loose.recommend_many(x)

    for k, step in enumerate(steps):
        if isinstance(step, dict) and all(step != where for where, _, _ in frozen):
            then = without()
            policy.freeze(step)
            frozen.append((step, inside(step, x), then))
        elif isinstance(step, int) and frozen:
            where, _, _ = frozen.pop(step % len(frozen))
            policy.unfreeze(where)
        play(policy, 8, seed=k, shift=1.0)
        wanted, left = without(), np.ones(len(x), bool)
        for _, mine, then in frozen:
            wanted[left & mine] = then[left & mine]
            left &= ~mine
        assert np.array_equal(policy.recommend_many(x), wanted)
        decisions = [policy.copy().ask(one) for one in x]
        assert [one.role == "best" for one in decisions] == (~left).tolist()
        answers = np.array([one.value for one in decisions])
        assert np.array_equal(answers[~left], wanted[~left])
    again = ca.Policy.from_snapshot(policy.snapshot())
    assert again.snapshot() == policy.snapshot()
    replayed = ca.Policy.from_snapshot(beginning)
    for event in happened:
        checked_events.check_numbers(replayed.life, event)
        replayed.apply(events.from_plain(events.to_plain(event)))
    assert replayed.snapshot() == policy.snapshot()


def inside(where: dict[str, Any], x: Any) -> Any:
    columns = {"hour": x[:, 0], "income": x[:, 1]}
    rules = [(columns[name], *ends) for name, ends in where.items()]
    return np.all([(low <= column) & (column <= high) for column, low, high in rules], axis=0)
