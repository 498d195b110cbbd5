"""Any life of any policy, written down as events, can be lived again: bit for bit."""

import json
import math
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import continuarm as ca
from continuarm import events
from continuarm.errors import InputError, UnknownDecisionError
from continuarm.live.events import Asked, Event, Forgotten, LearnedFromLog, TimePassed, Told
from continuarm.live.limits import Within
from tests.worlds import check_state

CONTEXTS = [ca.Box([-1.0, 2.0][:dx], [3.0, 2.5][:dx], names=["a", "b"][:dx]) for dx in range(3)]
DECISIONS = [ca.Box([1.0, -3.0][:dy], [9.0, 0.1][:dy], names=["y", "z"][:dy]) for dy in range(3)]
UNIT = st.one_of(st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]), st.floats(0.0, 1.0))
POINT = st.tuples(UNIT, UNIT)  # of the unit square; a box of fewer dimensions takes the first
PAYOFF = st.one_of(st.floats(-2.0, 2.0), st.sampled_from([0.0, 1e9, -1e-9]))
SLOPE = st.tuples(st.floats(-5.0, 5.0), st.floats(-5.0, 5.0))
WAIT = st.sampled_from([0.0, 0.4, 1.0, 3.0, -7.0])  # seconds since the last step
WHICH = st.integers(0, 30)  # of the open decisions
SEED = st.integers(0, 99)

# what happens, as the name of a method of `Recorded` and what it is given
STEP = st.one_of(
    st.tuples(st.just("ask"), POINT, WAIT),
    st.tuples(st.just("ask_within"), POINT, POINT, POINT, WAIT),
    st.tuples(st.just("ask_many"), st.lists(POINT, min_size=1, max_size=12), WAIT),
    st.tuples(st.just("tell"), WHICH, PAYOFF, SLOPE),
    st.tuples(st.just("tell"), WHICH, PAYOFF, SLOPE),
    st.tuples(st.just("tell_done"), WHICH, PAYOFF, POINT),
    st.tuples(st.just("tell_many"), st.lists(PAYOFF, min_size=1, max_size=9), SLOPE),
    st.tuples(st.just("play"), SEED, st.integers(1, 40)),
    st.tuples(st.just("forget"), WHICH),
    st.tuples(st.just("expire"), WAIT),
    st.tuples(st.just("forget_all")),
    st.tuples(st.just("learn_from"), SEED, st.integers(1, 9)),
    st.tuples(st.just("save_and_load")),
    st.tuples(st.just("copy_and_pickle")),
)
MEMORY = st.sampled_from([None, 3, 40])
CLIMBING: dict[str, Any] = {
    "step": st.sampled_from([0.1, 3.0]),
    "average": st.booleans(),
    "memory": MEMORY,
}
PROBING = CLIMBING | {
    "width": st.sampled_from([0.1, 0.5]),
    "probe": st.sampled_from(["forward", "alternate", "central"]),
}
SPLITTING: dict[str, Any] = {
    "depth": st.just(2),
    "split_after": st.sampled_from([[1, 1], [2, 3]]),
    "inherit": st.sampled_from(["iterate", "iterate-and-count"]),
}
POLICIES: dict[str, Any] = {
    "SurfaceSampling": st.fixed_dictionaries(
        {"memory": MEMORY, "reach": st.sampled_from([None, 0.1])}
    ),
    "StaticKWSA": st.fixed_dictionaries({"bins": st.sampled_from([1, 3, 20])} | PROBING),
    "AdaptiveKWSA": st.fixed_dictionaries(PROBING | SPLITTING),
    "UniformUCB": st.fixed_dictionaries({"bins": st.just(2), "arms": st.sampled_from([1, 3])}),
    "RobbinsMonro": st.one_of(
        st.fixed_dictionaries({"bins": st.sampled_from([1, 20])} | CLIMBING),
        st.fixed_dictionaries(CLIMBING | SPLITTING),
        st.fixed_dictionaries({"memory": MEMORY}),
        st.fixed_dictionaries({"memory": MEMORY, "depth": st.just(2)}),
    ),
}
WAITING: list[dict[str, Any]] = [
    {},
    {"ttl": None},
    {"ttl": 4},
    {"ttl_seconds": 2.0},
    {"ttl": 9, "ttl_seconds": 2.0},
    {"ttl": 5, "missing": 0.25},
    {"ttl_seconds": 2.0, "missing": -1.0},
    {"ttl": 3, "ttl_seconds": 4.0, "missing": 0.0},
]


