"""Cells: what was learned, by parts of contexts that somebody chooses."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import continuarm as ca
from continuarm.cli import cli
from continuarm.live.cells import MOST_PARTS
from continuarm.plots import cells_table

CONTEXT = ca.Box([18, 0, 0], [90, 24, 2.5e5], names=["age", "hour", "income"])
DECISION = ca.Box([1.0, 0.5], [9.0, 4.0], names=["price", "fee"])


def policy_of(context: ca.Box = CONTEXT, decision: ca.Box = DECISION, **more: Any) -> ca.Policy:
    parts: Any = {"partition": ca.Grid(1), "learner": ca.SmoothSurface()} | more
    return ca.Policy(context, decision, rng=1, **parts)


@pytest.fixture(scope="module")
def learned() -> ca.Policy:
    """It has learned that the best price rises with income and falls in the evening."""
    policy, rng = policy_of(start=[4.0, 2.0]), np.random.default_rng(0)
    for x in rng.uniform(CONTEXT.low, CONTEXT.high, (1500, 3)):
        decision = policy.ask(x)
        price, fee = decision.value
        best = 3.0 + 3.0 * x[2] / 2.5e5 - 1.0 * x[1] / 24
        policy.tell(decision, 5.0 - (price - best) ** 2 - (fee - 2.0) ** 2 + 0.2 * rng.normal())
    return policy


def test_cells_cover_two_contexts_and_say_what_is_known_in_their_middles(
    learned: ca.Policy,
) -> None:
    cells = learned.cells(along=["income", "age"], parts=3, at={"hour": 20})
    assert [list(one.where) for one in cells] == [["income", "age"]] * 9
    edges = sorted({end for one in cells for end in one.where["income"]})
    assert edges == pytest.approx([0, 2.5e5 / 3, 5e5 / 3, 2.5e5])
    assert {one.where["age"] for one in cells} == {(18, 42), (42, 66), (66, 90)}
    for one in cells:
        assert one.context[1] == 20
        assert (one.best == learned.recommend(one.context)).all()
        assert one.today.tolist() == [4.0, 2.0]
        found = learned.explain(one.context)
        assert (one.peak, one.peak_error) == (found["peak"], found["peak_error"])
        paid = learned.expected(one.context, [one.best, one.today])
        assert paid is not None
        assert [one.expected, one.expected_error] == pytest.approx(paid[0].tolist())
        assert one.gain == pytest.approx(paid[0, 0] - paid[1, 0], abs=1e-9)
        assert one.is_shown()
        assert not one.frozen


def test_the_gain_of_what_is_done_today_is_nothing_and_surely_so(learned: ca.Policy) -> None:
    """The error is that of the difference: what is known of both alike cancels."""
    life, point = learned.life, CONTEXT.centre
    model: Any = life.model
    today = DECISION.to_unit(np.array([[4.0, 2.0]]))
    assert model.gains(point, life.limits, today, today[0]).tolist() == [[0.0, 0.0]]
    ys = DECISION.to_unit(np.array([[4.5, 2.0], [5.0, 2.5]]))
    gains = model.gains(point, life.limits, ys, today[0])
    back = [model.gains(point, life.limits, today, y)[0] for y in ys]
    assert np.allclose(gains, np.array(back) * [-1.0, 1.0], rtol=1e-9)
    paid = model.expected(point, life.limits, ys)
    assert np.allclose(gains[1, 0] - gains[0, 0], paid[1, 0] - paid[0, 0])
    assert (gains[:, 1] > 0.0).all()


def test_the_contexts_that_move_the_decision_most_are_the_default(learned: ca.Policy) -> None:
    assert list(learned.cells(parts=1)[0].where) == ["hour", "income"]
    assert list(policy_of().cells(parts=1)[0].where) == ["age", "hour"]  # nothing is known yet


def test_one_context_gives_a_strip_and_none_gives_one_cell() -> None:
    hour = ca.Box([0], [24], names=["hour"])
    assert len(policy_of(hour).cells()) == 8
    [one] = policy_of(ca.Box.unit(0)).cells(parts=7)
    assert (one.where, one.context.size) == ({}, 0)
    assert one.best.tolist() == DECISION.centre.tolist()
    assert one.in_words(ca.Box.unit(0)) == "all contexts"


def test_before_payoffs_nothing_is_expected_and_nothing_is_shown() -> None:
    for one in policy_of().cells(parts=2):
        known = (one.expected, one.expected_error, one.gain, one.gain_error, one.peak)
        assert known == (None,) * 5
        assert not one.is_shown()


def test_a_cell_is_a_segment_that_can_be_frozen(learned: ca.Policy) -> None:
    policy = learned.copy()
    cells = policy.cells(along=["hour", "income"], parts=4)
    policy.freeze(cells[5].where)
    assert [one.frozen for one in policy.cells(along=["hour", "income"], parts=4)] == [
        k == 5 for k in range(16)
    ]
    assert cells[5].in_words(CONTEXT) == "hour 6 to 12 and income 62,500 to 125,000"


def test_learners_that_know_no_errors_give_what_they_know() -> None:
    policy, rng = policy_of(learner=ca.BasisSurface()), np.random.default_rng(0)
    for x in rng.uniform(CONTEXT.low, CONTEXT.high, (60, 3)):
        policy.tell(policy.ask(x), rng.normal())
    assert {one.expected for one in policy.cells(parts=2)} == {None}
    policy = policy_of(partition=ca.Grid(2), learner=ca.ResponseSurface())
    assert not policy.has_one_bin
    for x in rng.uniform(CONTEXT.low, CONTEXT.high, (600, 3)):
        policy.tell(policy.ask(x), rng.normal())
    for one in policy.cells(along="age", parts=4):
        assert one.gain_error is None
        paid = policy.expected(one.context, [one.best, one.today])
        assert one.gain == (None if paid is None else pytest.approx(paid[0, 0] - paid[1, 0]))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"along": "height"}, "a context is one of ['age', 'hour', 'income'], but got 'height'"),
        ({"along": ["age", "age"]}, "one or two different contexts"),
        ({"along": ["age", "hour", "income"]}, "one or two different contexts"),
        ({"along": []}, "one or two different contexts"),
        ({"along": 3}, "a context is one of"),
        ({"parts": MOST_PARTS + 1}, "`parts <= 64` must hold, but got 65"),
        ({"parts": 0}, "`parts` must be a whole number >= 1, but got 0"),
        ({"at": {"age": 7}}, "age"),
        ({"at": {"height": 7}}, "a name of `at` is one of"),
    ],
)
def test_what_cannot_be_cut_is_refused_in_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ca.errors.ContinuarmError) as refused:
        policy_of().cells(**given)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_which_policies_have_one_bin() -> None:
    assert policy_of().has_one_bin
    assert policy_of(ca.Box.unit(0), partition=ca.Grid(9)).has_one_bin
    assert not policy_of(partition=ca.Grid(2)).has_one_bin
    assert not ca.SurfaceSampling(CONTEXT, DECISION).has_one_bin


def test_where_there_is_one_bin_explain_speaks_of_none(learned: ca.Policy) -> None:
    policy, happened = learned.copy(), list[Any]()
    assert "The policy has learned 1,500 payoffs, from all contexts." in str(
        policy.explain(CONTEXT.centre)
    )
    policy.listen(happened.append)
    policy.freeze(policy.bins()[0])
    policy.ask(CONTEXT.centre)
    text = " ".join(str(policy.explain(happened[-1])).split())
    assert "It was the best decision known: the policy was frozen." in text
    assert "Guard freeze: the policy answers with its best decision" in text
    assert "bin" not in text
    alone = policy_of(ca.Box.unit(0))
    alone.tell(alone.ask(), 1.0)
    assert "The policy has learned 1 payoff." in str(alone.explain())


def test_the_figure_is_of_cells_where_there_is_one_bin(learned: ca.Policy, tmp_path: Path) -> None:
    policy = learned.copy()
    policy.freeze({"hour": (18, 24)})
    figure = policy.plot_bins(["hour", "income"], path=tmp_path / "map.png")
    axes, bar = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("hour", "income")
    assert axes.get_title() == "Best decision known at age 54, in the middle of each cell"
    assert bar.get_ylabel() == "best price"
    assert [text.get_text() for text in figure.legends[0].texts] == ["frozen"]
    assert len(axes.texts) == 64
    table = cells_table(policy, ["hour", "income"])
    written = {(text.get_position()): text.get_text() for text in axes.texts}
    for row in table.dicts():
        middle = tuple(0.5 * (row[f"{n} from"] + row[f"{n} to"]) for n in ("hour", "income"))
        assert written[middle] == f"{row['best price']:.2f}"
    assert policy.plot_bins(colour="visits").axes[0].get_title().startswith("1 bin")
    strip = policy.plot_cells("age", colour="gain", parts=5, path=tmp_path / "strip.png")
    assert strip.axes[0].get_xlabel() == "age"
    fresh = policy_of().plot_cells(colour="payoff")
    assert fresh.axes[0].get_title().endswith("grey: not\nknown")
    unsure = policy_of().plot_cells(path=tmp_path / "unsure.png")
    assert unsure.legends[0].texts[0].get_text() == "payoffs do not show yet where it lies"
    with pytest.raises(ca.errors.InputError, match="`colour` must be one of"):
        policy.plot_bins(colour="red")
    assert all(file.stat().st_size > 5000 for file in tmp_path.iterdir())


def test_inspect_has_a_table_of_cells(learned: ca.Policy, tmp_path: Path) -> None:
    learned.save(tmp_path / "shop")
    file = str(tmp_path / "shop")
    run = CliRunner().invoke
    done = run(cli, ["inspect", file, "--along", "income", "--parts", "2"])
    assert done.exit_code == 0, done.output
    first = learned.cells(along="income", parts=2)[0]
    [line] = [one for one in done.output.splitlines() if one.startswith("income 0 to 125,000 ")]
    assert f"price {first.best[0]:.3f}".rstrip("0") in line
    assert "bin" not in done.output.partition("Nothing was found")[0]
    assert "Other contexts are held at age 54, hour 12." in done.output
    done = run(cli, ["inspect", file, "--json", "--plot", str(tmp_path / "a.png")])
    found = json.loads(done.output)
    assert len(found["cells"]) == 16
    assert "bins" not in found
    assert (tmp_path / "a-cells.png").stat().st_size > 5000
    ca.SurfaceSampling(CONTEXT, DECISION).save(tmp_path / "tree")
    done = run(cli, ["inspect", str(tmp_path / "tree"), "--along", "age"])
    assert done.exit_code != 0
    refused = run(cli, ["inspect", file, "--parts", "99"])
    assert refused.exit_code != 0
