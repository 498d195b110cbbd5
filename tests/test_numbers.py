"""One rule for numbers, and names before order, wherever a caller hands something over."""

import json
import random
from collections import namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest

import continuarm as ca
from continuarm.errors import InputError, SettingsError, UnknownDecisionError
from continuarm.live.reader import Reader

CONTEXT = ca.Box([0, 0], [1, 1], names=["a", "b"])
DECISION = ca.Box([0, 0], [1, 1], names=["price", "fee"])
Pair = namedtuple("Pair", ["b", "a"])
A, B = [0.9, 0.2, 0.7], [0.1, 0.8, 0.3]


def policy() -> ca.Policy:
    """It recommends what was best where `a` is large, or where `b` is."""
    made = ca.SurfaceSampling(CONTEXT, DECISION, rng=0)
    rng = np.random.default_rng(0)
    for a, b in rng.random((300, 2)):
        decision = made.ask({"a": a, "b": b})
        made.tell(decision, -((decision.value[0] - a) ** 2) - (decision.value[1] - b) ** 2)
    return made


@pytest.fixture(scope="module")
def learned() -> ca.Policy:
    return policy()


NAMED_POINTS: dict[str, Any] = {
    "dictionary": {"b": 0.1, "a": 0.9},
    "pandas series": pd.Series({"b": 0.1, "a": 0.9}),
    "named tuple": Pair(b=0.1, a=0.9),
    "structured": np.array((0.1, 0.9), dtype=[("b", float), ("a", float)])[()],
}
NAMED_TABLES: dict[str, Any] = {
    "dictionary": {"b": B, "a": A},
    "pandas": pd.DataFrame({"b": B, "a": A}),
    "polars": pl.DataFrame({"b": B, "a": A}),
    "records": pd.DataFrame({"b": B, "a": A}).to_records(index=False),
    "rows": [{"b": b, "a": a} for a, b in zip(A, B, strict=True)],
    "structured": np.array(list(zip(B, A, strict=True)), dtype=[("b", float), ("a", float)]),
}


@pytest.mark.parametrize("given", NAMED_POINTS.values(), ids=NAMED_POINTS)
def test_a_context_with_names_is_matched_by_name(learned: ca.Policy, given: Any) -> None:
    wanted = learned.recommend([0.9, 0.1])
    assert wanted.tolist() != learned.recommend([0.1, 0.9]).tolist()
    np.testing.assert_array_equal(learned.recommend(given), wanted)
    np.testing.assert_array_equal(learned.ask(given).context, [0.9, 0.1])
    assert learned.explain(given) == learned.explain([0.9, 0.1])
    reader = Reader(learned.export())
    assert reader.decide(given) == reader.decide([0.9, 0.1]) == pytest.approx(wanted.tolist())
    for wrong in (pd.Series({"b": 0.1, "c": 0.9}), Pair(0.1, 0.9)._asdict() | {"c": 1.0}):
        with pytest.raises(ValueError, match=r"the names must be \['a', 'b'\], but got"):
            reader.decide(wrong)


@pytest.mark.parametrize("given", NAMED_TABLES.values(), ids=NAMED_TABLES)
def test_contexts_with_names_are_matched_by_name(learned: ca.Policy, given: Any) -> None:
    points = np.array([A, B]).T
    np.testing.assert_array_equal(learned.recommend_many(given), learned.recommend_many(points))
    np.testing.assert_array_equal(learned.ask_many(given).contexts, points)


@pytest.mark.parametrize(
    "given",
    [
        {"a": [0.1]},
        {"a": [0.1], "b": [0.2], "c": [0.3]},
        pd.DataFrame({"a": [0.1], "c": [0.2]}),
        pl.DataFrame({"a": [0.1]}),
        [{"a": 0.1, "c": 0.2}],
        pd.DataFrame([[0.1, 0.2, 0.3]], columns=["a", "b", "b"]),
    ],
)
def test_missing_and_extra_names_are_refused(learned: ca.Policy, given: Any) -> None:
    with pytest.raises(InputError, match=r"the names must be \['a', 'b'\], but got"):
        learned.recommend_many(given)
    with pytest.raises(InputError):
        ca.Box.unit(2).points(given)