@st.composite
def policies(draw: Any, name: str) -> ca.Policy:
    """A policy of this name, its dimensions and options drawn."""
    context, decision = (
        CONTEXTS[draw(st.sampled_from([1, 2, 0]))],
        DECISIONS[draw(st.integers(1, 2))],
    )
    kinds = [kind for kind in WAITING if name != "RobbinsMonro" or "missing" not in kind]
    options = draw(POLICIES[name]) | draw(st.sampled_from(kinds))
    if name != "UniformUCB" and draw(st.booleans()):
        options["start"] = decision.low
    make: Callable[..., ca.Policy] = getattr(ca, name)
    return make(context, decision, rng=draw(st.integers(0, 9)), **options)


def written_and_read(event: Event) -> Event:
    """An event as a journal of JSON lines would keep it; nothing of it is lost."""
    line = json.dumps(events.to_plain(event), allow_nan=False)
    again = events.from_plain(json.loads(line))
    assert type(again) is type(event)
    fields: list[tuple[Any, Any]] = list(zip(event, again, strict=True))
    for one, other in fields:
        if isinstance(one, np.ndarray):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            assert one.tobytes() == other.tobytes()
        else:
            assert type(one) is type(other)
            assert one == other
    assert json.dumps(events.to_plain(again), allow_nan=False) == line
    return again


class Recorded:
    """A policy, and all that happens to it, written down and read again."""

    def __init__(self, policy: ca.Policy, folder: Path) -> None:
        self.folder, self.now = folder, 1000.0
        self.events: list[Event] = []
        self.states: list[tuple[int, bytes]] = []  # after so many events
        self.follow(policy)

    def follow(self, policy: ca.Policy) -> None:
        """Record this policy from now on."""
        self.policy = policy
        policy.listen(lambda event: self.events.append(written_and_read(event)))

    def step(self, name: str, *given: Any) -> None:
        """Let something happen."""
        self.states.append((len(self.events), self.policy.snapshot()))
        getattr(self, name)(*given)
        check_state(self.policy)
        stats = self.policy.stats()
        assert stats.asked == stats.told + stats.open + stats.expired + stats.forgotten

    def time(self, wait: float) -> float:
        self.now += wait
        return self.now

    def context(self, point: tuple[float, float]) -> Any:
        box = self.policy.context
        return box.from_unit(point[: box.dim])

    def open(self) -> list[int]:
        opened = self.policy.life.open
        return [id_ for id_ in opened.open if opened.is_open(id_)]

    def slope(self, slope: tuple[float, float]) -> Any:
        return slope[: self.policy.decision.dim] if self.policy.uses_gradient else None

    def ask(self, point: tuple[float, float], wait: float, within: ca.Box | None = None) -> None:
        n, before = len(self.events), self.policy.snapshot()
        context, now = self.context(point), self.time(wait)
        decision = self.policy.ask(context, within=within, now=now)
        limits = within or self.policy.decision
        assert ((limits.low <= decision.value) & (decision.value <= limits.high)).all()
        twin = ca.Policy.from_snapshot(before)
        again = twin.ask(context, within=within, now=now)
        assert (again.id, again.role) == (decision.id, decision.role)
        assert again.value.tobytes() == decision.value.tobytes()
        assert twin.snapshot() == self.policy.snapshot()
        *passed, asked = self.events[n:]
        assert isinstance(asked, Asked)
        twin = ca.Policy.from_snapshot(before)
        for event in passed:
            twin.apply(event)
        allowed = None if within is None else Within(within.low, within.high)
        made, _ = twin.life.decide(asked.context, asked.at, allowed, draw=asked.id)
        assert events.to_plain(made) == events.to_plain(asked)
        if twin.life.model.counts_asking:
            self.refuses_another_value(twin, asked)

    def refuses_another_value(self, twin: ca.Policy, asked: Asked) -> None:
        before, heard = twin.snapshot(), list[Event]()
        twin.listen(heard.append)
        box = twin.decision
        inwards = np.where(asked.value < box.centre, box.high, box.low)
        changed = asked._replace(value=np.nextafter(asked.value, inwards))
        with pytest.raises(
            InputError, match=f"decision {asked.id} must be|must lie within limits"
        ):
            twin.apply(changed)
        assert twin.snapshot() == before
        assert heard == []
        twin.apply(asked)
        assert twin.snapshot() == self.policy.snapshot()

    def ask_within(
        self,
        point: tuple[float, float],
        one: tuple[float, float],
        other: tuple[float, float],
        wait: float,
    ) -> None:
        box = self.policy.decision
        ends = np.sort(box.from_unit(np.array([one, other])[:, : box.dim]), axis=0)
        within = ca.Box(*ends) if (ends[0] < ends[1]).all() else None
        self.ask(point, wait, within)

    def ask_many(self, points: list[tuple[float, float]], wait: float) -> None:
        contexts = np.array([self.context(point) for point in points])
        self.policy.ask_many(contexts.reshape(len(points), -1), now=self.time(wait))

    def tell(self, which: int, payoff: float, slope: tuple[float, float]) -> None:
        opened = self.open()
        if opened:
            id_ = opened[which % len(opened)]
            self.policy.tell(id_, payoff, gradient=self.slope(slope))

    def tell_done(self, which: int, payoff: float, point: tuple[float, float]) -> None:
        """Something else was done than what was decided."""
        opened, box = self.open(), self.policy.decision
        if opened and self.policy.life.takes_values:
            value = box.from_unit(point[: box.dim])
            slope = self.slope(point)
            self.policy.tell(opened[which % len(opened)], payoff, gradient=slope, value=value)

    def tell_many(self, payoffs: list[float], slope: tuple[float, float]) -> None:
        """The newest first."""
        ids = self.open()[::-1][: len(payoffs)]
        slopes = [self.slope(slope)] * len(ids) if self.policy.uses_gradient else None
        self.policy.tell_many(np.array(ids, np.int64), payoffs[: len(ids)], gradients=slopes)

    def play(self, seed: int, rounds: int) -> None:
        """Ask and tell one by one: a payoff that bins have reason to split for."""
        rng, policy = np.random.default_rng(seed), self.policy
        for _ in range(rounds):
            u = rng.random(policy.context.dim)
            decision = policy.ask(policy.context.from_unit(u), now=self.time(0.1))
            gap = policy.decision.to_unit(decision.value) - 0.5
            gap += 0.4 if u.sum() > 0.6 else -0.4
            slope = self.slope(tuple((-2.0 * gap / policy.decision.span).tolist()))
            policy.tell(decision, 0.01 * rng.random() - float(gap @ gap), gradient=slope)

    def forget(self, which: int) -> None:
        opened = self.open()
        if opened:
            self.policy.forget(opened[which % len(opened)])

    def expire(self, wait: float) -> None:
        self.policy.expire(now=self.time(wait))

    def forget_all(self) -> None:
        self.policy.forget_all()
        assert not self.policy.life.open.open

    def learn_from(self, seed: int, rows: int) -> None:
        rng, policy = np.random.default_rng(seed), self.policy
        table = {
            name: rng.uniform(low, high, rows)
            for box in (policy.context, policy.decision)
            for name, low, high in zip(box.names, box.low, box.high, strict=True)
        }
        policy.learn_from(table | {"payoff": rng.standard_normal(rows)})

    def save_and_load(self) -> None:
        before, path = self.policy.snapshot(), self.folder / "policy"
        self.policy.save(path)
        assert self.policy.snapshot() == before
        self.follow(ca.load(path))
        assert self.policy.snapshot() == before

    def copy_and_pickle(self) -> None:
        before = self.policy.snapshot()
        self.follow(pickle.loads(pickle.dumps(self.policy.copy())))
        assert self.policy.snapshot() == before

    def is_lived_again_from(self, happened: int, state: bytes) -> None:
        """From this state on, the later events lead to where the policy is now."""
        again, heard = ca.Policy.from_snapshot(state), list[Event]()
        assert again.snapshot() == state
        again.listen(heard.append)
        for event in self.events[happened:]:
            again.apply(event)
        assert again.snapshot() == self.policy.snapshot()
        assert heard == self.events[happened:]
        known, context = self.policy.copy(), self.context((0.3, 0.6))
        for _ in range(4):
            one, other = (policy.ask(context, now=self.now) for policy in (known, again))
            assert (one.id, one.role) == (other.id, other.role)
            assert one.value.tobytes() == other.value.tobytes()
        assert known.snapshot() == again.snapshot()
        np.testing.assert_array_equal(known.recommend(context), again.recommend(context))


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=40)
@given(data=st.data())
def test_whatever_happens_can_be_lived_again(name: str, data: Any) -> None:
    """From the beginning and from every state since, with the events that followed."""
    with tempfile.TemporaryDirectory() as folder:
        recorded = Recorded(data.draw(policies(name)), Path(folder))
        recorded.step("play", data.draw(SEED), data.draw(st.sampled_from([0, 5, 40, 150])))
        for step in data.draw(st.lists(STEP, min_size=4, max_size=20)):
            recorded.step(*step)
        for happened, state in recorded.states:
            recorded.is_lived_again_from(happened, state)