def test_a_frame_that_is_not_collected_is_refused(learned: ca.Policy) -> None:
    with pytest.raises(InputError, match="columns that can be read are needed, but got a Lazy"):
        learned.recommend_many(pl.LazyFrame({"b": B, "a": A}))  # type: ignore[arg-type]


LOG = {"b": B, "fee": [0.1, 0.2, 0.3], "payoff": [1.0, 2.0, 3.0], "a": A, "price": [0.7] * 3}
LOGS: dict[str, Any] = {
    "dictionary": LOG,
    "pandas": pd.DataFrame(LOG),
    "polars": pl.DataFrame(LOG),
    "records": pd.DataFrame(LOG).to_records(index=False),
    "with other columns": pd.DataFrame(LOG | {"shop": ["x", "y", "z"]}),
}


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_a_log_is_matched_by_name(log: Any) -> None:
    made = ca.SurfaceSampling(CONTEXT, DECISION, rng=0)
    happened: list[ca.events.Event] = []
    made.listen(happened.append)
    made.learn_from(log)
    learned = happened[0]
    assert isinstance(learned, ca.events.LearnedFromLog)
    np.testing.assert_array_equal(learned.contexts, np.array([A, B]).T)
    np.testing.assert_array_equal(learned.values, [[0.7, 0.1], [0.7, 0.2], [0.7, 0.3]])


DONE: dict[str, Any] = {
    "dictionary": {"fee": 0.2, "price": 0.9},
    "series": pd.Series({"fee": 0.2, "price": 0.9}),
}


@pytest.mark.parametrize("done", DONE.values(), ids=DONE)
def test_what_was_really_done_is_matched_by_name(done: Any) -> None:
    made = ca.SurfaceSampling(CONTEXT, DECISION, rng=0)
    happened: list[ca.events.Event] = []
    made.listen(happened.append)
    made.tell(made.ask([0.5, 0.5]), 1.0, value=done)
    for frame in (pd.DataFrame([dict(done)]), pl.DataFrame([dict(done)]), [done]):
        made.tell_many([made.ask([0.5, 0.5]).id], [1.0], values=frame)
    told = [event for event in happened if isinstance(event, ca.events.Told)]
    assert [event.value.tolist() for event in told] == [[0.9, 0.2]] * 4  # type: ignore[union-attr]
    for wrong in ({"fee": 0.2}, pd.Series({"fee": 0.2, "cost": 0.9})):
        with pytest.raises(InputError, match="the names must be"):
            made.tell(made.ask([0.5, 0.5]), 1.0, value=wrong)


def test_limits_with_names_are_matched_by_name(learned: ca.Policy) -> None:
    named = ca.Box([0.1, 0.7], [0.2, 0.8], names=["fee", "price"])
    plain = ca.Box([0.7, 0.1], [0.8, 0.2])
    for verb in (learned.recommend, learned.explain):
        assert str(verb([0.5, 0.5], within=named)) == str(verb([0.5, 0.5], within=plain))
    found = learned.ask([0.5, 0.5], within=named).value
    assert ((plain.low <= found) & (found <= plain.high)).all()
    for names in (["fee", "cost"], ["a", "b"]):
        wrong = ca.Box([0.1, 0.7], [0.2, 0.8], names=names)
        for name in ("recommend", "explain", "ask"):
            with pytest.raises(InputError, match="the names of `within` must be"):
                getattr(learned, name)([0.5, 0.5], within=wrong)


def test_bounds_by_name_are_those_of_the_names() -> None:
    box = ca.Box(pd.Series({"b": 2, "a": 0}), {"a": 1, "b": 3}, names=["a", "b"])
    assert box == ca.Box([0, 2], [1, 3], names=["a", "b"])
    for wrong in ({"a": 0}, {"a": 0, "c": 0}):
        with pytest.raises(SettingsError, match="bounds by name need the names of the box"):
            ca.Box(wrong, [1, 3], names=["a", "b"])


def test_numbers_of_columns_are_no_names() -> None:
    frame = pd.DataFrame([[0.1, 0.2]])
    np.testing.assert_array_equal(CONTEXT.points(frame), [[0.1, 0.2]])
    np.testing.assert_array_equal(CONTEXT.point(pd.Series([0.1, 0.2])), [0.1, 0.2])