def lived(name: str, **more: Any) -> tuple[ca.Policy, Asked]:
    """A policy with two open decisions, 0 and 1, and how the next one would be asked."""
    options: dict[str, Any] = {
        "SurfaceSampling": {},
        "StaticKWSA": {"bins": 2, "step": 1.0},
        "AdaptiveKWSA": {"depth": 1, "step": 1.0},
        "UniformUCB": {"bins": 2, "arms": 1},
        "RobbinsMonro": {"bins": 2, "step": 0.5},
    }
    make: Callable[..., ca.Policy] = getattr(ca, name)
    policy = make(CONTEXTS[1], DECISIONS[2], rng=0, **options[name], **more)
    policy.ask([0.5])
    policy.ask([0.6])
    found: list[Event] = []
    twin = policy.copy()
    twin.listen(found.append)
    twin.ask([0.5])
    (asked,) = found
    assert isinstance(asked, Asked)
    return policy, asked


def refused(policy: ca.Policy, event: Any, wrong: str = "") -> None:
    """An event is refused with an error of ours, and nothing has happened."""
    before, heard = policy.snapshot(), list[Event]()
    policy.listen(heard.append)
    try:
        policy.apply(event)
    except (InputError, UnknownDecisionError):
        assert policy.snapshot() == before, wrong
        assert heard == [], wrong
    else:
        pytest.fail(f"{wrong}: {event!r}")


LOW, HIGH = DECISIONS[2].low, DECISIONS[2].high
NO_DECISION: dict[str, dict[str, Any]] = {
    "a number that is taken": {"id": 1},
    "a number below 0": {"id": -1},
    "no number": {"id": "2"},
    "a context outside": {"context": np.array([99.0])},
    "a context of nothing": {"context": np.array([math.nan])},
    "another context box": {"context": np.array([])},
    "whole numbers": {"context": np.array([1])},
    "a decision outside": {"value": HIGH + 1.0},
    "a decision of nothing": {"value": np.full(2, math.nan)},
    "another decision box": {"value": LOW[:1]},
    "an incumbent outside": {"start": HIGH + 1.0},
    "an incumbent of another box": {"start": LOW[:1]},
    "no time": {"at": math.nan},
    "no role": {"role": "guessed"},
    "no bin": {"bin": -1},
    "limits outside": {"limits": np.array([LOW - 1.0, HIGH])},
    "limits of another box": {"limits": np.zeros((2, 1))},
    "limits upside down": {"limits": np.array([HIGH, LOW])},
    "a decision outside its limits": {"limits": np.array([LOW, LOW + 1e-9])},
    "a bin that was never made": {"bin": 10**30},
    "nothing to learn, but no limits": {"role": "best"},
    "a role of several": {"role": np.array(["best", "explored"])},
    "a time without a clock": {"at": 1.0},
    "a whole number of seconds": {"at": 0},
    "a time beyond numbers": {"at": 10**400},
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_decision_that_cannot_be_is_refused(name: str) -> None:
    policy, asked = lived(name)
    for wrong, changed in NO_DECISION.items():
        refused(policy, asked._replace(**changed), wrong)
    policy.apply(asked)
    assert policy.open_decisions == 3


@pytest.mark.parametrize("name", POLICIES)
def test_a_payoff_that_cannot_be_is_refused(name: str) -> None:
    policy, _ = lived(name)
    slope = np.ones(2) if policy.uses_gradient else None
    for id_ in (2, -1, "0"):
        refused(policy, Told(id_, 1.0, slope))  # type: ignore[arg-type]
        refused(policy, Forgotten(id_))  # type: ignore[arg-type]
    for payoff in (math.nan, math.inf, "1", None, 1, np.float32(1)):
        refused(policy, Told(0, payoff, slope))  # type: ignore[arg-type]
    for value in (HIGH + 1.0, np.full(2, math.nan), LOW[:1], [2.0, -1.0]):
        refused(policy, Told(0, 1.0, slope, value))  # type: ignore[arg-type]
    if not policy.life.takes_values:
        refused(policy, Told(0, 1.0, slope, LOW))
    wrong = [None, np.full(2, math.nan), np.ones(1), np.ones(99)]
    for gradient in wrong if policy.uses_gradient else [np.ones(2)]:
        refused(policy, Told(0, 1.0, gradient))
    policy.apply(Told(0, 1.0, slope))
    refused(policy, Told(0, 1.0, slope))
    refused(policy, Forgotten(0))


@pytest.mark.parametrize("name", ["SurfaceSampling", "StaticKWSA", "UniformUCB"])
def test_what_is_held_is_told(name: str) -> None:
    policy, _ = lived(name, ttl=5, missing=0.0)
    policy.tell(0, 1.0)
    refused(policy, Told(0, 1.0))
    refused(policy, Forgotten(0))


@pytest.mark.parametrize("name", POLICIES)
def test_a_time_or_a_log_that_cannot_be_is_refused(name: str) -> None:
    policy, _ = lived(name, ttl_seconds=1e12)
    x, y, z = np.zeros((3, 1)), np.tile(LOW, (3, 1)), np.zeros(3)
    later = policy.life.now + 5.0
    policy.apply(TimePassed(later))
    for at in (math.nan, math.inf, "1", None, 10**30, later - 0.1):
        refused(policy, TimePassed(at))  # type: ignore[arg-type]
    for log in (
        (x + 99.0, y, z),
        (x, y - 1.0, z),
        (x, y, z + math.nan),
        (x, y, z[:2]),
        (x[:2], y, z),
        (x[0], y, z),
        (x, y[:, :1], z),
        (x.astype(np.int64), y, z),
        (x[:0], y[:0], z[:0]),
    ):
        refused(policy, LearnedFromLog(*log))
    for nothing in (None, "told", events.to_plain(Told(0, 1.0)), (0, 1.0, None)):
        refused(policy, nothing)
    policy.apply(LearnedFromLog(x, y, z))


@pytest.mark.parametrize(
    "plain",
    [
        None,
        [],
        {},
        {"event": "sold", "id": 0},
        {"event": "told", "id": 0},
        {"event": "told", "id": 0, "payoff": 1.0, "gradient": None, "more": 1},
        {"event": "told", "id": 0, "payoff": 1.0, "gradient": "steep"},
        {"event": "told", "id": 0, "payoff": 1.0, "gradient": [[1.0], [1.0, 2.0]]},
        {"event": ["told"], "id": 0},
    ],
)
def test_what_is_no_written_event_is_refused(plain: Any) -> None:
    with pytest.raises(InputError, match="an event must be as `to_plain` wrote it"):
        events.from_plain(plain)


def test_numbers_without_their_point_are_read_as_floats() -> None:
    plain = {"event": "told", "id": 3, "payoff": 2, "gradient": None, "value": None}
    (event,) = [events.from_plain(plain)]
    assert isinstance(event, Told)
    assert type(event.payoff) is float
    for wrong in ({"payoff": 10**400}, {"gradient": [10**400]}):
        with pytest.raises(InputError, match="an event must be as `to_plain` wrote it"):
            events.from_plain(plain | wrong)


@pytest.mark.parametrize("name", POLICIES)
def test_decisions_with_numbers_of_others_leave_room_for_ours(name: str) -> None:
    """Numbers that another server issued, some of them ahead of ours, one of them used again."""
    policy, asked = lived(name, ttl=20)
    slope = np.ones(2) if policy.uses_gradient else None
    numbers = [5, 2**100, 6] if not policy.life.model.counts_asking else []
    for id_ in numbers:
        policy.apply(asked._replace(id=id_))
        policy.apply(Told(id_, 1.0, slope))
    for _ in range(2):
        policy.expire()
        if numbers:
            policy.apply(asked._replace(id=5))
            policy.apply(Told(5, 1.0, slope))
        again = ca.Policy.from_snapshot(policy.snapshot())
        heard: list[list[Event]] = [[], []]
        for one, kept in zip((policy, again), heard, strict=True):
            one.listen(kept.append)
            for k in range(30):
                decision = one.ask([0.01 * k])
                assert decision.id > max(numbers, default=1)
        assert policy.snapshot() == again.snapshot()
        assert [type(event) for event in heard[0]] == [type(event) for event in heard[1]]
    policy.tell_many([decision.id], [1.0], gradients=None if slope is None else [slope])


def test_what_a_policy_hands_out_cannot_change_it() -> None:
    policy, heard = ca.SurfaceSampling(CONTEXTS[1], DECISIONS[2], rng=0), list[Any]()
    policy.listen(heard.append)
    decision, many = policy.ask([0.5]), policy.ask_many([[0.5]])
    for array in (decision.context, decision.value, many.contexts, heard[0].start):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


def test_events_that_have_happened_are_refused() -> None:
    """A log that overlaps the snapshot counts no payoff twice."""
    policy = ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(1), rng=0)
    log: list[Any] = []
    policy.listen(log.append)
    for _ in range(3):
        policy.tell(policy.ask([0.5]), 1.0)
    again = ca.Policy.from_snapshot(policy.snapshot())
    for event in log:
        with pytest.raises(ca.errors.UnknownDecisionError):
            again.apply(event)
    assert again.snapshot() == policy.snapshot()
    with pytest.raises(ca.errors.InputError, match="a decision needs a number"):
        again.apply(log[0]._replace(id=2**128 - 1))
    with pytest.raises(ca.errors.InputError, match="must be callable, but got 3"):
        policy.listen(3)  # type: ignore[arg-type]