def test_gradients_and_starts_are_matched_by_name() -> None:
    slope = pd.Series({"fee": 5.0, "price": -1.0})
    made = [ca.RobbinsMonro(CONTEXT, DECISION, bins=1, step=0.1, rng=0) for _ in range(3)]
    made[0].tell(made[0].ask([0.5, 0.5]), 0.0, gradient=slope)
    made[1].tell(made[1].ask([0.5, 0.5]), 0.0, gradient=[-1.0, 5.0])
    made[2].tell_many(
        made[2].ask_many([[0.5, 0.5]]), [0.0], gradients=pd.DataFrame([slope.to_dict()])
    )
    found = [one.recommend([0.5, 0.5]).tolist() for one in made]
    assert found[0] == found[1] == found[2]
    begun = ca.SurfaceSampling(CONTEXT, DECISION, start=pd.Series({"fee": 0.2, "price": 0.9}))
    assert begun.recommend([0.5, 0.5]).tolist() == [0.9, 0.2]


NO_NUMBERS: dict[str, Any] = {
    "text": "0.5",
    "bytes": b"0.5",
    "decimal": Decimal("0.5"),
    "fraction": Fraction(1, 2),
    "complex": np.complex128(0.5 + 2j),
    "nothing": None,
    "date": np.datetime64("2020-01-01"),
    "too large": 10**400,
}


@pytest.mark.parametrize("value", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_what_is_no_number_is_refused_everywhere(value: Any) -> None:
    made = ca.SurfaceSampling(CONTEXT, DECISION, rng=0)
    decision, before = made.ask([0.5, 0.5]), made.snapshot()
    calls: dict[str, Any] = {
        "ask": lambda: made.ask([value, 0.5]),
        "ask by name": lambda: made.ask({"a": 0.5, "b": value}),
        "ask_many": lambda: made.ask_many([[0.5, 0.5], [0.5, value]]),
        "recommend": lambda: made.recommend([0.5, value]),
        "recommend_many": lambda: made.recommend_many({"a": [value], "b": [0.5]}),
        "tell": lambda: made.tell(decision, value),
        "tell an array": lambda: made.tell(decision, np.array(value)),  # type: ignore[arg-type]
        "tell_many": lambda: made.tell_many([decision.id], [value]),
        "within": lambda: made.ask([0.5, 0.5], within=ca.Box([0.1, value], [0.2, 0.9])),
        "log": lambda: made.learn_from(
            {"a": [value], "b": [0.5], "price": [0.5], "fee": [0.5], "payoff": [1.0]}
        ),
        "log payoff": lambda: made.learn_from(
            {"a": [0.5], "b": [0.5], "price": [0.5], "fee": [0.5], "payoff": [value]}
        ),
        "reader": lambda: Reader(made.export()).decide([value, 0.5]),
    }
    for label, call in calls.items():
        with pytest.raises((InputError, SettingsError, ValueError)):
            call()
        assert made.snapshot() == before, label


@pytest.mark.parametrize(
    "payoff",
    [True, np.True_, np.array(True), np.array("2.5"), bytearray(b"1"), [1.0], np.ma.masked],
    ids=repr,
)
def test_what_is_no_payoff_is_refused(payoff: Any) -> None:
    made = ca.SurfaceSampling(CONTEXT, DECISION, rng=0)
    decision = made.ask([0.5, 0.5])
    with pytest.raises(InputError, match="the payoff must be a finite number"):
        made.tell(decision, payoff)
    with pytest.raises(InputError):
        made.tell_many([decision.id], [payoff])


@pytest.mark.parametrize("payoff", [2, 2.0, np.float32(2), np.int8(2), np.array(2), np.array(2.0)])
def test_what_is_a_payoff_is_learned(payoff: Any) -> None:
    made = ca.SurfaceSampling(CONTEXT, DECISION, rng=0)
    made.tell(made.ask([0.5, 0.5]), payoff)
    plain = ca.SurfaceSampling(CONTEXT, DECISION, rng=0)
    plain.tell(plain.ask([0.5, 0.5]), 2.0)
    assert made.snapshot() == plain.snapshot()


def test_bytes_are_no_context() -> None:
    for text in (b"\x00\x01", bytearray(b"\x00\x01"), "01"):
        with pytest.raises(InputError, match="numbers are needed"):
            CONTEXT.point(text)


def test_flags_are_no_payoffs_of_a_log() -> None:
    made = ca.SurfaceSampling(CONTEXT, DECISION, rng=0)
    for flags in ([True, False, True], pl.Series([True, False, True]), np.ones(3, bool)):
        with pytest.raises(InputError, match="the payoffs 'payoff' of the log must be numbers"):
            made.learn_from(LOG | {"payoff": flags})


def test_hidden_values_are_refused() -> None:
    hidden = np.ma.array([[0.1, 0.2]], mask=[[False, True]])
    for call in (CONTEXT.points, lambda v: CONTEXT.point(v[0])):
        with pytest.raises(InputError, match="numbers are needed"):
            call(hidden)
    for rows in ([hidden[0]], [[0.1, 0.2], hidden[0]], {"a": hidden[0], "b": [0.1, 0.2]}):
        with pytest.raises(InputError, match="numbers are needed"):
            CONTEXT.points(rows)
    with pytest.raises(InputError, match="numbers are needed"):
        CONTEXT.point({"a": np.ma.masked, "b": 0.2})  # type: ignore[dict-item]
    np.testing.assert_array_equal(CONTEXT.points(np.ma.array([[0.1, 0.2]])), [[0.1, 0.2]])
    made = ca.SurfaceSampling(CONTEXT, DECISION, rng=0)
    decisions = made.ask_many([[0.5, 0.5]] * 2)
    with pytest.raises(InputError, match="the payoff must be a finite number"):
        made.tell_many(decisions, np.ma.array([1.0, 2.0], mask=[False, True]))
    made.tell_many(decisions, pd.Series([1.0, 2.0], index=[7, 9]))
    assert made.open_decisions == 0


def test_decisions_that_were_changed_are_refused() -> None:
    made = ca.SurfaceSampling(CONTEXT, DECISION, rng=0)
    decisions = made.ask_many([[0.5, 0.5]] * 2)
    changed = decisions._replace(values=decisions.values + 0.01)
    for wrong in (changed, decisions._replace(values=decisions.values[:1])):
        with pytest.raises(UnknownDecisionError, match=r"the decisions \[0, 1\] must be"):
            made.tell_many(wrong, [1.0, 1.0])
    made.tell_many(decisions, [1.0, 1.0])


def test_a_reader_decides_in_the_box_or_refuses_the_table(learned: ca.Policy) -> None:
    """Tables with one damaged part, of which some can still be read."""
    text, rng = learned.export(), random.Random(0)
    read = 0
    for _ in range(3000):
        content = damaged(text, rng)
        try:
            reader = Reader(content)
        except ValueError:
            continue
        read += 1
        box, contexts = reader.decision, reader.context
        for share in (0.0, 0.3, 1.0):
            x = [
                a + share * (b - a) for a, b in zip(contexts["low"], contexts["high"], strict=True)
            ]
            found = reader.decide(x)
            assert all(a <= v <= b for a, v, b in zip(box["low"], found, box["high"], strict=True))
    assert 100 < read < 2900
    with pytest.raises(ValueError, match="a table written by `export` is needed"):
        Reader("[" * 100_000)


def damaged(text: str, rng: random.Random) -> str:
    if rng.random() < 0.5:  # a byte
        k = rng.randrange(len(text))
        return text[:k] + rng.choice('0159-.e,]}["x') + text[k + 1 :]
    table = json.loads(text)  # a part
    part: Any = table
    while True:
        keys = list(part) if isinstance(part, dict) else range(len(part))
        if not keys:
            return json.dumps(table)
        key = rng.choice(list(keys))
        if isinstance(part[key], dict | list) and part[key] and rng.random() < 0.85:
            part = part[key]
            continue
        wrong: list[Any] = [
            None,
            -1,
            1e308,
            -1e308,
            10**400,
            float("nan"),
            "x",
            [],
            {},
            0,
            True,
            2.5,
        ]
        part[key] = rng.choice(wrong)
        return json.dumps(table)
